//! The updates of a run: what typed history says, over their rows, over their commands.

use std::{
    cell::OnceCell,
    collections::{BTreeMap, HashMap, HashSet},
    hash::BuildHasher,
};

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;

use super::{
    Context,
    commands::{CommandPayload, requested_run_id, resolved_run_id},
    context::ts,
    signals::errors,
    task_links::TaskLink,
};
use crate::durable::{
    payload,
    stored::{
        CommandRow, CommandStatus, CommandType, EventType, HistoryEvent, UpdateRow, UpdateStatus,
        loose::Text,
        payloads::{command::CommandSnapshot, update::UpdateEvent},
    },
};

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Update {
    /// None when the update is known by its command alone.
    pub id: Option<String>,
    pub command_id: Option<String>,
    pub command_sequence: Option<i64>,
    pub workflow_sequence: Option<i64>,
    pub name: Option<String>,
    pub target_scope: Option<String>,
    pub requested_run_id: Option<String>,
    pub resolved_run_id: Option<String>,
    pub status: UpdateStatus,
    pub outcome: Option<String>,
    #[serde(flatten)]
    pub admission: Admission,
    pub source: Option<String>,
    pub rejection_reason: Option<String>,
    pub validation_errors: Value,
    pub payload_codec: Option<String>,
    pub arguments_available: bool,
    pub arguments: Option<Value>,
    pub result_available: bool,
    pub result: Option<Value>,
    pub failure_id: Option<String>,
    pub failure_message: Option<String>,
    #[serde(flatten)]
    pub exception: UpdateException,
    #[serde(serialize_with = "ts")]
    pub accepted_at: Option<DateTime<Utc>>,
    #[serde(serialize_with = "ts")]
    pub applied_at: Option<DateTime<Utc>>,
    #[serde(serialize_with = "ts")]
    pub rejected_at: Option<DateTime<Utc>>,
    #[serde(serialize_with = "ts")]
    pub closed_at: Option<DateTime<Utc>>,
    /// `ready`, `queued`, `applied`, `failed`, `rejected`, `closed`.
    pub ordering_state: &'static str,
    #[serde(flatten)]
    pub tasks: TaskLink,
}

/// How the update stood in line when it was accepted.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Admission {
    pub admission_ordering_state: Option<String>,
    pub queued_behind_command_id: Option<String>,
    pub queued_behind_command_sequence: Option<i64>,
    pub queued_behind_command_type: Option<String>,
}

/// The exception of a failed update.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct UpdateException {
    pub exception_type: Option<String>,
    pub exception_class: Option<String>,
    pub exception_resolved_class: Option<String>,
    pub exception_resolution_source: Option<String>,
    pub exception_resolution_error: Option<String>,
    pub exception_replay_blocked: bool,
}

/// What an update needs to know of its failure.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UpdateFailure {
    pub message: Option<String>,
    pub exception: UpdateException,
}

/// The run's failures, by id.
pub trait FailureLookup {
    fn failure(&self, id: &str) -> Option<UpdateFailure>;
}

impl<S: BuildHasher> FailureLookup for HashMap<String, UpdateFailure, S> {
    fn failure(&self, id: &str) -> Option<UpdateFailure> {
        self.get(id).cloned()
    }
}

/// By command sequence, those without one last.
pub fn updates(cx: Context<'_>, failures: &dyn FailureLookup) -> Vec<Update> {
    let read = read_events(cx);
    let history = UpdateHistory::of(&read);
    let commands: HashMap<&str, &CommandRow> = cx
        .snapshot
        .commands
        .iter()
        .map(|command| (command.id.as_str(), command))
        .collect();
    let line = Line::of(&cx.snapshot.commands);
    let mut told = Told::default();
    let mut out = Vec::new();

    for row in &cx.snapshot.updates {
        let events = history.of_update(Some(&row.id), Some(&row.workflow_command_id));
        told.add(&events, Some(&row.id), Some(&row.workflow_command_id));
        let known = Known::Row(row, commands.get(row.workflow_command_id.as_str()).copied());
        out.push(update(cx, known, &events, &line, failures));
    }
    for command in &cx.snapshot.commands {
        if command.command_type != CommandType::Update
            || told.commands.contains(command.id.as_str())
        {
            continue;
        }
        let events = history.of_update(None, Some(&command.id));
        told.add(&events, events.update_id(), Some(&command.id));
        out.push(update(
            cx,
            Known::Command(command),
            &events,
            &line,
            failures,
        ));
    }
    // Handed over to the run this one continued as: only the events stayed here.
    for (id, indices) in &history.by_update {
        if told.updates.contains(*id) || indices.iter().any(|n| told.events.contains(n)) {
            continue;
        }
        let events = history.of_update(Some(id), None);
        out.push(update(cx, Known::Events(id), &events, &line, failures));
    }
    out.sort_by(|a, b| order(a).cmp(&order(b)));
    out
}

