//! One sentence and one next step for any run. Every clause rests on a row that is cited; a
//! state we do not know is named raw.

mod closed;
mod deadlines;
mod draft;
mod lost;
mod repair;
mod replay;

use chrono::{DateTime, Utc};

use self::{closed::closed, draft::Draft, repair::repair, replay::replay_blocked};
use super::{
    activities::Activity, children::Child, projected::Projected, tasks::Task, waits::Wait,
};
use crate::{
    durable::stored::{LivenessState, RunStatus, WaitKind},
    run::diagnosis::{Actor, Diagnosis},
};

/// Children named in a sentence; the rest are counted.
const CHILDREN_NAMED: usize = 3;

pub fn diagnose(p: &Projected<'_>) -> Diagnosis {
    if p.cx.snapshot.run.status.is_terminal() {
        closed(p)
    } else {
        open(p)
    }
}

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
    let passed = deadlines::first(p).filter(|deadline| deadline.at <= p.cx.now);
    if let Some(deadline) = passed {
        return draft.cite_deadline(passed).since(Some(deadline.at)).until(None).say(
            "deadline_passed",
            format!(
                "Its {} has passed and the engine has not closed it yet; it was waiting for {what}.",
                deadline.which.name()
            ),
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
            "Look at the run's history.",
            Actor::Operator,
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
            if standing.wait_deadline_at.is_some() {
                "Nothing is wrong. Send the signal or update that makes it true, or wait for its timeout."
            } else {
                "Nothing is wrong. Send the signal or update that makes it true."
            },
            Actor::Sender,
        ),
        LivenessState::WaitingForSignal => draft.say(
            "waiting_signal",
            format!("Waits for {what}."),
            if standing.wait_deadline_at.is_some() {
                "Nothing is wrong. It goes on when the signal is sent, or when its timeout passes."
            } else {
                "Nothing is wrong. It goes on when the signal is sent."
            },
            Actor::Sender,
        ),
        LivenessState::WaitingForChild => waiting_child(p, draft, &what),
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
    let since = |of: fn(&Task) -> Option<DateTime<Utc>>| next.and_then(of);
    let retrying = next
        .and_then(|task| task.retry_after_attempt)
        .map(|attempt| attempt.saturating_add(1));
    match state.rsplit_once("_task_").map(|(_, suffix)| suffix) {
        Some("waiting_for_compatible_worker") => draft.since(since(ready_since)).say(
            "waiting_for_compatible_worker",
            format!(
                "Its task is ready, but no live worker supports the marker {}.",
                next.and_then(|task| task.compatibility.as_deref()).unwrap_or("it asks for")
            ),
            "Start a worker that supports it. Repair is not offered: the task is there.",
            Actor::Operator,
        ),
        Some("claim_failed") => draft.since(since(|task| task.last_claim_failed_at)).say(
            "claim_failed",
            format!(
                "A worker refused its task: {}",
                next.and_then(|task| task.last_claim_error.as_deref()).map_or("no reason is stored", first_line)
            ),
            "Correct the worker or its queue; the engine offers the task again by itself.",
            Actor::Operator,
        ),
        Some("leased") => draft.since(since(|task| task.leased_at)).say(
            "worker_has_it",
            format!("A worker has taken {what}."),
            "Nothing is wrong. If the lease runs out, the engine or Repair brings the task back.",
            Actor::Worker,
        ),
        Some("ready") if retrying.is_some_and(|_| next.is_some_and(|task| task.available_at.is_some_and(|at| at > p.cx.now))) => {
            let attempt = retrying.unwrap_or(0);
            let failed = awaited_activity(p).and_then(|activity| activity.retry.as_ref()?.recorded_at);
            draft.since(failed).until(next.and_then(|task| task.available_at)).say(
                "retrying",
                format!("{what} failed and is tried again: attempt {attempt} waits for its backoff."),
                "Nothing to do yet. Its attempts say why it failed.",
                Actor::Timer,
            )
        }
        Some("ready") => draft.since(since(ready_since)).say(
            "worker_wanted",
            format!("{what} waits for a worker: its task is ready."),
            "Nothing is wrong while workers are alive. If it stays, check the workers of this queue.",
            Actor::Worker,
        ),
        _ => draft.say(
            "unknown_state",
            format!("Is in the state {state}, which this version does not know."),
            "Look at the run's tasks and waits.",
            Actor::Operator,
        ),
    }
}

/// When a worker could first have taken it.
fn ready_since(task: &Task) -> Option<DateTime<Utc>> {
    task.available_at.max(task.last_dispatched_at)
}

/// Which children it waits for, by the ids they can be found by.
fn waiting_child(p: &Projected<'_>, draft: Draft, what: &str) -> Diagnosis {
    let open: Vec<&Child<'_>> = p.children.iter().filter(|child| child.is_open()).collect();
    let shown = || open.iter().take(CHILDREN_NAMED);
    let names: Vec<&str> = shown()
        .map(|child| {
            let instance = child.child_workflow_instance_id.as_deref();
            instance.unwrap_or(&child.label)
        })
        .collect();
    let draft = shown().fold(draft, |draft, child| draft.cite_child(child));
    let names = names.join(", ");
    let (sentence, next) = match open.len() {
        0 => (
            format!("Waits for {what} to end."),
            "Open the child to see what it is doing.",
        ),
        1 => (
            format!("Waits for {what} to end: {names}."),
            "Open the child to see what it is doing.",
        ),
        many => {
            let more = match many.saturating_sub(CHILDREN_NAMED) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            (
                format!("Waits for {many} children to end: {names}{more}."),
                "Open the children to see what they are doing.",
            )
        }
    };
    let next = format!("Nothing is wrong here. {next}");
    draft.say("waiting_child", sentence, &next, Actor::Child)
}

fn awaited_activity<'p>(p: &'p Projected<'_>) -> Option<&'p Activity<'p>> {
    let id = p.standing.resume_source_id.as_deref()?;
    match p.standing.wait_kind {
        Some(WaitKind::Activity) => p.activities.iter().find(|activity| activity.id == id),
        _ => None,
    }
}

/// What the run waits for, by name.
fn waiting_for(p: &Projected<'_>, wait: Option<&Wait>) -> String {
    let standing = &p.standing;
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

/// What a wait is for, by name.
fn target(wait: &Wait) -> String {
    let name = match wait.kind {
        "child" | "activity" => wait.target_type.as_deref(),
        _ => wait.target_name.as_deref(),
    };
    named(wait.kind, name)
}

fn named(kind: &str, name: Option<&str>) -> String {
    name.map_or_else(|| one(kind), |name| format!("{kind} {name}"))
}

/// `a timer`, `an activity`.
fn one(thing: &str) -> String {
    let article = match thing.chars().next() {
        Some('a' | 'e' | 'i' | 'o' | 'u') => "an",
        _ => "a",
    };
    format!("{article} {thing}")
}

fn first_line(text: &str) -> &str {
    text.lines()
        .find(|line| !line.trim().is_empty())
        .unwrap_or("without a message")
}
