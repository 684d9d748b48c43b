//! The queries over the engine's tables, and the check that those tables are the ones we know.
//! SQL is written here once, next to the function that names it.

pub mod bundle;
pub mod export;
pub mod find;
pub mod head;
pub mod history;
mod lot;
pub mod metrics;
pub mod past;
pub mod reader;
mod related;
pub(in crate::durable) mod run_rows;
pub mod runs;
pub mod schema;
pub mod snapshot;
pub mod state;
