//! The command an event came of: as the event kept it, else as its row has it now.

use std::borrow::Cow;

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::{Value, json};

use super::Words;
use crate::durable::{
    payload,
    projection::{
        command_context::{PublicContext, caller},
        commands::{CommandPayload, requested_run_id, resolved_run_id},
        context::ts,
    },
    stored::{
        CommandRow, EventType, HistoryEvent,
        payloads::{
            command::CommandContext,
            timeline::{CommandSnapshot, TimelineEvent},
        },
    },
};

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Command<'a> {
    pub id: Words<'a>,
    pub sequence: Option<i64>,
    #[serde(rename = "type")]
    pub command_type: Words<'a>,
    pub target_scope: Words<'a>,
    pub requested_run_id: Words<'a>,
    pub resolved_run_id: Words<'a>,
    pub target_name: Words<'a>,
    pub payload_codec: Words<'a>,
    pub payload_available: bool,
    pub payload: Option<Value>,
    pub source: Words<'a>,
    pub context: Option<Value>,
    pub caller_label: Words<'a>,
    pub principal_type: Words<'a>,
    pub principal_id: Words<'a>,
    pub principal_label: Words<'a>,
    pub auth_status: Words<'a>,
    pub auth_method: Words<'a>,
    pub request_method: Words<'a>,
    pub request_path: Words<'a>,
    pub request_route_name: Words<'a>,
    pub request_fingerprint: Words<'a>,
    pub status: Words<'a>,
    pub outcome: Words<'a>,
    pub rejection_reason: Words<'a>,
    #[serde(serialize_with = "ts")]
    pub accepted_at: Option<DateTime<Utc>>,
    #[serde(serialize_with = "ts")]
    pub applied_at: Option<DateTime<Utc>>,
    #[serde(serialize_with = "ts")]
    pub rejected_at: Option<DateTime<Utc>>,
}

