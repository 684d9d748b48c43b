//! One run, projected: every concept once, each from what it needs of the others.

use std::collections::{HashMap, HashSet};

use super::{
    activities::{Activity, activities},
    children::{Child, children},
    commands::{Command, commands},
    context::Context,
    current_run::{self, CurrentRun},
    failures::{Failure, failures},
    liveness::{self, Evidence},
    related::Related,
    signals::{Signal, signals},
    task_links::TaskLinks,
    tasks::{self, Steps, Task},
    timers::{Timer, timers},
    updates::{FailureLookup, Update, UpdateException, UpdateFailure, updates},
    waits::{
        self, Wait,
        conditions::{self, ConditionWait},
        signals::{self as signal_waits, SignalWait},
    },
};

#[derive(Debug)]
pub struct Projected<'a> {
    pub cx: Context<'a>,
    pub related: Related<'a>,
    pub current_run: CurrentRun,
    pub failures: Vec<Failure>,
    pub activities: Vec<Activity<'a>>,
    pub timers: Vec<Timer>,
    pub conditions: Vec<ConditionWait>,
    pub signal_waits: Vec<SignalWait>,
    pub children: Vec<Child<'a>>,
    pub signals: Vec<Signal>,
    pub updates: Vec<Update>,
    pub commands: Vec<Command>,
    pub waits: Vec<Wait>,
    pub tasks: Vec<Task>,
    /// How the run stands now, whatever its stored summary says.
    pub standing: liveness::Standing,
}

impl<'a> Projected<'a> {
    pub fn of(cx: Context<'a>) -> Self {
        let related = Related::of(cx.snapshot);
        let failures = failures(cx);
        let activities = activities(cx);
        let timers = timers(cx);
        let conditions = conditions::condition_waits(cx);
        let signal_waits = signal_waits::signal_waits(cx);
        let children = children(cx, &related);
        let mut signals = signals(cx);
        let mut updates = updates(cx, &ById::of(&failures));

        let condition_timers: HashSet<String> = conditions
            .iter()
            .filter_map(|wait| wait.timer_id.clone())
            .collect();
        let mut all = waits::steps::activity_waits(cx, &activities);
        all.extend(waits::steps::timer_waits(cx, &timers, &condition_timers));
        all.extend(conditions::waits(cx, &conditions));
        all.extend(signal_waits::waits(cx, &signal_waits));
        all.extend(waits::children::waits(cx, &children));
        all.extend(waits::updates::update_waits(cx, &updates));
        let waits = waits::assemble(all);

        let tasks = tasks::tasks(
            cx,
            Steps {
                activities: &activities,
                timers: &timers,
                waits: &waits,
                signals: &signals,
            },
        );
        let mut commands = commands(cx, &signals, &updates);
        TaskLinks::new(cx, &tasks).fill(&mut commands, &mut signals, &mut updates);
        let standing = liveness::standing(
            cx,
            Evidence {
                activities: &activities,
                timers: &timers,
                conditions: &conditions,
                signal_waits: &signal_waits,
                children: &children,
                signals: &signals,
                updates: &updates,
                waits: &waits,
                tasks: &tasks,
            },
        );
        Self {
            current_run: current_run::of_selected(cx, &related),
            cx,
            related,
            failures,
            activities,
            timers,
            conditions,
            signal_waits,
            children,
            signals,
            updates,
            commands,
            waits,
            tasks,
            standing,
        }
    }
}

/// Failures by id, as updates ask for them.
#[derive(Debug)]
pub struct ById<'f>(HashMap<&'f str, &'f Failure>);

impl<'f> ById<'f> {
    pub fn of(failures: &'f [Failure]) -> Self {
        Self(
            failures
                .iter()
                .map(|failure| (failure.id.as_str(), failure))
                .collect(),
        )
    }
}

impl FailureLookup for ById<'_> {
    fn failure(&self, id: &str) -> Option<UpdateFailure> {
        let failure = self.0.get(id)?;
        Some(UpdateFailure {
            message: failure.message.clone(),
            exception: UpdateException {
                exception_type: failure.exception_type.clone(),
                exception_class: failure.exception_class.clone(),
                exception_resolved_class: failure.resolution.exception_resolved_class.clone(),
                exception_resolution_source: Some(
                    failure
                        .resolution
                        .exception_resolution_source
                        .as_str()
                        .to_owned(),
                ),
                exception_resolution_error: failure.resolution.exception_resolution_error.clone(),
                exception_replay_blocked: failure.resolution.exception_replay_blocked,
            },
        })
    }
}
