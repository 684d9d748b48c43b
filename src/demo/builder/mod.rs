//! Writes what the engine would have written about one run.
//!
//! A situation tells a story in the engine's own verbs (`schedule`, `begin`, `fail_attempt`,
//! `signal`, `fire` …) while a clock that only the story moves stands in for time. Each verb
//! updates the mutable rows and appends the typed events with their snapshots; [`RunBuilder::build`]
//! turns both into rows and derives the projections at the moment the reader looks.
//!
//! Two habits keep stories short. A step of workflow code needs a leased workflow task, so it
//! claims the ready one by itself; anything from outside first lets that task finish. And `lose_*`
//! verbs take rows away afterwards, which is how most stuck runs come about.

mod activities;
mod children;
mod closing;
mod emit;
mod emit_rows;
mod ids;
mod messages;
mod model;
mod project;
mod schedule;
mod signals;
mod snapshots;
mod start;
mod tasks;
mod thrown;
mod timers;
mod visibility;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Map, Value as Json};

use super::rows::InsertRow;
use crate::durable::payload::avro;

pub use activities::Step;
pub(super) use closing::limit_keys;
pub use emit::{SITUATION_LABEL, STORY_MEMO};
pub use ids::{IdMint, digest};
pub use model::{Group, Policy, Task};
pub use schedule::ScheduleBuilder;
pub use start::Start;
pub use thrown::Thrown;

use model::{
    Activity, Attribute, Child, Command, ConditionWait, Event, Failure, Memo, Relation, Signal,
    SignalWait, Time, Timer, Update,
};

pub fn secs(n: i64) -> TimeDelta {
    TimeDelta::seconds(n)
}

pub fn millis(n: i64) -> TimeDelta {
    TimeDelta::milliseconds(n)
}

pub fn mins(n: i64) -> TimeDelta {
    TimeDelta::minutes(n)
}

pub fn hours(n: i64) -> TimeDelta {
    TimeDelta::hours(n)
}

pub fn days(n: i64) -> TimeDelta {
    TimeDelta::days(n)
}

/// Markers the demo's workers announce; a run pinned to another one waits.
pub const FLEET: [&str; 2] = ["build-2026.10", "build-2026.11"];

/// How long a claim holds, for every task type.
const LEASE: TimeDelta = TimeDelta::seconds(300);

/// One run under construction.
#[derive(Clone, Debug)]
pub struct RunBuilder {
    mint: IdMint,
    /// The story's clock.
    at: Time,
    start: Start,
    run_id: String,
    run_number: u32,
    started_at: Time,
    instance_started_at: Time,
    last_progress_at: Time,
    status: &'static str,
    closed_reason: Option<&'static str>,
    closed_at: Option<Time>,
    output: Option<String>,
    execution_deadline_at: Option<Time>,
    run_deadline_at: Option<Time>,
    archived: Option<(Time, usize, String)>,
    message_sequence: u32,
    message_cursor: u32,
    step: u32,
    is_current: bool,
    events: Vec<Event>,
    tasks: Vec<Task>,
    /// The workflow task whose code is running right now.
    working: Option<String>,
    activities: Vec<Activity>,
    timers: Vec<Timer>,
    conditions: Vec<ConditionWait>,
    signal_waits: Vec<SignalWait>,
    signals: Vec<Signal>,
    updates: Vec<Update>,
    commands: Vec<Command>,
    failures: Vec<Failure>,
    children: Vec<Child>,
    relations: Vec<Relation>,
    attributes: Vec<Attribute>,
    memos: Vec<Memo>,
    /// Rows that belong to no run column: messages, schedules, heartbeats.
    extra: Vec<InsertRow>,
    mark: Option<(&'static str, &'static str)>,
}

impl RunBuilder {
    pub fn run_id(&self) -> &str {
        &self.run_id
    }

    pub fn instance_id(&self) -> &str {
        &self.start.instance
    }

    /// Events so far.
    pub fn history_len(&self) -> usize {
        self.events.len()
    }

    pub fn clock(&self) -> DateTime<Utc> {
        self.at
    }

    /// Lets time go by.
    pub fn pass(&mut self, span: TimeDelta) -> &mut Self {
        self.at += span;
        self
    }

    /// Lets time go by until `at`, never back.
    pub fn pass_until(&mut self, at: DateTime<Utc>) -> &mut Self {
        self.at = self.at.max(at);
        self
    }

    /// Adds a row of a table no verb writes.
    pub fn with_row(&mut self, row: InsertRow) -> &mut Self {
        self.extra.push(row);
        self
    }

    /// Makes this the run the demo points at: a label names the situation, a memo tells it.
    pub fn tells(&mut self, name: &'static str, story: &'static str) -> &mut Self {
        self.mark = Some((name, story));
        self
    }

    fn is_open(&self) -> bool {
        self.closed_at.is_none()
    }

    fn next_step(&mut self) -> u32 {
        self.step += 1;
        self.step
    }

    /// Appends an event. The engine adds the snapshots of the task and the command it has in
    /// hand after its own keys, so they come last here too.
    fn event(
        &mut self,
        kind: &'static str,
        mut payload: Json,
        task: Option<&str>,
        command: Option<usize>,
    ) -> String {
        let fields = payload.as_object_mut().expect("an event payload is a map");
        if let Some(task) = task.and_then(|id| self.tasks.iter().rfind(|t| t.id == id)) {
            fields.insert("task".to_owned(), snapshots::task(task));
        }
        if let Some(index) = command {
            let command = snapshots::command(&self.commands[index], &self.run_id);
            fields.insert("command".to_owned(), command);
        }
        let id = self.mint.row(self.at);
        self.events.push(Event {
            id: id.clone(),
            sequence: u32::try_from(self.events.len() + 1).expect("a history fits in u32"),
            kind,
            payload,
            task: task.map(str::to_owned),
            command,
            at: self.at,
        });
        self.last_progress_at = self.at;
        id
    }
}

/// The engine's text form of an absolute time inside JSON.
fn iso(at: Time) -> String {
    at.format("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

/// The form used by deadlines and schedules: seconds and an offset.
fn iso_offset(at: Time) -> String {
    at.format("%Y-%m-%dT%H:%M:%S+00:00").to_string()
}

/// Encodes plain JSON as a stored payload.
pub(super) fn blob(json: &Json) -> String {
    avro::encode(&avro::Value::from(json))
}

/// Drops null entries, as the engine's snapshots do.
fn compact(json: Json) -> Json {
    match json {
        Json::Object(map) => Json::Object(map.into_iter().filter(|(_, v)| !v.is_null()).collect()),
        other => other,
    }
}

/// Puts the entries of `more` behind those of `base`.
fn extend(base: &mut Json, more: Json) {
    if let (Some(base), Json::Object(more)) = (base.as_object_mut(), more) {
        base.extend(more);
    }
}

/// An object from pairs; empty is the engine's `[]`.
fn object(pairs: impl IntoIterator<Item = (String, Json)>) -> Json {
    let map: Map<String, Json> = pairs.into_iter().collect();
    if map.is_empty() {
        Json::Array(Vec::new())
    } else {
        Json::Object(map)
    }
}

/// `charge-card` or `order.fulfil` as a PHP class name's last part.
fn pascal(kind: &str) -> String {
    kind.split(['.', '-', '_'])
        .map(|word| {
            let mut chars = word.chars();
            chars
                .next()
                .map(|first| first.to_uppercase().collect::<String>() + chars.as_str())
                .unwrap_or_default()
        })
        .collect()
}
