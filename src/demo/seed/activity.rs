//! Activities: scheduled, claimed, tried again, closed, each with its history, its attempts and
//! its wait.

use chrono::TimeDelta;
use serde_json::{Value as Json, json};

use super::{
    draft::{CODEC, Cause, Draft, NextTask, Subject, Time, Wait, joined, stamp},
    mix::RESULTS,
};
use crate::demo::{
    builder::{Thrown, blob},
    rows::InsertRow,
};

/// How an activity ends, or where it stands.
#[derive(Clone, Debug)]
pub enum Activity {
    Completed,
    Failed(Cause),
    TimedOut(Cause),
    Leased,
    Ready,
    Backoff,
}

/// What the events of a long run's activities hold beside what every event does.
#[derive(Clone, Debug)]
pub struct Snapped {
    arguments: String,
    thrown: Thrown,
}

impl Snapped {
    /// What an event of a long run holds on average beside the activity's arguments.
    const REST: usize = 1_500;

    /// With arguments that make up what an average event lacks.
    pub fn new(payload_bytes: usize) -> Self {
        // Encoded text is a third longer than its bytes.
        let length = payload_bytes.saturating_sub(Self::REST) * 3 / 4;
        let words = "line item, ".repeat(length / 11);
        Self {
            arguments: blob(&json!([words])),
            thrown: Thrown::new("RuntimeException", UPSTREAM).code(503).at(
                "/srv/shop/app/Activities/Gateway.php",
                88,
                "App\\Activities\\Gateway",
            ),
        }
    }
}

const UPSTREAM: &str = "Upstream answered 503";

const LEASE: TimeDelta = TimeDelta::seconds(300);

fn retry_policy() -> Json {
    json!({
        "snapshot_version": 1, "max_attempts": 3, "backoff_seconds": [1, 5, 30],
        "start_to_close_timeout": null, "schedule_to_start_timeout": null,
        "schedule_to_close_timeout": null, "heartbeat_timeout": null,
        "non_retryable_error_types": [],
    })
}

/// The activity that is under way, as its events and its row tell it.
struct Doing {
    id: String,
    name: &'static str,
    class: &'static str,
    step: i64,
    scheduled: Time,
    attempts: i64,
    attempt: Option<String>,
    started: Option<Time>,
    closed: Option<Time>,
    status: &'static str,
    result: Option<&'static str>,
    task: String,
    /// When that task could be taken.
    available: Time,
    retried: Option<Json>,
}

impl Doing {
    fn payload(&self, queue: &str, more: Json) -> Json {
        let mut out = json!({
            "activity_execution_id": self.id,
            "activity_class": self.class,
            "activity_type": self.name,
            "sequence": self.step,
            "activity": {
                "id": self.id, "idempotency_key": self.id, "sequence": self.step,
                "type": self.name, "class": self.class, "local_activity": false,
                "status": self.status, "payload_codec": CODEC, "attempt_count": self.attempts,
                "queue": queue, "created_at": stamp(self.scheduled),
            },
        });
        if let Some(attempt) = &self.attempt {
            out["activity"]["attempt_id"] = json!(attempt);
        }
        if let Some(started) = self.started {
            out["activity"]["started_at"] = json!(stamp(started));
        }
        match more {
            Json::Object(more) => joined(out, more),
            _ => out,
        }
    }

    fn task_payload(&self) -> Json {
        let execution = json!({"activity_execution_id": self.id});
        match &self.retried {
            Some(Json::Object(retried)) => joined(execution, retried.clone()),
            _ => execution,
        }
    }

    fn attempt_keys(&self) -> Json {
        json!({"activity_attempt_id": self.attempt, "attempt_number": self.attempts})
    }
}

impl Snapped {
    /// The whole execution and its task as they stood, and what was thrown.
    fn fill(&self, event: &str, doing: &Doing, task: Option<&str>, payload: &mut Json) {
        let queue = payload["activity"]["queue"].clone();
        let activity = &mut payload["activity"];
        activity["retry_policy"] = retry_policy();
        activity["connection"] = json!("redis");
        activity["arguments"] = json!(self.arguments);
        if let Some(closed) = doing.closed {
            activity["closed_at"] = json!(stamp(closed));
        }
        if let Some(result) = doing.result {
            activity["result"] = json!(result);
        }
        if event == "ActivityRetryScheduled" {
            activity["exception"] = json!(self.thrown.encoded());
            payload["exception_type"] = Json::Null;
            payload["code"] = json!(self.thrown.code);
            payload["exception"] = self.thrown.json();
        }
        let scheduled = event == "ActivityScheduled";
        let leased = doing.started.unwrap_or(doing.scheduled);
        let mut carrier = json!({
            "id": task, "type": if scheduled { "workflow" } else { "activity" },
            "status": "leased", "available_at": stamp(doing.available),
            "leased_at": stamp(leased), "lease_owner": task,
            "lease_expires_at": stamp(leased + LEASE),
            "attempt_count": doing.attempts.max(1), "repair_count": 0,
            "connection": "redis", "queue": queue,
            "last_dispatch_attempt_at": stamp(doing.available),
            "last_dispatched_at": stamp(doing.available),
        });
        if event == "ActivityRetryScheduled" {
            carrier["status"] = json!("completed");
        }
        payload["task"] = carrier;
    }
}

