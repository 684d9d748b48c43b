//! Durable Workflow v2.

pub mod engine_config;
pub mod export;
pub mod payload;
pub mod projection;
pub mod store;
pub mod stored;
