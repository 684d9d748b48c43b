//! Everything about one run at one instant, in a constant number of statements.

use std::collections::{BTreeSet, HashMap};

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::runs::extras;
use crate::{
    db::{DbError, Json, Row, Snapshot, Statement},
    durable::stored::{
        AttemptRow, ClosedReason, CommandRow, EventType, ExecutionRow, FailureRecord, HeartbeatRow,
        HistoryEvent, LineageEntry, LinkRow, MessageRow, RunRow, RunSummary, SignalRow,
        StatusBucket, TaskRow, TimelineEntry, TimerEntry, TimerRow, UpdateRow, WaitEntry,
        loose::{self, Text},
    },
};

/// Most related runs that are read of a few instances: a chain may have thousands.
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

/// Which runs are read.
#[derive(Clone, Copy, Debug)]
pub enum Which<'a> {
    One(&'a str),
    /// Ids in the database's own order: beyond the first, up to and including the second.
    Range {
        after: Option<&'a str>,
        until: Option<&'a str>,
    },
}

impl Which<'_> {
    /// Pushes the condition on a column that holds a run's id; every such column is indexed.
    pub fn push(self, q: &mut Statement, column: &'static str) {
        match self {
            Self::One(id) => {
                q.push(column).push(" = ").bind(id);
            }
            Self::Range { after, until } => {
                q.push(column).push(" is not null");
                if let Some(after) = after {
                    q.push(" and ").push(column).push(" > ").bind(after);
                }
                if let Some(until) = until {
                    q.push(" and ").push(column).push(" <= ").bind(until);
                }
            }
        }
    }
}

impl RunSnapshot {
    /// Reads one run; none when there is no such run.
    pub async fn load(
        snapshot: &mut Snapshot,
        run_id: &str,
        timeline: TimelineCache,
    ) -> Result<Option<Self>, DbError> {
        let mut runs = Self::load_all(snapshot, Which::One(run_id), timeline).await?;
        let Some(run) = runs.first_mut() else {
            return Ok(None);
        };
        (run.memo, run.search_attributes) = extras::free_form(snapshot, run_id).await?;
        run.story = run
            .memo
            .get(crate::demo::STORY_MEMO)
            .and_then(Value::as_str)
            .map(str::to_owned);
        Ok(runs.pop())
    }

