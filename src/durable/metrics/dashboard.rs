//! The dashboard summary: what happened in the last hour, day and week, and what needs a look.

use std::collections::HashMap;

use chrono::{DateTime, TimeDelta, Timelike as _, Utc};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::OperatorMetrics;
use crate::{
    db::Json,
    durable::{
        projection::{list_item, task_problem},
        store::metrics::{Counted, TypeGroup},
        stored::{RunSummary, Stamp, Summary as _},
    },
};

/// Everything of the summary but the metrics inside it.
#[derive(Clone, Debug, Serialize)]
pub struct Dashboard {
    pub flows: i64,
    pub flows_per_minute: f64,
    pub flows_past_hour: i64,
    pub exceptions_past_hour: i64,
    pub failed_flows_past_week: i64,
    pub max_wait_time_workflow: Option<Value>,
    pub max_duration_workflow: Option<Value>,
    pub max_exceptions_workflow: Option<Value>,
    pub fleet_overview: FleetOverview,
    pub workflow_type_health: Vec<TypeHealth>,
    pub needs_attention: NeedsAttention,
    pub fleet_trends_series: TrendsSeries,
}

#[derive(Clone, Debug, Serialize)]
pub struct FleetOverview {
    pub current: Current,
    pub trends: Trends,
}

#[derive(Clone, Debug, Serialize)]
pub struct Current {
    pub running: i64,
    /// The bucket: cancelled and terminated runs too.
    pub failed: i64,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Trends {
    pub hour: Closed,
    pub day: Closed,
    pub week: Closed,
}

/// Runs that closed within a window, by bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Closed {
    pub completed: i64,
    pub failed: i64,
}

#[derive(Clone, Debug, Serialize)]
pub struct TypeHealth {
    pub workflow_type: String,
    /// The type as well, as in the engine.
    pub workflow_class: String,
    pub total_runs: i64,
    pub pass_rate: f64,
    pub median_duration_ms: Option<i64>,
    pub error_count: i64,
    pub status_breakdown: StatusBreakdown,
}

#[derive(Clone, Debug, Serialize)]
pub struct StatusBreakdown {
    pub completed: i64,
    pub failed: i64,
    pub cancelled: i64,
    pub terminated: i64,
}

#[derive(Clone, Debug, Serialize)]
pub struct NeedsAttention {
    pub alerts: Vec<Alert>,
    pub total_alerts: usize,
    pub has_critical: bool,
}

#[derive(Clone, Debug, Serialize)]
pub struct Alert {
    #[serde(rename = "type")]
    pub kind: AlertKind,
    pub severity: &'static str,
    pub message: String,
    pub count: i64,
    pub action: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AlertKind {
    StuckWorkers,
    LongRunning,
    RetryStorm,
    HighFailureRate,
    LongWaits,
}

/// Hours of the last week, oldest first; each array has one entry per hour.
#[derive(Clone, Debug, Serialize)]
pub struct TrendsSeries {
    /// Milliseconds of each hour's start.
    pub timestamps: Vec<i64>,
    pub completed: Vec<i64>,
    pub failed: Vec<i64>,
}

impl Dashboard {
    pub fn of(counted: &Counted) -> Self {
        let counts = &counted.dashboard;
        let trends = Trends::of(counted);
        #[expect(clippy::cast_precision_loss, reason = "runs of one hour")]
        let per_minute = counts.flows_past_hour as f64 / 60.0;
        let shown = |run: &Option<RunSummary>| run.as_ref().map(whole_row);
        Self {
            flows: counted.runs.total,
            flows_per_minute: per_minute,
            flows_past_hour: counts.flows_past_hour,
            exceptions_past_hour: counted.failures.iter().map(|group| group.past_hour).sum(),
            failed_flows_past_week: counts.failed_flows_past_week,
            max_wait_time_workflow: shown(&counted.longest_wait),
            max_duration_workflow: shown(&counted.longest_duration),
            max_exceptions_workflow: shown(&counted.most_exceptions),
            fleet_overview: FleetOverview {
                current: Current {
                    running: counted.runs.running,
                    failed: counts.failed_bucket,
                },
                trends,
            },
            workflow_type_health: counted.types.iter().map(TypeHealth::of).collect(),
            needs_attention: NeedsAttention::of(counted),
            fleet_trends_series: TrendsSeries::of(counted),
        }
    }

