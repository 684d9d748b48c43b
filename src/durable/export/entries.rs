//! One entry of each list of a bundle, from the row or the projected value it stands for.

use serde_json::{Value, json};

use super::entry::{Other, Written, entry};
use crate::durable::{
    canonical, payload,
    projection::{
        activities::{Activity, Encoded},
        attempts::Attempt,
        command_context,
        commands::{self, CommandPayload},
        context::stamp,
        failures::Failure,
        lineage::Relative,
        validation_errors,
        waits::{OfKind, Wait},
    },
    stored::{
        ActivityStatus, AttemptStatus, CommandRow, ExecutionRow, HistoryEvent, RunRow, SignalRow,
        TaskRow, UpdateRow,
        loose::{Raw, Verbatim},
        payloads::command::CommandContext,
    },
};

/// How deep a stored value may nest to be carried as such: with what the bundle is around it, no
/// common reader gives up.
const DEEPEST: usize = 120;

/// What an event says, references opened. What is no JSON, or nests too deep, is carried as its
/// text.
pub fn event_payload(event: &HistoryEvent) -> Value {
    match event.payload.as_deref() {
        None => empty(),
        Some(text) => match serde_json::from_str(text) {
            Ok(Value::Null) => empty(),
            Ok(value) if nests_within(&value, DEEPEST) => payload::opened(value),
            _ => text.into(),
        },
    }
}

pub fn command(row: &CommandRow) -> Value {
    let told = CommandPayload::of(row);
    let context = CommandContext::of(row.context.as_ref());
    let request = context.request.as_deref().cloned().unwrap_or_default();
    let mut out = json!({
        "id": row.id,
        "sequence": row.command_sequence,
        "message_sequence": row.message_sequence,
        "type": row.command_type,
        "target_scope": row.target_scope,
        "requested_run_id": commands::requested_run_id(row),
        "resolved_run_id": commands::resolved_run_id(row),
        "target_name": told.name,
        "payload_codec": row.payload_codec,
        "payload": payload::stored(row.payload.as_deref()),
        "source": row.source,
        "request_id": row.request_id.clone().or(request.request_id.0),
        "correlation_id": request.correlation_id.0,
        "status": row.status,
        "outcome": row.outcome,
        "reason": told.reason,
        "rejection_reason": row.rejection_reason,
        "validation_errors": told.validation_errors,
        "accepted_at": row.accepted_at.map(stamp),
        "applied_at": row.applied_at.map(stamp),
        "rejected_at": row.rejected_at.map(stamp),
    });
    merge(&mut out, json!(command_context::caller(&context)));
    out
}

pub fn signal(row: &SignalRow) -> Value {
    json!({
        "applied_at": row.applied_at.map(stamp),
        "arguments": payload::stored(row.arguments.as_deref()),
        "closed_at": row.closed_at.map(stamp),
        "command_id": row.workflow_command_id,
        "command_sequence": row.command_sequence,
        "id": row.id,
        "name": row.signal_name,
        "outcome": row.outcome,
        "payload_codec": row.payload_codec,
        "received_at": row.received_at.map(stamp),
        "rejected_at": row.rejected_at.map(stamp),
        "rejection_reason": row.rejection_reason,
        "requested_run_id": row.requested_workflow_run_id,
        "resolved_run_id": row.resolved_workflow_run_id,
        "signal_wait_id": row.signal_wait_id,
        "status": row.status,
        "target_scope": row.target_scope,
        "validation_errors": validation_errors::of_column(row.validation_errors.as_ref()),
        "workflow_sequence": row.workflow_sequence,
    })
}

pub fn update(row: &UpdateRow) -> Value {
    json!({
        "accepted_at": row.accepted_at.map(stamp),
        "applied_at": row.applied_at.map(stamp),
        "arguments": payload::stored(row.arguments.as_deref()),
        "closed_at": row.closed_at.map(stamp),
        "command_id": row.workflow_command_id,
        "command_sequence": row.command_sequence,
        "failure_id": row.failure_id,
        "id": row.id,
        "name": row.update_name,
        "outcome": row.outcome,
        "payload_codec": row.payload_codec,
        "rejected_at": row.rejected_at.map(stamp),
        "rejection_reason": row.rejection_reason,
        "result": payload::stored(row.result.as_deref()),
        "status": row.status,
        "validation_errors": validation_errors::of_column(row.validation_errors.as_ref()),
        "workflow_sequence": row.workflow_sequence,
    })
}

