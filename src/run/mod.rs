//! Engine-neutral values a page shows; each engine maps into these.

pub mod list;
pub mod tag;
