//! JSON for scripts, dashboards and monitors.

pub mod export;
pub mod flows;
pub mod runs;
