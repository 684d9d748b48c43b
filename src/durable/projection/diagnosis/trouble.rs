//! What is wrong with a task, in words. The engine judges a run by one task; of several branches
//! at once another may be lost or stuck meanwhile, and nothing else says so.

use chrono::{DateTime, Utc};

use super::{draft::Draft, first_line, named, one};
use crate::{
    durable::{
        engine_config::EngineConfig,
        projection::{projected::Projected, tasks::Task},
        stored::TaskType,
    },
    run::diagnosis::{Actor, Diagnosis},
};

/// Tasks named in a sentence; the rest are counted.
const NAMED: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    Gone,
    LeaseExpired,
    NotPublished,
    /// The engine waits before it publishes again.
    Backoff,
    Refused,
    NeverPublished,
    NotTaken,
    NoWorker,
}

impl Trouble {
    pub(super) fn of(task: &Task, now: DateTime<Utc>) -> Option<Self> {
        if task.waits_for_compatible_worker(now) {
            return Some(Self::NoWorker);
        }
        Self::in_transport(task)
    }

    pub(super) fn in_transport(task: &Task) -> Option<Self> {
        match task.transport_state.as_str() {
            "missing" => Some(Self::Gone),
            "lease_expired" => Some(Self::LeaseExpired),
            "dispatch_failed" => Some(Self::NotPublished),
            "repair_backoff" if task.dispatch_failed => Some(Self::Backoff),
            "repair_backoff" | "claim_failed" => Some(Self::Refused),
            "dispatch_overdue" if task.last_dispatched_at.is_none() => Some(Self::NeverPublished),
            "dispatch_overdue" => Some(Self::NotTaken),
            _ => None,
        }
    }

    pub(super) fn code(self) -> &'static str {
        match self {
            Self::Gone => "task_lost",
            Self::LeaseExpired => "lease_expired",
            Self::NotPublished => "dispatch_failed",
            Self::Backoff => "repair_backoff",
            Self::Refused => "claim_failed",
            Self::NeverPublished | Self::NotTaken => "dispatch_overdue",
            Self::NoWorker => "waiting_for_compatible_worker",
        }
    }

    /// When it began.
    pub(super) fn since(self, task: &Task) -> Option<DateTime<Utc>> {
        match self {
            Self::Gone => None,
            Self::LeaseExpired => task.lease_expires_at,
            Self::NotPublished | Self::Backoff => task.last_dispatch_attempt_at,
            Self::Refused => task.last_claim_failed_at,
            Self::NeverPublished | Self::NotTaken | Self::NoWorker => super::ready_since(task),
        }
    }

    /// A clause that another may follow.
    pub(super) fn clause(self, task: &Task, what: &str) -> String {
        let why = |error: &Option<String>| {
            let error = error.as_deref().map(first_line);
            error.map_or_else(String::new, |error| format!(": {}", unended(error)))
        };
        match self {
            Self::Gone => format!("the task of {what} is gone"),
            Self::LeaseExpired => format!(
                "the worker that had taken {what} did not come back before its lease ran out"
            ),
            Self::NotPublished => format!(
                "the task of {what} could not be published{}",
                why(&task.last_dispatch_error)
            ),
            Self::Backoff => format!(
                "the task of {what} could not be published, and the engine waits before it tries again{}",
                why(&task.last_dispatch_error)
            ),
            Self::Refused => format!(
                "a worker refused the task of {what}{}",
                why(&task.last_claim_error)
            ),
            Self::NeverPublished => {
                format!("the task of {what} is due and was never published to the queue")
            }
            Self::NotTaken => format!("the task of {what} was published and nobody has taken it"),
            Self::NoWorker => format!(
                "no live worker supports the marker {} of the task of {what}",
                task.compatibility.as_deref().unwrap_or("it asks for")
            ),
        }
    }

    /// What to do where the run is judged by this task, and so may be repaired by it.
    pub(super) fn next_step(self, task: &Task, config: &EngineConfig) -> String {
        let workers = workers(task);
        // Where workers poll, offering the task is all there is to publishing it.
        let anew = if config.text("task_dispatch_mode") == Some("poll") {
            "it offers the task to workers again"
        } else {
            "it marks the task, and the engine's repair pass publishes it"
        };
        match self {
            Self::LeaseExpired => format!(
                "Check that {workers} are alive, then repair: it takes the task back and makes it ready."
            ),
            Self::NotPublished => {
                format!("Make the queue's backend reachable, then repair: {anew}.")
            }
            Self::NeverPublished | Self::NotTaken => {
                format!("Check that {workers} are alive, then repair: {anew}.")
            }
            Self::Gone | Self::Backoff | Self::Refused | Self::NoWorker => self.meanwhile(task),
        }
    }

    /// What to do where the run is judged by another task.
    fn meanwhile(self, task: &Task) -> String {
        match self {
            Self::Gone => "The engine judges the run by another step, and offers no repair of this one before that is over. Look again then.".to_owned(),
            Self::LeaseExpired => "The engine's repair pass brings it back by itself. If it stays, check that the pass runs.".to_owned(),
            Self::NotPublished => "Make the queue's backend reachable; the engine's repair pass publishes it then.".to_owned(),
            Self::Backoff => "Wait for the engine's next try; a repair now would make a second task.".to_owned(),
            Self::Refused => "Correct the worker or its queue; the engine offers the task again by itself.".to_owned(),
            Self::NeverPublished | Self::NotTaken => format!(
                "Check that {} are alive; the engine's repair pass publishes it again.",
                workers(task)
            ),
            Self::NoWorker => "Start a worker that supports it. Repair is not offered: the task is there.".to_owned(),
        }
    }
}

