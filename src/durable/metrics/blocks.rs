//! The blocks that are counts, their ages and their sums.

use serde::Serialize;

use super::{age_ms, drift::Rows};
use crate::{
    db::Dialect,
    durable::{
        engine_config::EngineConfig,
        projection::budget,
        store::metrics::{
            ActivityCounts, Counted, HistoryCounts, RunCounts, ScheduleCounts, TaskCounts,
        },
        stored::Stamp,
    },
};

#[derive(Clone, Debug, Serialize)]
pub struct Runs {
    #[serde(flatten)]
    pub counts: RunCounts,
    pub max_repair_needed_age_ms: i64,
    pub max_wait_age_ms: i64,
}

impl Runs {
    pub fn of(counted: &Counted) -> Self {
        let counts = counted.runs.clone();
        Self {
            max_repair_needed_age_ms: age_ms(counted.now, counts.oldest_repair_needed_at),
            max_wait_age_ms: age_ms(counted.now, counts.oldest_wait_started_at),
            counts,
        }
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct Tasks {
    #[serde(flatten)]
    pub counts: TaskCounts,
    pub max_lease_expired_age_ms: i64,
    pub max_ready_due_age_ms: i64,
    pub max_dispatch_overdue_age_ms: i64,
    pub max_claim_failed_age_ms: i64,
    pub max_dispatch_failed_age_ms: i64,
    /// A task with two kinds of trouble counts twice, as in the engine.
    pub unhealthy: i64,
    pub oldest_unhealthy_at: Option<Stamp>,
    pub max_unhealthy_age_ms: i64,
}

impl Tasks {
    pub fn of(counted: &Counted) -> Self {
        let now = counted.now;
        let mut counts = TaskCounts::default();
        for group in &counted.tasks {
            counts.add(&group.counts);
        }
        let oldest_unhealthy_at = [
            counts.oldest_lease_expired_at,
            counts.oldest_dispatch_overdue_since,
            counts.oldest_claim_failed_at,
            counts.oldest_dispatch_failed_at,
        ]
        .into_iter()
        .flatten()
        .min();
        Self {
            max_lease_expired_age_ms: age_ms(now, counts.oldest_lease_expired_at),
            max_ready_due_age_ms: age_ms(now, counts.oldest_ready_due_at),
            max_dispatch_overdue_age_ms: age_ms(now, counts.oldest_dispatch_overdue_since),
            max_claim_failed_age_ms: age_ms(now, counts.oldest_claim_failed_at),
            max_dispatch_failed_age_ms: age_ms(now, counts.oldest_dispatch_failed_at),
            unhealthy: counts.dispatch_failed
                + counts.claim_failed
                + counts.dispatch_overdue
                + counts.lease_expired,
            oldest_unhealthy_at,
            max_unhealthy_age_ms: age_ms(now, oldest_unhealthy_at),
            counts,
        }
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct Activities {
    #[serde(flatten)]
    pub counts: ActivityCounts,
    pub queued_open: i64,
    pub queued_pending: i64,
    pub queued_running: i64,
    pub queued_failed_attempts: i64,
    pub max_retrying_age_ms: i64,
    pub max_timeout_overdue_age_ms: i64,
}

impl Activities {
    pub fn of(counted: &Counted) -> Self {
        let counts = counted.activities.clone();
        let queued = |all: i64, local: i64| (all - local).max(0);
        Self {
            queued_open: queued(counts.open, counts.local_open),
            queued_pending: queued(counts.pending, counts.local_pending),
            queued_running: queued(counts.running, counts.local_running),
            queued_failed_attempts: queued(counts.failed_attempts, counts.local_failed_attempts),
            max_retrying_age_ms: age_ms(counted.now, counts.oldest_retrying_started_at),
            max_timeout_overdue_age_ms: age_ms(counted.now, counts.oldest_timeout_overdue_at),
            counts,
        }
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct Backlog {
    pub runnable_tasks: i64,
    pub delayed_tasks: i64,
    pub leased_tasks: i64,
    pub tasks_added_last_minute: i64,
    pub tasks_dispatched_last_minute: i64,
    pub retrying_activities: i64,
    pub unhealthy_tasks: i64,
    pub repair_needed_runs: i64,
    pub claim_failed_runs: i64,
    pub compatibility_blocked_runs: i64,
    pub oldest_compatibility_blocked_started_at: Option<Stamp>,
    pub max_compatibility_blocked_age_ms: i64,
}

impl Backlog {
    pub fn of(counted: &Counted, runs: &Runs, tasks: &Tasks, activities: &Activities) -> Self {
        let summaries = &counted.summaries;
        // The engine takes the first row of an order; where nulls come first, one of them wins.
        let null_wins = counted.dialect != Dialect::Postgres
            && summaries.compatibility_blocked_without_time > 0;
        let oldest = summaries
            .oldest_compatibility_blocked_started_at
            .filter(|_| !null_wins);
        Self {
            runnable_tasks: tasks.counts.ready_due,
            delayed_tasks: tasks.counts.delayed,
            leased_tasks: tasks.counts.leased,
            tasks_added_last_minute: counted.recent_tasks.tasks_added_last_minute,
            tasks_dispatched_last_minute: counted.recent_tasks.tasks_dispatched_last_minute,
            retrying_activities: activities.counts.retrying,
            unhealthy_tasks: tasks.unhealthy,
            repair_needed_runs: runs.counts.repair_needed,
            claim_failed_runs: runs.counts.claim_failed,
            compatibility_blocked_runs: runs.counts.compatibility_blocked,
            oldest_compatibility_blocked_started_at: oldest,
            max_compatibility_blocked_age_ms: age_ms(counted.now, oldest),
        }
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct Starts {
    pub pending_runs: i64,
    pub pending_commands: i64,
    pub ready_tasks: i64,
    pub oldest_pending_start_at: Option<Stamp>,
    pub max_pending_ms: i64,
}

impl Starts {
    pub fn of(counted: &Counted) -> Self {
        let oldest = counted
            .run_table
            .oldest_accepted_at
            .or(counted.summaries.oldest_pending_started_at);
        Self {
            pending_runs: counted.summaries.pending_runs,
            pending_commands: counted.run_table.pending_commands,
            ready_tasks: counted
                .tasks
                .iter()
                .map(|group| group.extras.pending_start_tasks)
                .sum(),
            oldest_pending_start_at: oldest,
            max_pending_ms: age_ms(counted.now, oldest),
        }
    }
}

#[expect(clippy::struct_field_names, reason = "the engine's names")]
#[derive(Clone, Debug, Serialize)]
pub struct History {
    #[serde(flatten)]
    pub counts: HistoryCounts,
    pub events: i64,
    pub history_orphan_total: i64,
    pub event_threshold: i64,
    pub size_bytes_threshold: i64,
    pub fan_out_threshold: i64,
    pub event_warning_threshold: i64,
    pub size_bytes_warning_threshold: i64,
    pub fan_out_warning_threshold: i64,
}

impl History {
    pub fn of(counted: &Counted, rows: &Rows, config: &EngineConfig) -> Self {
        let (hard, warning) = budget::thresholds(config);
        Self {
            counts: counted.history.clone(),
            events: rows.events,
            history_orphan_total: rows.history_orphans,
            event_threshold: hard[0],
            size_bytes_threshold: hard[1],
            fan_out_threshold: hard[2],
            event_warning_threshold: warning[0],
            size_bytes_warning_threshold: warning[1],
            fan_out_warning_threshold: warning[2],
        }
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct Schedules {
    #[serde(flatten)]
    pub counts: ScheduleCounts,
    pub max_overdue_ms: i64,
}

impl Schedules {
    pub fn of(counted: &Counted) -> Self {
        let counts = counted.schedules.clone();
        Self {
            max_overdue_ms: age_ms(counted.now, counts.oldest_overdue_at).max(0),
            counts,
        }
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct Sticky {
    pub enabled: bool,
    pub ttl_seconds: i64,
    pub active_sticky_runs: i64,
    pub ready_sticky_tasks: i64,
    pub leased_sticky_tasks: i64,
    pub hit_expected_last_minute: i64,
    pub miss_last_minute: i64,
    pub forced_cold_replay_last_minute: i64,
    pub cold_replay_last_minute: i64,
    pub hit_rate_last_minute: f64,
    pub miss_rate_last_minute: f64,
    pub capacity_pressure_tasks: i64,
}

impl Sticky {
    pub fn of(counted: &Counted, config: &EngineConfig) -> Self {
        let ready = counted
            .tasks
            .iter()
            .map(|group| group.extras.ready_sticky_tasks)
            .sum();
        let hits = counted.recent_tasks.hit_expected_last_minute;
        let misses = counted.recent_tasks.forced_cold_replay_last_minute;
        #[expect(
            clippy::cast_precision_loss,
            reason = "counts of one minute, far below 2^52"
        )]
        let rate = |part: i64| part as f64 / (hits + misses).max(1) as f64;
        Self {
            enabled: config.flag("sticky_execution.enabled"),
            ttl_seconds: config.int("sticky_execution.ttl_seconds"),
            active_sticky_runs: counted.run_table.active_sticky_runs,
            ready_sticky_tasks: ready,
            leased_sticky_tasks: counted
                .tasks
                .iter()
                .map(|group| group.extras.leased_sticky_tasks)
                .sum(),
            hit_expected_last_minute: hits,
            miss_last_minute: misses,
            forced_cold_replay_last_minute: misses,
            cold_replay_last_minute: counted.recent_tasks.cold_replay_last_minute,
            hit_rate_last_minute: rate(hits),
            miss_rate_last_minute: rate(misses),
            capacity_pressure_tasks: ready,
        }
    }
}
