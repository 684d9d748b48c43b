//! The small copies of rows that the engine freezes into event payloads.

use serde_json::{Value as Json, json};

use super::model::{Activity, Attempt, Command, Task};
use super::{compact, extend, iso};

/// State of a task at the moment of the append.
pub fn task(task: &Task) -> Json {
    compact(json!({
        "id": task.id,
        "type": task.kind,
        "status": task.status,
        "available_at": iso(task.available_at),
        "leased_at": task.leased_at.map(iso),
        "lease_owner": task.lease_owner,
        "lease_expires_at": task.lease_expires_at.map(iso),
        "attempt_count": task.attempt_count,
        "repair_count": task.repair_count,
        "connection": task.connection,
        "queue": task.queue,
        "compatibility": task.compatibility,
        "last_dispatch_attempt_at": task.last_dispatch_attempt_at.map(iso),
        "last_dispatched_at": task.last_dispatched_at.map(iso),
        "last_dispatch_error": task.last_dispatch_error,
        "last_claim_failed_at": task.last_claim_failed_at.map(iso),
        "last_claim_error": task.last_claim_error,
        "repair_available_at": task.repair_available_at.map(iso),
    }))
}

/// A command without the parts of its context that are not public.
pub fn command(command: &Command, run_id: &str) -> Json {
    let context = ["workflow", "intake", "principal"]
        .into_iter()
        .filter_map(|key| Some((key.to_owned(), command.context.get(key)?.clone())))
        .collect::<serde_json::Map<_, _>>();
    let (auth, principal, request) = (
        &command.context["auth"],
        &command.context["principal"],
        &command.context["request"],
    );
    compact(json!({
        "id": command.id,
        "sequence": command.sequence,
        "message_sequence": command.message_sequence,
        "type": command.kind,
        "target_scope": command.scope,
        "requested_run_id": (command.scope == "run").then_some(run_id),
        "resolved_run_id": run_id,
        "target_name": command.target,
        "payload_codec": "avro",
        "payload": command.payload,
        "source": command.source,
        "context": if context.is_empty() { Json::Null } else { Json::Object(context) },
        "caller_label": command.caller,
        "principal_type": principal["type"],
        "principal_id": principal["id"],
        "principal_label": principal["label"],
        "auth_status": auth["status"],
        "auth_method": auth["method"],
        "request_method": request["method"],
        "request_path": request["path"],
        "request_fingerprint": request["fingerprint"],
        "status": command.status,
        "outcome": command.outcome,
        "rejection_reason": command.rejection_reason,
        "accepted_at": (command.status == "accepted").then(|| iso(command.at)),
        "applied_at": command.applied_at.map(iso),
        "rejected_at": (command.status == "rejected").then(|| iso(command.at)),
    }))
}

pub fn activity(activity: &Activity) -> Json {
    let mut snapshot = compact(json!({
        "id": activity.id,
        "idempotency_key": activity.id,
        "sequence": activity.sequence,
        "type": activity.kind,
        "class": activity.class,
        "local_activity": false,
        "attempt_id": activity.attempts.last().map(|a| &a.id),
        "status": activity.status,
        "payload_codec": "avro",
        "attempt_count": activity.attempts.len(),
        "retry_policy": activity.policy.json(),
        "connection": activity.connection,
        "queue": activity.queue,
        "last_heartbeat_at": activity.last_heartbeat_at.map(iso),
        "created_at": iso(activity.created_at),
        "started_at": activity.started_at.map(iso),
        "closed_at": activity.closed_at.map(iso),
        "arguments": activity.arguments,
        "result": activity.result,
        "exception": activity.exception,
    }));
    if let Some(group) = &activity.group {
        extend(&mut snapshot, group.keys());
        extend(&mut snapshot, json!({"parallel_group_path": group.path()}));
    }
    snapshot
}

pub fn attempt(attempt: &Attempt) -> Json {
    compact(json!({
        "id": attempt.id,
        "attempt_number": attempt.number,
        "status": attempt.status,
        "task_id": attempt.task_id,
        "lease_owner": attempt.lease_owner,
        "last_heartbeat_at": attempt.last_heartbeat_at.map(iso),
        "lease_expires_at": attempt.lease_expires_at.map(iso),
        "started_at": iso(attempt.started_at),
        "closed_at": attempt.closed_at.map(iso),
    }))
}
