//! The payloads of history events and tasks, as shapes: each reads the keys one concept needs.

pub mod activity;
pub mod parallel;
pub mod timer;