    /// Reads many runs, in the same number of statements. What runs say about themselves in
    /// memos and search attributes is left out.
    pub async fn load_all(
        snapshot: &mut Snapshot,
        which: Which<'_>,
        timeline: TimelineCache,
    ) -> Result<Vec<Self>, DbError> {
        let mut reader = Reader { snapshot, which };
        let runs = reader.runs().await?;
        if runs.is_empty() && matches!(which, Which::One(_)) {
            return Ok(Vec::new());
        }
        let end_of_timeline = match (timeline, which) {
            (TimelineCache::Presence, Which::One(_)) => " order by sequence limit 1",
            _ => " order by sequence, history_event_id",
        };
        let mut summaries = reader
            .rows(
                RunSummary::TABLE,
                RunSummary::COLUMNS,
                "id",
                "",
                RunSummary::read,
            )
            .await?;
        let mut events = reader
            .of_run(
                HistoryEvent::TABLE,
                HistoryEvent::COLUMNS,
                " order by sequence",
                HistoryEvent::read,
            )
            .await?;
        let mut links = reader.links().await?;
        let instances: Vec<BTreeSet<String>> = runs
            .iter()
            .map(|(run, _)| related_instances(run, events.of(&run.id), links.of(&run.id)))
            .collect();
        let related = related_runs(
            reader.snapshot,
            &instances.iter().flatten().cloned().collect(),
        )
        .await?;
        let mut of_instance: HashMap<&str, Vec<&RelatedRun>> = HashMap::new();
        for other in &related {
            let instance = other.run.workflow_instance_id.as_str();
            of_instance.entry(instance).or_default().push(other);
        }
        let mut timeline_entries = reader
            .of_run(
                TimelineEntry::TABLE,
                TimelineEntry::COLUMNS,
                end_of_timeline,
                TimelineEntry::read,
            )
            .await?;
        let mut tasks = reader
            .of_run(
                TaskRow::TABLE,
                TaskRow::COLUMNS,
                " order by available_at, created_at, id",
                TaskRow::read,
            )
            .await?;
        let mut executions = reader
            .of_run(
                ExecutionRow::TABLE,
                ExecutionRow::COLUMNS,
                " order by sequence",
                ExecutionRow::read,
            )
            .await?;
        let mut attempts = reader
            .of_run(
                AttemptRow::TABLE,
                AttemptRow::COLUMNS,
                " order by attempt_number, started_at, id",
                AttemptRow::read,
            )
            .await?;
        let mut timers = reader
            .of_run(
                TimerRow::TABLE,
                TimerRow::COLUMNS,
                " order by sequence",
                TimerRow::read,
            )
            .await?;
        let mut commands = reader
            .of_run(
                CommandRow::TABLE,
                CommandRow::COLUMNS,
                " order by command_sequence, created_at, id",
                CommandRow::read,
            )
            .await?;
        let mut signals = reader
            .of_run(
                SignalRow::TABLE,
                SignalRow::COLUMNS,
                " order by command_sequence, received_at, created_at, id",
                SignalRow::read,
            )
            .await?;
        let mut updates = reader
            .of_run(
                UpdateRow::TABLE,
                UpdateRow::COLUMNS,
                " order by command_sequence, accepted_at, created_at, id",
                UpdateRow::read,
            )
            .await?;
        let mut failures = reader
            .of_run(
                FailureRecord::TABLE,
                FailureRecord::COLUMNS,
                " order by created_at desc",
                FailureRecord::read,
            )
            .await?;
        let mut messages = reader
            .of_run(
                MessageRow::TABLE,
                MessageRow::COLUMNS,
                " order by stream_key, sequence",
                MessageRow::read,
            )
            .await?;
        let mut wait_entries = reader
            .of_run(
                WaitEntry::TABLE,
                WaitEntry::COLUMNS,
                " order by position",
                WaitEntry::read,
            )
            .await?;
        let mut timer_entries = reader
            .of_run(
                TimerEntry::TABLE,
                TimerEntry::COLUMNS,
                " order by position",
                TimerEntry::read,
            )
            .await?;
        let mut lineage_entries = reader
            .of_run(
                LineageEntry::TABLE,
                LineageEntry::COLUMNS,
                " order by position",
                LineageEntry::read,
            )
            .await?;
        let heartbeats = reader.heartbeats().await?;
        Ok(runs
            .into_iter()
            .zip(instances)
            .map(|((run, instance), instances)| {
                let id = run.id.as_str();
                let timeline_entries = timeline_entries.take(id);
                Self {
                    summary: summaries.take(id).pop(),
                    events: events.take(id),
                    tasks: tasks.take(id),
                    executions: executions.take(id),
                    attempts: attempts.take(id),
                    timers: timers.take(id),
                    commands: commands.take(id),
                    signals: signals.take(id),
                    updates: updates.take(id),
                    failures: failures.take(id),
                    links: links.take(id),
                    memo: Map::new(),
                    search_attributes: Map::new(),
                    messages: messages.take(id),
                    heartbeats: heartbeats.clone(),
                    related: instances
                        .iter()
                        .filter_map(|instance| of_instance.get(instance.as_str()))
                        .flatten()
                        .map(|other| (*other).clone())
                        .collect(),
                    wait_entries: wait_entries.take(id),
                    has_timeline_entries: !timeline_entries.is_empty(),
                    timeline_entries: if timeline == TimelineCache::Whole {
                        timeline_entries
                    } else {
                        Vec::new()
                    },
                    timer_entries: timer_entries.take(id),
                    lineage_entries: lineage_entries.take(id),
                    story: None,
                    run,
                    instance,
                }
            })
            .collect())
    }
}

/// Rows by the id of their run, each run's in the order they were read.
struct ByRun<T>(HashMap<String, Vec<T>>);

impl<T> ByRun<T> {
    fn read(rows: Vec<Row>, read: fn(&mut Row) -> Result<T, DbError>) -> Result<Self, DbError> {
        let mut groups: HashMap<String, Vec<T>> = HashMap::new();
        for mut row in rows {
            let value = read(&mut row)?;
            groups
                .entry(row.text("owner_run_id")?)
                .or_default()
                .push(value);
        }
        Ok(Self(groups))
    }

    fn of(&self, run_id: &str) -> &[T] {
        self.0.get(run_id).map_or(&[], Vec::as_slice)
    }

    fn take(&mut self, run_id: &str) -> Vec<T> {
        self.0.remove(run_id).unwrap_or_default()
    }
}

/// The statements behind a snapshot, each served by an index on the run's id.
struct Reader<'s> {
    snapshot: &'s mut Snapshot,
    which: Which<'s>,
}

