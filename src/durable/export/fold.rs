//! Reads the history once, and then batch by batch what belongs to its steps.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use futures_util::{StreamExt as _, TryStreamExt as _};

use super::{
    apart::Apart,
    events::{Events, Named},
    folder::{Batch, Folded, Folder},
    known_tasks::KnownTasks,
    plan::{Kind, Names, Plan, Step, Steps},
    stream::{Export, ExportError},
    teller::{Teller, Timeline},
};
use crate::durable::{
    projection::timeline::Beside,
    store::{export as store, past::History, snapshot::RunSnapshot},
    stored::{
        AttemptRow, CommandRow, ExecutionRow, FailureRecord, HistoryEvent, Notices, TaskRow,
        TimelineEntry, TimerRow,
    },
};

/// How many events are handed on together.
const LOT: usize = 64;

impl Export<'_> {
    /// Reads the history, to know what belongs to what, and then folds each step by itself and
    /// tells the timeline of its events.
    pub async fn fold(&mut self) -> Result<(Folded, Timeline), ExportError> {
        let mut folded = Folded::default();
        let mut plan = self.plan(&mut folded).await?;
        let failures = plan.take_all_failures(self.cx(&self.blank), &self.head.failures);
        folded.failures = Arc::new(failures);
        folded.says_avro = plan.says_avro;
        let steps = plan.settle();
        self.rows.tasks = plan.known_tasks;
        let (mut rest, together) = steps.parts();
        let timeouts = self
            .batch(together, positions(together), &steps, false)
            .await?;
        let mut events = plan.events;
        events.extend(timeouts.rows.events.iter().cloned());
        events.sort_by_key(|event| event.sequence);
        self.head.events = History::new(events, Notices::default());
        self.head.timers = timeouts.rows.timers;
        self.head.tasks = plan.tasks;
        store::add_related(self.reading.snapshot, &mut self.head).await?;

        let stored = self.head.has_timeline_entries == (self.events.len() > 0);
        let mut teller = Teller {
            now: self.options.now,
            config: self.options.config.clone(),
            policy: self.options.policy.cloned(),
            failures: Arc::clone(&folded.failures),
            same: Arc::new(AtomicBool::new(stored)),
            told: Timeline::default(),
        };
        let mut folder = Folder {
            now: self.options.now,
            config: self.options.config.clone(),
            folded,
            condition_timers: HashSet::new(),
        };
        folder.fold_together(&self.head)?;
        let same = Arc::clone(&teller.same);
        // While it may be up to date, the stored timeline is worth reading.
        let worth = || same.load(Ordering::Relaxed);
        let mut folding = Apart::start(move |batches| {
            batches.each(|batch: &mut Arc<Batch>| folder.fold_steps(&batch.rows))?;
            Ok(folder.folded)
        });
        let mut telling = Apart::start(move |batches| {
            batches.each(|batch: &mut Arc<Batch>| teller.tell(batch))?;
            Ok(teller.told)
        });
        let mut untold = vec![true; self.events.len()];
        while !rest.is_empty() {
            let (some, others) = rest.split_at(some_of(rest, self.options.batch));
            rest = others;
            let positions = positions(some);
            for at in &positions {
                untold[*at as usize] = false;
            }
            folding.ready().await;
            telling.ready().await;
            let batch = self.batch(some, positions, &steps, worth()).await?;
            let batch = Arc::new(batch);
            folding.take(Arc::clone(&batch)).await?;
            telling.take(batch).await?;
        }
        let untold: Vec<u32> = (0..)
            .zip(untold)
            .filter(|(_, untold)| *untold)
            .map(|(at, _)| at)
            .collect();
        for positions in untold.chunks(self.options.batch.max(1)) {
            telling.ready().await;
            let batch = self.batch(&[], positions.to_vec(), &steps, worth()).await?;
            telling.take(Arc::new(batch)).await?;
        }
        let folded = folding.finish().await?;
        let mut told = telling.finish().await?;
        told.hidden.sort_by_key(|(at, _)| *at);
        told.same = worth();
        if told.same {
            let run_id = &self.head.run.id;
            let stored = store::count::<TimelineEntry>(self.reading.snapshot, run_id).await?;
            told.same = stored == self.events.len();
        }
        Ok((folded, told))
    }

    /// Keeps every event and every task, and knows which step they belong to.
    async fn plan(&mut self, folded: &mut Folded) -> Result<Plan, ExportError> {
        let run_id = self.run_id();
        let failures = self.head.failures.clone();
        let (config, of_run) = (self.options.config.clone(), run_id.clone());
        let mut planning = Apart::start(move |lots| {
            let failures = failures.iter().map(|row| (row.id.as_str(), row));
            let failures: HashMap<&str, &FailureRecord> = failures.collect();
            let (mut events, mut plan) = (Events::default(), Plan::default());
            lots.each(|lot: &mut Vec<HistoryEvent>| {
                for event in lot.drain(..) {
                    let names: Names = event.as_payload();
                    events.push(&event, &names)?;
                    plan.take(&config, &of_run, &failures, event, names);
                }
                Ok(())
            })?;
            Ok((events, plan))
        });
        let mut lots = store::events(&mut self.reading, &run_id).try_chunks(LOT);
        while let Some(lot) = lots.next().await {
            planning.ready().await;
            planning.take(lot.map_err(|ended| ended.1)?).await?;
        }
        drop(lots);
        let (events, mut plan) = planning.finish().await?;
        self.events = events;
        self.keep_rows(&mut plan).await?;
        let many = store::count::<TaskRow>(self.reading.snapshot, &run_id).await?;
        plan.known_tasks = KnownTasks::with_room(many);
        let mut tasks = store::tasks(&mut self.reading, &run_id);
        while let Some(task) = tasks.next().await {
            let task = task?;
            folded.push_task(self.hide, &task)?;
            plan.take_task(task)?;
        }
        drop(tasks);
        Ok(plan)
    }

    /// Keeps the rows of every step, and knows whose they are.
    async fn keep_rows(&mut self, plan: &mut Plan) -> Result<(), ExportError> {
        let run_id = self.run_id();
        let Self { rows, reading, .. } = self;
        let in_order = " order by sequence";
        let mut executions = store::rows::<ExecutionRow>(reading.snapshot, &run_id, in_order);
        while let Some(row) = executions.next().await {
            let row = row?;
            if let Some(id) = row.peek("id") {
                plan.take_row(Kind::Activity, id.to_owned(), rows.executions.push(&row)?);
            }
        }
        drop(executions);
        let mut timers = store::rows::<TimerRow>(reading.snapshot, &run_id, in_order);
        while let Some(row) = timers.next().await {
            let row = row?;
            if let Some(id) = row.peek("id") {
                plan.take_row(Kind::Timer, id.to_owned(), rows.timers.push(&row)?);
            }
        }
        drop(timers);
        let mut attempts = store::rows::<AttemptRow>(reading.snapshot, &run_id, "");
        while let Some(row) = attempts.next().await {
            let row = row?;
            if let Some(activity) = row.peek("activity_execution_id") {
                plan.take_attempt(activity.to_owned(), rows.attempts.push(&row)?);
            }
        }
        Ok(())
    }

    /// Events with all that is known of their steps, the rows they name, and what is stored of
    /// their timeline if that is asked for.
    async fn batch(
        &mut self,
        steps: &[Step],
        positions: Vec<u32>,
        all: &Steps,
        with_timeline: bool,
    ) -> Result<Batch, ExportError> {
        let run_id = self.run_id();
        let (events, names) = self.events.at(&positions)?;
        let own = |kind: Kind| {
            let steps = steps.iter().filter(move |step| step.kind == kind);
            steps.filter_map(|step| step.row)
        };
        // A row of another run that an event names by mistake says nothing here.
        let others = |kind: Kind, which: fn(&Named) -> &Option<String>| {
            let rows = named(&names, which).filter_map(|id| all.find(kind, id)?.row);
            let mut rows: BTreeSet<u32> = rows.collect();
            own(kind).for_each(|at| {
                rows.remove(&at);
            });
            rows
        };
        let (rows, notices) = (&mut self.rows, &mut self.reading.notices);
        let attempts = steps.iter().flat_map(|step| step.attempts.iter().copied());
        let mut attempts: Vec<AttemptRow> = rows.attempts.at(attempts, notices)?;
        attempts.sort_by(|a, b| {
            (a.attempt_number, a.started_at, &a.id).cmp(&(b.attempt_number, b.started_at, &b.id))
        });
        let executions = rows.executions.at(own(Kind::Activity), notices)?;
        let timers = rows.timers.at(own(Kind::Timer), notices)?;
        let other_executions = others(Kind::Activity, |of| &of.activity);
        let other_timers = others(Kind::Timer, |of| &of.timer);
        let beside = Beside {
            executions: rows.executions.at(other_executions, notices)?,
            timers: rows.timers.at(other_timers, notices)?,
            commands: self.commands_named(&events, &names),
        };
        let carriers = events
            .iter()
            .filter_map(|event| event.workflow_task_id.as_deref());
        let tasks = self.rows.tasks.of(&run_id, steps, carriers)?;
        let stored = if with_timeline {
            self.stored_timeline(&run_id, &events).await?
        } else {
            Vec::new()
        };
        Ok(Batch {
            positions,
            beside,
            rows: RunSnapshot {
                events: History::new(events, Notices::default()),
                executions,
                attempts,
                timers,
                tasks,
                ..self.blank.clone()
            },
            stored,
        })
    }

    fn commands_named(&self, events: &[HistoryEvent], names: &[Named]) -> Vec<CommandRow> {
        let ids: HashSet<&str> = events
            .iter()
            .filter_map(|event| event.workflow_command_id.as_deref())
            .chain(named(names, |of| &of.command))
            .collect();
        let commands = self.head.commands.iter();
        commands
            .filter(|row| ids.contains(row.id.as_str()))
            .cloned()
            .collect()
    }

    async fn stored_timeline(
        &mut self,
        run_id: &str,
        events: &[HistoryEvent],
    ) -> Result<Vec<TimelineEntry>, ExportError> {
        let sequences = events.iter().map(|event| event.sequence);
        Ok(store::timeline_at(&mut self.reading, run_id, sequences).await?)
    }
}

/// How many steps come next into a batch: as many as have not too many events together.
fn some_of(steps: &[Step], most: usize) -> usize {
    let mut events = 0;
    steps
        .iter()
        .take_while(|step| {
            events += step.events.len() + 1;
            events <= most
        })
        .count()
        .max(1)
}

fn positions(steps: &[Step]) -> Vec<u32> {
    let mut positions: Vec<u32> = steps
        .iter()
        .flat_map(|step| step.events.iter().copied())
        .collect();
    positions.sort_unstable();
    positions
}

fn named(names: &[Named], which: fn(&Named) -> &Option<String>) -> impl Iterator<Item = &str> {
    names.iter().filter_map(move |of| which(of).as_deref())
}
