//! A bundle read back into the rows it was made of, without trust: what cannot be taken is left
//! out and noted, as with a database's rows.
//!
//! A bundle carries less than the tables. What it lacks stays empty: the namespace, messages,
//! workers, deadlines of activities, a task's last error, other runs beyond the neighbours.

use std::{
    collections::HashMap,
    io::{Read, Seek},
};

use chrono::{DateTime, Utc};
use serde_json::{Map, Value, value::RawValue};

use super::{
    lot::{Events, Lot},
    related::TERMINAL,
    run_rows::RunRows,
    snapshot::{RelatedRun, RunSnapshot, TimelineCache},
};
use crate::{
    db::{DbError, Row, Val},
    durable::{
        export::source::{Items, ReadError, Source, Span, find},
        payload,
        stored::{
            AttemptRow, CommandRow, EventType, ExecutionRow, FailureRecord, HistoryEvent, LinkRow,
            Notice, Notices, Problem, RunRow, RunStatus, RunSummary, SignalRow, TaskRow, TimerRow,
            UpdateRow,
            loose::{self, Int, Text},
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

/// One entry of a bundle: its members, not yet looked at.
type Entry<'t> = HashMap<String, &'t RawValue>;

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
    };
    let workflow = bundle.map("workflow")?;
    let run_id = workflow.text("run_id").ok_or(OpenError::NoRun)?;
    let instance_id = workflow.text("instance_id").unwrap_or_default();
    let payloads = bundle.map("payloads")?;
    let summary = bundle.map("summary")?;
    let links = bundle.map("links")?;
    let own = |column: &str| match column {
        "workflow_run_id" => Some(Val::from(run_id.as_str())),
        "workflow_instance_id" => Some(Val::from(instance_id.as_str())),
        _ => None,
    };
    let table = |columns, renamed| Table {
        columns,
        renamed,
        empty: &[],
        own: &own,
    };

    let mut events = bundle.rows("history_events", |entry| {
        let names = &[("event_type", "type")];
        vec![table(HistoryEvent::COLUMNS, names).row(entry)]
    })?;
    events.sort_by_key(|row| number(row, "sequence"));
    let commands = bundle.rows("commands", |entry| {
        let names = &[
            ("command_type", "type"),
            ("command_sequence", "sequence"),
            ("requested_workflow_run_id", "requested_run_id"),
            ("resolved_workflow_run_id", "resolved_run_id"),
        ];
        let context = Val::from(command_context(entry).to_string());
        vec![table(CommandRow::COLUMNS, names).row_with(entry, "context", context)]
    })?;
    let signals = bundle.rows("signals", |entry| {
        let names = &[
            ("workflow_command_id", "command_id"),
            ("signal_name", "name"),
            ("requested_workflow_run_id", "requested_run_id"),
            ("resolved_workflow_run_id", "resolved_run_id"),
        ];
        vec![table(SignalRow::COLUMNS, names).row(entry)]
    })?;
    let updates = bundle.rows("updates", |entry| {
        let names = &[
            ("workflow_command_id", "command_id"),
            ("update_name", "name"),
        ];
        // Not carried: it is its command's.
        let own = entry
            .get("command_id")
            .and_then(|raw| serde_json::from_str(raw.get()).ok());
        let command = commands.iter().find(|row| row.peek("id") == own);
        let scope = command.and_then(|row| row.peek("target_scope"));
        let scope = Val::from(scope.unwrap_or_default());
        vec![table(UpdateRow::COLUMNS, names).row_with(entry, "target_scope", scope)]
    })?;
    let tasks = bundle.rows("tasks", |entry| {
        vec![table(TaskRow::COLUMNS, &[("task_type", "type")]).row(entry)]
    })?;
    let mut attempts = Vec::new();
    let executions = bundle.rows("activities", |entry| {
        if let Some(tried) = entry.get("attempts") {
            let tried: Vec<&RawValue> = serde_json::from_str(tried.get()).unwrap_or_default();
            attempts.extend(
                tried
                    .into_iter()
                    .filter_map(|attempt| serde_json::from_str(attempt.get()).ok())
                    .map(|attempt: Entry<'_>| table(AttemptRow::COLUMNS, &[]).row(&attempt)),
            );
        }
        let names = &[("status", "source_status")];
        vec![table(ExecutionRow::COLUMNS, names).row(entry)]
    })?;
    let timers = bundle.rows("timers", |entry| {
        // Without a row's status there was no row: history alone tells of it.
        let row = table(TimerRow::COLUMNS, &[("status", "row_status")]).row(entry);
        let had_row = entry
            .get("row_status")
            .is_some_and(|raw| raw.get() != "null");
        if had_row { vec![row] } else { Vec::new() }
    })?;
    let mut failures = bundle.rows("failures", |entry| {
        // History alone may tell of a failure, and then knows less of it than a row.
        let row = Table {
            empty: &["file", "message", "exception_class"],
            ..table(FailureRecord::COLUMNS, &[])
        };
        vec![row.row(entry)]
    })?;
    failures.sort_by(|a, b| b.peek("created_at").cmp(&a.peek("created_at")));
    let relatives = links.relatives(&mut bundle.notices);
    let policies = close_policies(&events);
    let link_rows = relatives
        .iter()
        .map(|relative| {
            let row = table(LinkRow::COLUMNS, &[("link_type", "type")]);
            let entry = &relative.entry;
            let sequence = entry.0.get("sequence").and_then(Value::as_i64);
            let policy = sequence.and_then(|sequence| policies.get(&sequence));
            let policy = policy.filter(|_| !relative.is_parent).cloned();
            let policy = Val::from(policy.unwrap_or_default());
            row.row_with(entry, "parent_close_policy", policy)
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
        run,
    })
}

struct Bundle<R> {
    source: Source<R>,
    members: Vec<(String, Span)>,
    notices: Notices,
}

impl<R: Read + Seek> Bundle<R> {
    fn note(&mut self, section: &'static str, id: String, problem: Problem, raw: &str) {
        self.notices.note(Notice {
            table: "bundle",
            id,
            column: section,
            problem,
            raw: Val::from(raw).shown(),
        });
    }

    /// A section that is a map. PHP writes an empty one as a list.
    fn map(&mut self, section: &'static str) -> Result<Section, ReadError> {
        let Some(span) = find(&self.members, section) else {
            return Ok(Section::default());
        };
        let text = self.source.text(span)?;
        Ok(match serde_json::from_slice(&text) {
            Ok(Value::Object(map)) => Section(map),
            Ok(Value::Null) => Section::default(),
            Ok(Value::Array(list)) if list.is_empty() => Section::default(),
            _ => {
                let text = String::from_utf8_lossy(&text);
                self.note(section, String::new(), Problem::NotARow, &text);
                Section::default()
            }
        })
    }

    fn moment(&mut self, member: &'static str) -> Result<Option<DateTime<Utc>>, ReadError> {
        let Some(span) = find(&self.members, member) else {
            return Ok(None);
        };
        let text = self.source.text(span)?;
        let text: Option<String> = serde_json::from_slice(&text).ok();
        Ok(text.and_then(|text| text.parse().ok()))
    }

    /// A section that is a list, entry by entry.
    fn rows(
        &mut self,
        section: &'static str,
        mut of: impl FnMut(&Entry<'_>) -> Vec<Row>,
    ) -> Result<Vec<Row>, ReadError> {
        let Some(span) = find(&self.members, section) else {
            return Ok(Vec::new());
        };
        if self.source.first(span)? != Some(b'[') {
            let text = self.source.text(span)?;
            let text = String::from_utf8_lossy(&text);
            if text != "null" {
                self.note(section, String::new(), Problem::NotAList, &text);
            }
            return Ok(Vec::new());
        }
        let mut rows = Vec::new();
        let mut odd: Vec<(usize, String)> = Vec::new();
        let mut count = 0;
        self.source.items(span, |source, items| {
            let (from, text) = match items {
                Items::Several(from, text) => (from, text),
                Items::Long(item) => (item.from, source.text(item)?),
            };
            let text = [b"[", text.as_slice(), b"]"].concat();
            let entries: Vec<&RawValue> =
                serde_json::from_slice(&text).map_err(|error| ReadError::Json {
                    at: from + error.column().saturating_sub(2) as u64,
                    reason: "not a JSON value",
                })?;
            for entry in entries {
                match serde_json::from_str::<Entry<'_>>(entry.get()) {
                    Ok(entry) => rows.extend(of(&entry)),
                    Err(_) => odd.push((count, entry.get().chars().take(200).collect())),
                }
                count += 1;
            }
            Ok(())
        })?;
        for (n, text) in odd {
            self.note(section, format!("#{n}"), Problem::NotARow, &text);
        }
        Ok(rows)
    }
}

/// A section that is a map.
#[derive(Clone, Debug, Default)]
struct Section(Map<String, Value>);

impl Section {
    fn text(&self, key: &str) -> Option<String> {
        let text = self.0.get(key)?.as_str()?;
        (!text.is_empty()).then(|| text.to_owned())
    }

    fn object(&self, key: &str) -> Map<String, Value> {
        match self.0.get(key) {
            Some(Value::Object(map)) => map.clone(),
            _ => Map::new(),
        }
    }

    fn cell(&self, key: &str) -> Val {
        self.0.get(key).map_or(Val::Null, val)
    }

    /// The runs this section names, as links.
    fn relatives(&self, notices: &mut Notices) -> Vec<Relative> {
        let mut found = Vec::new();
        for side in ["parents", "children"] {
            let entries = self.0.get(side).and_then(Value::as_array);
            for (n, entry) in entries.into_iter().flatten().enumerate() {
                let Value::Object(map) = entry else {
                    notices.note(Notice {
                        table: "bundle",
                        id: format!("{side} #{n}"),
                        column: "links",
                        problem: Problem::NotARow,
                        raw: Val::from(entry.to_string()).shown(),
                    });
                    continue;
                };
                found.push(Relative {
                    entry: Section(map.clone()),
                    is_parent: side == "parents",
                });
            }
        }
        found
    }
}

/// The other end of a link.
struct Relative {
    entry: Section,
    is_parent: bool,
}

impl Relative {
    fn id(&self, what: &str) -> Option<String> {
        let side = if self.is_parent { "parent" } else { "child" };
        self.entry.text(&format!("{side}_workflow_{what}_id"))
    }
}

/// Where the members of an entry go.
trait Members {
    fn cell(&self, key: &str) -> Val;
}

impl Members for Entry<'_> {
    fn cell(&self, key: &str) -> Val {
        let Some(raw) = self.get(key).map(|raw| raw.get()) else {
            return Val::Null;
        };
        match raw.as_bytes().first() {
            // Kept as it is written: numbers in it keep their kind, and its depth costs nothing.
            Some(b'[' | b'{') if !raw.contains("\"external_storage\"") => Val::from(raw),
            _ => serde_json::from_str(raw).map_or_else(|_| Val::from(raw), |value| val(&value)),
        }
    }
}

impl Members for Section {
    fn cell(&self, key: &str) -> Val {
        Self::cell(self, key)
    }
}

/// A cell for what a bundle says. Whether the column can hold it is asked when it is read.
fn val(value: &Value) -> Val {
    match value {
        Value::Null => Val::Null,
        Value::Bool(flag) => Val::Bool(*flag),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(number), _) => Val::Int(number),
            (None, Some(number)) => Val::Float(number),
            (None, None) => Val::from(number.to_string()),
        },
        other => payload::restored(other).map_or(Val::Null, Val::from),
    }
}

