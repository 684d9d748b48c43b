//! Every task of a run: those there are, and those that should be.

mod missing;
mod words;

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;

use super::{
    activities::Activity,
    context::{Context, millis, ts},
    fleet,
    policies::{Policies, RetryPolicy},
    signals::Signal,
    timers::Timer,
    transport::{Health, Patience, transport_state},
    waits::Wait,
};
use crate::durable::{
    arrange::arrange,
    stored::{
        TaskRow, TaskStatus,
        loose::{self, Str},
        payloads::task::TaskPayload,
    },
};

/// What tasks are explained by.
#[derive(Clone, Copy, Debug)]
pub struct Steps<'a> {
    pub activities: &'a [Activity<'a>],
    pub timers: &'a [Timer],
    pub waits: &'a [Wait],
    pub signals: &'a [Signal],
}

/// One task; the same keys whether its row exists or not.
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent flags of the engine's own document"
)]
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Task {
    pub id: String,
    pub r#type: String,
    pub status: String,
    pub transport_state: String,
    pub task_missing: bool,
    pub synthetic: bool,
    pub expected_task_id: Option<String>,
    /// Ours to word.
    pub summary: String,
    pub compatibility: Option<String>,
    pub compatibility_supported: bool,
    pub compatibility_reason: Option<String>,
    pub compatibility_supported_in_fleet: bool,
    pub compatibility_fleet_reason: Option<String>,
    pub dispatch_failed: bool,
    pub dispatch_overdue: bool,
    pub claim_failed: bool,
    pub is_open: bool,
    #[serde(serialize_with = "ts")]
    pub available_at: Option<DateTime<Utc>>,
    #[serde(serialize_with = "ts")]
    pub last_dispatch_attempt_at: Option<DateTime<Utc>>,
    #[serde(serialize_with = "ts")]
    pub leased_at: Option<DateTime<Utc>>,
    #[serde(serialize_with = "ts")]
    pub last_dispatched_at: Option<DateTime<Utc>>,
    pub last_dispatch_error: Option<String>,
    #[serde(serialize_with = "ts")]
    pub last_claim_failed_at: Option<DateTime<Utc>>,
    pub last_claim_error: Option<String>,
    #[serde(serialize_with = "ts")]
    pub repair_available_at: Option<DateTime<Utc>>,
    pub repair_backoff_seconds: i64,
    pub lease_expired: bool,
    pub lease_owner: Option<String>,
    #[serde(serialize_with = "ts")]
    pub lease_expires_at: Option<DateTime<Utc>>,
    pub attempt_count: i64,
    pub repair_count: i64,
    pub last_error: Option<String>,
    pub connection: Option<String>,
    pub queue: Option<String>,
    pub activity_execution_id: Option<String>,
    pub activity_type: Option<String>,
    pub activity_class: Option<String>,
    pub retry_of_task_id: Option<String>,
    pub retry_after_attempt_id: Option<String>,
    pub retry_after_attempt: Option<i64>,
    pub retry_backoff_seconds: Option<i64>,
    pub retry_max_attempts: Option<i64>,
    pub retry_policy: Option<RetryPolicy>,
    pub timer_id: Option<String>,
    pub timer_sequence: Option<i64>,
    #[serde(serialize_with = "ts")]
    pub timer_fire_at: Option<DateTime<Utc>>,
    pub condition_wait_id: Option<String>,
    pub condition_key: Option<String>,
    pub condition_definition_fingerprint: Option<String>,
    pub signal_wait_id: Option<String>,
    pub signal_name: Option<String>,
    pub workflow_wait_kind: Option<String>,
    pub workflow_open_wait_id: Option<String>,
    pub workflow_resume_source_kind: Option<String>,
    pub workflow_resume_source_id: Option<String>,
    pub workflow_update_id: Option<String>,
    pub workflow_signal_id: Option<String>,
    pub workflow_command_id: Option<String>,
    pub workflow_sequence: Option<i64>,
    pub child_call_id: Option<String>,
    pub child_workflow_run_id: Option<String>,
    pub replay_blocked: bool,
    pub replay_blocked_reason: Option<String>,
    pub replay_blocked_workflow_sequence: Option<i64>,
    pub replay_blocked_condition_wait_id: Option<String>,
    pub replay_blocked_recorded_condition_key: Option<String>,
    pub replay_blocked_current_condition_key: Option<String>,
    pub replay_blocked_recorded_condition_definition_fingerprint: Option<String>,
    pub replay_blocked_current_condition_definition_fingerprint: Option<String>,
    pub replay_blocked_expected_history_shape: Option<String>,
    pub replay_blocked_recorded_event_types: Vec<String>,
    #[serde(serialize_with = "ts")]
    pub created_at: Option<DateTime<Utc>>,
    #[serde(serialize_with = "ts")]
    pub updated_at: Option<DateTime<Utc>>,
}

