//! Queue visibility: how long each queue of a namespace is and who works on it.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::{age_ms, policy::RepairPolicy, pollers};
use crate::durable::{
    engine_config::EngineConfig,
    store::metrics::{Lease, QueueCounts, QueueRows, Queues},
    stored::Stamp,
};

/// Leases shown of one queue.
const LEASES: usize = 50;

/// The engine's document for one namespace.
pub fn document(
    namespace: &str,
    queues: &Queues,
    now: DateTime<Utc>,
    config: &EngineConfig,
) -> Value {
    let task_queues: Vec<Value> = queues
        .by_name
        .iter()
        .map(|(name, rows)| {
            let mut document = queue(name, rows, now, config);
            document["current_leases"] = json!(leases(&rows.leases, now));
            add_pollers(&mut document, name, queues, now, config);
            document
        })
        .collect();
    json!({ "namespace": namespace, "task_queues": task_queues })
}

/// Nobody is known to poll where no table says so.
fn add_pollers(
    document: &mut Value,
    name: &str,
    queues: &Queues,
    now: DateTime<Utc>,
    config: &EngineConfig,
) {
    let all = queues.registered.clone().unwrap_or_default();
    let of_queue = all.workers.iter();
    let of_queue: Vec<_> = of_queue
        .filter(|worker| worker.task_queue.as_deref() == Some(name))
        .collect();
    let pollers = pollers::pollers(&of_queue, now, config);
    let stale = pollers
        .iter()
        .filter(|poller| poller["is_stale"] == true)
        .count();
    document["stats"]["pollers"] = json!({
        "active_count": pollers.len() - stale,
        "stale_count": stale,
        "stale_after_seconds": config.poller_stale_after(),
    });
    document["pollers"] = json!(pollers);
    document["build_ids"] = json!(pollers::build_ids(&all, name, now, config));
}

/// Those past their end first, then by id.
fn leases(leases: &[Lease], now: DateTime<Utc>) -> Vec<Value> {
    let expired = |lease: &Lease| lease.lease_expires_at.is_some_and(|Stamp(at)| at <= now);
    let mut leases: Vec<&Lease> = leases.iter().collect();
    leases.sort_by_key(|lease| (!expired(lease), &lease.task_id));
    leases.truncate(LEASES);
    let document = |lease: &&Lease| {
        let mut document = json!({
            "task_id": lease.task_id,
            "task_type": lease.task_type,
            "workflow_id": lease.workflow_id,
            "run_id": lease.run_id,
            "lease_owner": lease.lease_owner,
            "lease_expires_at": lease.lease_expires_at,
            "is_expired": expired(lease),
        });
        if lease.task_type.as_deref() == Some("workflow") {
            document["workflow_task_attempt"] = json!(lease.attempt_count);
        } else {
            document["activity_attempt_id"] = json!(lease.activity_attempt_id);
            document["attempt_number"] = json!(lease.attempt_number);
        }
        document
    };
    leases.iter().map(document).collect()
}

fn queue(name: &str, rows: &QueueRows, now: DateTime<Utc>, config: &EngineConfig) -> Value {
    let none = QueueCounts::default();
    let counts = |kind: &str| rows.counts.get(kind).unwrap_or(&none);
    let recent = |kind: &str| rows.recent.get(kind).cloned().unwrap_or_default();
    let both = ["workflow", "activity"].map(counts);
    let age = rows.oldest.as_ref().and_then(|task| {
        let at = task.available_at?;
        Some(at.age(now).num_seconds().max(0))
    });
    let stats = |kind: &str| {
        json!({
            "ready_count": counts(kind).ready_count,
            "leased_count": counts(kind).leased_count,
            "expired_lease_count": counts(kind).expired_lease_count,
            "added_last_minute": recent(kind).added_last_minute,
            "dispatched_last_minute": recent(kind).dispatched_last_minute,
        })
    };
    let sum = |of: fn(&QueueCounts) -> i64| both.iter().map(|counts| of(counts)).sum::<i64>();
    let oldest =
        |of: fn(&QueueCounts) -> Option<Stamp>| both.iter().filter_map(|counts| of(counts)).min();
    let (failed, expired, overdue) = (
        sum(|counts| counts.dispatch_failed),
        sum(|counts| counts.expired_lease_count),
        sum(|counts| counts.dispatch_overdue),
    );
    let (oldest_failed, oldest_expired, oldest_overdue) = (
        oldest(|counts| counts.oldest_dispatch_failed_at),
        oldest(|counts| counts.oldest_lease_expired_at),
        oldest(|counts| counts.oldest_dispatch_overdue_since),
    );
    let candidates = failed + expired + overdue;
    json!({
        "name": name,
        "stats": {
            "approximate_backlog_count": sum(|counts| counts.ready_count),
            "approximate_backlog_age": age.map(label),
            "approximate_backlog_age_seconds": age,
            "oldest_ready_task": rows.oldest.as_ref().map(|task| json!({
                "task_id": task.task_id,
                "task_type": task.task_type,
                "workflow_id": task.workflow_id,
                "run_id": task.run_id,
                "available_at": task.available_at,
                "age_seconds": age,
            })),
            "tasks_added_last_minute": recent("workflow").added_last_minute + recent("activity").added_last_minute,
            "tasks_dispatched_last_minute": recent("workflow").dispatched_last_minute + recent("activity").dispatched_last_minute,
            "workflow_tasks": stats("workflow"),
            "activity_tasks": stats("activity"),
        },
        "repair": {
            "candidates": candidates,
            "dispatch_failed": failed,
            "oldest_dispatch_failed_at": oldest_failed,
            "max_dispatch_failed_age_ms": age_ms(now, oldest_failed),
            "expired_leases": expired,
            "oldest_lease_expired_at": oldest_expired,
            "max_lease_expired_age_ms": age_ms(now, oldest_expired),
            "dispatch_overdue": overdue,
            "oldest_dispatch_overdue_since": oldest_overdue,
            "max_dispatch_overdue_age_ms": age_ms(now, oldest_overdue),
            "needs_attention": candidates > 0,
            "policy": {
                "redispatch_after_seconds": RepairPolicy::of(config).redispatch_after_seconds,
            },
        },
    })
}

/// Seconds as the engine labels them.
fn label(seconds: i64) -> String {
    let (hours, minutes, rest) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes) {
        (0, 0) => format!("{rest}s"),
        (0, _) => format!("{minutes}m{rest:02}s"),
        _ => format!("{hours}h{minutes:02}m{rest:02}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_labelled_as_the_engine_does() {
        for (seconds, want) in [(45, "45s"), (75, "1m15s"), (7_389, "2h03m09s")] {
            assert_eq!(label(seconds), want);
        }
    }
}
