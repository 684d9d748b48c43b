//! Who repaired what, in the run's own tables: one command, one `RepairRequested` event, and the
//! counters both are numbered by.

use serde_json::{Value, json};

use super::{Made, draft::Draft};
use crate::{
    db::Json,
    durable::{
        payload::avro,
        projection::{Projected, context::stamp},
        repair::{
            change::{Guard, object},
            php_json,
            refusal::Refusal,
            request::{Caller, Request, SOURCE, Scope},
        },
        stored::{
            AsCell as _, Cell, CommandRow, CommandStatus, CommandType, EventType, HistoryEvent,
            RunRow, TaskRow, TaskType, WaitKind,
        },
    },
};

const AVRO: &str = "avro";
const OUTCOME: &str = "repair_dispatched";

pub(super) fn record(
    draft: &mut Draft<'_>,
    request: &Request,
    made: &Made,
) -> Result<CommandRow, Refusal> {
    let command = command(draft, request, made)?;
    let mut cells = command.cells();
    cells.push(("updated_at", draft.p.cx.now.cell()));
    draft.insert(CommandRow::TABLE, &command.id, cells);
    let sequence = event(draft, request, made, &command);
    let run = &draft.p.cx.snapshot.run;
    let after = RunRow {
        last_history_sequence: sequence,
        last_command_sequence: command.command_sequence.unwrap_or_default(),
        last_progress_at: Some(draft.p.cx.now),
        updated_at: Some(draft.p.cx.now),
        ..run.clone()
    };
    draft.update(
        RunRow::TABLE,
        &run.id,
        run.cells(),
        after.cells(),
        vec![
            Guard::Is("status", run.status.cell()),
            Guard::Is("last_history_sequence", run.last_history_sequence.cell()),
            Guard::Is("last_command_sequence", run.last_command_sequence.cell()),
        ],
    );
    draft.written.run = Some(after);
    draft.written.commands.push(command.clone());
    Ok(command)
}

/// The command is written in the run's own codec.
pub(super) fn can_record(p: &Projected<'_>) -> Result<(), Refusal> {
    let codec = p.cx.snapshot.run.payload_codec.as_deref();
    match codec.filter(|codec| !codec.is_empty() && *codec != AVRO) {
        Some(codec) => Err(Refusal::UnsupportedCodec {
            codec: codec.to_owned(),
        }),
        None => Ok(()),
    }
}

fn command(draft: &Draft<'_>, request: &Request, made: &Made) -> Result<CommandRow, Refusal> {
    can_record(draft.p)?;
    let snapshot = draft.p.cx.snapshot;
    let (run, now) = (&snapshot.run, draft.p.cx.now);
    // Commands an older engine left unnumbered come before ours all the same.
    let known = i64::try_from(snapshot.commands.len()).unwrap_or(i64::MAX);
    let numbered = snapshot
        .commands
        .iter()
        .filter_map(|row| row.command_sequence);
    let unnumbered = snapshot
        .commands
        .iter()
        .any(|row| row.command_sequence.is_none());
    let last = numbered
        .max()
        .unwrap_or(0)
        .max(run.last_command_sequence)
        .max(if unnumbered { known } else { 0 });
    Ok(CommandRow {
        id: draft.ids.command.clone(),
        workflow_instance_id: Some(run.workflow_instance_id.clone()),
        workflow_run_id: Some(run.id.clone()),
        requested_workflow_run_id: (request.scope == Scope::Run).then(|| run.id.clone()),
        resolved_workflow_run_id: Some(run.id.clone()),
        command_type: CommandType::Repair,
        target_scope: request.scope.as_str().to_owned(),
        source: SOURCE.to_owned(),
        context: Some(Json::Value(request.caller.context())),
        request_id: None,
        status: CommandStatus::Accepted,
        outcome: Some(OUTCOME.to_owned()),
        workflow_class: Some(run.workflow_class.clone()),
        workflow_type: Some(run.workflow_type.clone()),
        payload_codec: Some(AVRO.to_owned()),
        payload: Some(payload(draft, request, made)),
        rejection_reason: None,
        command_sequence: Some(last.saturating_add(1)),
        message_sequence: None,
        accepted_at: Some(now),
        applied_at: Some(now),
        rejected_at: None,
        created_at: Some(now),
    })
}

/// The engine's four keys; the reason, where the engine's other commands keep theirs.
fn payload(draft: &Draft<'_>, request: &Request, made: &Made) -> String {
    use avro::Value::{Map, Null, String};
    let text = |text: Option<&str>| text.map_or(Null, |text| String(text.to_owned()));
    let standing = &draft.p.standing;
    let mut members = vec![
        (
            "liveness_state".to_owned(),
            text(Some(standing.liveness_state.as_str())),
        ),
        (
            "wait_kind".to_owned(),
            text(standing.wait_kind.as_ref().map(WaitKind::as_str)),
        ),
        ("task_id".to_owned(), text(Some(&made.task.id))),
        (
            "task_type".to_owned(),
            text(Some(made.task.task_type.as_str())),
        ),
    ];
    if let Some(reason) = &request.reason {
        members.push(("reason".to_owned(), text(Some(reason))));
    }
    avro::encode(&Map(members))
}

