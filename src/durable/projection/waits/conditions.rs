//! Waits for a condition of the workflow's own state, with or without a timeout. Events only.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};

use super::{OfKind, Wait, tasks::preferred_tasks};
use crate::durable::{
    projection::context::Context,
    stored::{EventType, HistoryEvent, TaskRow, TaskType, payloads::waits::ConditionEvent},
};

/// One wait for a condition.
#[derive(Clone, Debug, PartialEq)]
pub struct ConditionWait {
    pub condition_wait_id: String,
    pub condition_key: Option<String>,
    pub condition_definition_fingerprint: Option<String>,
    pub sequence: Option<i64>,
    /// `open`, `resolved`, `cancelled`.
    pub status: &'static str,
    /// `waiting`, `timeout_fired`, `satisfied`, `timed_out`, or how the run ended.
    pub source_status: &'static str,
    pub timeout_seconds: Option<i64>,
    /// The timer that ends the wait if nothing else does.
    pub timer_id: Option<String>,
    pub opened_at: Option<DateTime<Utc>>,
    pub deadline_at: Option<DateTime<Utc>>,
    /// When the timer fired; the wait stays open until the workflow has seen it.
    pub timeout_fired_at: Option<DateTime<Utc>>,
    pub resolved_at: Option<DateTime<Utc>>,
    /// `timer` or `external_input`.
    pub resume_source_kind: &'static str,
    pub resume_source_id: Option<String>,
}

/// Every wait for a condition in the order history first names them.
pub fn condition_waits(cx: Context<'_>) -> Vec<ConditionWait> {
    let mut book = Book::default();
    for event in &cx.snapshot.events {
        book.enter(event);
    }
    book.waits
}

/// The same as they are listed, each with its timeout's task.
pub fn waits(cx: Context<'_>, conditions: &[ConditionWait]) -> Vec<Wait> {
    if conditions.is_empty() {
        return Vec::new();
    }
    let tasks = preferred_tasks(
        &cx.snapshot.tasks,
        |named| named.timer_id,
        Some(&TaskType::Timer),
    );
    conditions
        .iter()
        .map(|condition| {
            let timer = condition.timer_id.as_deref();
            condition.as_wait(timer.and_then(|timer| tasks.get(timer).copied()))
        })
        .collect()
}

/// How the event that closes a run leaves the waits still open; none for other events.
///
/// A run's timeout does not close them: the engine leaves them open for ever.
pub(super) fn closing_word(event_type: &EventType) -> Option<&'static str> {
    match event_type {
        EventType::WorkflowCompleted | EventType::WorkflowFailed => Some("closed"),
        EventType::WorkflowCancelled => Some("cancelled"),
        EventType::WorkflowTerminated => Some("terminated"),
        EventType::WorkflowContinuedAsNew => Some("continued"),
        _ => None,
    }
}

/// How the run ended, for the sentence of a wait that ended with it.
pub(super) fn run_end(source_status: &str) -> &'static str {
    match source_status {
        "cancelled" => "was cancelled",
        "terminated" => "was terminated",
        "continued" => "continued as new",
        _ => "closed",
    }
}

#[derive(Default)]
struct Book {
    waits: Vec<ConditionWait>,
    at: HashMap<String, usize>,
    /// Places of the waits a closing run closes: a settled one is not among them.
    open: HashSet<usize>,
}

