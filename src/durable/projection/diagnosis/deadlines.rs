//! The two deadlines of a run: its own, and that of the execution it is one run of.

use chrono::{DateTime, Utc};

use crate::durable::{
    projection::projected::Projected,
    stored::{
        EventType, RunRow,
        loose::{self, Text, shape},
    },
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    Execution,
    Run,
}

impl Which {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Execution => "execution deadline",
            Self::Run => "run deadline",
        }
    }

    pub(super) fn column(self) -> &'static str {
        match self {
            Self::Execution => "execution_deadline_at",
            Self::Run => "run_deadline_at",
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline {
    pub which: Which,
    pub at: DateTime<Utc>,
}

shape! {
    struct TimedOut {
        timeout_kind: Text,
    }
}

fn all(run: &RunRow) -> impl Iterator<Item = Deadline> {
    [
        (Which::Execution, run.execution_deadline_at),
        (Which::Run, run.run_deadline_at),
    ]
    .into_iter()
    .filter_map(|(which, at)| at.map(|at| Deadline { which, at }))
}

/// The one that comes first.
pub(super) fn first(p: &Projected<'_>) -> Option<Deadline> {
    all(&p.cx.snapshot.run).min_by_key(|deadline| deadline.at)
}

/// The one that closed the run, as its last event says; where that does not, the first.
pub(super) fn that_closed(p: &Projected<'_>) -> Option<Deadline> {
    let mut events = p.cx.snapshot.events.iter();
    let event = events.rfind(|event| event.event_type == EventType::WorkflowTimedOut);
    let told: TimedOut = loose::read(event.and_then(|event| event.payload.as_deref()));
    let which = match told.timeout_kind.0.as_deref() {
        Some("execution_timeout") => Which::Execution,
        Some("run_timeout") => Which::Run,
        _ => return first(p),
    };
    all(&p.cx.snapshot.run).find(|deadline| deadline.which == which)
}
