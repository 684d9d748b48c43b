//! Operator metrics, dashboard summary and health: pure, from what one pass counted, the clock
//! and the engine's configuration. A value's field names are the engine's JSON keys.

pub mod backend;
mod blocks;
pub mod dashboard;
pub mod drift;
pub mod ground;
pub mod health;
pub mod policy;
pub mod pollers;
pub mod queues;
pub mod repair;
pub mod workers;

use serde::Serialize;

pub use blocks::{Activities, Backlog, Runs, Schedules, Starts, Sticky, Tasks};

use self::{
    backend::Backend,
    blocks::History,
    drift::{CommandContracts, Drift, Projections, Rows},
    policy::{Limits, MatchingRole, RepairPolicy, UpdateWait},
    repair::Repair,
    workers::Workers,
};
use crate::durable::{engine_config::EngineConfig, store::metrics::Counted, stored::Stamp};

/// The engine's `operator_metrics`, key for key.
#[derive(Clone, Debug, Serialize)]
pub struct OperatorMetrics {
    pub generated_at: Stamp,
    pub runs: Runs,
    pub tasks: Tasks,
    pub activities: Activities,
    pub backlog: Backlog,
    pub repair: Repair,
    pub starts: Starts,
    pub history: History,
    pub command_contracts: CommandContracts,
    pub projections: Projections,
    pub schedules: Schedules,
    pub workers: Workers,
    pub backend: Backend,
    pub structural_limits: Limits,
    pub update_wait: UpdateWait,
    pub repair_policy: RepairPolicy,
    pub matching_role: MatchingRole,
    pub sticky_execution: Sticky,
}

impl OperatorMetrics {
    pub fn of(counted: &Counted, rows: &Rows, drift: &Drift, config: &EngineConfig) -> Self {
        let runs = Runs::of(counted);
        let tasks = Tasks::of(counted);
        let activities = Activities::of(counted);
        Self {
            generated_at: Stamp(counted.now),
            backlog: Backlog::of(counted, &runs, &tasks, &activities),
            repair: Repair::of(counted, config),
            starts: Starts::of(counted),
            history: History::of(counted, rows, config),
            command_contracts: drift.contracts.clone(),
            projections: Projections::of(counted, rows, drift),
            schedules: Schedules::of(counted),
            workers: Workers::of(counted, config),
            backend: Backend::of(counted.now, counted.dialect, config),
            structural_limits: Limits::of(config),
            update_wait: UpdateWait::of(config),
            repair_policy: RepairPolicy::of(config),
            matching_role: MatchingRole::of(config),
            sticky_execution: Sticky::of(counted, config),
            runs,
            tasks,
            activities,
        }
    }
}

/// Milliseconds since the oldest; 0 where there is none, negative where it lies ahead.
fn age_ms(now: chrono::DateTime<chrono::Utc>, oldest: Option<Stamp>) -> i64 {
    oldest.map_or(0, |oldest| oldest.age(now).num_milliseconds())
}
