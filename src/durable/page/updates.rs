//! Updates: how each stands in line, and what it returned.

use super::{
    payloads,
    places::Places,
    signals::{command, errors},
};
use crate::{
    durable::projection::{Projected, updates::Update},
    run::{
        data::PayloadRef,
        fact::{Facts, anchor},
        section::Section,
        tag::Tag,
        updates as shown,
        window::Asked,
    },
};

pub fn updates(
    p: &Projected<'_>,
    asked: &Asked,
    ahead: bool,
    places: &Places<'_>,
) -> shown::Updates {
    let window = asked.window("updates", p.updates.len(), |at| {
        let id = at.strip_prefix("update-")?;
        p.updates.iter().position(|update| key(update) == Some(id))
    });
    Section::new(window, ahead, |stretch| {
        let rows = stretch.of(&p.updates).iter();
        rows.map(|update| row(update, places)).collect()
    })
}

/// Its own id, or that of the command it is known by.
pub fn key(update: &Update) -> Option<&str> {
    update.id.as_deref().or(update.command_id.as_deref())
}

fn row(update: &Update, places: &Places<'_>) -> shown::Update {
    let id = key(update).unwrap_or_default();
    let payload = |part, value: &Option<serde_json::Value>| {
        let of = PayloadRef {
            of: "update",
            id: id.to_owned(),
            part,
        };
        payloads::of_value(of, value.as_ref())
    };
    let outcome = match (update.ordering_state, &update.failure_message) {
        (_, Some(message)) => Some(message.clone()),
        ("queued", None) => Some(match update.admission.queued_behind_command_sequence {
            Some(sequence) => format!("in line behind command {sequence}"),
            None => "in line behind an earlier command".to_owned(),
        }),
        _ => update
            .rejection_reason
            .as_ref()
            .or(update.outcome.as_ref())
            .map(|outcome| outcome.replace('_', " ")),
    };
    shown::Update {
        anchor: anchor("update", id),
        name: update
            .name
            .clone()
            .unwrap_or_else(|| "without a name".into()),
        status: Tag::message(update.status.as_str()),
        outcome,
        accepted: update.accepted_at,
        closed: update
            .closed_at
            .or(update.applied_at)
            .or(update.rejected_at),
        arguments: payload("arguments", &update.arguments),
        result: payload("result", &update.result),
        facts: Facts::default()
            .code("Update id", update.id.as_deref())
            .row(
                "Command",
                command(
                    places,
                    update.command_id.as_deref(),
                    update.command_sequence,
                ),
            )
            .count("Applied at sequence", update.workflow_sequence)
            .code("Order", Some(update.ordering_state))
            .code("Source", update.source.as_deref())
            .code("Target", update.target_scope.as_deref())
            .code("Asked for run", update.requested_run_id.as_deref())
            .code("Went to run", update.resolved_run_id.as_deref())
            .code("Outcome", update.outcome.as_deref())
            .text("Validation errors", errors(&update.validation_errors))
            .row(
                "Failure",
                update.failure_id.as_ref().map(|id| {
                    let class = update.exception.exception_class.clone();
                    places.failure(id, class.unwrap_or_else(|| id.clone()))
                }),
            )
            .code("Task", update.tasks.current_task_id.as_deref())
            .code("Task state", update.tasks.task_transport_state.as_deref())
            .text("Task row", update.tasks.task_missing.then_some("missing"))
            .list(),
    }
}
