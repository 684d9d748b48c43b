//! Durable Workflow v2.

mod arrange;
pub mod canonical;
pub mod collect;
pub mod engine_config;
pub mod export;
pub mod metrics;
pub mod page;
pub mod payload;
mod php;
pub mod projection;
pub mod repair;
pub mod store;
pub mod stored;

#[cfg(test)]
mod damage;
