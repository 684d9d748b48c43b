//! The mutable rows around a run: tasks, activities, failures, timers, commands, links, notes.

use chrono::{DateTime, TimeDelta};
use serde_json::{Value as Json, json};

use super::model::{
    Activity, Attempt, Attribute, Child, Command, Failure, Relation, Signal, Task, Timer, Update,
};
use super::{RunBuilder, object};
use crate::demo::rows::InsertRow;

impl RunBuilder {
    pub(super) fn task_row(&self, task: &Task) -> InsertRow {
        // Only workflow tasks are replayed, so only they carry a replay mode once claimed.
        let replayed = task.kind == "workflow" && task.leased_at.is_some();
        InsertRow::new("workflow_tasks")
            .set("id", &task.id)
            .set("workflow_run_id", &self.run_id)
            .set("namespace", self.start.namespace.clone())
            .set("task_type", task.kind)
            .set("status", task.status)
            .set("compatibility", task.compatibility.clone())
            .json("payload", Some(&task.payload))
            .set("connection", task.connection.clone())
            .set("queue", task.queue.clone())
            .set("sticky_replay_mode", replayed.then_some("cold_replay"))
            .time("sticky_claimed_at", task.leased_at.filter(|_| replayed))
            .time("available_at", task.available_at)
            .time("leased_at", task.leased_at)
            .set("lease_owner", task.lease_owner.clone())
            .time("lease_expires_at", task.lease_expires_at)
            .set("attempt_count", task.attempt_count)
            .time("last_dispatch_attempt_at", task.last_dispatch_attempt_at)
            .time("last_dispatched_at", task.last_dispatched_at)
            .set("last_dispatch_error", task.last_dispatch_error.clone())
            .time("last_claim_failed_at", task.last_claim_failed_at)
            .set("last_claim_error", task.last_claim_error.clone())
            .set("repair_count", task.repair_count)
            .time("repair_available_at", task.repair_available_at)
            .set("last_error", task.last_error.clone())
            .set("priority", 5)
            .set("fairness_weight", 1)
            .stamps(task.created_at, task.updated_at)
    }

    pub(super) fn activity_row(&self, activity: &Activity) -> InsertRow {
        let after = |seconds: Option<u32>, from: Option<_>| {
            seconds
                .zip(from)
                .map(|(s, from): (u32, DateTime<_>)| from + TimeDelta::seconds(s.into()))
                .filter(|_| activity.status == "running")
        };
        let beat = activity.last_heartbeat_at.or(activity.started_at);
        let updated = activity.closed_at.or(beat).unwrap_or(activity.created_at);
        InsertRow::new("activity_executions")
            .set("id", &activity.id)
            .set("workflow_run_id", &self.run_id)
            .set("sequence", activity.sequence)
            .set("activity_class", &activity.class)
            .set("activity_type", &activity.kind)
            .set("status", activity.status)
            .set("payload_codec", activity.typed.then_some("avro"))
            .set("arguments", &activity.arguments)
            .set("result", activity.result.clone())
            .set("exception", activity.exception.clone())
            .set("connection", activity.connection.clone())
            .set("queue", activity.queue.clone())
            .set("attempt_count", count(activity.attempts.len()))
            .set(
                "current_attempt_id",
                activity.attempts.last().map(|a| a.id.clone()),
            )
            .json(
                "retry_policy",
                activity.typed.then(|| activity.policy.json()).as_ref(),
            )
            .json(
                "parallel_group_path",
                activity.group.as_ref().map(super::Group::path).as_ref(),
            )
            .json("activity_options", options(activity).as_ref())
            .time(
                "close_deadline_at",
                after(activity.policy.start_to_close, activity.started_at),
            )
            .time(
                "heartbeat_deadline_at",
                after(activity.policy.heartbeat, beat),
            )
            .time("started_at", activity.started_at)
            .time("closed_at", activity.closed_at)
            .time("last_heartbeat_at", activity.last_heartbeat_at)
            .stamps(activity.created_at, updated)
    }

    pub(super) fn attempt_row(&self, activity: &Activity, attempt: &Attempt) -> InsertRow {
        let updated = attempt
            .closed_at
            .or(attempt.last_heartbeat_at)
            .unwrap_or(attempt.started_at);
        InsertRow::new("activity_attempts")
            .set("id", &attempt.id)
            .set("workflow_run_id", &self.run_id)
            .set("activity_execution_id", &activity.id)
            .set("workflow_task_id", &attempt.task_id)
            .set("attempt_number", attempt.number)
            .set("status", attempt.status)
            .set("lease_owner", &attempt.lease_owner)
            .time("started_at", attempt.started_at)
            .time("last_heartbeat_at", attempt.last_heartbeat_at)
            .time("lease_expires_at", attempt.lease_expires_at)
            .time("closed_at", attempt.closed_at)
            .stamps(attempt.started_at, updated)
    }

