//! Updates a run has accepted and must still apply, and those it has applied.

use std::collections::HashMap;

use super::{OfKind, Wait, tasks::preferred_task};
use crate::durable::{
    projection::{Context, updates::Update},
    stored::{TaskRow, TaskType, UpdateStatus},
};

pub fn update_waits(cx: Context<'_>, updates: &[Update]) -> Vec<Wait> {
    if updates.is_empty() {
        return Vec::new();
    }
    let resumes = Resumes::of(&cx.snapshot.tasks);
    updates
        .iter()
        .filter_map(|update| wait(update, &resumes))
        .collect()
}

fn wait(update: &Update, resumes: &Resumes<'_>) -> Option<Wait> {
    let status = match update.status {
        UpdateStatus::Accepted => "open",
        UpdateStatus::Completed | UpdateStatus::Failed => "resolved",
        // Refused: the run never waited for it. A word we do not know: nobody can say.
        UpdateStatus::Rejected | UpdateStatus::Other(_) => return None,
    };
    let (id, source_kind, source_id) = match (&update.id, &update.command_id) {
        (Some(id), _) => (format!("update:{id}"), "workflow_update", id.clone()),
        (None, Some(id)) => (
            format!("update-command:{id}"),
            "workflow_command",
            id.clone(),
        ),
        (None, None) => return None,
    };
    let open = status == "open";
    let task = open
        .then(|| resumes.of_update(update.id.as_deref(), update.command_id.as_deref(), &id))
        .flatten();
    let name = update.name.as_deref().unwrap_or("update");
    Some(Wait {
        kind: "update",
        sequence: update.workflow_sequence,
        status,
        source_status: Some(update.status.as_str().to_owned()),
        summary: match update.status {
            UpdateStatus::Completed => format!("Update {name} was applied"),
            UpdateStatus::Failed => format!("Update {name} failed"),
            _ => format!("Update {name} is accepted and not yet applied"),
        },
        opened_at: update.accepted_at,
        resolved_at: update.closed_at.or(update.applied_at),
        target_name: Some(name.to_owned()),
        target_type: Some("update".into()),
        task_backed: task.is_some_and(|task| task.status.is_open()),
        resume_source_kind: Some(source_kind.into()),
        resume_source_id: Some(source_id),
        task_id: task.map(|task| task.id.clone()),
        task_type: task.map(|task| task.task_type.as_str().to_owned()),
        task_status: task.map(|task| task.status.as_str().to_owned()),
        command_id: update.command_id.clone(),
        command_sequence: update.command_sequence,
        command_status: Some("accepted".into()),
        command_outcome: update.outcome.clone(),
        of_kind: OfKind::Update {
            update_id: update.id.clone(),
            ordering_state: update.ordering_state.to_owned(),
        },
        id,
        ..Wait::default()
    })
}

/// Workflow tasks by what they resume.
#[derive(Default)]
struct Resumes<'a> {
    by_update: HashMap<String, Vec<&'a TaskRow>>,
    by_command: HashMap<String, Vec<&'a TaskRow>>,
    by_wait: HashMap<String, Vec<&'a TaskRow>>,
    /// Of tasks that do not say: an older engine resumed whatever was there.
    unscoped: Option<&'a TaskRow>,
}

impl<'a> Resumes<'a> {
    fn of(tasks: &'a [TaskRow]) -> Self {
        let mut out = Self::default();
        let mut unscoped = Vec::new();
        for task in tasks {
            if task.task_type != TaskType::Workflow {
                continue;
            }
            let payload = task.payload.value().unwrap_or_default();
            // A key says something by being there, even without a value.
            let is_set = |key: &&str| payload.get(key).is_some();
            let text = |key: &str| {
                let text = payload.get(key)?.as_str()?;
                (!text.is_empty()).then(|| text.to_owned())
            };
            if !SCOPES.iter().any(is_set) {
                unscoped.push(task);
            }
            if text("workflow_wait_kind").is_some_and(|kind| kind != "update") {
                continue;
            }
            if let Some(id) = text("workflow_update_id") {
                out.by_update.entry(id).or_default().push(task);
            }
            if text("resume_source_kind").as_deref() == Some("workflow_update")
                && let Some(id) = text("resume_source_id")
            {
                out.by_update.entry(id).or_default().push(task);
            }
            if let Some(id) = text("workflow_command_id") {
                out.by_command.entry(id).or_default().push(task);
            }
            if let Some(id) = text("open_wait_id") {
                out.by_wait.entry(id).or_default().push(task);
            }
        }
        out.unscoped = preferred_task(unscoped.into_iter());
        out
    }

