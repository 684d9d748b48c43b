//! Activities whose deadline has passed. Only the engine's pass acts on one: until it comes, a run
//! looks as if a worker had it.

use chrono::{DateTime, Utc};

use super::{draft::Draft, named, typed_open};
use crate::{
    durable::{
        projection::{
            activities::{Activity, Deadlines},
            projected::Projected,
        },
        stored::ActivityStatus,
    },
    run::diagnosis::{Actor, Diagnosis},
};

/// A deadline of an activity that has passed, and that only the engine's pass acts on.
pub(super) struct Overdue<'p> {
    activity: &'p Activity<'p>,
    column: &'static str,
    at: DateTime<Utc>,
    words: &'static str,
}

impl Overdue<'_> {
    pub(super) fn say(&self, draft: Draft<'_>) -> Diagnosis {
        draft
            .cite_activity(self.activity)
            .cite_overdue(self.activity, self.column, self.at)
            .since(Some(self.at))
            .until(None)
            .say(
                "activity_overdue",
                format!(
                    "{} {}.",
                    named("activity", self.activity.name()),
                    self.words
                ),
                "The engine's repair pass times it out. If it stays, check that the pass runs.",
                Actor::Engine,
            )
    }
}

/// The first deadline of any open activity that has passed.
pub(super) fn first<'p>(p: &'p Projected<'_>) -> Option<Overdue<'p>> {
    let passed = |activity: &'p Activity<'p>| {
        let Deadlines {
            schedule,
            close,
            schedule_to_close,
            heartbeat,
        } = activity.deadlines;
        let running = activity.status == ActivityStatus::Running;
        let whole = "is past the deadline it must end by as a whole";
        [
            (
                schedule,
                !running,
                "schedule_deadline_at",
                "is past the deadline its try must start by",
            ),
            (
                close,
                running,
                "close_deadline_at",
                "is past the deadline its attempt must end by",
            ),
            (
                heartbeat,
                running,
                "heartbeat_deadline_at",
                "has not sent its heartbeat, and the deadline for it has passed",
            ),
            (
                schedule_to_close,
                true,
                "schedule_to_close_deadline_at",
                whole,
            ),
        ]
        .into_iter()
        .filter_map(move |(at, holds, column, words)| {
            let at = at.filter(|at| holds && *at <= p.cx.now)?;
            Some(Overdue {
                activity,
                column,
                at,
                words,
            })
        })
    };
    typed_open(p)
        .flat_map(passed)
        .min_by_key(|overdue| overdue.at)
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
        stored::{EventType, ExecutionRow, RunRow, RunStatus, TaskRow, TaskType},
    };

    /// An activity that the worker `w-3` has, an hour into the test.
    fn running(row: ExecutionRow) -> Diagnosis {
        let of = json!({"sequence": 1, "activity_execution_id": "a", "activity_type": "load"});
        let snapshot = RunSnapshot {
            run: RunRow {
                status: RunStatus::Waiting,
                ..RunRow::default()
            },
            events: history(vec![
                event(1, EventType::ActivityScheduled, &of),
                event(2, EventType::ActivityStarted, &of),
            ]),
            executions: vec![ExecutionRow {
                id: "a".into(),
                sequence: 1,
                status: ActivityStatus::Running,
                ..row
            }],
            tasks: vec![TaskRow {
                task_type: TaskType::Activity,
                lease_owner: Some("w-3".into()),
                leased_at: Some(at(3000)),
                lease_expires_at: Some(at(4000)),
                ..task("t", "leased", &json!({"activity_execution_id": "a"}))
            }],
            ..RunSnapshot::default()
        };
        told(&snapshot, |cx| diagnose(&Projected::of(cx)))
    }

    #[test]
    fn a_worker_has_it_until_its_lease_or_an_earlier_deadline() {
        let (near, far) = (Some(at(3700)), Some(at(9000)));
        for (heartbeat, close, until) in [
            (None, None, at(4000)),
            (near, far, at(3700)),
            (far, near, at(3700)),
            (far, far, at(4000)),
        ] {
            let said = running(ExecutionRow {
                heartbeat_deadline_at: heartbeat,
                close_deadline_at: close,
                ..ExecutionRow::default()
            });
            assert_eq!(said.sentence, "Worker w-3 has taken activity load.");
            assert_eq!(said.until, Some(until));
        }
    }

    #[test]
    fn a_deadline_that_has_passed_is_not_called_nothing() {
        let passed = Some(at(3500));
        let none = ExecutionRow::default;
        for (row, code, words) in [
            (
                ExecutionRow {
                    heartbeat_deadline_at: passed,
                    ..none()
                },
                "activity_overdue",
                "Activity load has not sent its heartbeat, and the deadline for it has passed.",
            ),
            (
                ExecutionRow {
                    close_deadline_at: passed,
                    ..none()
                },
                "activity_overdue",
                "Activity load is past the deadline its attempt must end by.",
            ),
            (
                ExecutionRow {
                    schedule_to_close_deadline_at: passed,
                    ..none()
                },
                "activity_overdue",
                "Activity load is past the deadline it must end by as a whole.",
            ),
            (
                // It has started.
                ExecutionRow {
                    schedule_deadline_at: passed,
                    ..none()
                },
                "worker_has_it",
                "Worker w-3 has taken activity load.",
            ),
        ] {
            let said = running(row);
            assert_eq!((said.code, said.sentence.as_str()), (code, words));
            let is_cited = said.evidence.iter().any(|row| row.at == passed);
            assert_eq!(is_cited, code == "activity_overdue");
            assert_eq!(said.needs_somebody(), is_cited);
        }
    }
}
