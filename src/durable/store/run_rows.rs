//! The rows of one run as the database gives them, in one snapshot and a constant number of
//! statements, each served by an index on the run's id. Reading them is [`super::snapshot`]'s.

use std::collections::{BTreeSet, HashMap};

use serde::Deserialize;

use super::{
    past::{History, HistoryCache, Version},
    runs::extras,
    snapshot::TimelineCache,
};
use crate::{
    db::{DbError, Row, Snapshot, Statement},
    durable::stored::{
        AttemptRow, CommandRow, EventType, ExecutionRow, FailureRecord, HeartbeatRow, HistoryEvent,
        LineageEntry, LinkRow, MessageRow, Notices, RunRow, RunSummary, SignalRow, Stored, TaskRow,
        TimelineEntry, TimerEntry, TimerRow, UpdateRow, WaitEntry,
        loose::{self, Text},
    },
};

/// Most runs of the instance that are read, newest first, and as many of related instances: a
/// chain may have thousands.
const RELATED: u32 = 2_000;

/// Most heartbeat rows read: more workers than this and the newest tell enough.
const HEARTBEATS: u32 = 2_000;

/// The rows of one table.
#[derive(Clone, Debug)]
pub(super) enum Lot<T> {
    /// Not looked at yet.
    Rows(Vec<Row>),
    /// Read as they arrived, so that a long run's rows and what they say never stand in memory
    /// side by side.
    Read(Vec<T>, Notices),
}

impl<T> Default for Lot<T> {
    fn default() -> Self {
        Self::Rows(Vec::new())
    }
}

impl<T> From<Vec<Row>> for Lot<T> {
    fn from(rows: Vec<Row>) -> Self {
        Self::Rows(rows)
    }
}

impl<T: Stored> Lot<T> {
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Rows(rows) => rows.is_empty(),
            Self::Read(read, _) => read.is_empty(),
        }
    }

    pub(super) fn read(self, notices: &mut Notices) -> Result<Vec<T>, DbError> {
        match self {
            Self::Rows(rows) => rows
                .into_iter()
                .map(|mut row| T::read(&mut row, notices))
                .collect(),
            Self::Read(read, noted) => {
                notices.extend(&noted);
                Ok(read)
            }
        }
    }

    #[cfg(test)]
    fn rows(&mut self) -> &mut Vec<Row> {
        match self {
            Self::Rows(rows) => rows,
            Self::Read(..) => unreachable!("these rows were asked for as they are"),
        }
    }
}

/// The rows of one run, in the order their statements give.
#[derive(Clone, Debug)]
pub struct RunRows {
    /// The run, and the facts of its instance beside it under `instance_`.
    pub(super) run: Row,
    pub(super) summary: Lot<RunSummary>,
    pub(super) events: Events,
    pub(super) links: Vec<Row>,
    pub(super) free_form: Vec<Row>,
    pub(super) related: Vec<Row>,
    pub(super) timeline_entries: Lot<TimelineEntry>,
    pub(super) tasks: Lot<TaskRow>,
    pub(super) executions: Lot<ExecutionRow>,
    pub(super) attempts: Lot<AttemptRow>,
    pub(super) timers: Lot<TimerRow>,
    pub(super) commands: Lot<CommandRow>,
    pub(super) signals: Lot<SignalRow>,
    pub(super) updates: Lot<UpdateRow>,
    pub(super) failures: Lot<FailureRecord>,
    pub(super) messages: Lot<MessageRow>,
    pub(super) wait_entries: Lot<WaitEntry>,
    pub(super) timer_entries: Lot<TimerEntry>,
    pub(super) lineage_entries: Lot<LineageEntry>,
    pub(super) heartbeats: Vec<Row>,
}

