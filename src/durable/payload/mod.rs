//! The engine's one value codec, and what a page may show of a payload.
//!
//! Nothing here resolves a class, fetches a URI or runs what it decodes.

pub mod avro;