impl Draft<'_> {
    /// An activity with `retries` failed attempts before the last. Returns the open task when
    /// it does not end.
    pub fn activity(&mut self, end: &Activity, retries: i64) -> Option<NextTask> {
        let activities = self.who.kind.activities;
        let (name, class) = activities[self.rng.usize(..activities.len())];
        let mut doing = Doing {
            id: self.ids.at(self.at),
            name,
            class,
            step: self.next_step(),
            scheduled: self.at,
            attempts: 0,
            attempt: None,
            started: None,
            closed: None,
            status: "pending",
            result: None,
            task: self.ids.at(self.at),
            available: self.at,
            retried: None,
        };
        self.activity_event("ActivityScheduled", &doing, json!({}), None);
        let workflow_task = self.task.clone();
        let mut available = self.at;
        let next = loop {
            let last = doing.attempts == retries;
            if last && matches!(end, Activity::Ready | Activity::Backoff) {
                let id = doing.task.clone();
                let payload = doing.task_payload();
                self.task(&id, "activity", "ready", &payload, available, None);
                break Some(("ready", None));
            }
            self.at = self.at.max(available);
            self.pass();
            let claimed = self.at;
            doing.attempts += 1;
            doing.status = "running";
            doing.attempt = Some(self.ids.upper(claimed));
            doing.started = Some(claimed);
            self.task = Some(doing.task.clone());
            let open = last && matches!(end, Activity::Leased);
            let expires = open.then(|| claimed + LEASE);
            let status = if open { "leased" } else { "completed" };
            let lease = Some((claimed, expires));
            let id = doing.task.clone();
            let payload = doing.task_payload();
            self.task(&id, "activity", status, &payload, available, lease);
            self.activity_event("ActivityStarted", &doing, doing.attempt_keys(), None);
            if open {
                self.attempt(&doing, "running", expires);
                break Some(("leased", expires));
            }
            self.pass();
            if last {
                self.close_activity(&mut doing, end);
                break None;
            }
            self.attempt(&doing, "failed", None);
            let waits = matches!(end, Activity::Backoff) && doing.attempts == retries;
            available = if waits {
                self.clock + TimeDelta::seconds(self.rng.i64(5..60))
            } else {
                (self.at + TimeDelta::seconds(5)).min(self.clock)
            };
            self.retry(&mut doing, available);
        };
        self.task = workflow_task;
        self.execution(&doing);
        let open = next.is_some();
        self.waits.push(Wait {
            id: format!("activity:{}", doing.id),
            kind: "activity",
            step: doing.step,
            status: if open { "open" } else { "resolved" },
            source_status: doing.status,
            opened: doing.started.unwrap_or(doing.scheduled),
            deadline: next.and_then(|(_, expires)| expires),
            resolved: doing.closed,
            target_name: None,
            target_type: Some(doing.name.to_owned()),
            task: Some((
                doing.task.clone(),
                "activity",
                next.map_or("completed", |(s, _)| s),
            )),
            resume: ("activity_execution", Some(doing.id.clone())),
        });
        next.map(|(status, lease_expires)| NextTask {
            id: doing.task,
            task_type: "activity",
            status,
            available,
            lease_expires,
        })
    }

    fn activity_event(
        &mut self,
        name: &'static str,
        doing: &Doing,
        more: Json,
        failure: Option<&str>,
    ) {
        let mut payload = doing.payload(self.who.kind.queue, more);
        if let Some(snapped) = &self.snapped {
            snapped.fill(name, doing, self.task.as_deref(), &mut payload);
        }
        let subject = Subject::Activity(doing.id.clone());
        match failure {
            Some(failure) => self.failure_event(name, subject, &payload, failure),
            None => self.event(name, subject, &payload),
        }
    }

    fn close_activity(&mut self, doing: &mut Doing, end: &Activity) {
        doing.closed = Some(self.at);
        let mut keys = doing.attempt_keys();
        let (cause, event, attempt) = match end {
            Activity::Failed(cause) => (cause, "ActivityFailed", "failed"),
            Activity::TimedOut(cause) => {
                keys["timeout_kind"] = json!("start_to_close");
                keys["close_deadline_at"] = json!(stamp(self.at));
                (cause, "ActivityTimedOut", "expired")
            }
            _ => {
                let result = RESULTS[self.rng.usize(..RESULTS.len())];
                doing.status = "completed";
                doing.result = Some(result);
                self.attempt(doing, "completed", None);
                keys["result"] = json!(result);
                keys["payload_codec"] = json!(CODEC);
                return self.activity_event("ActivityCompleted", doing, keys, None);
            }
        };
        doing.status = "failed";
        self.attempt(doing, attempt, None);
        let id = self.failure(("activity_execution", &doing.id), cause);
        self.activity_event(event, doing, joined(keys, cause.keys(&id)), Some(&id));
    }

    /// A failed attempt that will be tried again.
    fn retry(&mut self, doing: &mut Doing, available: Time) {
        let next = self.ids.at(self.at);
        doing.status = "pending";
        let keys = json!({
            "activity_attempt_id": doing.attempt,
            "retry_task_id": next,
            "retry_of_task_id": doing.task,
            "retry_available_at": stamp(available),
            "retry_backoff_seconds": (available - self.at).num_seconds(),
            "retry_after_attempt_id": doing.attempt,
            "retry_after_attempt": doing.attempts,
            "max_attempts": 3,
            "retry_policy": retry_policy(),
            "exception_class": "RuntimeException",
            "message": UPSTREAM,
        });
        doing.retried = Some(json!({
            "retry_of_task_id": doing.task,
            "retry_after_attempt_id": doing.attempt,
            "retry_after_attempt": doing.attempts,
            "retry_backoff_seconds": keys["retry_backoff_seconds"],
            "max_attempts": 3,
            "retry_policy": retry_policy(),
        }));
        self.activity_event("ActivityRetryScheduled", doing, keys, None);
        doing.task = next;
        doing.available = available;
    }

    fn attempt(&mut self, doing: &Doing, status: &'static str, expires: Option<Time>) {
        let started = doing.started.unwrap_or(doing.scheduled);
        let open = status == "running";
        self.rows.push(
            InsertRow::new("activity_attempts")
                .set("id", doing.attempt.as_deref())
                .set("workflow_run_id", &self.who.run)
                .set("activity_execution_id", &doing.id)
                .set("workflow_task_id", &doing.task)
                .set("attempt_number", doing.attempts)
                .set("status", status)
                .set("lease_owner", &doing.task)
                .time("started_at", started)
                .time("lease_expires_at", expires)
                .time("closed_at", (!open).then_some(self.at))
                .stamps(started, self.at),
        );
    }

    fn execution(&mut self, doing: &Doing) {
        self.rows.push(
            InsertRow::new("activity_executions")
                .set("id", &doing.id)
                .set("workflow_run_id", &self.who.run)
                .set("sequence", doing.step)
                .set("activity_class", doing.class)
                .set("activity_type", doing.name)
                .set("status", doing.status)
                .set("payload_codec", CODEC)
                .set(
                    "arguments",
                    match &self.snapped {
                        Some(snapped) => snapped.arguments.as_str(),
                        None => self.arguments,
                    },
                )
                .set("result", doing.result)
                .set("queue", self.who.kind.queue)
                .set("attempt_count", doing.attempts)
                .set("current_attempt_id", doing.attempt.as_deref())
                .json("retry_policy", Some(&retry_policy()))
                .time("started_at", doing.started)
                .time("closed_at", doing.closed)
                .stamps(doing.scheduled, self.at),
        );
    }

    /// The workflow task that carries the run on after an activity.
    pub fn resume_after_activity(&mut self, status: &'static str) {
        let Some(wait) = self.waits.last() else {
            return;
        };
        let payload = json!({
            "workflow_wait_kind": "activity",
            "open_wait_id": wait.id,
            "resume_source_kind": "activity_execution",
            "resume_source_id": wait.resume.1,
            "activity_execution_id": wait.resume.1,
            "activity_type": wait.target_type,
            "workflow_sequence": wait.step,
            "workflow_event_type": self.events.last().map(|event| event.name),
        });
        self.workflow_task(status, &payload);
    }
}
