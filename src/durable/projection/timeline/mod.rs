//! What happened, one entry per history event, each with what it touched as it stood then.

mod activity;
mod child;
mod command;
mod failure;
mod kind;
mod task;
mod timer;
mod words;

#[cfg(test)]
mod tests;

use std::{borrow::Cow, cell::RefCell, collections::HashMap};

use chrono::{DateTime, Utc};
use serde::Serialize;

pub use self::{
    activity::Activity, child::Child, command::Command, failure::EntryFailure, kind::Kind,
    task::Task, timer::Timer,
};
use super::{
    context::{Context, ts},
    exception::ResolutionSource,
    failures::Failure,
    parallel::ParallelGroup,
    policies::{Policies, RetryPolicy},
};
use crate::durable::stored::{
    CommandRow, EventType, ExecutionRow, HistoryEvent, TaskRow, TimerRow,
    payloads::timeline::TimelineEvent,
};

/// A word of an event or of a row it names, where it stands.
pub type Words<'a> = Option<Cow<'a, str>>;

/// One event as the engine's timeline tells it: what it is, flat, and the objects it touched.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Entry<'a> {
    pub id: &'a str,
    pub sequence: i64,
    #[serde(rename = "type")]
    pub event_type: &'a EventType,
    pub kind: Kind,
    pub entry_kind: &'static str,
    pub source_kind: &'static str,
    pub source_id: Words<'a>,
    /// Ours to word.
    pub summary: String,
    #[serde(serialize_with = "ts")]
    pub recorded_at: Option<DateTime<Utc>>,
    pub command_id: Words<'a>,
    pub command_sequence: Option<i64>,
    pub requested_run_id: Words<'a>,
    pub resolved_run_id: Words<'a>,
    pub task_id: Words<'a>,
    pub command_type: Words<'a>,
    pub command_status: Words<'a>,
    pub command_outcome: Words<'a>,
    pub command_rejection_reason: Words<'a>,
    pub workflow_sequence: Option<i64>,
    pub signal_id: Words<'a>,
    pub signal_wait_id: Words<'a>,
    pub condition_wait_id: Words<'a>,
    pub condition_key: Words<'a>,
    pub condition_definition_fingerprint: Words<'a>,
    pub signal_name: Words<'a>,
    pub update_name: Words<'a>,
    pub version_change_id: Words<'a>,
    pub version: Option<i64>,
    pub version_min_supported: Option<i64>,
    pub version_max_supported: Option<i64>,
    pub activity_execution_id: Words<'a>,
    pub activity_type: Words<'a>,
    pub activity_class: Words<'a>,
    pub activity_status: Words<'a>,
    pub retry_task_id: Words<'a>,
    #[serde(serialize_with = "ts")]
    pub retry_available_at: Option<DateTime<Utc>>,
    pub retry_backoff_seconds: Option<i64>,
    pub retry_max_attempts: Option<i64>,
    pub retry_policy: Option<RetryPolicy>,
    pub retry_after_attempt_id: Words<'a>,
    pub retry_after_attempt: Option<i64>,
    pub timer_id: Words<'a>,
    pub delay_seconds: Option<i64>,
    pub child_call_id: Words<'a>,
    pub child_workflow_instance_id: Words<'a>,
    pub child_workflow_run_id: Words<'a>,
    pub child_workflow_type: Words<'a>,
    pub child_workflow_class: Words<'a>,
    pub child_status: Words<'a>,
    #[serde(flatten)]
    pub group: ParallelGroup,
    pub failure_id: Words<'a>,
    pub exception_type: Words<'a>,
    pub exception_class: Words<'a>,
    pub exception_resolved_class: Words<'a>,
    pub exception_resolution_source: Option<ResolutionSource>,
    pub exception_resolution_error: Words<'a>,
    pub message: Words<'a>,
    pub closed_reason: Words<'a>,
    pub command: Option<Box<Command<'a>>>,
    pub task: Option<Box<Task<'a>>>,
    pub activity: Option<Box<Activity<'a>>>,
    pub timer: Option<Box<Timer<'a>>>,
    pub child: Option<Box<Child<'a>>>,
    pub failure: Option<Box<EntryFailure<'a>>>,
}

/// The entries by sequence; with a limit, the last ones, and nothing before them is read.
pub fn timeline<'a>(
    cx: Context<'a>,
    failures: &'a [Failure],
    limit: Option<usize>,
) -> Vec<Entry<'a>> {
    let events = &cx.snapshot.events;
    let skipped = limit.map_or(0, |limit| events.len().saturating_sub(limit.max(1)));
    let rows = Rows::of(cx, failures);
    events
        .iter()
        .skip(skipped)
        .map(|event| rows.entry(event))
        .collect()
}

