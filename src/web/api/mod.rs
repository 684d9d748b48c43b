//! JSON for scripts, dashboards and monitors.

pub mod export;
pub mod exposition;
pub mod flows;
pub mod metrics;
pub mod prometheus;
mod queue_series;
pub mod repair;
pub mod runs;
