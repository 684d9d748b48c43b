//! Pure: rows, a clock and the engine's configuration in, values out. No pool, no await, no
//! `Utc::now()`. One file per concept; a value's field names are the engine's JSON keys.

pub mod authority;
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
pub mod sources;
pub mod task_problem;
pub mod waits;

pub use context::Context;
