//! The signals of a run: what their records say, or, for a command without a record, what the
//! command and its events do.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;

use super::{
    Context,
    commands::{CommandPayload, requested_run_id, resolved_run_id},
    context::ts,
    task_links::TaskLink,
    typed::Typed,
    validation_errors,
};
use crate::durable::stored::{
    CommandRow, CommandStatus, CommandType, EventType, SignalRow, SignalStatus,
    payloads::command::SignalEvent,
};

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Signal {
    /// None when the signal is known by its command alone.
    pub id: Option<String>,
    pub command_id: Option<String>,
    pub command_sequence: Option<i64>,
    pub workflow_sequence: Option<i64>,
    pub name: Option<String>,
    pub signal_wait_id: Option<String>,
    pub target_scope: Option<String>,
    pub requested_run_id: Option<String>,
    pub resolved_run_id: Option<String>,
    pub status: SignalStatus,
    pub outcome: Option<String>,
    pub source: Option<String>,
    pub rejection_reason: Option<String>,
    pub validation_errors: Value,
    pub payload_codec: Option<String>,
    pub arguments_available: bool,
    pub arguments: Option<Value>,
    #[serde(serialize_with = "ts")]
    pub received_at: Option<DateTime<Utc>>,
    #[serde(serialize_with = "ts")]
    pub applied_at: Option<DateTime<Utc>>,
    #[serde(serialize_with = "ts")]
    pub rejected_at: Option<DateTime<Utc>>,
    #[serde(serialize_with = "ts")]
    pub closed_at: Option<DateTime<Utc>>,
    #[serde(flatten)]
    pub tasks: TaskLink,
}

/// By command sequence, those without one last.
pub fn signals(cx: Context<'_>) -> Vec<Signal> {
    let commands: HashMap<&str, &CommandRow> = cx
        .snapshot
        .commands
        .iter()
        .map(|command| (command.id.as_str(), command))
        .collect();
    let recorded: HashSet<&str> = cx
        .snapshot
        .signals
        .iter()
        .map(|signal| signal.workflow_command_id.as_str())
        .collect();
    let mut out: Vec<Signal> = cx
        .snapshot
        .signals
        .iter()
        .map(|row| of_record(row, commands.get(row.workflow_command_id.as_str()).copied()))
        .collect();
    let unrecorded: Vec<&CommandRow> = cx
        .snapshot
        .commands
        .iter()
        .filter(|command| command.command_type == CommandType::Signal)
        .filter(|command| !recorded.contains(command.id.as_str()))
        .collect();
    if !unrecorded.is_empty() {
        let events = events_by_command(cx);
        let none = SignalEvents::default();
        out.extend(
            unrecorded.into_iter().map(|command| {
                of_command(command, events.get(command.id.as_str()).unwrap_or(&none))
            }),
        );
    }
    out.sort_by(|a, b| order(a).cmp(&order(b)));
    out
}

fn order(signal: &Signal) -> (i64, Option<DateTime<Utc>>, Option<&str>) {
    (
        signal.command_sequence.unwrap_or(i64::MAX),
        signal.received_at,
        signal.command_id.as_deref().or(signal.id.as_deref()),
    )
}

fn of_record(row: &SignalRow, command: Option<&CommandRow>) -> Signal {
    let arguments = Typed::of_text(row.payload_codec.as_deref(), row.arguments.as_deref());
    Signal {
        id: Some(row.id.clone()),
        command_id: Some(row.workflow_command_id.clone()),
        command_sequence: row.command_sequence,
        workflow_sequence: row.workflow_sequence,
        name: Some(row.signal_name.clone()),
        signal_wait_id: row.signal_wait_id.clone(),
        target_scope: Some(row.target_scope.clone()),
        requested_run_id: row.requested_workflow_run_id.clone(),
        resolved_run_id: row.resolved_workflow_run_id.clone(),
        status: row.status.clone(),
        outcome: row.outcome.clone(),
        source: command.map(|command| command.source.clone()),
        rejection_reason: row.rejection_reason.clone(),
        validation_errors: validation_errors::of_column(row.validation_errors.as_ref()),
        payload_codec: row.payload_codec.clone(),
        arguments_available: arguments.available,
        arguments: arguments.shown,
        received_at: row.received_at,
        applied_at: row.applied_at,
        rejected_at: row.rejected_at,
        closed_at: row.closed_at,
        tasks: TaskLink::default(),
    }
}

/// The first event of each kind that names a command.
#[derive(Debug, Default)]
struct SignalEvents {
    received: Option<SignalEvent>,
    applied: Option<SignalEvent>,
}

fn events_by_command(cx: Context<'_>) -> HashMap<String, SignalEvents> {
    let mut out: HashMap<String, SignalEvents> = HashMap::new();
    for event in &cx.snapshot.events {
        let applied = match event.event_type {
            EventType::SignalReceived => false,
            EventType::SignalApplied => true,
            _ => continue,
        };
        let Some(command_id) = &event.workflow_command_id else {
            continue;
        };
        let found = out.entry(command_id.clone()).or_default();
        let slot = if applied {
            &mut found.applied
        } else {
            &mut found.received
        };
        slot.get_or_insert_with(|| event.as_payload());
    }
    out
}

fn of_command(command: &CommandRow, events: &SignalEvents) -> Signal {
    let payload = CommandPayload::of(command);
    let (received, applied) = (events.received.as_ref(), events.applied.as_ref());
    Signal {
        id: None,
        command_id: Some(command.id.clone()),
        command_sequence: command.command_sequence,
        workflow_sequence: applied.and_then(|e| e.sequence.strict()),
        name: [received, applied]
            .into_iter()
            .find_map(|e| e?.signal_name.0.clone())
            .or_else(|| payload.name.clone()),
        // The one it was applied to; on arrival it may have been another's turn.
        signal_wait_id: [applied, received]
            .into_iter()
            .find_map(|e| e?.signal_wait_id.0.clone()),
        target_scope: Some(command.target_scope.clone()),
        requested_run_id: requested_run_id(command),
        resolved_run_id: resolved_run_id(command),
        status: status_of_command(
            &command.status,
            applied.is_some() || command.applied_at.is_some(),
        ),
        outcome: command.outcome.clone(),
        source: Some(command.source.clone()),
        rejection_reason: command.rejection_reason.clone(),
        payload_codec: command.payload_codec.clone(),
        arguments_available: command.payload.as_deref().is_some_and(|p| !p.is_empty()),
        arguments: Some(payload.arguments()),
        validation_errors: payload.validation_errors,
        received_at: command.accepted_at,
        applied_at: command.applied_at,
        rejected_at: command.rejected_at,
        closed_at: command.rejected_at.or(command.applied_at),
        tasks: TaskLink::default(),
    }
}

fn status_of_command(command: &CommandStatus, applied: bool) -> SignalStatus {
    match command {
        CommandStatus::Rejected => SignalStatus::Rejected,
        _ if applied => SignalStatus::Applied,
        _ => SignalStatus::Received,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_alone_tells_how_far_its_signal_got() {
        for (command, applied, want) in [
            ("rejected", true, SignalStatus::Rejected),
            ("accepted", true, SignalStatus::Applied),
            ("accepted", false, SignalStatus::Received),
            ("parked", false, SignalStatus::Received),
        ] {
            assert_eq!(
                status_of_command(&command.into(), applied),
                want,
                "{command} {applied}"
            );
        }
    }
}
