//! A task that should be there and is not is made, with the identity of what it is for.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::{Kind, Made, draft::Draft, footing, restore};
use crate::durable::{
    projection::{
        Projected,
        activities::Activity,
        signals::Signal,
        transport::{Health, Patience},
    },
    repair::{change::object, refusal::Refusal},
    stored::{
        ActivityStatus, AsCell as _, Cell, RepairBlockedReason, TaskRow, TaskStatus, TaskType,
        TimerRow, TimerStatus, WaitKind, loose::Raw,
    },
};

/// What a new task needs beyond what every task has.
struct New {
    kind: Kind,
    task_type: TaskType,
    available_at: Option<DateTime<Utc>>,
    payload: Value,
    connection: Option<String>,
    queue: Option<String>,
    attempt_count: i64,
}

impl New {
    fn workflow(kind: Kind, available_at: Option<DateTime<Utc>>, payload: Value) -> Self {
        Self {
            kind,
            task_type: TaskType::Workflow,
            available_at,
            payload,
            connection: None,
            queue: None,
            attempt_count: 0,
        }
    }

    fn timer(kind: Kind, available_at: Option<DateTime<Utc>>, payload: Value) -> Self {
        Self {
            task_type: TaskType::Timer,
            ..Self::workflow(kind, available_at, payload)
        }
    }
}

/// The first that applies to what the run waits for.
pub(super) fn create(draft: &mut Draft<'_>) -> Result<Made, Refusal> {
    let p = draft.p;
    refuse_beside_another(p)?;
    footing::of_a_missing_task(p)?;
    let standing = &p.standing;
    let timed = standing.resume_source_kind.as_deref() == Some("timer");
    let new = match &standing.wait_kind {
        Some(WaitKind::Activity) => activity(draft)?,
        Some(WaitKind::Timer) => timer(draft)?,
        Some(WaitKind::Condition) if timed => condition_timeout(draft)?,
        Some(WaitKind::Signal) if timed => signal_timeout(draft)?,
        Some(WaitKind::Update) => update(draft)?,
        Some(WaitKind::Signal) => signal(p),
        Some(WaitKind::Child) => child(p)?,
        // Nothing at all will wake it: the workflow looks for itself what comes next.
        _ => New::workflow(Kind::MissingWorkflowTask, Some(p.cx.now), json!({})),
    };
    Ok(insert(draft, new))
}

/// The workflow task that closes a run past its deadline.
pub(super) fn deadline(draft: &mut Draft<'_>) -> Result<Made, Refusal> {
    let p = draft.p;
    footing::of_a_deadline_task(p)?;
    let run = &p.cx.snapshot.run;
    let past = |at: Option<DateTime<Utc>>| at.is_some_and(|at| at <= p.cx.now);
    if !past(run.execution_deadline_at) && !past(run.run_deadline_at) {
        return Err(Refusal::Blocked(RepairBlockedReason::RepairNotNeeded));
    }
    if let Some(task) = footing::task_of_the_workflow(p) {
        return Err(Refusal::OpenTask {
            id: task.id.clone(),
        });
    }
    let payload = json!({"reason": "deadline_expired"});
    let new = New::workflow(Kind::DeadlineExpired, Some(p.cx.now), payload);
    Ok(insert(draft, new))
}

/// Where another task is open, whatever it is for, a second one is never made beside it.
fn refuse_beside_another(p: &Projected<'_>) -> Result<(), Refusal> {
    let patience = Patience::of(p.cx.config);
    for task in footing::not_over(p) {
        let health = Health::of(task, p.cx.now, patience);
        if health.claim_failed {
            return Err(Refusal::ClaimFailed {
                id: task.id.clone(),
            });
        }
        if let (true, Some(until)) = (health.dispatch_failed, task.repair_available_at) {
            return Err(Refusal::DispatchBackoff { until });
        }
    }
    footing::not_over(p).next().map_or(Ok(()), |task| {
        Err(Refusal::OpenTask {
            id: task.id.clone(),
        })
    })
}

