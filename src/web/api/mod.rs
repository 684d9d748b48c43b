//! JSON for scripts, dashboards and monitors.

pub mod export;
pub mod exposition;
pub mod flows;
pub mod metrics;
pub mod prometheus;
pub mod repair;
pub mod runs;
