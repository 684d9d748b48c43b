//! The queries. SQL is written here once, next to the function that names it.

pub mod find;
pub mod head;
pub mod runs;
