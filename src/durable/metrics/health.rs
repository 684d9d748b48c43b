//! Twelve questions about the fleet, each answered ok, warning or error.

use std::{borrow::Cow, collections::BTreeSet};

use serde::Serialize;
use serde_json::{Value, json};

use super::{
    OperatorMetrics,
    backend::Severity,
    ground::Lacks,
    policy::{Limits, dispatch_mode},
};
use crate::durable::{engine_config::EngineConfig, stored::Stamp};

/// The summary projection this engine writes.
const PROJECTION_SCHEMA: i64 = 2;

#[derive(Clone, Debug, Serialize)]
pub struct Health {
    pub generated_at: Stamp,
    pub status: Status,
    /// Warnings are healthy: only an error is not.
    pub healthy: bool,
    pub checks: Vec<Check>,
    pub categories: Categories,
    pub structural_limits: Limits,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Ok,
    Warning,
    Error,
}

impl Status {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Category {
    /// Work may be lost or late.
    Correctness,
    /// Work is only slower than it could be.
    Acceleration,
}

#[derive(Clone, Debug, Serialize)]
pub struct Check {
    pub name: &'static str,
    pub status: Status,
    pub category: Category,
    pub message: Cow<'static, str>,
    pub data: Value,
}

#[derive(Clone, Debug, Serialize)]
pub struct Categories {
    pub correctness: CategoryStatus,
    pub acceleration: CategoryStatus,
}

#[derive(Clone, Debug, Serialize)]
pub struct CategoryStatus {
    pub status: Status,
    pub check_count: usize,
}

/// Passes fail: what is known gets older.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stalled {
    pub since: Stamp,
    pub because: String,
}

/// How many runs the checks that rest on a walk speak of, where those are not all.
#[derive(Clone, Copy, Debug, Default)]
pub struct LookedAt {
    pub rows: Option<i64>,
    pub histories: Option<i64>,
}

impl Health {
    pub fn of(metrics: &OperatorMetrics, config: &EngineConfig, looked_at: LookedAt) -> Self {
        let runs = metrics.projections.run_summaries.runs;
        let so_far = |looked_at: Option<i64>, mut check: Check| {
            if let Some(n) = looked_at {
                let said = format!(
                    "{} Of {runs} runs {n} were looked at so far.",
                    check.message
                );
                check.message = said.into();
            }
            check
        };
        let checks = vec![
            backend(metrics),
            so_far(looked_at.rows, summaries(metrics)),
            so_far(looked_at.histories, projections(metrics)),
            so_far(looked_at.rows, retention(metrics)),
            so_far(looked_at.histories, contracts(metrics)),
            transport(metrics),
            activities(metrics),
            routing(metrics),
            resume_paths(metrics),
            compatibility(metrics, config),
            scheduler(metrics),
            wake(config),
        ];
        Self::summed(
            metrics.generated_at,
            checks,
            metrics.structural_limits.clone(),
        )
    }

    fn summed(generated_at: Stamp, checks: Vec<Check>, structural_limits: Limits) -> Self {
        let of = |category: Category| {
            let own = checks.iter().filter(|check| check.category == category);
            CategoryStatus {
                status: own
                    .clone()
                    .map(|check| check.status)
                    .max()
                    .unwrap_or(Status::Ok),
                check_count: own.count(),
            }
        };
        let status = checks
            .iter()
            .map(|check| check.status)
            .max()
            .unwrap_or(Status::Ok);
        Self {
            generated_at,
            status,
            healthy: status != Status::Error,
            categories: Categories {
                correctness: of(Category::Correctness),
                acceleration: of(Category::Acceleration),
            },
            checks,
            structural_limits,
        }
    }

    /// Where no pass went well yet.
    pub fn unknown(now: Stamp, stalled: &Stalled, config: &EngineConfig) -> Self {
        let check = Check {
            name: "operator_snapshot",
            status: Status::Warning,
            category: Category::Correctness,
            message: format!("There are no numbers yet. {}", stalled.because).into(),
            data: json!({
                "reason": "operator_metrics_unavailable",
                "failing_since": stalled.since,
            }),
        };
        Self::summed(now, vec![check], Limits::of(config))
    }

