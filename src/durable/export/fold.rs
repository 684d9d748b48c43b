//! Reads the history once, and then batch by batch what belongs to its steps.

use std::{
    collections::{HashMap, HashSet},
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
    plan::{Kind, Names, Plan, Step},
    stream::{Export, ExportError},
    teller::{Teller, Timeline},
};
use crate::durable::{
    projection::timeline::Beside,
    store::{export as store, past::History, snapshot::RunSnapshot},
    stored::{
        AttemptRow, CommandRow, ExecutionRow, FailureRecord, HistoryEvent, Notices, TimelineEntry,
        TimerRow,
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
        let tasks = plan.known_tasks;
        let (together, steps): (Vec<Step>, Vec<Step>) =
            plan.steps.into_iter().partition(|step| step.timeout);
        let timeouts = self
            .batch(&together, positions(&together), &tasks, false)
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
        let mut rest = steps.as_slice();
        while !rest.is_empty() {
            let (some, others) = rest.split_at(some_of(rest, self.options.batch));
            rest = others;
            let positions = positions(some);
            for at in &positions {
                untold[*at as usize] = false;
            }
            let batch = self.batch(some, positions, &tasks, worth()).await?;
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
            let batch = self.batch(&[], positions.to_vec(), &tasks, worth()).await?;
            telling.take(Arc::new(batch)).await?;
        }
        let folded = folding.finish().await?;
        let mut told = telling.finish().await?;
        told.hidden.sort_by_key(|(at, _)| *at);
        told.same = worth();
        if told.same {
            let run_id = &self.head.run.id;
            let stored = store::count_timeline(self.reading.snapshot, run_id).await?;
            told.same = usize::try_from(stored) == Ok(self.events.len());
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
            planning.take(lot.map_err(|ended| ended.1)?).await?;
        }
        drop(lots);
        let (events, mut plan) = planning.finish().await?;
        self.events = events;
        for (table, kind) in [
            (ExecutionRow::TABLE, Kind::Activity),
            (TimerRow::TABLE, Kind::Timer),
        ] {
            for id in store::ids(self.reading.snapshot, table, &run_id).await? {
                plan.take_row(kind, id);
            }
        }
        let mut tasks = store::tasks(&mut self.reading, &run_id);
        while let Some(task) = tasks.next().await {
            let task = task?;
            folded.push_task(self.hide, &task)?;
            plan.take_task(task);
        }
        drop(tasks);
        plan.settle();
        Ok(plan)
    }

    /// Events with all that is known of their steps, the rows they name, and what is stored of
    /// their timeline if that is asked for.
    async fn batch(
        &mut self,
        steps: &[Step],
        positions: Vec<u32>,
        tasks: &KnownTasks,
        with_timeline: bool,
    ) -> Result<Batch, ExportError> {
        let run_id = self.run_id();
        let of_steps = |kind: Kind| -> HashSet<&str> {
            steps
                .iter()
                .filter(|step| step.kind == kind)
                .map(|step| step.id.as_str())
                .collect()
        };
        let (activities, timers) = (of_steps(Kind::Activity), of_steps(Kind::Timer));
        let (events, names) = self.events.at(&positions)?;
        // A row of another run that an event names by mistake says nothing here.
        let ids = activities
            .iter()
            .copied()
            .chain(named(&names, |of| &of.activity));
        let executions = store::rows_of::<ExecutionRow>(&mut self.reading, "id", ids).await?;
        let executions = of_run(executions, &run_id, |row| &row.workflow_run_id);
        let (executions, other_executions): (Vec<_>, Vec<_>) = executions
            .into_iter()
            .partition(|row| activities.contains(row.id.as_str()));
        let mut attempts = store::rows_of::<AttemptRow>(
            &mut self.reading,
            "activity_execution_id",
            executions.iter().map(|row| row.id.as_str()),
        )
        .await?;
        attempts.sort_by(|a, b| {
            (a.attempt_number, a.started_at, &a.id).cmp(&(b.attempt_number, b.started_at, &b.id))
        });
        let ids = timers.iter().copied().chain(named(&names, |of| &of.timer));
        let rows = store::rows_of::<TimerRow>(&mut self.reading, "id", ids).await?;
        let (timers, other_timers): (Vec<_>, Vec<_>) =
            of_run(rows, &run_id, |row| &row.workflow_run_id)
                .into_iter()
                .partition(|row| timers.contains(row.id.as_str()));
        let carriers = events
            .iter()
            .filter_map(|event| event.workflow_task_id.as_deref());
        let tasks = tasks.of(&run_id, steps, carriers);
        let stored = if with_timeline {
            self.stored_timeline(&run_id, &events).await?
        } else {
            Vec::new()
        };
        Ok(Batch {
            positions,
            beside: Beside {
                executions: other_executions,
                timers: other_timers,
                commands: self.commands_named(&events, &names),
            },
            rows: RunSnapshot {
                events: History::new(events, Notices::default()),
                executions,
                attempts: of_run(attempts, &run_id, |row| &row.workflow_run_id),
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

fn of_run<T>(rows: Vec<T>, run_id: &str, of: fn(&T) -> &str) -> Vec<T> {
    rows.into_iter().filter(|row| of(row) == run_id).collect()
}