impl Reader<'_> {
    async fn rows<T>(
        &mut self,
        table: &'static str,
        columns: &'static str,
        key: &'static str,
        end: &'static str,
        read: fn(&mut Row) -> Result<T, DbError>,
    ) -> Result<ByRun<T>, DbError> {
        let mut q = self.snapshot.statement();
        if !q.has_table(table) {
            return Ok(ByRun(HashMap::new()));
        }
        q.push("select ")
            .columns(table, columns)
            .push(", ")
            .push(key)
            .push(" as owner_run_id from {")
            .push(table)
            .push("} where ");
        self.which.push(&mut q, key);
        q.push(end);
        ByRun::read(self.snapshot.fetch(q).await?, read)
    }

    async fn of_run<T>(
        &mut self,
        table: &'static str,
        columns: &'static str,
        end: &'static str,
        read: fn(&mut Row) -> Result<T, DbError>,
    ) -> Result<ByRun<T>, DbError> {
        self.rows(table, columns, "workflow_run_id", end, read)
            .await
    }

    /// The runs, and the facts of their instances beside them.
    async fn runs(&mut self) -> Result<Vec<(RunRow, InstanceFacts)>, DbError> {
        let mut q = self.snapshot.statement();
        q.push("select ").columns(RunRow::TABLE, RunRow::COLUMNS).push(
            ", (select i.namespace from {workflow_instances} i where i.id = r.workflow_instance_id) as instance_namespace\
             , (select i.business_key from {workflow_instances} i where i.id = r.workflow_instance_id) as instance_business_key\
             , (select i.visibility_labels from {workflow_instances} i where i.id = r.workflow_instance_id) as instance_labels\
             , (select i.execution_timeout_seconds from {workflow_instances} i where i.id = r.workflow_instance_id) as instance_timeout \
             from {workflow_runs} r where ",
        );
        self.which.push(&mut q, "id");
        q.push(" order by id");
        self.snapshot
            .fetch(q)
            .await?
            .iter_mut()
            .map(|row| {
                let run = RunRow::read(row)?;
                let instance = InstanceFacts {
                    namespace: row.opt_text("instance_namespace")?,
                    business_key: row.opt_text("instance_business_key")?,
                    visibility_labels: row.opt_json("instance_labels")?,
                    execution_timeout_seconds: row.opt_int("instance_timeout")?,
                };
                Ok((run, instance))
            })
            .collect()
    }

    async fn links(&mut self) -> Result<ByRun<LinkRow>, DbError> {
        let mut q = self.snapshot.statement();
        if !q.has_table(LinkRow::TABLE) {
            return Ok(ByRun(HashMap::new()));
        }
        // Two lookups instead of an `or`, which would scan on some planners.
        q.push("select ")
            .columns(LinkRow::TABLE, LinkRow::COLUMNS)
            .push(", parent_workflow_run_id as owner_run_id from {workflow_links} where ");
        self.which.push(&mut q, "parent_workflow_run_id");
        q.push(" union all select ")
            .columns(LinkRow::TABLE, LinkRow::COLUMNS)
            .push(", child_workflow_run_id as owner_run_id from {workflow_links} where ");
        self.which.push(&mut q, "child_workflow_run_id");
        q.push(" and parent_workflow_run_id <> child_workflow_run_id");
        let mut links = ByRun::read(self.snapshot.fetch(q).await?, LinkRow::read)?;
        for links in links.0.values_mut() {
            links.sort_by_key(|link| link.created_at);
        }
        Ok(links)
    }

    async fn heartbeats(&mut self) -> Result<Vec<HeartbeatRow>, DbError> {
        heartbeats(self.snapshot).await
    }
}

/// What workers lately said of themselves, the newest first, up to a limit.
pub async fn heartbeats(snapshot: &mut Snapshot) -> Result<Vec<HeartbeatRow>, DbError> {
    let mut q = snapshot.statement();
    if !q.has_table(HeartbeatRow::TABLE) {
        return Ok(Vec::new());
    }
    q.push("select ")
        .columns(HeartbeatRow::TABLE, HeartbeatRow::COLUMNS)
        .push(" from {workflow_worker_compatibility_heartbeats} order by expires_at desc limit ")
        .bind(HEARTBEATS);
    snapshot
        .fetch(q)
        .await?
        .iter_mut()
        .map(HeartbeatRow::read)
        .collect()
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
    .bind(RELATED.max(u32::try_from(instances.len()).unwrap_or(u32::MAX).saturating_mul(20)));
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
fn related_instances(run: &RunRow, events: &[HistoryEvent], links: &[LinkRow]) -> BTreeSet<String> {
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
