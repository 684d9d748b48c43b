//! Folds batches of the history into the entries that wait for their sections.
//!
//! No database here: what a batch needs comes with it, so that the rows of the next can be read
//! while this one is folded.

use std::{
    collections::{HashMap, HashSet},
    io,
    sync::Arc,
};

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::{
    entries,
    entry::Written as _,
    head::AVRO,
    hide::Hide,
    redaction::{CopyId, Slot},
    spool::Spool,
};
use crate::durable::{
    engine_config::EngineConfig,
    projection::{
        Context, activities, children, failures::Failure, projected::ById, related::Related,
        timeline, timers, timers::Timer, updates, waits, waits::Wait,
    },
    store::snapshot::RunSnapshot,
    stored::{ExecutionRow, TaskRow, TimelineEntry},
};

/// By what entries are ordered; what a kind does not need is zero.
type Key = (i64, i64, i64, String);

/// What is known once every batch was folded.
#[derive(Default)]
pub(super) struct Folded {
    pub activities: Spool<Key>,
    /// As they are compared with the stored ones.
    pub timers: Spool<Key>,
    pub waits: Spool<Key>,
    pub failures: Arc<Vec<Failure>>,
    /// Whether some event says that its payload is Avro.
    pub says_avro: bool,
    /// Whether some activity is encoded as Avro.
    pub avro_activity: bool,
    /// As they are written.
    pub tasks: Spool<()>,
    /// What they repeated of a slot that is hidden: of those whose replay was blocked.
    pub hidden_tasks: Vec<(CopyId, String)>,
}

impl Folded {
    pub fn push_task(&mut self, hide: Hide<'_>, task: &TaskRow) -> io::Result<()> {
        let entry = entries::task(task);
        let quotes = [Slot::TaskPayload, Slot::FailureMessage];
        if !quotes.iter().any(|slot| hide.touches(*slot)) {
            return self.tasks.push_with((), |out| entry.write(out));
        }
        let mut text = Vec::new();
        entry.write(&mut text);
        let mut entry: Value = serde_json::from_slice(&text)?;
        let path = format!("tasks.{}", self.tasks.len());
        let payload = || format!("{path}.payload");
        hide.redact_key(Slot::TaskPayload, &mut entry, "payload", payload);
        self.hidden_tasks
            .extend(hide.hide_copies("tasks", &path, &mut entry));
        self.tasks.push((), &entry)
    }

    fn push_waits(&mut self, waits: &[Wait]) -> io::Result<()> {
        for wait in waits {
            let (rank, opened, id) = waits::order(wait);
            let key = (i64::from(rank), opened, 0, id.to_owned());
            self.waits.push_with(key, |out| entries::wait(out, wait))?;
        }
        Ok(())
    }

    fn push_timers(&mut self, timers: &[Timer]) -> io::Result<()> {
        for timer in timers {
            let (sequence, fire, created, id) = timers::order(timer);
            let key = (sequence, fire, created, id.to_owned());
            self.timers.push(key, timer)?;
        }
        Ok(())
    }
}

/// Events with the rows that belong to them.
pub(super) struct Batch {
    /// Where the events stand in the history.
    pub positions: Vec<u32>,
    pub rows: RunSnapshot,
    /// Only to be told: to a fold, a row is a step.
    pub beside: timeline::Beside,
    /// What is stored of their timeline, while that may be up to date.
    pub stored: Vec<TimelineEntry>,
}

pub(super) struct Folder {
    pub now: DateTime<Utc>,
    pub config: EngineConfig,
    pub folded: Folded,
    /// Timers that end a wait for a condition.
    pub condition_timers: HashSet<String>,
}

impl Folder {
    /// Waits for conditions, signals, children and updates, and the timers that end them.
    pub fn fold_together(&mut self, head: &RunSnapshot) -> io::Result<()> {
        let cx = Context {
            snapshot: head,
            now: self.now,
            config: &self.config,
        };
        let folded = &mut self.folded;
        let related = Related::of(head);
        let conditions = waits::conditions::condition_waits(cx);
        let signal_waits = waits::signals::signal_waits(cx);
        let children = children::children(cx, &related);
        let updates = updates::updates(cx, &ById::of(&folded.failures));
        let timers = timers::timers(cx);
        self.condition_timers = conditions
            .iter()
            .filter_map(|wait| wait.timer_id.clone())
            .collect();
        folded.push_waits(&waits::conditions::waits(cx, &conditions))?;
        folded.push_waits(&waits::signals::waits(cx, &signal_waits))?;
        folded.push_waits(&waits::children::waits(cx, &children))?;
        folded.push_waits(&waits::updates::update_waits(cx, &updates))?;
        let timer_waits = waits::steps::timer_waits(cx, &timers, &self.condition_timers);
        folded.push_waits(&timer_waits)?;
        folded.push_timers(&timers)
    }

    pub fn fold_steps(&mut self, rows: &RunSnapshot) -> io::Result<()> {
        let cx = Context {
            snapshot: rows,
            now: self.now,
            config: &self.config,
        };
        let folded = &mut self.folded;
        let executions: HashMap<&str, &ExecutionRow> = rows
            .executions
            .iter()
            .map(|row| (row.id.as_str(), row))
            .collect();
        let activities = activities::activities(cx);
        folded.push_waits(&waits::steps::activity_waits(cx, &activities))?;
        for activity in &activities {
            let row = executions.get(&*activity.id).copied();
            let entry = entries::activity(activity, row);
            folded.avro_activity |= entries::codec_of(activity, row) == Some(AVRO);
            let (sequence, created, id) = activities::order(activity);
            let key = (sequence, created, 0, id.to_owned());
            folded.activities.push_with(key, |out| entry.write(out))?;
        }
        let timers = timers::timers(cx);
        let timer_waits = waits::steps::timer_waits(cx, &timers, &self.condition_timers);
        folded.push_waits(&timer_waits)?;
        folded.push_timers(&timers)
    }
}
