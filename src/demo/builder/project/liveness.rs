//! Why the run stands where it stands: the wait columns and the liveness state of the summary.

use serde_json::json;

use super::transport;
use super::waits::Wait;
use crate::demo::builder::model::{Task, Time};
use crate::demo::builder::{RunBuilder, iso};

/// The wait and liveness columns of a summary.
#[derive(Clone, Debug, Default)]
pub struct Diagnosis {
    pub wait_kind: Option<&'static str>,
    pub wait_reason: Option<String>,
    pub wait_started_at: Option<Time>,
    pub wait_deadline_at: Option<Time>,
    pub open_wait_id: Option<String>,
    pub resume: (Option<&'static str>, Option<String>),
    pub state: String,
    pub reason: String,
    pub next_task: Option<Task>,
    pub repair_blocked: Option<&'static str>,
    pub task_problem: bool,
}

/// The open facts a diagnosis is made of, in the engine's letters.
struct Facts<'a> {
    next: Option<&'a Task>,
    blocked: Option<&'a Task>,
    activity: Option<&'a Wait>,
    row_only: Option<&'a Wait>,
    update: Option<&'a Wait>,
    signal: Option<usize>,
    condition: Option<&'a Wait>,
    timer: Option<&'a Wait>,
    resolved_child: Option<&'a Wait>,
    open_child: Option<&'a Wait>,
    signal_wait: Option<&'a Wait>,
}

impl RunBuilder {
    pub(super) fn diagnose(&self, now: Time) -> Diagnosis {
        if !self.is_open() {
            return Diagnosis {
                state: "closed".to_owned(),
                reason: format!("Closed: {}.", self.closed_reason.unwrap_or(self.status)),
                repair_blocked: Some(if self.is_current {
                    "run_closed"
                } else {
                    "selected_run_not_current"
                }),
                task_problem: self.workflow_task_trouble(now),
                ..Diagnosis::default()
            };
        }
        let waits = self.waits();
        let facts = self.facts(&waits);
        let mut found = self.wait_columns(&facts, now);
        let (state, reason) = self.liveness(&facts, now);
        found.next_task = match facts.update {
            Some(update) => update.task.clone().filter(Task::is_open),
            None => facts.next.cloned(),
        };
        let lost_update = facts
            .update
            .is_some_and(|u| !u.task.as_ref().is_some_and(Task::is_open));
        let lost_timeout = facts
            .condition
            .is_some_and(|c| c.source_status == "timeout_fired" && facts.next.is_none());
        found.task_problem = facts.blocked.is_some()
            || self.workflow_task_trouble(now)
            || lost_update
            || facts.signal.is_some()
            || facts.resolved_child.is_some()
            || lost_timeout
            || (state == "repair_needed" && found.wait_kind.is_none());
        found.repair_blocked = match state.as_str() {
            "repair_needed" => None,
            "workflow_replay_blocked" if facts.blocked.is_some() => None,
            "workflow_replay_blocked" => Some("unsupported_history"),
            state if state.contains("waiting_for_compatible_worker") => {
                Some("waiting_for_compatible_worker")
            }
            _ => Some("repair_not_needed"),
        };
        found.state = state;
        found.reason = reason;
        found
    }

    fn workflow_task_trouble(&self, now: Time) -> bool {
        self.tasks
            .iter()
            .filter(|t| t.kind == "workflow")
            .any(|t| t.replay_blocked() || t.repair_count > 0 || transport::unhealthy(t, now))
    }

    fn facts<'a>(&'a self, waits: &'a [Wait]) -> Facts<'a> {
        let open = |kind: &str| {
            let mut found: Vec<&Wait> = waits
                .iter()
                .filter(|w| w.kind == kind && w.status == "open")
                .collect();
            found.sort_by_key(|w| (w.sequence, w.opened_at));
            found
        };
        let typed = |w: &&&Wait| w.authority == Some("typed_history");
        let rank = |task: &&Task| (task.status != "leased", task.available_at, task.created_at);
        let next = self.tasks.iter().filter(|t| t.is_open()).min_by_key(rank);
        let blocked = self
            .tasks
            .iter()
            .rfind(|t| t.status == "failed" && t.replay_blocked());
        let activities = open("activity");
        let activity = activities.iter().find(typed).copied();
        let row_only = activities
            .iter()
            .find(|w| !typed(w))
            .or(open("child").iter().find(|w| !typed(w)))
            .copied();
        let update = open("update")
            .first()
            .copied()
            .filter(|_| activity.is_none());
        let free = activity.is_none() && update.is_none();
        let signal = self
            .signals
            .iter()
            .position(|s| s.status == "received")
            .filter(|_| free && next.is_none());
        let condition = open("condition")
            .last()
            .copied()
            .filter(|_| free && signal.is_none());
        let timer = open("timer").first().copied().filter(|_| update.is_none());
        let nothing_else = free && signal.is_none() && condition.is_none() && timer.is_none();
        let open_child = open("child")
            .iter()
            .find(typed)
            .copied()
            .filter(|_| nothing_else && next.is_none());
        let resolved_child = waits
            .iter()
            .filter(|w| w.kind == "child" && w.status != "open")
            .filter(|w| open_child.is_none() || w.source_status != "completed")
            .min_by_key(|w| w.sequence)
            .filter(|_| nothing_else);
        let signal_wait = waits
            .iter()
            .filter(|w| w.kind == "signal")
            .filter(|w| w.status == "open" || w.source_status == "timed_out")
            .max_by_key(|w| (w.sequence, w.opened_at))
            .filter(|_| nothing_else && open_child.is_none() && resolved_child.is_none());
        Facts {
            next,
            blocked,
            activity,
            row_only,
            update,
            signal,
            condition,
            timer,
            resolved_child,
            open_child,
            signal_wait,
        }
    }

