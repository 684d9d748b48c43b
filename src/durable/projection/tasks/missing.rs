//! Tasks that should be there and are not: each names what it was for, so that repair can put
//! back the same.

use std::collections::HashMap;

use chrono::{DateTime, Utc};

use super::{Lookup, Steps, Task, of_fleet, words};
use crate::durable::{
    projection::{
        context::Context,
        liveness::is_replay_blocked,
        waits::{OfKind, Wait},
    },
    stored::{SignalStatus, TaskType},
};

const MISSING: &str = "missing";

pub(super) fn missing(
    cx: Context<'_>,
    steps: Steps<'_>,
    lookup: &Lookup<'_>,
    real: &[Task],
) -> Vec<Task> {
    let mut found = Found {
        cx,
        rows: Vec::new(),
        places: HashMap::new(),
    };
    for wait in steps.waits {
        if let Some(task) = of_wait(wait, lookup) {
            found.add(task);
        }
    }
    let workflow_task_open = real
        .iter()
        .any(|task| task.is_open && task.r#type == TaskType::Workflow.as_str());
    if !workflow_task_open {
        if let Some(task) = of_resolved_child(cx, steps.waits) {
            found.add(task);
        }
        for task in of_received_signals(steps) {
            found.add(task);
        }
        if let Some(task) = of_run(cx, steps.waits, real, &found.rows) {
            found.add(task);
        }
    }
    found.rows
}

/// Rows with the same id collapse to the last one.
struct Found<'a> {
    cx: Context<'a>,
    rows: Vec<Task>,
    places: HashMap<String, usize>,
}

impl Found<'_> {
    fn add(&mut self, mut task: Task) {
        let run = &self.cx.snapshot.run;
        MISSING.clone_into(&mut task.status);
        MISSING.clone_into(&mut task.transport_state);
        task.task_missing = true;
        task.synthetic = true;
        task.connection = task.connection.or_else(|| run.connection.clone());
        task.queue = task.queue.or_else(|| run.queue.clone());
        of_fleet(self.cx, &mut task, None);
        task.summary = words::summary(self.cx, &task);
        if let Some(place) = self.places.get(&task.id) {
            self.rows[*place] = task;
        } else {
            self.places.insert(task.id.clone(), self.rows.len());
            self.rows.push(task);
        }
    }
}

/// The task an open wait needs and does not have.
fn of_wait(wait: &Wait, lookup: &Lookup<'_>) -> Option<Task> {
    if wait.task_backed {
        return None;
    }
    let timed_out = wait.source_status.as_deref() == Some("timed_out");
    let by_timer = wait.resume_source_kind.as_deref() == Some("timer");
    match (wait.kind, &wait.of_kind) {
        // A step that nobody has begun. One that runs may still be running: it gets no row.
        ("activity", _) if is_pending_step(wait) => Some(activity(wait, lookup)),
        ("timer", _) if is_pending_step(wait) => {
            let id = wait.resume_source_id.clone()?;
            Some(timer(&id, wait, lookup))
        }
        (
            "condition",
            OfKind::Condition {
                condition_wait_id,
                condition_key,
                condition_definition_fingerprint,
                ..
            },
        ) if wait.is_open() && by_timer => {
            let timer_id = wait.resume_source_id.clone()?;
            let mut task = if wait.timeout_fired_at.is_none() {
                timer(&timer_id, wait, lookup)
            } else {
                fired(
                    format!("missing:workflow:condition-timeout:{condition_wait_id}"),
                    "condition",
                    &timer_id,
                    wait,
                )
            };
            task.condition_wait_id = Some(condition_wait_id.clone());
            task.condition_key.clone_from(condition_key);
            task.condition_definition_fingerprint
                .clone_from(condition_definition_fingerprint);
            Some(task)
        }
        ("signal", OfKind::Signal { signal_wait_id, .. })
            if (wait.is_open() || timed_out) && by_timer =>
        {
            let timer_id = wait.resume_source_id.clone()?;
            let mut task = if wait.timeout_fired_at.is_none() {
                timer(&timer_id, wait, lookup)
            } else {
                fired(
                    format!("missing:workflow:signal-timeout:{signal_wait_id}"),
                    "signal",
                    &timer_id,
                    wait,
                )
            };
            task.signal_wait_id = Some(signal_wait_id.clone());
            task.signal_name.clone_from(&wait.target_name);
            Some(task)
        }
        ("update", OfKind::Update { update_id, .. }) if wait.is_open() => Some(Task {
            workflow_update_id: update_id.clone(),
            workflow_command_id: wait.command_id.clone(),
            ..resume(
                format!("missing:workflow:{}", wait.id),
                "update",
                wait,
                wait.opened_at,
            )
        }),
        _ => None,
    }
}

fn is_pending_step(wait: &Wait) -> bool {
    wait.is_open() && !wait.is_diagnostic() && wait.source_status.as_deref() == Some("pending")
}

