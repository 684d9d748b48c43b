//! One look over the history before anything is written: which events belong to which step, so
//! that steps can be folded a few at a time, and what must be known as a whole.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    io,
};

use crate::durable::{
    engine_config::EngineConfig,
    projection::{
        Context,
        failures::{self, Failure},
        waits::tasks::names,
    },
    store::snapshot::RunSnapshot,
    stored::{
        EventType, FailureRecord, HistoryEvent, TaskRow, TaskType,
        loose::{Map, Text, shape},
        payloads::failure::FailureName,
    },
};

use super::{head::AVRO, known_tasks::KnownTasks};

/// An activity or a timer, known by its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Activity,
    Timer,
}

/// What belongs to one step.
#[derive(Debug)]
pub struct Step {
    pub kind: Kind,
    pub id: String,
    /// Where its events stand in the history.
    pub events: Vec<u32>,
    /// Its row, and those of its tries, by their place among the kept ones.
    pub row: Option<u32>,
    pub attempts: Vec<u32>,
    /// The tasks that resume it, by their place among the known ones.
    pub tasks: Vec<u32>,
    /// It ends a wait for a condition or a signal, and is looked at together with that.
    pub timeout: bool,
}

/// Every step of the run.
#[derive(Debug)]
pub struct Steps {
    /// Those that are looked at together come last.
    all: Vec<Step>,
    by_name: Vec<u32>,
}

impl Steps {
    fn of(mut all: Vec<Step>) -> Self {
        all.sort_by_key(|step| step.timeout);
        let mut by_name: Vec<u32> = (0..).take(all.len()).collect();
        by_name.sort_unstable_by_key(|at| all[*at as usize].name());
        Self { all, by_name }
    }

    /// Those that are folded a few at a time, and those that are looked at together.
    pub fn parts(&self) -> (&[Step], &[Step]) {
        let few = self.all.partition_point(|step| !step.timeout);
        self.all.split_at(few)
    }

    pub fn find(&self, kind: Kind, id: &str) -> Option<&Step> {
        let of = |at: &u32| self.all[*at as usize].name();
        let found = self.by_name.binary_search_by_key(&(kind, id), of).ok()?;
        self.all.get(self.by_name[found] as usize)
    }
}

impl Step {
    fn name(&self) -> (Kind, &str) {
        (self.kind, &self.id)
    }
}

/// What the look over the history found.
#[derive(Debug, Default)]
pub struct Plan {
    steps: Vec<Step>,
    by_id: HashMap<(Kind, String), usize>,
    /// Events that are folded together: of waits, updates, children, and of the run itself.
    pub events: Vec<HistoryEvent>,
    /// Tasks that may stand behind those.
    pub tasks: Vec<TaskRow>,
    pub known_tasks: KnownTasks,
    failures: BTreeMap<String, Failure>,
    handled: HashSet<String>,
    /// Whether some event says that its payload is Avro.
    pub says_avro: bool,
    pub event_count: usize,
}

shape! {
    #[derive(Debug)]
    struct Id {
        id: Text,
    }
}

shape! {
    /// What an event names, so that it is read only once to know which rows belong to it.
    #[derive(Debug)]
    pub struct Names {
        activity: Map<Id>,
        pub activity_execution_id: Text,
        pub timer_id: Text,
        timer_kind: Text,
        condition_wait_id: Text,
        signal_wait_id: Text,
        pub workflow_command_id: Text,
        payload_codec: Text,
    }
}

impl Plan {
    /// Takes the next event of the history.
    pub fn take(
        &mut self,
        config: &EngineConfig,
        run_id: &str,
        failures: &HashMap<&str, &FailureRecord>,
        event: HistoryEvent,
        names: Names,
    ) {
        if event.event_type == EventType::FailureHandled {
            let named: FailureName = event.as_payload();
            self.handled.extend(named.failure_id.0);
        } else if let Some(failure) = failures::told(config, run_id, &event, failures) {
            self.failures.insert(failure.id.clone(), slim(failure));
        }
        let position = u32::try_from(self.event_count).unwrap_or(u32::MAX);
        self.event_count += 1;
        self.take_event(event, names, position);
    }

