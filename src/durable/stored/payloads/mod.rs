//! The payloads of history events and tasks, as shapes: each reads the keys one concept needs.

pub mod activity;
pub mod command;
pub mod contract;
pub mod failure;
pub mod lineage;
pub mod parallel;
pub mod task;
pub mod timeline;
pub mod timer;
pub mod update;
pub mod waits;
