//! What a workflow does besides activities and timers: side effects, waits for the outside, and
//! children.

use serde_json::json;

use super::{
    draft::{CODEC, Draft, Identity, Relative, Subject, Time, Wait, stamp},
    mix::RESULTS,
};
use crate::demo::rows::InsertRow;

impl Draft<'_> {
    pub fn side_effect(&mut self) {
        let step = self.next_step();
        let result = RESULTS[self.rng.usize(..RESULTS.len())];
        let payload = json!({"sequence": step, "result": result});
        self.event("SideEffectRecorded", Subject::SideEffect, &payload);
    }

    /// Waits for a signal or a condition that nobody has brought yet.
    pub fn open_wait(&mut self, kind: &'static str) {
        let id = self.ids.upper(self.at);
        let step = self.next_step();
        let signal = kind == "signal";
        let (event, payload) = if signal {
            let payload =
                json!({"signal_name": "approved", "signal_wait_id": id, "sequence": step});
            ("SignalWaitOpened", payload)
        } else {
            let payload = json!({"condition_wait_id": id, "condition_key": "stock-arrived", "sequence": step});
            ("ConditionWaitOpened", payload)
        };
        self.event(event, Subject::Wait(kind, id.clone()), &payload);
        self.waits.push(Wait {
            id,
            kind,
            step,
            status: "open",
            source_status: "waiting",
            opened: self.at,
            deadline: None,
            resolved: None,
            target_name: signal.then(|| "approved".to_owned()),
            target_type: (!signal).then(|| "condition".to_owned()),
            task: None,
            resume: (if signal { "signal" } else { "external_input" }, None),
        });
    }

    /// Starts a child now. Returns the child call's id and the step.
    pub fn start_child(&mut self, child: &Identity) -> (String, i64) {
        let call = self.ids.upper(self.at);
        let step = self.next_step();
        let payload = json!({
            "sequence": step, "workflow_link_id": call, "child_call_id": call,
            "child_workflow_instance_id": child.instance, "child_workflow_run_id": child.run,
            "child_workflow_class": child.kind.class, "child_workflow_type": child.kind.workflow_type,
            "parent_close_policy": "abandon",
        });
        let subject = || Subject::Child(child.run.clone());
        self.event("ChildWorkflowScheduled", subject(), &payload.clone());
        let mut started = payload;
        started["child_run_number"] = json!(1);
        self.event("ChildRunStarted", subject(), &started);
        self.rows.push(
            InsertRow::new("workflow_links")
                .set("id", &call)
                .set("link_type", "child_workflow")
                .set("sequence", step)
                .set("parent_workflow_instance_id", &self.who.instance)
                .set("parent_workflow_run_id", &self.who.run)
                .set("child_workflow_instance_id", &child.instance)
                .set("child_workflow_run_id", &child.run)
                .set("is_primary_parent", true)
                .set("parent_close_policy", "abandon")
                .stamps(self.at, self.at),
        );
        (call, step)
    }

    /// What the parent keeps about a child that has closed (`closed`) or is still at work.
    pub fn keep_child(
        &mut self,
        child: &Identity,
        call: &str,
        step: i64,
        opened: Time,
        closed: Option<Time>,
    ) {
        let metadata = json!({"child_call_id": call, "attempt_count": 1});
        let arguments = json!({"payload": self.arguments, "payload_codec": CODEC});
        let status = if closed.is_some() {
            "completed"
        } else {
            "started"
        };
        self.rows.push(
            InsertRow::new("workflow_child_calls")
                .set("parent_workflow_run_id", &self.who.run)
                .set("parent_workflow_instance_id", &self.who.instance)
                .set("sequence", step)
                .set("child_workflow_type", child.kind.workflow_type)
                .set("child_workflow_class", child.kind.class)
                .set("resolved_child_instance_id", &child.instance)
                .set("resolved_child_run_id", &child.run)
                .set("parent_close_policy", "abandon")
                .set("queue", child.kind.queue)
                .set("cancellation_propagation", false)
                .set("status", status)
                .set("closed_reason", closed.map(|_| "completed"))
                .time("scheduled_at", opened)
                .time("started_at", opened)
                .time("closed_at", closed)
                .json("arguments", Some(&arguments))
                .json("metadata", Some(&metadata))
                .stamps(opened, closed.unwrap_or(opened)),
        );
        self.waits.push(Wait {
            id: format!("child:{call}"),
            kind: "child",
            step,
            status: if closed.is_some() { "resolved" } else { "open" },
            source_status: if closed.is_some() {
                "completed"
            } else {
                "waiting"
            },
            opened,
            deadline: None,
            resolved: closed,
            target_name: Some(child.instance.clone()),
            target_type: Some(child.kind.workflow_type.to_owned()),
            task: None,
            resume: ("child_workflow_run", Some(child.run.clone())),
        });
        self.relatives.push(Relative {
            direction: "child",
            link: call.to_owned(),
            link_type: "child_workflow",
            child_call: true,
            step: Some(step),
            who: child.clone(),
            status: if closed.is_some() {
                "completed"
            } else {
                "waiting"
            },
            closed_reason: closed.map(|_| "completed"),
            at: opened,
        });
    }

    /// The child has come back with a result.
    pub fn child_completed(&mut self, child: &Identity, call: &str, step: i64) {
        let result = RESULTS[self.rng.usize(..RESULTS.len())];
        self.event("ChildRunCompleted", Subject::Child(child.run.clone()), &json!({
            "sequence": step, "workflow_link_id": call, "child_call_id": call,
            "child_workflow_instance_id": child.instance, "child_workflow_run_id": child.run,
            "child_workflow_class": child.kind.class, "child_workflow_type": child.kind.workflow_type,
            "child_run_number": 1, "child_status": "completed", "closed_reason": "completed",
            "closed_at": stamp(self.at), "output": result, "result": result, "payload_codec": CODEC,
        }));
    }
}