/// How the rows of a table are made from the entries of a section.
struct Table<'a> {
    columns: &'static str,
    /// Columns that have another name in a bundle.
    renamed: &'static [(&'static str, &'static str)],
    /// Columns that are never null, and empty where a bundle does not carry them.
    empty: &'static [&'static str],
    /// What every row of the run says of itself.
    own: &'a dyn Fn(&str) -> Option<Val>,
}

impl Table<'_> {
    fn row(&self, entry: &impl Members) -> Row {
        self.row_with(entry, "", Val::Null)
    }

    fn row_with(&self, entry: &impl Members, column: &str, value: Val) -> Row {
        let mut value = Some(value);
        Row::of(self.columns.split(", ").map(|name| {
            let renamed = self.renamed.iter().find(|(own, _)| *own == name);
            let cell = if name == column {
                value.take().unwrap_or(Val::Null)
            } else if let Some(own) = (self.own)(name) {
                own
            } else {
                entry.cell(renamed.map_or(name, |(_, carried)| carried))
            };
            let cell = match cell {
                Val::Null if self.empty.contains(&name) => Val::from(""),
                cell => cell,
            };
            (name.to_owned(), cell)
        }))
    }
}

fn run_row(workflow: &Section, payloads: &Section, commands: &[Row]) -> Row {
    let payload = |part: &str, key: &str| payloads.0.get(part).and_then(|part| part.get(key));
    let last_command = commands
        .iter()
        .filter_map(|row| number(row, "command_sequence"))
        .max();
    let columns = RunRow::COLUMNS.split(", ").chain([
        "instance_namespace",
        "instance_business_key",
        "instance_visibility_labels",
        "instance_execution_timeout_seconds",
    ]);
    Row::of(columns.map(|column| {
        let cell = match column {
            "id" => workflow.cell("run_id"),
            "workflow_instance_id" => workflow.cell("instance_id"),
            "payload_codec" => payloads.cell("codec"),
            "arguments" => payload("arguments", "data").map_or(Val::Null, val),
            "output" => payload("output", "data").map_or(Val::Null, val),
            "output_payload_codec" => payload("output", "codec").map_or(Val::Null, val),
            "last_command_sequence" => last_command.map_or(Val::Null, Val::Int),
            column => workflow.cell(column),
        };
        (column.to_owned(), cell)
    }))
}

