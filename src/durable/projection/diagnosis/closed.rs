//! How a run ended, and why.

use super::{deadlines, draft::Draft, first_line, named, target};
use crate::{
    durable::{
        projection::{
            commands::Command,
            ending::{Ending, ending},
            failures::Failure,
            projected::Projected,
            waits::Wait,
        },
        stored::{ClosedReason, CommandStatus, CommandType, EventType, RunStatus},
    },
    run::diagnosis::{Actor, Diagnosis},
};

pub(super) fn closed(p: &Projected<'_>) -> Diagnosis {
    let run = &p.cx.snapshot.run;
    let ended = Draft::new(p).until(None).cite_run();
    match (&run.status, &run.closed_reason) {
        (RunStatus::Completed, Some(ClosedReason::Continued)) => {
            ended.cite_event(&EventType::WorkflowContinuedAsNew).say(
                "continued",
                "Continued as a new run.",
                "Open the current run of this instance.",
                Actor::Nobody,
            )
        }
        (RunStatus::Completed, _) => ended.cite_event(&EventType::WorkflowCompleted).say(
            "completed",
            "Completed.",
            "Nothing to do.",
            Actor::Nobody,
        ),
        (RunStatus::Cancelled, _) => stopped(p, ended, &CANCELLED),
        (RunStatus::Terminated, _) => stopped(p, ended, &TERMINATED),
        (RunStatus::Failed, Some(ClosedReason::TimedOut)) => timed_out(p, ended),
        (RunStatus::Failed, _) => failed(p, ended),
        (other, _) => ended.say(
            "closed_unknown",
            format!("Ended with the status {other}, which this version does not know."),
            "Look at the run's history.",
            Actor::Nobody,
        ),
    }
}

/// A way to be stopped by a command.
struct Stop {
    code: &'static str,
    word: &'static str,
    by: CommandType,
    event: EventType,
}

const CANCELLED: Stop = Stop {
    code: "cancelled",
    word: "Cancelled",
    by: CommandType::Cancel,
    event: EventType::WorkflowCancelled,
};

const TERMINATED: Stop = Stop {
    code: "terminated",
    word: "Terminated",
    by: CommandType::Terminate,
    event: EventType::WorkflowTerminated,
};

/// By whom, and why.
fn stopped(p: &Projected<'_>, draft: Draft, stop: &Stop) -> Diagnosis {
    let command = command_that(p, stop);
    let draft = match command {
        Some(command) => draft.cite_command(command),
        None => draft,
    };
    let by = command
        .and_then(who)
        .map_or_else(|| "on request".to_owned(), |who| format!("by {who}"));
    let why = command
        .and_then(|command| command.reason.as_deref())
        .map_or_else(|| ".".to_owned(), |why| format!(": {}", first_line(why)));
    draft.cite_event(&stop.event).say(
        stop.code,
        format!("{} {by}{why}", stop.word),
        "Nothing to do.",
        Actor::Nobody,
    )
}

/// The command the last event names; where it names none, the last one that was taken in.
fn command_that<'p>(p: &'p Projected<'_>, stop: &Stop) -> Option<&'p Command> {
    let mut events = p.cx.snapshot.events.iter();
    let event = events.rfind(|event| event.event_type == stop.event);
    let id = event.and_then(|event| event.workflow_command_id.as_deref());
    let mut commands = p.commands.iter();
    commands.rfind(|command| match id {
        Some(id) => command.id == id,
        None => command.command_type == stop.by && command.status == CommandStatus::Accepted,
    })
}

fn who(command: &Command) -> Option<String> {
    let workflow = command.caller.context.workflow.as_ref();
    let workflow = workflow.and_then(|from| from.parent_instance_id.as_deref());
    command
        .caller
        .principal()
        .or_else(|| workflow.map(|instance| format!("workflow {instance}")))
}

/// Which deadline it was, and what was still waited for then.
fn timed_out(p: &Projected<'_>, draft: Draft) -> Diagnosis {
    let deadline = deadlines::that_closed(p);
    let name = deadline.map_or("deadline", |deadline| deadline.which.name());
    let draft = draft
        .cite_event(&EventType::WorkflowTimedOut)
        .cite_deadline(deadline);
    let open: Vec<&Wait> = p
        .waits
        .iter()
        .filter(|wait| !wait.is_diagnostic())
        .filter(|wait| match deadline {
            Some(deadline) => {
                wait.opened_at.is_some_and(|at| at <= deadline.at)
                    && wait.resolved_at.is_none_or(|at| at >= deadline.at)
            }
            None => wait.is_open(),
        })
        .collect();
    let newest = open
        .iter()
        .max_by_key(|wait| (wait.opened_at, wait.sequence));
    let (draft, sentence, next) = match newest {
        Some(wait) => {
            let what = target(wait);
            let more = match open.len() {
                ..=1 => String::new(),
                many => format!(" and {} more", many - 1),
            };
            (
                draft.cite_wait(wait),
                format!("Timed out: its {name} passed while it waited for {what}{more}."),
                match wait.kind {
                    "timer" => "Check the timer against the deadline; start it again if it is still wanted.".to_owned(),
                    _ => format!("See why {what} took too long; start it again if it is still wanted."),
                },
            )
        }
        None => (
            draft,
            format!("Timed out: its {name} passed before it was done."),
            "See its last events; start it again if it is still wanted.".to_owned(),
        ),
    };
    draft.say("timed_out", sentence, &next, Actor::Developer)
}

