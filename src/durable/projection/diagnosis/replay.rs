//! A run whose history the deployed code cannot replay: where the two part ways.

use super::{draft::Draft, first_line, named, one, target};
use crate::{
    durable::{
        projection::{
            blocked_exception::Block, liveness::is_replay_blocked, projected::Projected,
            tasks::Task, timeline::Kind,
        },
        stored::{
            EventType, HistoryEvent,
            loose::{self, Int, shape},
        },
    },
    run::diagnosis::{Actor, Diagnosis},
};

shape! {
    struct OfStep {
        sequence: Int,
    }
}

pub(super) fn replay_blocked(p: &Projected<'_>, draft: Draft) -> Diagnosis {
    let Some(task) = p.tasks.iter().find(|task| is_replay_blocked(task)) else {
        return row_only(p, draft);
    };
    let draft = draft.cite_task(Some(task));
    let (draft, why, deploy) = match task.replay_blocked_reason.as_deref() {
        Some("failure_resolution") => failure(p, draft, task),
        Some("condition_wait_definition_mismatch") => condition(p, draft, task),
        Some("history_shape_mismatch") => shape(p, draft, task),
        _ => (
            draft,
            task.last_error
                .as_deref()
                .map_or("no reason is stored", first_line)
                .to_owned(),
            FITTING.to_owned(),
        ),
    };
    draft
        .say(
            "replay_blocked",
            format!("Cannot be replayed: {why}."),
            &format!("{deploy}, then repair."),
            Actor::Developer,
        )
        .asking_repair()
}

/// A step that only rows tell of: the one the engine stops at, with what it rests on.
fn row_only(p: &Projected<'_>, draft: Draft<'_>) -> Diagnosis {
    let wait = p.waits.iter().find(|wait| wait.is_diagnostic());
    let draft = match wait {
        Some(wait) => draft.cite_wait(wait),
        None => draft,
    };
    // One whose step has ended resumes nothing; its id still names the step.
    let source = wait.and_then(|wait| {
        let named = wait.id.split_once(':').map(|(_, id)| id);
        wait.resume_source_id.as_deref().or(named)
    });
    let mut activities = p.activities.iter();
    let draft = match activities.find(|activity| Some(activity.id.as_str()) == source) {
        Some(activity) => draft.cite_activity(activity),
        None => draft,
    };
    let mut children = p.children.iter();
    let child =
        children.find(|child| source.is_some() && child.child_workflow_run_id.as_deref() == source);
    let draft = match child {
        Some(child) => draft.cite_child(child),
        None => draft,
    };
    let what = wait.map_or_else(|| "one of its steps".to_owned(), target);
    draft.say(
        "unsupported_history",
        format!("{what} has a row but no history events, so the run cannot be replayed."),
        "Repair is not offered: there is nothing safe to put back. Terminate the run, or restore its history.",
        Actor::Operator,
    )
}

const FITTING: &str = "Deploy code that fits the recorded history";

/// An exception that the worker could not restore.
fn failure<'p>(p: &Projected<'_>, draft: Draft<'p>, task: &Task) -> (Draft<'p>, String, String) {
    let row = p.cx.snapshot.tasks.iter().find(|row| row.id == task.id);
    let Some(block) = row.and_then(Block::of) else {
        return (
            draft,
            "the deployed code could not restore a recorded exception".to_owned(),
            FITTING.to_owned(),
        );
    };
    let mut failures = p.failures.iter();
    let recorded = failures.rfind(|failure| {
        let class = failure.exception_class.as_deref();
        block.is_about(class, failure.exception_type.as_deref())
    });
    let draft = match recorded {
        Some(failure) => draft.cite_failure(failure),
        None => draft,
    };
    (draft, block.why(), block.remedy())
}

