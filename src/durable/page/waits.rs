use crate::{
    durable::projection::Projected,
    run::{waits::Waits, window::Asked},
};

pub fn waits(p: &Projected<'_>, asked: &Asked) -> Waits {
    Waits {
        window: asked.window("waits", p.waits.len(), |_| None),
    }
}
