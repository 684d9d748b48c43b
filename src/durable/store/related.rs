//! The other runs a run is told beside: those of its instance, and of every instance that a link
//! or an event of it names.

use std::collections::BTreeSet;

use super::lot::Events;
use crate::{
    db::Statement,
    durable::stored::{
        EventType, RunRow,
        loose::{self, Text, shape},
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
    others: &Others,
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
    if !others.instances.is_empty() {
        q.push(
            " union all select id from (select id from {workflow_runs} where workflow_instance_id in ",
        )
        .bind_list(few(&others.instances))
        .push(" order by workflow_instance_id, run_number limit ")
        .bind(RELATED)
        .push(") as others");
    }
    let named: BTreeSet<&str> = selected
        .into_iter()
        .chain(few(&others.runs).map(String::as_str))
        .collect();
    if !named.is_empty() {
        q.push(" union all select id from {workflow_runs} where id in ")
            .bind_list(named);
    }
    q.push(") as found)");
}

/// No more than are read of them: a database takes only so many values in one statement, and a
/// run may have called more children than that.
fn few(ids: &BTreeSet<String>) -> impl Iterator<Item = &String> {
    ids.iter().take(RELATED as usize)
}

/// Most instances asked for in one statement.
const INSTANCES: usize = 20_000;

/// The same for many instances at once, fewer of each where there are many.
pub(super) fn push_related_to_many(q: &mut Statement, instances: &BTreeSet<String>) {
    let few = u32::try_from(instances.len())
        .unwrap_or(u32::MAX)
        .saturating_mul(20);
    push_facts(q);
    q.push(" from {workflow_runs} r where workflow_instance_id in ")
        .bind_list(instances.iter().take(INSTANCES))
        .push(" order by workflow_instance_id, run_number limit ")
        .bind(RELATED.max(few));
}

/// What ended a run is looked for among its last 500 events: little is recorded after it, and of a
/// run that goes on the whole history would be read.
fn push_facts(q: &mut Statement) {
    q.push("select ").push(RunRow::COLUMNS).push(
        ", (select s.status_bucket from {workflow_run_summaries} s where s.id = r.id) as summary_status_bucket\
         , (select s.closed_reason from {workflow_run_summaries} s where s.id = r.id) as summary_closed_reason\
         , (select s.started_at from {workflow_run_summaries} s where s.id = r.id) as summary_started_at\
         , (select s.closed_at from {workflow_run_summaries} s where s.id = r.id) as summary_closed_at\
         , (select s.liveness_state from {workflow_run_summaries} s where s.id = r.id) as summary_liveness_state\
         , (select e.payload from {workflow_history_events} e where e.workflow_run_id = r.id \
           and e.event_type = 'WorkflowStarted' and e.sequence <= 10 order by e.sequence limit 1) as started_payload\
         , (select e.event_type from {workflow_history_events} e where e.workflow_run_id = r.id \
           and e.sequence > case when r.last_history_sequence > 500 then r.last_history_sequence - 500 else -1 end \
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

shape! {
    /// The keys by which events name other runs.
    #[derive(Debug)]
    #[expect(clippy::struct_field_names, reason = "the engine's names")]
    struct Named {
        parent_workflow_instance_id: Text,
        parent_workflow_run_id: Text,
        child_workflow_instance_id: Text,
        child_workflow_run_id: Text,
    }
}

/// Whom a run is related to.
#[derive(Debug, Default)]
pub(super) struct Others {
    pub instances: BTreeSet<String>,
    /// Parents, and those whose instance nobody names.
    pub runs: BTreeSet<String>,
}

/// Everyone a link or an event names as parent or child.
pub(super) fn related_to<'l>(
    instance: &str,
    events: &Events,
    linked: impl Iterator<Item = &'l str>,
) -> Others {
    let mut others = Others {
        instances: linked.map(str::to_owned).collect(),
        runs: BTreeSet::new(),
    };
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
            // Read also where its instance is one of more than are asked for.
            others.runs.extend(named.parent_workflow_run_id.0);
            others.instances.extend(named.parent_workflow_instance_id.0);
            match named.child_workflow_instance_id.0 {
                Some(instance) => {
                    others.instances.insert(instance);
                }
                None => others.runs.extend(named.child_workflow_run_id.0),
            }
        }
    }
    others.instances.remove(instance);
    others
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::durable::{
        store::past::History,
        stored::{HistoryEvent, Notices},
    };

    #[test]
    fn a_relative_is_found_by_its_instance_or_else_by_its_run() {
        let event = |event_type, payload: serde_json::Value| HistoryEvent {
            event_type,
            payload: Some(payload.to_string()),
            ..HistoryEvent::default()
        };
        let events = vec![
            event(
                EventType::WorkflowStarted,
                json!({"parent_workflow_run_id": "p"}),
            ),
            event(
                EventType::ChildRunStarted,
                json!({"child_workflow_instance_id": "i", "child_workflow_run_id": "c"}),
            ),
            event(
                EventType::ChildRunStarted,
                json!({"child_workflow_instance_id": "own"}),
            ),
        ];
        let events = Events::Known(History::new(events, Notices::default()));
        let others = related_to("own", &events, ["linked"].into_iter());
        assert_eq!(
            others.instances.into_iter().collect::<Vec<_>>(),
            ["i", "linked"]
        );
        assert_eq!(others.runs.into_iter().collect::<Vec<_>>(), ["p"]);
    }
}
