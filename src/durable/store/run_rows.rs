//! The rows of one run as the database gives them, in one snapshot and a constant number of
//! statements, each served by an index on the run's id. Reading them is [`super::snapshot`]'s.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::{
    past::{History, HistoryCache, Version},
    runs::extras,
    snapshot::TimelineCache,
};
use crate::{
    db::{DbError, Row, Snapshot},
    durable::stored::{
        AttemptRow, CommandRow, EventType, ExecutionRow, FailureRecord, HeartbeatRow, HistoryEvent,
        LineageEntry, LinkRow, MessageRow, RunRow, RunSummary, SignalRow, TaskRow, TimelineEntry,
        TimerEntry, TimerRow, UpdateRow, WaitEntry,
        loose::{self, Text},
    },
};

/// Most runs of the instance that are read, newest first, and as many of related instances: a
/// chain may have thousands.
const RELATED: u32 = 2_000;

/// Most heartbeat rows read: more workers than this and the newest tell enough.
const HEARTBEATS: u32 = 2_000;

/// Unread rows, in the order their statements give.
#[derive(Clone, Debug)]
pub struct RunRows {
    /// The run, and the facts of its instance beside it under `instance_`.
    pub(super) run: Row,
    pub(super) summary: Vec<Row>,
    pub(super) events: Events,
    pub(super) links: Vec<Row>,
    pub(super) free_form: Vec<Row>,
    pub(super) related: Vec<Row>,
    pub(super) timeline_entries: Vec<Row>,
    pub(super) tasks: Vec<Row>,
    pub(super) executions: Vec<Row>,
    pub(super) attempts: Vec<Row>,
    pub(super) timers: Vec<Row>,
    pub(super) commands: Vec<Row>,
    pub(super) signals: Vec<Row>,
    pub(super) updates: Vec<Row>,
    pub(super) failures: Vec<Row>,
    pub(super) messages: Vec<Row>,
    pub(super) wait_entries: Vec<Row>,
    pub(super) timer_entries: Vec<Row>,
    pub(super) lineage_entries: Vec<Row>,
    pub(super) heartbeats: Vec<Row>,
}

/// A run's history: read before, or not yet.
#[derive(Clone, Debug)]
pub(super) enum Events {
    Known(History),
    Rows(Vec<Row>),
}