fn activity(wait: &Wait, lookup: &Lookup<'_>) -> Task {
    let id = wait.id.strip_prefix("activity:").unwrap_or(&wait.id);
    let known = lookup.activities.get(id);
    let retry = known.and_then(|activity| activity.retry.as_ref());
    Task {
        id: format!("missing:activity:{id}"),
        r#type: TaskType::Activity.as_str().to_owned(),
        expected_task_id: retry.and_then(|retry| retry.retry_task_id.clone()),
        available_at: retry
            .and_then(|retry| retry.retry_available_at)
            .or(wait.opened_at),
        attempt_count: retry
            .and_then(|retry| retry.retry_after_attempt)
            .or(known.map(|activity| activity.attempt_count))
            .unwrap_or(0),
        connection: known.and_then(|activity| activity.connection.clone()),
        queue: known.and_then(|activity| activity.queue.clone()),
        activity_execution_id: Some(id.to_owned()),
        activity_type: known.and_then(|activity| activity.r#type.clone()),
        activity_class: known.and_then(|activity| activity.class.clone()),
        retry_of_task_id: retry.and_then(|retry| retry.retry_of_task_id.clone()),
        retry_after_attempt_id: retry.and_then(|retry| retry.retry_after_attempt_id.clone()),
        retry_after_attempt: retry.and_then(|retry| retry.retry_after_attempt),
        retry_backoff_seconds: retry.and_then(|retry| retry.retry_backoff_seconds),
        retry_max_attempts: retry.and_then(|retry| retry.max_attempts),
        retry_policy: retry
            .and_then(|retry| retry.retry_policy.clone())
            .or_else(|| known.and_then(|activity| activity.retry_policy.clone())),
        ..Task::default()
    }
}

/// The task that would fire a timer, at the moment the wait ends.
fn timer(timer_id: &str, wait: &Wait, lookup: &Lookup<'_>) -> Task {
    let known = lookup.timers.get(timer_id);
    let fire_at = wait
        .deadline_at
        .or_else(|| known.and_then(|timer| timer.fire_at));
    Task {
        id: format!("missing:timer:{timer_id}"),
        r#type: TaskType::Timer.as_str().to_owned(),
        available_at: fire_at,
        timer_id: Some(timer_id.to_owned()),
        timer_sequence: known.and_then(|timer| timer.sequence).or(wait.sequence),
        timer_fire_at: fire_at,
        ..Task::default()
    }
}

/// The workflow task that would tell the workflow its wait has timed out: the timer is done, so
/// the wait speaks for it.
fn fired(id: String, kind: &str, timer_id: &str, wait: &Wait) -> Task {
    Task {
        timer_id: Some(timer_id.to_owned()),
        timer_sequence: wait.sequence,
        timer_fire_at: wait.deadline_at,
        workflow_sequence: wait.sequence,
        ..resume(
            id,
            kind,
            wait,
            wait.timeout_fired_at
                .or(wait.deadline_at)
                .or(wait.opened_at),
        )
    }
}

/// A workflow task that resumes a wait.
fn resume(id: String, kind: &str, wait: &Wait, available_at: Option<DateTime<Utc>>) -> Task {
    Task {
        id,
        r#type: TaskType::Workflow.as_str().to_owned(),
        available_at,
        workflow_wait_kind: Some(kind.to_owned()),
        workflow_open_wait_id: Some(wait.id.clone()),
        workflow_resume_source_kind: wait.resume_source_kind.clone(),
        workflow_resume_source_id: wait.resume_source_id.clone(),
        ..Task::default()
    }
}

/// A child has ended and no task brings the result to the workflow: the first such only.
fn of_resolved_child(cx: Context<'_>, waits: &[Wait]) -> Option<Task> {
    if cx.snapshot.run.status.is_terminal() {
        return None;
    }
    let any_open = waits.iter().any(Wait::is_open);
    let wait = waits.iter().find(|wait| {
        wait.kind == "child"
            && !wait.is_open()
            && wait.status != "unsupported"
            && !(any_open && wait.source_status.as_deref() == Some("completed"))
    })?;
    let OfKind::Child { child_call_id, .. } = &wait.of_kind else {
        return None;
    };
    // A child that only a link knows of resumes nothing: its run is not named.
    Some(Task {
        workflow_resume_source_kind: Some("child_workflow_run".to_owned()),
        workflow_sequence: wait.sequence,
        child_call_id: child_call_id.clone(),
        child_workflow_run_id: wait.resume_source_id.clone(),
        ..resume(
            format!("missing:workflow:{}", wait.id),
            "child",
            wait,
            wait.resolved_at.or(wait.opened_at),
        )
    })
}

/// Signals that were received and that no task brings to the workflow.
fn of_received_signals(steps: Steps<'_>) -> impl Iterator<Item = Task> {
    steps
        .signals
        .iter()
        .filter(|signal| signal.status == SignalStatus::Received)
        .filter_map(|signal| {
            let id = signal.id.as_ref().or(signal.command_id.as_ref())?;
            let source = if signal.id.is_some() {
                "workflow_signal"
            } else {
                "workflow_command"
            };
            Some(Task {
                id: format!("missing:workflow:signal-application:{id}"),
                r#type: TaskType::Workflow.as_str().to_owned(),
                available_at: signal.received_at,
                signal_name: None,
                workflow_wait_kind: Some("signal".to_owned()),
                workflow_open_wait_id: Some(format!("signal-application:{id}")),
                workflow_resume_source_kind: Some(source.to_owned()),
                workflow_resume_source_id: Some(id.clone()),
                workflow_signal_id: signal.id.clone(),
                workflow_command_id: signal.command_id.clone(),
                ..Task::default()
            })
        })
}

/// Nothing at all will wake this run.
fn of_run(cx: Context<'_>, waits: &[Wait], real: &[Task], missing: &[Task]) -> Option<Task> {
    let run = &cx.snapshot.run;
    let nothing = !run.status.is_terminal()
        && !waits
            .iter()
            .any(|wait| wait.is_open() || wait.status == "unsupported")
        && !real.iter().any(is_replay_blocked)
        && !missing
            .iter()
            .any(|task| task.r#type == TaskType::Workflow.as_str());
    nothing.then(|| Task {
        id: format!("missing:workflow:{}", run.id),
        r#type: TaskType::Workflow.as_str().to_owned(),
        available_at: run.last_progress_at.or(run.started_at).or(run.created_at),
        ..Task::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::durable::{
        projection::{
            example::{at, task, told},
            tasks::tasks,
            timers::Timer,
        },
        store::snapshot::RunSnapshot,
    };

    /// What a wait that nothing stands behind makes of the tasks.
    fn missed(wait: Wait, timers: &[Timer]) -> Option<Task> {
        told(&RunSnapshot::default(), |cx| {
            let steps = Steps {
                activities: &[],
                timers,
                waits: &[wait],
                signals: &[],
            };
            tasks(cx, steps).into_iter().next()
        })
    }

    fn condition(change: impl FnOnce(&mut Wait)) -> Wait {
        let mut wait = Wait {
            id: "c".into(),
            kind: "condition",
            status: "open",
            sequence: Some(7),
            resume_source_kind: Some("timer".into()),
            resume_source_id: Some("t".into()),
            of_kind: OfKind::Condition {
                condition_wait_id: "c".into(),
                condition_key: None,
                condition_definition_fingerprint: None,
                timeout_seconds: None,
            },
            ..Wait::default()
        };
        change(&mut wait);
        wait
    }

    #[test]
    fn a_missing_timeout_is_told_by_the_wait_before_its_timer() {
        let timer = Timer {
            sequence: Some(8),
            fire_at: Some(at(20)),
            ..Timer::unheard_of("t")
        };
        let due = |wait: &mut Wait| wait.deadline_at = Some(at(10));
        let fired = |wait: &mut Wait| {
            wait.deadline_at = Some(at(10));
            wait.timeout_fired_at = Some(at(30));
        };
        for (what, wait, timers, want) in [
            (
                "the wait's deadline, the timer's place",
                condition(due),
                vec![timer.clone()],
                ("timer", Some(at(10)), Some(at(10)), Some(8)),
            ),
            (
                "no deadline: when the timer fires",
                condition(|_| {}),
                vec![timer.clone()],
                ("timer", Some(at(20)), Some(at(20)), Some(8)),
            ),
            (
                "no timer: the wait's place",
                condition(due),
                vec![],
                ("timer", Some(at(10)), Some(at(10)), Some(7)),
            ),
            (
                "fired: the wait's own",
                condition(fired),
                vec![timer],
                ("workflow", Some(at(30)), Some(at(10)), Some(7)),
            ),
        ] {
            let task = missed(wait, &timers).expect(what);
            let got = (
                task.r#type.as_str(),
                task.available_at,
                task.timer_fire_at,
                task.timer_sequence,
            );
            assert_eq!(got, want, "{what}");
        }
    }

    #[test]
    fn only_a_failed_workflow_task_blocks_the_run_from_being_missed() {
        let blocked = serde_json::json!({"replay_blocked": true});
        for (what, status, task_type, want) in [
            ("failed", "failed", TaskType::Workflow, false),
            ("a leftover flag", "completed", TaskType::Workflow, true),
            ("an activity's", "failed", TaskType::Activity, true),
        ] {
            let mut row = task("t", status, &blocked);
            row.task_type = task_type;
            let snapshot = RunSnapshot {
                tasks: vec![row],
                ..RunSnapshot::default()
            };
            let steps = Steps {
                activities: &[],
                timers: &[],
                waits: &[],
                signals: &[],
            };
            let missed = told(&snapshot, |cx| {
                tasks(cx, steps).iter().any(|task| task.synthetic)
            });
            assert_eq!(missed, want, "{what}");
        }
    }
}
