//! One sentence per task.

use super::Task;
use crate::durable::projection::context::{Context, stamp};

pub(super) fn summary(cx: Context<'_>, task: &Task) -> String {
    let what = what(task);
    if task.task_missing {
        return format!("{what} is gone.");
    }
    if task.replay_blocked {
        return match task.replay_blocked_reason.as_deref() {
            Some("failure_resolution") => {
                "Replay is blocked: a recorded exception cannot be restored.".into()
            }
            Some("condition_wait_definition_mismatch") => {
                "Replay is blocked: a condition of the deployed code differs from the recorded one."
                    .into()
            }
            Some("history_shape_mismatch") => {
                "Replay is blocked: the deployed code takes other steps than the history records."
                    .into()
            }
            Some(other) => format!("Replay is blocked: {other}."),
            None => "Replay is blocked.".into(),
        };
    }
    if task.waits_for_compatible_worker(cx.now) {
        let marker = task.compatibility.as_deref().unwrap_or("none");
        return format!("{what} waits for a worker that supports {marker}.");
    }
    match task.transport_state.as_str() {
        "lease_expired" => match task.lease_expires_at {
            Some(at) => format!("{what}: its lease ran out at {}.", stamp(at)),
            None => format!("{what}: its lease ran out."),
        },
        "dispatch_failed" => format!("{what} could not be published."),
        "repair_backoff" => match task.repair_available_at {
            Some(at) => format!("{what}: the engine tries again at {}.", stamp(at)),
            None => format!("{what}: the engine waits before it tries again."),
        },
        "claim_failed" => format!("{what} was refused by a worker."),
        "dispatch_overdue" if task.last_dispatched_at.is_none() => {
            format!("{what} is due and was never published to the queue.")
        }
        "dispatch_overdue" => format!("{what} was published and nobody has taken it."),
        "scheduled" => match task.available_at {
            Some(at) => format!("{what} waits for its time at {}.", stamp(at)),
            None => format!("{what} is scheduled."),
        },
        "leased" => format!("{what} is with a worker."),
        "ready" => format!("{what} is ready."),
        other => format!("{what}: {other}."),
    }
}

fn what(task: &Task) -> String {
    match task.r#type.as_str() {
        "activity" => {
            let name = task
                .activity_type
                .as_deref()
                .or(task.activity_class.as_deref())
                .unwrap_or("an activity");
            match task.retry_after_attempt {
                Some(attempt) => format!("Task of {name}, attempt {}", attempt.saturating_add(1)),
                None => format!("Task of {name}"),
            }
        }
        "timer" if task.condition_wait_id.is_some() => "Task of a condition timeout".into(),
        "timer" if task.signal_wait_id.is_some() => "Task of a signal timeout".into(),
        "timer" => "Timer task".into(),
        "workflow" => match task.workflow_wait_kind.as_deref() {
            Some(kind @ ("activity" | "update")) => format!("Workflow task for an {kind}"),
            Some(kind) => format!("Workflow task for a {kind}"),
            None => "Workflow task".into(),
        },
        other => format!("Task of type {other}"),
    }
}
