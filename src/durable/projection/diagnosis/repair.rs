//! A run that does not go on by itself: what is in its way, and whether repair would help.

use chrono::{DateTime, Utc};

use super::{awaited_activity, because, draft::Draft, lost, named, tried, trouble::Trouble};
use crate::{
    durable::{
        projection::{projected::Projected, tasks::Task, waits::Wait},
        stored::{SignalStatus, WaitKind},
    },
    run::diagnosis::{Actor, Diagnosis},
};

pub(super) fn repair(
    p: &Projected<'_>,
    draft: Draft,
    next: Option<&Task>,
    what: &str,
) -> Diagnosis {
    let draft = draft.cite_task(next);
    if let Some(task) = next {
        let trouble = Trouble::in_transport(task).unwrap_or(if task.last_dispatched_at.is_none() {
            Trouble::NeverPublished
        } else {
            Trouble::NotTaken
        });
        let said = draft
            .since(trouble.since(task))
            .until(task.repair_available_at)
            .say(
                trouble.code(),
                format!("{}.", trouble.clause(task, what)),
                &trouble.next_step(task, p.cx.config),
                Actor::Operator,
            );
        return match trouble {
            Trouble::Backoff | Trouble::Refused => said,
            _ => said.asking_repair(),
        };
    }
    let draft = cite_source(p, draft);
    if let Some(needless) = needless(p) {
        return needless.say(draft);
    }
    let missing = p.tasks.iter().find(|task| task.task_missing);
    let draft = match missing {
        Some(task) => draft.cite_task(Some(task)),
        None => draft,
    };
    if p.standing.wait_kind.is_none()
        && let Some(result) = lost::result(p)
    {
        return result.say(draft);
    }
    let (code, sentence) = match (
        &p.standing.wait_kind,
        missing.map(|task| task.r#type.as_str()),
    ) {
        (Some(WaitKind::Activity), _) => ("activity_task_lost", activity_lost(p, missing, what)),
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
            format!("{what} arrived, but the task that delivers it is missing."),
        ),
        (Some(WaitKind::Update), _) => (
            "update_task_lost",
            format!("{what} was accepted, but the task that applies it is missing."),
        ),
        (Some(WaitKind::Child), _) => (
            "child_task_lost",
            format!("{what} ended, but the task that tells the workflow is missing."),
        ),
        (Some(WaitKind::Condition), _) => (
            "timeout_task_lost",
            format!(
                "The timeout of {what} passed, but the task that tells the workflow is missing."
            ),
        ),
        _ => (
            "no_resume_source",
            "Nothing will wake it: it has no open task and no open wait.".to_owned(),
        ),
    };
    // A deadline whose task is gone ends nothing.
    draft
        .since(due(p))
        .until(None)
        .say(code, sentence, lost::PUT_BACK, Actor::Operator)
        .asking_repair()
}

/// Which try is lost, and what came of the last one.
fn activity_lost(p: &Projected<'_>, missing: Option<&Task>, what: &str) -> String {
    let ahead = missing
        .and_then(|task| task.available_at)
        .is_some_and(|at| at > p.cx.now);
    let due = if ahead { "is still ahead" } else { "is due" };
    let gone = format!("{due}, but its task row is gone, so no worker will pick it up.");
    let retry = awaited_activity(p).and_then(|activity| activity.retry.as_ref());
    match (retry, missing.and_then(|task| task.retry_after_attempt)) {
        (Some(retry), Some(after)) => format!(
            "{what} failed{}. Its retry, {}, {gone}",
            because(retry.message.as_deref()),
            tried(after.saturating_add(1), retry.max_attempts)
        ),
        _ => format!("{what} {gone}"),
    }
}

