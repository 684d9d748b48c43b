//! What the run waits or waited for: one row per wait, open ones first.

use serde_json::{Value as Json, json};

use super::index;
use crate::demo::builder::model::{Task, Time, TimerKind};
use crate::demo::builder::{RunBuilder, digest, extend, iso};
use crate::demo::rows::InsertRow;

/// One wait, in the engine's columns.
#[derive(Clone, Debug)]
pub struct Wait {
    pub id: String,
    pub kind: &'static str,
    pub sequence: Option<u32>,
    pub status: &'static str,
    pub source_status: &'static str,
    pub summary: String,
    pub opened_at: Time,
    pub deadline_at: Option<Time>,
    pub resolved_at: Option<Time>,
    pub target_name: Option<String>,
    pub target_type: Option<String>,
    pub external_only: bool,
    pub resume: (Option<&'static str>, Option<String>),
    pub task: Option<Task>,
    pub command: Option<usize>,
    pub authority: Option<&'static str>,
    pub unsupported: Option<&'static str>,
    /// Keys of this kind only.
    pub extra: Json,
}

impl RunBuilder {
    pub fn waits(&self) -> Vec<Wait> {
        let mut waits = Vec::new();
        waits.extend((0..self.activities.len()).map(|i| self.activity_wait(i)));
        waits.extend(
            (0..self.timers.len())
                .filter(|i| self.timers[*i].kind == TimerKind::Plain)
                .map(|i| self.timer_wait(i)),
        );
        waits.extend((0..self.conditions.len()).map(|i| self.condition_wait(i)));
        waits.extend((0..self.updates.len()).map(|i| self.update_wait(i)));
        waits.extend((0..self.children.len()).map(|i| self.child_wait(i)));
        waits.extend((0..self.signal_waits.len()).map(|i| self.signal_wait(i)));
        let rank = |status: &str| match status {
            "open" => 0,
            "resolved" => 1,
            "cancelled" => 2,
            _ => 3,
        };
        waits.sort_by(|a, b| {
            (rank(a.status), a.opened_at, &a.id).cmp(&(rank(b.status), b.opened_at, &b.id))
        });
        waits
    }

    /// The task that carries a wait: a live one before a dead one, then the newest.
    fn carrier(&self, kind: Option<&str>, key: &str, value: &str) -> Option<Task> {
        let rank = |status: &str| match status {
            "leased" => 0,
            "ready" => 1,
            "completed" => 2,
            "failed" => 3,
            _ => 4,
        };
        self.tasks
            .iter()
            .filter(|task| kind.is_none_or(|kind| task.kind == kind))
            .filter(|task| task.payload[key] == value)
            .min_by_key(|task| (rank(task.status), std::cmp::Reverse(task.updated_at)))
            .cloned()
    }

    fn activity_wait(&self, i: usize) -> Wait {
        let activity = &self.activities[i];
        let open = activity.is_open();
        let (authority, unsupported) = match (activity.typed, open) {
            (true, _) => ("typed_history", None),
            (false, true) => ("mutable_open_fallback", None),
            (false, false) => (
                "unsupported_terminal_without_history",
                Some("terminal_activity_row_without_typed_history"),
            ),
        };
        let status = match activity.status {
            _ if unsupported.is_some() => "unsupported",
            "pending" | "running" => "open",
            "cancelled" => "cancelled",
            _ => "resolved",
        };
        let mut extra = json!({
            "diagnostic_only": !activity.typed,
            "row_status": activity.row.then_some(activity.status),
        });
        if let Some(group) = &activity.group {
            extend(&mut extra, group.keys());
        }
        Wait {
            id: format!("activity:{}", activity.id),
            kind: "activity",
            sequence: Some(activity.sequence),
            status,
            source_status: activity.status,
            summary: format!("Activity {}: {}.", activity.kind, activity.status),
            opened_at: activity.started_at.unwrap_or(activity.created_at),
            deadline_at: None,
            resolved_at: activity.closed_at,
            target_name: None,
            target_type: Some(activity.kind.clone()),
            external_only: false,
            resume: if activity.typed {
                (Some("activity_execution"), Some(activity.id.clone()))
            } else {
                (None, None)
            },
            task: self.carrier(Some("activity"), "activity_execution_id", &activity.id),
            command: None,
            authority: Some(authority),
            unsupported,
            extra,
        }
    }