/// A wait for another condition than the recorded one.
fn condition<'p>(p: &Projected<'_>, draft: Draft<'p>, task: &Task) -> (Draft<'p>, String, String) {
    let event = of_step(p, task, |event| *event == EventType::ConditionWaitOpened);
    let draft = draft.cite_history(event);
    let step = step(task);
    let recorded = task.replay_blocked_recorded_condition_key.as_deref();
    let current = task.replay_blocked_current_condition_key.as_deref();
    match (recorded, current) {
        (Some(recorded), Some(current)) if recorded != current => (
            draft,
            format!(
                "{step} waits for condition {recorded} in its history, but for {current} in the deployed code"
            ),
            format!("Deploy code whose {step} waits for condition {recorded} again"),
        ),
        _ => {
            let name = named("condition", recorded.or(current));
            (
                draft,
                format!(
                    "{step} waits for {name}, which the deployed code defines otherwise than recorded"
                ),
                format!("Deploy code that defines {name} as it was recorded"),
            )
        }
    }
}

/// A step of another kind than the recorded one.
fn shape<'p>(p: &Projected<'_>, draft: Draft<'p>, task: &Task) -> (Draft<'p>, String, String) {
    let first = task.replay_blocked_recorded_event_types.first();
    let first = first.map(|word| EventType::from(word.as_str()));
    let event = of_step(p, task, |event| Some(event) == first.as_ref());
    let draft = draft.cite_history(event);
    let step = step(task);
    let recorded = first.map(|first| recorded(p, task, &first));
    let current = task.replay_blocked_expected_history_shape.as_deref();
    match (recorded, current) {
        (Some(recorded), Some(current)) => (
            draft,
            format!(
                "{step} is {recorded} in its history, but {} in the deployed code",
                one(current)
            ),
            format!("Deploy code whose {step} is {recorded} again"),
        ),
        _ => (
            draft,
            format!("the deployed code takes another {step} than its history records"),
            FITTING.to_owned(),
        ),
    }
}

/// What history has at the step, by name where it has one; by its first event where we have no
/// word for it.
fn recorded(p: &Projected<'_>, task: &Task, first: &EventType) -> String {
    let sequence = task.replay_blocked_workflow_sequence;
    match Kind::of(first) {
        Kind::Activity => {
            let mut activities = p.activities.iter();
            let activity =
                activities.find(|one| one.sequence.is_some() && one.sequence == sequence);
            named("activity", activity.and_then(|activity| activity.name()))
        }
        Kind::Child => {
            let mut children = p.children.iter();
            let child = children.find(|child| Some(child.sequence) == sequence);
            named("child workflow", child.map(|child| child.label.as_str()))
        }
        Kind::Timer => one("timer"),
        Kind::Condition => one("condition wait"),
        Kind::Signal => one("signal wait"),
        Kind::Update => one("update"),
        Kind::SideEffect => one("side effect"),
        Kind::Version => one("version marker"),
        Kind::Command | Kind::Failure | Kind::Workflow => first.to_string(),
    }
}

fn step(task: &Task) -> String {
    task.replay_blocked_workflow_sequence
        .map_or_else(|| "step".to_owned(), |sequence| format!("step {sequence}"))
}

