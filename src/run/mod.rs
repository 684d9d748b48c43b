//! Engine-neutral values a page shows; each engine maps into these.

pub mod diagnosis;
pub mod list;
pub mod notice;
pub mod tag;