/// What came and is to be brought to the workflow.
fn cite_source<'p>(p: &Projected<'_>, draft: Draft<'p>) -> Draft<'p> {
    let source = p.standing.resume_source_id.as_deref();
    let is_source = |id: &Option<String>| id.is_some() && id.as_deref() == source;
    match p.standing.wait_kind {
        Some(WaitKind::Signal) => {
            let mut signals = p.signals.iter();
            let of = signals.find(|of| is_source(&of.id) || is_source(&of.command_id));
            match of {
                Some(signal) => draft.cite_signal(signal),
                None => draft,
            }
        }
        Some(WaitKind::Update) => {
            let mut updates = p.updates.iter();
            let of = updates.find(|of| is_source(&of.id) || is_source(&of.command_id));
            match of {
                Some(update) => draft.cite_update(update),
                None => draft,
            }
        }
        Some(WaitKind::Child) => {
            let mut children = p.children.iter();
            let of = children.find(|child| is_source(&child.child_workflow_run_id));
            let resolution = of.and_then(|child| child.resolution.as_ref());
            draft.cite_history(resolution.map(|recorded| recorded.event))
        }
        _ => draft,
    }
}

/// When what the run waits for had come, or was to come: since then only the task is missing.
fn due(p: &Projected<'_>) -> Option<DateTime<Utc>> {
    let source = p.standing.resume_source_id.as_deref()?;
    let come = match p.standing.wait_kind {
        Some(WaitKind::Activity) => {
            let activity = p.activities.iter().find(|activity| activity.id == source);
            activity.and_then(|activity| activity.retry.as_ref()?.retry_available_at)
        }
        Some(WaitKind::Signal) => {
            let signal = p.signals.iter().find(|signal| {
                signal.id.as_deref() == Some(source) || signal.command_id.as_deref() == Some(source)
            });
            signal.and_then(|signal| signal.received_at)
        }
        Some(WaitKind::Update) => {
            let update = p.updates.iter().find(|update| {
                update.id.as_deref() == Some(source) || update.command_id.as_deref() == Some(source)
            });
            update.and_then(|update| update.accepted_at)
        }
        Some(WaitKind::Child) => {
            let child = p
                .children
                .iter()
                .find(|child| child.child_workflow_run_id.as_deref() == Some(source));
            child.and_then(|child| child.resolved_at)
        }
        _ => None,
    };
    come.or(p.standing.wait_deadline_at)
        .filter(|at| *at <= p.cx.now)
}

/// The engine asks for a repair that would change nothing, again and again (run-detail.md 11.2
/// and 11.7): the run waits for something else.
struct Needless<'p> {
    code: &'static str,
    /// What the engine takes for lost.
    why: String,
    /// What the run does wait for.
    wait: &'p Wait,
}

impl Needless<'_> {
    fn say(&self, draft: Draft<'_>) -> Diagnosis {
        let kind = self.wait.kind;
        let name = match kind {
            "child" => self.wait.target_type.as_deref(),
            _ => self.wait.target_name.as_deref(),
        };
        let (next, actor) = match kind {
            "signal" => ("It goes on when that signal is sent.", Actor::Sender),
            "child" => ("Open the child to see what it is doing.", Actor::Child),
            "condition" => (
                "Send the signal or update that makes it true.",
                Actor::Sender,
            ),
            _ => ("Look at the run's waits.", Actor::Operator),
        };
        draft
            .cite_wait(self.wait)
            .since(self.wait.opened_at)
            .until(self.wait.deadline_at)
            .say(
                self.code,
                format!("Waits for {}. {}", named(kind, name), self.why),
                &format!("Do not repair: a new task would change nothing. {next}"),
                actor,
            )
    }
}

