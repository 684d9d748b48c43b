//! Pure: rows, a clock and the engine's configuration in, values out. No pool, no await, no
//! `Utc::now()`. One file per concept; a value's field names are the engine's JSON keys.

pub mod authority;
pub mod budget;
pub mod classification;
pub mod context;
pub mod detail;
pub mod exception;
pub mod failures;
pub mod list_item;
pub mod list_row;
pub mod parallel;
pub mod repair_gate;
pub mod task_problem;
pub mod transport;
pub mod timeline;
pub mod trace;
pub mod waits;

pub use context::Context;