/// A run's history: read before, or now.
#[derive(Clone, Debug)]
pub(super) enum Events {
    Known(History),
    Rows(Lot<HistoryEvent>),
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

/// How much of a run is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    Whole,
    /// Without what grows with its steps, the other runs it is related to, and the workers.
    Head,
    /// The whole run, its rows left as they are for tests that damage them.
    #[cfg(test)]
    Unread,
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

/// Rows by the id of their run, each run's in the order they came.
#[derive(Debug, Default)]
struct ByRun<L>(HashMap<String, L>);

impl<L: Default> ByRun<L> {
    fn take(&mut self, run_id: &str) -> L {
        self.0.remove(run_id).unwrap_or_default()
    }
}

impl RunRows {
    /// None when there is no such run. A history in `past` is not read again.
    pub async fn fetch(
        snapshot: &mut Snapshot,
        run_id: &str,
        timeline: TimelineCache,
        extent: Extent,
        past: Option<&HistoryCache>,
    ) -> Result<Option<(Self, Version)>, DbError> {
        let runs = Self::fetch_all(snapshot, Which::One(run_id), timeline, extent, past).await?;
        let Some((mut rows, version)) = runs.into_iter().next() else {
            return Ok(None);
        };
        rows.free_form = extras::free_form_rows(snapshot, run_id).await?;
        Ok(Some((rows, version)))
    }

    /// Many runs in the same number of statements. What runs say about themselves in memos and
    /// search attributes is left out.
    pub async fn fetch_all(
        snapshot: &mut Snapshot,
        which: Which<'_>,
        timeline: TimelineCache,
        extent: Extent,
        past: Option<&HistoryCache>,
    ) -> Result<Vec<(Self, Version)>, DbError> {
        let mut fetcher = Fetcher {
            snapshot,
            which,
            extent,
        };
        let mut runs = Vec::new();
        for mut run in fetcher.runs().await? {
            let version = Version {
                run_id: run.peek("id").unwrap_or_default().to_owned(),
                events: run.opt_int("history_events")?.unwrap_or(0),
                last_sequence: run.opt_int("history_last").ok().flatten(),
            };
            runs.push((run, version));
        }
        if runs.is_empty() && matches!(which, Which::One(_)) {
            return Ok(Vec::new());
        }
        let mut known = HashMap::new();
        if let Some(past) = past {
            for (_, version) in &runs {
                if let Some(history) = past.get(version).await {
                    known.insert(version.run_id.clone(), history);
                }
            }
        }
        let mut events = if !known.is_empty() && known.len() == runs.len() {
            ByRun::default()
        } else {
            fetcher
                .of_steps::<HistoryEvent>(" order by sequence")
                .await?
        };
        let mut links = fetcher.links().await?;
        let mut all = Vec::new();
        for (run, version) in runs {
            let events = match known.remove(&version.run_id) {
                Some(history) => Events::Known(history),
                None => Events::Rows(events.take(&version.run_id)),
            };
            let links = links.take(&version.run_id);
            let instance = run.peek("workflow_instance_id").unwrap_or_default();
            let named = links.iter().flat_map(|link| {
                let of = |column| link.peek(column);
                [
                    of("parent_workflow_instance_id"),
                    of("child_workflow_instance_id"),
                ]
            });
            let others = related_instances(instance, &events, named.flatten());
            all.push((run, version, events, links, others));
        }
        let mut related = ByRun::default();
        let mut heartbeats = Vec::new();
        if extent != Extent::Head {
            related = fetcher.related(&all).await?;
            heartbeats = heartbeat_rows(fetcher.snapshot).await?;
        }
        let end_of_timeline = match (timeline, which) {
            (TimelineCache::Presence, Which::One(_)) => " order by sequence limit 1",
            _ => " order by sequence, history_event_id",
        };
        let mut summaries = fetcher.of::<RunSummary>("id", "").await?;
        let mut timeline_entries = fetcher.of_run::<TimelineEntry>(end_of_timeline).await?;
        let mut tasks = fetcher.of_steps::<TaskRow>("").await?;
        let mut executions = fetcher
            .of_steps::<ExecutionRow>(" order by sequence")
            .await?;
        let mut attempts = fetcher.of_steps::<AttemptRow>("").await?;
        let mut timers = fetcher.of_steps::<TimerRow>(" order by sequence").await?;
        let mut commands = fetcher
            .of_run::<CommandRow>(" order by command_sequence, created_at, id")
            .await?;
        let mut signals = fetcher
            .of_run::<SignalRow>(" order by command_sequence, received_at, created_at, id")
            .await?;
        let mut updates = fetcher
            .of_run::<UpdateRow>(" order by command_sequence, accepted_at, created_at, id")
            .await?;
        let mut failures = fetcher
            .of_run::<FailureRecord>(" order by created_at desc")
            .await?;
        let mut messages = fetcher
            .of_steps::<MessageRow>(" order by stream_key, sequence")
            .await?;
        let mut wait_entries = fetcher.of_steps::<WaitEntry>(" order by position").await?;
        let mut timer_entries = fetcher.of_steps::<TimerEntry>(" order by position").await?;
        let mut lineage_entries = fetcher.of_run::<LineageEntry>(" order by position").await?;
        let rows = all.into_iter().map(|(run, version, events, links, _)| {
            let id = version.run_id.as_str();
            let rows = Self {
                run,
                summary: summaries.take(id),
                events,
                links,
                free_form: Vec::new(),
                related: related.take(id),
                timeline_entries: timeline_entries.take(id),
                tasks: tasks.take(id),
                executions: executions.take(id),
                attempts: attempts.take(id),
                timers: timers.take(id),
                commands: commands.take(id),
                signals: signals.take(id),
                updates: updates.take(id),
                failures: failures.take(id),
                messages: messages.take(id),
                wait_entries: wait_entries.take(id),
                timer_entries: timer_entries.take(id),
                lineage_entries: lineage_entries.take(id),
                heartbeats: heartbeats.clone(),
            };
            (rows, version)
        });
        Ok(rows.collect())
    }

