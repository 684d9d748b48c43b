//! Pure: rows and a clock in, values out. No pool, no await, no `Utc::now()`.

pub mod list_item;
pub mod list_row;
pub mod repair_gate;
pub mod task_problem;