impl<'a> Command<'a> {
    pub(super) fn of(
        event: &HistoryEvent,
        told: &TimelineEvent<'a>,
        id: Words<'a>,
        row: Option<&'a CommandRow>,
    ) -> Option<Self> {
        let none = CommandSnapshot::default();
        let kept = told.command.as_deref();
        let says_something = id.is_some()
            || kept.is_some()
            || told.outcome.present
            || told.rejection_reason.present
            || told.command_type.present;
        if !says_something {
            return None;
        }
        let kept = kept.unwrap_or(&none);
        let payload_codec = kept
            .payload_codec
            .0
            .clone()
            .or_else(|| row.and_then(|row| row.payload_codec.as_deref().map(Cow::Borrowed)));
        let own = |text: Option<String>| text.map(Cow::Owned);
        let envelope = kept
            .payload
            .as_ref()
            .filter(|payload| payload.get("external_storage").is_some_and(is_container));
        let blob = kept
            .payload
            .as_ref()
            .and_then(Value::as_str)
            .filter(|blob| !blob.is_empty())
            .or_else(|| row.and_then(|row| row.payload.as_deref()));
        let stored_elsewhere = envelope.is_some() || blob.is_some_and(payload::is_reference);
        let sent = row
            .map(|row| caller(&CommandContext::of(row.context.as_ref())))
            .unwrap_or_default();
        Some(Self {
            id: id.or_else(|| kept.id.0.clone()),
            sequence: kept
                .sequence
                .get()
                .or_else(|| row.and_then(|row| row.command_sequence)),
            command_type: kept
                .command_type
                .0
                .clone()
                .or_else(|| row.map(|row| row.command_type.as_str().into()))
                .or_else(|| told.command_type.0.clone()),
            target_scope: kept
                .target_scope
                .0
                .clone()
                .or_else(|| row.map(|row| row.target_scope.as_str().into())),
            requested_run_id: kept
                .requested_run_id
                .0
                .clone()
                .or_else(|| own(requested_run_id(row?))),
            resolved_run_id: kept
                .resolved_run_id
                .0
                .clone()
                .or_else(|| own(resolved_run_id(row?))),
            target_name: kept
                .target_name
                .0
                .clone()
                .or_else(|| own(CommandPayload::of(row.filter(|_| !stored_elsewhere)?).name))
                .or_else(|| told.signal_name.0.clone())
                .or_else(|| told.update_name.0.clone()),
            payload_available: envelope.is_some() || blob.is_some_and(|blob| !blob.is_empty()),
            payload: envelope
                .cloned()
                .or_else(|| payload::decode(payload_codec.as_deref(), blob).preview()),
            payload_codec,
            source: kept
                .source
                .0
                .clone()
                .or_else(|| row.map(|row| row.source.as_str().into())),
            context: kept
                .context
                .as_ref()
                .filter(|context| is_container(context))
                .cloned()
                .or_else(|| {
                    (sent.context != PublicContext::default()).then(|| json!(sent.context))
                }),
            caller_label: kept.caller_label.0.clone().or(own(sent.caller_label)),
            principal_type: kept.principal_type.0.clone().or(own(sent.principal_type)),
            principal_id: kept.principal_id.0.clone().or(own(sent.principal_id)),
            principal_label: kept.principal_label.0.clone().or(own(sent.principal_label)),
            auth_status: kept.auth_status.0.clone().or(own(sent.auth_status)),
            auth_method: kept.auth_method.0.clone().or(own(sent.auth_method)),
            request_method: kept.request_method.0.clone().or(own(sent.request_method)),
            request_path: kept.request_path.0.clone().or(own(sent.request_path)),
            request_route_name: kept
                .request_route_name
                .0
                .clone()
                .or(own(sent.request_route_name)),
            request_fingerprint: kept
                .request_fingerprint
                .0
                .clone()
                .or(own(sent.request_fingerprint)),
            status: status(&event.event_type)
                .map(Cow::Borrowed)
                .or_else(|| row.map(|row| row.status.as_str().into())),
            outcome: told
                .outcome
                .0
                .clone()
                .or_else(|| outcome(&event.event_type, told, row)),
            rejection_reason: kept
                .rejection_reason
                .0
                .clone()
                .or_else(|| row.and_then(|row| row.rejection_reason.as_deref().map(Cow::Borrowed)))
                .or_else(|| told.rejection_reason.0.clone()),
            accepted_at: kept
                .accepted_at
                .or_else(|| row.and_then(|row| row.accepted_at)),
            applied_at: kept
                .applied_at
                .or_else(|| row.and_then(|row| row.applied_at)),
            rejected_at: kept
                .rejected_at
                .or_else(|| row.and_then(|row| row.rejected_at)),
        })
    }
}

/// What the event alone proves; none where the live row must say.
fn status(event_type: &EventType) -> Option<&'static str> {
    use EventType as E;
    match event_type {
        E::StartRejected | E::UpdateRejected => Some("rejected"),
        E::StartAccepted
        | E::SignalReceived
        | E::UpdateAccepted
        | E::UpdateApplied
        | E::UpdateCompleted
        | E::RepairRequested
        | E::CancelRequested
        | E::TerminateRequested
        | E::ArchiveRequested => Some("accepted"),
        _ => None,
    }
}

/// How the command stood right after the event, where the event does not say it itself.
fn outcome<'a>(
    event_type: &EventType,
    told: &TimelineEvent<'_>,
    row: Option<&'a CommandRow>,
) -> Words<'a> {
    use EventType as E;
    let word = match event_type {
        E::SignalReceived => "signal_received",
        // An update has no outcome before it completes, whatever the row says by now.
        E::UpdateAccepted | E::UpdateApplied => return None,
        E::UpdateCompleted if told.failure_id.present => "update_failed",
        E::UpdateCompleted => "update_completed",
        E::CancelRequested => "cancelled",
        E::TerminateRequested => "terminated",
        E::ArchiveRequested => "archived",
        _ => return row.and_then(|row| row.outcome.as_deref().map(Cow::Borrowed)),
    };
    Some(word.into())
}

fn is_container(value: &Value) -> bool {
    value.is_object() || value.is_array()
}
