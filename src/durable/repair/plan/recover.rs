//! A task that is there and in trouble is made ready again.

use chrono::TimeDelta;
use serde_json::Value;

use super::{By, Kind, Made, draft::Draft, footing};
use crate::durable::{
    projection::{
        Context, Projected,
        context::millis,
        tasks::payload_of,
        transport::{Health, Patience},
    },
    repair::{
        change::Guard,
        refusal::{LEASE_MARGIN_SECONDS, Refusal},
    },
    stored::{
        ActivityStatus, AsCell as _, AttemptRow, AttemptStatus, Cell, ExecutionRow, TaskRow,
        TaskStatus, TaskType, loose::Raw,
    },
};

/// The task a repair recovers, of several the one due first; none when all that is wrong is that
/// a task is missing.
pub(super) fn first<'p>(p: &'p Projected<'_>) -> Option<(&'p TaskRow, Kind)> {
    p.cx.snapshot
        .tasks
        .iter()
        .filter_map(|task| Some((task, cause(p, task)?)))
        .min_by_key(|(task, _)| {
            (
                task.available_at.map_or(i64::MAX, millis),
                task.created_at.map_or(i64::MAX, millis),
                task.id.as_str(),
            )
        })
}

fn cause(p: &Projected<'_>, task: &TaskRow) -> Option<Kind> {
    let blocked = task.task_type == TaskType::Workflow
        && task.status == TaskStatus::Failed
        && *payload_of(task).replay_blocked == Some(true);
    if blocked {
        // Where the workflow has another task to go on with, opening this one makes a second.
        let alone = footing::task_of_the_workflow(p).is_none();
        return alone.then_some(Kind::ReplayBlocked);
    }
    in_transport(p.cx, task)
}

/// What is wrong with a task on its way to a worker, if repair may act on it now. Where a worker
/// was refused it, nothing is wrong with its way.
pub(super) fn in_transport(cx: Context<'_>, task: &TaskRow) -> Option<Kind> {
    let health = Health::of(task, cx.now, Patience::of(cx.config));
    match health {
        _ if health.lease_expired => Some(Kind::LeaseExpired),
        _ if health.claim_failed => None,
        _ if health.dispatch_retry_due => Some(Kind::DispatchFailed),
        _ if health.dispatch_overdue => Some(Kind::DispatchOverdue),
        _ => None,
    }
}

pub(super) fn recover(draft: &mut Draft<'_>, task: &TaskRow, kind: Kind) -> Result<Made, Refusal> {
    let now = draft.p.cx.now;
    let execution_id = payload_of(task).activity_execution_id.0;
    footing::of_a_task(draft.p, task, execution_id.as_deref().unwrap_or_default())?;
    let mut recorded = TaskRow {
        repair_count: task.repair_count.saturating_add(1),
        repair_available_at: None,
        last_error: None,
        ..task.clone()
    };
    // A task from before its run had a marker gets it.
    let marker = task.compatibility.as_deref().unwrap_or_default();
    if draft.by == By::Pass && marker.trim().is_empty() {
        let of_run = draft.p.cx.snapshot.run.compatibility.clone();
        recorded.compatibility = of_run.or(recorded.compatibility);
    }
    let mut guards = vec![
        Guard::Is("status", task.status.cell()),
        Guard::Is("attempt_count", task.attempt_count.cell()),
        Guard::Is("repair_count", task.repair_count.cell()),
    ];
    if matches!(kind, Kind::LeaseExpired | Kind::ReplayBlocked) {
        recorded.status = TaskStatus::Ready;
        recorded.leased_at = None;
        recorded.lease_owner = None;
        recorded.lease_expires_at = None;
    }
    if let (Kind::LeaseExpired, Some(at)) = (kind, task.lease_expires_at) {
        if now - at < TimeDelta::seconds(LEASE_MARGIN_SECONDS) {
            return Err(Refusal::LeaseJustExpired { at });
        }
        guards.push(Guard::Is("lease_owner", task.lease_owner.cell()));
        guards.push(Guard::Past("lease_expires_at", now));
    }
    if kind == Kind::ReplayBlocked {
        recorded.payload = unblocked(&task.payload);
    }
    if kind == Kind::LeaseExpired && task.task_type == TaskType::Activity {
        expire_attempt(draft, &mut recorded, execution_id.as_deref())?;
    }
    let offered = draft.offered(&recorded);
    draft.update(
        TaskRow::TABLE,
        &task.id,
        task.cells(),
        offered.cells(),
        guards,
    );
    draft.written.tasks.push(offered.clone());
    Ok(Made {
        kind,
        task: offered,
        recorded,
        inserted: false,
    })
}

/// The payload without what says that it is blocked.
fn unblocked(payload: &Raw) -> Raw {
    match payload.value() {
        Some(Value::Object(mut map)) => {
            map.retain(|key, _| !key.starts_with("replay_blocked"));
            Raw::of_value(&Value::Object(map))
        }
        _ => payload.clone(),
    }
}