    /// What may be said of it now: what the pass found holds as far as the tables it looked in
    /// were there, and no longer than passes go well.
    #[must_use]
    pub fn standing(
        &self,
        lacks: &Lacks,
        stalled: Option<&Stalled>,
        unread: &BTreeSet<String>,
    ) -> Self {
        let checks = if let Some(check) = lacks.engine_source() {
            vec![check]
        } else {
            let proven =
                |check: &&Check| check.status != Status::Ok || !lacks.leaves_open(check.name);
            let checks = self.checks.iter().filter(proven).cloned();
            checks
                .chain(self.snapshot(lacks, stalled, unread))
                .collect()
        };
        Self::summed(self.generated_at, checks, self.structural_limits.clone())
    }

    /// The engine's word for numbers that could not be had.
    fn snapshot(
        &self,
        lacks: &Lacks,
        stalled: Option<&Stalled>,
        unread: &BTreeSet<String>,
    ) -> Option<Check> {
        let (open, missing) = lacks.open();
        let mut said = Vec::new();
        if let Some(stalled) = stalled {
            said.push(format!(
                "These are the last numbers there were. {}",
                stalled.because
            ));
        }
        if !open.is_empty() {
            said.push(format!(
                "Not known: {}. The database lacks {}. Let the engine's migrations finish, then \
                 restart Plimsoll.",
                open.join(", ").replace('_', " "),
                missing.join(", ")
            ));
        }
        said.extend(not_counted(unread));
        let whole = stalled.is_none() && open.is_empty();
        (!said.is_empty()).then(|| Check {
            name: "operator_snapshot",
            status: Status::Warning,
            category: Category::Correctness,
            message: said.join(" ").into(),
            data: json!({
                "reason": if whole { "values_not_read" } else { "operator_metrics_unavailable" },
                "not_read": unread,
                "measured_at": self.generated_at,
                "failing_since": stalled.map(|stalled| stalled.since),
                "not_answered": open,
                "missing": missing,
            }),
        })
    }

    /// The engine's document: the checks with the metrics inside.
    pub fn document(&self, metrics: &OperatorMetrics) -> Value {
        let mut document = json!(self);
        document["operator_metrics"] = json!(metrics);
        document
    }
}

/// What to say of values no number could be made of.
pub fn not_counted(unread: &BTreeSet<String>) -> Option<String> {
    let columns: Vec<&str> = unread.iter().map(String::as_str).collect();
    (!columns.is_empty()).then(|| {
        format!(
            "A value in {} is not what the engine writes there; what rests on it is not counted.",
            columns.join(", ")
        )
    })
}

/// A check that warns when its condition holds.
fn warns(
    name: &'static str,
    when: bool,
    fine: &'static str,
    not: impl Into<Cow<'static, str>>,
    data: Value,
) -> Check {
    Check {
        name,
        status: if when { Status::Warning } else { Status::Ok },
        category: Category::Correctness,
        message: if when { not.into() } else { fine.into() },
        data,
    }
}

fn backend(metrics: &OperatorMetrics) -> Check {
    let backend = &metrics.backend;
    let (status, message) = match backend.severity {
        Severity::Error => (Status::Error, "A backend cannot do what the engine needs."),
        Severity::Warning => (Status::Warning, "A backend is weaker than it should be."),
        Severity::Info | Severity::Ok => (Status::Ok, "The backends can do what the engine needs."),
    };
    Check {
        name: "backend_capabilities",
        status,
        category: Category::Correctness,
        message: message.into(),
        data: json!({
            "severity": backend.severity,
            "issue_count": backend.issues.len(),
            "issues": backend.issues,
        }),
    }
}