    fn timer_wait(&self, i: usize) -> Wait {
        let timer = &self.timers[i];
        Wait {
            id: format!("timer:{}", timer.id),
            kind: "timer",
            sequence: Some(timer.sequence),
            status: match timer.status {
                "pending" => "open",
                "cancelled" => "cancelled",
                _ => "resolved",
            },
            source_status: timer.status,
            summary: format!("Timer of {} s: {}.", timer.delay, timer.status),
            opened_at: timer.created_at,
            deadline_at: Some(timer.fire_at),
            resolved_at: timer.fired_at.or(timer.cancelled_at),
            target_name: None,
            target_type: Some("timer".to_owned()),
            external_only: false,
            resume: (Some("timer"), Some(timer.id.clone())),
            task: self.carrier(Some("timer"), "timer_id", &timer.id),
            command: None,
            authority: Some("typed_history"),
            unsupported: None,
            extra: json!({
                "diagnostic_only": false,
                "row_status": timer.row.then_some(timer.status),
            }),
        }
    }

    fn condition_wait(&self, i: usize) -> Wait {
        let wait = &self.conditions[i];
        let timer = wait.timer.map(|t| &self.timers[t]);
        let by_timer = timer.filter(|_| wait.source_status != "satisfied");
        Wait {
            id: wait.id.clone(),
            kind: "condition",
            sequence: Some(wait.sequence),
            status: wait.status,
            source_status: wait.source_status,
            summary: match &wait.key {
                Some(key) => format!("Condition {key}: {}.", wait.source_status),
                None => format!("Condition: {}.", wait.source_status),
            },
            opened_at: wait.opened_at,
            deadline_at: timer.map(|t| t.fire_at),
            resolved_at: wait.resolved_at,
            target_name: wait.key.clone(),
            target_type: Some("condition".to_owned()),
            external_only: true,
            resume: match by_timer {
                Some(timer) => (Some("timer"), Some(timer.id.clone())),
                None => (Some("external_input"), None),
            },
            task: timer.and_then(|t| self.carrier(Some("timer"), "timer_id", &t.id)),
            command: None,
            authority: None,
            unsupported: None,
            extra: json!({
                "condition_wait_id": wait.id,
                "condition_key": wait.key,
                "condition_definition_fingerprint": wait.fingerprint,
                "timeout_seconds": wait.timeout,
                "timeout_fired_at": wait.fired_at.map(iso),
            }),
        }
    }

    fn update_wait(&self, i: usize) -> Wait {
        let update = &self.updates[i];
        let open = update.status == "accepted";
        Wait {
            id: format!("update:{}", update.id),
            kind: "update",
            sequence: update.sequence,
            status: if open { "open" } else { "resolved" },
            source_status: update.status,
            summary: format!("Update {}: {}.", update.name, update.status),
            opened_at: update.accepted_at,
            deadline_at: None,
            resolved_at: update.closed_at.or(update.applied_at),
            target_name: Some(update.name.clone()),
            target_type: Some("update".to_owned()),
            external_only: false,
            resume: (Some("workflow_update"), Some(update.id.clone())),
            task: self
                .carrier(Some("workflow"), "workflow_update_id", &update.id)
                .filter(|_| open),
            command: Some(update.command),
            authority: None,
            unsupported: None,
            extra: json!({"update_id": update.id, "ordering_state": "ready"}),
        }
    }

    fn child_wait(&self, i: usize) -> Wait {
        let child = &self.children[i];
        let (status, source) = match (child.resolved_at, child.status) {
            (Some(_), "cancelled" | "terminated") => ("cancelled", child.status),
            (Some(_), status) => ("resolved", status),
            (None, status) if !child.typed => ("open", status),
            (None, _) => ("open", "waiting"),
        };
        let mut extra = json!({
            "child_call_id": child.call_id,
            "child_workflow_run_id": child.run,
            "diagnostic_only": !child.typed,
        });
        if let Some(group) = &child.group {
            extend(&mut extra, group.keys());
        }
        Wait {
            id: format!("child:{}", child.call_id),
            kind: "child",
            sequence: Some(child.sequence),
            status,
            source_status: source,
            summary: format!("Child workflow {}: {source}.", child.kind),
            opened_at: child.scheduled_at,
            deadline_at: None,
            resolved_at: child.resolved_at,
            target_name: Some(child.instance.clone()),
            target_type: Some(child.kind.clone()),
            external_only: false,
            resume: if child.typed {
                (Some("child_workflow_run"), Some(child.run.clone()))
            } else {
                (None, None)
            },
            task: self.carrier(None, "child_call_id", &child.call_id),
            command: None,
            authority: Some(if child.typed {
                "typed_history"
            } else {
                "mutable_open_fallback"
            }),
            unsupported: None,
            extra,
        }
    }