/// Adds the tasks in trouble that a diagnosis does not speak of. One that found nothing wrong
/// becomes one of them.
pub(super) fn beside(
    p: &Projected<'_>,
    judged_by: Option<&Task>,
    what: &str,
    mut said: Diagnosis,
) -> Diagnosis {
    let told = |task: &Task| {
        let anchor = Some(Draft::anchor(task));
        said.needs_somebody() && said.evidence.iter().any(|row| row.anchor == anchor)
    };
    let is_judged = |task: &Task| judged_by.is_some_and(|judged| judged.id == task.id);
    let others: Vec<(Trouble, &Task)> = p
        .tasks
        .iter()
        .filter(|task| task.is_open || is_missed(task))
        .filter(|task| !told(task))
        .filter_map(|task| Some((Trouble::of(task, p.cx.now)?, task)))
        .collect();
    let Some((first, task)) = others.first().copied() else {
        return said;
    };
    let clauses: Vec<String> = others
        .iter()
        .take(NAMED)
        .map(|(trouble, task)| {
            if is_judged(task) {
                trouble.clause(task, what)
            } else {
                trouble.clause(task, &purpose(task))
            }
        })
        .collect();
    let more = match others.len().saturating_sub(NAMED) {
        0 => String::new(),
        1 => ", and 1 more task is in trouble".to_owned(),
        more => format!(", and {more} more tasks are in trouble"),
    };
    let joined = clauses.join(", and ");
    said.sentence = format!("{} But {joined}{more}.", said.sentence);
    for (_, task) in others.iter().take(NAMED) {
        let citation = Draft::task_citation(task);
        if !said.evidence.contains(&citation) {
            said.evidence.push(citation);
        }
    }
    if !said.needs_somebody() {
        said.code = match first {
            Trouble::Gone => "other_task_lost",
            _ => "other_task_stuck",
        };
        said.next_step = first.meanwhile(task);
        said.actor = Actor::Operator;
        said.since = first.since(task).or(said.since);
        said.until = None;
    }
    said
}

/// The engine also misses a workflow task for every signal that came before it was asked for:
/// only a step's own task, or an update's, is gone for certain.
fn is_missed(task: &Task) -> bool {
    task.task_missing
        && (task.r#type != TaskType::Workflow.as_str() || task.workflow_update_id.is_some())
}

/// What a task is for, by name.
pub(super) fn purpose(task: &Task) -> String {
    let timeout = |kind, name: Option<&str>| format!("the timeout of {}", named(kind, name));
    match task.r#type.as_str() {
        "activity" => named(
            "activity",
            task.activity_type
                .as_deref()
                .or(task.activity_class.as_deref()),
        ),
        "timer" if task.condition_wait_id.is_some() => {
            timeout("condition", task.condition_key.as_deref())
        }
        "timer" if task.signal_wait_id.is_some() => timeout("signal", task.signal_name.as_deref()),
        "timer" => one("timer"),
        "workflow" if task.workflow_update_id.is_some() => one("update"),
        "workflow" => "the workflow's next step".to_owned(),
        other => format!("type {other}"),
    }
}

/// `workers of queue orders`.
pub(super) fn workers(task: &Task) -> String {
    match task.queue.as_deref().filter(|queue| !queue.is_empty()) {
        Some(queue) => format!("workers of queue {queue}"),
        None => "workers of the default queue".to_owned(),
    }
}