impl RunRows {
    /// None when there is no such run. A history in `past` is not read again.
    pub async fn fetch(
        snapshot: &mut Snapshot,
        run_id: &str,
        timeline: TimelineCache,
        past: Option<&HistoryCache>,
    ) -> Result<Option<(Self, Version)>, DbError> {
        let mut fetcher = Fetcher { snapshot, run_id };
        let Some(mut run) = fetcher.run().await? else {
            return Ok(None);
        };
        let version = Version {
            run_id: run_id.to_owned(),
            events: run.opt_int("history_events")?.unwrap_or(0),
            last_sequence: run.opt_int("history_last")?.unwrap_or(0),
        };
        let known = match past {
            Some(past) => past.get(&version).await,
            None => None,
        };
        let events = match known {
            Some(history) => Events::Known(history),
            None => Events::Rows(
                fetcher
                    .of_run(
                        HistoryEvent::TABLE,
                        HistoryEvent::COLUMNS,
                        " order by sequence",
                    )
                    .await?,
            ),
        };
        let links = fetcher.links().await?;
        let instance = run.peek("workflow_instance_id").unwrap_or_default();
        let others = related_instances(instance, &events, &links);
        let related = related_rows(fetcher.snapshot, instance, Some(run_id), &others).await?;
        let end_of_timeline = match timeline {
            TimelineCache::Whole => " order by sequence",
            TimelineCache::Presence => " order by sequence limit 1",
        };
        let rows = Self {
            summary: fetcher
                .rows(RunSummary::TABLE, RunSummary::COLUMNS, "id", "")
                .await?,
            free_form: extras::free_form_rows(fetcher.snapshot, run_id).await?,
            related,
            timeline_entries: fetcher
                .of_run(
                    TimelineEntry::TABLE,
                    TimelineEntry::COLUMNS,
                    end_of_timeline,
                )
                .await?,
            tasks: fetcher
                .of_run(
                    TaskRow::TABLE,
                    TaskRow::COLUMNS,
                    " order by available_at, created_at, id",
                )
                .await?,
            executions: fetcher
                .of_run(
                    ExecutionRow::TABLE,
                    ExecutionRow::COLUMNS,
                    " order by sequence",
                )
                .await?,
            attempts: fetcher
                .of_run(
                    AttemptRow::TABLE,
                    AttemptRow::COLUMNS,
                    " order by attempt_number, started_at, id",
                )
                .await?,
            timers: fetcher
                .of_run(TimerRow::TABLE, TimerRow::COLUMNS, " order by sequence")
                .await?,
            commands: fetcher
                .of_run(
                    CommandRow::TABLE,
                    CommandRow::COLUMNS,
                    " order by command_sequence, created_at, id",
                )
                .await?,
            signals: fetcher
                .of_run(
                    SignalRow::TABLE,
                    SignalRow::COLUMNS,
                    " order by command_sequence, received_at, created_at, id",
                )
                .await?,
            updates: fetcher
                .of_run(
                    UpdateRow::TABLE,
                    UpdateRow::COLUMNS,
                    " order by command_sequence, accepted_at, created_at, id",
                )
                .await?,
            failures: fetcher
                .of_run(
                    FailureRecord::TABLE,
                    FailureRecord::COLUMNS,
                    " order by created_at desc",
                )
                .await?,
            messages: fetcher
                .of_run(
                    MessageRow::TABLE,
                    MessageRow::COLUMNS,
                    " order by stream_key, sequence",
                )
                .await?,
            wait_entries: fetcher
                .of_run(WaitEntry::TABLE, WaitEntry::COLUMNS, " order by position")
                .await?,
            timer_entries: fetcher
                .of_run(TimerEntry::TABLE, TimerEntry::COLUMNS, " order by position")
                .await?,
            lineage_entries: fetcher
                .of_run(
                    LineageEntry::TABLE,
                    LineageEntry::COLUMNS,
                    " order by position",
                )
                .await?,
            heartbeats: fetcher.heartbeats().await?,
            run,
            events,
            links,
        };
        Ok(Some((rows, version)))
    }

    /// Every list of rows with its table, for tests that damage them.
    #[cfg(test)]
    pub(crate) fn lists(&mut self) -> Vec<(&'static str, &mut Vec<Row>)> {
        let Events::Rows(events) = &mut self.events else {
            unreachable!("nothing was read before")
        };
        vec![
            (RunSummary::TABLE, &mut self.summary),
            (HistoryEvent::TABLE, events),
            (LinkRow::TABLE, &mut self.links),
            (RunRow::TABLE, &mut self.related),
            (TimelineEntry::TABLE, &mut self.timeline_entries),
            (TaskRow::TABLE, &mut self.tasks),
            (ExecutionRow::TABLE, &mut self.executions),
            (AttemptRow::TABLE, &mut self.attempts),
            (TimerRow::TABLE, &mut self.timers),
            (CommandRow::TABLE, &mut self.commands),
            (SignalRow::TABLE, &mut self.signals),
            (UpdateRow::TABLE, &mut self.updates),
            (FailureRecord::TABLE, &mut self.failures),
            (MessageRow::TABLE, &mut self.messages),
            (WaitEntry::TABLE, &mut self.wait_entries),
            (TimerEntry::TABLE, &mut self.timer_entries),
            (LineageEntry::TABLE, &mut self.lineage_entries),
            (HeartbeatRow::TABLE, &mut self.heartbeats),
        ]
    }

    #[cfg(test)]
    pub(crate) fn own(&mut self) -> &mut Row {
        &mut self.run
    }
}

struct Fetcher<'s> {
    snapshot: &'s mut Snapshot,
    run_id: &'s str,
}