    fn signal_wait(&self, i: usize) -> Wait {
        let wait = &self.signal_waits[i];
        let timer = wait.timer.map(|t| &self.timers[t]);
        let command = wait.command.map(|c| self.commands[c].id.clone());
        let signal = self
            .signals
            .iter()
            .find(|signal| signal.wait_id.as_ref() == Some(&wait.id));
        Wait {
            id: wait.id.clone(),
            kind: "signal",
            sequence: Some(wait.sequence),
            status: wait.status,
            source_status: wait.source_status,
            summary: format!("Signal {}: {}.", wait.name, wait.source_status),
            opened_at: wait.opened_at,
            deadline_at: timer.map(|t| t.fire_at),
            resolved_at: wait.resolved_at,
            target_name: Some(wait.name.clone()),
            target_type: None,
            external_only: timer.is_none(),
            resume: match timer {
                Some(timer) => (Some("timer"), Some(timer.id.clone())),
                None => (Some("signal"), command),
            },
            task: timer.and_then(|t| self.carrier(Some("timer"), "timer_id", &t.id)),
            command: wait.command,
            authority: None,
            unsupported: None,
            extra: json!({
                "signal_wait_id": wait.id,
                "signal_id": signal.map(|signal| &signal.id),
                "timer_id": timer.map(|t| &t.id),
                "timeout_seconds": wait.timeout,
                "timeout_fired_at": wait.fired_at.map(iso),
            }),
        }
    }

    pub(super) fn wait_rows(&self) -> Vec<InsertRow> {
        let waits = self.waits();
        let rows = waits.iter().enumerate();
        rows.map(|(position, wait)| self.wait_row(index(position), wait))
            .collect()
    }

    fn wait_row(&self, position: u32, wait: &Wait) -> InsertRow {
        let task = wait.task.as_ref();
        let task_backed = task.is_some_and(Task::is_open);
        let command = wait.command.map(|c| &self.commands[c]);
        let mut payload = json!({
            "id": wait.id,
            "kind": wait.kind,
            "sequence": wait.sequence,
            "status": wait.status,
            "source_status": wait.source_status,
            "summary": wait.summary,
            "opened_at": iso(wait.opened_at),
            "deadline_at": wait.deadline_at.map(iso),
            "resolved_at": wait.resolved_at.map(iso),
            "target_name": wait.target_name,
            "target_type": wait.target_type,
            "task_backed": task_backed,
            "external_only": wait.external_only,
            "resume_source_kind": wait.resume.0,
            "resume_source_id": wait.resume.1,
            "task_id": task.map(|t| &t.id),
            "task_type": task.map(|t| t.kind),
            "task_status": task.map(|t| t.status),
            "history_authority": wait.authority,
            "history_unsupported_reason": wait.unsupported,
        });
        extend(&mut payload, wait.extra.clone());
        InsertRow::new("workflow_run_waits")
            .set("id", digest(&format!("{}|{}", self.run_id, wait.id)))
            .set("workflow_run_id", &self.run_id)
            .set("workflow_instance_id", &self.start.instance)
            .set("wait_id", &wait.id)
            .set("position", position)
            .set("kind", wait.kind)
            .set("sequence", wait.sequence)
            .set("status", wait.status)
            .set("source_status", wait.source_status)
            .set("summary", &wait.summary)
            .time("opened_at", wait.opened_at)
            .time("deadline_at", wait.deadline_at)
            .time("resolved_at", wait.resolved_at)
            .set("target_name", wait.target_name.clone())
            .set("target_type", wait.target_type.clone())
            .set("task_backed", task_backed)
            .set("external_only", wait.external_only)
            .set("resume_source_kind", wait.resume.0)
            .set("resume_source_id", wait.resume.1.clone())
            .set("task_id", task.map(|t| t.id.clone()))
            .set("task_type", task.map(|t| t.kind))
            .set("task_status", task.map(|t| t.status))
            .set("command_id", command.map(|c| c.id.clone()))
            .set("command_sequence", command.map(|c| c.sequence))
            .set("command_status", command.map(|c| c.status))
            .set("command_outcome", command.and_then(|c| c.outcome))
            .set("history_authority", wait.authority)
            .set("history_unsupported_reason", wait.unsupported)
            .json("payload", Some(&payload))
            .stamps(wait.opened_at, wait.resolved_at.unwrap_or(wait.opened_at))
    }
}
