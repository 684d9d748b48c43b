//! Tasks: whether each can be picked up, who holds it and what went wrong with it.

use super::places::Places;
use crate::{
    durable::{
        projection::{Projected, blocked_exception::Block, context::stamp, tasks::Task},
        stored::TaskStatus,
    },
    run::{
        fact::{Facts, anchor},
        section::Section,
        tag::Tag,
        tasks as shown,
        window::Asked,
        worker::Worker,
    },
};

pub fn tasks(p: &Projected<'_>, asked: &Asked, ahead: bool, places: &Places<'_>) -> shown::Tasks {
    let window = asked.window("tasks", p.tasks.len(), |at| {
        let id = at.strip_prefix("task-")?;
        p.tasks.iter().position(|task| task.id == id)
    });
    Section::new(window, ahead, |stretch| {
        let rows = stretch.of(&p.tasks).iter();
        rows.map(|task| row(p, task, places)).collect()
    })
}

fn row(p: &Projected<'_>, task: &Task, places: &Places<'_>) -> shown::Task {
    let mut marks = Vec::new();
    if task.synthetic {
        marks.push(Tag::missing());
    }
    if task.waits_for_compatible_worker(p.cx.now) {
        marks.push(Tag::no_compatible_worker());
    }
    let error = |name, text: &Option<String>| {
        let text = text.as_ref().filter(|text| !text.is_empty())?;
        Some((name, text.clone()))
    };
    let fingerprints = match (
        &task.replay_blocked_recorded_condition_definition_fingerprint,
        &task.replay_blocked_current_condition_definition_fingerprint,
    ) {
        (Some(recorded), Some(current)) => Some(format!("{recorded} recorded, {current} now")),
        _ => None,
    };
    let keys = match (
        &task.replay_blocked_recorded_condition_key,
        &task.replay_blocked_current_condition_key,
    ) {
        (Some(recorded), Some(current)) => Some(format!("{recorded} recorded, {current} now")),
        _ => None,
    };
    let rows = &p.cx.snapshot.tasks;
    let blocked = task.replay_blocked.then_some(rows).into_iter().flatten();
    let block = blocked.filter(|row| row.id == task.id).find_map(Block::of);
    let block = block.as_ref();
    let recorded = (!task.replay_blocked_recorded_event_types.is_empty())
        .then(|| task.replay_blocked_recorded_event_types.join(", "));
    shown::Task {
        anchor: anchor("task", &task.id),
        id: if task.synthetic {
            task.expected_task_id.clone()
        } else {
            Some(task.id.clone())
        },
        kind: task.r#type.clone(),
        state: Tag::task(&task.transport_state),
        marks,
        summary: summary(task),
        queue: task.queue.clone(),
        available: task.available_at,
        worker: worker(task.lease_owner.as_deref(), Some(&task.id)),
        is_held: task.status == TaskStatus::Leased.as_str() && !task.lease_expired,
        lease: task.lease_expires_at.filter(|_| task.is_open),
        repairs: task.repair_count,
        errors: [
            error("Dispatch error", &task.last_dispatch_error),
            error("Claim error", &task.last_claim_error),
            error("Last error", &task.last_error),
            error("Replay blocked", &task.replay_blocked_reason),
        ]
        .into_iter()
        .flatten()
        .collect(),
        facts: Facts::default()
            .code("Status", Some(&task.status))
            .count("Attempts", Some(task.attempt_count))
            .count("Repairs", Some(task.repair_count))
            .seconds(
                "Repair backoff",
                Some(task.repair_backoff_seconds).filter(|_| task.repair_count > 0),
            )
            .at("Repair not before", task.repair_available_at)
            .at("Dispatch tried", task.last_dispatch_attempt_at)
            .at("Dispatched", task.last_dispatched_at)
            .at("Leased", task.leased_at)
            .at("Lease until", task.lease_expires_at)
            .at("Claim failed", task.last_claim_failed_at)
            .code("Connection", task.connection.as_deref())
            .code("Compatibility", task.compatibility.as_deref())
            .text(
                "Compatibility in this fleet",
                task.compatibility_fleet_reason.as_deref(),
            )
            .row(
                "Activity",
                task.activity_execution_id.as_ref().map(|id| {
                    places.activity(id, task.activity_type.clone().unwrap_or_else(|| id.clone()))
                }),
            )
            .code("Retry of task", task.retry_of_task_id.as_deref())
            .count("After attempt", task.retry_after_attempt)
            .seconds("Retry backoff", task.retry_backoff_seconds)
            .code("Timer", task.timer_id.as_deref())
            .at("Timer fires", task.timer_fire_at)
            .code("Condition wait", task.condition_wait_id.as_deref())
            .code("Condition", task.condition_key.as_deref())
            .code("Signal", task.signal_name.as_deref())
            .code("Signal id", task.workflow_signal_id.as_deref())
            .code("Update id", task.workflow_update_id.as_deref())
            .code("Command id", task.workflow_command_id.as_deref())
            .code("Child run", task.child_workflow_run_id.as_deref())
            .count("Blocked at sequence", task.replay_blocked_workflow_sequence)
            .code("Exception class", block.map(|block| block.class.as_str()))
            .code(
                "Resolution source",
                block.and_then(|block| block.source.as_deref()),
            )
            .text("Condition keys", keys)
            .text("Condition fingerprints", fingerprints)
            .code(
                "Code expects",
                task.replay_blocked_expected_history_shape.as_deref(),
            )
            .code("History holds", recorded)
            .at("Created", task.created_at)
            .list(),
    }
}

/// The engine writes a task's own id for the worker of an ordinary queue.
pub(super) fn worker(owner: Option<&str>, task_id: Option<&str>) -> Option<Worker> {
    let owner = owner.filter(|owner| !owner.is_empty())?.to_owned();
    Some(if Some(owner.as_str()) == task_id {
        Worker::OfQueue(owner)
    } else {
        Worker::Named(owner)
    })
}

/// The moments the sentence names stand in columns of their own, in the page's zone.
fn summary(task: &Task) -> String {
    [
        task.available_at,
        task.lease_expires_at,
        task.repair_available_at,
    ]
    .into_iter()
    .flatten()
    .fold(task.summary.clone(), |words, at| {
        words.replace(&format!(" at {}", stamp(at)), "")
    })
}
