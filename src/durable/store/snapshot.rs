//! Everything about one run at one instant, in a constant number of statements.

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

use super::{
    lot::Events,
    past::{History, HistoryCache},
    related::{Others, push_related},
    run_rows::{Extent, RunRows, push_heartbeats},
    runs::extras,
};
use crate::{
    db::{DbError, Json, Row, Snapshot},
    durable::{
        arrange::arrange,
        stored::{
            AttemptRow, Cells, ClosedReason, CommandRow, EventType, ExecutionRow, FailureRecord,
            HeartbeatRow, LineageEntry, LinkRow, LivenessState, MessageRow, Notices, Problem,
            RunRow, RunSummary, SignalRow, StatusBucket, TaskRow, TimelineEntry, TimerEntry,
            TimerRow, UpdateRow, WaitEntry,
            loose::{self, Text, shape},
        },
    },
};

pub use super::run_rows::Which;

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
#[cfg_attr(test, derive(Default))]
pub struct RunSnapshot {
    pub run: RunRow,
    pub instance: InstanceFacts,
    pub summary: Option<RunSummary>,
    /// By sequence.
    pub events: History,
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
    /// What the rows hold that could not be taken as it stands.
    pub notices: Notices,
    /// The policy that hid something of it; without one everything is as stored.
    pub hidden_by: Option<String>,
}

/// What the instance says where the run itself says nothing.
#[derive(Clone, Debug, Default)]
pub struct InstanceFacts {
    pub namespace: Option<String>,
    pub business_key: Option<String>,
    pub visibility_labels: Option<Json>,
    pub execution_timeout_seconds: Option<i64>,
    /// The row is not there.
    pub missing: bool,
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
    pub summary_liveness: Option<LivenessState>,
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
        Self::load_with(snapshot, run_id, timeline, None).await
    }

    /// The same; a history that was read before need not be read again.
    pub async fn load_with(
        snapshot: &mut Snapshot,
        run_id: &str,
        timeline: TimelineCache,
        past: Option<&HistoryCache>,
    ) -> Result<Option<Self>, DbError> {
        let fetched = RunRows::fetch(snapshot, run_id, timeline, Extent::Whole, past).await?;
        let Some((rows, version)) = fetched else {
            return Ok(None);
        };
        let run = Self::of(rows, timeline)?;
        if let Some(past) = past {
            past.keep(version, run.events.clone()).await;
        }
        Ok(Some(run))
    }

    /// Reads many runs, in the same number of statements; without their memos and attributes.
    pub async fn load_all(
        snapshot: &mut Snapshot,
        which: Which<'_>,
        timeline: TimelineCache,
    ) -> Result<Vec<Self>, DbError> {
        let runs = RunRows::fetch_all(snapshot, which, timeline, Extent::Whole, None).await?;
        runs.into_iter()
            .map(|(rows, _)| Self::of(rows, timeline))
            .collect()
    }

    /// Makes sense of the rows, whatever they hold.
    pub fn of(mut rows: RunRows, timeline: TimelineCache) -> Result<Self, DbError> {
        let mut notices = Notices::default();
        let run = RunRow::read(&mut rows.run, &mut notices)?;
        let id = run.workflow_instance_id.clone();
        let mut cells = Cells::joined(
            "workflow_instances",
            "instance_",
            id,
            &mut rows.run,
            &mut notices,
        );
        let missing = cells.opt_text("instance_id")?.is_none();
        if missing {
            cells.note("instance_id", Problem::MissingRow, None);
        }
        let instance = InstanceFacts {
            namespace: cells.opt_text("instance_namespace")?,
            business_key: cells.opt_text("instance_business_key")?,
            visibility_labels: cells.opt_json("instance_visibility_labels")?,
            execution_timeout_seconds: cells.opt_int("instance_execution_timeout_seconds")?,
            missing,
        };
        let n = &mut notices;
        let summary = rows.summary.read(n)?.pop();
        let events = match rows.events {
            Events::Known(history) => history,
            Events::Rows(rows) => {
                let mut notices = Notices::default();
                let events = rows.read(&mut notices)?;
                History::new(events, notices)
            }
        };
        n.extend(events.notices());
        let mut links = read(rows.links, n, LinkRow::read)?;
        links.sort_by_key(|link| link.created_at);
        let (memo, search_attributes) = extras::free_form(rows.free_form, n)?;
        let related = related(rows.related, n)?;
        let has_timeline_entries = !rows.timeline_entries.is_empty();
        // Sorted here: where no index gives the order, a database would carry whole rows through
        // its sort.
        let mut tasks = rows.tasks.read(n)?;
        arrange(
            &mut tasks,
            |task: &TaskRow| (task.available_at, task.created_at),
            |task| &task.id,
        );
        let mut attempts = rows.attempts.read(n)?;
        arrange(
            &mut attempts,
            |attempt: &AttemptRow| (attempt.attempt_number, attempt.started_at),
            |attempt| &attempt.id,
        );
        let timeline_entries = match timeline {
            TimelineCache::Whole => rows.timeline_entries.read(n)?,
            TimelineCache::Presence => Vec::new(),
        };
        Ok(Self {
            story: memo
                .get(crate::demo::STORY_MEMO)
                .and_then(Value::as_str)
                .map(str::to_owned),
            tasks,
            executions: rows.executions.read(n)?,
            attempts,
            timers: rows.timers.read(n)?,
            commands: rows.commands.read(n)?,
            signals: rows.signals.read(n)?,
            updates: rows.updates.read(n)?,
            failures: rows.failures.read(n)?,
            messages: rows.messages.read(n)?,
            wait_entries: rows.wait_entries.read(n)?,
            timer_entries: rows.timer_entries.read(n)?,
            lineage_entries: rows.lineage_entries.read(n)?,
            heartbeats: read(rows.heartbeats, n, HeartbeatRow::read)?,
            timeline_entries,
            has_timeline_entries,
            run,
            instance,
            summary,
            events,
            links,
            memo,
            search_attributes,
            related,
            notices,
            hidden_by: None,
        })
    }
}

