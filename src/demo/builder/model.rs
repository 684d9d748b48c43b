//! What the engine would hold about one run, before it becomes rows.
//!
//! Statuses are the stored spellings; a test compares every one of them with the engine's enums.

use chrono::{DateTime, Utc};
use serde_json::{Value as Json, json};

pub type Time = DateTime<Utc>;

/// A step of parallel work: which group, how many, which one.
#[derive(Clone, Debug)]
pub struct Group {
    pub id: String,
    pub kind: &'static str,
    pub base: u32,
    pub size: u32,
    pub index: u32,
}

impl Group {
    /// `member` of `size` steps that start at workflow sequence `base`.
    pub fn new(kind: &'static str, base: u32, size: u32, index: u32) -> Self {
        let prefix = match kind {
            "activity" => "parallel-activities",
            "child" => "parallel-children",
            "timer" => "parallel-timers",
            _ => "parallel-calls",
        };
        Self {
            id: format!("{prefix}:{base}:{size}"),
            kind,
            base,
            size,
            index,
        }
    }

    /// The five keys the engine repeats on every event of the step.
    pub fn keys(&self) -> Json {
        json!({
            "parallel_group_id": self.id,
            "parallel_group_kind": self.kind,
            "parallel_group_base_sequence": self.base,
            "parallel_group_size": self.size,
            "parallel_group_index": self.index,
        })
    }

    pub fn path(&self) -> Json {
        json!([self.keys()])
    }
}

#[derive(Clone, Debug)]
pub struct Task {
    pub id: String,
    pub kind: &'static str,
    pub status: &'static str,
    pub compatibility: Option<String>,
    pub payload: Json,
    pub connection: Option<String>,
    pub queue: Option<String>,
    pub available_at: Time,
    pub leased_at: Option<Time>,
    pub lease_owner: Option<String>,
    pub lease_expires_at: Option<Time>,
    pub attempt_count: u32,
    pub last_dispatch_attempt_at: Option<Time>,
    pub last_dispatched_at: Option<Time>,
    pub last_dispatch_error: Option<String>,
    pub last_claim_failed_at: Option<Time>,
    pub last_claim_error: Option<String>,
    pub repair_count: u32,
    pub repair_available_at: Option<Time>,
    pub last_error: Option<String>,
    pub created_at: Time,
    pub updated_at: Time,
}

impl Task {
    pub fn is_open(&self) -> bool {
        matches!(self.status, "ready" | "leased")
    }

    pub fn replay_blocked(&self) -> bool {
        self.payload["replay_blocked"] == json!(true)
    }
}

/// Retry and timeout policy of an activity, as the engine snapshots it.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// `None` = unlimited.
    pub max_attempts: Option<u32>,
    pub backoff: &'static [u32],
    pub start_to_close: Option<u32>,
    pub heartbeat: Option<u32>,
    pub non_retryable: &'static [&'static str],
}

impl Policy {
    pub const ONCE: Self = Self {
        max_attempts: Some(1),
        backoff: &[1, 2, 5, 10, 15, 30, 60, 120],
        start_to_close: None,
        heartbeat: None,
        non_retryable: &[],
    };

    pub const fn retry(max_attempts: u32, backoff: &'static [u32]) -> Self {
        Self {
            max_attempts: Some(max_attempts),
            backoff,
            ..Self::ONCE
        }
    }

    #[must_use]
    pub const fn timeouts(self, start_to_close: u32, heartbeat: u32) -> Self {
        Self {
            start_to_close: Some(start_to_close),
            heartbeat: Some(heartbeat),
            ..self
        }
    }

    #[must_use]
    pub const fn never_retry(self, non_retryable: &'static [&'static str]) -> Self {
        Self {
            non_retryable,
            ..self
        }
    }

    pub fn json(&self) -> Json {
        json!({
            "snapshot_version": 1,
            "max_attempts": self.max_attempts,
            "backoff_seconds": self.backoff,
            "start_to_close_timeout": self.start_to_close,
            "schedule_to_start_timeout": null,
            "schedule_to_close_timeout": null,
            "heartbeat_timeout": self.heartbeat,
            "non_retryable_error_types": self.non_retryable,
        })
    }

    /// Seconds before the attempt after `attempt`; the last step of the list repeats.
    pub fn backoff_after(&self, attempt: u32) -> u32 {
        let step = usize::try_from(attempt.saturating_sub(1)).unwrap_or(usize::MAX);
        self.backoff
            .get(step)
            .or(self.backoff.last())
            .copied()
            .unwrap_or(0)
    }
}

#[derive(Clone, Debug)]
pub struct Activity {
    pub id: String,
    pub sequence: u32,
    pub kind: String,
    pub class: String,
    pub status: &'static str,
    pub arguments: String,
    pub result: Option<String>,
    pub exception: Option<String>,
    pub connection: Option<String>,
    pub queue: Option<String>,
    pub policy: Policy,
    pub group: Option<Group>,
    pub attempts: Vec<Attempt>,
    pub created_at: Time,
    pub started_at: Option<Time>,
    pub closed_at: Option<Time>,
    pub last_heartbeat_at: Option<Time>,
    /// History tells of it. Without, the row is only a diagnostic.
    pub typed: bool,
    /// The execution row is still there.
    pub row: bool,
}

