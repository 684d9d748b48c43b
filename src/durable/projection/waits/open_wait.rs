//! The wait a run is said to be in: the one its last projection chose, else the first that can
//! be made out now.

use serde::Serialize;

use super::{Wait, open_wait_count};
use crate::durable::{
    projection::{
        context::{Context, millis},
        tasks::payload_of,
    },
    stored::{TaskRow, TaskType},
};

/// What the detail says about it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct OpenWait {
    pub open_wait_id: Option<String>,
    pub open_wait_count: usize,
    pub resume_source_kind: Option<String>,
    pub resume_source_id: Option<String>,
}

/// `waits` are all of the run's, in order.
pub fn open_wait(cx: Context<'_>, waits: &[Wait]) -> OpenWait {
    let open_wait_count = open_wait_count(waits);
    let summary = cx.snapshot.summary.as_ref();
    if let Some(summary) = summary.filter(|summary| summary.open_wait_id.is_some()) {
        return OpenWait {
            open_wait_id: summary.open_wait_id.clone(),
            open_wait_count,
            resume_source_kind: summary.resume_source_kind.clone(),
            resume_source_id: summary.resume_source_id.clone(),
        };
    }
    let wait = waits
        .iter()
        .find(|wait| wait.is_open() && !wait.is_diagnostic());
    let next = summary.and_then(|summary| summary.next_task_id.as_deref());
    made_out(
        wait,
        first_workflow_task(&cx.snapshot.tasks, next),
        open_wait_count,
    )
}

/// Each key falls through on its own: a wait that says nothing about its source takes the task's
/// id beside its own kind.
fn made_out(wait: Option<&Wait>, task: Option<&TaskRow>, open_wait_count: usize) -> OpenWait {
    let of_task = |text: fn(&TaskRow) -> String| task.map(text);
    OpenWait {
        open_wait_id: wait
            .map(|wait| wait.id.clone())
            .or_else(|| of_task(|task| format!("workflow-task:{}", task.id))),
        open_wait_count,
        resume_source_kind: wait
            .and_then(|wait| wait.resume_source_kind.clone())
            .or_else(|| of_task(|_| "workflow_task".into())),
        resume_source_id: wait
            .and_then(|wait| wait.resume_source_id.clone())
            .or_else(|| of_task(|task| task.id.clone())),
    }
}

/// The first open workflow task in the order tasks are listed.
fn first_workflow_task<'a>(tasks: &'a [TaskRow], next: Option<&str>) -> Option<&'a TaskRow> {
    tasks
        .iter()
        .filter(|task| task.task_type == TaskType::Workflow && task.status.is_open())
        .filter(|task| next.is_none_or(|next| task.id == next))
        .min_by_key(|task| {
            let replay_blocked = *payload_of(task).replay_blocked == Some(true);
            (
                !replay_blocked,
                task.available_at.map_or(i64::MAX, millis),
                task.created_at.map_or(i64::MAX, millis),
                task.id.as_str(),
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::durable::projection::waits::{OfKind, tests::task};

    #[test]
    fn a_wait_without_a_source_keeps_its_kind_and_takes_the_tasks_id() {
        let wait = Wait {
            id: "w".into(),
            status: "open",
            resume_source_kind: Some("external_input".into()),
            of_kind: OfKind::None,
            ..Wait::default()
        };
        let task = task("t", "ready");
        // wait, task → id, kind, source
        let table = [
            (None, None, [None, None, None]),
            (Some(&wait), None, [Some("w"), Some("external_input"), None]),
            (
                Some(&wait),
                Some(&task),
                [Some("w"), Some("external_input"), Some("t")],
            ),
            (
                None,
                Some(&task),
                [Some("workflow-task:t"), Some("workflow_task"), Some("t")],
            ),
        ];
        for (wait, task, expected) in table {
            let found = made_out(wait, task, 0);
            assert_eq!(found.open_wait_id.as_deref(), expected[0]);
            assert_eq!(found.resume_source_kind.as_deref(), expected[1]);
            assert_eq!(found.resume_source_id.as_deref(), expected[2]);
        }
    }

    #[test]
    fn only_an_open_workflow_task_and_the_next_one_where_that_is_known() {
        let tasks = [
            task("a", "completed"),
            task("c", "leased"),
            task("b", "ready"),
        ];
        let first = |next| first_workflow_task(&tasks, next).map(|task| task.id.as_str());
        assert_eq!(first(None), Some("b"));
        assert_eq!(first(Some("c")), Some("c"));
        assert_eq!(first(Some("a")), None);
    }
}
