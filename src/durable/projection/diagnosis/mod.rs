//! One sentence and one next step for any run. Every clause rests on a row that is cited; a
//! state we do not know is named raw.

mod draft;

use self::draft::Draft;
use super::{
    activities::Activity,
    ending::{Ending, ending},
    failures::Failure,
    liveness::is_replay_blocked,
    projected::Projected,
    tasks::Task,
    waits::Wait,
};
use crate::{
    durable::stored::{ClosedReason, EventType, LivenessState, RunStatus, WaitKind},
    run::{
        diagnosis::{Actor, Citation, Diagnosis},
        fact::anchor,
    },
};

pub fn diagnose(p: &Projected<'_>) -> Diagnosis {
    if p.cx.snapshot.run.status.is_terminal() {
        closed(p)
    } else {
        open(p)
    }
}

// --- closed runs

fn closed(p: &Projected<'_>) -> Diagnosis {
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
            "Look at the history below.",
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
    let (code, sentence, next) = match (category, limit, step) {
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
            "Read the exception below.",
        ),
        _ => (
            "failed",
            format!("Failed: {message}"),
            "Fix what the exception reports, then start the workflow again.",
        ),
    };
    draft.say(code, sentence, next, Actor::Developer)
}

// --- open runs

fn open(p: &Projected<'_>) -> Diagnosis {
    let standing = &p.standing;
    let draft = Draft::new(p).cite_run();
    let next = standing
        .next_task_id
        .as_deref()
        .and_then(|id| p.tasks.iter().find(|task| task.id == id));
    let wait = standing
        .open_wait_id
        .as_deref()
        .and_then(|id| p.waits.iter().find(|wait| wait.id == id));
    let draft = match wait {
        Some(wait) => draft.cite_wait(wait),
        None => draft,
    };
    let draft = match awaited_activity(p) {
        Some(activity) => draft.cite_activity(activity),
        None => draft,
    };
    let what = waiting_for(p, wait);
    let run = &p.cx.snapshot.run;
    let deadline = [run.run_deadline_at, run.execution_deadline_at]
        .into_iter()
        .flatten()
        .min();
    if deadline.is_some_and(|deadline| deadline <= p.cx.now) {
        return draft.cite_deadline(deadline).until(deadline).say(
            "deadline_passed",
            format!("Its deadline has passed and the engine has not closed it yet; it was waiting for {what}."),
            "The engine closes it with its next repair pass. If it stays open, check that the pass runs.",
            Actor::Engine,
        );
    }
    if let RunStatus::Other(status) = &run.status {
        return draft.say(
            "unknown_status",
            format!(
                "Has the status {status}, which this version does not know; it waits for {what}."
            ),
            "Look at the history below.",
            Actor::Worker,
        );
    }
    match &standing.liveness_state {
        LivenessState::WorkflowReplayBlocked => replay_blocked(p, draft),
        LivenessState::RepairNeeded => repair(p, draft, next, &what),
        LivenessState::ActivityRunningWithoutTask => draft.say(
            "activity_running_without_task",
            format!("{what} is running as far as history knows, but its task row is gone. Its code may still be running."),
            "Wait for its outcome or its timeout. Repair is not offered: it could run the activity twice.",
            Actor::Worker,
        ),
        LivenessState::WaitingForCondition => draft.say(
            "waiting_condition",
            format!("Waits for {what} to become true."),
            "Nothing is wrong. Send the signal or update that makes it true, or wait for its timeout.",
            Actor::Sender,
        ),
        LivenessState::WaitingForSignal => draft.say(
            "waiting_signal",
            format!("Waits for {what}."),
            "Nothing is wrong. It goes on when the signal is sent, or when its timeout passes.",
            Actor::Sender,
        ),
        LivenessState::WaitingForChild => draft.say(
            "waiting_child",
            format!("Waits for {what} to end."),
            "Nothing is wrong here. Open the child to see what it is doing.",
            Actor::Child,
        ),
        LivenessState::TimerScheduled => draft.cite_task(next).say(
            "waiting_timer",
            format!("Waits for {what}."),
            "Nothing is wrong. It goes on when the timer fires.",
            Actor::Timer,
        ),
        state => by_task(p, draft, next, state.as_str(), &what),
    }
}

