//! What a task's row says about its way to a worker, at a moment.

use crate::demo::builder::model::{Task, Time};
use crate::demo::builder::{FLEET, secs};

/// Seconds after which a published but unclaimed task counts as overdue.
const REDISPATCH_AFTER: i64 = 3;

pub fn lease_expired(task: &Task, now: Time) -> bool {
    task.status == "leased" && task.lease_expires_at.is_some_and(|at| at <= now)
}

pub fn dispatch_failed(task: &Task) -> bool {
    task.status == "ready"
        && task.last_dispatch_error.is_some()
        && task
            .last_dispatch_attempt_at
            .is_some_and(|tried| task.last_dispatched_at.is_none_or(|done| tried > done))
}

pub fn claim_failed(task: &Task) -> bool {
    task.status == "ready" && task.last_claim_failed_at.is_some() && task.last_claim_error.is_some()
}

pub fn overdue(task: &Task, now: Time) -> bool {
    let since = task.last_dispatched_at.unwrap_or(task.created_at);
    task.status == "ready"
        && task.available_at <= now
        && !dispatch_failed(task)
        && !claim_failed(task)
        && since <= now - secs(REDISPATCH_AFTER)
}

/// Anything that keeps the task from a worker.
pub fn unhealthy(task: &Task, now: Time) -> bool {
    lease_expired(task, now) || dispatch_failed(task) || claim_failed(task) || overdue(task, now)
}

/// Nobody alive supports the marker the run is pinned to.
pub fn waits_for_worker(task: &Task, marker: Option<&str>, now: Time) -> bool {
    marker.is_some_and(|marker| !FLEET.contains(&marker))
        && (lease_expired(task, now) || (task.status == "ready" && task.available_at <= now))
}
