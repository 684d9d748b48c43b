//! How runs end, and what operators do to them.

use serde_json::{Value as Json, json};

use super::model::Task;
use super::{RunBuilder, Thrown, blob, extend, iso, iso_offset, snapshots};

impl RunBuilder {
    pub(super) fn close(&mut self, status: &'static str, reason: &'static str) {
        let at = self.at;
        self.status = status;
        self.closed_reason = Some(reason);
        self.closed_at = Some(at);
        // Waits that nobody will answer any more are cancelled with the run, except by a
        // timeout, which the engine forgets here.
        if reason == "timed_out" {
            return;
        }
        let source = match reason {
            "cancelled" => "cancelled",
            "terminated" => "terminated",
            "continued" => "continued",
            _ => "closed",
        };
        for wait in &mut self.conditions {
            if wait.status == "open" {
                wait.status = "cancelled";
                wait.source_status = source;
                wait.resolved_at = Some(at);
            }
        }
        for wait in &mut self.signal_waits {
            if wait.status == "open" {
                wait.status = "cancelled";
                wait.source_status = source;
                wait.resolved_at = Some(at);
            }
        }
    }

    /// Workflow code returned.
    pub fn succeed(&mut self, output: &Json) -> &mut Self {
        let task = self.work();
        self.pass(super::millis(45));
        let encoded = blob(output);
        self.output = Some(encoded.clone());
        let payload = json!({"output": encoded, "payload_codec": "avro"});
        self.event("WorkflowCompleted", payload, Some(&task), None);
        self.close("completed", "completed");
        self.finish_work("completed");
        self
    }

    /// Workflow code threw, or the engine refused to go on.
    pub fn fail(&mut self, category: &'static str, thrown: &Thrown, limit: Json) -> &mut Self {
        let task = self.work();
        self.pass(super::millis(45));
        let source = self.run_id.clone();
        let failure =
            self.push_failure("workflow_run", source.clone(), "terminal", category, thrown);
        let mut payload = json!({
            "failure_id": failure,
            "source_kind": "workflow_run",
            "source_id": source,
            "failure_category": category,
            "non_retryable": thrown.non_retryable,
            "exception_type": null,
            "exception_class": thrown.class,
            "message": thrown.message,
            "exception": thrown.json(),
        });
        extend(&mut payload, limit);
        self.event("WorkflowFailed", payload, Some(&task), None);
        self.close("failed", "failed");
        self.finish_work("failed");
        self
    }

    /// A structural limit stopped the run.
    pub fn exceed(&mut self, limit: &str, value: i64, configured: i64, message: &str) -> &mut Self {
        let thrown = Thrown::new(
            r"Workflow\V2\Exceptions\StructuralLimitExceededException",
            message,
        )
        .at(
            "/srv/shop/vendor/durable-workflow/workflow/src/V2/Exceptions/StructuralLimitExceededException.php",
            80,
            r"Workflow\V2\Support\StructuralLimits",
        )
        .permanent();
        self.fail(
            "structural_limit",
            &thrown,
            limit_keys(limit, value, configured),
        )
    }

    /// Somebody cancels the run.
    pub fn cancel(&mut self, reason: Option<&str>) -> &mut Self {
        self.stop(
            "cancel",
            "CancelRequested",
            "WorkflowCancelled",
            "cancelled",
            reason,
        )
    }

    /// Somebody terminates the run.
    pub fn terminate(&mut self, reason: Option<&str>) -> &mut Self {
        self.stop(
            "terminate",
            "TerminateRequested",
            "WorkflowTerminated",
            "terminated",
            reason,
        )
    }

