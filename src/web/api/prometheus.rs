//! `GET /metrics`: the fleet's numbers and our own, for Prometheus.
//!
//! All of the fleet's are gauges: rows go away with retention, so nothing in the tables only
//! grows. Labels hold fixed words, apart from queues and workflow types, of which the first few
//! by size are named and the rest summed.

use std::collections::BTreeMap;

use axum::{extract::State, http::header, response::IntoResponse};

use super::{
    exposition::{Exposition, Kind},
    metrics::age_ms,
};
use crate::{
    db,
    durable::{
        collect::{Coverage, Gathered},
        engine_config::EngineConfig,
        metrics::{
            OperatorMetrics,
            ground::Lacks,
            health::{Health, Status},
        },
        store::metrics::{FailingType, Sections, TaskCounts},
    },
    web::{
        error::AppError,
        state::{App, VERSION},
    },
};

/// The rest of a label's values.
pub(super) const OTHER: &str = "other";

pub async fn show(State(app): State<App>) -> Result<impl IntoResponse, AppError> {
    let mut text = String::new();
    let mut own = Exposition::default();
    if let Ok(collector) = app.collector() {
        // Before the first pass, and while the database is away, our own numbers still tell.
        collector.start();
        let standing = collector.standing();
        own.family(
            "plimsoll_collector_passes_total",
            Kind::Counter,
            "Passes over the fleet, by how they ended.",
        );
        own.sample(&[("result", "ok")], standing.passes() - standing.failed);
        own.sample(&[("result", "failed")], standing.failed);
        own.gauge(
            "plimsoll_collector_up",
            "Whether the last pass over the fleet went well.",
            i64::from(standing.failing.is_none() && standing.latest.is_some()),
        );
        let failed = standing.failing.as_ref();
        let failed = failed.and_then(|failing| failing.failed.section);
        let mut of_fleet = Exposition::of_namespace(collector.namespace());
        of_fleet.family(
            "durable_workflow_scrape_section_error",
            Kind::Gauge,
            "Whether the last pass failed in this part.",
        );
        for section in Sections::ALL {
            of_fleet.sample(&[("section", section)], i64::from(failed == Some(section)));
        }
        text.push_str(&of_fleet.into_text());
        if let Some(latest) = &standing.latest {
            text.push_str(&latest.rendered.prometheus);
            own.gauge(
                "plimsoll_collector_age_seconds",
                "Age of the numbers shown.",
                seconds(age_ms(app.clock.now(), latest.at)),
            );
            own.gauge(
                "plimsoll_collector_pass_duration_seconds",
                "How long the last good pass took.",
                latest.gathered.took.as_secs_f64(),
            );
            own.gauge(
                "plimsoll_collector_pass_statements",
                "Statements of the last good pass.",
                latest.gathered.statements,
            );
        }
    }
    if let Some(db) = &app.db {
        let pool = db.pool_use();
        own.family(
            "plimsoll_db_connections",
            Kind::Gauge,
            "Database connections, by what they do.",
        );
        own.sample(&[("state", "idle")], pool.idle);
        own.sample(&[("state", "used")], pool.used);
        own.gauge(
            "plimsoll_db_connections_max",
            "Database connections at most.",
            pool.most,
        );
    }
    own.family(
        "plimsoll_db_statements_total",
        Kind::Counter,
        "Statements sent to the database.",
    );
    own.sample(&[], db::statements_total());
    own.family("plimsoll_build_info", Kind::Gauge, "The version that runs.");
    own.sample(&[("version", VERSION)], 1_i64);
    app.telemetry.write(&mut own);
    text.push_str(&own.into_text());
    Ok((
        [(
            header::CONTENT_TYPE,
            "text/plain; version=0.0.4; charset=utf-8",
        )],
        text,
    ))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "ages far below 2^52 milliseconds"
)]
pub(super) fn seconds(ms: i64) -> f64 {
    ms.max(0) as f64 / 1e3
}