/// The activity nobody has begun: its task, and its execution where that is gone too.
fn activity(draft: &mut Draft<'_>) -> Result<New, Refusal> {
    let p = draft.p;
    let id = p.standing.resume_source_id.as_deref();
    let known = p
        .activities
        .iter()
        .find(|known| Some(known.id.as_str()) == id);
    let known = known.ok_or_else(|| gone("the activity"))?;
    if known.local_activity {
        return Err(Refusal::LocalActivity);
    }
    let spent = footing::spent_attempts(p, &known.id)?;
    let row =
        p.cx.snapshot
            .executions
            .iter()
            .find(|row| row.id == known.id);
    let execution = match row {
        Some(row) if row.status == ActivityStatus::Pending => row.clone(),
        // Its code may be running, or may have run.
        Some(_) => return Err(gone(&format!("activity {}", known.id))),
        None => restore::execution(draft, known, spent)?,
    };
    let run = &p.cx.snapshot.run;
    Ok(New {
        kind: Kind::MissingActivityTask,
        task_type: TaskType::Activity,
        available_at: known
            .retry
            .as_ref()
            .and_then(|retry| retry.retry_available_at)
            .or(Some(p.cx.now)),
        payload: activity_payload(known),
        connection: execution.connection.or_else(|| run.connection.clone()),
        queue: execution.queue.or_else(|| run.queue.clone()),
        // One less, and every claim would die on the number of a try that has been.
        attempt_count: execution.attempt_count.max(spent),
    })
}

fn activity_payload(known: &Activity) -> Value {
    let Some(retry) = &known.retry else {
        return json!({"activity_execution_id": known.id});
    };
    let policy = retry.retry_policy.as_ref().or(known.retry_policy.as_ref());
    object([
        ("activity_execution_id", json!(known.id)),
        ("retry_of_task_id", json!(retry.retry_of_task_id)),
        (
            "retry_after_attempt_id",
            json!(retry.retry_after_attempt_id),
        ),
        ("retry_after_attempt", json!(retry.retry_after_attempt)),
        ("retry_backoff_seconds", json!(retry.retry_backoff_seconds)),
        ("max_attempts", json!(retry.max_attempts)),
        ("retry_policy", json!(policy)),
    ])
}

fn timer(draft: &mut Draft<'_>) -> Result<New, Refusal> {
    let id = draft.p.standing.resume_source_id.clone();
    let timer = restore::timer(draft, id.as_deref())?;
    is_to_fire(&timer)?;
    let payload = json!({"timer_id": timer.id});
    Ok(New::timer(Kind::MissingTimerTask, timer.fire_at, payload))
}

/// A timer that has fired or was cancelled gets no task.
fn is_to_fire(timer: &TimerRow) -> Result<(), Refusal> {
    if timer.status == TimerStatus::Pending {
        return Ok(());
    }
    Err(gone(&format!("timer {}", timer.id)))
}

/// Either the timer that will end the wait, or, where it has fired, the word of it.
fn condition_timeout(draft: &mut Draft<'_>) -> Result<New, Refusal> {
    let p = draft.p;
    let wait_id = p.standing.open_wait_id.as_deref();
    let wait = p
        .conditions
        .iter()
        .find(|wait| Some(wait.condition_wait_id.as_str()) == wait_id)
        .ok_or_else(|| gone("the condition wait"))?;
    let timer = restore::timer(draft, wait.timer_id.as_deref())?;
    let identity = [
        ("condition_wait_id", json!(wait.condition_wait_id)),
        ("condition_key", json!(wait.condition_key)),
        (
            "condition_definition_fingerprint",
            json!(wait.condition_definition_fingerprint),
        ),
    ];
    let [id, key, fingerprint] = identity;
    if let Some(fired_at) = wait.timeout_fired_at {
        let payload = object([
            ("workflow_wait_kind", json!("condition")),
            ("open_wait_id", json!(wait_id)),
            ("resume_source_kind", json!("timer")),
            ("resume_source_id", json!(timer.id)),
            ("timer_id", json!(timer.id)),
            id,
            key,
            fingerprint,
            ("workflow_sequence", json!(wait.sequence)),
        ]);
        return Ok(New::workflow(
            Kind::MissingConditionTimeout,
            Some(fired_at),
            payload,
        ));
    }
    is_to_fire(&timer)?;
    let payload = object([("timer_id", json!(timer.id)), id, key, fingerprint]);
    let at = not_before(p, wait.deadline_at.or(timer.fire_at));
    Ok(New::timer(Kind::MissingConditionTimeout, Some(at), payload))
}