fn number(row: &Row, column: &str) -> Option<i64> {
    row.cells().find_map(|cell| match cell {
        (name, Val::Int(number)) if name == column => Some(*number),
        _ => None,
    })
}

/// The stored summary; what it repeats of the run is taken from there.
fn summary_row(workflow: &Section, summary: &Section) -> Row {
    Row::of(RunSummary::COLUMNS.split(", ").map(|column| {
        let cell = match column {
            "id" => workflow.cell("run_id"),
            "workflow_instance_id" => workflow.cell("instance_id"),
            "class" => workflow.cell("workflow_class"),
            "run_number" | "workflow_type" | "compatibility" | "connection" | "queue" => {
                workflow.cell(column)
            }
            column => summary.cell(column),
        };
        (column.to_owned(), cell)
    }))
}

/// A command's context as it is stored, from the members a bundle spreads it over.
fn command_context(entry: &Entry<'_>) -> Value {
    let said = |key: &str| -> Value {
        entry
            .get(key)
            .and_then(|raw| serde_json::from_str(raw.get()).ok())
            .unwrap_or_default()
    };
    let mut context = match said("context") {
        Value::Object(context) => context,
        _ => Map::new(),
    };
    let mut part = |name: &str, members: &[(&str, &str)]| {
        let members = members
            .iter()
            .map(|(member, key)| ((*member).to_owned(), said(key)))
            .collect();
        context
            .entry(name)
            .or_insert_with(|| Value::Object(members));
    };
    part("caller", &[("label", "caller_label")]);
    part(
        "auth",
        &[("status", "auth_status"), ("method", "auth_method")],
    );
    part(
        "principal",
        &[
            ("type", "principal_type"),
            ("id", "principal_id"),
            ("label", "principal_label"),
        ],
    );
    part(
        "request",
        &[
            ("method", "request_method"),
            ("path", "request_path"),
            ("route_name", "request_route_name"),
            ("fingerprint", "request_fingerprint"),
            ("request_id", "request_id"),
            ("correlation_id", "correlation_id"),
        ],
    );
    Value::Object(context)
}