impl Task {
    /// Its place among others, as the engine compares them.
    pub fn turn(&self) -> ((i64, i64), &str) {
        (self.due(), &self.id)
    }

    /// In milliseconds, no time last.
    fn due(&self) -> (i64, i64) {
        let late = |at: Option<DateTime<Utc>>| at.map_or(i64::MAX, millis);
        (late(self.available_at), late(self.created_at))
    }

    /// Nobody alive may take it: its marker is supported nowhere, and it could be taken now.
    pub fn waits_for_compatible_worker(&self, now: DateTime<Utc>) -> bool {
        let marked = self
            .compatibility
            .as_deref()
            .is_some_and(|marker| !marker.is_empty());
        let takeable = self.lease_expired
            || (self.status == TaskStatus::Ready.as_str()
                && self.available_at.is_none_or(|at| at <= now));
        marked
            && !self.compatibility_supported
            && !self.compatibility_supported_in_fleet
            && takeable
    }
}

/// All tasks in the order an operator reads them: blocked, open, missing, done.
pub fn tasks(cx: Context<'_>, steps: Steps<'_>) -> Vec<Task> {
    let lookup = Lookup::of(steps);
    let patience = Patience::of(cx.config);
    let mut policies = Policies::default();
    let mut all: Vec<Task> = cx
        .snapshot
        .tasks
        .iter()
        .map(|row| real(cx, row, patience, &lookup, &mut policies))
        .collect();
    let missing = missing::missing(cx, steps, &lookup, &all);
    all.reserve_exact(missing.len());
    all.extend(missing);
    arrange(&mut all, |task| (rank(task), task.due()), |task| &task.id);
    all
}

fn rank(task: &Task) -> u8 {
    match task {
        task if task.replay_blocked => 0,
        task if task.is_open => 1,
        task if task.task_missing => 2,
        _ => 3,
    }
}

/// Steps by id: a run may have thousands.
struct Lookup<'a> {
    activities: HashMap<&'a str, &'a Activity<'a>>,
    timers: HashMap<&'a str, &'a Timer>,
}

impl<'a> Lookup<'a> {
    fn of(steps: Steps<'a>) -> Self {
        Self {
            activities: steps
                .activities
                .iter()
                .map(|activity| (activity.id.as_str(), activity))
                .collect(),
            timers: steps
                .timers
                .iter()
                .map(|timer| (timer.id.as_str(), timer))
                .collect(),
        }
    }
}

/// What a task's payload says it is for.
pub fn payload_of(row: &TaskRow) -> TaskPayload<'_> {
    loose::read(row.payload.0.as_deref())
}