    fn take_event(&mut self, event: HistoryEvent, named: Names, position: u32) {
        use EventType as E;
        let is_avro = named.payload_codec.as_deref() == Some(AVRO);
        match event.event_type {
            E::ActivityScheduled
            | E::ActivityStarted
            | E::ActivityHeartbeatRecorded
            | E::ActivityRetryScheduled
            | E::ActivityCompleted
            | E::ActivityFailed
            | E::ActivityCancelled
            | E::ActivityTimedOut => {
                self.says_avro |= is_avro;
                let own = named.activity.0.and_then(|activity| activity.id.0);
                if let Some(id) = own.or(named.activity_execution_id.0) {
                    self.step(Kind::Activity, id).events.push(position);
                }
            }
            E::TimerScheduled | E::TimerFired | E::TimerCancelled => {
                if let Some(id) = named.timer_id.0 {
                    let step = self.step(Kind::Timer, id);
                    step.events.push(position);
                    step.timeout |= named.timer_kind.is_some()
                        || named.condition_wait_id.is_some()
                        || named.signal_wait_id.is_some();
                }
            }
            // Told in the history and the timeline, folded into nothing.
            E::SideEffectRecorded
            | E::VersionMarkerRecorded
            | E::SearchAttributesUpserted
            | E::MemoUpserted
            | E::MessageCursorAdvanced
            | E::FailureHandled
            | E::Other(_) => self.says_avro |= is_avro,
            _ => {
                self.says_avro |= is_avro;
                self.events.push(event);
            }
        }
    }

    /// Every failure, in order: those only a row knows come last.
    pub fn take_all_failures(&mut self, cx: Context<'_>, rows: &[FailureRecord]) -> Vec<Failure> {
        let mut found = std::mem::take(&mut self.failures);
        let untold = RunSnapshot {
            failures: rows
                .iter()
                .filter(|row| !found.contains_key(&row.id))
                .cloned()
                .collect(),
            ..cx.snapshot.clone()
        };
        let by_row = failures::failures(Context {
            snapshot: &untold,
            ..cx
        });
        for failure in by_row {
            found.insert(failure.id.clone(), slim(failure));
        }
        for id in &self.handled {
            if let Some(failure) = found.get_mut(id) {
                failure.handled = true;
            }
        }
        let mut failures: Vec<Failure> = found.into_values().collect();
        failures.sort_by(|a, b| failures::order(a).cmp(&failures::order(b)));
        failures
    }

    /// A row that is kept; no event may have named it yet.
    pub fn take_row(&mut self, kind: Kind, id: String, kept: u32) {
        self.step(kind, id).row = Some(kept);
    }

    /// A try that is kept. Without the row of its activity it belongs to nothing.
    pub fn take_attempt(&mut self, activity: String, kept: u32) {
        let at = self.by_id.get(&(Kind::Activity, activity));
        if let Some(step) = at.and_then(|at| self.steps.get_mut(*at))
            && step.row.is_some()
        {
            step.attempts.push(kept);
        }
    }

    pub fn take_task(&mut self, task: TaskRow) -> io::Result<()> {
        let named = names(&task);
        let step = match task.task_type {
            TaskType::Activity => named
                .activity_execution_id
                .owned()
                .map(|id| (Kind::Activity, id)),
            TaskType::Timer => named.timer_id.owned().map(|id| (Kind::Timer, id)),
            _ => None,
        };
        let step = step.and_then(|step| self.by_id.get(&step).copied());
        self.known_tasks.take(&task, step)?;
        if let Some(step) = step.and_then(|at| self.steps.get(at))
            && !step.timeout
        {
            return Ok(());
        }
        // A task that resumes one step says which; only the others may stand behind an update.
        let kind = named.workflow_wait_kind.as_deref();
        let elsewhere = kind.is_some_and(|kind| kind != "update");
        let of_child = named.child_call_id.is_some() || named.child_workflow_run_id.is_some();
        if of_child || !elsewhere {
            self.tasks.push(task);
        }
        Ok(())
    }

    fn step(&mut self, kind: Kind, id: String) -> &mut Step {
        let next = self.steps.len();
        let at = *self.by_id.entry((kind, id.clone())).or_insert(next);
        if at == next {
            self.steps.push(Step {
                kind,
                id,
                events: Vec::new(),
                row: None,
                attempts: Vec::new(),
                tasks: Vec::new(),
                timeout: false,
            });
        }
        &mut self.steps[at]
    }

    /// The steps, once every row was taken.
    pub fn settle(&mut self) -> Steps {
        self.by_id = HashMap::new();
        self.known_tasks.assign(&mut self.steps);
        Steps::of(std::mem::take(&mut self.steps))
    }
}

/// Without the thrown object, which may be long and is in its event.
fn slim(failure: Failure) -> Failure {
    Failure {
        exception_payload: crate::durable::projection::exception::ExceptionPayload::default(),
        ..failure
    }
}