/// What becomes of a child when its parent closes.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
struct Scheduled {
    sequence: Int,
    parent_close_policy: Text,
}

/// A link does not carry the policy, but the event that made the child does.
fn close_policies(events: &[Row]) -> HashMap<i64, String> {
    let scheduled = EventType::ChildWorkflowScheduled;
    events
        .iter()
        .filter(|row| row.peek("event_type") == Some(scheduled.as_str()))
        .map(|row| loose::read::<Scheduled>(row.peek("payload")))
        .filter_map(|told| Some((told.sequence.get()?, told.parent_close_policy.0?)))
        .collect()
}

/// What only a run's first event still tells.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
struct Started {
    continued_from_run_id: Text,
    execution_deadline_at: Text,
    run_deadline_at: Text,
}

fn started(run: &RunSnapshot) -> Started {
    let first = run
        .events
        .iter()
        .find(|event| event.event_type == EventType::WorkflowStarted);
    loose::read(first.and_then(|event| event.payload.as_deref()))
}

/// The run itself and those its links name, as far as they are known.
fn related(run: &RunSnapshot, workflow: &Section, relatives: &[Relative]) -> Vec<RelatedRun> {
    let last = run.events.iter().rev().map(|event| &event.event_type);
    let own = RelatedRun {
        run: run.run.clone(),
        status_bucket: run.summary.as_ref().map(|row| row.status_bucket.clone()),
        closed_reason: run
            .summary
            .as_ref()
            .and_then(|row| row.closed_reason.clone()),
        summary_started_at: run.summary.as_ref().and_then(|row| row.started_at),
        summary_closed_at: run.summary.as_ref().and_then(|row| row.closed_at),
        continued_from_run_id: started(run).continued_from_run_id.0,
        terminal_event: last.clone().find(|word| TERMINAL.contains(word)).cloned(),
    };
    let mut found = vec![own.clone()];
    for relative in relatives {
        let entry = &relative.entry;
        // One that has no number was known by its link alone.
        let number = entry.0.get("run_number").and_then(Value::as_i64);
        let (Some(id), Some(instance), Some(number)) =
            (relative.id("run"), relative.id("instance"), number)
        else {
            continue;
        };
        if found.iter().any(|known| known.run.id == id) {
            continue;
        }
        let continues = entry.text("type").as_deref() == Some("continue_as_new");
        let mut other = blank(&own, &id, &instance);
        other.run.run_number = number;
        other.run.workflow_type = entry.text("workflow_type").unwrap_or_default();
        other.run.workflow_class = entry.text("class").unwrap_or_default();
        other.run.status = RunStatus::from(entry.text("status").unwrap_or_default());
        other.run.closed_reason = entry.text("closed_reason").map(Into::into);
        other.status_bucket = entry.text("status_bucket").map(Into::into);
        other.closed_reason.clone_from(&other.run.closed_reason);
        other.continued_from_run_id =
            (continues && !relative.is_parent).then(|| run.run.id.clone());
        found.push(other);
    }
    // The current run may be one no link names. Its number is not carried: at least the next.
    if let Some(id) = workflow.text("current_run_id")
        && found.iter().all(|known| known.run.id != id)
    {
        let mut current = blank(&own, &id, &run.run.workflow_instance_id);
        current.run.run_number = run.run.run_number.saturating_add(1);
        current.run.workflow_type.clone_from(&run.run.workflow_type);
        found.push(current);
    }
    found.sort_by(|a, b| {
        let (a, b) = (&a.run, &b.run);
        (&a.workflow_instance_id, a.run_number).cmp(&(&b.workflow_instance_id, b.run_number))
    });
    found
}

/// Another run of which nothing is known but its ids.
fn blank(own: &RelatedRun, id: &str, instance: &str) -> RelatedRun {
    RelatedRun {
        run: RunRow {
            id: id.to_owned(),
            workflow_instance_id: instance.to_owned(),
            workflow_class: String::new(),
            workflow_type: String::new(),
            status: RunStatus::from(String::new()),
            closed_reason: None,
            business_key: None,
            visibility_labels: None,
            arguments: None,
            output: None,
            started_at: None,
            closed_at: None,
            archived_at: None,
            last_progress_at: None,
            ..own.run.clone()
        },
        status_bucket: None,
        closed_reason: None,
        summary_started_at: None,
        summary_closed_at: None,
        continued_from_run_id: None,
        terminal_event: None,
    }
}