    /// The task that will apply the update: one that names it in any way, else one that names
    /// nothing at all.
    fn of_update(
        &self,
        id: Option<&str>,
        command_id: Option<&str>,
        wait_id: &str,
    ) -> Option<&'a TaskRow> {
        let by_update = id.and_then(|id| self.by_update.get(id));
        let by_command = command_id.and_then(|id| self.by_command.get(id));
        preferred_task(
            [by_update, by_command, self.by_wait.get(wait_id)]
                .into_iter()
                .flatten()
                .flatten()
                .copied(),
        )
        .or(self.unscoped)
    }
}

/// The payload keys by which a workflow task says what it resumes.
const SCOPES: [&str; 11] = [
    "workflow_wait_kind",
    "open_wait_id",
    "resume_source_kind",
    "resume_source_id",
    "workflow_update_id",
    "workflow_signal_id",
    "workflow_command_id",
    "child_call_id",
    "child_workflow_run_id",
    "condition_wait_id",
    "timer_id",
];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::durable::projection::example::{at, task};

    #[test]
    fn the_task_behind_an_accepted_update() {
        let unscoped = || task("old", "completed", &json!([]));
        for (what, tasks, want) in [
            ("no task", vec![], None),
            (
                "named by update id",
                vec![
                    unscoped(),
                    task("t", "ready", &json!({"workflow_update_id": "u"})),
                ],
                Some("t"),
            ),
            (
                "named as resume source",
                vec![task(
                    "t",
                    "ready",
                    &json!({"resume_source_kind": "workflow_update", "resume_source_id": "u"}),
                )],
                Some("t"),
            ),
            (
                "named by command",
                vec![task("t", "ready", &json!({"workflow_command_id": "c"}))],
                Some("t"),
            ),
            (
                "named by wait",
                vec![task("t", "ready", &json!({"open_wait_id": "update:u"}))],
                Some("t"),
            ),
            (
                "a signal's task is not the update's",
                vec![task(
                    "t",
                    "ready",
                    &json!({"workflow_wait_kind": "signal", "workflow_command_id": "c"}),
                )],
                None,
            ),
            (
                "an old resume without a name, though ended",
                vec![task("t", "ready", &json!({"timer_id": "x"})), unscoped()],
                Some("old"),
            ),
            (
                "a key without a value names something, too",
                vec![task("t", "ready", &json!({"timer_id": null}))],
                None,
            ),
            (
                "at work before waiting",
                vec![
                    task("t1", "ready", &json!({"workflow_update_id": "u"})),
                    task("t2", "leased", &json!({"workflow_update_id": "u"})),
                ],
                Some("t2"),
            ),
        ] {
            let found = Resumes::of(&tasks).of_update(Some("u"), Some("c"), "update:u");
            assert_eq!(found.map(|task| task.id.as_str()), want, "{what}");
        }
    }

    #[test]
    fn a_wait_closes_when_its_update_did_whatever_its_status() {
        let update = Update {
            id: Some("u".into()),
            applied_at: Some(at(2)),
            ..Update::example()
        };
        let wait = wait(&update, &Resumes::default()).expect("an accepted update is waited for");
        assert_eq!(
            (wait.status, wait.resolved_at, wait.target_name.as_deref()),
            ("open", Some(at(2)), Some("update"))
        );
    }
}
