//! Durable Workflow v2.

pub mod payload;
pub mod projection;
pub mod store;
pub mod stored;