fn order(update: &Update) -> (i64, Option<DateTime<Utc>>, Option<&str>) {
    (
        update.command_sequence.unwrap_or(i64::MAX),
        update.accepted_at,
        update.command_id.as_deref().or(update.id.as_deref()),
    )
}

/// What an update is known from beside its events.
#[derive(Clone, Copy)]
enum Known<'a> {
    Row(&'a UpdateRow, Option<&'a CommandRow>),
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

    /// The command, where it stands in for a missing row.
    fn bare_command(self) -> Option<&'a CommandRow> {
        match self {
            Self::Command(command) => Some(command),
            Self::Row(..) | Self::Events(_) => None,
        }
    }
}

/// What has been told already, so that events alone tell only the rest.
#[derive(Default)]
struct Told<'a> {
    updates: HashSet<&'a str>,
    commands: HashSet<&'a str>,
    events: HashSet<usize>,
}

impl<'a> Told<'a> {
    fn add(&mut self, events: &Events<'a>, id: Option<&'a str>, command_id: Option<&'a str>) {
        self.updates.extend(id);
        self.commands.extend(command_id);
        self.events.extend(&events.indices);
    }
}

/// An update's event, read.
struct Read<'a> {
    event: &'a HistoryEvent,
    payload: UpdateEvent,
}

impl Read<'_> {
    fn time(&self) -> Option<DateTime<Utc>> {
        self.event.time()
    }
}

/// Every event of an update, read once.
fn read_events(cx: Context<'_>) -> Vec<Read<'_>> {
    cx.snapshot
        .events
        .iter()
        .filter(|event| {
            matches!(
                event.event_type,
                EventType::UpdateAccepted
                    | EventType::UpdateRejected
                    | EventType::UpdateApplied
                    | EventType::UpdateCompleted
            )
        })
        .map(|event| Read {
            event,
            payload: event.as_payload(),
        })
        .collect()
}

/// The events by the update and the command they name.
struct UpdateHistory<'a> {
    events: &'a [Read<'a>],
    by_update: BTreeMap<&'a str, Vec<usize>>,
    by_command: HashMap<&'a str, Vec<usize>>,
}

impl<'a> UpdateHistory<'a> {
    fn of(events: &'a [Read<'a>]) -> Self {
        let mut by_update: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        let mut by_command: HashMap<&str, Vec<usize>> = HashMap::new();
        for (n, read) in events.iter().enumerate() {
            if let Some(id) = read.payload.update_id.as_deref() {
                by_update.entry(id).or_default().push(n);
            }
            if let Some(id) = read.payload.command_id(read.event) {
                by_command.entry(id).or_default().push(n);
            }
        }
        Self {
            events,
            by_update,
            by_command,
        }
    }

    /// The events that name either id, in the order they happened.
    fn of_update(&self, id: Option<&str>, command_id: Option<&str>) -> Events<'a> {
        let by_update = id.and_then(|id| self.by_update.get(id));
        let by_command = command_id.and_then(|id| self.by_command.get(id));
        let mut indices: Vec<usize> = by_update
            .into_iter()
            .chain(by_command)
            .flatten()
            .copied()
            .collect();
        indices.sort_unstable();
        indices.dedup();
        let mut found = Events::default();
        for read in indices.iter().filter_map(|n| self.events.get(*n)) {
            let slot = match read.event.event_type {
                EventType::UpdateAccepted => &mut found.accepted,
                EventType::UpdateRejected => &mut found.rejected,
                EventType::UpdateApplied => &mut found.applied,
                _ => &mut found.completed,
            };
            slot.get_or_insert(read);
        }
        found.indices = indices;
        found
    }
}

/// The first event of each kind of one update.
#[derive(Default)]
struct Events<'a> {
    accepted: Option<&'a Read<'a>>,
    rejected: Option<&'a Read<'a>>,
    applied: Option<&'a Read<'a>>,
    completed: Option<&'a Read<'a>>,
    indices: Vec<usize>,
}

impl<'a> Events<'a> {
    fn all(&self) -> impl Iterator<Item = &'a Read<'a>> {
        [self.accepted, self.rejected, self.applied, self.completed]
            .into_iter()
            .flatten()
    }

    fn text(&self, pick: fn(&UpdateEvent) -> &Text) -> Option<String> {
        self.all().find_map(|read| pick(&read.payload).0.clone())
    }

