//! Can the run go on by itself, and what is it waiting for? Recomputed now from history and
//! rows, by the rules the engine's own summary projection follows.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::{
    activities::Activity,
    authority,
    children::Child,
    context::{Context, millis, ts},
    signals::Signal,
    tasks::{Task, payload_of},
    timers::Timer,
    transport::{Health, Patience},
    updates::Update,
    waits::{OfKind, Wait, conditions::ConditionWait, signals::SignalWait},
};
use crate::durable::stored::{
    ActivityStatus, LivenessState, SignalStatus, TaskStatus, TaskType, TimerStatus, WaitKind,
};

/// The steps a run's standing is judged by.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    pub activities: &'a [Activity<'a>],
    pub timers: &'a [Timer],
    pub conditions: &'a [ConditionWait],
    pub signal_waits: &'a [SignalWait],
    pub children: &'a [Child<'a>],
    pub signals: &'a [Signal],
    /// In the order their commands were taken in.
    pub updates: &'a [Update],
    pub waits: &'a [Wait],
    pub tasks: &'a [Task],
}

/// How a run stands: the columns of a summary that speak of waiting and liveness.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Standing {
    pub wait_kind: Option<WaitKind>,
    #[serde(serialize_with = "ts")]
    pub wait_started_at: Option<DateTime<Utc>>,
    #[serde(serialize_with = "ts")]
    pub wait_deadline_at: Option<DateTime<Utc>>,
    pub open_wait_id: Option<String>,
    pub resume_source_kind: Option<String>,
    pub resume_source_id: Option<String>,
    pub next_task_id: Option<String>,
    pub next_task_type: Option<TaskType>,
    pub next_task_status: Option<TaskStatus>,
    #[serde(serialize_with = "ts")]
    pub next_task_at: Option<DateTime<Utc>>,
    #[serde(serialize_with = "ts")]
    pub next_task_lease_expires_at: Option<DateTime<Utc>>,
    pub liveness_state: LivenessState,
    pub task_problem: bool,
    /// A failed workflow task is marked replay-blocked.
    pub replay_blocked_task: bool,
}

/// The inputs of the decision tables, each found once.
#[expect(clippy::struct_excessive_bools, reason = "each is a row of the tables")]
struct Inputs<'a> {
    /// The next open task of any type.
    next: Option<&'a Task>,
    replay_blocked: Option<&'a Task>,
    /// A pending or running activity history knows.
    activity: Option<&'a Activity<'a>>,
    /// One only its row knows.
    row_activity: Option<&'a Activity<'a>>,
    unsupported_activity: bool,
    unsupported_timer: bool,
    update: Option<&'a Wait>,
    update_task: Option<&'a Task>,
    /// A signal received and not applied.
    signal: Option<&'a Signal>,
    condition: Option<&'a ConditionWait>,
    timer: Option<&'a Timer>,
    row_timer: bool,
    open_child: Option<&'a Child<'a>>,
    row_child: bool,
    /// A child that ended and whose outcome the workflow has not seen.
    resolved_child: Option<&'a Child<'a>>,
    unsupported_child: bool,
    signal_wait: Option<&'a SignalWait>,
}