/// Of a text that our own sentence goes on from.
pub(super) fn unended(text: &str) -> &str {
    text.trim_end().trim_end_matches('.')
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
        stored::{EventType, RunRow, RunStatus, TaskRow},
    };

    /// Two activities at once: a worker has the task of `pay`; how that of `ship` stands varies.
    fn beside(ship: Option<TaskRow>) -> Diagnosis {
        let step = |sequence: i64, id: &str, name: &str| {
            event(
                sequence,
                EventType::ActivityScheduled,
                &json!({"sequence": sequence, "activity_execution_id": id, "activity_type": name}),
            )
        };
        let leased = of_activity("t", "leased", "a", |task| {
            task.lease_expires_at = Some(at(4000));
        });
        let snapshot = RunSnapshot {
            run: RunRow {
                status: RunStatus::Waiting,
                ..RunRow::default()
            },
            events: history(vec![
                step(1, "a", "pay"),
                step(2, "b", "ship"),
                event(
                    3,
                    EventType::ActivityStarted,
                    &json!({"sequence": 1, "activity_execution_id": "a", "activity_type": "pay"}),
                ),
            ]),
            tasks: std::iter::once(leased).chain(ship).collect(),
            ..RunSnapshot::default()
        };
        told(&snapshot, |cx| diagnose(&Projected::of(cx)))
    }

    fn of_activity(
        id: &str,
        status: &str,
        activity: &str,
        stands: impl FnOnce(&mut TaskRow),
    ) -> TaskRow {
        let mut row = TaskRow {
            task_type: TaskType::Activity,
            available_at: Some(at(100)),
            created_at: Some(at(3599)),
            queue: Some("orders".into()),
            ..task(id, status, &json!({"activity_execution_id": activity}))
        };
        stands(&mut row);
        row
    }

    #[test]
    fn another_branch_in_trouble_is_named_beside_the_one_a_worker_has() {
        let ready = |stands: fn(&mut TaskRow)| Some(of_activity("u", "ready", "b", stands));
        for (ship, clause, next) in [
            (
                None,
                "But the task of activity ship is gone.",
                "offers no repair of this one",
            ),
            (
                ready(|task| {
                    task.last_dispatch_error = Some("No route".into());
                    task.last_dispatch_attempt_at = Some(at(3598));
                }),
                "But the task of activity ship could not be published: No route.",
                "Make the queue's backend reachable",
            ),
            (
                ready(|task| {
                    task.last_claim_error = Some("Wrong build.".into());
                    task.last_claim_failed_at = Some(at(3000));
                }),
                "But a worker refused the task of activity ship: Wrong build.",
                "Correct the worker",
            ),
            (
                ready(|task| task.created_at = Some(at(100))),
                "But the task of activity ship is due and was never published to the queue.",
                "workers of queue orders",
            ),
            (
                ready(|task| task.last_dispatched_at = Some(at(200))),
                "But the task of activity ship was published and nobody has taken it.",
                "workers of queue orders",
            ),
        ] {
            let said = beside(ship);
            assert!(
                said.sentence
                    .starts_with("A worker has taken activity pay."),
                "{said:?}"
            );
            assert!(said.sentence.ends_with(clause), "{}", said.sentence);
            assert!(said.next_step.contains(next), "{}", said.next_step);
            assert!(said.needs_somebody(), "{clause}");
            assert!(
                said.evidence
                    .iter()
                    .any(|row| row.table == "workflow_tasks" && row.id != "t")
            );
        }
    }

    #[test]
    fn branches_that_all_go_on_are_named_together_and_nothing_is_wrong() {
        let ship = of_activity("u", "leased", "b", |task| {
            task.lease_expires_at = Some(at(4000));
            task.available_at = Some(at(200));
        });
        let said = beside(Some(ship));
        assert_eq!(
            said.sentence,
            "A worker has taken activity pay. It waits for 2 activities: pay, ship."
        );
        assert!(said.next_step.starts_with("Nothing is wrong."));
        assert!(!said.needs_somebody());
    }

    #[test]
    fn a_lost_lease_is_what_the_run_is_judged_by() {
        let ship = of_activity("u", "leased", "b", |task| {
            task.lease_expires_at = Some(at(3500));
            task.available_at = Some(at(50));
        });
        let said = beside(Some(ship));
        assert_eq!(said.code, "lease_expired");
        assert_eq!(
            said.sentence,
            "The worker that had taken activity ship did not come back before its lease ran out."
        );
    }
}
