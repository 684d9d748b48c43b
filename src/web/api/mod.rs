//! JSON for scripts, dashboards and monitors.

pub mod flows;
pub mod runs;
