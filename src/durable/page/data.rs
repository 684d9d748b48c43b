use crate::{
    durable::projection::Projected,
    run::{data::Data, window::Asked},
};

pub fn data(_: &Projected<'_>, asked: &Asked) -> Data {
    Data {
        window: asked.window("data", 0, |_| None),
    }
}
