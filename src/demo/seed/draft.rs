//! One run in the making: a cursor in time, and the rows written down as it moves.

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use fastrand::Rng;
use serde_json::{Map, Value as Json, json};

use super::{activity::Snapped, ids::Ids, mix::Kind};
use crate::demo::rows::{InsertRow, json_text};

pub type Time = DateTime<Utc>;

pub const CODEC: &str = "avro";

/// A moment inside an event: microseconds and a `Z`.
pub fn stamp(at: Time) -> String {
    at.to_rfc3339_opts(SecondsFormat::Micros, true)
}

/// Who a run is.
#[derive(Clone, Debug)]
pub struct Identity {
    pub run: String,
    pub instance: String,
    pub number: i64,
    pub kind: &'static Kind,
    pub namespace: Option<&'static str>,
    pub business_key: Option<String>,
    pub started: Time,
}

/// What an event is about, which decides how a timeline shows it.
#[derive(Clone, Debug)]
pub enum Subject {
    Run,
    SideEffect,
    Command(String),
    Activity(String),
    Timer(String),
    /// The child's run.
    Child(String),
    /// The kind (`signal`, `condition`) and the wait.
    Wait(&'static str, String),
}

#[derive(Debug)]
pub struct Event {
    pub id: String,
    pub name: &'static str,
    pub at: Time,
    pub subject: Subject,
    pub task: Option<String>,
    pub command: Option<(String, i64)>,
    pub failure: Option<String>,
}

/// A row of `workflow_run_waits` before it has a position.
#[derive(Debug)]
pub struct Wait {
    pub id: String,
    pub kind: &'static str,
    pub step: i64,
    pub status: &'static str,
    pub source_status: &'static str,
    pub opened: Time,
    pub deadline: Option<Time>,
    pub resolved: Option<Time>,
    pub target_name: Option<String>,
    pub target_type: Option<String>,
    /// Id, type and status of the task behind it.
    pub task: Option<(String, &'static str, &'static str)>,
    pub resume: (&'static str, Option<String>),
}

/// A row of `workflow_run_timer_entries` before it has a position.
#[derive(Debug)]
pub struct Timer {
    pub id: String,
    pub step: i64,
    pub status: &'static str,
    pub delay: i64,
    pub fire_at: Time,
    pub fired_at: Option<Time>,
    pub cancelled_at: Option<Time>,
}

/// A row of `workflow_run_lineage_entries`.
#[derive(Debug)]
pub struct Relative {
    pub direction: &'static str,
    pub link: String,
    pub link_type: &'static str,
    pub child_call: bool,
    pub step: Option<i64>,
    pub who: Identity,
    pub status: &'static str,
    pub closed_reason: Option<&'static str>,
    pub at: Time,
}

/// Where the run stands when the story ends.
#[derive(Debug)]
pub enum Ending {
    Closed {
        status: &'static str,
        reason: &'static str,
    },
    Open(OpenState),
}

#[derive(Debug)]
pub struct OpenState {
    /// Index into the draft's waits of the one that is shown in lists.
    pub wait: Option<usize>,
    pub liveness: &'static str,
    pub next_task: Option<NextTask>,
}

#[derive(Clone, Debug)]
pub struct NextTask {
    pub id: String,
    pub task_type: &'static str,
    pub status: &'static str,
    pub available: Time,
    pub lease_expires: Option<Time>,
}

#[derive(Debug)]
pub struct Draft<'g> {
    pub ids: &'g mut Ids,
    pub rng: &'g mut Rng,
    pub clock: Time,
    pub who: Identity,
    /// Where the story has got to.
    pub at: Time,
    /// How much time passes between two happenings, on average.
    pub pace: TimeDelta,
    pub rows: Vec<InsertRow>,
    pub events: Vec<Event>,
    pub history_bytes: i64,
    pub waits: Vec<Wait>,
    pub timers: Vec<Timer>,
    pub relatives: Vec<Relative>,
    pub failures: i64,
    pub commands: i64,
    pub run_timeout: Option<i64>,
    pub output: Option<&'static str>,
    pub arguments: &'static str,
    /// Of a long run: what its activities are called with, and that events hold all of it.
    pub snapped: Option<Snapped>,
    /// The workflow task in whose name events are now written.
    pub task: Option<String>,
    step: i64,
}

impl<'g> Draft<'g> {
    pub fn new(ids: &'g mut Ids, rng: &'g mut Rng, clock: Time, who: Identity) -> Self {
        let arguments = super::mix::ARGUMENTS[rng.usize(..super::mix::ARGUMENTS.len())];
        Self {
            ids,
            rng,
            clock,
            at: who.started,
            who,
            pace: TimeDelta::milliseconds(20),
            rows: Vec::with_capacity(24),
            events: Vec::with_capacity(8),
            history_bytes: 0,
            waits: Vec::new(),
            timers: Vec::new(),
            relatives: Vec::new(),
            failures: 0,
            commands: 0,
            run_timeout: None,
            output: None,
            arguments,
            snapped: None,
            task: None,
            step: 0,
        }
    }