pub fn task(row: &TaskRow) -> impl Written {
    entry! {
        "attempt_count": row.attempt_count,
        "available_at": row.available_at,
        "compatibility": row.compatibility,
        "connection": row.connection,
        "created_at": row.created_at,
        "id": row.id,
        "last_claim_error": row.last_claim_error,
        "last_claim_failed_at": row.last_claim_failed_at,
        "last_dispatch_attempt_at": row.last_dispatch_attempt_at,
        "last_dispatch_error": row.last_dispatch_error,
        "last_dispatched_at": row.last_dispatched_at,
        "lease_expires_at": row.lease_expires_at,
        "lease_owner": row.lease_owner,
        "leased_at": row.leased_at,
        "payload": Document(&row.payload),
        "queue": row.queue,
        "repair_available_at": row.repair_available_at,
        "repair_count": row.repair_count,
        "status": row.status.as_str(),
        "type": row.task_type.as_str(),
    }
}

/// How an activity's payloads are encoded.
pub fn codec_of<'a>(activity: &'a Activity, row: Option<&'a ExecutionRow>) -> Option<&'a str> {
    let told = activity.stored.payload_codec.as_deref();
    told.or_else(|| row?.payload_codec.as_deref())
}

/// What no event told of an activity is taken from its row.
pub fn activity<'a>(
    activity: &'a Activity,
    row: Option<&'a ExecutionRow>,
) -> impl Written + use<'a> {
    let stored = &activity.stored;
    let or_row = move |own: &'a Option<String>, of_row: fn(&ExecutionRow) -> Option<&str>| {
        own.as_deref().or_else(|| of_row(row?))
    };
    let arguments = match stored.arguments {
        Encoded::None => row
            .and_then(|row| row.arguments.as_deref())
            .map_or(Encoded::None, Encoded::Column),
        told => told,
    };
    let group = &activity.group;
    entry! {
        "activity_class": or_row(&activity.class, |row| Some(&row.activity_class)),
        "activity_type": or_row(&activity.r#type, |row| Some(&row.activity_type)),
        "arguments": arguments,
        "attempt_count": activity.attempt_count,
        "attempts": Attempts(activity),
        "closed_at": activity.closed_at.or(stored.closed_at),
        "connection": or_row(&activity.connection, |row| row.connection.as_deref()),
        "created_at": activity.created_at,
        "current_attempt_id": activity.attempt_id,
        "diagnostic_only": activity.diagnostic_only,
        "execution_mode": activity.execution_mode,
        "history_authority": activity.history_authority,
        "history_event_types": Other(&activity.history_event_types),
        "history_unsupported_reason": activity.history_unsupported_reason,
        "id": activity.id,
        "idempotency_key": activity.idempotency_key,
        "last_heartbeat_at": activity.last_heartbeat_at,
        "last_heartbeat_progress": activity.last_heartbeat_progress.as_ref().map(Other),
        "local_activity": activity.local_activity,
        "parallel_group_base_sequence": group.parallel_group_base_sequence,
        "parallel_group_id": group.parallel_group_id,
        "parallel_group_index": group.parallel_group_index,
        "parallel_group_kind": group.parallel_group_kind,
        "parallel_group_path": Other(&group.parallel_group_path),
        "parallel_group_size": group.parallel_group_size,
        "payload_codec": codec_of(activity, row),
        "queue": or_row(&activity.queue, |row| row.queue.as_deref()),
        "result": stored.result,
        "retry_policy": activity.retry_policy,
        "row_status": activity.row_status.as_ref().map(ActivityStatus::as_str),
        "sequence": activity.sequence.or_else(|| row.map(|row| row.sequence)),
        "source_status": activity.row_status.as_ref().unwrap_or(&activity.status).as_str(),
        "started_at": activity.started_at,
        "status": activity.status.as_str(),
    }
}

/// The tries of an activity.
struct Attempts<'a>(&'a Activity<'a>);

