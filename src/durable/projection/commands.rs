//! Who asked the run for what, and what became of it.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;

use super::{
    Context,
    command_context::{self, Caller},
    context::ts,
    signals::Signal,
    task_links::TaskLink,
    updates::Update,
    validation_errors,
};
use crate::durable::{
    payload::{self, Payload},
    stored::{
        CommandRow, CommandStatus, CommandType, SignalStatus, UpdateStatus,
        payloads::command::CommandContext,
    },
};

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Command {
    pub id: String,
    pub sequence: Option<i64>,
    #[serde(rename = "type")]
    pub command_type: CommandType,
    pub target_scope: String,
    pub requested_run_id: Option<String>,
    pub resolved_run_id: Option<String>,
    pub target_name: Option<String>,
    pub payload_codec: Option<String>,
    pub payload_available: bool,
    pub payload: Option<Value>,
    pub source: String,
    #[serde(flatten)]
    pub caller: Caller,
    pub request_id: Option<String>,
    pub correlation_id: Option<String>,
    pub status: CommandStatus,
    pub outcome: Option<String>,
    pub reason: Option<String>,
    pub rejection_reason: Option<String>,
    pub validation_errors: Value,
    pub workflow_type: Option<String>,
    pub workflow_class: Option<String>,
    #[serde(serialize_with = "ts")]
    pub accepted_at: Option<DateTime<Utc>>,
    #[serde(serialize_with = "ts")]
    pub applied_at: Option<DateTime<Utc>>,
    #[serde(serialize_with = "ts")]
    pub rejected_at: Option<DateTime<Utc>>,
    #[serde(flatten)]
    pub signal: OfSignal,
    #[serde(flatten)]
    pub update: OfUpdate,
    #[serde(flatten)]
    pub tasks: TaskLink,
}

/// What a command that signals adds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct OfSignal {
    pub signal_id: Option<String>,
    pub signal_status: Option<SignalStatus>,
    pub signal_wait_id: Option<String>,
}

/// What a command that updates adds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct OfUpdate {
    pub update_id: Option<String>,
    pub update_status: Option<UpdateStatus>,
    pub update_ordering_state: Option<&'static str>,
    pub update_admission_ordering_state: Option<String>,
    pub update_queued_behind_command_id: Option<String>,
    pub update_queued_behind_command_sequence: Option<i64>,
    pub update_queued_behind_command_type: Option<String>,
    pub result_available: bool,
    pub result: Option<Value>,
    pub failure_id: Option<String>,
    pub failure_message: Option<String>,
    #[serde(serialize_with = "ts")]
    pub completed_at: Option<DateTime<Utc>>,
}

pub fn commands(cx: Context<'_>, signals: &[Signal], updates: &[Update]) -> Vec<Command> {
    let signals: HashMap<&str, &Signal> = signals
        .iter()
        .filter_map(|signal| Some((signal.command_id.as_deref()?, signal)))
        .collect();
    let updates: HashMap<&str, &Update> = updates
        .iter()
        .filter_map(|update| Some((update.command_id.as_deref()?, update)))
        .collect();
    cx.snapshot
        .commands
        .iter()
        .map(|row| {
            command(
                row,
                cx.snapshot.hidden_by.is_some(),
                signals.get(row.id.as_str()).copied(),
                updates.get(row.id.as_str()).copied(),
            )
        })
        .collect()
}

fn command(
    row: &CommandRow,
    is_hidden: bool,
    signal: Option<&Signal>,
    update: Option<&Update>,
) -> Command {
    let payload = CommandPayload::of(row);
    let context = CommandContext::of(row.context.as_ref());
    let request = context.request.as_deref().cloned().unwrap_or_default();
    let called = || {
        let of_signal = signal.and_then(|signal| signal.name.clone());
        of_signal.or_else(|| update?.name.clone())
    };
    Command {
        id: row.id.clone(),
        sequence: row.command_sequence,
        command_type: row.command_type.clone(),
        target_scope: row.target_scope.clone(),
        requested_run_id: requested_run_id(row),
        resolved_run_id: resolved_run_id(row),
        // Hidden with its payload, a name is still that of what it called.
        target_name: payload.name.or_else(|| is_hidden.then(called).flatten()),
        payload_codec: row.payload_codec.clone(),
        payload_available: row.payload.as_deref().is_some_and(|text| !text.is_empty()),
        payload: payload.preview,
        source: row.source.clone(),
        caller: command_context::caller(&context),
        request_id: row.request_id.clone().or(request.request_id.0),
        correlation_id: request.correlation_id.0,
        status: row.status.clone(),
        outcome: row.outcome.clone(),
        reason: payload.reason,
        rejection_reason: row.rejection_reason.clone(),
        validation_errors: payload.validation_errors,
        workflow_type: row.workflow_type.clone(),
        workflow_class: row.workflow_class.clone(),
        accepted_at: row.accepted_at,
        applied_at: row.applied_at,
        rejected_at: row.rejected_at,
        signal: signal.map(of_signal).unwrap_or_default(),
        update: update.map(of_update).unwrap_or_default(),
        tasks: TaskLink::default(),
    }
}

fn of_signal(signal: &Signal) -> OfSignal {
    OfSignal {
        signal_id: signal.id.clone(),
        signal_status: Some(signal.status.clone()),
        signal_wait_id: signal.signal_wait_id.clone(),
    }
}

