//! What is wrong with a run's rows: what reading them noted, and what only the whole shows.

use std::collections::HashSet;

use super::{projected::Projected, undecoded};
use crate::{
    db::Val,
    durable::{
        store::snapshot::RunSnapshot,
        stored::{
            ClosedReason, CommandRow, ExecutionRow, HistoryEvent, Notice, Notices, Problem,
            RunSummary, SignalRow, TaskRow, TimerRow, UpdateRow,
        },
    },
    run,
};

/// Every notice of one run.
pub fn notices(p: &Projected<'_>) -> Notices {
    let mut notices = unreadable(p.cx.snapshot);
    gone(p, &mut notices);
    undecodable(p, &mut notices);
    notices
}

/// What cannot be read of the rows that are there, and the gaps in their history.
pub fn unreadable(snapshot: &RunSnapshot) -> Notices {
    let mut notices = snapshot.notices.clone();
    broken_payloads(&snapshot.events, &mut notices);
    gaps(snapshot, &mut notices);
    notices
}

/// The same for a page, with a last line for what was left out.
pub fn shown(notices: &Notices) -> Vec<run::notice::Notice> {
    let mut shown: Vec<_> = notices
        .list()
        .iter()
        .map(|notice| run::notice::Notice {
            place: format!("{}.{}", notice.table, notice.column),
            row: notice.id.clone(),
            problem: notice.problem.sentence().to_owned(),
            raw: notice.raw.clone(),
        })
        .collect();
    if notices.left_out() > 0 {
        shown.push(run::notice::Notice {
            place: format!("{} more values", notices.left_out()),
            row: String::new(),
            problem: "are of the same kinds".to_owned(),
            raw: None,
        });
    }
    shown
}

/// An event's payload is an object; PHP writes an empty one as a list.
fn broken_payloads(events: &[HistoryEvent], notices: &mut Notices) {
    for event in events {
        let Some(text) = event.payload.as_deref() else {
            continue;
        };
        let problem = if !event.payload_is_json() {
            Problem::NotJson
        } else if !text.trim_start().starts_with(['{', '[', 'n']) {
            Problem::NotACollection
        } else {
            continue;
        };
        notices.note(Notice {
            table: HistoryEvent::TABLE,
            id: event.id.clone(),
            column: "payload",
            problem,
            raw: Val::from(text).shown(),
        });
    }
}

/// History is numbered from 1 without gaps, up to what the run says was written last.
fn gaps(snapshot: &RunSnapshot, notices: &mut Notices) {
    let mut note = |after: i64, before: i64| {
        let (first, last) = (after.saturating_add(1), before.saturating_sub(1));
        if first <= last {
            notices.note(Notice {
                table: HistoryEvent::TABLE,
                id: snapshot.run.id.clone(),
                column: "sequence",
                problem: Problem::MissingRows,
                raw: Some(if first == last {
                    first.to_string()
                } else {
                    format!("{first} to {last}")
                }),
            });
        }
    };
    let mut seen = 0;
    for event in &snapshot.events {
        note(seen, event.sequence);
        seen = seen.max(event.sequence);
    }
    if !snapshot.events.is_empty() {
        note(seen, snapshot.run.last_history_sequence.saturating_add(1));
    }
}

/// Rows that history names and that are not there.
fn gone(p: &Projected<'_>, notices: &mut Notices) {
    let snapshot = p.cx.snapshot;
    let mut note = |table, id: &str| {
        notices.note(Notice {
            table,
            id: id.to_owned(),
            column: "id",
            problem: Problem::MissingRow,
            raw: None,
        });
    };
    if snapshot.summary.is_none() {
        note(RunSummary::TABLE, &snapshot.run.id);
    }
    let tasks = ids(&snapshot.tasks, |row| &row.id);
    let commands = ids(&snapshot.commands, |row| &row.id);
    for event in &snapshot.events {
        for (table, known, named) in [
            (TaskRow::TABLE, &tasks, &event.workflow_task_id),
            (CommandRow::TABLE, &commands, &event.workflow_command_id),
        ] {
            if let Some(id) = named
                && !known.contains(id.as_str())
            {
                note(table, id);
            }
        }
    }
    let executions = ids(&snapshot.executions, |row| &row.id);
    for activity in &p.activities {
        if !executions.contains(activity.id.as_str()) {
            note(ExecutionRow::TABLE, &activity.id);
        }
    }
    for timer in p.timers.iter().filter(|timer| timer.row_status.is_none()) {
        note(TimerRow::TABLE, &timer.id);
    }
    // A run that goes on as another hands its open signals and updates over.
    if snapshot.run.closed_reason == Some(ClosedReason::Continued) {
        return;
    }
    let updates = ids(&snapshot.updates, |row| &row.id);
    let told = p.updates.iter().filter_map(|update| update.id.as_deref());
    for id in told.filter(|id| !updates.contains(id)) {
        note(UpdateRow::TABLE, id);
    }
    let signals = ids(&snapshot.signals, |row| &row.id);
    let awaited = p.signal_waits.iter();
    let awaited = awaited.filter_map(|wait| wait.signal_id.as_deref());
    for id in awaited.filter(|id| !signals.contains(id)) {
        note(SignalRow::TABLE, id);
    }
}