/// The fleet's families, written once per pass; of tables that are not there, none but the check
/// that says so.
pub fn fleet(gathered: &Gathered, health: &Health, lacks: &Lacks, config: &EngineConfig) -> String {
    let mut out = Exposition::of_namespace(gathered.counted.namespace.as_deref());
    if lacks.required().is_empty() {
        numbers(&mut out, gathered, lacks, config.failure_types());
    }
    checks(&mut out, health);
    out.into_text()
}

fn numbers(out: &mut Exposition, gathered: &Gathered, lacks: &Lacks, types: usize) {
    let metrics = &gathered.metrics;
    runs(out, gathered);
    tasks(out, gathered);
    activities(out, gathered);
    // Of one namespace the engine's repair knows nothing; a 0 would say there is nothing to do.
    if gathered.counted.namespace.is_none() {
        repair(out, metrics);
    }
    if !lacks.schedules() {
        schedules(out, metrics);
    }
    workers(out, gathered);
    projections(out, gathered);
    history(out, metrics);
    super::queue_series::write(out, gathered);
    failing_types(out, gathered, types);
    out.family(
        "durable_workflow_scrape_section_duration_seconds",
        Kind::Gauge,
        "How long each part of the last good pass took.",
    );
    for (section, took) in &gathered.sections {
        out.sample(&[("section", section)], took.as_secs_f64());
    }
}

fn checks(out: &mut Exposition, health: &Health) {
    out.family(
        "durable_workflow_health_status",
        Kind::Gauge,
        "Health checks: 0 ok, 1 warning, 2 error; those of projections are of the runs covered.",
    );
    for check in &health.checks {
        let value = match check.status {
            Status::Ok => 0_i64,
            Status::Warning => 1,
            Status::Error => 2,
        };
        out.sample(&[("check", check.name)], value);
    }
}

const STATUSES: [&str; 7] = [
    "pending",
    "running",
    "waiting",
    "completed",
    "failed",
    "cancelled",
    "terminated",
];

const CLOSED: [&str; 4] = ["completed", "failed", "cancelled", "terminated"];

fn runs(out: &mut Exposition, gathered: &Gathered) {
    let metrics = &gathered.metrics;
    out.family("durable_workflow_runs", Kind::Gauge, "Runs by status.");
    let of = |named: &dyn Fn(&str) -> bool| -> i64 {
        let groups = gathered.counted.statuses.iter();
        groups
            .filter(|group| named(group.status.as_deref().unwrap_or_default()))
            .map(|group| group.runs)
            .sum()
    };
    for status in STATUSES {
        out.sample(&[("status", status)], of(&|name| name == status));
    }
    out.sample(&[("status", OTHER)], of(&|name| !STATUSES.contains(&name)));
    let counts = &metrics.runs.counts;
    out.gauge(
        "durable_workflow_runs_repair_needed",
        "Open runs with nothing left that would wake them.",
        counts.repair_needed,
    );
    out.gauge(
        "durable_workflow_runs_claim_failed",
        "Runs whose task no worker could claim.",
        counts.claim_failed,
    );
    out.gauge(
        "durable_workflow_runs_compatibility_blocked",
        "Runs whose task no live worker may take.",
        counts.compatibility_blocked,
    );
    out.gauge(
        "durable_workflow_runs_waiting",
        "Open runs that wait for something.",
        counts.waiting,
    );
    out.gauge(
        "durable_workflow_runs_retry_storm",
        "Open runs with ten exceptions or more that changed within the hour.",
        gathered.counted.dashboard.retry_storm,
    );
    out.family(
        "durable_workflow_runs_closed_past_hour",
        Kind::Gauge,
        "Runs that closed within the hour, by status.",
    );
    for status in CLOSED {
        let groups = gathered.counted.closed.iter();
        let closed: i64 = groups
            .filter(|group| group.status.as_deref() == Some(status))
            .map(|group| group.past_hour)
            .sum();
        out.sample(&[("status", status)], closed);
    }
    out.family(
        "durable_workflow_run_oldest_age_seconds",
        Kind::Gauge,
        "Age of the oldest run of each kind; 0 where there is none.",
    );
    for (kind, ms) in [
        ("repair_needed", metrics.runs.max_repair_needed_age_ms),
        ("waiting", metrics.runs.max_wait_age_ms),
        (
            "compatibility_blocked",
            metrics.backlog.max_compatibility_blocked_age_ms,
        ),
        ("pending_start", metrics.starts.max_pending_ms),
        (
            "missing_summary",
            metrics.projections.run_summaries.max_missing_run_age_ms,
        ),
    ] {
        out.sample(&[("kind", kind)], seconds(ms));
    }
}