impl Activity {
    pub fn is_open(&self) -> bool {
        matches!(self.status, "pending" | "running")
    }
}

#[derive(Clone, Debug)]
pub struct Attempt {
    pub id: String,
    pub task_id: String,
    pub number: u32,
    pub status: &'static str,
    pub lease_owner: String,
    pub started_at: Time,
    pub last_heartbeat_at: Option<Time>,
    pub lease_expires_at: Option<Time>,
    pub closed_at: Option<Time>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TimerKind {
    Plain,
    /// Timeout of the condition wait at this index.
    Condition(usize),
    /// Timeout of the signal wait at this index.
    Signal(usize),
}

#[derive(Clone, Debug)]
pub struct Timer {
    pub id: String,
    pub sequence: u32,
    pub status: &'static str,
    pub delay: u32,
    pub fire_at: Time,
    pub fired_at: Option<Time>,
    pub cancelled_at: Option<Time>,
    pub created_at: Time,
    pub kind: TimerKind,
    pub row: bool,
}

#[derive(Clone, Debug)]
pub struct ConditionWait {
    pub id: String,
    pub key: Option<String>,
    pub fingerprint: String,
    pub sequence: u32,
    pub timeout: Option<u32>,
    pub timer: Option<usize>,
    pub status: &'static str,
    pub source_status: &'static str,
    pub opened_at: Time,
    pub fired_at: Option<Time>,
    pub resolved_at: Option<Time>,
}

#[derive(Clone, Debug)]
pub struct SignalWait {
    pub id: String,
    pub name: String,
    pub sequence: u32,
    pub timeout: Option<u32>,
    pub timer: Option<usize>,
    pub command: Option<usize>,
    pub status: &'static str,
    pub source_status: &'static str,
    pub opened_at: Time,
    pub fired_at: Option<Time>,
    pub resolved_at: Option<Time>,
}

#[derive(Clone, Debug)]
pub struct Signal {
    pub id: String,
    pub command: usize,
    pub name: String,
    pub wait_id: Option<String>,
    pub status: &'static str,
    pub sequence: Option<u32>,
    pub arguments: String,
    pub value: String,
    pub received_at: Time,
    pub applied_at: Option<Time>,
}

#[derive(Clone, Debug)]
pub struct Update {
    pub id: String,
    pub command: usize,
    pub name: String,
    pub status: &'static str,
    pub sequence: Option<u32>,
    pub arguments: String,
    pub result: Option<String>,
    pub accepted_at: Time,
    pub applied_at: Option<Time>,
    pub closed_at: Option<Time>,
}

#[derive(Clone, Debug)]
pub struct Command {
    pub id: String,
    pub kind: &'static str,
    pub scope: &'static str,
    pub source: &'static str,
    pub context: Json,
    pub caller: &'static str,
    pub status: &'static str,
    pub outcome: Option<&'static str>,
    pub rejection_reason: Option<&'static str>,
    pub payload: Option<String>,
    pub target: Option<String>,
    pub sequence: u32,
    pub message_sequence: Option<u32>,
    pub at: Time,
    pub applied_at: Option<Time>,
}

#[derive(Clone, Debug)]
pub struct Failure {
    pub id: String,
    pub source_kind: &'static str,
    pub source_id: String,
    pub propagation: &'static str,
    /// `None` = written by an engine that did not classify.
    pub category: Option<&'static str>,
    pub non_retryable: bool,
    pub handled: bool,
    pub class: String,
    pub message: String,
    pub file: String,
    pub line: u32,
    pub trace: String,
    /// The whole exception, as events carry it.
    pub exception: Json,
    pub at: Time,
}

/// A child call as its parent knows it.
#[derive(Clone, Debug)]
pub struct Child {
    pub call_id: String,
    pub sequence: u32,
    pub instance: String,
    pub run: String,
    pub run_number: u32,
    pub kind: String,
    pub class: String,
    pub queue: Option<String>,
    pub arguments: String,
    pub close_policy: &'static str,
    pub status: &'static str,
    pub closed_reason: Option<&'static str>,
    pub failure: Option<String>,
    /// The resolution event is in the parent's history.
    pub resolved_at: Option<Time>,
    pub scheduled_at: Time,
    pub group: Option<Group>,
    pub typed: bool,
}

/// Where this run hangs: its parent, its predecessor or its successor.
#[derive(Clone, Debug)]
pub struct Relation {
    pub direction: &'static str,
    pub link_type: &'static str,
    pub link_id: String,
    pub child_call_id: Option<String>,
    pub sequence: Option<u32>,
    pub instance: String,
    pub run: String,
    pub run_number: u32,
    pub kind: String,
    pub class: String,
    pub status: &'static str,
    pub closed_reason: Option<&'static str>,
    pub linked_at: Time,
}

#[derive(Clone, Debug)]
pub struct Event {
    pub id: String,
    pub sequence: u32,
    pub kind: &'static str,
    pub payload: Json,
    pub task: Option<String>,
    pub command: Option<usize>,
    pub at: Time,
}

/// The current value of one search attribute.
#[derive(Clone, Debug)]
pub struct Attribute {
    pub key: String,
    pub kind: &'static str,
    pub value: Json,
    pub sequence: u32,
}

/// The current value of one memo entry.
#[derive(Clone, Debug)]
pub struct Memo {
    pub key: String,
    pub value: Json,
    pub sequence: u32,
}
