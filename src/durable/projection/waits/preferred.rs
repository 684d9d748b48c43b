//! Of several tasks for one wait, the one that tells most about it.

use std::{cmp::Reverse, collections::HashMap};

use crate::{
    db::Json,
    durable::stored::{TaskRow, TaskStatus, TaskType},
};

/// A leased task before a ready one before those that ended; then the newest.
pub fn preferred_task<'a>(
    candidates: impl IntoIterator<Item = &'a TaskRow>,
) -> Option<&'a TaskRow> {
    candidates.into_iter().min_by_key(|task| {
        let rank = match task.status {
            TaskStatus::Leased => 0,
            TaskStatus::Ready => 1,
            TaskStatus::Completed => 2,
            TaskStatus::Failed => 3,
            TaskStatus::Cancelled => 4,
            TaskStatus::Other(_) => 5,
        };
        let newest = Reverse((
            task.updated_at.map(|at| at.timestamp_millis()),
            task.created_at.map(|at| at.timestamp_millis()),
            task.id.as_str(),
        ));
        (rank, newest)
    })
}

/// The preferred task for each value of a key of the tasks' payloads.
pub fn tasks_by<'a>(
    tasks: &'a [TaskRow],
    key: &str,
    of_type: Option<&TaskType>,
) -> HashMap<&'a str, &'a TaskRow> {
    let mut candidates: HashMap<&str, Vec<&TaskRow>> = HashMap::new();
    for task in tasks {
        if of_type.is_none_or(|of_type| task.task_type == *of_type)
            && let Some(Json::Value(payload)) = &task.payload
            && let Some(id) = payload.get(key).and_then(|id| id.as_str())
            && !id.is_empty()
        {
            candidates.entry(id).or_default().push(task);
        }
    }
    candidates
        .into_iter()
        .filter_map(|(id, candidates)| Some((id, preferred_task(candidates)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::durable::projection::waits::tests::task;

    #[test]
    fn a_leased_task_tells_most_and_of_equals_the_newest() {
        let mut tasks: Vec<TaskRow> =
            ["odd", "cancelled", "failed", "completed", "ready", "leased"]
                .into_iter()
                .map(|status| task(status, status))
                .collect();
        while let Some(expected) = tasks.last().map(|task| task.id.clone()) {
            assert_eq!(preferred_task(&tasks).map(|task| &task.id), Some(&expected));
            tasks.pop();
        }
        let mut newer = task("a", "ready");
        newer.updated_at = Some("2026-11-15T12:00:00Z".parse().expect("a valid time"));
        let tasks = [task("b", "ready"), newer];
        assert_eq!(
            preferred_task(&tasks).map(|task| task.id.as_str()),
            Some("a")
        );
    }
}