const TASK_TYPES: [&str; 3] = ["workflow", "activity", "timer"];

fn tasks(out: &mut Exposition, gathered: &Gathered) {
    let metrics = &gathered.metrics;
    let mut by_type: BTreeMap<&str, TaskCounts> = TASK_TYPES
        .iter()
        .map(|kind| (*kind, TaskCounts::default()))
        .collect();
    for group in &gathered.counted.tasks {
        let kind = TASK_TYPES
            .into_iter()
            .find(|kind| *kind == group.task_type)
            .unwrap_or(OTHER);
        by_type.entry(kind).or_default().add(&group.counts);
    }
    out.family(
        "durable_workflow_tasks",
        Kind::Gauge,
        "Open tasks by state and type.",
    );
    for (kind, counts) in &by_type {
        for (state, count) in [
            ("ready_due", counts.ready_due),
            ("delayed", counts.delayed),
            ("leased", counts.leased),
        ] {
            out.sample(&[("state", state), ("type", kind)], count);
        }
    }
    let counts = &metrics.tasks.counts;
    out.family(
        "durable_workflow_tasks_unhealthy",
        Kind::Gauge,
        "Open tasks in trouble; one with two kinds of it counts under both.",
    );
    for (reason, count) in [
        ("dispatch_failed", counts.dispatch_failed),
        ("claim_failed", counts.claim_failed),
        ("dispatch_overdue", counts.dispatch_overdue),
        ("lease_expired", counts.lease_expired),
    ] {
        out.sample(&[("reason", reason)], count);
    }
    out.family(
        "durable_workflow_task_oldest_age_seconds",
        Kind::Gauge,
        "Age of the oldest task of each kind; 0 where there is none.",
    );
    for (kind, ms) in [
        ("ready_due", metrics.tasks.max_ready_due_age_ms),
        ("dispatch_failed", metrics.tasks.max_dispatch_failed_age_ms),
        ("claim_failed", metrics.tasks.max_claim_failed_age_ms),
        (
            "dispatch_overdue",
            metrics.tasks.max_dispatch_overdue_age_ms,
        ),
        ("lease_expired", metrics.tasks.max_lease_expired_age_ms),
    ] {
        out.sample(&[("kind", kind)], seconds(ms));
    }
    out.gauge(
        "durable_workflow_task_max_attempts",
        "Attempts of the open task with most.",
        counts.max_attempt_count,
    );
    out.gauge(
        "durable_workflow_task_max_repairs",
        "Repairs of the open task with most.",
        counts.max_repair_count,
    );
    out.gauge(
        "durable_workflow_tasks_added_last_minute",
        "Tasks made in the last minute.",
        metrics.backlog.tasks_added_last_minute,
    );
    out.gauge(
        "durable_workflow_tasks_dispatched_last_minute",
        "Tasks dispatched in the last minute.",
        metrics.backlog.tasks_dispatched_last_minute,
    );
}

