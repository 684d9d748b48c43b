//! One sentence and one next step for any run. Every clause rests on a row that is cited; a
//! state we do not know is named raw.

mod closed;
mod deadlines;
mod draft;
mod lost;
mod overdue;
mod repair;
mod replay;
mod trouble;

use chrono::{DateTime, Utc};

use self::{
    closed::closed,
    draft::{Draft, capitalised},
    repair::repair,
    replay::replay_blocked,
};
use super::{
    activities::{Activity, Deadlines},
    authority,
    children::Child,
    projected::Projected,
    tasks::Task,
    waits::Wait,
};
use crate::{
    durable::stored::{LivenessState, RunStatus, WaitKind},
    run::diagnosis::{Actor, Diagnosis},
};

/// Children, or activities, named in a sentence; the rest are counted.
const NAMED: usize = 3;

pub fn diagnose(p: &Projected<'_>) -> Diagnosis {
    if p.cx.snapshot.run.status.is_terminal() {
        closed(p)
    } else {
        open(p)
    }
}

fn open(p: &Projected<'_>) -> Diagnosis {
    let next = next_task(p);
    let what = of_task(p, next);
    trouble::beside(p, next, &what, judged(p, next))
}

fn next_task<'p>(p: &'p Projected<'_>) -> Option<&'p Task> {
    let id = p.standing.next_task_id.as_deref()?;
    p.tasks.iter().find(|task| task.id == id)
}

/// By the one task or wait the engine judges the run by.
fn judged(p: &Projected<'_>, next: Option<&Task>) -> Diagnosis {
    let standing = &p.standing;
    let draft = Draft::new(p).cite_run();
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
        let last = p.cx.snapshot.events.iter().last();
        return draft.cite_history(last).say(
            "unknown_status",
            format!(
                "Has the status {status}, which this version does not know; it waits for {what}."
            ),
            "Look at the last events of its history.",
            Actor::Operator,
        );
    }
    let is_judged_by_a_step = match &standing.liveness_state {
        LivenessState::ActivityRunningWithoutTask => true,
        state => {
            state.as_str().ends_with("_task_leased") || state.as_str().ends_with("_task_ready")
        }
    };
    if is_judged_by_a_step && let Some(overdue) = overdue::first(p) {
        return overdue.say(draft.cite_task(next));
    }
    match &standing.liveness_state {
        LivenessState::WorkflowReplayBlocked => replay_blocked(p, draft),
        LivenessState::RepairNeeded if next.is_some() => {
            repair(p, cite_activity_of(p, draft, next), next, &of_task(p, next))
        }
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
        state => by_task(p, draft, next, state.as_str()),
    }
}