fn signal_timeout(draft: &mut Draft<'_>) -> Result<New, Refusal> {
    let p = draft.p;
    let wait_id = p.standing.open_wait_id.as_deref();
    let wait = p
        .signal_waits
        .iter()
        .find(|wait| Some(wait.signal_wait_id.as_str()) == wait_id)
        .ok_or_else(|| gone("the signal wait"))?;
    let timer = restore::timer(draft, wait.timer_id.as_deref())?;
    if let Some(fired_at) = wait.timeout_fired_at {
        let payload = object([
            ("workflow_wait_kind", json!("signal")),
            ("open_wait_id", json!(wait_id)),
            ("resume_source_kind", json!("timer")),
            ("resume_source_id", json!(timer.id)),
            ("timer_id", json!(timer.id)),
            ("signal_wait_id", json!(wait.signal_wait_id)),
            ("signal_name", json!(wait.signal_name)),
            ("workflow_sequence", json!(wait.sequence)),
        ]);
        return Ok(New::workflow(
            Kind::MissingSignalTimeout,
            Some(fired_at),
            payload,
        ));
    }
    is_to_fire(&timer)?;
    let payload = object([
        ("timer_id", json!(timer.id)),
        ("signal_wait_id", json!(wait.signal_wait_id)),
        ("signal_name", json!(wait.signal_name)),
    ]);
    let at = not_before(p, wait.deadline_at.or(timer.fire_at));
    Ok(New::timer(Kind::MissingSignalTimeout, Some(at), payload))
}

/// The moment if it is still to come, else now.
fn not_before(p: &Projected<'_>, at: Option<DateTime<Utc>>) -> DateTime<Utc> {
    at.filter(|at| *at > p.cx.now).unwrap_or(p.cx.now)
}

/// The accepted update, under the same identity; its lifecycle row where that is gone too.
fn update(draft: &mut Draft<'_>) -> Result<New, Refusal> {
    let p = draft.p;
    let standing = &p.standing;
    let update_id = standing
        .resume_source_id
        .as_deref()
        .filter(|_| standing.resume_source_kind.as_deref() == Some("workflow_update"));
    let command_id = match update_id {
        Some(id) => Some(restore::update(draft, id)?),
        None => None,
    };
    let payload = object([
        ("workflow_wait_kind", json!("update")),
        ("open_wait_id", json!(standing.open_wait_id)),
        ("resume_source_kind", json!(standing.resume_source_kind)),
        ("resume_source_id", json!(standing.resume_source_id)),
        ("workflow_update_id", json!(update_id)),
        ("workflow_command_id", json!(command_id)),
    ]);
    Ok(New::workflow(
        Kind::MissingUpdateTask,
        Some(p.cx.now),
        payload,
    ))
}

/// The signal that was received and not applied, under the same identity.
fn signal(p: &Projected<'_>) -> New {
    let standing = &p.standing;
    // A signal known by its command alone is named by it alone.
    let record = p
        .signals
        .iter()
        .find(|signal| signal.id.is_some() && signal.id == standing.resume_source_id);
    let of = |field: fn(&Signal) -> &Option<String>| {
        json!(record.and_then(|signal| field(signal).as_ref()))
    };
    let payload = object([
        ("workflow_wait_kind", json!("signal")),
        ("open_wait_id", json!(standing.open_wait_id)),
        ("resume_source_kind", json!(standing.resume_source_kind)),
        ("resume_source_id", json!(standing.resume_source_id)),
        ("workflow_signal_id", of(|signal| &signal.id)),
        ("signal_name", of(|signal| &signal.name)),
        ("signal_wait_id", of(|signal| &signal.signal_wait_id)),
        ("workflow_command_id", of(|signal| &signal.command_id)),
    ]);
    New::workflow(Kind::MissingSignalTask, Some(p.cx.now), payload)
}