fn activities(out: &mut Exposition, gathered: &Gathered) {
    let activities = &gathered.metrics.activities;
    let counts = &activities.counts;
    let of_local = &gathered.counted.local_activities;
    out.family(
        "durable_workflow_activities",
        Kind::Gauge,
        "Open activities by state and by where they run.",
    );
    for (state, all, local) in [
        ("pending", counts.pending, counts.local_pending),
        ("running", counts.running, counts.local_running),
        ("retrying", counts.retrying, of_local.local_retrying),
        (
            "timeout_overdue",
            counts.timeout_overdue,
            of_local.local_timeout_overdue,
        ),
    ] {
        out.sample(&[("state", state), ("mode", "local")], local);
        out.sample(
            &[("state", state), ("mode", "queued")],
            (all - local).max(0),
        );
    }
    out.family(
        "durable_workflow_activity_oldest_age_seconds",
        Kind::Gauge,
        "Age of the oldest activity of each kind; 0 where there is none.",
    );
    for (kind, ms) in [
        ("retrying", activities.max_retrying_age_ms),
        ("timeout_overdue", activities.max_timeout_overdue_age_ms),
    ] {
        out.sample(&[("kind", kind)], seconds(ms));
    }
}

fn repair(out: &mut Exposition, metrics: &OperatorMetrics) {
    let repair = &metrics.repair;
    for (name, help, existing, missing) in [
        (
            "durable_workflow_repair_candidates",
            "What the engine's repair pass would look at.",
            repair.existing_task_candidates,
            repair.missing_task_candidates,
        ),
        (
            "durable_workflow_repair_selected",
            "What it would take in one pass.",
            repair.selected_existing_task_candidates,
            repair.selected_missing_task_candidates,
        ),
    ] {
        out.family(name, Kind::Gauge, help);
        out.sample(&[("kind", "existing_task")], existing);
        out.sample(&[("kind", "missing_task")], missing);
    }
}

fn schedules(out: &mut Exposition, metrics: &OperatorMetrics) {
    let schedules = &metrics.schedules;
    out.family(
        "durable_workflow_schedules",
        Kind::Gauge,
        "Schedules by state; missed ones are active and past their time.",
    );
    out.sample(&[("state", "active")], schedules.counts.active);
    out.sample(&[("state", "paused")], schedules.counts.paused);
    out.sample(&[("state", "missed")], schedules.counts.missed);
    out.gauge(
        "durable_workflow_schedule_max_overdue_seconds",
        "How late the latest schedule is.",
        seconds(schedules.max_overdue_ms),
    );
}

fn workers(out: &mut Exposition, gathered: &Gathered) {
    let (workers, registered) = (&gathered.metrics.workers, &gathered.counted.registered);
    out.family(
        "durable_workflow_workers_registered",
        Kind::Gauge,
        "Workers registered with the engine's server, by whether they are still heard; 0 without one.",
    );
    out.sample(&[("state", "active")], registered.live);
    out.sample(&[("state", "stale")], registered.workers - registered.live);
    out.gauge(
        "durable_workflow_workers_active",
        "Workers with a live heartbeat.",
        workers.active_workers,
    );
    out.gauge(
        "durable_workflow_worker_scopes_active",
        "Live heartbeats: one per worker, connection and queue.",
        workers.active_worker_scopes,
    );
    out.gauge(
        "durable_workflow_workers_supporting_required",
        "Live workers that support the marker new runs get.",
        workers.active_workers_supporting_required,
    );
}

fn projections(out: &mut Exposition, gathered: &Gathered) {
    let tables = gathered.metrics.projections.needs_rebuild();
    out.family(
        "durable_workflow_projection_needs_rebuild",
        Kind::Gauge,
        "Stored projections that differ from history, among the runs covered.",
    );
    for (table, count) in tables {
        out.sample(&[("table", table)], count);
    }
    out.family(
        "durable_workflow_projection_last_computed_timestamp_seconds",
        Kind::Gauge,
        "When the first of those runs was read: none of them later. Absent until all were.",
    );
    for (table, _) in tables {
        let walked = coverage(gathered, table);
        if walked.complete {
            out.sample(&[("table", table)], walked.from.0.timestamp());
        }
    }
    out.family(
        "durable_workflow_projection_runs_covered",
        Kind::Gauge,
        "Runs those numbers are of, by table; durable_workflow_projection_runs is all there are.",
    );
    for (table, _) in tables {
        out.sample(&[("table", table)], coverage(gathered, table).runs);
    }
    out.family(
        "durable_workflow_projection_complete",
        Kind::Gauge,
        "Whether they are of every run; before, they grow as runs are read.",
    );
    for (table, _) in tables {
        let complete = coverage(gathered, table).complete;
        out.sample(&[("table", table)], i64::from(complete));
    }
    out.gauge(
        "durable_workflow_projection_runs",
        "Runs there are to cover.",
        gathered.counted.run_table.runs,
    );
}