fn real(
    cx: Context<'_>,
    row: &TaskRow,
    patience: Patience,
    lookup: &Lookup<'_>,
    policies: &mut Policies,
) -> Task {
    let payload = payload_of(row);
    let health = Health::of(row, cx.now, patience);
    let replay_blocked = *payload.replay_blocked == Some(true);
    let activity = payload
        .activity_execution_id
        .as_deref()
        .and_then(|id| lookup.activities.get(id));
    let timer = payload
        .timer_id
        .as_deref()
        .and_then(|id| lookup.timers.get(id));
    let of_child = payload.resume_source_kind.as_deref() == Some("child_workflow_run");
    let mut task = Task {
        id: row.id.clone(),
        r#type: row.task_type.as_str().to_owned(),
        status: row.status.as_str().to_owned(),
        transport_state: transport_state(row, replay_blocked, health).to_owned(),
        dispatch_failed: health.dispatch_failed,
        dispatch_overdue: health.dispatch_overdue,
        claim_failed: health.claim_failed,
        is_open: row.status.is_open(),
        available_at: row.available_at,
        last_dispatch_attempt_at: row.last_dispatch_attempt_at,
        leased_at: row.leased_at,
        last_dispatched_at: row.last_dispatched_at,
        last_dispatch_error: row.last_dispatch_error.clone(),
        last_claim_failed_at: row.last_claim_failed_at,
        last_claim_error: row.last_claim_error.clone(),
        repair_available_at: row.repair_available_at,
        repair_backoff_seconds: patience.backoff_seconds(row.repair_count),
        lease_expired: health.lease_expired,
        lease_owner: row.lease_owner.clone(),
        lease_expires_at: row.lease_expires_at,
        attempt_count: row.attempt_count,
        repair_count: row.repair_count,
        last_error: row.last_error.clone(),
        connection: row.connection.clone(),
        queue: row.queue.clone(),
        activity_execution_id: payload.activity_execution_id.owned(),
        activity_type: activity.and_then(|activity| activity.r#type.clone()),
        activity_class: activity.and_then(|activity| activity.class.clone()),
        retry_of_task_id: payload.retry_of_task_id.owned(),
        retry_after_attempt_id: payload.retry_after_attempt_id.owned(),
        retry_after_attempt: payload.retry_after_attempt.get(),
        retry_backoff_seconds: payload.retry_backoff_seconds.get(),
        retry_max_attempts: payload.max_attempts.get(),
        retry_policy: policies.get(payload.retry_policy),
        timer_id: payload.timer_id.owned(),
        timer_sequence: timer.and_then(|timer| timer.sequence),
        timer_fire_at: timer.and_then(|timer| timer.fire_at),
        condition_wait_id: payload.condition_wait_id.owned(),
        condition_key: payload.condition_key.owned(),
        condition_definition_fingerprint: payload.condition_definition_fingerprint.owned(),
        signal_wait_id: payload.signal_wait_id.owned(),
        signal_name: payload.signal_name.owned(),
        workflow_wait_kind: payload.workflow_wait_kind.owned(),
        workflow_open_wait_id: payload.open_wait_id.owned(),
        workflow_resume_source_kind: payload.resume_source_kind.owned(),
        workflow_resume_source_id: payload.resume_source_id.owned(),
        workflow_update_id: payload.workflow_update_id.owned(),
        workflow_signal_id: payload.workflow_signal_id.owned(),
        workflow_command_id: payload.workflow_command_id.owned(),
        workflow_sequence: payload.workflow_sequence.get(),
        child_call_id: payload.child_call_id.owned(),
        child_workflow_run_id: payload
            .child_workflow_run_id
            .owned()
            .or_else(|| payload.resume_source_id.owned().filter(|_| of_child)),
        replay_blocked,
        created_at: row.created_at,
        updated_at: row.updated_at,
        ..Task::default()
    };
    if replay_blocked {
        block_details(&mut task, &payload);
    }
    of_fleet(cx, &mut task, row.compatibility.as_deref());
    task.summary = words::summary(cx, &task);
    task
}

/// Why replay is blocked, as the payload tells it.
fn block_details(task: &mut Task, payload: &TaskPayload<'_>) {
    let text = Str::owned;
    *task = Task {
        replay_blocked_reason: text(&payload.replay_blocked_reason),
        replay_blocked_workflow_sequence: payload.replay_blocked_workflow_sequence.get(),
        replay_blocked_condition_wait_id: text(&payload.replay_blocked_condition_wait_id),
        replay_blocked_recorded_condition_key: text(&payload.replay_blocked_recorded_condition_key),
        replay_blocked_current_condition_key: text(&payload.replay_blocked_current_condition_key),
        replay_blocked_recorded_condition_definition_fingerprint: text(
            &payload.replay_blocked_recorded_condition_definition_fingerprint,
        ),
        replay_blocked_current_condition_definition_fingerprint: text(
            &payload.replay_blocked_current_condition_definition_fingerprint,
        ),
        replay_blocked_expected_history_shape: text(&payload.replay_blocked_expected_history_shape),
        replay_blocked_recorded_event_types: payload
            .replay_blocked_recorded_event_types
            .as_ref()
            .and_then(Value::as_array)
            .map(|types| {
                types
                    .iter()
                    .filter_map(Value::as_str)
                    .filter(|name| !name.is_empty())
                    .map(str::to_owned)
                    .collect()
            })
            .unwrap_or_default(),
        ..std::mem::take(task)
    };
}

/// Fills in who may take the task; what the task does not say the run does.
fn of_fleet(cx: Context<'_>, task: &mut Task, own_marker: Option<&str>) {
    let run = &cx.snapshot.run;
    let marker = own_marker
        .and_then(fleet::trimmed)
        .or_else(|| run.compatibility.as_deref().and_then(fleet::trimmed));
    let support = fleet::supports(
        cx,
        marker,
        task.connection.as_deref().or(run.connection.as_deref()),
        task.queue.as_deref().or(run.queue.as_deref()),
    );
    task.compatibility = marker.map(str::to_owned);
    task.compatibility_supported = support.in_process;
    task.compatibility_reason = support.process_reason;
    task.compatibility_supported_in_fleet = support.in_fleet;
    task.compatibility_fleet_reason = support.fleet_reason;
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::durable::{
        projection::example::{self, told},
        store::snapshot::RunSnapshot,
        stored::RunRow,
    };

    #[test]
    fn a_task_with_a_blank_marker_asks_for_its_runs() {
        for (own, want) in [
            (None, "build-7"),
            (Some(""), "build-7"),
            (Some(" "), "build-7"),
            (Some(" build-8 "), "build-8"),
        ] {
            let snapshot = RunSnapshot {
                run: RunRow {
                    compatibility: Some("build-7".into()),
                    ..RunRow::default()
                },
                tasks: vec![TaskRow {
                    compatibility: own.map(str::to_owned),
                    ..example::task("t", "ready", &json!({}))
                }],
                ..RunSnapshot::default()
            };
            let steps = Steps {
                activities: &[],
                timers: &[],
                waits: &[],
                signals: &[],
            };
            let all = told(&snapshot, |cx| tasks(cx, steps));
            assert_eq!(all[0].compatibility.as_deref(), Some(want), "{own:?}");
        }
    }

    #[test]
    fn tasks_of_one_millisecond_go_by_their_ids() {
        let task = |id: &str, micros: i64| Task {
            id: id.into(),
            available_at: DateTime::from_timestamp_micros(1_800_000_000_000_000 + micros),
            ..Task::default()
        };
        for (what, a, b, first) in [
            (
                "a later millisecond",
                task("a", 2_000),
                task("b", 1_000),
                "b",
            ),
            ("a later microsecond", task("a", 20), task("b", 10), "a"),
            (
                "no time",
                Task {
                    id: "a".into(),
                    ..Task::default()
                },
                task("b", 10),
                "b",
            ),
        ] {
            let got = if a.turn() < b.turn() { &a.id } else { &b.id };
            assert_eq!(got, first, "{what}");
        }
    }
}