/// All entries by sequence, one at a time: together they may be longer than memory. Some rows that
/// the events name may stand beside those of the context.
pub fn entries<'a>(
    cx: Context<'a>,
    beside: &'a Beside,
    failures: &'a [Failure],
) -> impl Iterator<Item = Entry<'a>> + use<'a> {
    let mut rows = Rows::of(cx, failures);
    let Beside {
        executions,
        timers,
        commands,
    } = beside;
    rows.executions.extend(by_id(executions, |row| &row.id));
    rows.timers.extend(by_id(timers, |row| &row.id));
    rows.commands.extend(by_id(commands, |row| &row.id));
    cx.snapshot
        .events
        .iter()
        .map(move |event| rows.entry(event))
}

/// Rows that events name and that are no steps of theirs.
#[derive(Debug, Default)]
pub struct Beside {
    pub executions: Vec<ExecutionRow>,
    pub timers: Vec<TimerRow>,
    pub commands: Vec<CommandRow>,
}

/// What one event says of itself, in one sentence, without any row beside it.
pub fn told(event: &HistoryEvent) -> String {
    Rows::default().entry(event).summary
}

/// The rows an event may name, by id.
#[derive(Default)]
struct Rows<'a> {
    run_id: &'a str,
    commands: HashMap<&'a str, &'a CommandRow>,
    tasks: HashMap<&'a str, &'a TaskRow>,
    executions: HashMap<&'a str, &'a ExecutionRow>,
    timers: HashMap<&'a str, &'a TimerRow>,
    failures: HashMap<&'a str, &'a Failure>,
    policies: RefCell<Policies>,
}

impl<'a> Rows<'a> {
    fn of(cx: Context<'a>, failures: &'a [Failure]) -> Self {
        Self {
            run_id: &cx.snapshot.run.id,
            commands: by_id(&cx.snapshot.commands, |row| &row.id).collect(),
            tasks: by_id(&cx.snapshot.tasks, |row| &row.id).collect(),
            executions: by_id(&cx.snapshot.executions, |row| &row.id).collect(),
            timers: by_id(&cx.snapshot.timers, |row| &row.id).collect(),
            failures: by_id(failures, |failure| &failure.id).collect(),
            policies: RefCell::default(),
        }
    }

    fn entry(&self, event: &'a HistoryEvent) -> Entry<'a> {
        let told: TimelineEvent = event.as_payload();
        let group = ParallelGroup::of_payload(&told);
        let path = &group.parallel_group_path;
        let command_id = filled(event.workflow_command_id.as_deref())
            .or_else(|| told.workflow_command_id.0.clone());
        let policies = &mut *self.policies.borrow_mut();
        let known = find(&self.failures, told.failure_id.as_deref());
        let parts = Parts {
            command: Command::of(
                event,
                &told,
                command_id.clone(),
                find(&self.commands, command_id.as_deref()),
            ),
            task: Task::of(
                event,
                &told,
                find(&self.tasks, event.workflow_task_id.as_deref()),
            ),
            activity: Activity::of(
                event,
                &told,
                find(&self.executions, told.activity_execution_id.as_deref()),
                known,
                path,
                policies,
            ),
            timer: Timer::of(event, &told, find(&self.timers, told.timer_id.as_deref())),
            child: Child::of(event, &told, path),
            failure: EntryFailure::of(event, &told, known),
        };
        parts.entry(self.run_id, event, told, command_id, group, policies)
    }
}

fn by_id<T>(rows: &[T], id: fn(&T) -> &str) -> impl Iterator<Item = (&str, &T)> {
    rows.iter().map(move |row| (id(row), row))
}

fn filled(text: Option<&str>) -> Words<'_> {
    text.filter(|text| !text.is_empty()).map(Cow::Borrowed)
}

fn find<'r, T>(rows: &HashMap<&str, &'r T>, id: Option<&str>) -> Option<&'r T> {
    rows.get(id?).copied()
}

/// The objects an event touched.
struct Parts<'a> {
    command: Option<Command<'a>>,
    task: Option<Task<'a>>,
    activity: Option<Activity<'a>>,
    timer: Option<Timer<'a>>,
    child: Option<Child<'a>>,
    failure: Option<EntryFailure<'a>>,
}