    /// Every list of rows with its table, for tests that damage them.
    #[cfg(test)]
    pub(crate) fn lists(&mut self) -> Vec<(&'static str, &mut Vec<Row>)> {
        let Events::Rows(events) = &mut self.events else {
            unreachable!("nothing was read before")
        };
        vec![
            (RunSummary::TABLE, self.summary.rows()),
            (HistoryEvent::TABLE, events.rows()),
            (LinkRow::TABLE, &mut self.links),
            (RunRow::TABLE, &mut self.related),
            (TimelineEntry::TABLE, self.timeline_entries.rows()),
            (TaskRow::TABLE, self.tasks.rows()),
            (ExecutionRow::TABLE, self.executions.rows()),
            (AttemptRow::TABLE, self.attempts.rows()),
            (TimerRow::TABLE, self.timers.rows()),
            (CommandRow::TABLE, self.commands.rows()),
            (SignalRow::TABLE, self.signals.rows()),
            (UpdateRow::TABLE, self.updates.rows()),
            (FailureRecord::TABLE, self.failures.rows()),
            (MessageRow::TABLE, self.messages.rows()),
            (WaitEntry::TABLE, self.wait_entries.rows()),
            (TimerEntry::TABLE, self.timer_entries.rows()),
            (LineageEntry::TABLE, self.lineage_entries.rows()),
            (HeartbeatRow::TABLE, &mut self.heartbeats),
        ]
    }

    #[cfg(test)]
    pub(crate) fn own(&mut self) -> &mut Row {
        &mut self.run
    }
}

/// The column that says whose a row is, where rows of several runs come together.
const OWNER: &str = "owner_run_id";

struct Fetcher<'s> {
    snapshot: &'s mut Snapshot,
    which: Which<'s>,
    extent: Extent,
}

/// A run, its history and links, and the other instances these name.
type Begun = (Row, Version, Events, Vec<Row>, BTreeSet<String>);