    fn stop(
        &mut self,
        kind: &'static str,
        requested: &'static str,
        stopped: &'static str,
        status: &'static str,
        reason: Option<&str>,
    ) -> &mut Self {
        self.park();
        let stored = reason.map(|reason| json!({"reason": reason}));
        let command = self.command(kind, "waterline", stored.as_ref(), Some(status));
        let at = self.at;
        self.commands[command].applied_at = Some(at);
        let mut base = json!({
            "workflow_command_id": self.commands[command].id,
            "workflow_instance_id": self.start.instance,
            "workflow_run_id": self.run_id,
        });
        let mut asked = base.clone();
        asked["command_type"] = json!(kind);
        if let Some(reason) = reason {
            asked["reason"] = json!(reason);
            base["reason"] = json!(reason);
        }
        self.event(requested, asked, None, Some(command));
        self.cancel_open_work(Some(command));
        let (class, message) = match status {
            "cancelled" => (
                r"Workflow\V2\Exceptions\WorkflowCancelledException",
                "Workflow cancelled.",
            ),
            _ => (
                r"Workflow\V2\Exceptions\WorkflowTerminatedException",
                "Workflow terminated.",
            ),
        };
        let thrown = Thrown::new(class, message).at("", 0, "");
        let source = self.run_id.clone();
        let failure = self.push_failure("workflow_run", source, status, status, &thrown);
        extend(
            &mut base,
            json!({
                "failure_id": failure,
                "failure_category": status,
                "closed_reason": status,
                "exception_class": class,
                "message": message,
            }),
        );
        self.event(stopped, base, None, Some(command));
        self.close(status, status);
        self
    }

    /// Open activities, timers and tasks end with the run.
    fn cancel_open_work(&mut self, command: Option<usize>) {
        let at = self.at;
        for index in 0..self.activities.len() {
            if !self.activities[index].is_open() {
                continue;
            }
            let activity = &mut self.activities[index];
            activity.status = "cancelled";
            activity.closed_at = Some(at);
            let running = activity.attempts.last_mut();
            if let Some(attempt) = running.filter(|attempt| attempt.closed_at.is_none()) {
                attempt.status = "cancelled";
                attempt.closed_at = Some(at);
                attempt.lease_expires_at = None;
            }
            let id = activity.id.clone();
            let carries = |task: &Task| task.payload["activity_execution_id"] == json!(id);
            let task = self.tasks.iter().position(|t| t.is_open() && carries(t));
            if let Some(task) = task {
                self.close_task(task, "cancelled");
            }
            let activity = &self.activities[index];
            let attempt = activity.attempts.last();
            let snapshot = attempt.map(|attempt| {
                let mut snapshot = snapshots::attempt(attempt);
                extend(&mut snapshot, json!({"activity_execution_id": id}));
                snapshot
            });
            let payload = json!({
                "activity_execution_id": activity.id,
                "activity_class": activity.class,
                "activity_type": activity.kind,
                "sequence": activity.sequence,
                "workflow_command_id": command.map(|c| &self.commands[c].id),
                "activity_attempt_id": attempt.map(|a| &a.id),
                "attempt_number": attempt.map_or(0, |a| a.number),
                "cancelled_at": iso(at),
                "activity": snapshots::activity(activity),
                "activity_attempt": snapshot,
            });
            let task = task.map(|task| self.tasks[task].id.clone());
            self.event("ActivityCancelled", payload, task.as_deref(), command);
        }
        for index in 0..self.timers.len() {
            self.cancel_timer(index, command);
        }
        for index in 0..self.tasks.len() {
            if self.tasks[index].is_open() && self.working.as_ref() != Some(&self.tasks[index].id) {
                self.close_task(index, "cancelled");
            }
        }
    }

    /// The watchdog found the deadline passed; its own workflow task closes the run.
    pub fn time_out(&mut self, kind: &'static str) -> &mut Self {
        self.park();
        let (deadline, word) = match kind {
            "execution_timeout" => (self.execution_deadline_at, "execution"),
            _ => (self.run_deadline_at, "run"),
        };
        let deadline = deadline.expect("the start set this timeout");
        self.pass_until(deadline).pass(super::secs(4));
        let task = self.push_task("workflow", json!({"reason": "deadline_expired"}), self.at);
        self.tasks[task].repair_count = 1;
        self.pass(super::millis(140));
        self.lease(task, None);
        let task_id = self.tasks[task].id.clone();
        self.working = Some(task_id.clone());
        self.cancel_open_work(None);
        let message = format!(
            "Workflow {word} deadline expired at {}.",
            iso_offset(deadline)
        );
        let thrown = Thrown::new(
            r"Workflow\V2\Exceptions\WorkflowTimeoutException",
            message.clone(),
        )
        .at("", 0, "");
        let source = self.run_id.clone();
        let failure = self.push_failure("workflow_run", source, "timeout", "timeout", &thrown);
        let payload = json!({
            "failure_id": failure,
            "timeout_kind": kind,
            "failure_category": "timeout",
            "message": message,
            "exception_class": thrown.class,
            "execution_deadline_at": self.execution_deadline_at.map(iso_offset),
            "run_deadline_at": self.run_deadline_at.map(iso_offset),
        });
        self.event("WorkflowTimedOut", payload, Some(&task_id), None);
        self.close("failed", "timed_out");
        self.finish_work("completed");
        self
    }

