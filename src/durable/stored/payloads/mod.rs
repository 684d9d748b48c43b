//! The payloads of history events and tasks, as shapes: each reads the keys one concept needs.

pub mod lineage;
pub mod waits;