/// The states a task gives its run.
fn by_task(p: &Projected<'_>, draft: Draft, next: Option<&Task>, state: &str) -> Diagnosis {
    let what = of_task(p, next);
    let draft = cite_activity_of(p, draft, next).cite_task(next);
    let since = |of: fn(&Task) -> Option<DateTime<Utc>>| next.and_then(of);
    let activity = activity_of(p, next);
    let together = together(p);
    let suffix = state.rsplit_once("_task_").map(|(_, suffix)| suffix);
    match (suffix, backing_off(p, next)) {
        (Some("waiting_for_compatible_worker"), _) => draft.since(since(ready_since)).say(
            "waiting_for_compatible_worker",
            format!(
                "Its task is ready, but no live worker has the compatibility marker {}.",
                next.and_then(|task| task.compatibility.as_deref()).unwrap_or("it asks for")
            ),
            "Start a worker that has it. Repair is not offered: the task is there.",
            Actor::Operator,
        ),
        (Some("claim_failed"), _) => draft.since(since(|task| task.last_claim_failed_at)).say(
            "claim_failed",
            format!(
                "A worker refused its task: {}",
                next.and_then(|task| task.last_claim_error.as_deref()).map_or("no reason is stored", first_line)
            ),
            "Correct the worker or its queue; the engine offers the task again by itself.",
            Actor::Operator,
        ),
        (Some("leased"), _) => draft
            .since(since(|task| task.leased_at))
            .until(held_until(next, activity).or(p.standing.wait_deadline_at))
            .say(
                "worker_has_it",
                format!("{} has taken {what}.{together}", worker(next)),
                "Nothing is wrong. If the lease runs out, the engine or Repair brings the task back.",
                Actor::Worker,
            ),
        (Some("ready"), Some((task, attempt))) => {
            let retry = activity.and_then(|activity| activity.retry.as_ref());
            draft
                .since(retry.and_then(|retry| retry.recorded_at))
                .until(task.available_at)
                .say(
                    "retrying",
                    format!(
                        "{what} failed{}. {} waits for its backoff.{together}",
                        because(retry.and_then(|retry| retry.message.as_deref())),
                        capitalised(&tried(attempt, task.retry_max_attempts)),
                    ),
                    "Nothing to do yet: it is tried again by itself.",
                    Actor::Timer,
                )
        }
        (Some("ready"), None) => draft.since(since(ready_since)).say(
            "worker_wanted",
            format!("{what} waits for a worker: its task is ready.{together}"),
            &format!(
                "Nothing is wrong while workers are alive. If it stays, check the {}.",
                next.map_or_else(|| "workers of its queue".to_owned(), trouble::workers)
            ),
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

/// The worker that holds a task. One that only listens to a queue has no name: the engine writes
/// the task's own id.
fn worker(task: Option<&Task>) -> String {
    let owner = task.and_then(|task| {
        let owner = task.lease_owner.as_deref()?;
        (owner != task.id && !owner.is_empty()).then_some(owner)
    });
    owner.map_or_else(|| "A worker".to_owned(), |owner| format!("Worker {owner}"))
}

/// The lease, or a deadline of the activity that comes before its end.
fn held_until(task: Option<&Task>, activity: Option<&Activity<'_>>) -> Option<DateTime<Utc>> {
    let lease = task.and_then(|task| task.lease_expires_at);
    let Deadlines {
        close,
        schedule_to_close,
        heartbeat,
        ..
    } = activity
        .map(|activity| activity.deadlines)
        .unwrap_or_default();
    [lease, close, schedule_to_close, heartbeat]
        .into_iter()
        .flatten()
        .min()
}

/// The task of a try whose time has not come, and the number of that try.
fn backing_off<'t>(p: &Projected<'_>, next: Option<&'t Task>) -> Option<(&'t Task, i64)> {
    let task = next.filter(|task| task.available_at.is_some_and(|at| at > p.cx.now))?;
    Some((task, task.retry_after_attempt?.saturating_add(1)))
}

/// `attempt 3 of 4`.
fn tried(number: i64, max: Option<i64>) -> String {
    match max {
        Some(max) => format!("attempt {number} of {max}"),
        None => format!("attempt {number}"),
    }
}

fn because(message: Option<&str>) -> String {
    message.map_or_else(String::new, |message| {
        format!(": {}", trouble::unended(first_line(message)))
    })
}

/// What else the run waits for at the same time; nothing where it is one activity.
fn together(p: &Projected<'_>) -> String {
    let open: Vec<&str> = typed_open(p)
        .map(|activity| activity.name().unwrap_or("one without a name"))
        .collect();
    if open.len() < 2 {
        return String::new();
    }
    let named = open[..open.len().min(NAMED)].join(", ");
    let more = match open.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(" It waits for {} activities: {named}{more}.", open.len())
}

fn typed_open<'p>(p: &'p Projected<'_>) -> impl Iterator<Item = &'p Activity<'p>> {
    p.activities
        .iter()
        .filter(|activity| activity.is_open() && activity.history_authority == authority::TYPED)
}

/// The activity a task is for.
fn activity_of<'p>(p: &'p Projected<'_>, task: Option<&Task>) -> Option<&'p Activity<'p>> {
    let id = task?.activity_execution_id.as_deref()?;
    p.activities.iter().find(|activity| activity.id == id)
}

fn cite_activity_of<'p>(p: &Projected<'_>, draft: Draft<'p>, task: Option<&Task>) -> Draft<'p> {
    match activity_of(p, task) {
        Some(activity) => draft.cite_activity(activity),
        None => draft,
    }
}

/// What the task is for that the run is judged by: of several branches it may be another's than
/// the one the run is said to wait for.
fn of_task(p: &Projected<'_>, next: Option<&Task>) -> String {
    let wait_id = p.standing.open_wait_id.as_deref();
    let wait = wait_id.and_then(|id| p.waits.iter().find(|wait| wait.id == id));
    match (next, &p.standing.wait_kind) {
        (Some(task), _) if task.r#type == "activity" => {
            let activity = activity_of(p, next).and_then(Activity::name);
            activity.map_or_else(|| trouble::purpose(task), |name| format!("activity {name}"))
        }
        (Some(task), Some(WaitKind::Activity)) => trouble::purpose(task),
        _ => waiting_for(p, wait),
    }
}

/// When a worker could first have taken it.
fn ready_since(task: &Task) -> Option<DateTime<Utc>> {
    task.available_at.max(task.last_dispatched_at)
}

/// Which children it waits for, by the ids they can be found by.
fn waiting_child(p: &Projected<'_>, draft: Draft, what: &str) -> Diagnosis {
    let open: Vec<&Child<'_>> = p.children.iter().filter(|child| child.is_open()).collect();
    let shown = || open.iter().take(NAMED);
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
            let more = match many.saturating_sub(NAMED) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            (
                format!("Waits for {many} children to end: {names}{more}."),
                "Open the children to see what they are doing.",
            )
        }
    };
    let stuck = open.iter().find_map(|child| Some((child, child.stuck()?)));
    if let Some((child, state)) = stuck {
        let name = child.child_workflow_instance_id.as_deref();
        let name = name.unwrap_or(&child.label);
        return draft.cite_child(child).say(
            "child_stuck",
            format!("{sentence} But child {name} does not go on by itself: its stored summary says {state}."),
            &format!("Open child {name} and see to it."),
            Actor::Operator,
        );
    }
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
