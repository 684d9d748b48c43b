//! Timers, and the conditions that may end by one.

use chrono::TimeDelta;
use serde_json::{Value as Json, json};

use super::ids::digest;
use super::model::{ConditionWait, Timer, TimerKind};
use super::{RunBuilder, extend, iso};

impl RunBuilder {
    /// Workflow code sleeps; returns the timer's handle.
    pub fn sleep(&mut self, seconds: u32) -> usize {
        let sequence = self.next_step();
        self.push_timer(sequence, seconds, TimerKind::Plain)
    }

    /// Workflow code waits until a condition holds, for at most `timeout` seconds.
    pub fn await_condition(&mut self, key: Option<&str>, timeout: Option<u32>) -> usize {
        let task = self.work();
        let sequence = self.next_step();
        let definition = format!("{}::{}", self.start.class, key.unwrap_or_default());
        let fingerprint = format!("sha256:{}", digest(&definition));
        let id = self.mint.code(self.at);
        let mut payload = json!({"condition_wait_id": id});
        if let Some(key) = key {
            payload["condition_key"] = json!(key);
        }
        payload["condition_definition_fingerprint"] = json!(fingerprint);
        payload["sequence"] = json!(sequence);
        if let Some(seconds) = timeout {
            payload["timeout_seconds"] = json!(seconds);
        }
        self.event("ConditionWaitOpened", payload, Some(&task), None);
        let index = self.conditions.len();
        self.conditions.push(ConditionWait {
            id,
            key: key.map(str::to_owned),
            fingerprint,
            sequence,
            timeout,
            timer: None,
            status: "open",
            source_status: "waiting",
            opened_at: self.at,
            fired_at: None,
            resolved_at: None,
        });
        if let Some(seconds) = timeout {
            let timer = self.push_timer(sequence, seconds, TimerKind::Condition(index));
            self.conditions[index].timer = Some(timer);
        }
        index
    }

    /// The id of the condition wait at `index`, for details that name it.
    pub fn condition_id(&self, index: usize) -> String {
        self.conditions[index].id.clone()
    }

    pub(super) fn push_timer(&mut self, sequence: u32, seconds: u32, kind: TimerKind) -> usize {
        let task = self.work();
        let fire_at = self.at + TimeDelta::seconds(seconds.into());
        let index = self.timers.len();
        self.timers.push(Timer {
            id: self.mint.row(self.at),
            sequence,
            status: "pending",
            delay: seconds,
            fire_at,
            fired_at: None,
            cancelled_at: None,
            created_at: self.at,
            kind,
            row: true,
        });
        let mut payload = self.timer_payload(index);
        payload["fire_at"] = json!(iso(fire_at));
        extend(&mut payload, self.timer_owner(index, true));
        self.event("TimerScheduled", payload, Some(&task), None);
        let mut task_payload = json!({"timer_id": self.timers[index].id});
        extend(&mut task_payload, self.timer_owner(index, false));
        self.push_task("timer", task_payload, fire_at);
        index
    }

    fn timer_payload(&self, index: usize) -> Json {
        let timer = &self.timers[index];
        json!({
            "timer_id": timer.id,
            "sequence": timer.sequence,
            "delay_seconds": timer.delay,
        })
    }

    /// The wait a timeout timer belongs to, as events (`kind`) and tasks (without) name it.
    fn timer_owner(&self, index: usize, kind: bool) -> Json {
        match self.timers[index].kind {
            TimerKind::Plain => json!({}),
            TimerKind::Condition(wait) => {
                let wait = &self.conditions[wait];
                let mut owner = json!({});
                if kind {
                    owner["timer_kind"] = json!("condition_timeout");
                }
                owner["condition_wait_id"] = json!(wait.id);
                if let Some(key) = &wait.key {
                    owner["condition_key"] = json!(key);
                }
                owner["condition_definition_fingerprint"] = json!(wait.fingerprint);
                owner
            }
            TimerKind::Signal(wait) => {
                let wait = &self.signal_waits[wait];
                let mut owner = json!({});
                if kind {
                    owner["timer_kind"] = json!("signal_timeout");
                }
                owner["signal_wait_id"] = json!(wait.id);
                owner["signal_name"] = json!(wait.name);
                owner
            }
        }
    }

    fn timer_task(&self, index: usize) -> Option<usize> {
        let id = self.timers[index].id.as_str();
        self.tasks.iter().position(|task| {
            task.is_open() && task.kind == "timer" && task.payload["timer_id"] == id
        })
    }

    /// The timer's time has come and its task ran.
    pub fn fire(&mut self, index: usize) -> &mut Self {
        self.park();
        let due = self.timers[index].fire_at;
        self.pass_until(due).pass(super::millis(420));
        let at = self.at;
        let task = self.timer_task(index).expect("a timer fires on its task");
        self.lease(task, None);
        self.timers[index].status = "fired";
        self.timers[index].fired_at = Some(at);
        let mut payload = self.timer_payload(index);
        payload["fire_at"] = json!(iso(due));
        payload["fired_at"] = json!(iso(at));
        extend(&mut payload, self.timer_owner(index, true));
        let task_id = self.tasks[task].id.clone();
        self.event("TimerFired", payload, Some(&task_id), None);
        self.close_task(task, "completed");

        let timer = &self.timers[index];
        let (id, sequence) = (timer.id.clone(), timer.sequence);
        let (wait_kind, wait_id) = match timer.kind {
            TimerKind::Plain => ("timer", format!("timer:{id}")),
            TimerKind::Condition(wait) => {
                let wait = &mut self.conditions[wait];
                wait.source_status = "timeout_fired";
                wait.fired_at = Some(at);
                ("condition", wait.id.clone())
            }
            TimerKind::Signal(wait) => {
                let wait = &mut self.signal_waits[wait];
                wait.status = "resolved";
                wait.source_status = "timed_out";
                wait.fired_at = Some(at);
                wait.resolved_at = Some(at);
                ("signal", wait.id.clone())
            }
        };
        let mut resume = json!({
            "workflow_wait_kind": wait_kind,
            "open_wait_id": wait_id,
            "resume_source_kind": "timer",
            "resume_source_id": id,
            "timer_id": id,
        });
        extend(&mut resume, self.timer_owner(index, true));
        resume["workflow_sequence"] = json!(sequence);
        resume["workflow_event_type"] = json!("TimerFired");
        self.resume(resume);
        self
    }

    /// A worker took the timer's task and was never heard of again.
    pub fn lease_timer(&mut self, index: usize) -> &mut Self {
        self.park();
        let due = self.timers[index].fire_at;
        self.pass_until(due).pass(super::millis(300));
        let task = self.timer_task(index).expect("the timer has a task");
        self.lease(task, None);
        self
    }

    pub(super) fn cancel_timer(&mut self, index: usize, command: Option<usize>) {
        if self.timers[index].status != "pending" {
            return;
        }
        let at = self.at;
        if let Some(task) = self.timer_task(index) {
            self.close_task(task, "cancelled");
        }
        self.timers[index].status = "cancelled";
        self.timers[index].cancelled_at = Some(at);
        let mut payload = self.timer_payload(index);
        payload["fire_at"] = json!(iso(self.timers[index].fire_at));
        payload["cancelled_at"] = json!(iso(at));
        extend(&mut payload, self.timer_owner(index, true));
        self.event("TimerCancelled", payload, None, command);
    }

    /// The timer row went missing; only history still knows it.
    pub fn lose_timer_row(&mut self, index: usize) -> &mut Self {
        self.timers[index].row = false;
        self
    }
}