    /// First match wins; the order is the engine's.
    fn wait_columns(&self, facts: &Facts<'_>, now: Time) -> Diagnosis {
        let from = |wait: &Wait, reason: String| Diagnosis {
            wait_kind: Some(wait.kind),
            wait_reason: Some(reason),
            wait_started_at: Some(wait.opened_at),
            wait_deadline_at: wait.deadline_at,
            open_wait_id: Some(wait.id.clone()),
            resume: wait.resume.clone(),
            ..Diagnosis::default()
        };
        let name = |wait: &Wait| wait.target_name.clone().unwrap_or_default();
        let kind = |wait: &Wait| wait.target_type.clone().unwrap_or_default();
        if let Some(wait) = facts.activity {
            return from(wait, format!("Waiting for activity {}", kind(wait)));
        }
        if let Some(wait) = facts.update {
            return from(wait, format!("Waiting for update {}", name(wait)));
        }
        if let Some(signal) = facts.signal.map(|i| &self.signals[i]) {
            return Diagnosis {
                wait_kind: Some("signal"),
                wait_reason: Some(format!("Waiting to apply signal {}", signal.name)),
                wait_started_at: Some(signal.received_at),
                open_wait_id: Some(format!("signal-application:{}", signal.id)),
                resume: (Some("workflow_signal"), Some(signal.id.clone())),
                ..Diagnosis::default()
            };
        }
        if let Some(wait) = facts.timer {
            return from(wait, "Waiting for timer".to_owned());
        }
        if let Some(wait) = facts.condition {
            let what = match (wait.source_status, wait.deadline_at) {
                ("timeout_fired", _) => "Waiting to apply the timeout of condition",
                (_, Some(_)) => "Waiting, with a timeout, for condition",
                _ => "Waiting for condition",
            };
            let reason = format!("{what} {}", name(wait));
            return from(wait, reason.trim_end().to_owned());
        }
        if let Some(wait) = facts.signal_wait {
            let what = match (wait.source_status, wait.deadline_at) {
                ("timed_out", _) => "Waiting to apply the timeout of signal",
                (_, Some(_)) => "Waiting, with a timeout, for signal",
                _ => "Waiting for signal",
            };
            return from(wait, format!("{what} {}", name(wait)));
        }
        if let Some(task) = facts.next.filter(|task| task.kind == "workflow") {
            let marker = self.start.compatibility.as_deref();
            let what = if transport::waits_for_worker(task, marker, now) {
                "waits for a compatible worker"
            } else if transport::dispatch_failed(task) {
                "could not be dispatched"
            } else if transport::claim_failed(task) {
                "could not be claimed"
            } else if transport::lease_expired(task, now) {
                "has an expired lease"
            } else if transport::overdue(task, now) {
                "is overdue"
            } else {
                task.status
            };
            return Diagnosis {
                wait_kind: Some("workflow-task"),
                wait_reason: Some(format!("Workflow task {what}")),
                wait_started_at: Some(task.leased_at.unwrap_or(task.available_at)),
                wait_deadline_at: task.lease_expires_at,
                open_wait_id: Some(format!("workflow-task:{}", task.id)),
                resume: (Some("workflow_task"), Some(task.id.clone())),
                ..Diagnosis::default()
            };
        }
        if let Some(wait) = facts.resolved_child {
            let mut found = from(
                wait,
                format!("Waiting to apply the result of child {}", kind(wait)),
            );
            found.wait_started_at = wait.resolved_at;
            return found;
        }
        facts.open_child.map_or_else(Diagnosis::default, |wait| {
            from(wait, format!("Waiting for child workflow {}", kind(wait)))
        })
    }