impl Fetcher<'_> {
    /// The rows of a table whose `key` names the run.
    async fn of<T: Stored>(
        &mut self,
        key: &'static str,
        end: &'static str,
    ) -> Result<ByRun<Lot<T>>, DbError> {
        let mut q = self.snapshot.statement();
        q.push("select ").push(T::COLUMNS);
        self.push_owner(&mut q, key);
        q.push(" from {").push(T::TABLE).push("} where ");
        self.which.push(&mut q, key);
        q.push(end);
        #[cfg(test)]
        if self.extent == Extent::Unread {
            let rows = self.grouped(q).await?;
            let lots = rows.0.into_iter().map(|(id, rows)| (id, rows.into()));
            return Ok(ByRun(lots.collect()));
        }
        let mut by_run: HashMap<String, (Vec<T>, Notices)> = HashMap::new();
        if let Which::One(id) = self.which {
            let (read, notices) = by_run.entry(id.to_owned()).or_default();
            self.snapshot
                .fetch_each(q, |mut row| {
                    read.push(T::read(&mut row, notices)?);
                    Ok(())
                })
                .await?;
        } else {
            self.snapshot
                .fetch_each(q, |mut row| {
                    let owner = row.peek(OWNER).unwrap_or_default().to_owned();
                    let (read, notices) = by_run.entry(owner).or_default();
                    read.push(T::read(&mut row, notices)?);
                    Ok(())
                })
                .await?;
        }
        let lots = by_run
            .into_iter()
            .map(|(id, (read, notices))| (id, Lot::Read(read, notices)));
        Ok(ByRun(lots.collect()))
    }

    async fn of_run<T: Stored>(&mut self, end: &'static str) -> Result<ByRun<Lot<T>>, DbError> {
        self.of("workflow_run_id", end).await
    }

    /// As [`Self::of_run`], for what grows with the steps.
    async fn of_steps<T: Stored>(&mut self, end: &'static str) -> Result<ByRun<Lot<T>>, DbError> {
        if self.extent == Extent::Head {
            return Ok(ByRun::default());
        }
        self.of_run(end).await
    }

    /// Of several runs, each row says whose it is.
    fn push_owner(&self, q: &mut Statement, key: &'static str) {
        if matches!(self.which, Which::Range { .. }) {
            q.push(", ").push(key).push(" as ").push(OWNER);
        }
    }

    async fn grouped(&mut self, q: Statement) -> Result<ByRun<Vec<Row>>, DbError> {
        let rows = self.snapshot.fetch(q).await?;
        let mut by_run: ByRun<Vec<Row>> = ByRun::default();
        if let Which::One(id) = self.which {
            by_run.0.insert(id.to_owned(), rows);
            return Ok(by_run);
        }
        for row in rows {
            let owner = row.peek(OWNER).unwrap_or_default().to_owned();
            by_run.0.entry(owner).or_default().push(row);
        }
        Ok(by_run)
    }

    async fn runs(&mut self) -> Result<Vec<Row>, DbError> {
        let mut q = self.snapshot.statement();
        q.push("select ").push(RunRow::COLUMNS).push(
            ", (select i.namespace from {workflow_instances} i where i.id = r.workflow_instance_id) as instance_namespace\
             , (select i.business_key from {workflow_instances} i where i.id = r.workflow_instance_id) as instance_business_key\
             , (select i.visibility_labels from {workflow_instances} i where i.id = r.workflow_instance_id) as instance_visibility_labels\
             , (select i.execution_timeout_seconds from {workflow_instances} i where i.id = r.workflow_instance_id) as instance_execution_timeout_seconds\
             , (select count(*) from {workflow_history_events} e where e.workflow_run_id = r.id) as history_events\
             , (select max(e.sequence) from {workflow_history_events} e where e.workflow_run_id = r.id) as history_last \
             from {workflow_runs} r where ",
        );
        self.which.push(&mut q, "id");
        q.push(" order by id");
        self.snapshot.fetch(q).await
    }

    async fn links(&mut self) -> Result<ByRun<Vec<Row>>, DbError> {
        let mut q = self.snapshot.statement();
        // Two lookups instead of an `or`, which would scan on some planners.
        q.push("select ").push(LinkRow::COLUMNS);
        self.push_owner(&mut q, "parent_workflow_run_id");
        q.push(" from {workflow_links} where ");
        self.which.push(&mut q, "parent_workflow_run_id");
        q.push(" union all select ").push(LinkRow::COLUMNS);
        self.push_owner(&mut q, "child_workflow_run_id");
        q.push(" from {workflow_links} where ");
        self.which.push(&mut q, "child_workflow_run_id");
        q.push(" and parent_workflow_run_id <> child_workflow_run_id");
        self.grouped(q).await
    }

    /// The runs related to each, in one statement.
    async fn related(&mut self, runs: &[Begun]) -> Result<ByRun<Vec<Row>>, DbError> {
        let mut by_run = ByRun::default();
        if let (Which::One(id), [(run, .., others)]) = (self.which, runs) {
            let instance = run.peek("workflow_instance_id").unwrap_or_default();
            let rows = related_rows(self.snapshot, instance, Some(id), others).await?;
            by_run.0.insert(id.to_owned(), rows);
            return Ok(by_run);
        }
        let own = |run: &Row| run.peek("workflow_instance_id").map(str::to_owned);
        let instances: BTreeSet<String> = runs
            .iter()
            .flat_map(|(run, .., others)| others.iter().cloned().chain(own(run)))
            .collect();
        let mut of_instance: HashMap<String, Vec<Row>> = HashMap::new();
        for row in related_to_many(self.snapshot, &instances).await? {
            of_instance
                .entry(own(&row).unwrap_or_default())
                .or_default()
                .push(row);
        }
        for (run, version, .., others) in runs {
            let rows = others.iter().cloned().chain(own(run));
            let rows = rows
                .filter_map(|instance| of_instance.get(&instance))
                .flatten();
            by_run
                .0
                .insert(version.run_id.clone(), rows.cloned().collect());
        }
        Ok(by_run)
    }
}

