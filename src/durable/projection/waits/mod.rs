//! What a run waits for, or has waited for. One file per kind of wait.

pub mod steps;
pub mod tasks;

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::{context::ts, parallel::ParallelGroup};

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
