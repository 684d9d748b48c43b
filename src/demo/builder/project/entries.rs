//! Timers and relatives, each as the list its page shows.

use serde_json::json;

use super::index;
use crate::demo::builder::model::{Relation, Timer, TimerKind};
use crate::demo::builder::{RunBuilder, digest, iso};
use crate::demo::rows::InsertRow;

impl RunBuilder {
    pub(super) fn timer_entry_rows(&self) -> Vec<InsertRow> {
        let mut timers: Vec<&Timer> = self.timers.iter().collect();
        timers.sort_by_key(|timer| (timer.sequence, timer.fire_at, timer.created_at));
        let rows = timers.into_iter().enumerate();
        rows.map(|(position, timer)| self.timer_entry_row(index(position), timer))
            .collect()
    }

    fn timer_entry_row(&self, position: u32, timer: &Timer) -> InsertRow {
        let condition = match timer.kind {
            TimerKind::Condition(wait) => Some(&self.conditions[wait]),
            _ => None,
        };
        let signal = match timer.kind {
            TimerKind::Signal(wait) => Some(&self.signal_waits[wait]),
            _ => None,
        };
        let kind = match timer.kind {
            TimerKind::Plain => None,
            TimerKind::Condition(_) => Some("condition_timeout"),
            TimerKind::Signal(_) => Some("signal_timeout"),
        };
        let mut events = vec!["TimerScheduled"];
        events.extend(timer.fired_at.map(|_| "TimerFired"));
        events.extend(timer.cancelled_at.map(|_| "TimerCancelled"));
        let payload = json!({
            "id": timer.id,
            "sequence": timer.sequence,
            "status": timer.status,
            "source_status": timer.status,
            "delay_seconds": timer.delay,
            "fire_at": iso(timer.fire_at),
            "fired_at": timer.fired_at.map(iso),
            "cancelled_at": timer.cancelled_at.map(iso),
            "created_at": iso(timer.created_at),
            "timer_kind": kind,
            "condition_wait_id": condition.map(|wait| &wait.id),
            "condition_key": condition.and_then(|wait| wait.key.as_ref()),
            "condition_definition_fingerprint":
                condition.map(|wait| &wait.fingerprint),
            "signal_wait_id": signal.map(|wait| &wait.id),
            "signal_name": signal.map(|wait| &wait.name),
            "history_authority": "typed_history",
            "history_event_types": events,
            "history_unsupported_reason": null,
            "row_status": timer.row.then_some(timer.status),
            "diagnostic_only": false,
        });
        InsertRow::new("workflow_run_timer_entries")
            .set("id", digest(&format!("{}|{}", self.run_id, timer.id)))
            .set("workflow_run_id", &self.run_id)
            .set("workflow_instance_id", &self.start.instance)
            .set("timer_id", &timer.id)
            .set("schema_version", 1)
            .set("position", position)
            .set("sequence", timer.sequence)
            .set("status", timer.status)
            .set("source_status", timer.status)
            .set("delay_seconds", timer.delay)
            .time("fire_at", timer.fire_at)
            .time("fired_at", timer.fired_at)
            .time("cancelled_at", timer.cancelled_at)
            .set("timer_kind", kind)
            .set("condition_wait_id", condition.map(|wait| wait.id.clone()))
            .set("condition_key", condition.and_then(|wait| wait.key.clone()))
            .set(
                "condition_definition_fingerprint",
                condition.map(|wait| wait.fingerprint.clone()),
            )
            .set("history_authority", "typed_history")
            .set("history_unsupported_reason", None::<&str>)
            .json("payload", Some(&payload))
            .stamps(timer.created_at, self.last_progress_at)
    }

    pub(super) fn lineage_rows(&self) -> Vec<InsertRow> {
        let children = self.children.iter().map(|child| Relation {
            direction: "child",
            link_type: "child_workflow",
            link_id: child.call_id.clone(),
            child_call_id: Some(child.call_id.clone()),
            sequence: Some(child.sequence),
            instance: child.instance.clone(),
            run: child.run.clone(),
            run_number: child.run_number,
            kind: child.kind.clone(),
            class: child.class.clone(),
            status: child.status,
            closed_reason: child.closed_reason,
            linked_at: child.scheduled_at,
        });
        let all: Vec<Relation> = children.chain(self.relations.iter().cloned()).collect();
        let mut rows = Vec::with_capacity(all.len());
        for direction in ["parent", "child"] {
            let of = all.iter().filter(|r| r.direction == direction).enumerate();
            rows.extend(of.map(|(position, r)| self.lineage_row(index(position), r)));
        }
        rows
    }

    fn lineage_row(&self, position: u32, relation: &Relation) -> InsertRow {
        let bucket = match relation.status {
            "completed" => "completed",
            "failed" | "cancelled" | "terminated" => "failed",
            _ => "running",
        };
        let typed = self
            .children
            .iter()
            .find(|child| child.call_id == relation.link_id)
            .is_none_or(|child| child.typed);
        let payload = json!({
            "id": relation.link_id,
            "link_type": relation.link_type,
            "child_call_id": relation.child_call_id,
            "sequence": relation.sequence,
            "is_primary_parent": true,
            "workflow_instance_id": relation.instance,
            "workflow_run_id": relation.run,
            "run_number": relation.run_number,
            "workflow_type": relation.kind,
            "class": relation.class,
            "status": relation.status,
            "status_bucket": bucket,
            "closed_reason": relation.closed_reason,
            "created_at": iso(relation.linked_at),
            "history_authority": if typed { "typed_history" } else { "mutable_open_fallback" },
            "diagnostic_only": !typed,
            "parent_close_policy": (relation.link_type == "child_workflow"
                && relation.direction == "child")
                .then_some("abandon"),
            "parent_close_policy_outcome": null,
            "parent_close_policy_reason": null,
            "parent_close_policy_error": null,
        });
        let key = format!(
            "{}|{}|{}",
            self.run_id, relation.direction, relation.link_id
        );
        InsertRow::new("workflow_run_lineage_entries")
            .set("id", digest(&key))
            .set("workflow_run_id", &self.run_id)
            .set("workflow_instance_id", &self.start.instance)
            .set("direction", relation.direction)
            .set("lineage_id", &relation.link_id)
            .set("position", position)
            .set("link_type", relation.link_type)
            .set("child_call_id", relation.child_call_id.clone())
            .set("sequence", relation.sequence)
            .set("is_primary_parent", true)
            .set("related_workflow_instance_id", &relation.instance)
            .set("related_workflow_run_id", &relation.run)
            .set("related_run_number", relation.run_number)
            .set("related_workflow_type", &relation.kind)
            .set("related_workflow_class", &relation.class)
            .set("status", relation.status)
            .set("status_bucket", bucket)
            .set("closed_reason", relation.closed_reason)
            .time("linked_at", relation.linked_at)
            .json("payload", Some(&payload))
            .stamps(relation.linked_at, self.last_progress_at)
    }
}
