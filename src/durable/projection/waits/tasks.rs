//! Which task stands behind a wait, when several do or did.

use std::{borrow::Cow, cmp::Reverse, collections::HashMap};

use super::Wait;
use crate::durable::{
    projection::context::millis,
    stored::{
        TaskRow, TaskStatus, TaskType,
        loose::{self, Str},
        payloads::task::TaskNames,
    },
};

/// The one that matters most: held, takeable, then by how it ended; among equals the newest.
pub fn preferred_task<'a>(candidates: impl Iterator<Item = &'a TaskRow>) -> Option<&'a TaskRow> {
    candidates.min_by(|a, b| preference(a).cmp(&preference(b)))
}

/// The preferred task of each thing that a key of the payloads names, of tasks of one type or any.
pub fn preferred_tasks<'a>(
    tasks: &'a [TaskRow],
    key: for<'t> fn(TaskNames<'t>) -> Str<'t>,
    task_type: Option<&TaskType>,
) -> HashMap<Cow<'a, str>, &'a TaskRow> {
    let mut preferred: HashMap<Cow<'_, str>, &TaskRow> = HashMap::new();
    for task in tasks {
        if task_type.is_some_and(|wanted| *wanted != task.task_type) {
            continue;
        }
        if let Some(named) = key(names(task)).0 {
            preferred
                .entry(named)
                .and_modify(|best| {
                    if preference(task) < preference(best) {
                        *best = task;
                    }
                })
                .or_insert(task);
        }
    }
    preferred
}

/// What the task's payload names.
pub fn names(task: &TaskRow) -> TaskNames<'_> {
    loose::read(task.payload.0.as_deref())
}

impl Wait {
    /// The same wait with the task that stands behind it.
    #[must_use]
    pub fn with_task(self, task: Option<&TaskRow>) -> Self {
        Self {
            task_backed: task.is_some_and(|task| task.status.is_open()),
            task_id: task.map(|task| task.id.clone()),
            task_type: task.map(|task| task.task_type.to_string()),
            task_status: task.map(|task| task.status.to_string()),
            ..self
        }
    }
}

type Preference<'a> = (u8, Reverse<i64>, Reverse<i64>, Reverse<&'a str>);

fn preference(task: &TaskRow) -> Preference<'_> {
    let newest = |at: Option<_>| Reverse(at.map_or(i64::MIN, millis));
    let rank = match task.status {
        TaskStatus::Leased => 0,
        TaskStatus::Ready => 1,
        TaskStatus::Completed => 2,
        TaskStatus::Failed => 3,
        TaskStatus::Cancelled => 4,
        TaskStatus::Other(_) => 5,
    };
    (
        rank,
        newest(task.updated_at),
        newest(task.created_at),
        Reverse(&task.id),
    )
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, Utc};
    use serde_json::json;

    use super::*;
    use crate::durable::stored::loose::Raw;

    fn task(id: &str, status: &str, updated: i64, created: i64) -> TaskRow {
        let at = |seconds| DateTime::<Utc>::from_timestamp(seconds, 0);
        TaskRow {
            id: id.into(),
            workflow_run_id: "run".into(),
            namespace: None,
            task_type: TaskType::Timer,
            status: status.into(),
            compatibility: None,
            payload: Raw::of_value(&json!({"timer_id": "timer"})),
            connection: None,
            queue: None,
            available_at: None,
            leased_at: None,
            lease_owner: None,
            lease_expires_at: None,
            attempt_count: 0,
            last_dispatch_attempt_at: None,
            last_dispatched_at: None,
            last_dispatch_error: None,
            last_claim_failed_at: None,
            last_claim_error: None,
            repair_count: 0,
            repair_available_at: None,
            last_error: None,
            created_at: at(created),
            updated_at: at(updated),
        }
    }

    #[test]
    fn the_task_that_matters_most_is_chosen() {
        for (tasks, want) in [
            (
                vec![task("a", "ready", 9, 9), task("b", "leased", 1, 1)],
                "b",
            ),
            (
                vec![task("a", "completed", 9, 9), task("b", "ready", 1, 1)],
                "b",
            ),
            (
                vec![task("a", "failed", 9, 9), task("b", "completed", 1, 1)],
                "b",
            ),
            (
                vec![task("a", "cancelled", 9, 9), task("b", "failed", 1, 1)],
                "b",
            ),
            (
                vec![task("a", "paused", 9, 9), task("b", "cancelled", 1, 1)],
                "b",
            ),
            (
                vec![task("a", "ready", 1, 9), task("b", "ready", 2, 1)],
                "b",
            ),
            (
                vec![task("a", "ready", 1, 1), task("b", "ready", 1, 2)],
                "b",
            ),
            (
                vec![task("a", "ready", 1, 1), task("b", "ready", 1, 1)],
                "b",
            ),
        ] {
            for tasks in [tasks.clone(), tasks.into_iter().rev().collect()] {
                let chosen = preferred_task(tasks.iter()).map(|task| task.id.as_str());
                assert_eq!(chosen, Some(want), "{tasks:?}");
                let by_key =
                    preferred_tasks(&tasks, |named| named.timer_id, Some(&TaskType::Timer));
                assert_eq!(by_key["timer"].id, want);
            }
        }
        let other = [task("a", "ready", 1, 1)];
        assert!(
            preferred_tasks(&other, |named| named.timer_id, Some(&TaskType::Activity)).is_empty()
        );
    }
}
