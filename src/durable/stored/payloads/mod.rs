//! The payloads of history events and tasks, as shapes: each reads the keys one concept needs.

pub mod task;
pub mod failure;
pub mod timeline;
pub mod command;
pub mod contract;
pub mod update;
pub mod lineage;
pub mod waits;
