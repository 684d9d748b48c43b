//! How a run closes other than by continuing as new.

use chrono::TimeDelta;
use serde_json::json;

use super::{
    activity::Activity,
    draft::{CODEC, Cause, Draft, Ending, Subject, joined, stamp},
    mix::{Failure, RESULTS},
    story::steps,
};

pub fn complete(draft: &mut Draft<'_>) -> Ending {
    let output = RESULTS[draft.rng.usize(..RESULTS.len())];
    draft.output = Some(output);
    draft.event(
        "WorkflowCompleted",
        Subject::Run,
        &json!({"output": output, "payload_codec": CODEC}),
    );
    Ending::Closed {
        status: "completed",
        reason: "completed",
    }
}

pub fn fail(draft: &mut Draft<'_>, budget: u32, failure: Failure) -> Ending {
    let file = "/srv/app/app/Activities/Gateway.php";
    let cause = |category, class, message: &str, file| Cause {
        propagation: "terminal",
        category,
        class,
        message: message.to_owned(),
        file,
        non_retryable: false,
    };
    let mut keys = json!({"source_kind": "workflow_run", "source_id": draft.who.run});
    let terminal = match failure {
        Failure::Activity | Failure::ActivityTimeout => {
            steps(draft, budget.saturating_sub(3));
            let (propagation, category, class, message) = if failure == Failure::Activity {
                (
                    "activity",
                    "activity",
                    "RuntimeException",
                    "The gateway refused the card",
                )
            } else {
                (
                    "timeout",
                    "timeout",
                    "App\\Exceptions\\TooSlow",
                    "The worker did not finish in time",
                )
            };
            let own = Cause {
                propagation,
                ..cause(category, class, message, file)
            };
            let end = if failure == Failure::Activity {
                Activity::Failed(own)
            } else {
                Activity::TimedOut(own)
            };
            draft.activity(&end, 0);
            draft.resume_after_activity("failed");
            // Judged from the exception alone, as the engine does.
            cause("application", class, message, file)
        }
        Failure::Application => {
            steps(draft, budget);
            cause(
                "application",
                "DomainException",
                "The order was already shipped",
                "/srv/app/app/Workflows/Rules.php",
            )
        }
        Failure::Internal => {
            steps(draft, budget);
            cause(
                "internal",
                "Illuminate\\Database\\QueryException",
                "SQLSTATE[HY000]: server has gone away",
                "/srv/app/vendor/laravel/framework/src/Illuminate/Database/Connection.php",
            )
        }
        Failure::Task => {
            steps(draft, budget);
            cause(
                "task_failure",
                "App\\Exceptions\\UnsupportedYield",
                "The workflow yielded what cannot be awaited",
                "",
            )
        }
        Failure::StructuralLimit => {
            steps(draft, budget);
            keys["structural_limit_kind"] = json!("pending_activity_count");
            keys["structural_limit_value"] = json!(2_000);
            keys["structural_limit_configured"] = json!(2_000);
            Cause {
                non_retryable: true,
                ..cause(
                    "structural_limit",
                    "App\\Exceptions\\TooMany",
                    "Structural limit exceeded: 2000 activities are pending",
                    "",
                )
            }
        }
    };
    let id = draft.failure(("workflow_run", &draft.who.run.clone()), &terminal);
    draft.failure_event(
        "WorkflowFailed",
        Subject::Run,
        &joined(keys, terminal.keys(&id)),
        &id,
    );
    Ending::Closed {
        status: "failed",
        reason: "failed",
    }
}

pub fn time_out(draft: &mut Draft<'_>) -> Ending {
    let seconds = draft.run_timeout.unwrap_or(1);
    let deadline = draft.who.started + TimeDelta::seconds(seconds);
    draft.cancelled_timer(|draft| {
        draft.at = draft.at.max(deadline);
        draft.workflow_task("completed", &json!({"reason": "deadline_expired"}));
        None
    });
    let cause = Cause {
        propagation: "timeout",
        category: "timeout",
        class: "App\\Exceptions\\DeadlinePassed",
        message: format!("The run deadline passed after {seconds} s"),
        file: "",
        non_retryable: false,
    };
    let id = draft.failure(("workflow_run", &draft.who.run.clone()), &cause);
    let payload = json!({
        "failure_id": id, "timeout_kind": "run_timeout", "failure_category": "timeout",
        "message": cause.message, "exception_class": cause.class,
        "execution_deadline_at": null, "run_deadline_at": stamp(deadline),
    });
    draft.failure_event("WorkflowTimedOut", Subject::Run, &payload, &id);
    Ending::Closed {
        status: "failed",
        reason: "timed_out",
    }
}

/// Someone cancels or terminates the run while it waits for a timer.
pub fn stop(draft: &mut Draft<'_>, command_type: &'static str, outcome: &'static str) -> Ending {
    let cancel = command_type == "cancel";
    let (requested, stopped) = if cancel {
        ("CancelRequested", "WorkflowCancelled")
    } else {
        ("TerminateRequested", "WorkflowTerminated")
    };
    let base = |draft: &Draft<'_>, id: &str| {
        json!({
            "workflow_command_id": id, "workflow_instance_id": draft.who.instance,
            "workflow_run_id": draft.who.run,
        })
    };
    let command = draft.cancelled_timer(|draft| {
        let command = draft.command(command_type, outcome);
        let mut payload = base(draft, &command.0);
        payload["command_type"] = json!(command_type);
        let on = (command.0.as_str(), command.1);
        draft.command_event(
            requested,
            Subject::Command(command.0.clone()),
            &payload,
            on,
            None,
        );
        Some(command)
    });
    let (id, sequence) = command.expect("the closure above returns one");
    let cause = Cause {
        propagation: outcome,
        category: outcome,
        class: if cancel {
            "App\\Exceptions\\Cancelled"
        } else {
            "App\\Exceptions\\Terminated"
        },
        message: format!("Asked to {command_type}"),
        file: "",
        non_retryable: false,
    };
    let failure = draft.failure(("workflow_run", &draft.who.run.clone()), &cause);
    let mut payload = base(draft, &id);
    for (key, value) in [
        ("failure_id", json!(failure)),
        ("failure_category", json!(outcome)),
        ("closed_reason", json!(outcome)),
        ("exception_class", json!(cause.class)),
        ("message", json!(cause.message)),
    ] {
        payload[key] = value;
    }
    draft.command_event(
        stopped,
        Subject::Run,
        &payload,
        (&id, sequence),
        Some(&failure),
    );
    Ending::Closed {
        status: outcome,
        reason: outcome,
    }
}
