//! The other runs a run is told beside: those of its instance, and of every instance that a link
//! or an event of it names.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::lot::Events;
use crate::{
    db::Statement,
    durable::stored::{
        EventType, RunRow,
        loose::{self, Text},
    },
};

/// Most runs of the instance that are read, newest first, and as many of related instances: a
/// chain may have thousands.
const RELATED: u32 = 2_000;

/// The runs of an instance and of those related to it, with the few facts others need of them.
/// `selected` is among them, however old it is.
pub(super) fn push_related(
    q: &mut Statement,
    instance: &str,
    selected: Option<&str>,
    others: &BTreeSet<String>,
) {
    push_facts(q);
    q.push(
        " from {workflow_runs} r where id in (select id from (select id from \
         (select id from {workflow_runs} where workflow_instance_id = ",
    )
    .bind(instance)
    .push(" order by run_number desc limit ")
    .bind(RELATED)
    .push(") as own");
    if !others.is_empty() {
        q.push(
            " union all select id from (select id from {workflow_runs} where workflow_instance_id in ",
        )
        .bind_list(others)
        .push(" order by workflow_instance_id, run_number limit ")
        .bind(RELATED)
        .push(") as others");
    }
    if let Some(selected) = selected {
        q.push(" union all select id from {workflow_runs} where id = ")
            .bind(selected);
    }
    q.push(") as found)");
}

/// The same for many instances at once, fewer of each where there are many.
pub(super) fn push_related_to_many(q: &mut Statement, instances: &BTreeSet<String>) {
    let few = u32::try_from(instances.len())
        .unwrap_or(u32::MAX)
        .saturating_mul(20);
    push_facts(q);
    q.push(" from {workflow_runs} r where workflow_instance_id in ")
        .bind_list(instances)
        .push(" order by workflow_instance_id, run_number limit ")
        .bind(RELATED.max(few));
}

fn push_facts(q: &mut Statement) {
    q.push("select ").push(RunRow::COLUMNS).push(
        ", (select s.status_bucket from {workflow_run_summaries} s where s.id = r.id) as summary_status_bucket\
         , (select s.closed_reason from {workflow_run_summaries} s where s.id = r.id) as summary_closed_reason\
         , (select s.started_at from {workflow_run_summaries} s where s.id = r.id) as summary_started_at\
         , (select s.closed_at from {workflow_run_summaries} s where s.id = r.id) as summary_closed_at\
         , (select e.payload from {workflow_history_events} e where e.workflow_run_id = r.id \
           and e.event_type = 'WorkflowStarted' and e.sequence <= 10 order by e.sequence limit 1) as started_payload\
         , (select e.event_type from {workflow_history_events} e where e.workflow_run_id = r.id \
           and e.event_type in ",
    )
    .bind_list(TERMINAL.iter().map(EventType::as_str))
    .push(" order by e.sequence desc limit 1) as terminal_event");
}

pub(super) const TERMINAL: [EventType; 6] = [
    EventType::WorkflowCompleted,
    EventType::WorkflowFailed,
    EventType::WorkflowTimedOut,
    EventType::WorkflowCancelled,
    EventType::WorkflowTerminated,
    EventType::WorkflowContinuedAsNew,
];

/// The keys by which events name other instances.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Named {
    parent_workflow_instance_id: Text,
    child_workflow_instance_id: Text,
}

/// Every other instance a link or an event names as parent or child.
pub(super) fn related_instances<'l>(
    instance: &str,
    events: &Events,
    linked: impl Iterator<Item = &'l str>,
) -> BTreeSet<String> {
    let mut instances: BTreeSet<String> = linked.map(str::to_owned).collect();
    for (event_type, payload) in events.each() {
        if matches!(
            event_type,
            EventType::WorkflowStarted
                | EventType::ChildWorkflowScheduled
                | EventType::ChildRunStarted
                | EventType::ChildRunCompleted
                | EventType::ChildRunFailed
                | EventType::ChildRunCancelled
                | EventType::ChildRunTerminated
        ) {
            let named: Named = loose::read(payload);
            instances.extend(named.parent_workflow_instance_id.0);
            instances.extend(named.child_workflow_instance_id.0);
        }
    }
    instances.remove(instance);
    instances
}
