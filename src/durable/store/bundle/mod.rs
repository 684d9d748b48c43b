//! A bundle read back into the rows it was made of, without trust: what cannot be taken is left
//! out and noted, as with a database's rows.
//!
//! A bundle carries less than the tables. What it lacks stays empty: the namespace, messages,
//! workers, deadlines of activities, a task's last error, other runs beyond the neighbours.

mod related;
mod room;
mod rows;
mod sections;

use std::{
    collections::HashMap,
    io::{Read, Seek},
};

use chrono::{DateTime, Utc};
use serde_json::{Value, value::RawValue};

use self::{
    related::{close_policies, related, started},
    room::{ENTRY, Room, parts},
    rows::{Table, command_context, number, run_row, summary_row},
    sections::{Bundle, Entry},
};
use super::{
    lot::{Events, Lot},
    run_rows::RunRows,
    snapshot::{RunSnapshot, TimelineCache},
};
use crate::{
    db::{Columns, DbError, Val},
    durable::{
        export::source::{ReadError, Source},
        stored::{
            AttemptRow, CommandRow, ExecutionRow, FailureRecord, HistoryEvent, LinkRow, Notices,
            SignalRow, TaskRow, TimerRow, UpdateRow, loose::Text,
        },
    },
};

/// A bundle as a run, and when it was one.
#[derive(Clone, Debug)]
pub struct Opened {
    pub run: RunSnapshot,
    pub exported_at: Option<DateTime<Utc>>,
    /// The policy its contents were redacted by.
    pub redacted_by: Option<String>,
    /// How many cells its rows have, about.
    pub cells: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("the document is no object")]
    NotAnObject,
    #[error("it says of no run: workflow.run_id is missing")]
    NoRun,
    /// A column that was never asked for: a mistake of ours, not of the file.
    #[error(transparent)]
    Rows(#[from] DbError),
}

