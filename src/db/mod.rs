//! The narrow waist over SQLite, PostgreSQL and MySQL.

mod count;
mod val;

pub use count::{bump, counted};
pub use val::Val;
