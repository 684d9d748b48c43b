//! Waits for a child workflow to end.

use super::{OfKind, Wait, tasks::preferred_tasks};
use crate::durable::{
    projection::{authority, children::Child, context::Context},
    stored::TaskRow,
};

/// One wait per child, each with the task that carries its outcome.
pub fn waits(cx: Context<'_>, children: &[Child<'_>]) -> Vec<Wait> {
    if children.is_empty() {
        return Vec::new();
    }
    let by_call = preferred_tasks(&cx.snapshot.tasks, |named| named.child_call_id, None);
    let by_run = preferred_tasks(
        &cx.snapshot.tasks,
        |named| named.child_workflow_run_id,
        None,
    );
    children
        .iter()
        .map(|child| {
            let call = child.child_call_id.as_deref();
            let run = child.child_workflow_run_id.as_deref();
            let task = call
                .and_then(|call| by_call.get(call))
                .or_else(|| by_run.get(run?));
            as_wait(child, task.copied())
        })
        .collect()
}

fn as_wait(child: &Child<'_>, task: Option<&TaskRow>) -> Wait {
    let diagnostic_only = !child.is_typed();
    let proven = |value: Option<String>| value.filter(|_| !diagnostic_only);
    Wait {
        id: wait_id(child),
        kind: "child",
        sequence: Some(child.sequence),
        status: child.status,
        source_status: child.source_status.clone(),
        summary: summary(child),
        opened_at: child.opened_at,
        resolved_at: child.resolved_at,
        target_name: child.child_workflow_instance_id.clone(),
        target_type: Some(child.label.clone()),
        resume_source_kind: proven(Some("child_workflow_run".into())),
        resume_source_id: proven(child.child_workflow_run_id.clone()),
        history_authority: Some(child.history_authority),
        history_unsupported_reason: child.history_unsupported_reason,
        of_kind: OfKind::Child {
            child_call_id: child.child_call_id.clone(),
            child_workflow_run_id: child.child_workflow_run_id.clone(),
            diagnostic_only,
            group: child.group.clone(),
        },
        ..Wait::default()
    }
    .with_task(task)
}

/// `child:<call id>`, or by sequence where no call id is known.
pub fn wait_id(child: &Child<'_>) -> String {
    match &child.child_call_id {
        Some(id) => format!("child:{id}"),
        None => format!("child:{}", child.sequence),
    }
}

fn summary(child: &Child<'_>) -> String {
    let label = &child.label;
    match (child.history_authority, child.source_status.as_deref()) {
        (authority::UNSUPPORTED, _) => {
            format!("Child {label} has ended, but this run's history does not know it.")
        }
        (authority::OPEN_FALLBACK, _) => {
            format!("Child {label} is known from a link alone, not from this run's history.")
        }
        (_, Some(end @ ("completed" | "failed"))) => format!("Child {label} {end}."),
        (_, Some(end @ ("cancelled" | "terminated"))) => format!("Child {label} was {end}."),
        _ => format!("Waits for child {label}."),
    }
}