    pub(super) fn failure_row(&self, failure: &Failure) -> InsertRow {
        InsertRow::new("workflow_failures")
            .set("id", &failure.id)
            .set("workflow_run_id", &self.run_id)
            .set("source_kind", failure.source_kind)
            .set("source_id", &failure.source_id)
            .set("propagation_kind", failure.propagation)
            .set("failure_category", failure.category)
            .set("non_retryable", failure.non_retryable)
            .set("handled", failure.handled)
            .set("exception_class", &failure.class)
            .set("message", &failure.message)
            .set("file", &failure.file)
            .set("line", failure.line)
            .set("trace_preview", &failure.trace)
            .stamps(failure.at, failure.at)
    }

    pub(super) fn timer_row(&self, timer: &Timer) -> InsertRow {
        let updated = timer.fired_at.or(timer.cancelled_at);
        InsertRow::new("workflow_run_timers")
            .set("id", &timer.id)
            .set("workflow_run_id", &self.run_id)
            .set("sequence", timer.sequence)
            .set("status", timer.status)
            .set("delay_seconds", timer.delay)
            .time("fire_at", timer.fire_at)
            .time("fired_at", timer.fired_at)
            .stamps(timer.created_at, updated.unwrap_or(timer.created_at))
    }

    pub(super) fn command_row(&self, command: &Command) -> InsertRow {
        let accepted = command.status == "accepted";
        let requested = (command.scope == "run").then(|| self.run_id.clone());
        InsertRow::new("workflow_commands")
            .set("id", &command.id)
            .set("workflow_instance_id", &self.start.instance)
            .set("workflow_run_id", &self.run_id)
            .set("requested_workflow_run_id", requested)
            .set("resolved_workflow_run_id", &self.run_id)
            .set("command_type", command.kind)
            .set("target_scope", command.scope)
            .set("source", command.source)
            .json("context", Some(&command.context))
            .set("status", command.status)
            .set("outcome", command.outcome)
            .set("workflow_class", &self.start.class)
            .set("workflow_type", &self.start.kind)
            .set("payload_codec", "avro")
            .set("payload", command.payload.clone())
            .set("rejection_reason", command.rejection_reason)
            .set("command_sequence", command.sequence)
            .set("message_sequence", command.message_sequence)
            .time("accepted_at", accepted.then_some(command.at))
            .time("applied_at", command.applied_at)
            .time("rejected_at", (!accepted).then_some(command.at))
            .stamps(command.at, command.applied_at.unwrap_or(command.at))
    }

    pub(super) fn signal_row(&self, signal: &Signal) -> InsertRow {
        let command = &self.commands[signal.command];
        let rejected = (signal.status == "rejected").then_some(signal.received_at);
        InsertRow::new("workflow_signal_records")
            .set("id", &signal.id)
            .set("workflow_command_id", &command.id)
            .set("workflow_instance_id", &self.start.instance)
            .set("workflow_run_id", &self.run_id)
            .set("target_scope", "instance")
            .set("resolved_workflow_run_id", &self.run_id)
            .set("signal_name", &signal.name)
            .set("signal_wait_id", signal.wait_id.clone())
            .set("status", signal.status)
            .set("outcome", command.outcome)
            .set("command_sequence", command.sequence)
            .set("workflow_sequence", signal.sequence)
            .set("payload_codec", "avro")
            .set("arguments", &signal.arguments)
            .set("rejection_reason", command.rejection_reason)
            .time(
                "received_at",
                rejected.is_none().then_some(signal.received_at),
            )
            .time("applied_at", signal.applied_at)
            .time("rejected_at", rejected)
            .time("closed_at", signal.applied_at.or(rejected))
            .stamps(
                signal.received_at,
                signal.applied_at.unwrap_or(signal.received_at),
            )
    }

    pub(super) fn update_row(&self, update: &Update) -> InsertRow {
        let command = &self.commands[update.command];
        InsertRow::new("workflow_updates")
            .set("id", &update.id)
            .set("workflow_command_id", &command.id)
            .set("workflow_instance_id", &self.start.instance)
            .set("workflow_run_id", &self.run_id)
            .set("target_scope", "instance")
            .set("resolved_workflow_run_id", &self.run_id)
            .set("update_name", &update.name)
            .set("status", update.status)
            .set("outcome", command.outcome)
            .set("command_sequence", command.sequence)
            .set("workflow_sequence", update.sequence)
            .set("payload_codec", "avro")
            .set("arguments", &update.arguments)
            .set("result", update.result.clone())
            .time("accepted_at", update.accepted_at)
            .time("applied_at", update.applied_at)
            .time("closed_at", update.closed_at)
            .stamps(
                update.accepted_at,
                update.closed_at.unwrap_or(update.accepted_at),
            )
    }

