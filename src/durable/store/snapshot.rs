//! Everything about one run at one instant, in a constant number of statements.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::runs::extras;
use crate::{
    db::{DbError, Json, Row, Snapshot},
    durable::stored::{
        AttemptRow, ClosedReason, CommandRow, EventType, ExecutionRow, FailureRecord, HeartbeatRow,
        HistoryEvent, LineageEntry, LinkRow, MessageRow, RunRow, RunSummary, SignalRow,
        StatusBucket, TaskRow, TimelineEntry, TimerEntry, TimerRow, UpdateRow, WaitEntry,
        loose::{self, Text},
    },
};

/// Most runs of one related instance that are read: a chain may have thousands.
const RELATED: u32 = 2_000;

/// How much of the stored timeline to read, for saying whether it is up to date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimelineCache {
    /// Every row, to compare each with what history says.
    Whole,
    /// Only whether there is any: a page that shows a window compares nothing.
    Presence,
}

/// One run and all that can be known about it, as rows.
#[derive(Clone, Debug)]
pub struct RunSnapshot {
    pub run: RunRow,
    pub instance: InstanceFacts,
    pub summary: Option<RunSummary>,
    /// By sequence.
    pub events: Vec<HistoryEvent>,
    /// By `available_at`.
    pub tasks: Vec<TaskRow>,
    /// By sequence.
    pub executions: Vec<ExecutionRow>,
    /// By attempt number.
    pub attempts: Vec<AttemptRow>,
    /// By sequence.
    pub timers: Vec<TimerRow>,
    /// By command sequence.
    pub commands: Vec<CommandRow>,
    pub signals: Vec<SignalRow>,
    pub updates: Vec<UpdateRow>,
    /// Newest first.
    pub failures: Vec<FailureRecord>,
    /// Links in which this run is the parent or the child, oldest first.
    pub links: Vec<LinkRow>,
    pub memo: Map<String, Value>,
    pub search_attributes: Map<String, Value>,
    pub messages: Vec<MessageRow>,
    /// All heartbeats, expired ones too: whether one counts is a question of the clock.
    pub heartbeats: Vec<HeartbeatRow>,
    /// Runs of this instance and of every instance it is related to, this run included, by
    /// instance and run number.
    pub related: Vec<RelatedRun>,
    pub wait_entries: Vec<WaitEntry>,
    pub timeline_entries: Vec<TimelineEntry>,
    /// Whether the stored timeline has any row, also when it was not read.
    pub has_timeline_entries: bool,
    pub timer_entries: Vec<TimerEntry>,
    pub lineage_entries: Vec<LineageEntry>,
    /// The line a demo situation tells about itself.
    pub story: Option<String>,
}

/// What the instance says where the run itself says nothing.
#[derive(Clone, Debug, Default)]
pub struct InstanceFacts {
    pub namespace: Option<String>,
    pub business_key: Option<String>,
    pub visibility_labels: Option<Json>,
    pub execution_timeout_seconds: Option<i64>,
}

/// Another run: its own row, and the few facts others need of its summary and history.
#[derive(Clone, Debug)]
pub struct RelatedRun {
    pub run: RunRow,
    /// Its summary's; none when it has no summary.
    pub status_bucket: Option<StatusBucket>,
    pub closed_reason: Option<ClosedReason>,
    pub summary_started_at: Option<DateTime<Utc>>,
    pub summary_closed_at: Option<DateTime<Utc>>,
    /// The run it says it continues, by its first event.
    pub continued_from_run_id: Option<String>,
    /// The type of its terminal event.
    pub terminal_event: Option<EventType>,
}

impl RunSnapshot {
    /// Reads one run; none when there is no such run.
    pub async fn load(
        snapshot: &mut Snapshot,
        run_id: &str,
        timeline: TimelineCache,
    ) -> Result<Option<Self>, DbError> {
        Reader { snapshot, run_id }.load(timeline, true).await
    }
}

