use crate::{
    durable::projection::Projected,
    run::{tasks::Tasks, window::Asked},
};

pub fn tasks(p: &Projected<'_>, asked: &Asked) -> Tasks {
    Tasks {
        window: asked.window("tasks", p.tasks.len(), |_| None),
    }
}