fn ids<T>(rows: &[T], id: fn(&T) -> &String) -> HashSet<&str> {
    rows.iter().map(|row| id(row).as_str()).collect()
}

fn undecodable(p: &Projected<'_>, notices: &mut Notices) {
    for undecoded in undecoded::each(p) {
        notices.note(Notice {
            table: undecoded.table,
            id: undecoded.id,
            column: undecoded.column,
            problem: Problem::NotDecodable,
            raw: Val::from(undecoded.text).shown(),
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::durable::{
        projection::example::{event, history, told},
        stored::{EventType, RunRow},
    };

    #[test]
    fn a_row_that_history_names_is_missed() {
        let accepted = event(1, EventType::UpdateAccepted, &json!({"update_id": "u"}));
        let timer = event(2, EventType::TimerScheduled, &json!({"timer_id": "t"}));
        let ran = HistoryEvent {
            workflow_task_id: Some("k".into()),
            workflow_command_id: Some("c".into()),
            ..event(3, EventType::WorkflowCompleted, &json!({}))
        };
        let snapshot = RunSnapshot {
            summary: Some(RunSummary::default()),
            events: history(vec![accepted, timer, ran]),
            ..RunSnapshot::default()
        };
        let missed = |snapshot: &RunSnapshot| -> Vec<(&str, String)> {
            let noted = told(snapshot, |cx| notices(&Projected::of(cx)));
            let missed = noted.list().iter();
            missed
                .filter(|notice| notice.problem == Problem::MissingRow)
                .map(|notice| (notice.table, notice.id.clone()))
                .collect()
        };
        assert_eq!(
            missed(&snapshot),
            [
                ("workflow_tasks", "k".to_owned()),
                ("workflow_commands", "c".to_owned()),
                ("workflow_run_timers", "t".to_owned()),
                ("workflow_updates", "u".to_owned()),
            ]
        );
        let whole = RunSnapshot {
            tasks: vec![TaskRow {
                id: "k".into(),
                ..TaskRow::default()
            }],
            commands: vec![CommandRow {
                id: "c".into(),
                ..CommandRow::default()
            }],
            timers: vec![TimerRow {
                id: "t".into(),
                ..TimerRow::default()
            }],
            updates: vec![UpdateRow {
                id: "u".into(),
                ..UpdateRow::default()
            }],
            ..snapshot
        };
        assert_eq!(missed(&whole), []);
    }

    #[test]
    fn a_payload_nobody_can_decode_is_named_wherever_it_stands() {
        let done = event(
            1,
            EventType::ActivityCompleted,
            &json!({"activity_execution_id": "told", "result": "!told!"}),
        );
        let done_id = done.id.clone();
        let codec = || Some("php-serialize".to_owned());
        let snapshot = RunSnapshot {
            run: RunRow {
                arguments: Some("!run!".into()),
                ..RunRow::default()
            },
            events: history(vec![done]),
            executions: ["told", "row"]
                .map(|id| ExecutionRow {
                    id: id.into(),
                    arguments: Some("!row!".into()),
                    payload_codec: codec(),
                    ..ExecutionRow::default()
                })
                .into(),
            signals: vec![SignalRow {
                id: "s".into(),
                arguments: Some("!signal!".into()),
                ..SignalRow::default()
            }],
            updates: vec![UpdateRow {
                id: "u".into(),
                // Decodable, and so not worth a word.
                arguments: Some("wwHioz3/VYAiNwQO".into()),
                result: Some("!update!".into()),
                ..UpdateRow::default()
            }],
            commands: vec![CommandRow {
                id: "c".into(),
                payload: Some("!command!".into()),
                payload_codec: codec(),
                ..CommandRow::default()
            }],
            ..RunSnapshot::default()
        };
        let noted = told(&snapshot, |cx| notices(&Projected::of(cx)));
        let undecodable: Vec<_> = noted
            .list()
            .iter()
            .filter(|notice| notice.problem == Problem::NotDecodable)
            .map(|notice| {
                let (id, raw) = (notice.id.as_str(), notice.raw.as_deref());
                (notice.table, id, notice.column, raw.unwrap_or_default())
            })
            .collect();
        assert_eq!(
            undecodable,
            [
                ("workflow_runs", "", "arguments", "!run!"),
                ("activity_executions", "row", "arguments", "!row!"),
                ("workflow_history_events", &done_id, "payload", "!told!"),
                ("workflow_signal_records", "s", "arguments", "!signal!"),
                ("workflow_updates", "u", "result", "!update!"),
                ("workflow_commands", "c", "payload", "!command!"),
            ]
        );
    }
}
