//! Pure: rows, a clock and the engine's configuration in, values out. No pool, no await, no
//! `Utc::now()`. One file per concept; a value's field names are the engine's JSON keys.

pub mod authority;
pub mod budget;
pub mod classification;
pub mod command_context;
pub mod commands;
pub mod context;
pub mod contract;
pub mod detail;
pub mod exception;
pub mod failures;
pub mod intakes;
pub mod children;
pub mod context;
pub mod current_run;
pub mod detail;
pub mod fleet;
pub mod identity;
pub mod lineage;
pub mod list_item;
pub mod list_row;
pub mod navigation;
pub mod parallel;
pub mod related;
pub mod repair_gate;
pub mod signals;
pub mod task_links;
pub mod sources;
pub mod task_problem;
pub mod transport;
pub mod timeline;
pub mod trace;
pub mod updates;
pub mod waits;

pub use context::Context;