fn child(p: &Projected<'_>) -> Result<New, Refusal> {
    let standing = &p.standing;
    let known = p.children.iter().find(|child| {
        child.resolution.is_some() && child.child_workflow_run_id == standing.resume_source_id
    });
    if known.is_some_and(|child| child.has_been_taken_up(p.cx)) {
        return Err(Refusal::NoProgress);
    }
    let wait_id = standing.open_wait_id.as_deref();
    let call_id = wait_id.map(|id| id.strip_prefix("child:").unwrap_or(id));
    let payload = object([
        ("workflow_wait_kind", json!("child")),
        ("open_wait_id", json!(wait_id)),
        ("resume_source_kind", json!("child_workflow_run")),
        ("resume_source_id", json!(standing.resume_source_id)),
        ("child_call_id", json!(call_id)),
        ("child_workflow_run_id", json!(standing.resume_source_id)),
    ]);
    Ok(New::workflow(
        Kind::MissingChildTask,
        Some(p.cx.now),
        payload,
    ))
}

fn gone(what: &str) -> Refusal {
    Refusal::NotRestorable {
        what: what.to_owned(),
    }
}

fn insert(draft: &mut Draft<'_>, new: New) -> Made {
    let p = draft.p;
    let (run, now) = (&p.cx.snapshot.run, p.cx.now);
    let recorded = TaskRow {
        id: draft.ids.task.clone(),
        workflow_run_id: run.id.clone(),
        // Pollers ask by namespace: a task without its run's would never be taken.
        namespace: run.namespace.clone(),
        task_type: new.task_type,
        status: TaskStatus::Ready,
        compatibility: run.compatibility.clone(),
        payload: Raw::of_value(&new.payload),
        connection: new.connection.or_else(|| run.connection.clone()),
        queue: new.queue.or_else(|| run.queue.clone()),
        available_at: new.available_at,
        leased_at: None,
        lease_owner: None,
        lease_expires_at: None,
        attempt_count: new.attempt_count,
        last_dispatch_attempt_at: None,
        last_dispatched_at: None,
        last_dispatch_error: None,
        last_claim_failed_at: None,
        last_claim_error: None,
        repair_count: 1,
        repair_available_at: None,
        last_error: None,
        created_at: Some(now),
        updated_at: Some(now),
    };
    let task = draft.offered(&recorded);
    let sticks = task.task_type == TaskType::Workflow
        && p.cx.config.flag("sticky_execution.enabled")
        && run.sticky_until.is_some_and(|until| until > now);
    let sticky = |cell: Cell| if sticks { cell } else { Cell::Null };
    let mut cells = task.cells();
    cells.extend([
        ("sticky_worker_id", sticky(run.sticky_worker_id.cell())),
        ("sticky_until", sticky(run.sticky_until.cell())),
        ("sticky_replay_mode", Cell::Null),
        ("sticky_claimed_at", Cell::Null),
        ("priority", run.priority.unwrap_or(PRIORITY).cell()),
        ("fairness_key", run.fairness_key.cell()),
        (
            "fairness_weight",
            run.fairness_weight.unwrap_or(FAIRNESS_WEIGHT).cell(),
        ),
    ]);
    draft.insert(TaskRow::TABLE, &task.id, cells);
    draft.written.tasks.push(task.clone());
    Made {
        kind: new.kind,
        task,
        recorded,
        inserted: true,
    }
}

/// The engine's defaults for a task nobody gave others.
const PRIORITY: i64 = 5;
const FAIRNESS_WEIGHT: i64 = 1;
