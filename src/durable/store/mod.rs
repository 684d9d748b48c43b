//! The queries over the engine's tables, and the check that those tables are the ones we know.

pub mod schema;
