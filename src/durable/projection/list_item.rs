//! The engine's run list item, key for key.

use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};

use super::{repair_gate, task_problem};
use crate::{
    db::Json,
    durable::stored::{RepairBlockedReason, RunRow, RunSummary, Summary as _},
};

/// One item. `search_attributes` are the run's typed values, keys sorted.
pub fn list_item(summary: &RunSummary, search_attributes: Map<String, Value>) -> Value {
    let s = summary;
    json!({
        "id": s.id,
        "workflow_instance_id": s.workflow_instance_id,
        "instance_id": s.workflow_instance_id,
        "selected_run_id": s.id,
        "run_id": s.id,
        "run_number": s.run_number,
        "is_current_run": s.is_current_run,
        "engine_source": s.engine_source.as_deref().unwrap_or("v2"),
        "class": s.class,
        "workflow_type": s.workflow_type,
        "namespace": s.namespace,
        "business_key": s.business_key,
        "compatibility": s.compatibility,
        "status": s.status,
        "status_bucket": s.status_bucket,
        "is_terminal": s.status.is_terminal(),
        "closed_reason": s.closed_reason,
        "started_at": iso(s.started_at),
        "closed_at": iso(s.closed_at),
        "created_at": iso(s.created_at),
        "updated_at": iso(s.updated_at),
        "sort_timestamp": iso(s.sort_timestamp),
        "sort_key": s.sort_key,
        "duration_ms": s.duration_ms,
        "archived_at": iso(s.archived_at),
        "archive_reason": s.archive_reason,
        "wait_kind": s.wait_kind,
        "wait_reason": s.wait_reason,
        "liveness_state": s.liveness_state,
        "visibility_labels": map_of(s.visibility_labels.as_ref()),
        "search_attributes": map_or_list(search_attributes),
        "repair_attention": s.repair_attention,
        "repair_blocked_reason": s.repair_blocked_reason,
        "repair_blocked": s.repair_blocked_reason.as_ref().and_then(repair_blocked),
        "task_problem": s.task_problem,
        "task_problem_badge": task_problem::badge(s.standing()).map(task_problem_badge),
        "declared_entry_mode": s.declared_entry_mode,
        "declared_contract_source": s.declared_contract_source,
        "exception_count": s.exception_count,
        "history_event_count": s.history_event_count,
        "history_size_bytes": s.history_size_bytes,
        "history_fan_out": s.history_fan_out,
        "continue_as_new_recommended": s.continue_as_new_recommended,
        "history_budget_pressure": s.history_budget_pressure.as_deref().unwrap_or("ok"),
        "connection": s.connection,
        "queue": s.queue,
    })
}

/// A run without a summary, as far as its own row tells: every key of the item, those only a
/// projection knows null, flagged as Waterline flags it.
pub fn unprojected_item(run: &RunRow) -> Value {
    let bucket = run.status.bucket();
    let sort = run.started_at.or(run.created_at);
    json!({
        "id": run.id,
        "workflow_instance_id": run.workflow_instance_id,
        "instance_id": run.workflow_instance_id,
        "selected_run_id": run.id,
        "run_id": run.id,
        "run_number": run.run_number,
        "is_current_run": null,
        "engine_source": "v2",
        "class": run.workflow_class,
        "workflow_type": run.workflow_type,
        "namespace": run.namespace,
        "business_key": run.business_key,
        "compatibility": run.compatibility,
        "status": run.status,
        "status_bucket": bucket,
        "is_terminal": run.status.is_terminal(),
        "closed_reason": run.closed_reason,
        "started_at": iso(run.started_at),
        "closed_at": iso(run.closed_at),
        "created_at": iso(run.created_at),
        "updated_at": null,
        "sort_timestamp": iso(sort),
        "sort_key": null,
        "duration_ms": run.started_at.zip(run.closed_at).map(|(start, end)| (end - start).num_milliseconds().max(0)),
        "archived_at": null,
        "archive_reason": null,
        "wait_kind": null,
        "wait_reason": null,
        "liveness_state": null,
        "visibility_labels": [],
        "search_attributes": [],
        "repair_attention": false,
        "repair_blocked_reason": null,
        "repair_blocked": null,
        "task_problem": false,
        "task_problem_badge": null,
        "declared_entry_mode": null,
        "declared_contract_source": null,
        "exception_count": null,
        "history_event_count": run.last_history_sequence,
        "history_size_bytes": null,
        "history_fan_out": null,
        "continue_as_new_recommended": null,
        "history_budget_pressure": null,
        "connection": run.connection,
        "queue": run.queue,
        "operator_visibility_degraded": true,
    })
}

/// The list item's time form: UTC, whole seconds, numeric offset.
fn iso(at: Option<DateTime<Utc>>) -> Option<String> {
    at.map(|at| at.format("%Y-%m-%dT%H:%M:%S+00:00").to_string())
}

/// PHP writes an empty map as a list; so does everything that reads it.
pub fn map_or_list(map: Map<String, Value>) -> Value {
    if map.is_empty() {
        Value::Array(Vec::new())
    } else {
        Value::Object(map)
    }
}

/// A stored map; anything else is an empty one.
fn map_of(stored: Option<&Json>) -> Value {
    match stored {
        Some(Json::Value(Value::Object(map))) => map_or_list(map.clone()),
        _ => Value::Array(Vec::new()),
    }
}

pub fn repair_blocked(reason: &RepairBlockedReason) -> Option<Value> {
    let shown = repair_gate::shown(reason)?;
    Some(json!({
        "code": reason,
        "label": shown.label,
        "description": shown.description,
        "tone": shown.tone,
        "badge_visible": shown.badge_visible,
    }))
}

pub fn task_problem_badge(problem: task_problem::TaskProblem) -> Value {
    json!({
        "code": problem.code(),
        "label": problem.label(),
        "description": problem.description(),
        "tone": problem.tone(),
        "badge_visible": true,
    })
}
