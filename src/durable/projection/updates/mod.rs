//! The updates of a run: what typed history says, over their rows, over their commands.

mod history;
mod known;
mod line;

use std::{
    collections::{HashMap, HashSet},
    hash::BuildHasher,
};

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;

use self::{
    history::{UpdateHistory, read_events},
    known::{Known, update},
    line::Line,
};
use super::{Context, context::ts, task_links::TaskLink};
use crate::durable::stored::{CommandRow, CommandType, UpdateStatus};

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
    let mut told_commands: HashSet<&str> = HashSet::new();
    let mut told_updates: HashSet<&str> = HashSet::new();
    let mut out = Vec::new();

    for row in &cx.snapshot.updates {
        let events = history.of_update(Some(&row.id), Some(&row.workflow_command_id));
        told_updates.insert(&row.id);
        told_commands.insert(&row.workflow_command_id);
        let known = Known::Row(row, commands.get(row.workflow_command_id.as_str()).copied());
        out.push(update(known, &events, &line, failures));
    }
    for command in &cx.snapshot.commands {
        if command.command_type != CommandType::Update
            || told_commands.contains(command.id.as_str())
        {
            continue;
        }
        let events = history.of_update(None, Some(&command.id));
        told_updates.extend(events.update_id());
        out.push(update(Known::Command(command), &events, &line, failures));
    }
    // Handed over to the run this one continued as: only the events stayed here.
    for id in history.update_ids() {
        if !told_updates.contains(id) {
            let events = history.of_update(Some(id), None);
            out.push(update(Known::Events(id), &events, &line, failures));
        }
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

#[cfg(test)]
impl Update {
    /// Accepted, and nothing more is known of it.
    pub fn example() -> Self {
        let failures = HashMap::<String, UpdateFailure>::new();
        let events = history::Events::default();
        update(Known::Events(""), &events, &Line::of(&[]), &failures)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::durable::{
        projection::example::{at, command, event, history, told},
        store::snapshot::RunSnapshot,
        stored::{CommandStatus, EventType, HistoryEvent, UpdateRow},
    };

    /// `7` as the engine encodes it.
    const SEVEN: &str = "wwHioz3/VYAiNwQO";

    fn one(commands: Vec<CommandRow>, rows: Vec<UpdateRow>, events: Vec<HistoryEvent>) -> Update {
        let snapshot = RunSnapshot {
            commands,
            updates: rows,
            events: history(events),
            ..RunSnapshot::default()
        };
        let failures = HashMap::<String, UpdateFailure>::new();
        let mut all = told(&snapshot, |cx| updates(cx, &failures));
        assert_eq!(all.len(), 1);
        all.remove(0)
    }

    fn row() -> UpdateRow {
        UpdateRow {
            id: "u".into(),
            workflow_command_id: "c".into(),
            status: UpdateStatus::Accepted,
            ..UpdateRow::default()
        }
    }

    #[test]
    fn without_a_row_the_command_counts_before_the_events() {
        let update = one(
            vec![CommandRow {
                status: CommandStatus::Rejected,
                accepted_at: Some(at(100)),
                rejected_at: Some(at(101)),
                rejection_reason: Some("unknown_update".into()),
                payload: Some(SEVEN.into()),
                ..command("c", CommandType::Update)
            }],
            vec![],
            vec![
                event(
                    1,
                    EventType::UpdateAccepted,
                    &json!({"workflow_command_id": "c", "update_id": "u", "arguments": SEVEN}),
                ),
                event(
                    2,
                    EventType::UpdateRejected,
                    &json!({
                        "workflow_command_id": "c",
                        "rejection_reason": "other",
                        "validation_errors": {"by": ["is missing"]},
                    }),
                ),
                event(
                    3,
                    EventType::UpdateApplied,
                    &json!({"workflow_command_id": "c"}),
                ),
                event(
                    4,
                    EventType::UpdateCompleted,
                    &json!({"workflow_command_id": "c"}),
                ),
            ],
        );
        assert_eq!(
            (update.accepted_at, update.applied_at, update.rejected_at),
            (Some(at(100)), None, Some(at(101)))
        );
        // The refusal before the end.
        assert_eq!(update.closed_at, Some(at(2)));
        assert_eq!(update.rejection_reason.as_deref(), Some("unknown_update"));
        assert_eq!(update.validation_errors, json!([]));
        // A payload that is no list of arguments is there, and holds none.
        assert_eq!(
            (update.arguments_available, update.arguments),
            (true, Some(json!([])))
        );
    }

    #[test]
    fn events_alone_know_no_codec_but_their_own() {
        let update = one(
            vec![],
            vec![],
            vec![event(
                1,
                EventType::UpdateAccepted,
                &json!({
                    "update_id": "u",
                    "arguments": SEVEN,
                    "command": {"sequence": 4, "outcome": "accepted"},
                }),
            )],
        );
        assert_eq!(update.payload_codec, None);
        assert_eq!(
            (update.arguments_available, update.arguments),
            (true, Some(json!(7)))
        );
        assert_eq!(update.command_sequence, Some(4));
        assert_eq!(update.outcome, None);
    }

    #[test]
    fn what_an_event_leaves_out_its_row_says() {
        let refused = |payload| vec![event(1, EventType::UpdateRejected, &payload)];
        let errors = |value| Some(crate::db::Json::Value(value));
        for (what, told, stored, want) in [
            (
                "the event's own",
                json!({"update_id": "u", "validation_errors": {"by": ["told"]}}),
                json!({"by": ["stored"]}),
                json!({"by": ["told"]}),
            ),
            (
                "an event that names none",
                json!({"update_id": "u", "validation_errors": []}),
                json!({"by": ["stored"], "at": "no list"}),
                json!({"by": ["stored"]}),
            ),
            ("nobody", json!({"update_id": "u"}), json!([]), json!([])),
        ] {
            let row = UpdateRow {
                validation_errors: errors(stored),
                ..row()
            };
            let update = one(vec![], vec![row], refused(told));
            assert_eq!(update.validation_errors, want, "{what}");
        }
    }

    #[test]
    fn arguments_are_the_first_events_even_if_it_says_there_are_none() {
        for (what, payload, want) in [
            ("no key", json!({"update_id": "u"}), (true, Some(json!(7)))),
            (
                "null",
                json!({"update_id": "u", "arguments": null}),
                (false, None),
            ),
            (
                "a plain list",
                json!({"update_id": "u", "arguments": [1]}),
                (false, Some(json!([1]))),
            ),
        ] {
            let row = UpdateRow {
                arguments: Some(SEVEN.into()),
                ..row()
            };
            let events = vec![event(1, EventType::UpdateAccepted, &payload)];
            let update = one(vec![], vec![row], events);
            assert_eq!(
                (update.arguments_available, update.arguments),
                want,
                "{what}"
            );
        }
    }

    #[test]
    fn a_refused_updates_outcome_is_its_commands() {
        let outcome = |events| {
            let row = UpdateRow {
                outcome: Some("of the row".into()),
                ..row()
            };
            let command = CommandRow {
                outcome: Some("of the command".into()),
                ..command("c", CommandType::Update)
            };
            one(vec![command], vec![row], events).outcome
        };
        let refused = event(1, EventType::UpdateRejected, &json!({"update_id": "u"}));
        assert_eq!(outcome(vec![]).as_deref(), Some("of the row"));
        assert_eq!(outcome(vec![refused]).as_deref(), Some("of the command"));
    }
}