    /// An operator puts a closed run away.
    pub fn archive(&mut self, reason: &str) -> &mut Self {
        let command = self.command(
            "archive",
            "waterline",
            Some(&json!({"reason": reason})),
            Some("archived"),
        );
        let at = self.at;
        self.commands[command].applied_at = Some(at);
        let id = self.commands[command].id.clone();
        let base = json!({
            "workflow_command_id": id,
            "workflow_instance_id": self.start.instance,
            "workflow_run_id": self.run_id,
        });
        let mut asked = base.clone();
        extend(
            &mut asked,
            json!({"command_type": "archive", "outcome": "archived", "reason": reason}),
        );
        let mut done = base;
        extend(
            &mut done,
            json!({"archive_command_id": id, "reason": reason}),
        );
        self.event("ArchiveRequested", asked, None, Some(command));
        self.event("WorkflowArchived", done, None, Some(command));
        self.archived = Some((at, command, reason.to_owned()));
        self
    }

    /// An operator pressed Repair while the resume task was missing: it is written anew.
    pub fn repair(&mut self, wait_kind: &str, resume: Json) -> &mut Self {
        self.park();
        let at = self.at;
        let task = self.push_task("workflow", resume, at);
        self.tasks[task].repair_count = 1;
        let task_id = self.tasks[task].id.clone();
        let stored = json!({
            "liveness_state": "repair_needed",
            "wait_kind": wait_kind,
            "task_id": task_id,
            "task_type": "workflow",
        });
        let command = self.command(
            "repair",
            "waterline",
            Some(&stored),
            Some("repair_dispatched"),
        );
        self.commands[command].applied_at = Some(at);
        let payload = json!({
            "workflow_command_id": self.commands[command].id,
            "workflow_instance_id": self.start.instance,
            "workflow_run_id": self.run_id,
            "command_type": "repair",
            "outcome": "repair_dispatched",
            "liveness_state": "repair_needed",
            "wait_kind": wait_kind,
            "task_id": task_id,
            "task_type": "workflow",
        });
        self.event("RepairRequested", payload, Some(&task_id), Some(command));
        self
    }

    /// The payload of the task that would apply the newest signal.
    pub fn signal_resume(&self) -> Json {
        let signal = self.signals.last().expect("a signal arrived");
        json!({
            "workflow_wait_kind": "signal",
            "open_wait_id": format!("signal-application:{}", signal.id),
            "resume_source_kind": "workflow_signal",
            "resume_source_id": signal.id,
            "workflow_signal_id": signal.id,
            "signal_name": signal.name,
            "signal_wait_id": signal.wait_id,
            "workflow_command_id": self.commands[signal.command].id,
        })
    }

    /// A failure row of an engine that did not classify and left no event.
    pub fn unclassified_failure(&mut self, thrown: &Thrown) -> &mut Self {
        let source = self.run_id.clone();
        self.push_failure("workflow", source, "local", "application", thrown);
        self.failures.last_mut().expect("just written").category = None;
        self
    }

    /// Ends a run that has no history to end in.
    pub fn close_row(&mut self, status: &'static str, reason: &'static str) -> &mut Self {
        self.close(status, reason);
        self
    }
}

/// The three keys a structural-limit failure adds to its event.
pub(in crate::demo) fn limit_keys(limit: &str, value: i64, configured: i64) -> Json {
    json!({
        "structural_limit_kind": limit,
        "structural_limit_value": value,
        "structural_limit_configured": configured,
    })
}
