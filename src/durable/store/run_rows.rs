//! The rows of one run as the database gives them, in one snapshot and a constant number of
//! statements, each served by an index on the run's id. Reading them is [`super::snapshot`]'s.

use std::collections::HashMap;

use super::{
    lot::{ByRun, Events, Lot},
    past::{HistoryCache, Version},
    related::{Others, push_related, push_related_to_many, related_to},
    runs::extras,
    snapshot::TimelineCache,
};
use crate::{
    db::{DbError, Question, Row, Snapshot, Statement},
    durable::stored::{
        AttemptRow, CommandRow, ExecutionRow, FailureRecord, HeartbeatRow, HistoryEvent,
        LineageEntry, LinkRow, MessageRow, RunRow, RunSummary, SignalRow, Stored, TaskRow,
        TimelineEntry, TimerEntry, TimerRow, UpdateRow, WaitEntry,
    },
};

/// Most heartbeat rows read: more workers than this and the newest tell enough.
const HEARTBEATS: u32 = 2_000;

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

impl Extent {
    fn lot<T: Stored>(self) -> Lot<T> {
        match self {
            Self::Whole | Self::Head => Lot::to_read(),
            #[cfg(test)]
            Self::Unread => Lot::default(),
        }
    }
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
        Ok(runs.into_iter().next())
    }

    /// Many runs in the same number of statements. What runs say about themselves in memos and
    /// search attributes is read of one run only.
    pub async fn fetch_all(
        snapshot: &mut Snapshot,
        which: Which<'_>,
        timeline: TimelineCache,
        extent: Extent,
        past: Option<&HistoryCache>,
    ) -> Result<Vec<(Self, Version)>, DbError> {
        let mut of = Tables {
            blank: snapshot.statement(),
            which,
            extent,
            room: 0,
        };
        let mut runs = Vec::new();
        for mut run in snapshot.fetch(of.runs()).await? {
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
        if let [(_, version)] = runs.as_slice() {
            of.room = usize::try_from(version.events).unwrap_or(0);
        }
        let mut known = HashMap::new();
        if let Some(past) = past {
            for (_, version) in &runs {
                if let Some(history) = past.get(version).await {
                    known.insert(version.run_id.clone(), history);
                }
            }
        }

        let events = ByRun::default();
        let links = ByRun::default();
        let free_form = ByRun::default();
        let heartbeats = ByRun::default();
        let summaries = ByRun::default();
        let timeline_entries = ByRun::default();
        let tasks = ByRun::default();
        let executions = ByRun::default();
        let attempts = ByRun::default();
        let timers = ByRun::default();
        let commands = ByRun::default();
        let signals = ByRun::default();
        let updates = ByRun::default();
        let failures = ByRun::default();
        let messages = ByRun::default();
        let wait_entries = ByRun::default();
        let timer_entries = ByRun::default();
        let lineage_entries = ByRun::default();
        let end_of_timeline = match (timeline, which) {
            (TimelineCache::Presence, Which::One(_)) => " order by sequence limit 1",
            _ => " order by sequence, history_event_id",
        };
        let mut questions = vec![
            of.links(&links),
            of.table::<RunSummary>("id", "", &summaries),
            of.run::<TimelineEntry>(end_of_timeline, &timeline_entries),
            of.run::<CommandRow>(" order by command_sequence, created_at, id", &commands),
            of.run::<SignalRow>(
                " order by command_sequence, received_at, created_at, id",
                &signals,
            ),
            of.run::<UpdateRow>(
                " order by command_sequence, accepted_at, created_at, id",
                &updates,
            ),
            of.run::<FailureRecord>(" order by created_at desc", &failures),
            of.run::<LineageEntry>(" order by position, lineage_id", &lineage_entries),
        ];
        if let Which::One(id) = which {
            let mut q = snapshot.statement();
            extras::push_free_form(&mut q, id);
            questions.push(Tables::rows(q, &free_form));
        }
        if extent != Extent::Head {
            if known.is_empty() || known.len() < runs.len() {
                questions.push(of.run::<HistoryEvent>(" order by sequence", &events));
            }
            let mut q = snapshot.statement();
            push_heartbeats(&mut q);
            questions.extend([
                Tables::rows(q, &heartbeats),
                of.run::<TaskRow>("", &tasks),
                of.run::<ExecutionRow>(" order by sequence", &executions),
                of.run::<AttemptRow>("", &attempts),
                of.run::<TimerRow>(" order by sequence", &timers),
                of.run::<MessageRow>(" order by stream_key, sequence", &messages),
                of.run::<WaitEntry>(" order by position", &wait_entries),
                of.run::<TimerEntry>(" order by position", &timer_entries),
            ]);
        }
        snapshot.ask(questions).await?;

        let mut begun = Vec::new();
        for (run, version) in runs {
            let events = match known.remove(&version.run_id) {
                Some(history) => Events::Known(history),
                None => Events::Rows(events.take(&version.run_id)),
            };
            let links = links.take(&version.run_id);
            let instance = run.peek("workflow_instance_id").unwrap_or_default();
            let named = links.iter().flat_map(|link: &Row| {
                let of = |column| link.peek(column);
                [
                    of("parent_workflow_instance_id"),
                    of("child_workflow_instance_id"),
                ]
            });
            let others = related_to(instance, &events, named.flatten());
            begun.push(Begun {
                run,
                version,
                events,
                links,
                others,
            });
        }
        let mut related = ByRun::default();
        let heartbeats: Vec<Row> = heartbeats.take(ALL);
        if extent != Extent::Head {
            related = of.related(snapshot, &begun).await?;
        }
        let rows = begun.into_iter().map(|begun| {
            let id = begun.version.run_id.as_str();
            let rows = Self {
                run: begun.run,
                summary: summaries.take(id),
                events: begun.events,
                links: begun.links,
                free_form: free_form.take(ALL),
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
            (rows, begun.version)
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
    pub(crate) fn run_id(&self) -> &str {
        self.run.peek("id").unwrap_or_default()
    }

    #[cfg(test)]
    pub(crate) fn own(&mut self) -> &mut Row {
        &mut self.run
    }
}

/// Where rows are kept that are not one run's.
const ALL: &str = "";

/// The column that says whose a row is, where rows of several runs come together.
const OWNER: &str = "owner_run_id";

/// A run as far as its own rows tell it, and whom these name.
struct Begun {
    run: Row,
    version: Version,
    events: Events,
    links: Vec<Row>,
    others: Others,
}

impl Begun {
    fn instance(&self) -> &str {
        instance_of(&self.run)
    }
}

fn instance_of(run: &Row) -> &str {
    run.peek("workflow_instance_id").unwrap_or_default()
}

/// The questions to each table about the runs that are read.
struct Tables<'w> {
    blank: Statement,
    which: Which<'w>,
    extent: Extent,
    /// Of the rows that each step leaves there are about as many as events, or fewer. Memory that
    /// is not written to costs nothing.
    room: usize,
}

impl Tables<'_> {
    /// The rows of a table whose `key` names the run.
    fn table<T: Stored + 'static>(
        &self,
        key: &'static str,
        end: &'static str,
        lots: &ByRun<Lot<T>>,
    ) -> Question {
        let mut q = self.blank.clone();
        q.push("select ").push(T::COLUMNS);
        self.push_owner(&mut q, key);
        q.push(" from {").push(T::TABLE).push("} where ");
        self.which.push(&mut q, key);
        match (self.which, end.strip_prefix(" order by ")) {
            // Run by run: a planner may rather walk all rows there are in the order asked for.
            (Which::Range { .. }, Some(order)) => {
                q.push(" order by ").push(key).push(", ").push(order);
            }
            _ => {
                q.push(end);
            }
        }
        let (extent, room, lots) = (self.extent, self.room, lots.clone());
        match self.which {
            Which::One(id) => {
                let id = id.to_owned();
                Question::new(q, move |row| {
                    lots.with(&id, || extent.lot(), |lot| lot.take(row, room))
                })
            }
            Which::Range { .. } => Question::new(q, move |row| {
                let owner = row.peek(OWNER).unwrap_or_default().to_owned();
                lots.with(&owner, || extent.lot(), |lot| lot.take(row, 0))
            }),
        }
    }

    fn run<T: Stored + 'static>(&self, end: &'static str, lots: &ByRun<Lot<T>>) -> Question {
        self.table("workflow_run_id", end, lots)
    }

    /// Rows as they are, of all runs alike.
    fn rows(q: Statement, rows: &ByRun<Vec<Row>>) -> Question {
        let rows = rows.clone();
        Question::new(q, move |row| {
            rows.with(ALL, Vec::new, |rows| rows.push(row.kept()));
            Ok(())
        })
    }

    /// Of several runs, each row says whose it is.
    fn push_owner(&self, q: &mut Statement, key: &'static str) {
        if matches!(self.which, Which::Range { .. }) {
            q.push(", ").push(key).push(" as ").push(OWNER);
        }
    }

    fn runs(&self) -> Statement {
        let mut q = self.blank.clone();
        q.push("select ").push(RunRow::COLUMNS).push(
            ", (select i.id from {workflow_instances} i where i.id = r.workflow_instance_id) as instance_id\
             , (select i.namespace from {workflow_instances} i where i.id = r.workflow_instance_id) as instance_namespace\
             , (select i.business_key from {workflow_instances} i where i.id = r.workflow_instance_id) as instance_business_key\
             , (select i.visibility_labels from {workflow_instances} i where i.id = r.workflow_instance_id) as instance_visibility_labels\
             , (select i.execution_timeout_seconds from {workflow_instances} i where i.id = r.workflow_instance_id) as instance_execution_timeout_seconds\
             , (select count(*) from {workflow_history_events} e where e.workflow_run_id = r.id) as history_events\
             , (select max(e.sequence) from {workflow_history_events} e where e.workflow_run_id = r.id) as history_last \
             from {workflow_runs} r where ",
        );
        self.which.push(&mut q, "id");
        q.push(" order by id");
        q
    }

    fn links(&self, links: &ByRun<Vec<Row>>) -> Question {
        let mut q = self.blank.clone();
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
        let links = links.clone();
        let one = match self.which {
            Which::One(id) => Some(id.to_owned()),
            Which::Range { .. } => None,
        };
        Question::new(q, move |row| {
            let owner = one
                .as_deref()
                .or_else(|| row.peek(OWNER))
                .unwrap_or_default();
            let owner = owner.to_owned();
            links.with(&owner, Vec::new, |links| links.push(row.kept()));
            Ok(())
        })
    }

    /// The runs related to each, in one statement.
    async fn related(
        &self,
        snapshot: &mut Snapshot,
        runs: &[Begun],
    ) -> Result<ByRun<Vec<Row>>, DbError> {
        let mut q = self.blank.clone();
        let by_run = ByRun::default();
        if let (Which::One(id), [run]) = (self.which, runs) {
            push_related(&mut q, run.instance(), Some(id), &run.others);
            by_run.set(id, snapshot.fetch(q).await?);
            return Ok(by_run);
        }
        let of = |run: &Begun| {
            let own = run.instance().to_owned();
            run.others
                .instances
                .iter()
                .cloned()
                .chain([own])
                .collect::<Vec<_>>()
        };
        push_related_to_many(&mut q, &runs.iter().flat_map(of).collect());
        let mut of_instance: HashMap<String, Vec<Row>> = HashMap::new();
        for row in snapshot.fetch(q).await? {
            let instance = instance_of(&row).to_owned();
            of_instance.entry(instance).or_default().push(row);
        }
        for run in runs {
            let rows = of(run);
            let rows = rows.iter().filter_map(|instance| of_instance.get(instance));
            by_run.set(&run.version.run_id, rows.flatten().cloned().collect());
        }
        Ok(by_run)
    }
}

/// What workers lately said of themselves, the newest first, up to a limit.
pub(super) fn push_heartbeats(q: &mut Statement) {
    q.push("select ")
        .push(HeartbeatRow::COLUMNS)
        .push(" from {workflow_worker_compatibility_heartbeats} order by expires_at desc limit ")
        .bind(HEARTBEATS);
}