/// The states a task gives its run.
fn by_task(
    p: &Projected<'_>,
    draft: Draft,
    next: Option<&Task>,
    state: &str,
    what: &str,
) -> Diagnosis {
    let draft = draft.cite_task(next);
    let retrying = next
        .and_then(|task| task.retry_after_attempt)
        .map(|attempt| attempt.saturating_add(1));
    match state.rsplit_once("_task_").map(|(_, suffix)| suffix) {
        Some("waiting_for_compatible_worker") => draft.say(
            "waiting_for_compatible_worker",
            format!(
                "Its task is ready, but no live worker supports the marker {}.",
                next.and_then(|task| task.compatibility.as_deref()).unwrap_or("it asks for")
            ),
            "Start a worker that supports it. Repair is not offered: the task is there.",
            Actor::Worker,
        ),
        Some("claim_failed") => draft.say(
            "claim_failed",
            format!(
                "A worker refused its task: {}",
                next.and_then(|task| task.last_claim_error.as_deref()).map_or("no reason is stored", first_line)
            ),
            "Correct the worker or its queue; the engine offers the task again by itself.",
            Actor::Worker,
        ),
        Some("leased") => draft.say(
            "worker_has_it",
            format!("A worker has its task: {what}."),
            "Nothing is wrong. If the lease runs out, the engine or Repair brings the task back.",
            Actor::Worker,
        ),
        Some("ready") if retrying.is_some_and(|_| next.is_some_and(|task| task.available_at.is_some_and(|at| at > p.cx.now))) => {
            let attempt = retrying.unwrap_or(0);
            draft.until(next.and_then(|task| task.available_at)).say(
                "retrying",
                format!("{what} failed and is tried again: attempt {attempt} waits for its backoff."),
                "Nothing to do yet. The attempts below say why it failed.",
                Actor::Timer,
            )
        }
        Some("ready") => draft.say(
            "worker_wanted",
            format!("Its task is ready: {what}."),
            "Nothing is wrong while workers are alive. If it stays, check the workers of this queue.",
            Actor::Worker,
        ),
        _ => draft.say(
            "unknown_state",
            format!("Is in the state {state}, which this version does not know."),
            "Look at the tasks and waits below.",
            Actor::Worker,
        ),
    }
}

fn replay_blocked(p: &Projected<'_>, draft: Draft) -> Diagnosis {
    let Some(task) = p.tasks.iter().find(|task| is_replay_blocked(task)) else {
        return draft.say(
            "unsupported_history",
            "Only mutable rows speak of its open step; typed history has nothing to go on from.",
            "Repair is not offered: there is nothing safe to put back. Terminate the run, or restore its history.",
            Actor::Operator,
        );
    };
    let why = match task.replay_blocked_reason.as_deref() {
        Some("failure_resolution") => {
            "a recorded exception cannot be restored by the deployed code"
        }
        Some("condition_wait_definition_mismatch") => {
            "a condition of the deployed code differs from the recorded one"
        }
        Some("history_shape_mismatch") => {
            "the deployed code takes other steps than its history records"
        }
        _ => task
            .last_error
            .as_deref()
            .map_or("no reason is stored", first_line),
    };
    draft.cite_task(Some(task)).say(
        "replay_blocked",
        format!("Cannot be replayed: {why}."),
        "Deploy code that fits the recorded history, then repair.",
        Actor::Developer,
    )
}

