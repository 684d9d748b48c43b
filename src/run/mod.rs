//! Engine-neutral values a page shows; each engine maps into these.

pub mod tag;
