use crate::{
    durable::projection::Projected,
    run::{children::Children, window::Asked},
};

pub fn children(p: &Projected<'_>, asked: &Asked) -> Children {
    Children {
        window: asked.window("children", p.children.len(), |_| None),
    }
}
