//! The run, its instance, its history and its tasks as rows.

use serde_json::{Value as Json, json};

use super::model::{Event, Time};
use super::{RunBuilder, blob, object};
use crate::demo::rows::{InsertRow, json_text};

/// The memo entry that carries the story of a situation to the page.
pub const STORY_MEMO: &str = "plimsoll.story";
/// The visibility label that names the situation.
pub const SITUATION_LABEL: &str = "plimsoll_situation";

impl RunBuilder {
    /// Every row of the run, projections as of `now`.
    pub fn build(mut self, now: Time) -> Vec<InsertRow> {
        self.park_for_reading();
        let mut rows = self.authority_rows();
        rows.extend(self.projection_rows(now));
        rows.append(&mut self.extra);
        rows
    }

    /// The same without projections, for runs nobody projected yet.
    pub fn build_unprojected(mut self) -> Vec<InsertRow> {
        self.park_for_reading();
        let mut rows = self.authority_rows();
        rows.append(&mut self.extra);
        rows
    }

    /// Rows as they are, projections as an earlier state had them.
    pub fn build_stale(mut self, projected: &RunBuilder, then: Time) -> Vec<InsertRow> {
        self.park_for_reading();
        let mut earlier = projected.clone();
        earlier.park_for_reading();
        earlier.mark = self.mark;
        let mut rows = self.authority_rows();
        rows.extend(earlier.projection_rows(then));
        rows.append(&mut self.extra);
        rows
    }

    /// Workflow code that is still running when the story ends has parked in truth; stories
    /// about a stuck lease say so with `leave_leased`.
    fn park_for_reading(&mut self) {
        if self.is_open() {
            self.park();
        }
    }

    fn authority_rows(&self) -> Vec<InsertRow> {
        let mut rows = Vec::with_capacity(self.events.len() * 2 + 32);
        if self.is_current {
            rows.push(self.instance_row());
        }
        rows.push(self.run_row());
        rows.extend(self.commands.iter().map(|c| self.command_row(c)));
        rows.extend(self.events.iter().map(|e| self.event_row(e)));
        rows.extend(self.tasks.iter().map(|t| self.task_row(t)));
        for activity in self.activities.iter().filter(|activity| activity.row) {
            rows.push(self.activity_row(activity));
            rows.extend(
                activity
                    .attempts
                    .iter()
                    .map(|a| self.attempt_row(activity, a)),
            );
        }
        rows.extend(self.failures.iter().map(|f| self.failure_row(f)));
        rows.extend(
            self.timers
                .iter()
                .filter(|t| t.row)
                .map(|t| self.timer_row(t)),
        );
        rows.extend(self.signals.iter().map(|s| self.signal_row(s)));
        rows.extend(self.updates.iter().map(|u| self.update_row(u)));
        rows.extend(self.children.iter().map(|c| self.link_row(c)));
        rows.extend(
            self.children
                .iter()
                .filter(|c| c.typed)
                .map(|c| self.child_call_row(c)),
        );
        rows.extend(
            self.relations
                .iter()
                .filter(|r| r.direction == "child")
                .map(|r| self.continuation_row(r)),
        );
        rows.extend(self.attributes.iter().map(|a| self.attribute_row(a)));
        rows.extend(
            self.memos
                .iter()
                .map(|m| self.memo_row(&m.key, &m.value, m.sequence)),
        );
        if let Some((_, story)) = self.mark {
            rows.push(self.memo_row(STORY_MEMO, &json!(story), 0));
        }
        rows
    }

    /// The caller's labels, and the situation's name where this run carries it.
    pub(super) fn stored_labels(&self) -> Option<Json> {
        let mark = self
            .mark
            .map(|(name, _)| (SITUATION_LABEL.to_owned(), json!(name)));
        let labels: Vec<_> = self
            .start
            .labels
            .iter()
            .map(|(key, value)| (key.clone(), json!(value)))
            .chain(mark)
            .collect();
        (!labels.is_empty()).then(|| object(labels))
    }

    fn instance_row(&self) -> InsertRow {
        let memo = (!self.start.memo.is_empty()).then(|| object(self.start.memo.iter().cloned()));
        let at = self.instance_started_at;
        InsertRow::new("workflow_instances")
            .set("id", &self.start.instance)
            .set("workflow_class", &self.start.class)
            .set("workflow_type", &self.start.kind)
            .set("namespace", self.start.namespace.clone())
            .set("business_key", self.start.business_key.clone())
            .json("visibility_labels", self.stored_labels().as_ref())
            .json("memo", memo.as_ref())
            .set("execution_timeout_seconds", self.start.execution_timeout)
            .set("current_run_id", &self.run_id)
            .set("run_count", self.run_number)
            .set("last_message_sequence", self.message_sequence)
            .time("reserved_at", at)
            .time("started_at", at)
            .stamps(at, self.last_progress_at)
    }

    fn run_row(&self) -> InsertRow {
        let archived = self.archived.as_ref();
        let last = self.closed_at.map_or(self.last_progress_at, |closed| {
            closed.max(self.last_progress_at)
        });
        InsertRow::new("workflow_runs")
            .set("id", &self.run_id)
            .set("workflow_instance_id", &self.start.instance)
            .set("run_number", self.run_number)
            .set("workflow_class", &self.start.class)
            .set("workflow_type", &self.start.kind)
            .set("namespace", self.start.namespace.clone())
            .set("business_key", self.start.business_key.clone())
            .json("visibility_labels", self.stored_labels().as_ref())
            .set("status", self.status)
            .set("closed_reason", self.closed_reason)
            .set("compatibility", self.start.compatibility.clone())
            .set("payload_codec", "avro")
            .set("arguments", blob(&self.start.arguments))
            .set("output", self.output.clone())
            .set("output_payload_codec", self.output.as_ref().map(|_| "avro"))
            .set("connection", self.start.connection.clone())
            .set("queue", &self.start.queue)
            .set(
                "last_history_sequence",
                self.events.last().map_or(0, |e| e.sequence),
            )
            .set(
                "last_command_sequence",
                self.commands.last().map_or(0, |c| c.sequence),
            )
            .set("message_cursor_position", self.message_cursor)
            .set("run_timeout_seconds", self.start.run_timeout)
            .time("execution_deadline_at", self.execution_deadline_at)
            .time("run_deadline_at", self.run_deadline_at)
            .time("started_at", self.started_at)
            .time("closed_at", self.closed_at)
            .time("archived_at", archived.map(|a| a.0))
            .set(
                "archive_command_id",
                archived.map(|a| self.commands[a.1].id.clone()),
            )
            .set("archive_reason", archived.map(|a| a.2.clone()))
            .time("last_progress_at", last)
            .set("priority", 5)
            .set("fairness_weight", 1)
            .stamps(self.started_at, last)
    }

    fn event_row(&self, event: &Event) -> InsertRow {
        InsertRow::new("workflow_history_events")
            .set("id", &event.id)
            .set("workflow_run_id", &self.run_id)
            .set("sequence", event.sequence)
            .set("event_type", event.kind)
            .set("payload", json_text(&event.payload))
            .set("workflow_task_id", event.task.clone())
            .set(
                "workflow_command_id",
                event.command.map(|c| self.commands[c].id.clone()),
            )
            .time("recorded_at", event.at)
            .stamps(event.at, event.at)
    }

    pub(super) fn history_size(&self) -> usize {
        self.events
            .iter()
            .map(|event| event.kind.len() + json_text(&event.payload).len())
            .sum()
    }
}