pub fn standing(cx: Context<'_>, evidence: Evidence<'_>) -> Standing {
    let judge = Judge::new(cx, evidence);
    let blocked_task = evidence.tasks.iter().any(is_replay_blocked);
    if cx.snapshot.run.status.is_terminal() {
        return Standing {
            wait_kind: None,
            wait_started_at: None,
            wait_deadline_at: None,
            open_wait_id: None,
            resume_source_kind: None,
            resume_source_id: None,
            next_task_id: None,
            next_task_type: None,
            next_task_status: None,
            next_task_at: None,
            next_task_lease_expires_at: None,
            liveness_state: LivenessState::Closed,
            task_problem: judge.any_workflow_task_in_trouble(),
            replay_blocked_task: blocked_task,
        };
    }
    let inputs = judge.inputs();
    let wait = Judge::wait(&inputs);
    let liveness = judge.liveness(&inputs);
    let selected = if inputs.update.is_some() {
        inputs.update_task
    } else {
        inputs.next
    };
    Standing {
        task_problem: inputs.replay_blocked.is_some()
            || judge.any_workflow_task_in_trouble()
            || (inputs.update.is_some() && inputs.update_task.is_none())
            || inputs.signal.is_some()
            || inputs.resolved_child.is_some()
            || (inputs
                .condition
                .is_some_and(|condition| condition.timeout_fired_at.is_some())
                && inputs.next.is_none())
            || (liveness == LivenessState::RepairNeeded && wait.kind.is_none()),
        replay_blocked_task: blocked_task,
        wait_kind: wait.kind,
        wait_started_at: wait.started,
        wait_deadline_at: wait.deadline,
        open_wait_id: wait.id,
        resume_source_kind: wait.source,
        resume_source_id: wait.source_id,
        next_task_id: selected.map(|task| task.id.clone()),
        next_task_type: selected.map(|task| task.r#type.as_str().into()),
        next_task_status: selected.map(|task| task.status.as_str().into()),
        next_task_at: selected.and_then(|task| task.available_at),
        next_task_lease_expires_at: selected.and_then(|task| task.lease_expires_at),
        liveness_state: liveness,
    }
}

/// Only a failed workflow task counts: the flag on any other is a leftover.
pub fn is_replay_blocked(task: &Task) -> bool {
    task.replay_blocked
        && !task.synthetic
        && task.r#type == TaskType::Workflow.as_str()
        && task.status == TaskStatus::Failed.as_str()
}

#[derive(Default)]
struct WaitColumns {
    kind: Option<WaitKind>,
    id: Option<String>,
    source: Option<String>,
    source_id: Option<String>,
    started: Option<DateTime<Utc>>,
    deadline: Option<DateTime<Utc>>,
}

struct Judge<'a> {
    cx: Context<'a>,
    evidence: Evidence<'a>,
    health: HashMap<&'a str, Health>,
}

impl<'a> Judge<'a> {
    fn new(cx: Context<'a>, evidence: Evidence<'a>) -> Self {
        let patience = Patience::of(cx.config);
        let health = cx
            .snapshot
            .tasks
            .iter()
            .filter(|row| row.status.is_open())
            .map(|row| (row.id.as_str(), Health::of(row, cx.now, patience)))
            .collect();
        Self {
            cx,
            evidence,
            health,
        }
    }

    fn health(&self, task: &Task) -> Health {
        self.health
            .get(task.id.as_str())
            .copied()
            .unwrap_or_default()
    }

    /// A workflow task that is in trouble now, or that repair had to touch once.
    fn any_workflow_task_in_trouble(&self) -> bool {
        self.cx
            .snapshot
            .tasks
            .iter()
            .filter(|row| row.task_type == TaskType::Workflow)
            .any(|row| {
                let health = self
                    .health
                    .get(row.id.as_str())
                    .copied()
                    .unwrap_or_default();
                row.repair_count > 0
                    || health.dispatch_failed
                    || health.dispatch_overdue
                    || health.claim_failed
                    || health.lease_expired
                    || *payload_of(row).replay_blocked == Some(true)
            })
    }

