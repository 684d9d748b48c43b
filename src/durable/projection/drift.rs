//! Where the stored summary and the truth of now part ways.

use serde::Serialize;
use serde_json::{Value, json};

use super::projected::Projected;
use crate::durable::stored::{TaskStatus, TaskType};

/// One column that the summary no longer has right.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Drift {
    pub field: &'static str,
    pub stored: Value,
    pub now: Value,
}

/// Columns whose meaning is the same on both sides; the rest of a summary is counters and
/// copies.
const COMPARED: &[&str] = &[
    "wait_kind",
    "wait_started_at",
    "wait_deadline_at",
    "open_wait_id",
    "resume_source_kind",
    "resume_source_id",
    "next_task_id",
    "next_task_type",
    "next_task_status",
    "next_task_at",
    "next_task_lease_expires_at",
    "liveness_state",
    "task_problem",
];

/// A run nobody has worked on: the engine stores that it waits for its first task, whatever else it
/// was given, and says more only once that task ran.
fn is_fresh(projected: &Projected<'_>) -> bool {
    let snapshot = projected.cx.snapshot;
    let [task] = &snapshot.tasks[..] else {
        return false;
    };
    let payload = task.payload.0.as_deref();
    let stored = snapshot.summary.as_ref();
    snapshot.run.last_history_sequence == 2
        && !snapshot.run.status.is_terminal()
        && task.task_type == TaskType::Workflow
        && matches!(task.status, TaskStatus::Ready | TaskStatus::Leased)
        && payload.is_none_or(|payload| ["[]", "{}"].contains(&payload))
        && stored.is_some_and(|stored| stored.next_task_id.as_ref() == Some(&task.id))
}

/// What differs, in the order above. Without a summary there is nothing to differ from.
pub fn drift(projected: &Projected<'_>) -> Vec<Drift> {
    let snapshot = projected.cx.snapshot;
    let Some(summary) = &snapshot.summary else {
        return Vec::new();
    };
    if is_fresh(projected) {
        return Vec::new();
    }
    let time = |at: Option<chrono::DateTime<chrono::Utc>>| json!(at.map(super::context::stamp));
    let stored = json!({
        "wait_kind": summary.wait_kind,
        "wait_started_at": time(summary.wait_started_at),
        "wait_deadline_at": time(summary.wait_deadline_at),
        "open_wait_id": summary.open_wait_id,
        "resume_source_kind": summary.resume_source_kind,
        "resume_source_id": summary.resume_source_id,
        "next_task_id": summary.next_task_id,
        "next_task_type": summary.next_task_type,
        "next_task_status": summary.next_task_status,
        "next_task_at": time(summary.next_task_at),
        "next_task_lease_expires_at": time(summary.next_task_lease_expires_at),
        "liveness_state": summary.liveness_state,
        "task_problem": summary.task_problem,
    });
    let now = json!(projected.standing);
    let mut found: Vec<Drift> = COMPARED
        .iter()
        .filter(|field| stored[**field] != now[**field])
        .map(|field| Drift {
            field,
            stored: stored[*field].clone(),
            now: now[*field].clone(),
        })
        .collect();
    if summary.status != snapshot.run.status {
        found.insert(
            0,
            Drift {
                field: "status",
                stored: json!(summary.status),
                now: json!(snapshot.run.status),
            },
        );
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::durable::{
        projection::example::{event, history, task, told},
        store::snapshot::RunSnapshot,
        stored::{EventType, RunRow, RunStatus, RunSummary, WaitKind},
    };

    #[test]
    fn a_run_nobody_worked_on_is_stored_as_waiting_for_its_first_task() {
        for (sequence, status, payload, is_stale) in [
            (2, "ready", json!([]), false),
            (2, "leased", json!({}), false),
            (3, "ready", json!([]), true),
            (2, "failed", json!([]), true),
            (2, "ready", json!({"workflow_wait_kind": "update"}), true),
        ] {
            let accepted = json!({"update_id": "u", "update_name": "resize"});
            let snapshot = RunSnapshot {
                run: RunRow {
                    status: RunStatus::Pending,
                    last_history_sequence: sequence,
                    ..RunRow::default()
                },
                summary: Some(RunSummary {
                    status: RunStatus::Pending,
                    next_task_id: Some("t".into()),
                    wait_kind: Some(WaitKind::WorkflowTask),
                    ..RunSummary::default()
                }),
                events: history(vec![event(1, EventType::UpdateAccepted, &accepted)]),
                tasks: vec![task("t", status, &payload)],
                ..RunSnapshot::default()
            };
            let found = told(&snapshot, |cx| drift(&Projected::of(cx)));
            assert_eq!(!found.is_empty(), is_stale, "{sequence} {status} {payload}");
        }
    }
}
