//! Engine-neutral values a page shows; each engine maps into these.
