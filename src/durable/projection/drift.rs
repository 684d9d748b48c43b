//! Where the stored summary and the truth of now part ways.

use serde::Serialize;
use serde_json::{Value, json};

use super::projected::Projected;

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

/// What differs, in the order above. Without a summary there is nothing to differ from.
pub fn drift(projected: &Projected<'_>) -> Vec<Drift> {
    let snapshot = projected.cx.snapshot;
    let Some(summary) = &snapshot.summary else {
        return Vec::new();
    };
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
