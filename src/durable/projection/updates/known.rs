//! One update from what is left of it: its row with its events, or its command, or events alone.

use std::cell::OnceCell;

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::{
    Admission, FailureLookup, Update,
    history::{Events, Read},
    line::Line,
};
use crate::durable::{
    projection::{
        commands::{CommandPayload, requested_run_id, resolved_run_id},
        task_links::TaskLink,
        typed::Typed,
        validation_errors,
    },
    stored::{
        CommandRow, CommandStatus, UpdateRow, UpdateStatus, loose::Text,
        payloads::command::CommandSnapshot,
    },
};

/// What an update is known from beside its events.
#[derive(Clone, Copy)]
pub(super) enum Known<'a> {
    Row(&'a UpdateRow, Option<&'a CommandRow>),
    /// No row: then the command's own columns count before the events.
    Command(&'a CommandRow),
    Events(&'a str),
}

impl<'a> Known<'a> {
    fn row(self) -> Option<&'a UpdateRow> {
        match self {
            Self::Row(row, _) => Some(row),
            Self::Command(_) | Self::Events(_) => None,
        }
    }

    fn command(self) -> Option<&'a CommandRow> {
        match self {
            Self::Row(_, command) => command,
            Self::Command(command) => Some(command),
            Self::Events(_) => None,
        }
    }
}

pub(super) fn update(
    known: Known<'_>,
    events: &Events<'_>,
    line: &Line<'_>,
    failures: &dyn FailureLookup,
) -> Update {
    let (row, command) = (known.row(), known.command());
    let snapshot = events.command();
    let said =
        |pick: fn(&CommandSnapshot) -> &Text| snapshot.and_then(|command| pick(command).0.clone());
    let own_payload = OnceCell::new();
    let own_payload = || {
        own_payload
            .get_or_init(|| command.map(CommandPayload::of))
            .as_ref()
    };
    let payload_codec = match known {
        Known::Row(row, _) => row.payload_codec.clone(),
        Known::Command(command) => command.payload_codec.clone(),
        Known::Events(_) => said(|c| &c.payload_codec),
    };
    let codec = payload_codec.as_deref();
    let arguments = match known {
        Known::Command(command) => Typed {
            available: command.payload.as_deref().is_some_and(|p| !p.is_empty()),
            shown: own_payload().map(CommandPayload::arguments),
        },
        Known::Row(..) | Known::Events(_) => match events.arguments() {
            Some(value) => Typed::of_value(codec, value.as_ref()),
            None => Typed::of_text(codec, row.and_then(|row| row.arguments.as_deref())),
        },
    };
    let failure_id = events.failure_id().or_else(|| row?.failure_id.clone());
    let failure = failure_id.as_deref().and_then(|id| failures.failure(id));
    let result = match (&failure_id, events.result()) {
        (Some(_), _) => Typed::default(),
        (None, Some(value)) => {
            let own = events
                .completed
                .and_then(|read| read.payload.payload_codec.as_deref());
            Typed::of_value(own.or(codec), value.as_ref())
        }
        (None, None) => Typed::of_text(codec, row.and_then(|row| row.result.as_deref())),
    };
    let moments = moments(known, events);
    let status = status(known, events);
    let command_sequence = match known {
        Known::Command(command) => command.command_sequence,
        Known::Row(..) | Known::Events(_) => events
            .accepted
            .and_then(|read| read.payload.command_sequence.strict())
            .or_else(|| snapshot?.sequence.strict())
            .or_else(|| row?.command_sequence),
    };
    let mut admission = events.accepted.map_or_else(Admission::default, admission);
    let ordering_state = line.place(&status, command_sequence, &mut admission);

    Update {
        id: match known {
            Known::Row(row, _) => Some(row.id.clone()),
            Known::Events(id) => Some(id.to_owned()),
            Known::Command(_) => events.update_id().map(str::to_owned),
        },
        command_id: row
            .map(|row| row.workflow_command_id.as_str())
            .or_else(|| Some(command?.id.as_str()))
            .or_else(|| events.command_id())
            .map(str::to_owned),
        command_sequence,
        workflow_sequence: workflow_sequence(known, events),
        name: events
            .name()
            .or_else(|| own_payload()?.name.clone())
            .or_else(|| Some(row?.update_name.clone())),
        target_scope: row
            .map(|row| row.target_scope.clone())
            .or_else(|| Some(command?.target_scope.clone()))
            .or_else(|| said(|c| &c.target_scope)),
        requested_run_id: match known {
            Known::Row(row, _) => row
                .requested_workflow_run_id
                .clone()
                .or_else(|| said(|c| &c.requested_run_id)),
            Known::Command(command) => requested_run_id(command),
            Known::Events(_) => said(|c| &c.requested_run_id),
        },
        resolved_run_id: match known {
            Known::Row(row, _) => row
                .resolved_workflow_run_id
                .clone()
                .or_else(|| said(|c| &c.resolved_run_id)),
            Known::Command(command) => resolved_run_id(command),
            Known::Events(_) => said(|c| &c.resolved_run_id),
        },
        status,
        outcome: outcome(known, events),
        admission,
        source: command
            .map(|command| command.source.clone())
            .or_else(|| said(|c| &c.source)),
        rejection_reason: match known {
            Known::Command(command) => command.rejection_reason.clone(),
            Known::Row(..) | Known::Events(_) => events
                .rejected
                .and_then(|read| read.payload.rejection_reason.0.clone())
                .or_else(|| row?.rejection_reason.clone()),
        },
        validation_errors: match known {
            Known::Command(_) => own_payload().map_or_else(
                || validation_errors::of(None),
                |payload| payload.validation_errors.clone(),
            ),
            Known::Row(..) | Known::Events(_) => refusal(row, events),
        },
        arguments_available: arguments.available,
        arguments: arguments.shown,
        result_available: result.available,
        result: result.shown,
        failure_message: failure
            .as_ref()
            .and_then(|failure| failure.message.clone())
            .or_else(|| events.completed?.payload.message.0.clone())
            .or_else(|| row?.failure_message.clone()),
        failure_id,
        exception: failure.map(|failure| failure.exception).unwrap_or_default(),
        accepted_at: moments.accepted,
        applied_at: moments.applied,
        rejected_at: moments.rejected,
        closed_at: moments.closed,
        payload_codec,
        ordering_state,
        tasks: TaskLink::default(),
    }
}

