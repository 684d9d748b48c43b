//! A step that is over, and of which no workflow task tells the workflow.

use super::{draft::Draft, named, one};
use crate::{
    durable::{
        projection::{activities::Activity, projected::Projected, timers::Timer},
        stored::{
            EventType, HistoryEvent, TaskType,
            loose::{self, Text, shape},
        },
    },
    run::diagnosis::{Actor, Diagnosis},
};

pub(super) const PUT_BACK: &str = "Repair this run: it puts the missing task back.";

shape! {
    struct Ended {
        activity_execution_id: Text,
        timer_id: Text,
    }
}

/// What came of the step, by the event that says so.
pub(super) struct LostResult<'p> {
    event: &'p HistoryEvent,
    activity: Option<&'p Activity<'p>>,
    sentence: String,
}

impl LostResult<'_> {
    pub(super) fn say(&self, draft: Draft<'_>) -> Diagnosis {
        let draft = match self.activity {
            Some(activity) => draft.cite_activity(activity),
            None => draft,
        };
        draft
            .cite_history(Some(self.event))
            .since(self.event.recorded_at)
            .until(None)
            .say(
                "result_task_lost",
                &self.sentence,
                PUT_BACK,
                Actor::Operator,
            )
            .asking_repair()
    }
}

/// The last thing that happened to the run, if a workflow task had to follow and none did.
pub(super) fn result<'p>(p: &'p Projected<'_>) -> Option<LostResult<'p>> {
    let mut events = p.cx.snapshot.events.iter();
    let event = events.rfind(|event| !is_aside(&event.event_type))?;
    if was_followed(p, event) {
        return None;
    }
    let told: Ended = loose::read(event.payload.as_deref());
    let activity = told.activity_execution_id.0.as_deref().and_then(|id| {
        let mut activities = p.activities.iter();
        activities.find(|activity| activity.id == id)
    });
    let name = named("activity", activity.and_then(Activity::name));
    let sentence = match &event.event_type {
        EventType::ActivityCompleted => {
            format!(
                "{name} completed, but the task that brings its result to the workflow is missing."
            )
        }
        EventType::ActivityFailed => {
            format!("{name} failed for good, but the task that tells the workflow is missing.")
        }
        EventType::ActivityTimedOut => {
            format!("{name} timed out for good, but the task that tells the workflow is missing.")
        }
        EventType::ActivityCancelled => {
            format!("{name} was cancelled, but the task that tells the workflow is missing.")
        }
        EventType::TimerFired if is_plain(p, told.timer_id.0.as_deref()) => {
            format!(
                "{} fired, but the task that wakes the workflow is missing.",
                one("timer")
            )
        }
        _ => return None,
    };
    Some(LostResult {
        event,
        activity,
        sentence,
    })
}

/// Recorded whatever the workflow does.
fn is_aside(event_type: &EventType) -> bool {
    matches!(
        event_type,
        EventType::RepairRequested | EventType::ActivityHeartbeatRecorded
    )
}

/// Whether a workflow task was made, taken or closed at that moment or later.
fn was_followed(p: &Projected<'_>, event: &HistoryEvent) -> bool {
    let tasks = p.cx.snapshot.tasks.iter();
    let mut of_workflow = tasks.filter(|task| task.task_type == TaskType::Workflow);
    of_workflow.any(|task| {
        let last = task.created_at.max(task.leased_at).max(task.updated_at);
        last >= event.recorded_at
    })
}

/// Not the timeout of another wait.
fn is_plain(p: &Projected<'_>, id: Option<&str>) -> bool {
    let mut timers = p.timers.iter();
    let timer = timers.find(|timer| Some(timer.id.as_str()) == id);
    timer.is_none_or(|timer: &Timer| !timer.is_timeout())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::durable::{
        projection::{
            diagnosis::diagnose,
            example::{at, event, history, task, told},
        },
        store::snapshot::RunSnapshot,
        stored::{RunRow, RunStatus, TaskRow},
    };

    #[test]
    fn a_result_no_task_followed_is_not_called_nothing() {
        let step = |kind| {
            event(
                kind,
                EventType::ActivityScheduled,
                &json!({"sequence": 1, "activity_execution_id": "a", "activity_type": "pay"}),
            )
        };
        let ended = |event_type| {
            let payload =
                json!({"sequence": 1, "activity_execution_id": "a", "activity_type": "pay"});
            event(2, event_type, &payload)
        };
        let timer = |sequence, event_type| {
            event(
                sequence,
                event_type,
                &json!({"sequence": 1, "timer_id": "t", "delay_seconds": 5}),
            )
        };
        let workflow_task = |seconds| TaskRow {
            created_at: Some(at(seconds)),
            ..task("w", "completed", &json!({}))
        };
        let nap = vec![
            timer(1, EventType::TimerScheduled),
            timer(2, EventType::TimerFired),
        ];
        let of = |event_type| vec![step(1), ended(event_type)];
        let mut gone_on = of(EventType::ActivityCompleted);
        gone_on.push(event(
            3,
            EventType::SideEffectRecorded,
            &json!({"sequence": 2}),
        ));
        for (events, tasks, code, words) in [
            (
                of(EventType::ActivityCompleted),
                vec![workflow_task(0)],
                "result_task_lost",
                "Activity pay completed, but the task that brings its result to the workflow is missing.",
            ),
            (
                of(EventType::ActivityTimedOut),
                vec![],
                "result_task_lost",
                "Activity pay timed out for good",
            ),
            (
                nap,
                vec![],
                "result_task_lost",
                "A timer fired, but the task that wakes the workflow is missing.",
            ),
            (
                of(EventType::ActivityCompleted),
                vec![workflow_task(2)],
                "no_resume_source",
                "no open task and no open wait",
            ),
            (
                gone_on,
                vec![],
                "no_resume_source",
                "no open task and no open wait",
            ),
        ] {
            let snapshot = RunSnapshot {
                run: RunRow {
                    status: RunStatus::Waiting,
                    ..RunRow::default()
                },
                events: history(events),
                tasks,
                ..RunSnapshot::default()
            };
            told(&snapshot, |cx| {
                let said = diagnose(&Projected::of(cx));
                assert_eq!(said.code, code, "{}", said.sentence);
                assert!(said.sentence.contains(words), "{}", said.sentence);
                let cites = said
                    .evidence
                    .iter()
                    .any(|row| row.shows.starts_with("event 2"));
                assert_eq!(cites, code == "result_task_lost", "{words}");
            });
        }
    }
}
