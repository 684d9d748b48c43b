//! Plimsoll reads the tables a durable workflow engine already writes and tells an operator
//! what every run is doing, why it is stuck, and what may safely be done about it.

#![recursion_limit = "256"] // `json!` of the engine's widest documents

pub mod cli;
pub mod clock;
pub mod config;
pub mod db;
pub mod demo;
pub mod durable;
pub mod length;
pub mod run;
pub mod web;
pub mod zone;
