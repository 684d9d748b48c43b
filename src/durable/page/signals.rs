use crate::{
    durable::projection::Projected,
    run::{signals::Signals, window::Asked},
};

pub fn signals(p: &Projected<'_>, asked: &Asked) -> Signals {
    Signals {
        window: asked.window("signals", p.signals.len(), |_| None),
    }
}