/// Reads what a page needs of a bundle; sections derived from others are not looked at.
pub fn open(file: impl Read + Seek) -> Result<Opened, OpenError> {
    let mut source = Source::new(file).map_err(ReadError::from)?;
    let document = source.document()?;
    if source.first(document)? != Some(b'{') {
        return Err(OpenError::NotAnObject);
    }
    let members = source.members(document)?;
    let mut bundle = Bundle {
        source,
        members,
        notices: Notices::default(),
        room: Room::of(document.to),
    };
    let workflow = bundle.map("workflow")?;
    let run_id = workflow.text("run_id").ok_or(OpenError::NoRun)?;
    let instance_id = workflow.text("instance_id").unwrap_or_default();
    let payloads = bundle.map("payloads")?;
    let summary = bundle.map("summary")?;
    let own = |column: &str| match column {
        "workflow_run_id" => Some(Val::from(run_id.as_str())),
        "workflow_instance_id" => Some(Val::from(instance_id.as_str())),
        _ => None,
    };
    let table = |columns: &str, renamed| Table {
        columns: Columns::named(columns.split(", ")),
        renamed,
        empty: &[],
        own: &own,
    };

    let into = table(HistoryEvent::COLUMNS, &[("event_type", "type")]);
    let mut events = bundle.rows("history_events", |entry, _| Ok(vec![into.row(entry)]))?;
    events.sort_by_key(|row| number(row, "sequence"));
    let into = table(
        CommandRow::COLUMNS,
        &[
            ("command_type", "type"),
            ("command_sequence", "sequence"),
            ("requested_workflow_run_id", "requested_run_id"),
            ("resolved_workflow_run_id", "resolved_run_id"),
        ],
    );
    let commands = bundle.rows("commands", |entry, room| {
        let context = Val::from(command_context(entry, room)?.to_string());
        Ok(vec![into.row_with(entry, "context", context)])
    })?;
    let into = table(
        SignalRow::COLUMNS,
        &[
            ("workflow_command_id", "command_id"),
            ("signal_name", "name"),
            ("requested_workflow_run_id", "requested_run_id"),
            ("resolved_workflow_run_id", "resolved_run_id"),
        ],
    );
    let signals = bundle.rows("signals", |entry, _| Ok(vec![into.row(entry)]))?;
    let scopes: HashMap<&str, &str> = commands
        .iter()
        .filter_map(|row| Some((row.peek("id")?, row.peek("target_scope")?)))
        .collect();
    let into = table(
        UpdateRow::COLUMNS,
        &[
            ("workflow_command_id", "command_id"),
            ("update_name", "name"),
        ],
    );
    let updates = bundle.rows("updates", |entry, _| {
        // Not carried: it is its command's.
        let command: Option<&str> = entry
            .get("command_id")
            .and_then(|raw| serde_json::from_str(raw.get()).ok());
        let scope = command.and_then(|id| scopes.get(id).copied());
        let scope = Val::from(scope.unwrap_or_default());
        Ok(vec![into.row_with(entry, "target_scope", scope)])
    })?;
    let into = table(TaskRow::COLUMNS, &[("task_type", "type")]);
    let tasks = bundle.rows("tasks", |entry, _| Ok(vec![into.row(entry)]))?;
    let into = table(ExecutionRow::COLUMNS, &[("status", "source_status")]);
    let executions = bundle.rows("activities", |entry, _| Ok(vec![into.row(entry)]))?;
    let into = table(AttemptRow::COLUMNS, &[]);
    let attempts = bundle.rows("activities", |entry, room| {
        let Some(tried) = entry.get("attempts") else {
            return Ok(Vec::new());
        };
        // Looked at one by one only if they are not too many.
        room.take(parts(tried.get()))?;
        let tried: Vec<&RawValue> = serde_json::from_str(tried.get()).unwrap_or_default();
        let mut rows = Vec::new();
        for attempt in tried {
            if let Ok(attempt) = serde_json::from_str::<Entry<'_>>(attempt.get()) {
                room.take(ENTRY)?;
                rows.push(into.row(&attempt));
            }
        }
        Ok(rows)
    })?;
    let into = table(TimerRow::COLUMNS, &[("status", "row_status")]);
    let timers = bundle.rows("timers", |entry, _| {
        // Without a row's status there was no row: history alone tells of it.
        let had_row = entry
            .get("row_status")
            .is_some_and(|raw| raw.get() != "null");
        Ok(had_row.then(|| into.row(entry)).into_iter().collect())
    })?;
    let into = Table {
        // History alone may tell of a failure, and then knows less of it than a row.
        empty: &["file", "message", "exception_class"],
        ..table(FailureRecord::COLUMNS, &[])
    };
    let mut failures = bundle.rows("failures", |entry, _| Ok(vec![into.row(entry)]))?;
    failures.sort_by(|a, b| b.peek("created_at").cmp(&a.peek("created_at")));
    let relatives = bundle.relatives()?;
    let into = table(LinkRow::COLUMNS, &[("link_type", "type")]);
    let policies = close_policies(&events);
    let link_rows = relatives
        .iter()
        .map(|relative| {
            let entry = &relative.entry;
            let sequence = entry.0.get("sequence").and_then(Value::as_i64);
            let policy = sequence.and_then(|sequence| policies.get(&sequence));
            let policy = policy.filter(|_| !relative.is_parent).cloned();
            let policy = Val::from(policy.unwrap_or_default());
            into.row_with(entry, "parent_close_policy", policy)
        })
        .collect();

    let rows = RunRows {
        run: run_row(&workflow, &payloads, &commands),
        summary: if summary.0.is_empty() {
            Lot::default()
        } else {
            vec![summary_row(&workflow, &summary)].into()
        },
        events: Events::Rows(events.into()),
        links: link_rows,
        tasks: tasks.into(),
        executions: executions.into(),
        attempts: attempts.into(),
        timers: timers.into(),
        commands: commands.into(),
        signals: signals.into(),
        updates: updates.into(),
        failures: failures.into(),
        free_form: Vec::new(),
        related: Vec::new(),
        timeline_entries: Lot::default(),
        messages: Lot::default(),
        wait_entries: Lot::default(),
        timer_entries: Lot::default(),
        lineage_entries: Lot::default(),
        heartbeats: Vec::new(),
    };
    let mut run = RunSnapshot::of(rows, TimelineCache::Presence)?;
    run.notices.extend(&bundle.notices);
    run.memo = workflow.object("memo");
    run.search_attributes = workflow.object("search_attributes");
    run.story = run
        .memo
        .get(crate::demo::STORY_MEMO)
        .and_then(Value::as_str)
        .map(str::to_owned);
    let first = started(&run);
    let moment = |text: Text| text.0.and_then(|text| text.parse().ok());
    run.run.execution_deadline_at = moment(first.execution_deadline_at);
    run.run.run_deadline_at = moment(first.run_deadline_at);
    run.related = related(&run, &workflow, &relatives);
    let redaction = bundle.map("redaction")?;
    Ok(Opened {
        exported_at: bundle.moment("exported_at")?,
        redacted_by: redaction.text("policy"),
        cells: bundle.room.taken(),
        run,
    })
}
