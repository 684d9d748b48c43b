//! The catalogue of situations and the load generator.

pub mod rows;
pub mod seed;
pub mod write;
