//! What a run waits for, or has waited for. One file per kind of wait.

pub mod children;
pub mod conditions;
pub mod open_wait;
pub mod signals;
pub mod steps;
pub mod tasks;
pub mod updates;

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::{
    context::{millis, ts},
    parallel::ParallelGroup,
};
use crate::durable::arrange::arrange;

/// One wait, with the keys the engine's JSON has for every kind, and those of its own kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Wait {
    pub id: String,
    pub kind: &'static str,
    pub sequence: Option<i64>,
    /// `open`, `resolved`, `cancelled`, `unsupported`.
    pub status: &'static str,
    pub source_status: Option<String>,
    /// Ours to word.
    pub summary: String,
    #[serde(serialize_with = "ts")]
    pub opened_at: Option<DateTime<Utc>>,
    #[serde(serialize_with = "ts")]
    pub deadline_at: Option<DateTime<Utc>>,
    #[serde(serialize_with = "ts")]
    pub resolved_at: Option<DateTime<Utc>>,
    #[serde(serialize_with = "ts")]
    pub timeout_fired_at: Option<DateTime<Utc>>,
    pub target_name: Option<String>,
    pub target_type: Option<String>,
    pub task_backed: bool,
    pub external_only: bool,
    pub resume_source_kind: Option<String>,
    pub resume_source_id: Option<String>,
    pub task_id: Option<String>,
    pub task_type: Option<String>,
    pub task_status: Option<String>,
    pub command_id: Option<String>,
    pub command_sequence: Option<i64>,
    pub command_status: Option<String>,
    pub command_outcome: Option<String>,
    pub history_authority: Option<&'static str>,
    pub history_unsupported_reason: Option<&'static str>,
    #[serde(flatten)]
    pub of_kind: OfKind,
}

/// The keys only one kind of wait has.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(untagged)]
pub enum OfKind {
    #[default]
    None,
    /// Activities and timers.
    Step {
        diagnostic_only: bool,
        row_status: Option<String>,
        #[serde(flatten)]
        group: ParallelGroup,
    },
    Condition {
        condition_wait_id: String,
        condition_key: Option<String>,
        condition_definition_fingerprint: Option<String>,
        timeout_seconds: Option<i64>,
    },
    Signal {
        signal_wait_id: String,
        signal_id: Option<String>,
        timer_id: Option<String>,
        timeout_seconds: Option<i64>,
    },
    Child {
        child_call_id: Option<String>,
        child_workflow_run_id: Option<String>,
        diagnostic_only: bool,
        #[serde(flatten)]
        group: ParallelGroup,
    },
    Update {
        update_id: Option<String>,
        ordering_state: String,
    },
}

impl Wait {
    pub fn is_open(&self) -> bool {
        self.status == "open"
    }

    /// Known from a mutable row alone: it proves nothing and resumes nothing.
    pub fn is_diagnostic(&self) -> bool {
        matches!(
            self.of_kind,
            OfKind::Step {
                diagnostic_only: true,
                ..
            } | OfKind::Child {
                diagnostic_only: true,
                ..
            }
        )
    }
}

/// All waits of a run in the engine's order: open ones first, then by when they began.
pub fn assemble(mut waits: Vec<Wait>) -> Vec<Wait> {
    arrange(&mut waits, place, |wait| &wait.id);
    waits
}

/// Waits with status `open`; those known from a row alone count too.
pub fn open_wait_count(waits: &[Wait]) -> usize {
    waits.iter().filter(|wait| wait.is_open()).count()
}

/// The engine compares milliseconds, and puts a wait without a beginning last.
pub fn order(wait: &Wait) -> (u8, i64, &str) {
    let (rank, opened) = place(wait);
    (rank, opened, &wait.id)
}

fn place(wait: &Wait) -> (u8, i64) {
    (
        match wait.status {
            "open" => 0,
            "resolved" => 1,
            "cancelled" => 2,
            _ => 3,
        },
        wait.opened_at.map_or(i64::MAX, millis),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::durable::stored::{HistoryEvent, TaskRow, TaskType};

    /// An event at noon, for tests of what history says.
    pub fn event(event_type: &str, payload: &Value) -> HistoryEvent {
        HistoryEvent {
            id: "event".into(),
            sequence: 1,
            event_type: event_type.into(),
            payload: Some(payload.to_string()),
            workflow_task_id: None,
            workflow_command_id: None,
            recorded_at: Some("2026-11-15T12:00:00Z".parse().expect("a valid time")),
            created_at: None,
            is_json: std::sync::OnceLock::new(),
        }
    }

    /// A workflow task, for tests to vary.
    pub fn task(id: &str, status: &str) -> TaskRow {
        TaskRow {
            id: id.into(),
            workflow_run_id: "run".into(),
            namespace: None,
            task_type: TaskType::Workflow,
            status: status.into(),
            compatibility: None,
            payload: crate::durable::stored::loose::Raw::default(),
            connection: None,
            queue: None,
            available_at: None,
            leased_at: None,
            lease_owner: None,
            lease_expires_at: None,
            attempt_count: 0,
            last_dispatch_attempt_at: None,
            last_dispatched_at: None,
            last_dispatch_error: None,
            last_claim_failed_at: None,
            last_claim_error: None,
            repair_count: 0,
            repair_available_at: None,
            last_error: None,
            created_at: None,
            updated_at: None,
        }
    }

    #[test]
    fn open_waits_come_first_then_the_oldest_then_by_id() {
        let wait = |id: &str, status, opened_at: Option<&str>| Wait {
            id: id.into(),
            status,
            opened_at: opened_at.map(|at| at.parse().expect("a valid time")),
            ..Wait::default()
        };
        // The engine rounds to milliseconds: what falls into one is told apart by id.
        let early = Some("2026-11-15T12:00:00.000600Z");
        let same_millisecond = Some("2026-11-15T12:00:00.001400Z");
        let next_millisecond = Some("2026-11-15T12:00:00.001600Z");
        let late = Some("2026-11-15T12:00:01Z");
        let waits = assemble(vec![
            wait("h", "unsupported", early),
            wait("g", "cancelled", early),
            wait("f", "resolved", early),
            wait("d", "open", None),
            wait("c", "open", late),
            wait("2", "open", next_millisecond),
            wait("b", "open", early),
            wait("a", "open", same_millisecond),
        ]);
        let order: String = waits.iter().map(|wait| wait.id.as_str()).collect();
        assert_eq!(order, "ab2cdfgh");
        assert_eq!(open_wait_count(&waits), 5);
    }
}
