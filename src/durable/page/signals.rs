//! Signals: what was sent, and whether the workflow has taken it.

use super::{payloads, places::Places};
use crate::{
    durable::projection::{Projected, signals::Signal},
    run::{
        data::{PayloadRef, written},
        fact::{Facts, RowRef, anchor},
        section::Section,
        signals as shown,
        tag::Tag,
        window::Asked,
    },
};

/// Most bytes of validation errors that stand in the page.
const ERRORS: usize = 1_024;

pub fn signals(
    p: &Projected<'_>,
    asked: &Asked,
    ahead: bool,
    places: &Places<'_>,
) -> shown::Signals {
    let window = asked.window("signals", p.signals.len(), |at| {
        let id = at.strip_prefix("signal-")?;
        p.signals.iter().position(|signal| key(signal) == Some(id))
    });
    Section::new(window, ahead, |stretch| {
        let rows = stretch.of(&p.signals).iter();
        rows.map(|signal| row(signal, places)).collect()
    })
}

/// Its own id, or that of the command it is known by.
pub fn key(signal: &Signal) -> Option<&str> {
    signal.id.as_deref().or(signal.command_id.as_deref())
}

fn row(signal: &Signal, places: &Places<'_>) -> shown::Signal {
    let id = key(signal).unwrap_or_default();
    shown::Signal {
        anchor: anchor("signal", id),
        name: signal
            .name
            .clone()
            .unwrap_or_else(|| "without a name".into()),
        status: Tag::message(signal.status.as_str()),
        outcome: signal
            .rejection_reason
            .as_ref()
            .or(signal.outcome.as_ref())
            .map(|outcome| outcome.replace('_', " ")),
        received: signal.received_at,
        applied: signal.applied_at,
        arguments: payloads::of_value(
            PayloadRef {
                of: "signal",
                id: id.to_owned(),
                part: "arguments",
            },
            signal.arguments.as_ref(),
        ),
        facts: Facts::default()
            .code("Signal id", signal.id.as_deref())
            .row(
                "Command",
                command(
                    places,
                    signal.command_id.as_deref(),
                    signal.command_sequence,
                ),
            )
            .count("Applied at sequence", signal.workflow_sequence)
            .code("Wait id", signal.signal_wait_id.as_deref())
            .code("Source", signal.source.as_deref())
            .code("Target", signal.target_scope.as_deref())
            .code("Asked for run", signal.requested_run_id.as_deref())
            .code("Went to run", signal.resolved_run_id.as_deref())
            .code("Outcome", signal.outcome.as_deref())
            .text("Validation errors", errors(&signal.validation_errors))
            .code("Task", signal.tasks.current_task_id.as_deref())
            .code("Task state", signal.tasks.task_transport_state.as_deref())
            .text("Task row", signal.tasks.task_missing.then_some("missing"))
            .at("Rejected", signal.rejected_at)
            .at("Closed", signal.closed_at)
            .list(),
    }
}

pub(super) fn command(
    places: &Places<'_>,
    id: Option<&str>,
    sequence: Option<i64>,
) -> Option<RowRef> {
    let id = id?;
    let words = match sequence {
        Some(sequence) => format!("command {sequence}"),
        None => id.to_owned(),
    };
    Some(places.command(id, words))
}

/// Why it was not valid; none when nothing is said.
pub(super) fn errors(errors: &serde_json::Value) -> Option<String> {
    let said = match errors {
        serde_json::Value::Null => false,
        serde_json::Value::Array(list) => !list.is_empty(),
        serde_json::Value::Object(map) => !map.is_empty(),
        _ => true,
    };
    said.then(|| written(errors, ERRORS).unwrap_or_else(|| "longer than shown here".into()))
}
