//! Child workflows and continue-as-new: one run giving birth to another.

use serde_json::json;

use super::model::{Child, Group, Relation};
use super::start::Origin;
use super::{RunBuilder, Start, blob, extend, iso};

impl RunBuilder {
    /// Workflow code starts a child. Returns the child's handle here and the child's own run.
    pub fn start_child(&mut self, start: Start, group: Option<Group>) -> (usize, RunBuilder) {
        let task = self.work();
        let sequence = self.next_step();
        let call_id = self.mint.code(self.at);
        let parent = Relation {
            direction: "parent",
            link_type: "child_workflow",
            link_id: call_id.clone(),
            child_call_id: Some(call_id.clone()),
            sequence: Some(sequence),
            instance: self.start.instance.clone(),
            run: self.run_id.clone(),
            run_number: self.run_number,
            kind: self.start.kind.clone(),
            class: self.start.class.clone(),
            status: "waiting",
            closed_reason: None,
            linked_at: self.at,
        };
        let child = Self::begin_run(start, self.at, 1, Origin::Parent(Box::new(parent)));
        self.push_child(call_id, sequence, &child, group, true);
        let index = self.children.len() - 1;
        let mut scheduled = self.child_payload(index);
        scheduled["parent_close_policy"] = json!("abandon");
        let mut started = self.child_payload(index);
        started["child_run_number"] = json!(1);
        started["parent_close_policy"] = json!("abandon");
        if let Some(group) = &self.children[index].group {
            for payload in [&mut scheduled, &mut started] {
                extend(payload, group.keys());
                payload["parallel_group_path"] = group.path();
            }
        }
        self.event("ChildWorkflowScheduled", scheduled, Some(&task), None);
        self.event("ChildRunStarted", started, Some(&task), None);
        (index, child)
    }

    /// A link row that the parent's history does not know.
    pub fn row_only_child(&mut self, child: &RunBuilder) {
        let sequence = self.next_step();
        let call_id = self.mint.code(self.at);
        self.push_child(call_id, sequence, child, None, false);
    }

    fn push_child(
        &mut self,
        call_id: String,
        sequence: u32,
        child: &RunBuilder,
        group: Option<Group>,
        typed: bool,
    ) {
        self.children.push(Child {
            call_id,
            sequence,
            instance: child.start.instance.clone(),
            run: child.run_id.clone(),
            run_number: child.run_number,
            kind: child.start.kind.clone(),
            class: child.start.class.clone(),
            queue: Some(child.start.queue.clone()),
            arguments: blob(&child.start.arguments),
            close_policy: "abandon",
            status: "waiting",
            closed_reason: None,
            failure: None,
            resolved_at: None,
            scheduled_at: self.at,
            group,
            typed,
        });
    }

    fn child_payload(&self, index: usize) -> serde_json::Value {
        let child = &self.children[index];
        json!({
            "sequence": child.sequence,
            "workflow_link_id": child.call_id,
            "child_call_id": child.call_id,
            "child_workflow_instance_id": child.instance,
            "child_workflow_run_id": child.run,
            "child_workflow_class": child.class,
            "child_workflow_type": child.kind,
        })
    }

    /// The child closed; its outcome enters this run's history and wakes it.
    pub fn child_closed(&mut self, index: usize, child: &RunBuilder) -> &mut Self {
        self.park();
        let closed_at = child.closed_at.expect("the child has closed");
        self.pass_until(closed_at);
        let at = self.at;
        let entry = &mut self.children[index];
        entry.status = child.status;
        entry.closed_reason = child.closed_reason;
        entry.resolved_at = Some(at);
        entry.failure = child.failures.last().map(|failure| failure.id.clone());
        let kind = match child.status {
            "completed" => "ChildRunCompleted",
            "cancelled" => "ChildRunCancelled",
            "terminated" => "ChildRunTerminated",
            _ => "ChildRunFailed",
        };
        let mut payload = self.child_payload(index);
        extend(
            &mut payload,
            json!({
                "child_run_number": child.run_number,
                "child_status": child.status,
                "closed_reason": child.closed_reason,
                "closed_at": iso(closed_at),
            }),
        );
        match child.failures.last() {
            Some(failure) if child.status != "completed" => {
                payload["failure_id"] = json!(failure.id);
                // The child's own class of failure; without one, that it was a child says all.
                let category = failure.category.unwrap_or("child_workflow");
                payload["failure_category"] = json!(category);
                if kind == "ChildRunFailed" {
                    payload["exception"] = failure.exception.clone();
                }
                payload["exception_class"] = json!(failure.class);
                payload["message"] = json!(failure.message);
            }
            _ => {
                payload["output"] = json!(child.output);
                payload["result"] = json!(child.output);
                payload["payload_codec"] = json!("avro");
            }
        }
        let group = self.children[index].group.clone();
        if let Some(group) = &group {
            extend(&mut payload, group.keys());
            payload["parallel_group_path"] = group.path();
        }
        let event = self.event(kind, payload, None, None);
        let waits_for_siblings = kind == "ChildRunCompleted"
            && group.is_some_and(|group| {
                let same = |g: &Option<Group>| g.as_ref().is_some_and(|g| g.id == group.id);
                self.children
                    .iter()
                    .any(|c| c.resolved_at.is_none() && same(&c.group))
                    || self
                        .activities
                        .iter()
                        .any(|a| a.is_open() && same(&a.group))
            });
        if !waits_for_siblings {
            let child = &self.children[index];
            self.resume(json!({
                "workflow_wait_kind": "child",
                "open_wait_id": format!("child:{}", child.call_id),
                "resume_source_kind": "child_workflow_run",
                "resume_source_id": child.run,
                "workflow_history_event_id": event,
                "child_call_id": child.call_id,
                "child_workflow_run_id": child.run,
                "workflow_sequence": child.sequence,
                "workflow_event_type": kind,
            }));
        }
        self
    }

    /// Workflow code starts over under the same instance; this run closes, the next one is
    /// returned.
    #[must_use]
    pub fn continue_as_new(&mut self, arguments: serde_json::Value) -> RunBuilder {
        let task = self.work();
        let sequence = self.next_step();
        self.pass(super::millis(50));
        let link_id = self.mint.row(self.at);
        let relation = |run: &Self, direction, sequence| Relation {
            direction,
            link_type: "continue_as_new",
            link_id: link_id.clone(),
            child_call_id: None,
            sequence,
            instance: run.start.instance.clone(),
            run: run.run_id.clone(),
            run_number: run.run_number,
            kind: run.start.kind.clone(),
            class: run.start.class.clone(),
            status: run.status,
            closed_reason: run.closed_reason,
            linked_at: self.at,
        };
        let mut previous = relation(self, "parent", Some(sequence));
        previous.status = "completed";
        previous.closed_reason = Some("continued");
        let mut start = self.start.clone();
        start.arguments = arguments;
        let mut next = Self::begin_run(
            start,
            self.at,
            self.run_number + 1,
            Origin::Predecessor(Box::new(previous), self.instance_started_at),
        );
        // The projected parent row of a continuation carries no step of its own.
        next.relations[0].sequence = None;
        next.message_sequence = self.message_sequence;
        let successor = relation(&next, "child", Some(sequence));
        let payload = json!({
            "sequence": sequence,
            "continued_to_run_id": next.run_id,
            "continued_to_run_number": next.run_number,
            "workflow_link_id": link_id,
            "closed_reason": "continued",
        });
        self.relations.push(successor);
        self.event("WorkflowContinuedAsNew", payload, Some(&task), None);
        self.close("completed", "continued");
        self.finish_work("completed");
        self.is_current = false;
        next
    }
}
