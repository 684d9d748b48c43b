//! The narrow waist over SQLite, PostgreSQL and MySQL.

mod val;

pub use val::Val;