/// The event of the step that replay stopped at.
fn of_step<'p>(
    p: &Projected<'p>,
    task: &Task,
    is_of_type: impl Fn(&EventType) -> bool,
) -> Option<&'p HistoryEvent> {
    let sequence = task.replay_blocked_workflow_sequence?;
    p.cx.snapshot.events.iter().find(|event| {
        is_of_type(&event.event_type)
            && loose::read::<OfStep>(event.payload.as_deref())
                .sequence
                .get()
                == Some(sequence)
    })
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
        stored::{RunRow, RunStatus},
    };

    fn said(payload: &Value) -> (String, String, Vec<String>) {
        let of_step = |more: Value| {
            let mut payload = json!({"sequence": 2});
            payload
                .as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            payload
        };
        let failed = json!({"sequence": 1, "activity_execution_id": "b", "failure_id": "f",
            "exception_class": "App\\Gone", "message": "no", "failure_category": "activity"});
        let snapshot = RunSnapshot {
            run: RunRow {
                status: RunStatus::Waiting,
                ..RunRow::default()
            },
            events: history(vec![
                event(1, EventType::ActivityFailed, &failed),
                event(
                    2,
                    EventType::ActivityScheduled,
                    &of_step(json!({"activity_execution_id": "a", "activity_type": "pay"})),
                ),
                event(
                    3,
                    EventType::ConditionWaitOpened,
                    &of_step(json!({"condition_wait_id": "w"})),
                ),
            ]),
            tasks: vec![task("t", "failed", payload)],
            ..RunSnapshot::default()
        };
        told(&snapshot, |cx| {
            let said = diagnose(&Projected::of(cx));
            assert_eq!(said.code, "replay_blocked");
            let cited = said.evidence.into_iter().map(|row| row.shows);
            (said.sentence, said.next_step, cited.collect())
        })
    }

    #[test]
    fn where_code_and_history_part_is_named() {
        let blocked = |reason: &str, more: Value| {
            let mut payload = json!({"replay_blocked": true, "replay_blocked_reason": reason,
                "replay_blocked_workflow_sequence": 2});
            payload
                .as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            payload
        };
        let mismatch = "condition_wait_definition_mismatch";
        let keys = |recorded: &str, current: &str| {
            json!({"replay_blocked_recorded_condition_key": recorded,
                "replay_blocked_current_condition_key": current})
        };
        let shapes = |types: &[&str], expected: &str| {
            json!({"replay_blocked_recorded_event_types": types,
                "replay_blocked_expected_history_shape": expected})
        };
        for (payload, sentence, next, cited) in [
            (
                blocked(
                    "failure_resolution",
                    json!({"replay_blocked_exception_class": "App\\Gone",
                        "replay_blocked_resolution_source": "unresolved"}),
                ),
                "the deployed code has no exception class App\\Gone.",
                "has App\\Gone again, or give it an alias",
                "event 1 ActivityFailed, category activity",
            ),
            (
                blocked("failure_resolution", json!({})),
                "could not restore a recorded exception.",
                "fits the recorded history, then repair.",
                "workflow task, replay_blocked",
            ),
            (
                blocked(mismatch, keys("manager", "director")),
                "step 2 waits for condition manager in its history, but for director in the deployed code.",
                "whose step 2 waits for condition manager again, then repair.",
                "event 3 ConditionWaitOpened",
            ),
            (
                blocked(mismatch, keys("manager", "manager")),
                "step 2 waits for condition manager, which the deployed code defines otherwise",
                "defines condition manager as it was recorded, then repair.",
                "event 3 ConditionWaitOpened",
            ),
            (
                blocked(
                    "history_shape_mismatch",
                    shapes(&["ActivityScheduled"], "child workflow"),
                ),
                "step 2 is activity pay in its history, but a child workflow in the deployed code.",
                "whose step 2 is activity pay again, then repair.",
                "event 2 ActivityScheduled",
            ),
            (
                blocked(
                    "history_shape_mismatch",
                    shapes(&["TimerScheduled"], "activity"),
                ),
                "step 2 is a timer in its history, but an activity in the deployed code.",
                "whose step 2 is a timer again, then repair.",
                "workflow task, replay_blocked",
            ),
            (
                blocked("history_shape_mismatch", json!({})),
                "takes another step 2 than its history records.",
                "fits the recorded history, then repair.",
                "workflow task, replay_blocked",
            ),
            (
                blocked("of_a_newer_engine", json!({})),
                "no reason is stored.",
                "fits the recorded history, then repair.",
                "workflow task, replay_blocked",
            ),
        ] {
            let (told, step, evidence) = said(&payload);
            assert!(told.contains(sentence), "{told}");
            assert!(step.ends_with(next) || step.contains(next), "{step}");
            assert!(evidence.iter().any(|row| row == cited), "{evidence:?}");
        }
    }
}