fn summaries(metrics: &OperatorMetrics) -> Check {
    let summaries = &metrics.projections.run_summaries;
    warns(
        "run_summary_projection",
        summaries.needs_rebuild > 0,
        "Every run has a summary that says what the run says.",
        match summaries.needs_rebuild {
            1 => "1 run is missing from the lists, or listed with old facts.".into(),
            n => format!("{n} runs are missing from the lists, or listed with old facts."),
        },
        json!({
            "needs_rebuild": summaries.needs_rebuild,
            "missing": summaries.missing,
            "orphaned": summaries.orphaned,
            "stale": summaries.stale,
            "schema_outdated": summaries.schema_outdated,
            "projection_schema_version": PROJECTION_SCHEMA,
        }),
    )
}

fn projections(metrics: &OperatorMetrics) -> Check {
    let all = &metrics.projections;
    let (waits, timeline) = (&all.run_waits, &all.run_timeline_entries);
    let (timers, lineage) = (&all.run_timer_entries, &all.run_lineage_entries);
    let needs_rebuild =
        waits.needs_rebuild + timeline.needs_rebuild + timers.needs_rebuild + lineage.needs_rebuild;
    warns(
        "selected_run_projections",
        needs_rebuild > 0,
        "Stored waits, timelines, timers and lineage say what history says.",
        match needs_rebuild {
            1 => "1 stored projection of waits, timeline, timers or lineage differs from history."
                .into(),
            n => format!(
                "{n} stored projections of waits, timelines, timers or lineage differ from history."
            ),
        },
        json!({
            "needs_rebuild": needs_rebuild,
            "run_waits_needs_rebuild": waits.needs_rebuild,
            "run_waits_missing_runs_with_waits": waits.missing_runs_with_waits,
            "run_waits_missing_current_open_waits": waits.missing_current_open_waits,
            "run_waits_stale_projected_runs": waits.stale_projected_runs,
            "run_waits_orphaned": waits.rows.orphaned,
            "timeline_needs_rebuild": timeline.needs_rebuild,
            "timeline_missing_runs_with_history": timeline.missing_runs_with_history,
            "timeline_missing_history_events": timeline.missing_history_events,
            "timeline_stale_projected_runs": timeline.stale_projected_runs,
            "timeline_orphaned": timeline.rows.orphaned,
            "timer_needs_rebuild": timers.needs_rebuild,
            "timer_missing_runs_with_timers": timers.missing_runs_with_timers,
            "timer_stale_projected_runs": timers.stale_projected_runs,
            "timer_schema_version_mismatch_runs": timers.schema_version_mismatch_runs,
            "timer_schema_version_mismatch_rows": timers.schema_version_mismatch_rows,
            "timer_orphaned": timers.rows.orphaned,
            "lineage_needs_rebuild": lineage.needs_rebuild,
            "lineage_missing_runs_with_lineage": lineage.missing_runs_with_lineage,
            "lineage_stale_projected_runs": lineage.stale_projected_runs,
            "lineage_orphaned": lineage.rows.orphaned,
        }),
    )
}

fn retention(metrics: &OperatorMetrics) -> Check {
    let history = &metrics.history;
    warns(
        "history_retention_invariant",
        history.history_orphan_total > 0,
        "Every history event belongs to a run that is still there.",
        "Some history events belong to runs that are gone.",
        json!({
            "history_orphan_total": history.history_orphan_total,
            "events": history.events,
        }),
    )
}

fn contracts(metrics: &OperatorMetrics) -> Check {
    let contracts = &metrics.command_contracts;
    warns(
        "command_contract_snapshots",
        contracts.actionable_backfill_needed_runs > 0,
        "Every open run recorded which commands it takes.",
        "Some open runs did not record which commands they take.",
        json!(contracts),
    )
}