pub(super) fn read<T>(
    rows: Vec<Row>,
    notices: &mut Notices,
    one: fn(&mut Row, &mut Notices) -> Result<T, DbError>,
) -> Result<Vec<T>, DbError> {
    rows.into_iter()
        .map(|mut row| one(&mut row, notices))
        .collect()
}

/// What workers lately said of themselves, the newest first, up to a limit.
pub async fn heartbeats(snapshot: &mut Snapshot) -> Result<Vec<HeartbeatRow>, DbError> {
    let mut q = snapshot.statement();
    push_heartbeats(&mut q);
    let rows = snapshot.fetch(q).await?;
    read(rows, &mut Notices::default(), HeartbeatRow::read)
}

/// The runs of an instance, with the few facts others need of them; `selected` is among them,
/// however old it is.
pub(super) async fn related_runs(
    snapshot: &mut Snapshot,
    instance: &str,
    selected: Option<&str>,
    others: &Others,
) -> Result<Vec<RelatedRun>, DbError> {
    let mut q = snapshot.statement();
    push_related(&mut q, instance, selected, others);
    let rows = snapshot.fetch(q).await?;
    related(rows, &mut Notices::default())
}

/// By instance and run number.
fn related(rows: Vec<Row>, notices: &mut Notices) -> Result<Vec<RelatedRun>, DbError> {
    let mut runs = read(rows, notices, RelatedRun::read)?;
    runs.sort_by(|a, b| {
        let (a, b) = (&a.run, &b.run);
        (&a.workflow_instance_id, a.run_number).cmp(&(&b.workflow_instance_id, b.run_number))
    });
    Ok(runs)
}

shape! {
    /// The key by which a run's first event names the run before it.
    #[derive(Debug)]
    struct Started {
        continued_from_run_id: Text,
    }
}

impl RelatedRun {
    fn read(row: &mut Row, notices: &mut Notices) -> Result<Self, DbError> {
        let run = RunRow::read(row, notices)?;
        let started: Started = loose::read(row.opt_text("started_payload")?.as_deref());
        let terminal_event = row.opt_text("terminal_event")?.map(Into::into);
        let mut cells = Cells::joined(RunSummary::TABLE, "summary_", run.id.clone(), row, notices);
        Ok(Self {
            status_bucket: cells.opt_word("summary_status_bucket")?,
            closed_reason: cells.opt_word("summary_closed_reason")?,
            summary_started_at: cells.opt_time("summary_started_at")?,
            summary_closed_at: cells.opt_time("summary_closed_at")?,
            summary_liveness: cells.opt_word("summary_liveness_state")?,
            continued_from_run_id: started.continued_from_run_id.0,
            terminal_event,
            run,
        })
    }
}