    fn inputs(&self) -> Inputs<'a> {
        let e = self.evidence;
        let next = self.next_task();
        let replay_blocked = e
            .tasks
            .iter()
            .filter(|task| is_replay_blocked(task))
            .max_by_key(|task| task.updated_at.or(task.created_at).map(millis));
        let open = |activity: &&Activity| {
            matches!(
                activity.status,
                ActivityStatus::Pending | ActivityStatus::Running
            )
        };
        let activity = e
            .activities
            .iter()
            .filter(open)
            .find(|activity| activity.history_authority != authority::OPEN_FALLBACK);
        let update = e
            .updates
            .iter()
            .filter(|_| activity.is_none())
            .filter(|update| update.ordering_state == "ready")
            .find_map(|update| e.waits.iter().find(|wait| is_wait_for(wait, update)));
        let update_task = update
            .and_then(|wait| wait.task_id.as_deref())
            .and_then(|id| e.tasks.iter().find(|task| task.id == id && task.is_open));
        let signal = e
            .signals
            .iter()
            .filter(|_| activity.is_none() && update.is_none() && next.is_none())
            .filter(|signal| signal.status == SignalStatus::Received)
            .min_by_key(|signal| {
                (
                    signal.command_sequence.unwrap_or(i64::MAX),
                    signal.received_at.map_or(i64::MAX, millis),
                    signal.id.as_ref().or(signal.command_id.as_ref()),
                )
            });
        let condition = e
            .conditions
            .iter()
            .filter(|_| activity.is_none() && update.is_none() && signal.is_none())
            .filter(|condition| condition.status == "open")
            .max_by_key(|condition| {
                (
                    condition.sequence,
                    condition.opened_at.map(millis),
                    &condition.condition_wait_id,
                )
            });
        let conditions_timer = condition.and_then(|condition| condition.timer_id.as_deref());
        let own_timer =
            |timer: &&Timer| update.is_none() && Some(timer.id.as_str()) != conditions_timer;
        let timer = e.timers.iter().filter(own_timer).find(|timer| {
            timer.status == TimerStatus::Pending
                && timer.history_authority == authority::TYPED
                && !timer.is_timeout()
        });
        let row_timer = e
            .timers
            .iter()
            .filter(own_timer)
            .any(|timer| timer.history_authority == authority::OPEN_FALLBACK);
        let nothing_before_children = activity.is_none()
            && update.is_none()
            && signal.is_none()
            && condition.is_none()
            && timer.is_none();
        let open_children = || {
            e.children
                .iter()
                .filter(|child| nothing_before_children && next.is_none() && child.is_open())
        };
        let open_child = open_children().find(|child| child.is_typed());
        let row_child =
            open_children().any(|child| child.history_authority == authority::OPEN_FALLBACK);
        let resolved_child = e
            .children
            .iter()
            .filter(|_| nothing_before_children && !row_child)
            .find(|child| {
                !child.is_open()
                    && child.resolution.is_some()
                    && !(open_child.is_some()
                        && child.source_status.as_deref() == Some("completed"))
            });
        let no_child = nothing_before_children
            && !row_child
            && open_child.is_none()
            && resolved_child.is_none();
        let unsupported_child = no_child
            && e.children
                .iter()
                .any(|child| child.history_unsupported_reason.is_some());
        let signal_wait = e
            .signal_waits
            .iter()
            .filter(|_| no_child && !unsupported_child)
            .filter(|wait| wait.status == "open" || wait.source_status == "timed_out")
            .max_by_key(|wait| {
                (
                    wait.sequence,
                    wait.opened_at.map(millis),
                    &wait.signal_wait_id,
                )
            });
        Inputs {
            next,
            replay_blocked,
            activity,
            row_activity: e
                .activities
                .iter()
                .find(|activity| activity.history_authority == authority::OPEN_FALLBACK),
            unsupported_activity: e
                .activities
                .iter()
                .any(|activity| activity.history_unsupported_reason.is_some()),
            unsupported_timer: e
                .timers
                .iter()
                .any(|timer| timer.history_unsupported_reason.is_some()),
            update,
            update_task,
            signal,
            condition,
            timer,
            row_timer,
            open_child,
            row_child,
            resolved_child,
            unsupported_child,
            signal_wait,
        }
    }

    /// Leased before ready, then by when it may be taken.
    fn next_task(&self) -> Option<&'a Task> {
        self.evidence
            .tasks
            .iter()
            .filter(|task| task.is_open)
            .min_by_key(|task| (task.status != TaskStatus::Leased.as_str(), task.turn()))
    }

    /// What the run waits for; the first that applies.
    fn wait(i: &Inputs<'a>) -> WaitColumns {
        let some = |text: &str| Some(text.to_owned());
        if let Some(activity) = i.activity {
            return WaitColumns {
                kind: Some(WaitKind::Activity),
                id: Some(format!("activity:{}", activity.id)),
                source: some("activity_execution"),
                source_id: Some(activity.id.clone()),
                started: activity.started_at.or(activity.created_at),
                deadline: None,
            };
        }
        if let Some(wait) = i.update {
            return WaitColumns {
                kind: Some(WaitKind::Update),
                id: Some(wait.id.clone()),
                source: wait.resume_source_kind.clone(),
                source_id: wait.resume_source_id.clone(),
                started: wait.opened_at,
                deadline: None,
            };
        }
        if let Some(signal) = i.signal {
            let id = signal.id.as_ref().or(signal.command_id.as_ref());
            let source = if signal.id.is_some() {
                "workflow_signal"
            } else {
                "workflow_command"
            };
            return WaitColumns {
                kind: Some(WaitKind::Signal),
                id: id
                    .or(signal.signal_wait_id.as_ref())
                    .map(|id| format!("signal-application:{id}")),
                source: some(source),
                source_id: id.cloned(),
                started: signal.received_at,
                deadline: None,
            };
        }
        // A plain timer before a condition: the opposite of the order liveness asks in.
        if let Some(timer) = i.timer {
            return WaitColumns {
                kind: Some(WaitKind::Timer),
                id: Some(format!("timer:{}", timer.id)),
                source: some("timer"),
                source_id: Some(timer.id.clone()),
                started: timer.created_at,
                deadline: timer.fire_at,
            };
        }
        if let Some(condition) = i.condition {
            return WaitColumns {
                kind: Some(WaitKind::Condition),
                id: Some(condition.condition_wait_id.clone()),
                source: some(if condition.timer_id.is_some() {
                    "timer"
                } else {
                    "external_input"
                }),
                source_id: condition.timer_id.clone(),
                started: condition.opened_at,
                deadline: condition.deadline_at,
            };
        }
        if let Some(wait) = i.signal_wait {
            return WaitColumns {
                kind: Some(WaitKind::Signal),
                id: Some(wait.signal_wait_id.clone()),
                source: some(if wait.timer_id.is_some() {
                    "timer"
                } else {
                    "signal"
                }),
                source_id: wait.timer_id.clone(),
                started: wait.opened_at,
                deadline: wait.deadline_at,
            };
        }
        if let Some(task) = i
            .next
            .filter(|task| task.r#type == TaskType::Workflow.as_str())
        {
            return WaitColumns {
                kind: Some(WaitKind::WorkflowTask),
                id: Some(format!("workflow-task:{}", task.id)),
                source: some("workflow_task"),
                source_id: Some(task.id.clone()),
                started: task.leased_at.or(task.available_at),
                deadline: task.lease_expires_at,
            };
        }
        let of_child = |child: &Child<'_>, started: Option<DateTime<Utc>>| WaitColumns {
            kind: Some(WaitKind::Child),
            id: Some(child_wait_id(child)),
            source: some("child_workflow_run"),
            source_id: child.child_workflow_run_id.clone(),
            started,
            deadline: None,
        };
        match (i.resolved_child, i.open_child) {
            (Some(child), _) => of_child(child, child.resolved_at.or(child.opened_at)),
            (None, Some(child)) => of_child(child, child.opened_at),
            (None, None) => WaitColumns::default(),
        }
    }

    /// Whether the run can go on; the first row that applies.
    fn liveness(&self, i: &Inputs<'a>) -> LivenessState {
        use LivenessState as L;
        let unhealthy = |task: &Task| self.health(task).is_unhealthy();
        match i {
            // The workflow task failed because history cannot be replayed.
            Inputs {
                replay_blocked: Some(_),
                ..
            } => L::WorkflowReplayBlocked,
            // A task in trouble is trouble whatever it is for.
            Inputs {
                next: Some(task), ..
            } if task.claim_failed || task.lease_expired || task.dispatch_failed => {
                self.of_task(task)
            }
            // Only a mutable row speaks of this activity: nothing to replay from.
            Inputs {
                row_activity: Some(_),
                ..
            } => L::WorkflowReplayBlocked,
            Inputs {
                activity: Some(_),
                next: Some(task),
                ..
            } => self.of_task(task),
            // Its code may still be running somewhere.
            Inputs {
                activity: Some(activity),
                ..
            } if activity.status == ActivityStatus::Running => L::ActivityRunningWithoutTask,
            Inputs {
                activity: Some(_), ..
            } => L::RepairNeeded,
            Inputs {
                update: Some(_),
                update_task: Some(task),
                ..
            } => self.of_task(task),
            Inputs {
                update: Some(_), ..
            }
            | Inputs {
                signal: Some(_), ..
            } => L::RepairNeeded,
            Inputs {
                condition: Some(condition),
                next,
                ..
            } if condition.timer_id.is_some() => self.timed(
                condition.timeout_fired_at.is_some(),
                *next,
                L::WaitingForCondition,
            ),
            // Whatever task there is has nothing to do with it.
            Inputs {
                condition: Some(_), ..
            } => L::WaitingForCondition,
            Inputs {
                signal_wait: Some(wait),
                next,
                ..
            } if wait.timer_id.is_some() => {
                self.timed(wait.timeout_fired_at.is_some(), *next, L::WaitingForSignal)
            }
            Inputs {
                timer: Some(_),
                next: Some(task),
                ..
            } if unhealthy(task) => self.of_task(task),
            Inputs {
                timer: Some(_),
                next: Some(task),
                ..
            } if task.status == TaskStatus::Leased.as_str() => L::TimerTaskLeased,
            Inputs {
                timer: Some(_),
                next: Some(_),
                ..
            } => L::TimerScheduled,
            Inputs { timer: Some(_), .. } => L::RepairNeeded,
            Inputs {
                row_timer: true, ..
            } => L::WorkflowReplayBlocked,
            Inputs {
                next: Some(task), ..
            } => self.of_task(task),
            Inputs {
                unsupported_activity: true,
                ..
            }
            | Inputs {
                unsupported_timer: true,
                ..
            } => L::WorkflowReplayBlocked,
            // The child's outcome is recorded and no task brings it to the workflow.
            Inputs {
                resolved_child: Some(_),
                ..
            } => L::RepairNeeded,
            Inputs {
                open_child: Some(_),
                ..
            } => L::WaitingForChild,
            Inputs {
                row_child: true, ..
            }
            | Inputs {
                unsupported_child: true,
                ..
            } => L::WorkflowReplayBlocked,
            Inputs {
                signal_wait: Some(_),
                ..
            } => L::WaitingForSignal,
            // Nothing at all will wake it.
            _ => L::RepairNeeded,
        }
    }

    /// A wait that a timer ends.
    fn timed(&self, fired: bool, next: Option<&Task>, waiting: LivenessState) -> LivenessState {
        match (fired, next) {
            (true, Some(task)) => self.of_task(task),
            (false, Some(task)) if self.health(task).is_unhealthy() => self.of_task(task),
            (false, Some(_)) => waiting,
            (_, None) => LivenessState::RepairNeeded,
        }
    }

    /// The state a task gives its run, by the task's own type.
    fn of_task(&self, task: &Task) -> LivenessState {
        let health = self.health(task);
        let suffix = match task {
            task if task.waits_for_compatible_worker(self.cx.now) => {
                "waiting_for_compatible_worker"
            }
            _ if health.lease_expired || health.dispatch_failed => {
                return LivenessState::RepairNeeded;
            }
            _ if health.claim_failed => "claim_failed",
            _ if health.dispatch_overdue => return LivenessState::RepairNeeded,
            task if task.status == TaskStatus::Leased.as_str() => "leased",
            _ => "ready",
        };
        LivenessState::from(format!("{}_task_{suffix}", task.r#type))
    }
}

/// Waits are listed by when they began, and two updates may be taken in at one moment.
fn is_wait_for(wait: &Wait, update: &Update) -> bool {
    let OfKind::Update { update_id, .. } = &wait.of_kind else {
        return false;
    };
    (update_id, &wait.command_id) == (&update.id, &update.command_id)
}

fn child_wait_id(child: &Child<'_>) -> String {
    match &child.child_call_id {
        Some(id) => format!("child:{id}"),
        None => format!("child:{}", child.sequence),
    }
}

#[cfg(test)]
mod tests {
    use crate::durable::{
        projection::{
            Projected,
            example::{at, told},
        },
        store::snapshot::RunSnapshot,
        stored::{UpdateRow, UpdateStatus},
    };

    #[test]
    fn of_updates_taken_in_at_one_moment_the_first_in_line_is_waited_for() {
        let update = |id: &str, place: i64| UpdateRow {
            id: id.into(),
            workflow_command_id: format!("command-{id}"),
            command_sequence: Some(place),
            status: UpdateStatus::Accepted,
            accepted_at: Some(at(1)),
            ..UpdateRow::default()
        };
        let snapshot = RunSnapshot {
            updates: vec![update("z", 1), update("a", 2)],
            ..RunSnapshot::default()
        };
        let waits_for = told(&snapshot, |cx| Projected::of(cx).standing.open_wait_id);
        assert_eq!(waits_for.as_deref(), Some("update:z"));
    }
}