fn of_update(update: &Update) -> OfUpdate {
    OfUpdate {
        update_id: update.id.clone(),
        update_status: Some(update.status.clone()),
        update_ordering_state: Some(update.ordering_state),
        update_admission_ordering_state: update.admission.admission_ordering_state.clone(),
        update_queued_behind_command_id: update.admission.queued_behind_command_id.clone(),
        update_queued_behind_command_sequence: update.admission.queued_behind_command_sequence,
        update_queued_behind_command_type: update.admission.queued_behind_command_type.clone(),
        result_available: update.result_available,
        result: update.result.clone(),
        failure_id: update.failure_id.clone(),
        failure_message: update.failure_message.clone(),
        completed_at: update.closed_at,
    }
}

/// The run the caller meant: as stored, or its own run when it addressed a run.
pub fn requested_run_id(row: &CommandRow) -> Option<String> {
    some_text(row.requested_workflow_run_id.as_ref()).or_else(|| {
        (row.target_scope == "run")
            .then(|| some_text(row.workflow_run_id.as_ref()))
            .flatten()
    })
}

/// The run it reached; none when it was refused for addressing a run that is not current.
pub fn resolved_run_id(row: &CommandRow) -> Option<String> {
    some_text(row.resolved_workflow_run_id.as_ref()).or_else(|| {
        let missed = row.target_scope == "run"
            && row.rejection_reason.as_deref() == Some("selected_run_not_current");
        (!missed)
            .then(|| some_text(row.workflow_run_id.as_ref()))
            .flatten()
    })
}

fn some_text(text: Option<&String>) -> Option<String> {
    text.filter(|text| !text.is_empty()).cloned()
}

/// A command's payload: how it is shown, and the few keys that mean something.
#[derive(Clone, Debug, PartialEq)]
pub struct CommandPayload {
    pub preview: Option<Value>,
    /// Not an envelope and not text nobody could read.
    decoded: bool,
    /// Of the signal or update.
    pub name: Option<String>,
    /// Given with a cancel, terminate or archive.
    pub reason: Option<String>,
    pub validation_errors: Value,
}

impl CommandPayload {
    pub fn of(row: &CommandRow) -> Self {
        payload::decode(row.payload_codec.as_deref(), row.payload.as_deref()).into()
    }

    /// The arguments of a signal or update: its own key, or the whole payload where it has none.
    pub fn arguments(&self) -> Value {
        let Some(preview) = &self.preview else {
            return Value::Array(Vec::new());
        };
        if !self.decoded {
            return preview.clone();
        }
        match (preview, preview.get("arguments")) {
            (_, Some(Value::Object(named))) => named.values().cloned().collect(),
            (_, Some(list @ Value::Array(_))) => list.clone(),
            (whole @ (Value::Object(_) | Value::Array(_)), _) => whole.clone(),
            // A single value carries no arguments.
            _ => Value::Array(Vec::new()),
        }
    }
}

impl From<Payload> for CommandPayload {
    fn from(payload: Payload) -> Self {
        let map = match &payload {
            Payload::Value(Value::Object(map)) => Some(map),
            // A payload kept elsewhere tells nothing: its envelope has keys of its own.
            _ => None,
        };
        let text = |key: &str| {
            map?.get(key)?
                .as_str()
                .filter(|text| !text.is_empty())
                .map(str::to_owned)
        };
        Self {
            name: text("name"),
            reason: text("reason"),
            validation_errors: validation_errors::of(
                map.and_then(|map| map.get("validation_errors")),
            ),
            decoded: matches!(payload, Payload::Value(_)),
            preview: payload.preview(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_payload_says_what_it_is_about_only_when_it_is_here() {
        let told = |payload: Payload| {
            let told = CommandPayload::from(payload);
            (told.name.clone(), told.arguments(), told.preview)
        };
        let signal = json!({"name": "go", "arguments": [1], "validation_errors": []});
        let named = json!({"arguments": {"by": 7, "at": 8}});
        let whole = json!({"by": 7, "arguments": "none"});
        let envelope =
            json!({"codec": "avro", "name": "go", "external_storage": {"uri": "s3://x"}});
        for (what, payload, want) in [
            ("none", Payload::None, (None, json!([]), None)),
            (
                "a signal",
                Payload::Value(signal.clone()),
                (Some("go".into()), json!([1]), Some(signal)),
            ),
            (
                "arguments by name",
                Payload::Value(named.clone()),
                (None, json!([7, 8]), Some(named)),
            ),
            (
                "bare arguments",
                Payload::Value(json!(["a"])),
                (None, json!(["a"]), Some(json!(["a"]))),
            ),
            (
                "no arguments of its own",
                Payload::Value(whole.clone()),
                (None, whole.clone(), Some(whole)),
            ),
            (
                "a single value",
                Payload::Value(json!(7)),
                (None, json!([]), Some(json!(7))),
            ),
            (
                "kept elsewhere",
                Payload::Reference(envelope.clone()),
                (None, envelope.clone(), Some(envelope)),
            ),
            (
                "not decodable",
                Payload::Raw {
                    reason: "unsupported codec json".into(),
                    text: "{}".into(),
                },
                (None, json!("{}"), Some(json!("{}"))),
            ),
        ] {
            assert_eq!(told(payload), want, "{what}");
        }
    }
}