fn needless<'p>(p: &'p Projected<'_>) -> Option<Needless<'p>> {
    let open = || {
        p.waits
            .iter()
            .filter(|wait| wait.is_open() && !wait.is_diagnostic())
    };
    let newest = |wait: &&Wait| (wait.opened_at, wait.sequence);
    let source = p.standing.resume_source_id.as_deref();
    match p.standing.wait_kind {
        Some(WaitKind::Child) => {
            let child = p.children.iter().find(|child| {
                child.resolution.is_some() && child.child_workflow_run_id.as_deref() == source
            })?;
            let wait = open().max_by_key(newest)?;
            child.has_been_taken_up(p.cx).then(|| Needless {
                code: "child_already_applied",
                why: format!(
                    "The engine still counts the outcome of child {} as lost, but the workflow has gone on since.",
                    child.label
                ),
                wait,
            })
        }
        Some(WaitKind::Signal) => {
            let signal = p.signals.iter().find(|signal| {
                signal.status == SignalStatus::Received
                    && (signal.id.as_deref() == source || signal.command_id.as_deref() == source)
            })?;
            let answers_a_wait = p
                .signal_waits
                .iter()
                .any(|wait| wait.command_id.is_some() && wait.command_id == signal.command_id);
            let wait = open()
                .filter(|wait| wait.kind == "signal" && wait.target_name != signal.name)
                .max_by_key(newest)?;
            (!answers_a_wait).then(|| Needless {
                code: "signal_buffered",
                why: format!(
                    "{} came before the workflow asked for it and is kept until then.",
                    named("signal", signal.name.as_deref())
                ),
                wait,
            })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::durable::{
        projection::{
            diagnosis::diagnose,
            example::{event, history, task, told},
        },
        store::snapshot::RunSnapshot,
        stored::{EventType, RunRow, RunStatus, SignalRow},
    };

    fn run(snapshot: RunSnapshot) -> (&'static str, String) {
        let snapshot = RunSnapshot {
            run: RunRow {
                status: RunStatus::Waiting,
                ..RunRow::default()
            },
            ..snapshot
        };
        told(&snapshot, |cx| {
            let said = diagnose(&Projected::of(cx));
            (said.code, said.sentence)
        })
    }

    fn signal_wait(sequence: i64, name: &str) -> Value {
        json!({"sequence": sequence, "signal_name": name, "signal_wait_id": format!("w{sequence}")})
    }

    #[test]
    fn a_child_the_workflow_has_gone_on_from_needs_no_repair() {
        let child = |sequence| json!({"sequence": sequence, "child_workflow_run_id": "k", "child_workflow_type": "refund"});
        let past = || {
            vec![
                event(1, EventType::ChildWorkflowScheduled, &child(1)),
                event(2, EventType::ChildRunCompleted, &child(1)),
            ]
        };
        let mut gone_on = past();
        gone_on.push(event(3, EventType::SignalWaitOpened, &signal_wait(2, "go")));
        for (what, events, code) in [
            ("gone on", gone_on, "child_already_applied"),
            ("not taken up", past(), "child_task_lost"),
        ] {
            let said = run(RunSnapshot {
                events: history(events),
                ..RunSnapshot::default()
            });
            assert_eq!(said.0, code, "{what}: {}", said.1);
        }
    }

    #[test]
    fn a_signal_nobody_asked_for_yet_needs_no_repair() {
        let signals = || {
            vec![SignalRow {
                id: "s".into(),
                workflow_command_id: "c".into(),
                signal_name: "stop".into(),
                status: SignalStatus::Received,
                ..SignalRow::default()
            }]
        };
        let received =
            json!({"signal_name": "stop", "workflow_command_id": "c", "command": {"id": "c"}});
        for (what, awaited, code) in [
            ("another is awaited", "go", "signal_buffered"),
            ("the one awaited came", "stop", "signal_task_lost"),
        ] {
            let said = run(RunSnapshot {
                events: history(vec![
                    event(1, EventType::SignalWaitOpened, &signal_wait(1, awaited)),
                    event(2, EventType::SignalReceived, &received),
                ]),
                signals: signals(),
                ..RunSnapshot::default()
            });
            assert_eq!(said.0, code, "{what}: {}", said.1);
        }
    }

    #[test]
    fn a_task_nobody_published_is_not_said_to_be_in_the_queue() {
        for (published, words) in [(false, "never published"), (true, "nobody has taken it")] {
            let mut row = task("t", "ready", &json!({}));
            row.created_at = Some(crate::durable::projection::example::at(0));
            row.last_dispatched_at = row.created_at.filter(|_| published);
            let (code, sentence) = run(RunSnapshot {
                tasks: vec![row],
                ..RunSnapshot::default()
            });
            assert_eq!(code, "dispatch_overdue");
            assert!(sentence.contains(words), "{sentence}");
        }
    }
}