/// Closes the try whose worker is gone. Its number is spent: a late outcome finds it closed, and
/// the next try gets the next number.
fn expire_attempt(
    draft: &mut Draft<'_>,
    task: &mut TaskRow,
    execution_id: Option<&str>,
) -> Result<(), Refusal> {
    let snapshot = draft.p.cx.snapshot;
    let now = draft.p.cx.now;
    let execution_id = execution_id.unwrap_or_default();
    footing::no_attempt_may_count(draft.p, execution_id)?;
    let execution = snapshot
        .executions
        .iter()
        .find(|row| row.id == execution_id);
    let execution = execution.ok_or_else(|| Refusal::NotRestorable {
        what: format!("the activity of task {}", task.id),
    })?;
    let Some(number) = attempt_number(execution) else {
        // Its row knows of no try; one that is there and did not fail speaks against it.
        return footing::spent_attempts(draft.p, execution_id).map(drop);
    };
    task.attempt_count = task.attempt_count.max(number);
    let current = execution.current_attempt_id.as_deref();
    let named = snapshot
        .attempts
        .iter()
        .find(|row| Some(row.id.as_str()) == current);
    // Another activity's try is not this one's to close.
    if named.is_some_and(|row| row.activity_execution_id != execution.id) {
        return Err(Refusal::Unreadable {
            table: ExecutionRow::TABLE,
            column: "current_attempt_id",
            id: execution.id.clone(),
        });
    }
    let known = named.or_else(|| {
        snapshot
            .attempts
            .iter()
            .find(|row| row.activity_execution_id == execution.id && row.attempt_number == number)
    });
    let attempt_id = if let Some(row) = known {
        if row.status == AttemptStatus::Running {
            close_attempt(draft, row);
        }
        row.id.clone()
    } else {
        let id = current.map_or_else(|| draft.ids.attempt.clone(), str::to_owned);
        let held = snapshot.tasks.iter().find(|row| row.id == task.id);
        let expired = AttemptRow {
            id: id.clone(),
            workflow_run_id: execution.workflow_run_id.clone(),
            activity_execution_id: execution.id.clone(),
            workflow_task_id: Some(task.id.clone()),
            attempt_number: number,
            status: AttemptStatus::Expired,
            lease_owner: held.and_then(|row| row.lease_owner.clone()),
            started_at: execution.started_at.or(execution.created_at).or(Some(now)),
            last_heartbeat_at: execution.last_heartbeat_at,
            lease_expires_at: None,
            closed_at: Some(now),
            created_at: Some(now),
            updated_at: Some(now),
        };
        draft.insert(AttemptRow::TABLE, &id, expired.cells());
        draft.written.attempts.push(expired);
        id
    };
    let synced = ExecutionRow {
        current_attempt_id: Some(attempt_id),
        attempt_count: number,
        ..execution.clone()
    };
    if synced != *execution {
        let synced = ExecutionRow {
            updated_at: Some(now),
            ..synced
        };
        draft.update(
            ExecutionRow::TABLE,
            &execution.id,
            execution.cells(),
            synced.cells(),
            vec![Guard::Is("attempt_count", execution.attempt_count.cell())],
        );
        draft.written.executions.push(synced);
    }
    Ok(())
}

fn close_attempt(draft: &mut Draft<'_>, row: &AttemptRow) {
    let now = draft.p.cx.now;
    // A heartbeat of its worker changes nothing else.
    let not_renewed = match row.lease_expires_at {
        Some(_) => Guard::Past("lease_expires_at", footing::surely_over(draft.p)),
        None => Guard::Is("lease_expires_at", Cell::Null),
    };
    let expired = AttemptRow {
        status: AttemptStatus::Expired,
        lease_expires_at: None,
        closed_at: row.closed_at.or(Some(now)),
        updated_at: Some(now),
        ..row.clone()
    };
    draft.update(
        AttemptRow::TABLE,
        &row.id,
        row.cells(),
        expired.cells(),
        vec![Guard::Is("status", row.status.cell()), not_renewed],
    );
    draft.written.attempts.push(expired);
}

/// The number of the try that ran; none when none did.
fn attempt_number(execution: &ExecutionRow) -> Option<i64> {
    if execution.attempt_count > 0 {
        return Some(execution.attempt_count);
    }
    let tried = execution
        .current_attempt_id
        .as_deref()
        .is_some_and(|id| !id.is_empty())
        || match execution.status {
            ActivityStatus::Running
            | ActivityStatus::Completed
            | ActivityStatus::Failed
            | ActivityStatus::Cancelled => true,
            ActivityStatus::Pending => {
                execution.started_at.is_some() || execution.closed_at.is_some()
            }
            ActivityStatus::Other(_) => false,
        };
    tried.then_some(1)
}