/// The statements behind a snapshot, each served by an index on the run's id.
pub(super) struct Reader<'s> {
    pub snapshot: &'s mut Snapshot,
    pub run_id: &'s str,
}

impl Reader<'_> {
    /// Without `steps`, what grows with the history is left out.
    pub async fn load(
        mut self,
        timeline: TimelineCache,
        steps: bool,
    ) -> Result<Option<RunSnapshot>, DbError> {
        let Some((run, instance)) = self.run().await? else {
            return Ok(None);
        };
        let end_of_timeline = match timeline {
            TimelineCache::Whole => " order by sequence",
            TimelineCache::Presence => " order by sequence limit 1",
        };
        let summary = self
            .rows(
                RunSummary::TABLE,
                RunSummary::COLUMNS,
                "id",
                "",
                RunSummary::read,
            )
            .await?
            .pop();
        let events = self
            .of_steps(
                steps,
                HistoryEvent::TABLE,
                HistoryEvent::COLUMNS,
                " order by sequence",
                HistoryEvent::read,
            )
            .await?;
        let links = self.links().await?;
        let (memo, search_attributes) = extras::free_form(self.snapshot, self.run_id).await?;
        let related = if steps {
            related_runs(self.snapshot, &related_instances(&run, &events, &links)).await?
        } else {
            Vec::new()
        };
        let timeline_entries = self
            .of_run(
                TimelineEntry::TABLE,
                TimelineEntry::COLUMNS,
                end_of_timeline,
                TimelineEntry::read,
            )
            .await?;
        Ok(Some(RunSnapshot {
            story: memo
                .get(crate::demo::STORY_MEMO)
                .and_then(Value::as_str)
                .map(str::to_owned),
            tasks: self
                .of_steps(
                    steps,
                    TaskRow::TABLE,
                    TaskRow::COLUMNS,
                    " order by available_at, created_at, id",
                    TaskRow::read,
                )
                .await?,
            executions: self
                .of_steps(
                    steps,
                    ExecutionRow::TABLE,
                    ExecutionRow::COLUMNS,
                    " order by sequence",
                    ExecutionRow::read,
                )
                .await?,
            attempts: self
                .of_steps(
                    steps,
                    AttemptRow::TABLE,
                    AttemptRow::COLUMNS,
                    " order by attempt_number, started_at, id",
                    AttemptRow::read,
                )
                .await?,
            timers: self
                .of_steps(
                    steps,
                    TimerRow::TABLE,
                    TimerRow::COLUMNS,
                    " order by sequence",
                    TimerRow::read,
                )
                .await?,
            commands: self
                .of_run(
                    CommandRow::TABLE,
                    CommandRow::COLUMNS,
                    " order by command_sequence, created_at, id",
                    CommandRow::read,
                )
                .await?,
            signals: self
                .of_run(
                    SignalRow::TABLE,
                    SignalRow::COLUMNS,
                    " order by command_sequence, received_at, created_at, id",
                    SignalRow::read,
                )
                .await?,
            updates: self
                .of_run(
                    UpdateRow::TABLE,
                    UpdateRow::COLUMNS,
                    " order by command_sequence, accepted_at, created_at, id",
                    UpdateRow::read,
                )
                .await?,
            failures: self
                .of_run(
                    FailureRecord::TABLE,
                    FailureRecord::COLUMNS,
                    " order by created_at desc",
                    FailureRecord::read,
                )
                .await?,
            messages: self
                .of_steps(
                    steps,
                    MessageRow::TABLE,
                    MessageRow::COLUMNS,
                    " order by stream_key, sequence",
                    MessageRow::read,
                )
                .await?,
            wait_entries: self
                .of_steps(
                    steps,
                    WaitEntry::TABLE,
                    WaitEntry::COLUMNS,
                    " order by position",
                    WaitEntry::read,
                )
                .await?,
            timer_entries: self
                .of_steps(
                    steps,
                    TimerEntry::TABLE,
                    TimerEntry::COLUMNS,
                    " order by position",
                    TimerEntry::read,
                )
                .await?,
            lineage_entries: self
                .of_run(
                    LineageEntry::TABLE,
                    LineageEntry::COLUMNS,
                    " order by position",
                    LineageEntry::read,
                )
                .await?,
            heartbeats: if steps {
                self.heartbeats().await?
            } else {
                Vec::new()
            },
            has_timeline_entries: !timeline_entries.is_empty(),
            timeline_entries: if timeline == TimelineCache::Whole {
                timeline_entries
            } else {
                Vec::new()
            },
            run,
            instance,
            summary,
            events,
            links,
            memo,
            search_attributes,
            related,
        }))
    }

    async fn rows<T>(
        &mut self,
        table: &'static str,
        columns: &'static str,
        key: &'static str,
        end: &'static str,
        read: fn(&mut Row) -> Result<T, DbError>,
    ) -> Result<Vec<T>, DbError> {
        let mut q = self.snapshot.statement();
        if !q.has_table(table) {
            return Ok(Vec::new());
        }
        q.push("select ")
            .columns(table, columns)
            .push(" from {")
            .push(table)
            .push("} where ");
        q.push(key).push(" = ").bind(self.run_id).push(end);
        self.snapshot.fetch(q).await?.iter_mut().map(read).collect()
    }

    async fn of_run<T>(
        &mut self,
        table: &'static str,
        columns: &'static str,
        end: &'static str,
        read: fn(&mut Row) -> Result<T, DbError>,
    ) -> Result<Vec<T>, DbError> {
        self.rows(table, columns, "workflow_run_id", end, read)
            .await
    }

    /// As [`Self::of_run`], for what is read only with the steps.
    async fn of_steps<T>(
        &mut self,
        steps: bool,
        table: &'static str,
        columns: &'static str,
        end: &'static str,
        read: fn(&mut Row) -> Result<T, DbError>,
    ) -> Result<Vec<T>, DbError> {
        if !steps {
            return Ok(Vec::new());
        }
        self.of_run(table, columns, end, read).await
    }

    /// The run, and the facts of its instance beside it.
    async fn run(&mut self) -> Result<Option<(RunRow, InstanceFacts)>, DbError> {
        let mut q = self.snapshot.statement();
        q.push("select ").columns(RunRow::TABLE, RunRow::COLUMNS).push(
            ", (select i.namespace from {workflow_instances} i where i.id = r.workflow_instance_id) as instance_namespace\
             , (select i.business_key from {workflow_instances} i where i.id = r.workflow_instance_id) as instance_business_key\
             , (select i.visibility_labels from {workflow_instances} i where i.id = r.workflow_instance_id) as instance_labels\
             , (select i.execution_timeout_seconds from {workflow_instances} i where i.id = r.workflow_instance_id) as instance_timeout \
             from {workflow_runs} r where id = ",
        )
        .bind(self.run_id);
        let Some(mut row) = self.snapshot.fetch_one(q).await? else {
            return Ok(None);
        };
        let run = RunRow::read(&mut row)?;
        let instance = InstanceFacts {
            namespace: row.opt_text("instance_namespace")?,
            business_key: row.opt_text("instance_business_key")?,
            visibility_labels: row.opt_json("instance_labels")?,
            execution_timeout_seconds: row.opt_int("instance_timeout")?,
        };
        Ok(Some((run, instance)))
    }

    async fn links(&mut self) -> Result<Vec<LinkRow>, DbError> {
        let mut q = self.snapshot.statement();
        if !q.has_table(LinkRow::TABLE) {
            return Ok(Vec::new());
        }
        // Two lookups instead of an `or`, which would scan on some planners.
        q.push("select ")
            .columns(LinkRow::TABLE, LinkRow::COLUMNS)
            .push(" from {workflow_links} where parent_workflow_run_id = ")
            .bind(self.run_id)
            .push(" union all select ")
            .columns(LinkRow::TABLE, LinkRow::COLUMNS)
            .push(" from {workflow_links} where child_workflow_run_id = ")
            .bind(self.run_id)
            .push(" and parent_workflow_run_id <> ")
            .bind(self.run_id);
        let mut links: Vec<LinkRow> = self
            .snapshot
            .fetch(q)
            .await?
            .iter_mut()
            .map(LinkRow::read)
            .collect::<Result<_, _>>()?;
        links.sort_by_key(|link| link.created_at);
        Ok(links)
    }

    async fn heartbeats(&mut self) -> Result<Vec<HeartbeatRow>, DbError> {
        let mut q = self.snapshot.statement();
        if !q.has_table(HeartbeatRow::TABLE) {
            return Ok(Vec::new());
        }
        q.push("select ")
            .columns(HeartbeatRow::TABLE, HeartbeatRow::COLUMNS)
            .push(
                " from {workflow_worker_compatibility_heartbeats} order by expires_at desc limit ",
            )
            .bind(HEARTBEATS);
        self.snapshot
            .fetch(q)
            .await?
            .iter_mut()
            .map(HeartbeatRow::read)
            .collect()
    }
}

