//! The payloads of history events and tasks, as shapes: each reads the keys one concept needs.

pub mod command;
pub mod contract;
pub mod update;