    /// The engine's document: the summary with the metrics inside.
    pub fn document(&self, metrics: &OperatorMetrics) -> Value {
        let mut document = json!(self);
        document["operator_metrics"] = json!(metrics);
        document
    }
}

impl Trends {
    fn of(counted: &Counted) -> Self {
        let mut trends = Self::default();
        for group in &counted.closed {
            let add = |closed: &mut Closed, runs: i64| match group.status_bucket.as_deref() {
                Some("completed") => closed.completed += runs,
                Some("failed") => closed.failed += runs,
                _ => {}
            };
            add(&mut trends.hour, group.past_hour);
            add(&mut trends.day, group.past_day);
            add(&mut trends.week, group.past_week);
        }
        trends
    }
}

impl TypeHealth {
    fn of(group: &TypeGroup) -> Self {
        let name = group.workflow_type.clone().unwrap_or_default();
        let errors = group.failed + group.cancelled + group.terminated;
        let closed = group.completed + errors;
        #[expect(clippy::cast_precision_loss, reason = "runs of one type in one week")]
        let pass_rate = if closed > 0 {
            (group.completed as f64 / closed as f64 * 1_000.0).round() / 10.0
        } else {
            0.0
        };
        Self {
            workflow_class: name.clone(),
            workflow_type: name,
            total_runs: group.total_runs,
            pass_rate,
            median_duration_ms: group.median_duration_ms,
            error_count: errors,
            status_breakdown: StatusBreakdown {
                completed: group.completed,
                failed: group.failed,
                cancelled: group.cancelled,
                terminated: group.terminated,
            },
        }
    }
}

impl NeedsAttention {
    fn of(counted: &Counted) -> Self {
        let counts = &counted.dashboard;
        let past_hour = |status: &str| -> i64 {
            let groups = counted.closed.iter();
            groups
                .filter(|group| group.status.as_deref() == Some(status))
                .map(|group| group.past_hour)
                .sum()
        };
        let failed = past_hour("failed");
        let closed = failed + past_hour("completed");
        let many_failed = closed >= 10 && failed * 5 > closed;
        let rules = [
            (
                AlertKind::StuckWorkers,
                "warning",
                i64::try_from(counted.workers.stuck.len()).unwrap_or(i64::MAX),
                "said nothing for more than five minutes",
                "Look at the workers' own logs, or start them again.",
            ),
            (
                AlertKind::LongRunning,
                "info",
                counts.long_running,
                "open for more than an hour, waiting for nothing",
                "Look at what each of them does now.",
            ),
            (
                AlertKind::RetryStorm,
                "error",
                counts.retry_storm,
                "still open with ten exceptions or more",
                "Read the last exception and stop the cause before it repeats.",
            ),
            (
                AlertKind::HighFailureRate,
                "error",
                if many_failed { failed } else { 0 },
                "failed within the hour, more than a fifth of all that closed",
                "Compare the failures: one cause or many?",
            ),
            (
                AlertKind::LongWaits,
                "warning",
                counts.long_waits,
                "waiting for more than half an hour",
                "Check that what they wait for is on its way.",
            ),
        ];
        let alerts: Vec<Alert> = rules
            .into_iter()
            .filter(|(_, _, count, _, _)| *count > 0)
            .map(|(kind, severity, count, what, action)| {
                let noun = match (kind, count) {
                    (AlertKind::StuckWorkers, 1) => "worker",
                    (AlertKind::StuckWorkers, _) => "workers",
                    (_, 1) => "run",
                    _ => "runs",
                };
                Alert {
                    kind,
                    severity,
                    message: format!("{count} {noun} {what}"),
                    count,
                    action,
                }
            })
            .collect();
        Self {
            total_alerts: alerts.len(),
            has_critical: alerts.iter().any(|alert| alert.severity == "error"),
            alerts,
        }
    }
}

const HOUR: i64 = 3_600;

impl TrendsSeries {
    fn of(counted: &Counted) -> Self {
        // The hours of the application's own clock, which need not begin with those of UTC.
        let start = |at: DateTime<Utc>| {
            let local = counted.zone.local(at);
            at.timestamp() - i64::from(local.minute() * 60 + local.second())
        };
        let week_ago = counted
            .now
            .checked_sub_signed(TimeDelta::days(7))
            .unwrap_or(counted.now);
        let mut closed: HashMap<i64, Closed> = HashMap::new();
        for group in &counted.hours {
            let Some(Stamp(hour)) = group.hour else {
                continue;
            };
            let entry = closed.entry(start(hour)).or_default();
            match group.status_bucket.as_deref() {
                Some("completed") => entry.completed += group.runs,
                Some("failed") => entry.failed += group.runs,
                _ => {}
            }
        }
        let mut series = Self {
            timestamps: Vec::new(),
            completed: Vec::new(),
            failed: Vec::new(),
        };
        let mut hour = start(week_ago);
        while hour <= start(counted.now) {
            let entry = closed.remove(&hour).unwrap_or_default();
            series.timestamps.push(hour * 1_000);
            series.completed.push(entry.completed);
            series.failed.push(entry.failed);
            hour += HOUR;
        }
        series
    }
}

/// The whole summary row, with the names the engine adds to it.
fn whole_row(run: &RunSummary) -> Value {
    let time = |at: Option<DateTime<Utc>>| json!(at.map(Stamp));
    let s = run;
    let mut row = json!({
        "id": s.id,
        "workflow_instance_id": s.workflow_instance_id,
        "run_number": s.run_number,
        "is_current_run": s.is_current_run,
        "engine_source": s.engine_source,
        "projection_schema_version": s.projection_schema_version,
        "class": s.class,
        "workflow_type": s.workflow_type,
        "namespace": s.namespace,
        "compatibility": s.compatibility,
        "declared_entry_mode": s.declared_entry_mode,
        "declared_contract_source": s.declared_contract_source,
        "business_key": s.business_key,
        "visibility_labels": s.visibility_labels.as_ref().map(|labels| match labels {
            Json::Value(value) => value.clone(),
            Json::Malformed(_) => Value::Null,
        }),
        "status": s.status,
        "status_bucket": s.status_bucket,
        "closed_reason": s.closed_reason,
        "connection": s.connection,
        "queue": s.queue,
        "started_at": time(s.started_at),
        "sort_timestamp": time(s.sort_timestamp),
        "sort_key": s.sort_key,
        "closed_at": time(s.closed_at),
        "archived_at": time(s.archived_at),
        "archive_command_id": s.archive_command_id,
        "archive_reason": s.archive_reason,
        "duration_ms": s.duration_ms,
    });
    let more = json!({
        "wait_kind": s.wait_kind,
        "wait_reason": s.wait_reason,
        "wait_started_at": time(s.wait_started_at),
        "wait_deadline_at": time(s.wait_deadline_at),
        "open_wait_id": s.open_wait_id,
        "resume_source_kind": s.resume_source_kind,
        "resume_source_id": s.resume_source_id,
        "next_task_at": time(s.next_task_at),
        "liveness_state": s.liveness_state,
        "liveness_reason": s.liveness_reason,
        "repair_blocked_reason": s.repair_blocked_reason,
        "repair_attention": s.repair_attention,
        "task_problem": s.task_problem,
        "next_task_id": s.next_task_id,
        "next_task_type": s.next_task_type,
        "next_task_status": s.next_task_status,
        "next_task_lease_expires_at": time(s.next_task_lease_expires_at),
        "exception_count": s.exception_count,
        "history_event_count": s.history_event_count,
        "history_size_bytes": s.history_size_bytes,
        "history_fan_out": s.history_fan_out,
        "continue_as_new_recommended": s.continue_as_new_recommended,
        "history_budget_pressure": s.history_budget_pressure,
        "created_at": time(s.created_at),
        "updated_at": time(s.updated_at),
        "instance_id": s.workflow_instance_id,
        "selected_run_id": s.id,
        "run_id": s.id,
        "exceptions_count": s.exception_count,
        "is_terminal": s.status.is_terminal(),
        "repair_blocked": s.repair_blocked_reason.as_ref().and_then(list_item::repair_blocked),
        "task_problem_badge": task_problem::badge(s.standing()).map(list_item::task_problem_badge),
    });
    let more: Map<String, Value> = match more {
        Value::Object(map) => map,
        _ => Map::new(),
    };
    if let Value::Object(row) = &mut row {
        row.extend(more);
    }
    row
}