/// The runs of these instances, with the few facts others need of them.
pub async fn related_runs(
    snapshot: &mut Snapshot,
    instances: &BTreeSet<String>,
) -> Result<Vec<RelatedRun>, DbError> {
    let mut q = snapshot.statement();
    q.push("select ").columns(RunRow::TABLE, RunRow::COLUMNS).push(
        ", (select s.status_bucket from {workflow_run_summaries} s where s.id = r.id) as summary_bucket\
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
         from {workflow_runs} r where workflow_instance_id in ",
    )
    .bind_list(instances)
    .push(" order by workflow_instance_id, run_number limit ")
    .bind(RELATED);
    snapshot
        .fetch(q)
        .await?
        .iter_mut()
        .map(|row| {
            Ok(RelatedRun {
                run: RunRow::read(row)?,
                status_bucket: row.opt_text("summary_bucket")?.map(Into::into),
                closed_reason: row.opt_text("summary_closed_reason")?.map(Into::into),
                summary_started_at: row.opt_time("summary_started_at")?,
                summary_closed_at: row.opt_time("summary_closed_at")?,
                continued_from_run_id: {
                    let started: Started = loose::read(row.opt_text("started_payload")?.as_deref());
                    started.continued_from_run_id.0
                },
                terminal_event: row.opt_text("terminal_event")?.map(Into::into),
            })
        })
        .collect()
}

