//! Folds the history, a few steps at a time, into the entries that wait for their sections.

use std::{
    collections::{HashMap, HashSet},
    io,
};

use futures_util::StreamExt as _;
use serde_json::json;

use super::{
    Policy, entries, head,
    plan::{Kind, Plan, Step},
    redaction::Slot,
    spool::Spool,
    stream::{Export, ExportError},
};
use crate::durable::{
    projection::{
        activities, children, failures::Failure, projected::ById, related::Related, timers,
        timers::Timer, updates, waits, waits::Wait,
    },
    store::{export as store, past::History, snapshot::RunSnapshot},
    stored::{AttemptRow, ExecutionRow, FailureRecord, Notices, TaskRow, TimerRow},
};

/// By what entries are ordered; what a kind does not need is zero.
type Key = (i64, i64, i64, String);

/// What is known once every step was folded.
#[derive(Default)]
pub(super) struct Folded {
    pub activities: Spool<Key>,
    /// As they are compared with the stored ones.
    pub timers: Spool<Key>,
    pub waits: Spool<Key>,
    pub failures: Vec<Failure>,
    /// Whether some event says that its payload is Avro.
    pub says_avro: bool,
    /// Whether some activity is encoded as Avro.
    pub avro_activity: bool,
    /// As they are written.
    pub tasks: Spool<()>,
}

impl Export<'_> {
    /// Reads the history, to know what belongs to what, and then folds each step by itself.
    pub async fn fold(&mut self) -> Result<Folded, ExportError> {
        let run_id = self.run_id();
        let mut folded = Folded::default();
        let mut plan = Plan::default();
        let failures: HashMap<&str, &FailureRecord> = self
            .head
            .failures
            .iter()
            .map(|row| (row.id.as_str(), row))
            .collect();
        let mut events = store::events(&mut self.reading, &run_id);
        while let Some(event) = events.next().await {
            let event = event?;
            self.events.push(&event)?;
            plan.take(self.options.config, &run_id, &failures, event);
        }
        drop(events);
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
            push_task(&mut folded.tasks, self.options.policy, &task)?;
            plan.take_task(task);
        }
        drop(tasks);
        plan.forget_names();
        folded.failures = plan.take_all_failures(self.cx(&self.blank), &self.head.failures);
        folded.says_avro = plan.says_avro;
        let (together, steps): (Vec<Step>, Vec<Step>) =
            plan.steps.into_iter().partition(|step| step.timeout);
        let timeouts = self.rows(&together).await?;
        let mut events = plan.events;
        events.extend(timeouts.events.iter().cloned());
        events.sort_by_key(|event| event.sequence);
        self.head.events = History::new(events, Notices::default());
        self.head.timers = timeouts.timers;
        self.head.tasks = plan.tasks;
        store::add_related(self.reading.snapshot, &mut self.head).await?;
        let condition_timers = self.fold_together(&mut folded)?;

        let mut rest = steps.as_slice();
        while !rest.is_empty() {
            let mut events = 0;
            let count = rest
                .iter()
                .take_while(|step| {
                    events += step.events.len() + 1;
                    events <= self.options.batch
                })
                .count()
                .max(1);
            let (some, others) = rest.split_at(count);
            rest = others;
            let rows = self.rows(some).await?;
            self.fold_steps(&mut folded, &rows, &condition_timers)?;
        }
        Ok(folded)
    }

    /// All that is known of these steps.
    async fn rows(&mut self, steps: &[Step]) -> Result<RunSnapshot, ExportError> {
        let run_id = self.run_id();
        let ids = |kind: Kind| {
            steps
                .iter()
                .filter(move |step| step.kind == kind)
                .map(|step| step.id.as_str())
        };
        let mut positions: Vec<usize> = steps
            .iter()
            .flat_map(|step| step.events.iter().map(|at| *at as usize))
            .collect();
        positions.sort_unstable();
        let events = self.events.at(positions)?;
        let executions =
            store::rows_of::<ExecutionRow>(&mut self.reading, "id", ids(Kind::Activity)).await?;
        let mut attempts = store::rows_of::<AttemptRow>(
            &mut self.reading,
            "activity_execution_id",
            executions.iter().map(|row| row.id.as_str()),
        )
        .await?;
        attempts.sort_by(|a, b| {
            (a.attempt_number, a.started_at, &a.id).cmp(&(b.attempt_number, b.started_at, &b.id))
        });
        let timers = store::rows_of::<TimerRow>(&mut self.reading, "id", ids(Kind::Timer)).await?;
        let tasks = store::rows_of::<TaskRow>(
            &mut self.reading,
            "id",
            steps
                .iter()
                .flat_map(|step| step.tasks.iter().map(String::as_str)),
        )
        .await?;
        // A row of another run that an event names by mistake says nothing here.
        Ok(RunSnapshot {
            events: History::new(events, Notices::default()),
            executions: of_run(executions, &run_id, |row| &row.workflow_run_id),
            attempts: of_run(attempts, &run_id, |row| &row.workflow_run_id),
            timers: of_run(timers, &run_id, |row| &row.workflow_run_id),
            tasks: of_run(tasks, &run_id, |row| &row.workflow_run_id),
            ..self.blank.clone()
        })
    }

    /// Waits for conditions, signals, children and updates, and the timers that end them.
    fn fold_together(&self, folded: &mut Folded) -> io::Result<HashSet<String>> {
        let cx = self.cx(&self.head);
        let related = Related::of(&self.head);
        let conditions = waits::conditions::condition_waits(cx);
        let signal_waits = waits::signals::signal_waits(cx);
        let children = children::children(cx, &related);
        let updates = updates::updates(cx, &ById::of(&folded.failures));
        let timers = timers::timers(cx);
        let condition_timers: HashSet<String> = conditions
            .iter()
            .filter_map(|wait| wait.timer_id.clone())
            .collect();
        push_waits(folded, &waits::conditions::waits(cx, &conditions))?;
        push_waits(folded, &waits::signals::waits(cx, &signal_waits))?;
        push_waits(folded, &waits::children::waits(cx, &children))?;
        push_waits(folded, &waits::updates::update_waits(cx, &updates))?;
        push_waits(
            folded,
            &waits::steps::timer_waits(cx, &timers, &condition_timers),
        )?;
        push_timers(folded, &timers)?;
        Ok(condition_timers)
    }

    fn fold_steps(
        &self,
        folded: &mut Folded,
        rows: &RunSnapshot,
        condition_timers: &HashSet<String>,
    ) -> io::Result<()> {
        let cx = self.cx(rows);
        let executions: HashMap<&str, &ExecutionRow> = rows
            .executions
            .iter()
            .map(|row| (row.id.as_str(), row))
            .collect();
        let activities = activities::activities(cx);
        push_waits(folded, &waits::steps::activity_waits(cx, &activities))?;
        for activity in &activities {
            let row = executions.get(&*activity.id).copied();
            let entry = entries::activity(activity, row);
            folded.avro_activity |= entries::codec_of(activity, row) == Some(head::AVRO);
            let (sequence, created, id) = activities::order(activity);
            folded
                .activities
                .push((sequence, created, 0, id.to_owned()), &entry)?;
        }
        let timers = timers::timers(cx);
        push_waits(
            folded,
            &waits::steps::timer_waits(cx, &timers, condition_timers),
        )?;
        push_timers(folded, &timers)
    }
}