/// Summaries are compared row by row, the others with each run's history.
fn coverage<'g>(gathered: &'g Gathered, table: &str) -> &'g Coverage {
    if table == "workflow_run_summaries" {
        &gathered.rows
    } else {
        &gathered.histories
    }
}

fn history(out: &mut Exposition, metrics: &OperatorMetrics) {
    let history = &metrics.history;
    out.family(
        "durable_workflow_history_runs",
        Kind::Gauge,
        "Runs whose history nears or passes its budget.",
    );
    out.sample(
        &[("pressure", "approaching")],
        history.counts.approaching_budget_runs,
    );
    out.sample(
        &[("pressure", "continue_as_new_recommended")],
        history.counts.continue_as_new_recommended_runs,
    );
    out.family(
        "durable_workflow_history_max",
        Kind::Gauge,
        "The largest history of all runs, by dimension.",
    );
    out.sample(&[("dimension", "events")], history.counts.max_event_count);
    out.sample(&[("dimension", "bytes")], history.counts.max_size_bytes);
    out.sample(&[("dimension", "fan_out")], history.counts.max_fan_out);
    out.gauge(
        "durable_workflow_history_orphan_events",
        "History events whose run is gone; until summaries are complete, of the runs covered.",
        history.history_orphan_total,
    );
    out.family(
        "durable_workflow_structural_limit",
        Kind::Gauge,
        "The structural limits in force; 0 is off.",
    );
    for (kind, limit) in metrics.structural_limits.kinds() {
        out.sample(&[("kind", kind)], limit);
    }
}

fn failing_types(out: &mut Exposition, gathered: &Gathered, most: usize) {
    let types = &gathered.counted.failing_types;
    out.family(
        "durable_workflow_workflow_task_consecutive_failures_max",
        Kind::Gauge,
        "Most failures in a row of a workflow task, by workflow type; the worst types by name.",
    );
    for (name, failures) in worst(types, most) {
        out.sample(&[("workflow_type", name)], failures);
    }
    out.gauge(
        "durable_workflow_workflow_task_consecutive_failures_suppressed_types",
        "Workflow types with failures that are not named above but under \"other\".",
        types.len().saturating_sub(most),
    );
}

/// The worst by name, then the most of the rest. They come worst first; a type may itself be
/// called so, and then stands for the rest as well.
fn worst(types: &[FailingType], most: usize) -> Vec<(&str, i64)> {
    let (named, rest) = types.split_at(most.min(types.len()));
    let mut worst: Vec<(&str, i64)> = named
        .iter()
        .map(|of_type| {
            let name = of_type.workflow_type.as_deref().unwrap_or_default();
            (name, of_type.max_consecutive_failures)
        })
        .collect();
    if let Some(first) = rest.first()
        && !worst.iter().any(|(name, _)| *name == OTHER)
    {
        worst.push((OTHER, first.max_consecutive_failures));
    }
    worst
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_beyond_the_worst_are_one() {
        let of_type = |name: &str, failures| FailingType {
            workflow_type: Some(name.to_owned()),
            max_consecutive_failures: failures,
            failed_tasks: 1,
        };
        let types = [of_type("a", 9), of_type("b", 7), of_type("c", 2)];
        assert_eq!(worst(&types, 3), [("a", 9), ("b", 7), ("c", 2)]);
        assert_eq!(worst(&types, 1), [("a", 9), ("other", 7)]);
        let named_so = [of_type("other", 9), of_type("b", 7)];
        assert_eq!(worst(&named_so, 1), [("other", 9)]);
        assert_eq!(worst(&[], 1), []);
    }
}
