//! The runs around the one of a bundle, and what only its events still tell.

use std::collections::HashMap;

use serde_json::Value;

use super::sections::{Relative, Section};
use crate::{
    db::Row,
    durable::{
        store::{
            related::TERMINAL,
            snapshot::{RelatedRun, RunSnapshot},
        },
        stored::{
            EventType, RunRow, RunStatus,
            loose::{self, Int, Text, shape},
        },
    },
};

shape! {
    /// What becomes of a child when its parent closes.
    #[derive(Debug)]
    struct Scheduled {
        sequence: Int,
        parent_close_policy: Text,
    }
}

/// A link does not carry the policy, but the event that made the child does.
pub(super) fn close_policies(events: &[Row]) -> HashMap<i64, String> {
    let scheduled = EventType::ChildWorkflowScheduled;
    events
        .iter()
        .filter(|row| row.peek("event_type") == Some(scheduled.as_str()))
        .map(|row| loose::read::<Scheduled>(row.peek("payload")))
        .filter_map(|told| Some((told.sequence.get()?, told.parent_close_policy.0?)))
        .collect()
}

shape! {
    /// What only a run's first event still tells.
    #[derive(Debug)]
    pub(super) struct Started {
        continued_from_run_id: Text,
        pub execution_deadline_at: Text,
        pub run_deadline_at: Text,
    }
}

pub(super) fn started(run: &RunSnapshot) -> Started {
    let first = run
        .events
        .iter()
        .find(|event| event.event_type == EventType::WorkflowStarted);
    loose::read(first.and_then(|event| event.payload.as_deref()))
}

/// The run itself and those its links name, as far as they are known.
pub(super) fn related(
    run: &RunSnapshot,
    workflow: &Section,
    relatives: &[Relative],
) -> Vec<RelatedRun> {
    let last = run.events.iter().rev().map(|event| &event.event_type);
    let own = RelatedRun {
        run: run.run.clone(),
        status_bucket: run.summary.as_ref().map(|row| row.status_bucket.clone()),
        closed_reason: run
            .summary
            .as_ref()
            .and_then(|row| row.closed_reason.clone()),
        summary_started_at: run.summary.as_ref().and_then(|row| row.started_at),
        summary_closed_at: run.summary.as_ref().and_then(|row| row.closed_at),
        summary_liveness: None,
        continued_from_run_id: started(run).continued_from_run_id.0,
        terminal_event: last.clone().find(|word| TERMINAL.contains(word)).cloned(),
    };
    let mut found = vec![own.clone()];
    for relative in relatives {
        let entry = &relative.entry;
        // One that has no number was known by its link alone.
        let number = entry.0.get("run_number").and_then(Value::as_i64);
        let (Some(id), Some(instance), Some(number)) =
            (relative.id("run"), relative.id("instance"), number)
        else {
            continue;
        };
        if found.iter().any(|known| known.run.id == id) {
            continue;
        }
        let continues = entry.text("type").as_deref() == Some("continue_as_new");
        let mut other = blank(&own, &id, &instance);
        other.run.run_number = number;
        other.run.workflow_type = entry.text("workflow_type").unwrap_or_default();
        other.run.workflow_class = entry.text("class").unwrap_or_default();
        other.run.status = RunStatus::from(entry.text("status").unwrap_or_default());
        other.run.closed_reason = entry.text("closed_reason").map(Into::into);
        other.status_bucket = entry.text("status_bucket").map(Into::into);
        other.closed_reason.clone_from(&other.run.closed_reason);
        other.continued_from_run_id =
            (continues && !relative.is_parent).then(|| run.run.id.clone());
        found.push(other);
    }
    // The current run may be one no link names. Its number is not carried: at least the next.
    if let Some(id) = workflow.text("current_run_id")
        && found.iter().all(|known| known.run.id != id)
    {
        let mut current = blank(&own, &id, &run.run.workflow_instance_id);
        current.run.run_number = run.run.run_number.saturating_add(1);
        current.run.workflow_type.clone_from(&run.run.workflow_type);
        found.push(current);
    }
    found.sort_by(|a, b| {
        let (a, b) = (&a.run, &b.run);
        (&a.workflow_instance_id, a.run_number).cmp(&(&b.workflow_instance_id, b.run_number))
    });
    found
}

/// Another run of which nothing is known but its ids.
fn blank(own: &RelatedRun, id: &str, instance: &str) -> RelatedRun {
    RelatedRun {
        run: RunRow {
            id: id.to_owned(),
            workflow_instance_id: instance.to_owned(),
            workflow_class: String::new(),
            workflow_type: String::new(),
            status: RunStatus::from(String::new()),
            closed_reason: None,
            business_key: None,
            visibility_labels: None,
            arguments: None,
            output: None,
            started_at: None,
            closed_at: None,
            archived_at: None,
            last_progress_at: None,
            ..own.run.clone()
        },
        status_bucket: None,
        closed_reason: None,
        summary_started_at: None,
        summary_closed_at: None,
        summary_liveness: None,
        continued_from_run_id: None,
        terminal_event: None,
    }
}