impl Fetcher<'_> {
    async fn rows(
        &mut self,
        table: &'static str,
        columns: &'static str,
        key: &'static str,
        end: &'static str,
    ) -> Result<Vec<Row>, DbError> {
        let mut q = self.snapshot.statement();
        q.push("select ")
            .push(columns)
            .push(" from {")
            .push(table)
            .push("} where ");
        q.push(key).push(" = ").bind(self.run_id).push(end);
        self.snapshot.fetch(q).await
    }

    async fn of_run(
        &mut self,
        table: &'static str,
        columns: &'static str,
        end: &'static str,
    ) -> Result<Vec<Row>, DbError> {
        self.rows(table, columns, "workflow_run_id", end).await
    }

    async fn run(&mut self) -> Result<Option<Row>, DbError> {
        let mut q = self.snapshot.statement();
        q.push("select ").push(RunRow::COLUMNS).push(
            ", (select i.namespace from {workflow_instances} i where i.id = r.workflow_instance_id) as instance_namespace\
             , (select i.business_key from {workflow_instances} i where i.id = r.workflow_instance_id) as instance_business_key\
             , (select i.visibility_labels from {workflow_instances} i where i.id = r.workflow_instance_id) as instance_visibility_labels\
             , (select i.execution_timeout_seconds from {workflow_instances} i where i.id = r.workflow_instance_id) as instance_execution_timeout_seconds\
             , (select count(*) from {workflow_history_events} e where e.workflow_run_id = r.id) as history_events\
             , (select max(e.sequence) from {workflow_history_events} e where e.workflow_run_id = r.id) as history_last \
             from {workflow_runs} r where id = ",
        )
        .bind(self.run_id);
        self.snapshot.fetch_one(q).await
    }

    async fn links(&mut self) -> Result<Vec<Row>, DbError> {
        let mut q = self.snapshot.statement();
        // Two lookups instead of an `or`, which would scan on some planners.
        q.push("select ")
            .push(LinkRow::COLUMNS)
            .push(" from {workflow_links} where parent_workflow_run_id = ")
            .bind(self.run_id)
            .push(" union all select ")
            .push(LinkRow::COLUMNS)
            .push(" from {workflow_links} where child_workflow_run_id = ")
            .bind(self.run_id)
            .push(" and parent_workflow_run_id <> ")
            .bind(self.run_id);
        self.snapshot.fetch(q).await
    }

    async fn heartbeats(&mut self) -> Result<Vec<Row>, DbError> {
        let mut q = self.snapshot.statement();
        q.push("select ")
            .push(HeartbeatRow::COLUMNS)
            .push(
                " from {workflow_worker_compatibility_heartbeats} order by expires_at desc limit ",
            )
            .bind(HEARTBEATS);
        self.snapshot.fetch(q).await
    }
}

/// The runs of an instance and of those related to it, with the few facts others need of them.
/// `selected` is among them, however old it is.
pub(super) async fn related_rows(
    snapshot: &mut Snapshot,
    instance: &str,
    selected: Option<&str>,
    others: &BTreeSet<String>,
) -> Result<Vec<Row>, DbError> {
    let mut q = snapshot.statement();
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
    .push(
        " order by e.sequence desc limit 1) as terminal_event \
         from {workflow_runs} r where id in (select id from (select id from \
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
    snapshot.fetch(q).await
}

const TERMINAL: [EventType; 6] = [
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

impl Events {
    /// The type and payload of each.
    fn each(&self) -> Box<dyn Iterator<Item = (EventType, Option<&str>)> + '_> {
        match self {
            Self::Known(history) => Box::new(
                history
                    .iter()
                    .map(|event| (event.event_type.clone(), event.payload.as_deref())),
            ),
            Self::Rows(rows) => Box::new(rows.iter().filter_map(|row| {
                let event_type = row.peek("event_type").map(EventType::from)?;
                Some((event_type, row.peek("payload")))
            })),
        }
    }
}

/// Every other instance a link or an event names as parent or child.
fn related_instances(instance: &str, events: &Events, links: &[Row]) -> BTreeSet<String> {
    let mut instances = BTreeSet::new();
    for link in links {
        instances.extend(link.peek("parent_workflow_instance_id").map(str::to_owned));
        instances.extend(link.peek("child_workflow_instance_id").map(str::to_owned));
    }
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