    /// First match wins; the order is the engine's and differs from the wait columns'.
    fn liveness(&self, facts: &Facts<'_>, now: Time) -> (String, String) {
        let say = |state: &str, reason: String| (state.to_owned(), reason);
        let lost = |what: String| say("repair_needed", format!("{what} has no open task."));
        if let Some(task) = facts.blocked {
            let error = task.last_error.clone().unwrap_or_default();
            return say("workflow_replay_blocked", error);
        }
        let broken = |task: &&Task| {
            transport::claim_failed(task)
                || transport::lease_expired(task, now)
                || transport::dispatch_failed(task)
        };
        if let Some(task) = facts.next.filter(broken) {
            return self.task_liveness(task, now);
        }
        if let Some(wait) = facts.row_only {
            let reason = format!("{} Only a mutable row tells of it.", wait.summary);
            return say("workflow_replay_blocked", reason);
        }
        if let Some(wait) = facts.activity {
            return match facts.next {
                Some(task) => self.task_liveness(task, now),
                None if wait.source_status == "running" => say(
                    "activity_running_without_task",
                    format!("{} runs, but its task is gone.", wait.id),
                ),
                None => lost(format!("Pending {}", wait.id)),
            };
        }
        if let Some(wait) = facts.update {
            return match wait.task.as_ref().filter(|task| task.is_open()) {
                Some(task) => self.task_liveness(task, now),
                None => lost(format!("Accepted {}", wait.id)),
            };
        }
        if let Some(signal) = facts.signal {
            return lost(format!("Accepted signal {}", self.signals[signal].name));
        }
        let timed = [
            (facts.condition, "waiting_for_condition"),
            (facts.signal_wait, "waiting_for_signal"),
        ];
        for (wait, healthy) in timed {
            let Some(wait) = wait else { continue };
            let Some(deadline) = wait.deadline_at else {
                if wait.kind == "condition" {
                    return say(
                        healthy,
                        "Waiting for input that changes the condition.".into(),
                    );
                }
                continue;
            };
            let fired = matches!(wait.source_status, "timeout_fired" | "timed_out");
            return match facts.next {
                Some(task) if fired || transport::unhealthy(task, now) => {
                    self.task_liveness(task, now)
                }
                Some(_) => say(
                    healthy,
                    format!("Waiting for input, or until {}.", iso(deadline)),
                ),
                None => lost(format!("The timeout of {}", wait.id)),
            };
        }
        if let Some(wait) = facts.timer {
            return match facts.next {
                Some(task) if transport::unhealthy(task, now) => self.task_liveness(task, now),
                Some(task) if task.status == "leased" => say(
                    "timer_task_leased",
                    format!("Timer task {} is leased.", task.id),
                ),
                Some(_) => say("timer_scheduled", format!("{} is set.", wait.id)),
                None => lost(wait.id.clone()),
            };
        }
        if let Some(task) = facts.next {
            return self.task_liveness(task, now);
        }
        if self.waits().iter().any(|w| w.unsupported.is_some()) {
            let reason = "A closed row has no typed history behind it.";
            return say("workflow_replay_blocked", reason.to_owned());
        }
        if let Some(wait) = facts.resolved_child {
            return lost(format!("Resolved {}", wait.id));
        }
        if let Some(wait) = facts.open_child {
            return say("waiting_for_child", format!("Waiting for {}.", wait.id));
        }
        if facts.signal_wait.is_some() {
            return say("waiting_for_signal", "Waiting for a signal.".to_owned());
        }
        say(
            "repair_needed",
            "Open, and nothing durable will ever resume it.".to_owned(),
        )
    }

    /// What a task's own transport state makes of the run.
    fn task_liveness(&self, task: &Task, now: Time) -> (String, String) {
        let marker = self.start.compatibility.as_deref();
        let (kind, id) = (task.kind, &task.id);
        if transport::waits_for_worker(task, marker, now) {
            return (
                format!("{kind}_task_waiting_for_compatible_worker"),
                format!(
                    "Task {id} needs {}, which no live worker supports.",
                    json!(marker)
                ),
            );
        }
        if transport::lease_expired(task, now) {
            let at = task.lease_expires_at.map(iso).unwrap_or_default();
            let reason = format!("The lease of {kind} task {id} expired at {at}.");
            return ("repair_needed".to_owned(), reason);
        }
        if transport::dispatch_failed(task) {
            let error = task.last_dispatch_error.clone().unwrap_or_default();
            let reason = format!("Task {id} could not be dispatched: {error}");
            return ("repair_needed".to_owned(), reason);
        }
        if transport::claim_failed(task) {
            let error = task.last_claim_error.clone().unwrap_or_default();
            let reason = format!("Task {id} could not be claimed: {error}");
            return (format!("{kind}_task_claim_failed"), reason);
        }
        if transport::overdue(task, now) {
            let reason = format!("Task {id} is ready, but no worker took it in time.");
            return ("repair_needed".to_owned(), reason);
        }
        (
            format!("{kind}_task_{}", task.status),
            format!("Task {id} is {}.", task.status),
        )
    }
}
