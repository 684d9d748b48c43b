//! Commands: who asked for what, by which way, and what became of it.

use super::{payloads, signals::errors};
use crate::{
    durable::projection::{Projected, commands::Command},
    run::{
        commands as shown,
        data::PayloadRef,
        fact::{Facts, RunRef, anchor},
        section::Section,
        tag::Tag,
        window::Asked,
    },
};

pub fn commands(p: &Projected<'_>, asked: &Asked, ahead: bool) -> shown::Commands {
    let window = asked.window("commands", p.commands.len(), |at| {
        let id = at.strip_prefix("command-")?;
        p.commands.iter().position(|command| command.id == id)
    });
    Section::new(window, ahead, |stretch| {
        stretch.of(&p.commands).iter().map(row).collect()
    })
}

fn row(command: &Command) -> shown::Command {
    let caller = &command.caller;
    let workflow = caller.context.workflow.as_ref();
    let intake = caller.context.intake.as_ref();
    let request = match (&caller.request_method, &caller.request_path) {
        (Some(method), Some(path)) => Some(format!("{method} {path}")),
        (None, Some(path)) => Some(path.clone()),
        (method, None) => method.clone(),
    };
    let auth = match (&caller.auth_status, &caller.auth_method) {
        (Some(status), Some(method)) => Some(format!("{status} by {method}")),
        (status, method) => status.clone().or_else(|| method.clone()),
    }
    .filter(|_| caller.auth_status.as_deref() != Some("not_applicable"));
    shown::Command {
        anchor: anchor("command", &command.id),
        sequence: command.sequence,
        kind: command.command_type.as_str().to_owned(),
        target: command.target_name.clone(),
        status: Tag::message(command.status.as_str()),
        outcome: command
            .rejection_reason
            .as_ref()
            .or(command.outcome.as_ref())
            .map(|outcome| outcome.replace('_', " ")),
        reason: command.reason.clone(),
        principal: caller.principal().or_else(|| caller.caller_label.clone()),
        source: command.source.clone(),
        at: command
            .accepted_at
            .or(command.rejected_at)
            .or(command.applied_at),
        payload: payloads::of_value(
            PayloadRef {
                of: "command",
                id: command.id.clone(),
                part: "payload",
            },
            command.payload.as_ref(),
        ),
        facts: Facts::default()
            .code("Command id", Some(&command.id))
            .code("Outcome", command.outcome.as_deref())
            .code("Principal type", caller.principal_type.as_deref())
            .code("Principal id", caller.principal_id.as_deref())
            .text("Principal", caller.principal_label.as_deref())
            .text("Caller", caller.caller_label.as_deref())
            .text("Authorisation", auth)
            .code("Request", request)
            .code("Route", caller.request_route_name.as_deref())
            .code("Fingerprint", caller.request_fingerprint.as_deref())
            .code("Request id", command.request_id.as_deref())
            .code("Correlation id", command.correlation_id.as_deref())
            .run(
                "Sent by workflow",
                workflow.and_then(|from| {
                    let instance_id = from.parent_instance_id.clone()?;
                    Some(RunRef {
                        text: instance_id.clone(),
                        run_id: from.parent_run_id.clone(),
                        instance_id,
                    })
                }),
            )
            .code("Intake", intake.and_then(|intake| intake.mode.as_deref()))
            .code(
                "Intake group",
                intake.and_then(|intake| intake.group_id.as_deref()),
            )
            .code("Target", Some(&command.target_scope))
            .code("Asked for run", command.requested_run_id.as_deref())
            .code("Went to run", command.resolved_run_id.as_deref())
            .text("Validation errors", errors(&command.validation_errors))
            .at("Accepted", command.accepted_at)
            .at("Applied", command.applied_at)
            .at("Rejected", command.rejected_at)
            .code("Task", command.tasks.current_task_id.as_deref())
            .code("Task state", command.tasks.task_transport_state.as_deref())
            .text("Task row", command.tasks.task_missing.then_some("missing"))
            .list(),
    }
}
