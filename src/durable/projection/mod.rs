//! Pure: rows, a clock and the engine's configuration in, values out. No pool, no await, no
//! `Utc::now()`. One file per concept; a value's field names are the engine's JSON keys.

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
pub mod exception;
pub mod failures;
pub mod fleet;
pub mod identity;
pub mod intakes;
pub mod keyed;
pub mod lineage;
pub mod list_item;
pub mod list_row;
pub mod liveness;
pub mod logs;
pub mod navigation;
pub mod parallel;
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
pub mod updates;
pub mod waits;

pub use context::Context;
pub use projected::Projected;
