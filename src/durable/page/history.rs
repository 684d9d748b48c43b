use crate::{
    durable::projection::Projected,
    run::{history::History, window::Asked},
};

pub fn history(p: &Projected<'_>, asked: &Asked) -> History {
    History {
        window: asked.window("history", p.cx.snapshot.events.len(), |_| None),
    }
}