    /// A value of the command snapshot the events carry.
    fn snapshot<T>(&self, pick: impl Fn(&CommandSnapshot) -> Option<T>) -> Option<T> {
        self.all()
            .find_map(|read| read.payload.command.as_ref().and_then(|c| pick(c)))
    }

    fn update_id(&self) -> Option<&'a str> {
        self.all()
            .find_map(|read| read.payload.update_id.as_deref())
    }

    fn command_id(&self) -> Option<&'a str> {
        self.all()
            .find_map(|read| read.payload.command_id(read.event))
    }
}

/// The accepted signals not yet applied: an update goes after those that came before it.
struct Line<'a> {
    first: Option<&'a CommandRow>,
}

impl<'a> Line<'a> {
    fn of(commands: &'a [CommandRow]) -> Self {
        Self {
            first: commands
                .iter()
                .filter(|command| command.command_type == CommandType::Signal)
                .filter(|command| command.status == CommandStatus::Accepted)
                .filter(|command| command.applied_at.is_none())
                .min_by_key(|command| command.command_sequence),
        }
    }

    /// The signal before this update; any, for an update that has no sequence.
    fn blocking(&self, command_sequence: Option<i64>) -> Option<&'a CommandRow> {
        self.first
            .filter(|signal| command_sequence.is_none_or(|own| signal.command_sequence < Some(own)))
    }
}