/// Adds the event, and gives its number.
fn event(draft: &mut Draft<'_>, request: &Request, made: &Made, command: &CommandRow) -> i64 {
    let p = draft.p;
    let (snapshot, now) = (p.cx.snapshot, p.cx.now);
    let last = snapshot.events.iter().map(|event| event.sequence).max();
    let last = last.unwrap_or(0).max(snapshot.run.last_history_sequence);
    let sequence = last.saturating_add(1);
    let payload = json!({
        "workflow_command_id": command.id,
        "workflow_instance_id": snapshot.run.workflow_instance_id,
        "workflow_run_id": snapshot.run.id,
        "command_type": "repair",
        "outcome": OUTCOME,
        "liveness_state": p.standing.liveness_state,
        "wait_kind": p.standing.wait_kind,
        "task_id": made.task.id,
        "task_type": made.task.task_type,
        "task": task_snapshot(made),
        "command": command_snapshot(command, &request.caller),
    });
    let event = HistoryEvent {
        id: draft.ids.event.clone(),
        sequence,
        event_type: EventType::RepairRequested,
        payload: Some(php_json::text(&payload)),
        workflow_task_id: Some(made.task.id.clone()),
        workflow_command_id: Some(command.id.clone()),
        recorded_at: Some(now),
        created_at: Some(now),
        is_json: std::sync::OnceLock::new(),
    };
    let cells = vec![
        ("id", event.id.cell()),
        ("workflow_run_id", snapshot.run.id.cell()),
        ("sequence", event.sequence.cell()),
        ("event_type", event.event_type.cell()),
        ("payload", Cell::Json(payload)),
        ("workflow_task_id", event.workflow_task_id.cell()),
        ("workflow_command_id", event.workflow_command_id.cell()),
        ("recorded_at", event.recorded_at.cell()),
        ("created_at", event.created_at.cell()),
        ("updated_at", now.cell()),
    ];
    draft.insert(HistoryEvent::TABLE, &draft.ids.event.clone(), cells);
    draft.written.event = Some(event);
    sequence
}

fn task_snapshot(made: &Made) -> Value {
    let task: &TaskRow = &made.recorded;
    let at = |at: Option<chrono::DateTime<chrono::Utc>>| json!(at.map(stamp));
    // A new row has no count of tries of its own, unless it continues those of an activity.
    let counts = !made.inserted || task.task_type == TaskType::Activity;
    object([
        ("id", json!(task.id)),
        ("type", json!(task.task_type)),
        ("status", json!(task.status)),
        ("available_at", at(task.available_at)),
        ("leased_at", at(task.leased_at)),
        ("lease_owner", json!(task.lease_owner)),
        ("lease_expires_at", at(task.lease_expires_at)),
        ("attempt_count", json!(counts.then_some(task.attempt_count))),
        ("repair_count", json!(task.repair_count)),
        ("connection", json!(task.connection)),
        ("queue", json!(task.queue)),
        ("compatibility", json!(task.compatibility)),
        (
            "last_dispatch_attempt_at",
            at(task.last_dispatch_attempt_at),
        ),
        ("last_dispatched_at", at(task.last_dispatched_at)),
        ("last_dispatch_error", json!(task.last_dispatch_error)),
        ("last_claim_failed_at", at(task.last_claim_failed_at)),
        ("last_claim_error", json!(task.last_claim_error)),
        ("repair_available_at", at(task.repair_available_at)),
    ])
}

fn command_snapshot(command: &CommandRow, caller: &Caller) -> Value {
    let (auth_status, auth_method) = caller.auth();
    let principal = caller.principal.as_ref();
    let request = caller.request.as_ref();
    object([
        ("id", json!(command.id)),
        ("sequence", json!(command.command_sequence)),
        ("type", json!(command.command_type)),
        ("target_scope", json!(command.target_scope)),
        ("requested_run_id", json!(command.requested_workflow_run_id)),
        ("resolved_run_id", json!(command.resolved_workflow_run_id)),
        ("payload_codec", json!(command.payload_codec)),
        ("payload", json!(command.payload)),
        ("source", json!(command.source)),
        ("context", json!(caller.public_context())),
        ("caller_label", json!(Caller::LABEL)),
        ("principal_type", json!(principal.map(|who| &who.kind))),
        ("principal_id", json!(principal.map(|who| &who.id))),
        (
            "principal_label",
            json!(principal.and_then(|who| who.label.as_ref())),
        ),
        ("auth_status", json!(auth_status)),
        ("auth_method", json!(auth_method)),
        ("request_method", json!(request.map(|asked| &asked.method))),
        ("request_path", json!(request.map(|asked| &asked.path))),
        (
            "request_id",
            json!(request.and_then(|asked| asked.request_id.as_ref())),
        ),
        (
            "correlation_id",
            json!(request.and_then(|asked| asked.correlation_id.as_ref())),
        ),
        ("status", json!(command.status)),
        ("outcome", json!(command.outcome)),
        ("accepted_at", json!(command.accepted_at.map(stamp))),
        ("applied_at", json!(command.applied_at.map(stamp))),
    ])
}