    pub(super) fn link_row(&self, child: &Child) -> InsertRow {
        InsertRow::new("workflow_links")
            .set("id", &child.call_id)
            .set("link_type", "child_workflow")
            .set("sequence", child.sequence)
            .json(
                "parallel_group_path",
                child.group.as_ref().map(super::Group::path).as_ref(),
            )
            .set("parent_workflow_instance_id", &self.start.instance)
            .set("parent_workflow_run_id", &self.run_id)
            .set("child_workflow_instance_id", &child.instance)
            .set("child_workflow_run_id", &child.run)
            .set("is_primary_parent", true)
            .set("parent_close_policy", child.close_policy)
            .stamps(child.scheduled_at, child.scheduled_at)
    }

    pub(super) fn continuation_row(&self, next: &Relation) -> InsertRow {
        InsertRow::new("workflow_links")
            .set("id", &next.link_id)
            .set("link_type", next.link_type)
            .set("sequence", next.sequence)
            .json("parallel_group_path", None)
            .set("parent_workflow_instance_id", &self.start.instance)
            .set("parent_workflow_run_id", &self.run_id)
            .set("child_workflow_instance_id", &next.instance)
            .set("child_workflow_run_id", &next.run)
            .set("is_primary_parent", true)
            .set("parent_close_policy", "abandon")
            .stamps(next.linked_at, next.linked_at)
    }

    pub(super) fn child_call_row(&self, child: &Child) -> InsertRow {
        let status = if child.resolved_at.is_some() {
            child.status
        } else {
            "started"
        };
        InsertRow::new("workflow_child_calls")
            .set("parent_workflow_run_id", &self.run_id)
            .set("parent_workflow_instance_id", &self.start.instance)
            .set("sequence", child.sequence)
            .set("child_workflow_type", &child.kind)
            .set("child_workflow_class", &child.class)
            .set("resolved_child_instance_id", &child.instance)
            .set("resolved_child_run_id", &child.run)
            .set("parent_close_policy", child.close_policy)
            .set("queue", child.queue.clone())
            .set("cancellation_propagation", false)
            .set("status", status)
            .set(
                "failure_reference",
                child
                    .failure
                    .clone()
                    .filter(|_| child.status != "completed"),
            )
            .set("closed_reason", child.closed_reason)
            .time("scheduled_at", child.scheduled_at)
            .time("started_at", child.scheduled_at)
            .time("closed_at", child.resolved_at)
            .json(
                "arguments",
                Some(&json!({"payload": child.arguments, "payload_codec": "avro"})),
            )
            .json(
                "metadata",
                Some(&json!({"child_call_id": child.call_id, "attempt_count": 1})),
            )
            .stamps(
                child.scheduled_at,
                child.resolved_at.unwrap_or(child.scheduled_at),
            )
    }

    pub(super) fn attribute_row(&self, attribute: &Attribute) -> InsertRow {
        let value = &attribute.value;
        let kind = attribute.kind;
        let when = value
            .as_str()
            .filter(|_| kind == "datetime")
            .and_then(|text| DateTime::parse_from_rfc3339(text).ok())
            .map(|at| at.to_utc());
        InsertRow::new("workflow_search_attributes")
            .set("workflow_run_id", &self.run_id)
            .set("workflow_instance_id", &self.start.instance)
            .set("key", &attribute.key)
            .set("type", kind)
            .set("value_string", value.as_str().filter(|_| kind == "string"))
            .set(
                "value_keyword",
                value.as_str().filter(|_| kind == "keyword"),
            )
            .set("value_int", value.as_i64().filter(|_| kind == "int"))
            .set("value_float", value.as_f64().filter(|_| kind == "float"))
            .set("value_bool", value.as_bool())
            .time("value_datetime", when)
            .set("upserted_at_sequence", attribute.sequence)
            .set("inherited_from_parent", false)
            .json(
                "value_keyword_list",
                (kind == "keyword_list").then_some(value),
            )
            .stamps(self.started_at, self.last_progress_at)
    }

    pub(super) fn memo_row(&self, key: &str, value: &Json, sequence: u32) -> InsertRow {
        let value = match value {
            Json::Object(map) => object(map.clone()),
            other => other.clone(),
        };
        InsertRow::new("workflow_memos")
            .set("workflow_run_id", &self.run_id)
            .set("workflow_instance_id", &self.start.instance)
            .set("key", key)
            .json("value", Some(&value))
            .set("upserted_at_sequence", sequence)
            .set("inherited_from_parent", false)
            .stamps(self.started_at, self.last_progress_at)
    }
}

fn count(len: usize) -> u32 {
    u32::try_from(len).expect("a story is short")
}

/// The overrides of the call itself, written only where the call had some.
fn options(activity: &Activity) -> Option<Json> {
    let policy = &activity.policy;
    policy.start_to_close.map(|start_to_close| {
        json!({
            "connection": null,
            "queue": activity.queue,
            "max_attempts": policy.max_attempts,
            "backoff": policy.backoff,
            "start_to_close_timeout": start_to_close,
            "schedule_to_start_timeout": null,
            "schedule_to_close_timeout": null,
            "heartbeat_timeout": policy.heartbeat,
            "non_retryable_error_types": policy.non_retryable,
            "worker_session": null,
            "priority": null,
            "fairness_key": null,
            "fairness_weight": null,
        })
    })
}
