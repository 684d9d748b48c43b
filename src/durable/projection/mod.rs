//! Pure: rows, a clock and the engine's configuration in, values out. No pool, no await, no
//! `Utc::now()`. One file per concept; a value's field names are the engine's JSON keys.

pub mod activities;
pub mod attempts;
pub mod authority;
pub mod context;
pub mod detail;
mod keyed;
pub mod list_item;
pub mod list_row;
pub mod logs;
pub mod parallel;
pub mod progress;
pub mod repair_gate;
pub mod retries;
pub mod task_problem;
pub mod timers;
pub mod waits;

pub use context::Context;
