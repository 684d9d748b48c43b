use crate::{
    durable::projection::Projected,
    run::{updates::Updates, window::Asked},
};

pub fn updates(p: &Projected<'_>, asked: &Asked) -> Updates {
    Updates {
        window: asked.window("updates", p.updates.len(), |_| None),
    }
}