impl Written for Attempts<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        let Activity { id, attempts, .. } = self.0;
        let entries: Vec<_> = attempts.iter().map(|of| attempt(id, of)).collect();
        entries.write(out);
    }
}

fn attempt<'a>(activity_id: &'a str, attempt: &'a Attempt) -> impl Written + use<'a> {
    entry! {
        "activity_execution_id": activity_id,
        "attempt_number": attempt.attempt_number,
        "closed_at": attempt.closed_at,
        "id": attempt.id,
        "last_heartbeat_at": attempt.last_heartbeat_at,
        "last_heartbeat_progress": attempt.last_heartbeat_progress.as_ref().map(Other),
        "lease_expires_at": attempt.lease_expires_at,
        "lease_owner": attempt.lease_owner,
        "started_at": attempt.started_at,
        "status": attempt.status.as_ref().map(AttemptStatus::as_str),
        "workflow_task_id": attempt.task_id,
    }
}

/// A wait for an activity or a timer; of the others there are few.
pub fn wait(out: &mut Vec<u8>, wait: &Wait) {
    let OfKind::Step {
        diagnostic_only,
        row_status,
        group,
    } = &wait.of_kind
    else {
        return canonical::write(out, wait);
    };
    let entry = entry! {
        "command_id": wait.command_id,
        "command_outcome": wait.command_outcome,
        "command_sequence": wait.command_sequence,
        "command_status": wait.command_status,
        "deadline_at": wait.deadline_at,
        "diagnostic_only": *diagnostic_only,
        "external_only": wait.external_only,
        "history_authority": wait.history_authority,
        "history_unsupported_reason": wait.history_unsupported_reason,
        "id": wait.id,
        "kind": wait.kind,
        "opened_at": wait.opened_at,
        "parallel_group_base_sequence": group.parallel_group_base_sequence,
        "parallel_group_id": group.parallel_group_id,
        "parallel_group_index": group.parallel_group_index,
        "parallel_group_kind": group.parallel_group_kind,
        "parallel_group_path": Other(&group.parallel_group_path),
        "parallel_group_size": group.parallel_group_size,
        "resolved_at": wait.resolved_at,
        "resume_source_id": wait.resume_source_id,
        "resume_source_kind": wait.resume_source_kind,
        "row_status": row_status,
        "sequence": wait.sequence,
        "source_status": wait.source_status,
        "status": wait.status,
        "summary": wait.summary,
        "target_name": wait.target_name,
        "target_type": wait.target_type,
        "task_backed": wait.task_backed,
        "task_id": wait.task_id,
        "task_status": wait.task_status,
        "task_type": wait.task_type,
        "timeout_fired_at": wait.timeout_fired_at,
    };
    entry.write(out);
}

/// A projected timer; an export does not say what it ran in parallel with.
pub fn timer(mut timer: Value) -> Value {
    if let Some(map) = timer.as_object_mut() {
        map.retain(|key, _| !key.starts_with("parallel_group_"));
    }
    timer
}

pub fn failure(failure: &Failure) -> Value {
    let resolution = &failure.resolution;
    json!({
        "id": failure.id,
        "source_kind": failure.source_kind,
        "source_id": failure.source_id,
        "propagation_kind": failure.propagation_kind,
        "failure_category": failure.failure_category,
        "non_retryable": failure.non_retryable,
        "handled": failure.handled,
        "history_authority": failure.history_authority,
        "diagnostic_only": failure.diagnostic_only,
        "exception_type": failure.exception_type,
        "exception_class": failure.exception_class,
        "exception_resolved_class": resolution.exception_resolved_class,
        "exception_resolution_source": resolution.exception_resolution_source,
        "exception_resolution_error": resolution.exception_resolution_error,
        "exception_replay_blocked": resolution.exception_replay_blocked,
        "message": failure.message,
        "file": failure.file,
        "line": failure.line,
        "trace_preview": failure.trace_preview,
        "created_at": failure.created_at.map(stamp),
    })
}

/// Which end of a link the other run is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Parent,
    Child,
}