/// Most heartbeat rows read: more workers than this and the newest tell enough.
const HEARTBEATS: u32 = 2_000;

const TERMINAL: [EventType; 6] = [
    EventType::WorkflowCompleted,
    EventType::WorkflowFailed,
    EventType::WorkflowTimedOut,
    EventType::WorkflowCancelled,
    EventType::WorkflowTerminated,
    EventType::WorkflowContinuedAsNew,
];

/// The keys by which events name other instances and runs.
#[expect(clippy::struct_field_names, reason = "the engine's names")]
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Started {
    continued_from_run_id: Text,
    parent_workflow_instance_id: Text,
    child_workflow_instance_id: Text,
}

/// This instance, and every instance a link or an event names as parent or child.
pub(super) fn related_instances(
    run: &RunRow,
    events: &[HistoryEvent],
    links: &[LinkRow],
) -> BTreeSet<String> {
    let mut instances = BTreeSet::from([run.workflow_instance_id.clone()]);
    for link in links {
        instances.insert(link.parent_workflow_instance_id.clone());
        instances.insert(link.child_workflow_instance_id.clone());
    }
    for event in events {
        if matches!(
            event.event_type,
            EventType::WorkflowStarted
                | EventType::ChildWorkflowScheduled
                | EventType::ChildRunStarted
                | EventType::ChildRunCompleted
                | EventType::ChildRunFailed
                | EventType::ChildRunCancelled
                | EventType::ChildRunTerminated
        ) {
            let named: Started = event.as_payload();
            instances.extend(named.parent_workflow_instance_id.0);
            instances.extend(named.child_workflow_instance_id.0);
        }
    }
    instances
}