fn push_task(tasks: &mut Spool<()>, policy: Option<&Policy>, task: &TaskRow) -> io::Result<()> {
    let entry = entries::task(task);
    let Some(policy) = policy.filter(|policy| policy.touches(Slot::TaskPayload)) else {
        return tasks.push((), &entry);
    };
    let mut entry = json!(entry);
    let payload = entry["payload"].take();
    let path = format!("tasks.{}.payload", tasks.len());
    entry["payload"] = policy.apply(Slot::TaskPayload, &path, payload);
    tasks.push((), &entry)
}

fn push_waits(folded: &mut Folded, waits: &[Wait]) -> io::Result<()> {
    for wait in waits {
        let (rank, opened, id) = waits::order(wait);
        let key = (i64::from(rank), opened, 0, id.to_owned());
        folded.waits.push(key, wait)?;
    }
    Ok(())
}

fn push_timers(folded: &mut Folded, timers: &[Timer]) -> io::Result<()> {
    for timer in timers {
        let (sequence, fire, created, id) = timers::order(timer);
        let key = (sequence, fire, created, id.to_owned());
        folded.timers.push(key, timer)?;
    }
    Ok(())
}

fn of_run<T>(rows: Vec<T>, run_id: &str, of: fn(&T) -> &str) -> Vec<T> {
    rows.into_iter().filter(|row| of(row) == run_id).collect()
}
