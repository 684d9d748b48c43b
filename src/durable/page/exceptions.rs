use crate::{
    durable::projection::Projected,
    run::{exceptions::Exceptions, window::Asked},
};

pub fn exceptions(p: &Projected<'_>, asked: &Asked) -> Exceptions {
    Exceptions {
        window: asked.window("exceptions", p.failures.len(), |_| None),
    }
}