fn transport(metrics: &OperatorMetrics) -> Check {
    let (tasks, backlog) = (&metrics.tasks, &metrics.backlog);
    let counts = &tasks.counts;
    warns(
        "task_transport",
        tasks.unhealthy > 0,
        "Every open task can be picked up or is being worked on.",
        "Some tasks were not dispatched, not claimed, or lost their worker.",
        json!({
            "unhealthy_tasks": tasks.unhealthy,
            "lease_expired_tasks": counts.lease_expired,
            "oldest_lease_expired_at": counts.oldest_lease_expired_at,
            "max_lease_expired_age_ms": tasks.max_lease_expired_age_ms,
            "ready_due_tasks": counts.ready_due,
            "oldest_ready_due_at": counts.oldest_ready_due_at,
            "max_ready_due_age_ms": tasks.max_ready_due_age_ms,
            "dispatch_overdue_tasks": counts.dispatch_overdue,
            "oldest_dispatch_overdue_since": counts.oldest_dispatch_overdue_since,
            "max_dispatch_overdue_age_ms": tasks.max_dispatch_overdue_age_ms,
            "claim_failed_tasks": counts.claim_failed,
            "oldest_claim_failed_at": counts.oldest_claim_failed_at,
            "max_claim_failed_age_ms": tasks.max_claim_failed_age_ms,
            "dispatch_failed_tasks": counts.dispatch_failed,
            "oldest_dispatch_failed_at": counts.oldest_dispatch_failed_at,
            "max_dispatch_failed_age_ms": tasks.max_dispatch_failed_age_ms,
            "max_attempt_count": counts.max_attempt_count,
            "max_repair_count": counts.max_repair_count,
            "repair_needed_runs": backlog.repair_needed_runs,
            "claim_failed_runs": backlog.claim_failed_runs,
            "compatibility_blocked_runs": backlog.compatibility_blocked_runs,
            "oldest_compatibility_blocked_started_at": backlog.oldest_compatibility_blocked_started_at,
            "max_compatibility_blocked_age_ms": backlog.max_compatibility_blocked_age_ms,
        }),
    )
}

fn activities(metrics: &OperatorMetrics) -> Check {
    let activities = &metrics.activities;
    let counts = &activities.counts;
    warns(
        "activity_path",
        counts.timeout_overdue > 0,
        "No activity is past its deadline.",
        "Some activities are past a deadline that nobody enforced.",
        json!({
            "timeout_overdue": counts.timeout_overdue,
            "oldest_timeout_overdue_at": counts.oldest_timeout_overdue_at,
            "max_timeout_overdue_age_ms": activities.max_timeout_overdue_age_ms,
            "retrying": counts.retrying,
            "oldest_retrying_started_at": counts.oldest_retrying_started_at,
            "max_retrying_age_ms": activities.max_retrying_age_ms,
            "failed_attempts": counts.failed_attempts,
            "max_attempt_count": counts.max_attempt_count,
        }),
    )
}

fn routing(metrics: &OperatorMetrics) -> Check {
    let (tasks, backlog) = (&metrics.tasks, &metrics.backlog);
    let (workers, matching) = (&metrics.workers, &metrics.matching_role);
    let supports =
        workers.required_compatibility.is_none() || workers.active_workers_supporting_required > 0;
    warns(
        "routing_health",
        backlog.compatibility_blocked_runs > 0
            || tasks.counts.dispatch_overdue > 0
            || tasks.counts.claim_failed > 0,
        "Ready tasks reach workers that may take them.",
        "Some ready tasks do not reach a worker that may take them.",
        json!({
            "compatibility_blocked_runs": backlog.compatibility_blocked_runs,
            "oldest_compatibility_blocked_started_at": backlog.oldest_compatibility_blocked_started_at,
            "max_compatibility_blocked_age_ms": backlog.max_compatibility_blocked_age_ms,
            "dispatch_overdue_tasks": tasks.counts.dispatch_overdue,
            "oldest_dispatch_overdue_since": tasks.counts.oldest_dispatch_overdue_since,
            "max_dispatch_overdue_age_ms": tasks.max_dispatch_overdue_age_ms,
            "claim_failed_tasks": tasks.counts.claim_failed,
            "oldest_claim_failed_at": tasks.counts.oldest_claim_failed_at,
            "max_claim_failed_age_ms": tasks.max_claim_failed_age_ms,
            "queue_wake_enabled": matching.queue_wake_enabled,
            "matching_shape": matching.shape,
            "wake_owner": matching.wake_owner,
            "task_dispatch_mode": matching.task_dispatch_mode,
            "active_worker_scopes": workers.active_worker_scopes,
            "required_compatibility": workers.required_compatibility,
            "active_workers": workers.active_workers,
            "active_workers_supporting_required": workers.active_workers_supporting_required,
            "fleet_supports_required": supports,
        }),
    )
}