impl Book {
    fn enter(&mut self, event: &HistoryEvent) {
        match event.event_type {
            EventType::ConditionWaitOpened => {
                let payload: ConditionEvent = event.as_payload();
                let Some(id) = wait_id(&payload) else { return };
                let mut wait = ConditionWait::from_event(id, &payload);
                wait.opened_at = event.time();
                self.put(wait);
            }
            EventType::TimerScheduled | EventType::TimerFired => {
                let payload: ConditionEvent = event.as_payload();
                if payload.timer_kind.as_deref() != Some("condition_timeout") {
                    return;
                }
                let Some(wait) = self.find_or_open(&payload) else {
                    return;
                };
                wait.fill(&payload);
                wait.timeout_seconds = wait.timeout_seconds.or(payload.delay_seconds.get());
                wait.deadline_at = payload.fire_at.or(wait.deadline_at);
                if wait.timer_id.is_some() {
                    wait.resume_source_kind = "timer";
                    wait.resume_source_id.clone_from(&wait.timer_id);
                }
                if event.event_type == EventType::TimerFired {
                    wait.source_status = "timeout_fired";
                    wait.timeout_fired_at = payload
                        .fired_at
                        .or_else(|| event.time())
                        .or(wait.timeout_fired_at);
                }
            }
            EventType::ConditionWaitSatisfied | EventType::ConditionWaitTimedOut => {
                let payload: ConditionEvent = event.as_payload();
                let Some(wait) = self.find_or_open(&payload) else {
                    return;
                };
                wait.fill(&payload);
                wait.timeout_seconds = payload.timeout_seconds.get().or(wait.timeout_seconds);
                wait.status = "resolved";
                wait.resolved_at = event.time();
                if event.event_type == EventType::ConditionWaitTimedOut {
                    wait.source_status = "timed_out";
                    wait.resume_source_kind = "timer";
                    wait.resume_source_id.clone_from(&wait.timer_id);
                } else {
                    wait.source_status = "satisfied";
                    wait.resume_source_kind = "external_input";
                    wait.resume_source_id = None;
                }
                let id = wait.condition_wait_id.clone();
                if let Some(settled) = self.at.get(&id) {
                    self.open.remove(settled);
                }
            }
            _ => {
                if let Some(word) = closing_word(&event.event_type) {
                    for at in self.open.drain() {
                        if let Some(wait) = self.waits.get_mut(at) {
                            wait.status = "cancelled";
                            wait.source_status = word;
                            wait.resolved_at = event.time();
                        }
                    }
                }
            }
        }
    }

    /// The wait the event names; an event may be the first to name it.
    fn find_or_open(&mut self, payload: &ConditionEvent) -> Option<&mut ConditionWait> {
        let id = wait_id(payload)?;
        if !self.at.contains_key(&id) {
            self.put(ConditionWait::from_event(id.clone(), payload));
        }
        let at = *self.at.get(&id)?;
        self.waits.get_mut(at)
    }

    /// A wait opened again starts over in its old place.
    fn put(&mut self, wait: ConditionWait) {
        let next = self.waits.len();
        let at = *self
            .at
            .entry(wait.condition_wait_id.clone())
            .or_insert(next);
        match self.waits.get_mut(at) {
            Some(old) => *old = wait,
            None => self.waits.push(wait),
        }
        self.open.insert(at);
    }
}

fn wait_id(payload: &ConditionEvent) -> Option<String> {
    payload.condition_wait_id.0.clone().or_else(|| {
        let sequence = payload.sequence.get()?;
        Some(format!("condition:{sequence}"))
    })
}

impl ConditionWait {
    fn from_event(id: String, payload: &ConditionEvent) -> Self {
        let timer_id = payload.timer_id.0.clone();
        Self {
            condition_wait_id: id,
            condition_key: payload.condition_key.0.clone(),
            condition_definition_fingerprint: payload.condition_definition_fingerprint.0.clone(),
            sequence: payload.sequence.get(),
            status: "open",
            source_status: "waiting",
            timeout_seconds: payload
                .timeout_seconds
                .get()
                .or(payload.delay_seconds.get()),
            opened_at: None,
            deadline_at: *payload.fire_at,
            timeout_fired_at: None,
            resolved_at: None,
            resume_source_kind: if timer_id.is_some() {
                "timer"
            } else {
                "external_input"
            },
            resume_source_id: timer_id.clone(),
            timer_id,
        }
    }

    /// What a later event adds to what is not known yet; its timer replaces an earlier one.
    fn fill(&mut self, payload: &ConditionEvent) {
        self.sequence = self.sequence.or(payload.sequence.get());
        if self.condition_key.is_none() {
            self.condition_key.clone_from(&payload.condition_key);
        }
        if self.condition_definition_fingerprint.is_none() {
            self.condition_definition_fingerprint
                .clone_from(&payload.condition_definition_fingerprint);
        }
        if payload.timer_id.is_some() {
            self.timer_id.clone_from(&payload.timer_id);
        }
    }

    pub fn is_open(&self) -> bool {
        self.status == "open"
    }

    pub fn timeout_fired(&self) -> bool {
        self.timeout_fired_at.is_some()
    }