fn update(
    cx: Context<'_>,
    known: Known<'_>,
    events: &Events<'_>,
    line: &Line<'_>,
    failures: &dyn FailureLookup,
) -> Update {
    let (row, command, bare) = (known.row(), known.command(), known.bare_command());
    let status = status(known, events);
    let command_sequence = match bare {
        Some(command) => command.command_sequence,
        None => events
            .accepted
            .and_then(|read| read.payload.command_sequence.strict())
            .or_else(|| events.snapshot(|command| command.sequence.strict()))
            .or_else(|| row?.command_sequence),
    };
    let blocking = (status == UpdateStatus::Accepted)
        .then(|| line.blocking(command_sequence))
        .flatten();
    let ordering_state = ordering_state(&status, blocking.is_some());
    let own_payload = OnceCell::new();
    let own_payload = || {
        own_payload
            .get_or_init(|| command.map(CommandPayload::of))
            .as_ref()
    };

    let payload_codec = match known {
        Known::Row(row, _) => row.payload_codec.clone(),
        Known::Command(command) => command.payload_codec.clone(),
        Known::Events(_) => events
            .snapshot(|command| command.payload_codec.0.clone())
            .or_else(|| cx.snapshot.run.payload_codec.clone()),
    };
    let codec = payload_codec.as_deref();
    let arguments = match (
        events
            .all()
            .find_map(|read| read.payload.arguments.as_ref()),
        row,
    ) {
        (Some(value), _) => payload::decode_value(codec, value).preview(),
        (None, Some(row)) => payload::decode(codec, row.arguments.as_deref()).preview(),
        (None, None) => bare.and_then(|_| own_payload()?.arguments()),
    };
    let failure_id = events
        .completed
        .and_then(|read| read.payload.failure_id.0.clone())
        .or_else(|| row?.failure_id.clone());
    let failure = failure_id.as_deref().and_then(|id| failures.failure(id));
    let result = match (
        &failure_id,
        events.completed.and_then(|read| read.payload.result.seen()),
    ) {
        (Some(_), _) => None,
        (None, Some(result)) => result
            .as_ref()
            .and_then(|value| payload::decode_value(codec, value).preview()),
        (None, None) => row.and_then(|row| payload::decode(codec, row.result.as_deref()).preview()),
    };
    let time = |read: Option<&Read<'_>>| read.and_then(Read::time);

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
            .text(|e| &e.update_name)
            .or_else(|| own_payload()?.name.clone())
            .or_else(|| Some(row?.update_name.clone())),
        target_scope: row
            .map(|row| row.target_scope.clone())
            .or_else(|| Some(command?.target_scope.clone()))
            .or_else(|| events.snapshot(|c| c.target_scope.0.clone())),
        requested_run_id: match known {
            Known::Row(row, _) => row.requested_workflow_run_id.clone(),
            Known::Command(command) => requested_run_id(command),
            Known::Events(_) => None,
        }
        .or_else(|| events.snapshot(|c| c.requested_run_id.0.clone())),
        resolved_run_id: match known {
            Known::Row(row, _) => row.resolved_workflow_run_id.clone(),
            Known::Command(command) => resolved_run_id(command),
            Known::Events(_) => None,
        }
        .or_else(|| events.snapshot(|c| c.resolved_run_id.0.clone())),
        outcome: outcome(known, events),
        admission: admission(events.accepted, &status, ordering_state, blocking),
        source: command
            .map(|command| command.source.clone())
            .or_else(|| events.snapshot(|c| c.source.0.clone())),
        rejection_reason: events
            .rejected
            .and_then(|read| read.payload.rejection_reason.0.clone())
            .or_else(|| {
                events.rejected?;
                events.snapshot(|c| c.rejection_reason.0.clone())
            })
            .or_else(|| row?.rejection_reason.clone())
            .or_else(|| bare?.rejection_reason.clone()),
        validation_errors: events
            .rejected
            .and_then(|read| read.payload.validation_errors.0.clone())
            .filter(|errors| errors.is_object() || errors.is_array())
            .or_else(|| Some(errors(row?.validation_errors.as_ref())))
            .or_else(|| bare.and_then(|_| Some(own_payload()?.validation_errors.clone())))
            .unwrap_or_else(|| Value::Array(Vec::new())),
        arguments_available: arguments.is_some(),
        arguments,
        result_available: result.is_some(),
        result,
        failure_message: failure
            .as_ref()
            .and_then(|failure| failure.message.clone())
            .or_else(|| events.completed?.payload.message.0.clone())
            .or_else(|| row?.failure_message.clone()),
        failure_id,
        exception: failure.map(|failure| failure.exception).unwrap_or_default(),
        accepted_at: time(events.accepted)
            .or_else(|| row?.accepted_at)
            .or_else(|| bare?.accepted_at),
        applied_at: time(events.applied)
            .or_else(|| time(events.completed))
            .or_else(|| row?.applied_at)
            .or_else(|| bare?.applied_at),
        rejected_at: time(events.rejected)
            .or_else(|| row?.rejected_at)
            .or_else(|| bare?.rejected_at),
        closed_at: time(events.completed)
            .or_else(|| time(events.rejected))
            .or_else(|| row?.closed_at)
            .or_else(|| bare?.rejected_at)
            .or_else(|| bare?.applied_at),
        payload_codec,
        status,
        ordering_state,
        tasks: TaskLink::default(),
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
    match known {
        Known::Row(row, command) => row.outcome.clone().or_else(|| command?.outcome.clone()),
        Known::Command(command) => command.outcome.clone(),
        Known::Events(_) => events.snapshot(|command| command.outcome.0.clone()),
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

/// Where the update stands among the commands of its run.
fn ordering_state(status: &UpdateStatus, blocked: bool) -> &'static str {
    match status {
        UpdateStatus::Accepted if blocked => "queued",
        UpdateStatus::Accepted => "ready",
        UpdateStatus::Completed => "applied",
        UpdateStatus::Failed => "failed",
        UpdateStatus::Rejected => "rejected",
        UpdateStatus::Other(_) => "closed",
    }
}

/// As recorded on acceptance; for an update still open, what was not recorded is what holds now.
fn admission(
    accepted: Option<&Read<'_>>,
    status: &UpdateStatus,
    ordering_state: &str,
    blocking: Option<&CommandRow>,
) -> Admission {
    let mut admission = accepted.map_or_else(Admission::default, |read| Admission {
        admission_ordering_state: read.payload.ordering_state.0.clone(),
        queued_behind_command_id: read.payload.queued_behind_command_id.0.clone(),
        queued_behind_command_sequence: read.payload.queued_behind_command_sequence.strict(),
        queued_behind_command_type: read.payload.queued_behind_command_type.0.clone(),
    });
    if *status == UpdateStatus::Accepted {
        admission
            .admission_ordering_state
            .get_or_insert_with(|| ordering_state.to_owned());
        if let Some(signal) = blocking {
            admission
                .queued_behind_command_id
                .get_or_insert_with(|| signal.id.clone());
            admission.queued_behind_command_sequence = admission
                .queued_behind_command_sequence
                .or(signal.command_sequence);
            admission
                .queued_behind_command_type
                .get_or_insert_with(|| signal.command_type.as_str().to_owned());
        }
    }
    admission
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_update_waits_its_turn_only_while_it_is_open() {
        for (status, blocked, want) in [
            ("accepted", false, "ready"),
            ("accepted", true, "queued"),
            ("completed", true, "applied"),
            ("failed", false, "failed"),
            ("rejected", false, "rejected"),
            ("withdrawn", true, "closed"),
        ] {
            assert_eq!(ordering_state(&status.into(), blocked), want, "{status}");
        }
    }
}