fn resume_paths(metrics: &OperatorMetrics) -> Check {
    let (runs, repair) = (&metrics.runs, &metrics.repair);
    warns(
        "durable_resume_paths",
        metrics.backlog.repair_needed_runs > 0,
        "Every open run has something that will wake it.",
        "Some open runs have nothing left that would wake them.",
        json!({
            "repair_needed_runs": runs.counts.repair_needed,
            "oldest_repair_needed_at": runs.counts.oldest_repair_needed_at,
            "max_repair_needed_age_ms": runs.max_repair_needed_age_ms,
            "missing_task_candidates": repair.missing_task_candidates,
            "selected_missing_task_candidates": repair.selected_missing_task_candidates,
            "oldest_missing_run_started_at": repair.oldest_missing_run_started_at,
            "max_missing_run_age_ms": repair.max_missing_run_age_ms,
            "waiting_runs": runs.counts.waiting,
            "oldest_wait_started_at": runs.counts.oldest_wait_started_at,
            "max_wait_age_ms": runs.max_wait_age_ms,
        }),
    )
}

fn compatibility(metrics: &OperatorMetrics, config: &EngineConfig) -> Check {
    let workers = &metrics.workers;
    let strict = config
        .text("fleet.validation_mode")
        .is_some_and(|mode| mode.trim().eq_ignore_ascii_case("fail"));
    let unsupported =
        workers.required_compatibility.is_some() && workers.active_workers_supporting_required == 0;
    let mut check = warns(
        "worker_compatibility",
        unsupported,
        "Live workers support the marker new runs get, or none is asked for.",
        "No live worker supports the marker new runs get.",
        json!({
            "required_compatibility": workers.required_compatibility,
            "active_workers": workers.active_workers,
            "active_worker_scopes": workers.active_worker_scopes,
            "active_workers_supporting_required": workers.active_workers_supporting_required,
            "validation_mode": if strict { "fail" } else { "warn" },
        }),
    );
    if unsupported && strict {
        check.status = Status::Error;
    }
    check
}

fn scheduler(metrics: &OperatorMetrics) -> Check {
    warns(
        "scheduler_role",
        metrics.schedules.counts.missed > 0,
        "Every active schedule fired when it was due.",
        "Some active schedules are past their time.",
        json!(metrics.schedules),
    )
}

/// What the engine calls capable of waking pollers on several machines.
const WAKING: [&str; 3] = ["redis", "database", "memcached"];

fn wake(config: &EngineConfig) -> Check {
    let multi_node = config.flag("long_poll.multi_node");
    let cache = config.host().cache.as_ref();
    // A store that names no driver is its own driver's name.
    let driver = cache.map(|cache| {
        cache
            .driver
            .as_deref()
            .unwrap_or(&cache.name)
            .to_lowercase()
    });
    let capable = driver.as_deref().map(|driver| WAKING.contains(&driver));
    // Unknown from here is no fault of the fleet's.
    let safe = !multi_node || capable != Some(false);
    let polled = dispatch_mode(config) == "poll";
    let reason = match (&driver, capable) {
        (None, _) => Some("The application's cache is not known here.".to_owned()),
        (Some(driver), Some(false)) => Some(format!(
            "A {driver} cache wakes pollers of its own machine only."
        )),
        _ => None,
    };
    Check {
        name: "long_poll_wake_acceleration",
        status: if safe { Status::Ok } else { Status::Warning },
        category: Category::Acceleration,
        message: match (safe, polled) {
            (true, _) => "Pollers are woken, or find work at their next look.",
            (false, _) => {
                "Pollers of other machines are not woken; they find work at their next look."
            }
        }
        .into(),
        data: json!({
            "multi_node": multi_node,
            "backend": driver,
            "capable": capable,
            "safe": safe,
            "reason": reason,
        }),
    }
}
