//! A file per command.

pub mod seed;