pub fn link(run: &RunRow, relative: &Relative, end: End) -> Value {
    let own = (&run.workflow_instance_id, &run.id);
    let other = (&relative.workflow_instance_id, &relative.workflow_run_id);
    let (parent, child) = match end {
        End::Parent => (other, own),
        End::Child => (own, other),
    };
    json!({
        "id": relative.id,
        "type": relative.link_type,
        "parent_workflow_instance_id": parent.0,
        "parent_workflow_run_id": parent.1,
        "child_workflow_instance_id": child.0,
        "child_workflow_run_id": child.1,
        "child_call_id": relative.child_call_id,
        "sequence": relative.sequence,
        "is_primary_parent": relative.is_primary_parent,
        "run_number": relative.run_number,
        "workflow_type": relative.workflow_type,
        "class": relative.class,
        "status": relative.status,
        "status_bucket": relative.status_bucket,
        "closed_reason": relative.closed_reason,
        "created_at": relative.created_at.map(stamp),
        "history_authority": relative.history_authority,
        "diagnostic_only": relative.diagnostic_only,
    })
}

/// A stored document. What is no JSON, or nests too deep, is carried as its text; none at all is
/// an empty one.
struct Document<'a>(&'a Raw);

impl Written for Document<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        let Some(text) = self.0.0.as_deref() else {
            return out.extend_from_slice(b"[]");
        };
        if text.trim() != "null" && canonical::write_shallow(out, text.as_bytes()).is_ok() {
            return;
        }
        let value = self.0.value().filter(|value| nests_within(value, DEEPEST));
        let value = value.unwrap_or_else(|| text.into());
        canonical::write(out, &if value.is_null() { empty() } else { value });
    }
}

/// A payload as it stands in its row or its event, references opened.
impl Written for Encoded<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        let written = match self {
            Self::Key(Verbatim(Some(text)), _) if !payload::may_refer(text) => {
                canonical::write_shallow(out, text.as_bytes()).is_ok()
            }
            _ => false,
        };
        if !written {
            canonical::write(out, &self.stored());
        }
    }
}

fn nests_within(value: &Value, most: usize) -> bool {
    let Some(inside) = most.checked_sub(1) else {
        return !value.is_array() && !value.is_object();
    };
    match value {
        Value::Array(items) => items.iter().all(|item| nests_within(item, inside)),
        Value::Object(map) => map.values().all(|item| nests_within(item, inside)),
        _ => true,
    }
}

fn empty() -> Value {
    Value::Array(Vec::new())
}

fn merge(out: &mut Value, part: Value) {
    if let (Value::Object(out), Value::Object(part)) = (out, part) {
        out.extend(part);
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;
    use crate::durable::projection::parallel::ParallelGroup;

    #[test]
    fn a_wait_for_a_step_is_written_as_any_other() {
        let step = Wait {
            id: "activity:1".into(),
            kind: "activity",
            sequence: Some(7),
            opened_at: DateTime::from_timestamp(1, 5_000),
            target_type: Some("App\\Charge".into()),
            history_authority: Some("typed_history"),
            of_kind: OfKind::Step {
                diagnostic_only: true,
                row_status: Some("pending".into()),
                group: ParallelGroup::default(),
            },
            ..Wait::default()
        };
        for of in [step, Wait::default()] {
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            wait(&mut ours, &of);
            canonical::write(&mut theirs, &of);
            assert_eq!(str::from_utf8(&ours), str::from_utf8(&theirs));
        }
    }

    #[test]
    fn a_stored_document_is_carried_as_json_or_as_its_text() {
        let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
        let deeper = format!("{}1{}", "[".repeat(121), "]".repeat(121));
        let quoted = format!("\"{deeper}\"");
        for (stored, want) in [
            (None, "[]"),
            (Some("{}"), "[]"),
            (Some(" null "), "[]"),
            (Some(r#"{"b":1, "a":{}}"#), r#"{"a":[],"b":1}"#),
            (Some(r#"{"a":1,"a":2}"#), r#"{"a":2}"#),
            (Some("{broken"), r#""{broken""#),
            (Some(&deep), &deep),
            (Some(&deeper), &quoted),
        ] {
            let mut out = Vec::new();
            Document(&Raw::of_column(stored.map(str::to_owned))).write(&mut out);
            assert_eq!(str::from_utf8(&out), Ok(want));
        }
    }
}
