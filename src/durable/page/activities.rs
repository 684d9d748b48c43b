use crate::{
    durable::projection::Projected,
    run::{activities::Activities, window::Asked},
};

pub fn activities(p: &Projected<'_>, asked: &Asked) -> Activities {
    Activities {
        window: asked.window("activities", p.activities.len(), |_| None),
    }
}