    /// The position of the next step in workflow code.
    pub fn next_step(&mut self) -> i64 {
        self.step += 1;
        self.step
    }

    /// Lets about one pace of time pass, at least a microsecond.
    pub fn pass(&mut self) {
        let micros = self.pace.num_microseconds().unwrap_or(1).max(2);
        self.at += TimeDelta::microseconds(self.rng.i64(micros / 2..=micros + micros / 2));
    }

    /// Jumps to shortly before the clock, for what must be recent to be healthy.
    pub fn catch_up(&mut self, within: TimeDelta) {
        let micros = within.num_microseconds().unwrap_or(1).max(2);
        let near = self.clock - TimeDelta::microseconds(self.rng.i64(1..micros));
        self.at = self.at.max(near);
    }

    pub fn event(&mut self, event_type: &'static str, subject: Subject, payload: &Json) {
        self.record(event_type, subject, payload, None, None);
    }

    pub fn failure_event(
        &mut self,
        event_type: &'static str,
        subject: Subject,
        payload: &Json,
        failure: &str,
    ) {
        self.record(event_type, subject, payload, None, Some(failure.to_owned()));
    }

    pub fn command_event(
        &mut self,
        event_type: &'static str,
        subject: Subject,
        payload: &Json,
        command: (&str, i64),
        failure: Option<&str>,
    ) {
        let command = (command.0.to_owned(), command.1);
        let failure = failure.map(str::to_owned);
        self.record(event_type, subject, payload, Some(command), failure);
    }

    fn record(
        &mut self,
        event_type: &'static str,
        subject: Subject,
        payload: &Json,
        command: Option<(String, i64)>,
        failure: Option<String>,
    ) {
        let id = self.ids.at(self.at);
        // A command is recorded by whoever received it, not by a task.
        let task = self.task.clone().filter(|_| command.is_none());
        let payload = json_text(payload);
        self.history_bytes += i64::try_from(event_type.len() + payload.len()).unwrap_or(i64::MAX);
        self.rows.push(
            InsertRow::new("workflow_history_events")
                .set("id", &id)
                .set("workflow_run_id", &self.who.run)
                .set("sequence", self.sequence() + 1)
                .set("event_type", event_type)
                .set("payload", payload)
                .set("workflow_task_id", task.as_deref())
                .set(
                    "workflow_command_id",
                    command.as_ref().map(|c| c.0.as_str()),
                )
                .time("recorded_at", self.at)
                .stamps(self.at, self.at),
        );
        self.events.push(Event {
            id,
            name: event_type,
            at: self.at,
            subject,
            task,
            command,
            failure,
        });
    }

    pub fn sequence(&self) -> i64 {
        i64::try_from(self.events.len()).unwrap_or(i64::MAX)
    }

    /// An accepted command, applied at once.
    pub fn command(&mut self, command_type: &'static str, outcome: &'static str) -> (String, i64) {
        self.commands += 1;
        let id = self.ids.at(self.at);
        let payload = (command_type == "start").then_some(self.arguments);
        let context = json!({
            "caller": {"type": "php", "label": "PHP API"},
            "auth": {"status": "not_applicable", "method": "none"},
        });
        self.rows.push(
            InsertRow::new("workflow_commands")
                .set("id", &id)
                .set("workflow_instance_id", &self.who.instance)
                .set("workflow_run_id", &self.who.run)
                .set("resolved_workflow_run_id", &self.who.run)
                .set("command_type", command_type)
                .set("target_scope", "instance")
                .set("source", "php")
                .json("context", Some(&context))
                .set("status", "accepted")
                .set("outcome", outcome)
                .set("workflow_class", self.who.kind.class)
                .set("workflow_type", self.who.kind.workflow_type)
                .set("payload_codec", CODEC)
                .set("payload", payload)
                .set("command_sequence", self.commands)
                .time("accepted_at", self.at)
                .time("applied_at", self.at)
                .stamps(self.at, self.at),
        );
        (id, self.commands)
    }

