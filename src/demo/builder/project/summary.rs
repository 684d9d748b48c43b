//! The one row a run has in every list.

use super::transport;
use crate::demo::builder::RunBuilder;
use crate::demo::builder::model::{Group, Time};
use crate::demo::rows::InsertRow;

/// History budgets the engine ships with: (warning, hard) for events, bytes and fan-out.
const EVENTS: (usize, usize) = (8_000, 10_000);
const BYTES: (usize, usize) = (4_194_304, 5_242_880);
const FAN_OUT: (usize, usize) = (160, 200);

impl RunBuilder {
    /// Started a moment ago, and nothing has gone wrong or on since.
    pub(super) fn is_fresh(&self, now: Time) -> bool {
        let healthy = |task: &crate::demo::builder::Task| {
            task.is_open()
                && task.payload.as_array().is_some_and(Vec::is_empty)
                && !transport::unhealthy(task, now)
        };
        self.is_open()
            && self.events.len() == 2
            && self.tasks.len() == 1
            && self.tasks.iter().all(healthy)
    }

    fn fan_out(&self) -> usize {
        let activities = self.activities.iter().filter_map(|a| a.group.as_ref());
        let children = self.children.iter().filter_map(|c| c.group.as_ref());
        let size = |group: &Group| usize::try_from(group.size).unwrap_or(usize::MAX);
        activities.chain(children).map(size).max().unwrap_or(0)
    }

    fn pressure(measured: [(usize, (usize, usize)); 3]) -> &'static str {
        if measured.iter().any(|(value, budget)| *value >= budget.1) {
            "continue_as_new_recommended"
        } else if measured.iter().any(|(value, budget)| *value >= budget.0) {
            "approaching"
        } else {
            "ok"
        }
    }

    pub(super) fn summary_row(&self, now: Time) -> InsertRow {
        let found = self.diagnose(now);
        let fresh = self.is_fresh(now);
        let (size, fan_out) = if fresh {
            (0, 0)
        } else {
            (self.history_size(), self.fan_out())
        };
        let pressure = Self::pressure([
            (self.events.len(), EVENTS),
            (size, BYTES),
            (fan_out, FAN_OUT),
        ]);
        let bucket = match self.status {
            "completed" => "completed",
            "failed" | "cancelled" | "terminated" => "failed",
            _ => "running",
        };
        let child_failures = self
            .children
            .iter()
            .filter(|child| child.failure.is_some() && child.status != "completed")
            .count();
        let typed_start = !self.start.without_history;
        let archived = self.archived.as_ref();
        let task = found.next_task.as_ref();
        let attention = matches!(
            found.repair_blocked,
            Some("unsupported_history" | "waiting_for_compatible_worker")
        );
        let sort_key = format!(
            "{}#{}",
            crate::demo::builder::iso(self.started_at),
            self.run_id
        );
        InsertRow::new("workflow_run_summaries")
            .set("id", &self.run_id)
            .set("workflow_instance_id", &self.start.instance)
            .set("run_number", self.run_number)
            .set("is_current_run", self.is_current)
            .set("engine_source", "v2")
            .set("projection_schema_version", 2)
            .set("class", &self.start.class)
            .set("workflow_type", &self.start.kind)
            .set("namespace", self.start.namespace.clone())
            .set("compatibility", self.start.compatibility.clone())
            .set("declared_entry_mode", typed_start.then_some("canonical"))
            .set(
                "declared_contract_source",
                if typed_start {
                    "durable_history"
                } else {
                    "unavailable"
                },
            )
            .set("business_key", self.start.business_key.clone())
            .json("visibility_labels", self.stored_labels().as_ref())
            .set("status", self.status)
            .set("status_bucket", bucket)
            .set("closed_reason", self.closed_reason)
            .set("connection", self.start.connection.clone())
            .set("queue", &self.start.queue)
            .time("started_at", self.started_at)
            .time("sort_timestamp", self.started_at)
            .set("sort_key", sort_key)
            .time("closed_at", self.closed_at)
            .time("archived_at", archived.map(|a| a.0))
            .set(
                "archive_command_id",
                archived.map(|a| self.commands[a.1].id.clone()),
            )
            .set("archive_reason", archived.map(|a| a.2.clone()))
            .set(
                "duration_ms",
                self.closed_at
                    .map(|at| (at - self.started_at).num_milliseconds()),
            )
            .set("wait_kind", found.wait_kind)
            .set("wait_reason", found.wait_reason.clone())
            .time("wait_started_at", found.wait_started_at)
            .time("wait_deadline_at", found.wait_deadline_at)
            .set("open_wait_id", found.open_wait_id.clone())
            .set("resume_source_kind", found.resume.0)
            .set("resume_source_id", found.resume.1.clone())
            .time("next_task_at", task.map(|t| t.available_at))
            .set("liveness_state", &found.state)
            .set("liveness_reason", &found.reason)
            .set("repair_blocked_reason", found.repair_blocked)
            .set("repair_attention", attention)
            .set("task_problem", found.task_problem)
            .set("next_task_id", task.map(|t| t.id.clone()))
            .set("next_task_type", task.map(|t| t.kind))
            .set("next_task_status", task.map(|t| t.status))
            .time(
                "next_task_lease_expires_at",
                task.and_then(|t| t.lease_expires_at),
            )
            .set(
                "exception_count",
                super::index(self.failures.len() + child_failures),
            )
            .set("history_event_count", super::index(self.events.len()))
            .set(
                "history_size_bytes",
                i64::try_from(size).expect("a history fits"),
            )
            .set("history_fan_out", super::index(fan_out))
            .set("history_budget_pressure", pressure)
            .set(
                "continue_as_new_recommended",
                pressure == "continue_as_new_recommended",
            )
            .stamps(
                self.started_at,
                self.closed_at.unwrap_or(self.last_progress_at),
            )
    }
}