impl<'a> Parts<'a> {
    fn entry(
        self,
        run_id: &'a str,
        event: &'a HistoryEvent,
        told: TimelineEvent<'a>,
        command_id: Words<'a>,
        group: ParallelGroup,
        policies: &mut Policies,
    ) -> Entry<'a> {
        let kind = Kind::of(&event.event_type);
        let summary = words::summary(&event.event_type, &told, &self);
        let source_id = self.source_id(kind, run_id, &told);
        let Self {
            command,
            task,
            activity,
            timer,
            child,
            failure,
        } = self;
        let of_command = |field: for<'r> fn(&'r Command<'a>) -> &'r Words<'a>| {
            command.as_ref().and_then(|command| field(command).clone())
        };
        let of_activity = |field: for<'r> fn(&'r Activity<'a>) -> &'r Words<'a>| {
            activity
                .as_ref()
                .and_then(|activity| field(activity).clone())
        };
        let of_child = |field: for<'r> fn(&'r Child<'a>) -> &'r Words<'a>| {
            child.as_ref().and_then(|child| field(child).clone())
        };
        let of_failure = |field: for<'r> fn(&'r EntryFailure<'a>) -> &'r Words<'a>| {
            failure.as_ref().and_then(|failure| field(failure).clone())
        };
        // The engine names a signal after its command's target, and an update too: both keys
        // are filled for either.
        let target_name = of_command(|command| &command.target_name);
        Entry {
            id: &event.id,
            sequence: event.sequence,
            event_type: &event.event_type,
            kind,
            entry_kind: "point",
            source_kind: kind.source_kind(),
            source_id,
            summary,
            recorded_at: event.recorded_at,
            command_id,
            command_sequence: command.as_ref().and_then(|command| command.sequence),
            requested_run_id: of_command(|command| &command.requested_run_id),
            resolved_run_id: of_command(|command| &command.resolved_run_id),
            task_id: filled(event.workflow_task_id.as_deref()),
            command_type: of_command(|command| &command.command_type),
            command_status: of_command(|command| &command.status),
            command_outcome: of_command(|command| &command.outcome),
            command_rejection_reason: of_command(|command| &command.rejection_reason),
            workflow_sequence: told.sequence.get(),
            signal_id: told.signal_id.0,
            signal_wait_id: told.signal_wait_id.0,
            condition_wait_id: told.condition_wait_id.0,
            condition_key: told.condition_key.0,
            condition_definition_fingerprint: told.condition_definition_fingerprint.0,
            signal_name: target_name.clone().or(told.signal_name.0),
            update_name: target_name.or(told.update_name.0),
            version_change_id: told.change_id.0,
            version: told.version.get(),
            version_min_supported: told.min_supported.get(),
            version_max_supported: told.max_supported.get(),
            activity_execution_id: of_activity(|activity| &activity.id),
            activity_type: of_activity(|activity| &activity.activity_type),
            activity_class: of_activity(|activity| &activity.class),
            activity_status: of_activity(|activity| &activity.status),
            retry_task_id: told.retry_task_id.0,
            retry_available_at: *told.retry_available_at,
            retry_backoff_seconds: told.retry_backoff_seconds.get(),
            retry_max_attempts: told.max_attempts.get(),
            retry_policy: policies.get(told.retry_policy.collection()),
            retry_after_attempt_id: told.retry_after_attempt_id.0,
            retry_after_attempt: told.retry_after_attempt.get(),
            timer_id: timer.as_ref().and_then(|timer| timer.id.clone()),
            delay_seconds: told
                .timeout_seconds
                .get()
                .or_else(|| timer.as_ref().and_then(|timer| timer.delay_seconds)),
            child_call_id: of_child(|child| &child.child_call_id),
            child_workflow_instance_id: of_child(|child| &child.instance_id),
            child_workflow_run_id: of_child(|child| &child.run_id),
            child_workflow_type: of_child(|child| &child.workflow_type),
            child_workflow_class: of_child(|child| &child.class),
            child_status: of_child(|child| &child.status),
            group,
            failure_id: of_failure(|failure| &failure.id),
            exception_type: of_failure(|failure| &failure.exception_type),
            exception_class: of_failure(|failure| &failure.exception_class),
            exception_resolved_class: of_failure(|failure| &failure.exception_resolved_class),
            exception_resolution_source: failure
                .as_ref()
                .and_then(|failure| failure.exception_resolution_source),
            exception_resolution_error: of_failure(|failure| &failure.exception_resolution_error),
            message: of_failure(|failure| &failure.message),
            closed_reason: told.closed_reason.0,
            command: command.map(Box::new),
            task: task.map(Box::new),
            activity: activity.map(Box::new),
            timer: timer.map(Box::new),
            child: child.map(Box::new),
            failure: failure.map(Box::new),
        }
    }

    fn source_id(&self, kind: Kind, run_id: &'a str, told: &TimelineEvent<'a>) -> Words<'a> {
        match kind {
            Kind::Command | Kind::Update => self.command.as_ref()?.id.clone(),
            Kind::Signal => told.signal_wait_id.0.clone(),
            Kind::Condition => told.condition_wait_id.0.clone(),
            Kind::Version => told.change_id.0.clone(),
            Kind::Child => {
                let child = self.child.as_ref()?;
                child.run_id.clone().or_else(|| child.instance_id.clone())
            }
            Kind::Activity => self
                .activity
                .as_ref()
                .and_then(|activity| activity.id.clone())
                .or_else(|| {
                    self.failure
                        .as_ref()
                        .filter(|of| of.source_kind.as_deref() == Some("activity_execution"))
                        .and_then(|of| of.source_id.clone())
                }),
            Kind::Failure => told.failure_id.0.clone(),
            Kind::Timer => self.timer.as_ref()?.id.clone(),
            Kind::SideEffect | Kind::Workflow => Some(Cow::Borrowed(run_id)),
        }
    }
}