    /// As one of the run's waits, with the task of its timer.
    pub fn as_wait(&self, task: Option<&TaskRow>) -> Wait {
        Wait {
            id: self.condition_wait_id.clone(),
            kind: "condition",
            sequence: self.sequence,
            status: self.status,
            source_status: Some(self.source_status.to_owned()),
            summary: self.summary(),
            opened_at: self.opened_at,
            deadline_at: self.deadline_at,
            resolved_at: self.resolved_at,
            timeout_fired_at: self.timeout_fired_at,
            target_name: self.condition_key.clone(),
            target_type: Some("condition".into()),
            external_only: true,
            resume_source_kind: Some(self.resume_source_kind.to_owned()),
            resume_source_id: self.resume_source_id.clone(),
            of_kind: OfKind::Condition {
                condition_wait_id: self.condition_wait_id.clone(),
                condition_key: self.condition_key.clone(),
                condition_definition_fingerprint: self.condition_definition_fingerprint.clone(),
                timeout_seconds: self.timeout_seconds,
            },
            ..Wait::default()
        }
        .with_task(task)
    }

    fn summary(&self) -> String {
        let condition = match &self.condition_key {
            Some(key) => format!("condition {key}"),
            None => "a condition".to_owned(),
        };
        match (self.status, self.source_status) {
            ("open", _) if self.timeout_fired() => {
                format!("The timeout of {condition} fired and is to be applied.")
            }
            ("open", _) => match self.timeout_seconds {
                Some(seconds) => format!("Waits for {condition}, at most {seconds} s."),
                None => format!("Waits for {condition}."),
            },
            ("cancelled", how) => {
                format!("The wait for {condition} ended: the run {}.", run_end(how))
            }
            (_, "timed_out") => format!("The wait for {condition} timed out."),
            _ => format!("The wait for {condition} is satisfied."),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::durable::projection::waits::tests::event;

    const TIMEOUT: &str = "condition_timeout";

    type Events = Vec<(&'static str, Value)>;

    #[test]
    fn a_wait_goes_through_history() {
        let opened = (
            "ConditionWaitOpened",
            json!({"sequence": 3, "timeout_seconds": 60}),
        );
        let timer = json!({"timer_kind": TIMEOUT, "timer_id": "t", "sequence": 3,
            "delay_seconds": 90, "fire_at": "2026-11-15T12:01:00.000000Z"});
        let scheduled = ("TimerScheduled", timer.clone());
        let fired = ("TimerFired", timer);
        let plain = ("TimerFired", json!({"timer_id": "t", "sequence": 3}));
        let satisfied = ("ConditionWaitSatisfied", json!({"sequence": 3}));
        let timed_out = ("ConditionWaitTimedOut", json!({"sequence": 3}));
        let end = |event_type: &'static str| (event_type, json!({}));
        // events → status, source status, resume source
        let table: [(Events, [&str; 3]); 8] = [
            (
                vec![opened.clone(), plain],
                ["open", "waiting", "external_input"],
            ),
            (
                vec![opened.clone(), scheduled.clone()],
                ["open", "waiting", "timer"],
            ),
            (vec![scheduled, fired], ["open", "timeout_fired", "timer"]),
            (
                vec![opened.clone(), satisfied.clone()],
                ["resolved", "satisfied", "external_input"],
            ),
            (
                vec![opened.clone(), timed_out],
                ["resolved", "timed_out", "timer"],
            ),
            (
                vec![opened.clone(), end("WorkflowTerminated")],
                ["cancelled", "terminated", "external_input"],
            ),
            (
                vec![opened.clone(), satisfied, end("WorkflowCompleted")],
                ["resolved", "satisfied", "external_input"],
            ),
            // The engine does not close a wait when the run times out.
            (
                vec![opened, end("WorkflowTimedOut")],
                ["open", "waiting", "external_input"],
            ),
        ];
        for (events, expected) in table {
            let mut book = Book::default();
            for (event_type, payload) in &events {
                book.enter(&event(event_type, payload));
            }
            let [wait] = book.waits.as_slice() else {
                panic!("{events:?} make one wait");
            };
            let found = [wait.status, wait.source_status, wait.resume_source_kind];
            assert_eq!(found, expected, "{events:?}");
            assert_eq!(wait.condition_wait_id, "condition:3");
        }
    }
}
