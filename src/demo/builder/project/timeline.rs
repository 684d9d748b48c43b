//! One timeline row per event.

use serde_json::{Value as Json, json};

use crate::demo::builder::model::Event;
use crate::demo::builder::{RunBuilder, compact, digest, iso};
use crate::demo::rows::InsertRow;

/// Timeline kind and source of an event type.
fn kinds(event: &str) -> (&'static str, &'static str) {
    match event {
        "StartAccepted" | "StartRejected" | "SignalReceived" | "UpdateAccepted"
        | "UpdateRejected" | "RepairRequested" | "CancelRequested" | "TerminateRequested"
        | "ArchiveRequested" => ("command", "workflow_command"),
        "UpdateApplied" | "UpdateCompleted" => ("update", "workflow_command"),
        "SignalWaitOpened" | "SignalApplied" => ("signal", "signal_wait"),
        "FailureHandled" => ("failure", "workflow_failure"),
        "VersionMarkerRecorded" => ("version", "version_marker"),
        "SideEffectRecorded" => ("side_effect", "workflow_run"),
        event if event.starts_with("Child") => ("child", "child_workflow_run"),
        event if event.starts_with("ConditionWait") => ("condition", "condition_wait"),
        event if event.starts_with("Activity") => ("activity", "activity_execution"),
        event if event.starts_with("Timer") => ("timer", "timer"),
        _ => ("workflow", "workflow_run"),
    }
}

/// A short sentence; the subject is whatever name the payload has.
fn sentence(event: &Event) -> String {
    let words = event.kind.chars().fold(String::new(), |mut out, c| {
        if c.is_uppercase() && !out.is_empty() {
            out.push(' ');
            out.extend(c.to_lowercase());
        } else {
            out.push(c);
        }
        out
    });
    let subject = [
        "activity_type",
        "child_workflow_type",
        "signal_name",
        "update_name",
        "condition_key",
        "change_id",
        "schedule_id",
    ]
    .iter()
    .find_map(|key| event.payload[*key].as_str());
    let message = event.payload["message"].as_str();
    match (subject, message) {
        (Some(subject), Some(message)) => format!("{words}: {subject}. {message}"),
        (Some(text), None) | (None, Some(text)) => format!("{words}: {text}"),
        (None, None) => format!("{words}."),
    }
}

impl RunBuilder {
    pub(super) fn timeline_rows(&self) -> Vec<InsertRow> {
        self.events.iter().map(|e| self.timeline_row(e)).collect()
    }

    fn timeline_row(&self, event: &Event) -> InsertRow {
        let (kind, source_kind) = kinds(event.kind);
        let text = |key: &str| event.payload[key].as_str().map(str::to_owned);
        let command = event.command.map(|c| &self.commands[c]);
        let source_id = match source_kind {
            "workflow_command" => command.map(|c| c.id.clone()),
            "signal_wait" => text("signal_wait_id"),
            "workflow_failure" => text("failure_id"),
            "version_marker" => text("change_id"),
            "child_workflow_run" => text("child_workflow_run_id"),
            "condition_wait" => text("condition_wait_id"),
            "activity_execution" => text("activity_execution_id"),
            "timer" => text("timer_id"),
            _ => Some(self.run_id.clone()),
        };
        let summary = sentence(event);
        let mut payload = compact(json!({
            "id": event.id,
            "sequence": event.sequence,
            "type": event.kind,
            "kind": kind,
            "entry_kind": "point",
            "source_kind": source_kind,
            "source_id": source_id,
            "summary": summary,
            "recorded_at": iso(event.at),
            "command_id": command.map(|c| &c.id),
            "command_sequence": command.map(|c| c.sequence),
            "command_type": command.map(|c| c.kind),
            "command_status": command.map(|c| c.status),
            "command_outcome": command.and_then(|c| c.outcome),
            "task_id": event.task,
            "workflow_sequence": event.payload["sequence"],
        }));
        for key in [
            "signal_id",
            "signal_wait_id",
            "signal_name",
            "update_name",
            "condition_wait_id",
            "condition_key",
            "activity_execution_id",
            "activity_type",
            "activity_class",
            "retry_task_id",
            "retry_available_at",
            "retry_backoff_seconds",
            "retry_after_attempt_id",
            "retry_after_attempt",
            "timer_id",
            "delay_seconds",
            "child_call_id",
            "child_workflow_instance_id",
            "child_workflow_run_id",
            "child_workflow_type",
            "child_status",
            "parallel_group_id",
            "parallel_group_kind",
            "parallel_group_size",
            "parallel_group_index",
            "failure_id",
            "exception_class",
            "message",
            "closed_reason",
        ] {
            if let Some(value) = event.payload.get(key).filter(|value| !value.is_null()) {
                payload[key] = value.clone();
            }
        }
        if let Some(failure) = self.failure_view(event) {
            payload["failure"] = failure;
        }
        InsertRow::new("workflow_run_timeline_entries")
            .set("id", digest(&format!("{}|{}", self.run_id, event.id)))
            .set("workflow_run_id", &self.run_id)
            .set("workflow_instance_id", &self.start.instance)
            .set("history_event_id", &event.id)
            .set("sequence", event.sequence)
            .set("type", event.kind)
            .set("kind", kind)
            .set("entry_kind", "point")
            .set("source_kind", source_kind)
            .set("source_id", source_id)
            .set("summary", summary)
            .time("recorded_at", event.at)
            .set("command_id", command.map(|c| c.id.clone()))
            .set("command_sequence", command.map(|c| c.sequence))
            .set("task_id", event.task.clone())
            .set("activity_execution_id", text("activity_execution_id"))
            .set("timer_id", text("timer_id"))
            .set("failure_id", text("failure_id"))
            .json("payload", Some(&payload))
            .stamps(event.at, event.at)
    }

    fn failure_view(&self, event: &Event) -> Option<Json> {
        let id = event.payload["failure_id"].as_str()?;
        let failure = self.failures.iter().find(|failure| failure.id == id)?;
        Some(json!({
            "id": failure.id,
            "source_kind": failure.source_kind,
            "source_id": failure.source_id,
            "propagation_kind": failure.propagation,
            "failure_category": failure.category,
            "non_retryable": failure.non_retryable,
            "handled": event.kind == "FailureHandled",
            "exception_type": null,
            "exception_class": failure.class,
            "message": failure.message,
            "file": failure.file,
            "line": failure.line,
        }))
    }
}