/// When each step was taken.
struct Moments {
    accepted: Option<DateTime<Utc>>,
    applied: Option<DateTime<Utc>>,
    rejected: Option<DateTime<Utc>>,
    closed: Option<DateTime<Utc>>,
}

fn moments(known: Known<'_>, events: &Events<'_>) -> Moments {
    let time = |read: Option<&Read<'_>>| read.and_then(Read::time);
    let (accepted, rejected, completed) = (
        time(events.accepted),
        time(events.rejected),
        time(events.completed),
    );
    match known {
        Known::Command(command) => Moments {
            accepted: command.accepted_at,
            applied: command.applied_at,
            rejected: command.rejected_at,
            closed: rejected
                .or(completed)
                .or(command.rejected_at)
                .or(command.applied_at),
        },
        Known::Row(..) | Known::Events(_) => {
            let row = known.row();
            Moments {
                accepted: accepted.or_else(|| row?.accepted_at),
                applied: time(events.applied)
                    .or(completed)
                    .or_else(|| row?.applied_at),
                rejected: rejected.or_else(|| row?.rejected_at),
                closed: completed.or(rejected).or_else(|| row?.closed_at),
            }
        }
    }
}

/// An event that ended it; else its row; else what the command's outcome implies.
fn status(known: Known<'_>, events: &Events<'_>) -> UpdateStatus {
    if let Some(completed) = events.completed {
        return if completed.payload.failure_id.is_some() {
            UpdateStatus::Failed
        } else {
            UpdateStatus::Completed
        };
    }
    if events.rejected.is_some() {
        return UpdateStatus::Rejected;
    }
    match known {
        Known::Row(row, _) => row.status.clone(),
        Known::Command(command) => match (&command.status, command.outcome.as_deref()) {
            (CommandStatus::Rejected, _) => UpdateStatus::Rejected,
            (_, Some("update_completed")) => UpdateStatus::Completed,
            (_, Some("update_failed")) => UpdateStatus::Failed,
            _ => UpdateStatus::Accepted,
        },
        Known::Events(_) => UpdateStatus::Accepted,
    }
}

fn outcome(known: Known<'_>, events: &Events<'_>) -> Option<String> {
    if let Some(completed) = events.completed {
        return Some(if completed.payload.failure_id.is_some() {
            "update_failed".into()
        } else {
            "update_completed".into()
        });
    }
    let refused = events.rejected.is_some();
    let of_command = |command: Option<&CommandRow>| command?.outcome.clone();
    match known {
        // Who refused it knows better than the row.
        Known::Row(row, command) if refused => of_command(command).or_else(|| row.outcome.clone()),
        Known::Row(row, command) => row.outcome.clone().or_else(|| of_command(command)),
        Known::Command(command) => command.outcome.clone(),
        Known::Events(_) if refused => events.command()?.outcome.0.clone(),
        Known::Events(_) => None,
    }
}

fn workflow_sequence(known: Known<'_>, events: &Events<'_>) -> Option<i64> {
    let last = match known {
        Known::Command(_) => events.completed,
        Known::Row(..) | Known::Events(_) => events.applied,
    };
    [events.accepted, events.rejected, last]
        .into_iter()
        .flatten()
        .find_map(|read| read.payload.sequence.strict())
        .or_else(|| known.row()?.workflow_sequence)
}

/// As the event tells it, unless it names nothing.
fn refusal(row: Option<&UpdateRow>, events: &Events<'_>) -> Value {
    let told = events
        .rejected
        .map(|read| validation_errors::of(read.payload.validation_errors.as_ref()))
        .filter(|errors| !validation_errors::is_none(errors));
    told.unwrap_or_else(|| {
        validation_errors::of_column(row.and_then(|row| row.validation_errors.as_ref()))
    })
}

/// As recorded on acceptance.
fn admission(accepted: &Read<'_>) -> Admission {
    let payload = &accepted.payload;
    Admission {
        admission_ordering_state: payload.ordering_state.0.clone(),
        queued_behind_command_id: payload.queued_behind_command_id.0.clone(),
        queued_behind_command_sequence: payload.queued_behind_command_sequence.strict(),
        queued_behind_command_type: payload.queued_behind_command_type.0.clone(),
    }
}
