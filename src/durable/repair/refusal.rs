//! Why a run is not repaired: the gate's own reasons, and those that only show when the rows to
//! write are worked out.

use chrono::{DateTime, TimeDelta, Utc};

use crate::durable::{
    projection::{Projected, context::stamp, repair_gate},
    stored::RepairBlockedReason,
};

#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    /// The durable state does not call for repair.
    Blocked(RepairBlockedReason),
    /// The engine sees nothing to repair; why, in words.
    NotNeeded { why: &'static str },
    /// The engine failed to publish the task and waits before it tries again. A repair now would
    /// make a second task.
    DispatchBackoff { until: DateTime<Utc> },
    /// The lease ran out only just now: the worker's clock may be behind ours.
    LeaseJustExpired { at: DateTime<Utc> },
    /// A task would be made, run and change nothing, again and again.
    NoProgress,
    /// History does not say enough to put the row back.
    NotRestorable { what: String },
    /// Another row has what only one row of a run may have: its place in the workflow, or its
    /// command.
    PlaceTaken { what: String, by: String },
    /// It runs inside its workflow's own task; a task of its own would be wrong.
    LocalActivity,
    /// The command that records the repair could not be written in the run's own codec.
    UnsupportedCodec { codec: String },
    /// Another task is open, or not known to be over.
    OpenTask { id: String },
    /// The task is ready; a pass of ours cannot put it into the queue its workers listen to.
    ToBePublished { id: String },
    /// A worker's backend refused the task, which no repair changes.
    ClaimFailed { id: String },
    /// A try of the activity may be running, or may have come to something.
    AttemptNotOver { id: String },
    /// A row the plan would stand on holds what cannot be read.
    Unreadable {
        table: &'static str,
        column: &'static str,
        id: String,
    },
    /// So many of the run's values cannot be read that not all of them are known.
    TooMuchUnreadable,
    /// Nudging only makes the engine rebuild a missing task of a run it does not know to need it.
    NothingToNudge,
    /// The engine's pass never clears a replay block.
    NoNudgeUnblocks,
    /// The engine's pass finds runs by their stored summary, and this one has none.
    NoSummaryToNudge,
}

static NOT_NEEDED: RepairBlockedReason = RepairBlockedReason::RepairNotNeeded;

impl Refusal {
    /// What the gate says of a run, with the reason it has where the gate has but a word.
    pub fn of_gate(p: &Projected<'_>, reason: RepairBlockedReason) -> Self {
        match reason {
            RepairBlockedReason::RepairNotNeeded => Self::NotNeeded {
                why: repair_gate::not_needed(p),
            },
            reason => Self::Blocked(reason),
        }
    }

    /// The stable word scripts compare; the engine's own where it has one.
    pub fn code(&self) -> &str {
        match self {
            Self::Blocked(reason) => reason.as_str(),
            Self::NotNeeded { .. } => NOT_NEEDED.as_str(),
            Self::DispatchBackoff { .. } => "dispatch_backoff",
            Self::LeaseJustExpired { .. } => "lease_just_expired",
            Self::NoProgress => "no_progress",
            Self::NotRestorable { .. } | Self::PlaceTaken { .. } => "not_restorable",
            Self::LocalActivity => "local_activity",
            Self::UnsupportedCodec { .. } => "unsupported_codec",
            Self::OpenTask { .. } => "open_task",
            Self::ToBePublished { .. } => "to_be_published",
            Self::ClaimFailed { .. } => "claim_failed",
            Self::AttemptNotOver { .. } => "attempt_not_over",
            Self::Unreadable { .. } | Self::TooMuchUnreadable => "unreadable_rows",
            Self::NothingToNudge | Self::NoNudgeUnblocks | Self::NoSummaryToNudge => {
                "nothing_to_nudge"
            }
        }
    }

    /// Until when the same would be refused, where time alone changes that.
    pub fn not_before(&self) -> Option<DateTime<Utc>> {
        match self {
            Self::DispatchBackoff { until } => Some(*until),
            Self::LeaseJustExpired { at } => {
                at.checked_add_signed(TimeDelta::seconds(LEASE_MARGIN_SECONDS))
            }
            _ => None,
        }
    }

    /// For readers whose zone nobody knows.
    pub fn told(&self) -> String {
        match self.not_before() {
            Some(at) => format!("{} Not before {}.", self.words(), stamp(at)),
            None => self.words(),
        }
    }

    /// Without the moment, which a page shows beside them in its own zone.
    pub fn words(&self) -> String {
        match self {
            Self::Blocked(reason) => repair_gate::shown(reason)
                .map_or("not a reason Plimsoll knows", |shown| shown.description)
                .to_owned(),
            Self::NotNeeded { why } => (*why).to_owned(),
            Self::DispatchBackoff { .. } => "The engine could not publish the task and tries again by itself. A repair now would make a second task.".to_owned(),
            Self::LeaseJustExpired { .. } => format!(
                "The worker's lease ended less than {LEASE_MARGIN_SECONDS} s ago; clocks differ. Try again in a moment."
            ),
            Self::NoProgress => "The child's outcome has already been applied: the workflow has gone on since. A new task would change nothing.".to_owned(),
            Self::NotRestorable { what } => {
                format!("History does not say enough to put {what} back.")
            }
            Self::PlaceTaken { what, by } => {
                format!("Row {by} stands where history has {what}, so it cannot be put back.")
            }
            Self::LocalActivity => {
                "The activity runs inside its workflow's own task; it has no task to put back."
                    .to_owned()
            }
            Self::UnsupportedCodec { codec } => {
                format!("The run's payloads are written with {codec}, which Plimsoll cannot write.")
            }
            Self::OpenTask { id } => {
                format!("Task {id} is still open; a second one beside it is never made.")
            }
            Self::ToBePublished { id } => format!(
                "Task {id} is ready; only the engine's own repair pass can publish it where workers listen to a queue."
            ),
            Self::ClaimFailed { id } => format!(
                "A worker was refused task {id}. The engine offers it again by itself; what refused it has to be put right."
            ),
            Self::AttemptNotOver { id } => format!(
                "Attempt {id} of the activity is not known to have failed: its code may be running, or may have run."
            ),
            Self::Unreadable { table, column, id } => format!(
                "{column} of row {id} of {table} cannot be read, and a repair would rest on it."
            ),
            Self::TooMuchUnreadable => {
                "Too many values of this run cannot be read for a repair to rest on them.".to_owned()
            }
            Self::NothingToNudge => "The engine's repair pass sees this by itself; a nudge adds nothing. Only --repair-mode direct does more.".to_owned(),
            Self::NoNudgeUnblocks => "The engine's repair pass does not clear a replay block, nudged or not. --repair-mode direct does, and so does the engine's own repair command.".to_owned(),
            Self::NoSummaryToNudge => "The run has no stored summary, by which the engine's repair pass would find it: there is nothing to mark. Only --repair-mode direct does more.".to_owned(),
        }
    }
}

/// How long a lease must have been over.
pub const LEASE_MARGIN_SECONDS: i64 = 2;
