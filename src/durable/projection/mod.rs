//! Pure: rows, a moment and the engine's configuration in, values out; no pool, no waiting, no
//! clock of its own. One file per concept; a value's field names are the engine's JSON keys.

pub mod actions;
pub mod activities;
pub mod attempts;
pub mod authority;
pub mod budget;
pub mod children;
pub mod classification;
pub mod command_context;
pub mod commands;
pub mod context;
pub mod contract;
pub mod current_run;
pub mod detail;
pub mod diagnosis;
pub mod drift;
pub mod ending;
#[cfg(test)]
pub(in crate::durable) mod example;
pub mod exception;
pub mod failures;
pub mod fleet;
pub mod headline;
pub mod identity;
pub mod intakes;
pub mod keyed;
pub mod lineage;
pub mod list_item;
pub mod list_row;
pub mod liveness;
pub mod logs;
pub mod navigation;
pub mod notices;
pub mod parallel;
pub mod policies;
pub mod progress;
pub mod projected;
pub mod related;
pub mod repair_gate;
pub mod retries;
pub mod signals;
pub mod sources;
pub mod task_links;
pub mod task_problem;
pub mod tasks;
pub mod timeline;
pub mod timers;
pub mod trace;
pub mod transport;
pub mod typed;
pub mod undecoded;
pub mod updates;
pub mod validation_errors;
pub mod waits;

pub use context::Context;
pub use projected::Projected;