/// What workers lately said of themselves, the newest first, up to a limit.
pub(super) async fn heartbeat_rows(snapshot: &mut Snapshot) -> Result<Vec<Row>, DbError> {
    let mut q = snapshot.statement();
    q.push("select ")
        .push(HeartbeatRow::COLUMNS)
        .push(" from {workflow_worker_compatibility_heartbeats} order by expires_at desc limit ")
        .bind(HEARTBEATS);
    snapshot.fetch(q).await
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
    push_related(&mut q);
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
    snapshot.fetch(q).await
}

/// The same for many instances at once, fewer of each where there are many.
async fn related_to_many(
    snapshot: &mut Snapshot,
    instances: &BTreeSet<String>,
) -> Result<Vec<Row>, DbError> {
    let few = u32::try_from(instances.len())
        .unwrap_or(u32::MAX)
        .saturating_mul(20);
    let mut q = snapshot.statement();
    push_related(&mut q);
    q.push(" from {workflow_runs} r where workflow_instance_id in ")
        .bind_list(instances)
        .push(" order by workflow_instance_id, run_number limit ")
        .bind(RELATED.max(few));
    snapshot.fetch(q).await
}

fn push_related(q: &mut Statement) {
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

impl Events {
    /// The type and payload of each.
    fn each(&self) -> Box<dyn Iterator<Item = (EventType, Option<&str>)> + '_> {
        match self {
            Self::Known(history) => Box::new(history.iter().map(of_event)),
            Self::Rows(Lot::Read(events, _)) => Box::new(events.iter().map(of_event)),
            Self::Rows(Lot::Rows(rows)) => Box::new(rows.iter().filter_map(|row| {
                let event_type = row.peek("event_type").map(EventType::from)?;
                Some((event_type, row.peek("payload")))
            })),
        }
    }
}

fn of_event(event: &HistoryEvent) -> (EventType, Option<&str>) {
    (event.event_type.clone(), event.payload.as_deref())
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
