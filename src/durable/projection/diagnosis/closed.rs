//! How a run ended, and why.

use super::{draft::Draft, first_line, named};
use crate::{
    durable::{
        projection::{
            ending::{Ending, ending},
            failures::Failure,
            projected::Projected,
        },
        stored::{ClosedReason, EventType, RunStatus},
    },
    run::diagnosis::{Actor, Diagnosis},
};

pub(super) fn closed(p: &Projected<'_>) -> Diagnosis {
    let run = &p.cx.snapshot.run;
    let ended = Draft::new(p).until(None).cite_run();
    match (&run.status, &run.closed_reason) {
        (RunStatus::Completed, Some(ClosedReason::Continued)) => ended
            .cite_event(&EventType::WorkflowContinuedAsNew)
            .say("continued", "Continued as a new run.", "Open the current run of this instance.", Actor::Nobody),
        (RunStatus::Completed, _) => ended
            .cite_event(&EventType::WorkflowCompleted)
            .say("completed", "Completed.", "Nothing to do.", Actor::Nobody),
        (RunStatus::Cancelled, _) => ended
            .cite_event(&EventType::WorkflowCancelled)
            .say("cancelled", "Cancelled on request.", "Nothing to do.", Actor::Nobody),
        (RunStatus::Terminated, _) => ended
            .cite_event(&EventType::WorkflowTerminated)
            .say("terminated", "Terminated on request.", "Nothing to do.", Actor::Nobody),
        (RunStatus::Failed, Some(ClosedReason::TimedOut)) => ended
            .cite_event(&EventType::WorkflowTimedOut)
            .say(
                "timed_out",
                "Timed out: its deadline passed before it was done.",
                "See what it was waiting for when the deadline passed; start it again if it is still wanted.",
                Actor::Developer,
            ),
        (RunStatus::Failed, _) => failed(p, ended),
        (other, _) => ended.say(
            "closed_unknown",
            format!("Ended with the status {other}, which this version does not know."),
            "Look at the run's history.",
            Actor::Nobody,
        ),
    }
}

fn failed(p: &Projected<'_>, draft: Draft) -> Diagnosis {
    let Some(Ending { failure, cause }) = ending(&p.failures) else {
        return draft.say(
            "failed_untold",
            "Failed, and neither history nor a failure row says why.",
            "Look at the last events and at the worker's log of that time.",
            Actor::Developer,
        );
    };
    let category = cause
        .unwrap_or(failure)
        .failure_category
        .as_ref()
        .map_or("unclassified", |category| category.as_str());
    let message = failure
        .message
        .as_deref()
        .map_or("without a message", first_line);
    let step = cause.and_then(|cause| step_name(p, cause));
    let draft = draft.cite_failure(failure);
    let draft = match cause {
        Some(cause) => draft.cite_failure(cause),
        None => draft,
    };
    let limit = failure
        .by_event
        .as_ref()
        .and_then(|event| event.structural_limit_kind.as_deref());
    let child = cause.filter(|cause| cause.source_kind.as_deref() == Some("child_workflow_run"));
    let (code, sentence, next) = match (category, limit, step) {
        // Whatever the child's own failure is filed under: here it is the child that failed.
        _ if child.is_some() => (
            "failed_child",
            format!(
                "Failed because {} failed: {message}",
                named("child", child.and_then(|cause| child_name(p, cause)))
            ),
            "Open the child; fix what it reports, then start the workflow again.",
        ),
        ("structural_limit", Some(kind), _) => (
            "failed_structural_limit",
            format!("Failed: it ran into the engine's limit {kind}. {message}"),
            "Make the workflow do less at once, or raise the limit in the engine's configuration.",
        ),
        ("activity", _, Some(name)) if cause.is_some_and(|cause| cause.non_retryable) => (
            "failed_non_retryable",
            format!("Failed because {name} failed with an error that is never retried: {message}"),
            "Fix what the activity reports, then start the workflow again.",
        ),
        ("activity", _, Some(name)) => (
            "failed_activity",
            format!("Failed because {name} failed for good: {message}"),
            "Fix what the activity reports, then start the workflow again.",
        ),
        ("child_workflow", ..) => (
            "failed_child",
            format!("Failed because a child workflow failed: {message}"),
            "Open the child; fix what it reports, then start the workflow again.",
        ),
        ("timeout", ..) => (
            "failed_timeout",
            format!("Failed because something took too long: {message}"),
            "See which step was late, and whether its timeout is right.",
        ),
        ("task_failure", ..) => (
            "failed_task",
            format!("Failed in the workflow's own code: {message}"),
            "Fix the workflow class, deploy it, then start the workflow again.",
        ),
        ("internal", ..) => (
            "failed_internal",
            format!("Failed inside the engine or its database: {message}"),
            "Check the database and the queue at that time, then start the workflow again.",
        ),
        ("unclassified", ..) => (
            "failed_unclassified",
            format!("Failed: {message} (stored without a category)"),
            "Read the exception.",
        ),
        _ => (
            "failed",
            format!("Failed: {message}"),
            "Fix what the exception reports, then start the workflow again.",
        ),
    };
    draft.say(code, sentence, next, Actor::Developer)
}

fn step_name(p: &Projected<'_>, failure: &Failure) -> Option<String> {
    let id = failure.source_id.as_deref()?;
    let activity = p.activities.iter().find(|activity| activity.id == id)?;
    activity.name().map(|name| format!("activity {name}"))
}

fn child_name<'p>(p: &'p Projected<'_>, failure: &Failure) -> Option<&'p str> {
    let child = p
        .children
        .iter()
        .find(|child| child.child_workflow_run_id == failure.source_id)?;
    Some(&child.label)
}
