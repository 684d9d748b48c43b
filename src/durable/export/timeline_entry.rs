//! An entry of the timeline with its keys in the order of the bundle. There is one for every
//! event, and most of its keys are null: put into order one by one, they would cost more than
//! all else that is written.

use super::entry::{Other, Written, entry};
use crate::durable::projection::timeline::{Activity, Entry, Task};

pub fn timeline_entry<'a>(entry: &'a Entry<'a>) -> impl Written + use<'a> {
    let group = &entry.group;
    entry! {
        "activity": entry.activity.as_deref().map(activity),
        "activity_class": entry.activity_class,
        "activity_execution_id": entry.activity_execution_id,
        "activity_status": entry.activity_status,
        "activity_type": entry.activity_type,
        "child": entry.child.as_deref().map(Other),
        "child_call_id": entry.child_call_id,
        "child_status": entry.child_status,
        "child_workflow_class": entry.child_workflow_class,
        "child_workflow_instance_id": entry.child_workflow_instance_id,
        "child_workflow_run_id": entry.child_workflow_run_id,
        "child_workflow_type": entry.child_workflow_type,
        "closed_reason": entry.closed_reason,
        "command": entry.command.as_deref().map(Other),
        "command_id": entry.command_id,
        "command_outcome": entry.command_outcome,
        "command_rejection_reason": entry.command_rejection_reason,
        "command_sequence": entry.command_sequence,
        "command_status": entry.command_status,
        "command_type": entry.command_type,
        "condition_definition_fingerprint": entry.condition_definition_fingerprint,
        "condition_key": entry.condition_key,
        "condition_wait_id": entry.condition_wait_id,
        "delay_seconds": entry.delay_seconds,
        "entry_kind": entry.entry_kind,
        "exception_class": entry.exception_class,
        "exception_resolution_error": entry.exception_resolution_error,
        "exception_resolution_source": entry.exception_resolution_source.as_ref().map(Other),
        "exception_resolved_class": entry.exception_resolved_class,
        "exception_type": entry.exception_type,
        "failure": entry.failure.as_deref().map(Other),
        "failure_id": entry.failure_id,
        "id": entry.id,
        "kind": Other(&entry.kind),
        "message": entry.message,
        "parallel_group_base_sequence": group.parallel_group_base_sequence,
        "parallel_group_id": group.parallel_group_id,
        "parallel_group_index": group.parallel_group_index,
        "parallel_group_kind": group.parallel_group_kind,
        "parallel_group_path": Other(&group.parallel_group_path),
        "parallel_group_size": group.parallel_group_size,
        "recorded_at": entry.recorded_at,
        "requested_run_id": entry.requested_run_id,
        "resolved_run_id": entry.resolved_run_id,
        "retry_after_attempt": entry.retry_after_attempt,
        "retry_after_attempt_id": entry.retry_after_attempt_id,
        "retry_available_at": entry.retry_available_at,
        "retry_backoff_seconds": entry.retry_backoff_seconds,
        "retry_max_attempts": entry.retry_max_attempts,
        "retry_policy": entry.retry_policy,
        "retry_task_id": entry.retry_task_id,
        "sequence": entry.sequence,
        "signal_id": entry.signal_id,
        "signal_name": entry.signal_name,
        "signal_wait_id": entry.signal_wait_id,
        "source_id": entry.source_id,
        "source_kind": entry.source_kind,
        "summary": entry.summary,
        "task": entry.task.as_deref().map(task),
        "task_id": entry.task_id,
        "timer": entry.timer.as_deref().map(Other),
        "timer_id": entry.timer_id,
        "type": entry.event_type.as_str(),
        "update_name": entry.update_name,
        "version": entry.version,
        "version_change_id": entry.version_change_id,
        "version_max_supported": entry.version_max_supported,
        "version_min_supported": entry.version_min_supported,
        "workflow_sequence": entry.workflow_sequence,
    }
}

fn activity<'a>(activity: &'a Activity<'a>) -> impl Written + use<'a> {
    entry! {
        "attempt_count": activity.attempt_count,
        "attempt_id": activity.attempt_id,
        "class": activity.class,
        "closed_at": activity.closed_at,
        "connection": activity.connection,
        "id": activity.id,
        "idempotency_key": activity.idempotency_key,
        "last_heartbeat_at": activity.last_heartbeat_at,
        "last_heartbeat_progress": activity.last_heartbeat_progress.as_ref().map(Other),
        "parallel_group_path": Other(&activity.parallel_group_path),
        "queue": activity.queue,
        "retry_policy": activity.retry_policy,
        "sequence": activity.sequence,
        "started_at": activity.started_at,
        "status": activity.status,
        "type": activity.activity_type,
    }
}

fn task<'a>(task: &'a Task<'a>) -> impl Written + use<'a> {
    entry! {
        "attempt_count": task.attempt_count,
        "available_at": task.available_at,
        "id": task.id,
        "lease_expires_at": task.lease_expires_at,
        "leased_at": task.leased_at,
        "status": task.status,
        "type": task.task_type,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::durable::{
        canonical,
        projection::{
            example::{event, history, told},
            timeline::timeline,
        },
        store::snapshot::RunSnapshot,
        stored::EventType,
    };

    #[test]
    fn it_says_what_the_entry_says() {
        let payload = json!({
            "activity": {"id": "a1", "class": "App\\Mail", "retry_policy": {"max_attempts": 3}},
            "task": {"id": "t1", "available_at": "2026-01-02T03:04:05.000006Z"},
            "parallel_group_path": [],
        });
        let snapshot = RunSnapshot {
            events: history(vec![event(1, EventType::ActivityStarted, &payload)]),
            ..RunSnapshot::default()
        };
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        told(&snapshot, |cx| {
            let entries = timeline(cx, &[], None);
            timeline_entry(&entries[0]).write(&mut ours);
            canonical::write(&mut theirs, &entries[0]);
        });
        assert_eq!(str::from_utf8(&ours), str::from_utf8(&theirs));
    }
}
