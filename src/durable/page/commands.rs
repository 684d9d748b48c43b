use crate::{
    durable::projection::Projected,
    run::{commands::Commands, window::Asked},
};

pub fn commands(p: &Projected<'_>, asked: &Asked) -> Commands {
    Commands {
        window: asked.window("commands", p.commands.len(), |_| None),
    }
}