fn repair(p: &Projected<'_>, draft: Draft, next: Option<&Task>, what: &str) -> Diagnosis {
    let draft = draft.cite_task(next);
    if let Some(task) = next {
        let (code, sentence) = match task.transport_state.as_str() {
            "lease_expired" => (
                "lease_expired",
                format!(
                    "The worker that had its task did not come back before the lease ran out: {what}."
                ),
            ),
            "repair_backoff" => (
                "repair_backoff",
                format!(
                    "Its task could not be published; the engine waits before it tries again: {what}."
                ),
            ),
            "dispatch_failed" => (
                "dispatch_failed",
                format!("Its task could not be published to the queue: {what}."),
            ),
            _ => (
                "dispatch_overdue",
                format!("Its task was published and nobody has taken it: {what}."),
            ),
        };
        let next_step = if code == "repair_backoff" {
            "Wait for the engine's next try; a repair now would make a second task."
        } else {
            "Check that workers of this queue are alive, then repair: the task has to be published again."
        };
        return draft.until(task.repair_available_at).say(
            code,
            sentence,
            next_step,
            Actor::Operator,
        );
    }
    let missing = p.tasks.iter().find(|task| task.task_missing);
    let draft = match missing {
        Some(task) => draft.cite(Citation {
            table: "workflow_tasks",
            id: task
                .expected_task_id
                .clone()
                .unwrap_or_else(|| task.id.clone()),
            shows: format!("no row for this {} task", task.r#type),
            anchor: Some(anchor("task", &task.id)),
        }),
        None => draft,
    };
    let (code, sentence) = match (
        &p.standing.wait_kind,
        missing.map(|task| task.r#type.as_str()),
    ) {
        (Some(WaitKind::Activity), _) => (
            "activity_task_lost",
            format!("{what} is due, but its task row is gone, so no worker will pick it up."),
        ),
        (Some(WaitKind::Timer), _) => (
            "timer_task_lost",
            format!("{what} will never fire: its task row is gone."),
        ),
        (Some(WaitKind::Signal | WaitKind::Condition), Some("timer")) => (
            "timeout_task_lost",
            format!("Waits for {what}, and the task of its timeout is gone."),
        ),
        (Some(WaitKind::Signal), _) => (
            "signal_task_lost",
            format!("{what} has come, but no task brings it to the workflow."),
        ),
        (Some(WaitKind::Update), _) => (
            "update_task_lost",
            format!("{what} was accepted, but no task brings it to the workflow."),
        ),
        (Some(WaitKind::Child), _) => (
            "child_task_lost",
            format!("{what} has ended, but no task brings the result to the workflow."),
        ),
        (Some(WaitKind::Condition), _) => (
            "timeout_task_lost",
            format!("The timeout of {what} has passed, but no task tells the workflow."),
        ),
        _ => (
            "no_resume_source",
            "Nothing will wake it: it has no open task and waits for nothing.".to_owned(),
        ),
    };
    draft.say(
        code,
        sentence,
        "Repair: the missing task has to be put back with its original identity.",
        Actor::Operator,
    )
}

// --- words

fn awaited_activity<'p>(p: &'p Projected<'_>) -> Option<&'p Activity> {
    let id = p.standing.resume_source_id.as_deref()?;
    match p.standing.wait_kind {
        Some(WaitKind::Activity) => p.activities.iter().find(|activity| activity.id == id),
        _ => None,
    }
}

/// What the run waits for, by name.
fn waiting_for(p: &Projected<'_>, wait: Option<&Wait>) -> String {
    let standing = &p.standing;
    let named = |kind: &str, name: Option<&str>| {
        name.map_or_else(|| format!("a {kind}"), |name| format!("{kind} {name}"))
    };
    match &standing.wait_kind {
        Some(WaitKind::Activity) => awaited_activity(p).and_then(Activity::name).map_or_else(
            || "an activity".to_owned(),
            |name| format!("activity {name}"),
        ),
        Some(WaitKind::Signal) => {
            let signal = standing.resume_source_id.as_deref().and_then(|id| {
                p.signals
                    .iter()
                    .find(|signal| signal.id.as_deref() == Some(id))
            });
            named(
                "signal",
                signal
                    .and_then(|signal| signal.name.as_deref())
                    .or(wait.and_then(|wait| wait.target_name.as_deref())),
            )
        }
        Some(WaitKind::Child) => named("child", wait.and_then(|wait| wait.target_type.as_deref())),
        Some(WaitKind::Update) => {
            named("update", wait.and_then(|wait| wait.target_name.as_deref()))
        }
        Some(WaitKind::Condition) => named(
            "condition",
            wait.and_then(|wait| wait.target_name.as_deref()),
        ),
        Some(WaitKind::Timer) => "a timer".to_owned(),
        Some(WaitKind::WorkflowTask) => "the workflow's next step".to_owned(),
        Some(WaitKind::Other(kind)) => kind.clone(),
        None => "its next step".to_owned(),
    }
}

fn step_name(p: &Projected<'_>, failure: &Failure) -> Option<String> {
    let id = failure.source_id.as_deref()?;
    let activity = p.activities.iter().find(|activity| activity.id == id)?;
    activity.name().map(|name| format!("activity {name}"))
}

fn first_line(text: &str) -> &str {
    text.lines()
        .find(|line| !line.trim().is_empty())
        .unwrap_or("without a message")
}
