//! `workflow_run_summaries`: the engine's projection of one run, and the table lists read.

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::{ClosedReason, LivenessState, RepairBlockedReason, RunStatus, StatusBucket, WaitKind};
use crate::db::{DbError, Json, Row};

#[derive(Clone, Debug, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "a row of the engine: its flags are independent columns"
)]
pub struct RunSummary {
    pub id: String,
    pub workflow_instance_id: String,
    pub run_number: i64,
    pub is_current_run: bool,
    pub engine_source: Option<String>,
    pub class: String,
    pub workflow_type: String,
    pub namespace: Option<String>,
    pub compatibility: Option<String>,
    pub declared_entry_mode: Option<String>,
    pub declared_contract_source: Option<String>,
    pub business_key: Option<String>,
    /// As stored; anything but an object is an empty map.
    pub visibility_labels: Value,
    pub status: RunStatus,
    pub status_bucket: StatusBucket,
    pub closed_reason: Option<ClosedReason>,
    pub connection: Option<String>,
    pub queue: Option<String>,
    pub started_at: Option<DateTime<Utc>>,
    pub sort_timestamp: Option<DateTime<Utc>>,
    pub sort_key: Option<String>,
    pub closed_at: Option<DateTime<Utc>>,
    pub archived_at: Option<DateTime<Utc>>,
    pub archive_reason: Option<String>,
    pub duration_ms: Option<i64>,
    pub wait_kind: Option<WaitKind>,
    pub wait_reason: Option<String>,
    pub wait_deadline_at: Option<DateTime<Utc>>,
    pub liveness_state: Option<LivenessState>,
    pub repair_blocked_reason: Option<RepairBlockedReason>,
    pub repair_attention: bool,
    pub task_problem: bool,
    pub exception_count: i64,
    pub history_event_count: i64,
    pub history_size_bytes: i64,
    pub history_fan_out: i64,
    pub continue_as_new_recommended: bool,
    pub history_budget_pressure: Option<String>,
    pub created_at: Option<DateTime<Utc>>,
    pub updated_at: Option<DateTime<Utc>>,
}

impl RunSummary {
    /// The columns [`RunSummary::read`] expects, in its order.
    pub const COLUMNS: &'static str = "id, workflow_instance_id, run_number, is_current_run, \
        engine_source, class, workflow_type, namespace, compatibility, declared_entry_mode, \
        declared_contract_source, business_key, visibility_labels, status, status_bucket, \
        closed_reason, connection, queue, started_at, sort_timestamp, sort_key, closed_at, \
        archived_at, archive_reason, duration_ms, wait_kind, wait_reason, wait_deadline_at, \
        liveness_state, repair_blocked_reason, repair_attention, task_problem, exception_count, \
        history_event_count, history_size_bytes, history_fan_out, continue_as_new_recommended, \
        history_budget_pressure, created_at, updated_at";

    pub fn read(row: &mut Row) -> Result<Self, DbError> {
        Ok(Self {
            id: row.text("id")?,
            workflow_instance_id: row.text("workflow_instance_id")?,
            run_number: row.int("run_number")?,
            is_current_run: row.opt_bool("is_current_run")?.unwrap_or(false),
            engine_source: row.opt_text("engine_source")?,
            class: row.text("class")?,
            workflow_type: row.text("workflow_type")?,
            namespace: row.opt_text("namespace")?,
            compatibility: row.opt_text("compatibility")?,
            declared_entry_mode: row.opt_text("declared_entry_mode")?,
            declared_contract_source: row.opt_text("declared_contract_source")?,
            business_key: row.opt_text("business_key")?,
            visibility_labels: match row.opt_json("visibility_labels")? {
                Some(Json::Value(Value::Object(labels))) => Value::Object(labels),
                _ => Value::Array(Vec::new()),
            },
            status: row.text("status")?.into(),
            status_bucket: row.text("status_bucket")?.into(),
            closed_reason: row.opt_text("closed_reason")?.map(Into::into),
            connection: row.opt_text("connection")?,
            queue: row.opt_text("queue")?,
            started_at: row.opt_time("started_at")?,
            sort_timestamp: row.opt_utc("sort_timestamp")?,
            sort_key: row.opt_text("sort_key")?,
            closed_at: row.opt_time("closed_at")?,
            archived_at: row.opt_time("archived_at")?,
            archive_reason: row.opt_text("archive_reason")?,
            duration_ms: row.opt_int("duration_ms")?,
            wait_kind: row.opt_text("wait_kind")?.map(Into::into),
            wait_reason: row.opt_text("wait_reason")?,
            wait_deadline_at: row.opt_time("wait_deadline_at")?,
            liveness_state: row.opt_text("liveness_state")?.map(Into::into),
            repair_blocked_reason: row.opt_text("repair_blocked_reason")?.map(Into::into),
            repair_attention: row.opt_bool("repair_attention")?.unwrap_or(false),
            task_problem: row.opt_bool("task_problem")?.unwrap_or(false),
            exception_count: row.opt_int("exception_count")?.unwrap_or(0),
            history_event_count: row.opt_int("history_event_count")?.unwrap_or(0),
            history_size_bytes: row.opt_int("history_size_bytes")?.unwrap_or(0),
            history_fan_out: row.opt_int("history_fan_out")?.unwrap_or(0),
            continue_as_new_recommended: row
                .opt_bool("continue_as_new_recommended")?
                .unwrap_or(false),
            history_budget_pressure: row.opt_text("history_budget_pressure")?,
            created_at: row.opt_time("created_at")?,
            updated_at: row.opt_time("updated_at")?,
        })
    }
}

#[cfg(test)]
impl RunSummary {
    /// An open, current, healthy run, for tests to vary.
    pub fn example() -> Self {
        let started: DateTime<Utc> = "2026-11-15T11:50:00Z".parse().expect("a valid time");
        Self {
            id: "01m7gs4khysxa25xp00b9ev2hv".into(),
            workflow_instance_id: "ord-48213".into(),
            run_number: 1,
            is_current_run: true,
            engine_source: Some("v2".into()),
            class: "App\\OrderFulfil".into(),
            workflow_type: "order.fulfil".into(),
            namespace: Some("production".into()),
            compatibility: None,
            declared_entry_mode: Some("canonical".into()),
            declared_contract_source: Some("durable_history".into()),
            business_key: None,
            visibility_labels: Value::Array(Vec::new()),
            status: RunStatus::Waiting,
            status_bucket: StatusBucket::Running,
            closed_reason: None,
            connection: None,
            queue: Some("orders".into()),
            started_at: Some(started),
            sort_timestamp: Some(started),
            sort_key: None,
            closed_at: None,
            archived_at: None,
            archive_reason: None,
            duration_ms: None,
            wait_kind: None,
            wait_reason: None,
            wait_deadline_at: None,
            liveness_state: Some(LivenessState::WorkflowTaskReady),
            repair_blocked_reason: Some(RepairBlockedReason::RepairNotNeeded),
            repair_attention: false,
            task_problem: false,
            exception_count: 0,
            history_event_count: 2,
            history_size_bytes: 512,
            history_fan_out: 0,
            continue_as_new_recommended: false,
            history_budget_pressure: Some("ok".into()),
            created_at: Some(started),
            updated_at: Some(started),
        }
    }
}