/// What to change where a limit was met: a size wants a smaller value, a count fewer at once.
fn remedy(limit: &str) -> String {
    let less = match limit {
        "payload_size" => "Keep the large value elsewhere and hand on a reference to it",
        "memo_size" => "Keep less in the memo: a reference instead of the value",
        "search_attribute_size" => "Upsert fewer or shorter search attributes",
        "history_transaction_size" => "Schedule less in one step of the workflow",
        "pending_activity_count" => "Have fewer activities open at once",
        "pending_child_count" => "Have fewer children open at once",
        "pending_timer_count" => "Have fewer timers open at once",
        "pending_signal_count" => "Send fewer signals or have the workflow take them in sooner",
        "pending_update_count" => "Send fewer updates or have the workflow take them in sooner",
        "command_batch_size" => "Send fewer commands in one batch",
        _ => "Ask less of the engine at once",
    };
    format!("{less}, or raise the limit in the engine's configuration.")
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
    let remedy = remedy(limit.unwrap_or_default());
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
            remedy.as_str(),
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
        ("timeout", _, Some(name)) => (
            "failed_timeout",
            format!("Failed because {name} took too long: {message}"),
            "See why it was late, and whether its timeout is right.",
        ),
        ("timeout", ..) => (
            "failed_timeout",
            format!("Failed because a step took too long: {message}"),
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::durable::{
        projection::{
            diagnosis::diagnose,
            example::{at, command, event, history, told},
        },
        store::snapshot::RunSnapshot,
        stored::{HistoryEvent, RunRow},
    };

    fn run(status: RunStatus, reason: ClosedReason) -> RunRow {
        RunRow {
            status,
            closed_reason: Some(reason),
            closed_at: Some(at(20)),
            ..RunRow::default()
        }
    }

    fn said(snapshot: &RunSnapshot) -> Diagnosis {
        told(snapshot, |cx| diagnose(&Projected::of(cx)))
    }

    #[test]
    fn who_stopped_a_run_and_why_is_told_as_far_as_its_command_tells() {
        let mara = json!({"principal": {"type": "user", "id": "17", "label": "Mara"}});
        let parent = json!({"workflow": {"parent_instance_id": "ord-1"}});
        for (context, sentence) in [
            (Some(mara), "Cancelled by Mara (17)."),
            (Some(parent), "Cancelled by workflow ord-1."),
            (None, "Cancelled on request."),
        ] {
            let mut asked = command("c", CommandType::Cancel);
            asked.context = context.map(crate::db::Json::Value);
            let mut other = command("d", CommandType::Cancel);
            other.command_sequence = Some(9);
            let ended = HistoryEvent {
                workflow_command_id: Some("c".into()),
                ..event(1, EventType::WorkflowCancelled, &json!({}))
            };
            let snapshot = RunSnapshot {
                run: run(RunStatus::Cancelled, ClosedReason::from("cancelled")),
                events: history(vec![ended]),
                commands: vec![asked, other],
                ..RunSnapshot::default()
            };
            let said = said(&snapshot);
            assert_eq!(said.sentence, sentence);
            assert!(said.evidence.iter().any(|row| row.id == "c"));
        }
    }

    #[test]
    fn the_deadline_that_closed_a_run_is_named_with_what_was_still_open() {
        let wait = |sequence, opened, name: &str| HistoryEvent {
            recorded_at: Some(at(opened)),
            ..event(
                sequence,
                EventType::SignalWaitOpened,
                &json!({"sequence": sequence, "signal_name": name, "signal_wait_id": name}),
            )
        };
        for (kind, waits, sentence, column) in [
            (
                "execution_timeout",
                vec![wait(1, 1, "paid")],
                "Timed out: its execution deadline passed while it waited for signal paid.",
                "execution_deadline_at",
            ),
            (
                "run_timeout",
                vec![wait(1, 1, "paid"), wait(2, 3, "sent")],
                "Timed out: its run deadline passed while it waited for signal sent and 1 more.",
                "run_deadline_at",
            ),
            (
                "run_timeout",
                vec![],
                "Timed out: its run deadline passed before it was done.",
                "run_deadline_at",
            ),
        ] {
            let mut events = waits;
            events.push(event(
                9,
                EventType::WorkflowTimedOut,
                &json!({"timeout_kind": kind}),
            ));
            let snapshot = RunSnapshot {
                run: RunRow {
                    execution_deadline_at: Some(at(16)),
                    run_deadline_at: Some(at(15)),
                    ..run(RunStatus::Failed, ClosedReason::TimedOut)
                },
                events: history(events),
                ..RunSnapshot::default()
            };
            let said = said(&snapshot);
            assert_eq!(said.sentence, sentence);
            let deadlines = said.evidence.iter().filter(|row| row.at.is_some());
            let cited: Vec<&str> = deadlines.map(|row| row.shows.as_str()).collect();
            assert_eq!(cited, [column]);
        }
    }

    #[test]
    fn a_size_is_not_met_by_doing_less_at_once() {
        for (limit, less) in [
            ("payload_size", "reference"),
            ("memo_size", "less in the memo"),
            ("pending_child_count", "fewer children"),
            ("of_a_newer_engine", "less of the engine"),
        ] {
            let said = remedy(limit);
            assert!(
                said.contains(less) && said.contains("raise the limit"),
                "{said}"
            );
        }
    }
}