    /// A task created now; `lease` is its claim and the claim's end.
    pub fn task(
        &mut self,
        id: &str,
        task_type: &'static str,
        status: &'static str,
        payload: &Json,
        available: Time,
        lease: Option<(Time, Option<Time>)>,
    ) {
        let created = self.at.min(available);
        let attempts = i64::from(lease.is_some());
        self.rows.push(
            InsertRow::new("workflow_tasks")
                .set("id", id)
                .set("workflow_run_id", &self.who.run)
                .set("namespace", self.who.namespace)
                .set("task_type", task_type)
                .set("status", status)
                .json("payload", Some(payload))
                .set("queue", self.who.kind.queue)
                .time("available_at", available)
                .time("leased_at", lease.map(|(at, _)| at))
                .set("lease_owner", lease.map(|_| id))
                .time("lease_expires_at", lease.and_then(|(_, until)| until))
                .set("attempt_count", attempts)
                .time("last_dispatch_attempt_at", created)
                .time("last_dispatched_at", created)
                .set("repair_count", 0)
                .set("priority", 5)
                .set("fairness_weight", 1)
                .stamps(created, lease.map_or(created, |(at, _)| at)),
        );
    }

    /// A finished workflow task, available now and claimed a moment later; what follows is
    /// written in its name.
    pub fn workflow_task(&mut self, status: &'static str, payload: &Json) {
        let id = self.ids.at(self.at);
        let available = self.at;
        self.pass();
        let claimed = self.at;
        self.task(
            &id,
            "workflow",
            status,
            payload,
            available,
            Some((claimed, None)),
        );
        self.task = Some(id);
    }

    /// A row in `workflow_failures`; returns its id.
    pub fn failure(&mut self, source: (&'static str, &str), cause: &Cause) -> String {
        self.failures += 1;
        let id = self.ids.at(self.at);
        self.rows.push(
            InsertRow::new("workflow_failures")
                .set("id", &id)
                .set("workflow_run_id", &self.who.run)
                .set("source_kind", source.0)
                .set("source_id", source.1)
                .set("propagation_kind", cause.propagation)
                .set("failure_category", cause.category)
                .set("non_retryable", cause.non_retryable)
                .set("handled", false)
                .set("exception_class", cause.class)
                .set("message", cause.message.as_str())
                .set("file", cause.file)
                .set("line", i64::from(!cause.file.is_empty()) * 42)
                .set("trace_preview", "")
                .stamps(self.at, self.at),
        );
        id
    }
}

/// Why something failed, as it is stored.
#[derive(Clone, Debug)]
pub struct Cause {
    pub propagation: &'static str,
    pub category: &'static str,
    pub class: &'static str,
    pub message: String,
    pub file: &'static str,
    pub non_retryable: bool,
}

impl Cause {
    /// The keys every failure event has.
    pub fn keys(&self, failure: &str) -> Map<String, Json> {
        let Json::Object(keys) = json!({
            "failure_id": failure,
            "failure_category": self.category,
            "non_retryable": self.non_retryable,
            "exception_type": null,
            "exception_class": self.class,
            "message": self.message,
            "code": 0,
            "exception": {
                "class": self.class, "message": self.message, "code": 0,
                "file": self.file, "line": 42, "trace": [], "properties": [],
            },
        }) else {
            unreachable!("an object literal")
        };
        keys
    }
}

/// Joins two object literals.
pub fn joined(a: Json, b: impl IntoIterator<Item = (String, Json)>) -> Json {
    let Json::Object(mut out) = a else {
        unreachable!("an object literal")
    };
    out.extend(b);
    Json::Object(out)
}
