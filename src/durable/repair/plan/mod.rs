//! What a repair would write. Pure: a projected run, who asks and the ids for new rows in, rows
//! out. The order of the changes is the order they are written in.

mod audit;
mod draft;
mod footing;
mod missing;
mod recover;
mod restore;
mod summary;
mod words;

use super::{
    change::{self, Guard, RowChange},
    refusal::Refusal,
    request::{Mode, NewIds, Request},
};
use crate::durable::{
    projection::{Projected, liveness::Standing, repair_gate},
    stored::{AsCell as _, CommandRow, LivenessState, RepairBlockedReason, RunSummary, TaskRow},
};
use draft::Draft;
pub(super) use draft::is_polled;
pub use words::{Effect, Words};

/// What is wrong with the run, and so what kind of repair it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    DispatchOverdue,
    DispatchFailed,
    LeaseExpired,
    ReplayBlocked,
    MissingActivityTask,
    MissingTimerTask,
    MissingConditionTimeout,
    MissingSignalTimeout,
    MissingUpdateTask,
    MissingSignalTask,
    MissingChildTask,
    MissingWorkflowTask,
    DeadlineExpired,
}

impl Kind {
    pub fn code(self) -> &'static str {
        match self {
            Self::DispatchOverdue => "dispatch_overdue",
            Self::DispatchFailed => "dispatch_failed",
            Self::LeaseExpired => "lease_expired",
            Self::ReplayBlocked => "replay_blocked",
            Self::MissingActivityTask => "missing_activity_task",
            Self::MissingTimerTask => "missing_timer_task",
            Self::MissingConditionTimeout => "missing_condition_timeout",
            Self::MissingSignalTimeout => "missing_signal_timeout",
            Self::MissingUpdateTask => "missing_update_task",
            Self::MissingSignalTask => "missing_signal_task",
            Self::MissingChildTask => "missing_child_task",
            Self::MissingWorkflowTask => "missing_workflow_task",
            Self::DeadlineExpired => "deadline_expired",
        }
    }
}

/// Who recovers a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    Operator,
    Pass,
}

/// The task a repair brings back.
#[derive(Clone, Debug)]
pub(super) struct Made {
    kind: Kind,
    /// As its row will stand.
    task: TaskRow,
    /// As it stood before it was offered to workers again: what history records.
    recorded: TaskRow,
    inserted: bool,
}

/// Everything one repair does.
#[derive(Clone, Debug)]
pub struct RepairPlan {
    pub run_id: String,
    pub instance_id: String,
    pub mode: Mode,
    pub kind: Kind,
    /// The task that is brought back; a nudge leaves its making to the engine.
    pub task_id: Option<String>,
    pub task_type: String,
    pub changes: Vec<RowChange>,
    /// The command that records it; none for a nudge and in a pass.
    pub command: Option<CommandRow>,
    /// How the run will stand.
    pub after: Standing,
    pub words: Words,
    /// Equal for equal states, whenever and by whomever they are planned.
    pub digest: String,
}

/// Whether a repair is offered: whether [`plan`] would give a plan, which alone knows what stands
/// in the way of one that is called for. What follows from the task is not worked out, so that a
/// page can ask for every run.
pub fn offered(p: &Projected<'_>, mode: Mode) -> Result<(), Refusal> {
    let ids = NewIds::default();
    let (draft, made) = made(p, &ids)?;
    match mode {
        Mode::Nudge => nudge(&draft, &made).map(drop),
        Mode::Direct => audit::can_record(p),
    }
}

/// The gate, and the task that is brought back.
fn made<'a>(p: &'a Projected<'a>, ids: &'a NewIds) -> Result<(Draft<'a>, Made), Refusal> {
    repair_gate::now(p).map_err(|reason| Refusal::of_gate(p, reason))?;
    let mut draft = Draft::new(p, By::Operator, ids);
    let made = match recover::first(p) {
        Some((task, kind)) => recover::recover(&mut draft, task, kind)?,
        None => missing::create(&mut draft)?,
    };
    Ok((draft, made))
}

/// The repair an operator asks for.
pub fn plan(p: &Projected<'_>, request: &Request, ids: &NewIds) -> Result<RepairPlan, Refusal> {
    let (mut draft, made) = made(p, ids)?;
    match request.mode {
        Mode::Nudge => nudge(&draft, &made),
        Mode::Direct => {
            let command = audit::record(&mut draft, request, &made)?;
            Ok(finish(draft, &made, Some(command)))
        }
    }
}

/// What the engine's pass does for a task that is there and in trouble: no command, no event.
pub fn of_task(p: &Projected<'_>, task_id: &str, ids: &NewIds) -> Result<RepairPlan, Refusal> {
    let not_needed = Refusal::Blocked(RepairBlockedReason::RepairNotNeeded);
    open_and_current(p)?;
    let task = p.cx.snapshot.tasks.iter().find(|task| task.id == task_id);
    let task = task.ok_or_else(|| not_needed.clone())?;
    let kind = recover::in_transport(p.cx, task).ok_or(not_needed)?;
    // It is ready, and only waits for the engine to tell a worker of it.
    let is_ready = matches!(kind, Kind::DispatchOverdue | Kind::DispatchFailed);
    if is_ready && !is_polled(p.cx.config) {
        return Err(Refusal::ToBePublished {
            id: task_id.to_owned(),
        });
    }
    let mut draft = Draft::new(p, By::Pass, ids);
    let made = recover::recover(&mut draft, task, kind)?;
    Ok(finish(draft, &made, None))
}

/// What the engine's pass does for a run whose task is gone.
pub fn of_missing(p: &Projected<'_>, ids: &NewIds) -> Result<RepairPlan, Refusal> {
    open_and_current(p)?;
    // Only an operator knows whether code that fits the history has been deployed.
    if p.standing.liveness_state != LivenessState::RepairNeeded || p.standing.next_task_id.is_some()
    {
        return Err(Refusal::Blocked(RepairBlockedReason::RepairNotNeeded));
    }
    let mut draft = Draft::new(p, By::Pass, ids);
    let made = missing::create(&mut draft)?;
    Ok(finish(draft, &made, None))
}

/// What the engine's pass does for a run past its deadline: the workflow task that will close it.
pub fn of_deadline(p: &Projected<'_>, ids: &NewIds) -> Result<RepairPlan, Refusal> {
    open_and_current(p)?;
    let mut draft = Draft::new(p, By::Pass, ids);
    let made = missing::deadline(&mut draft)?;
    Ok(finish(draft, &made, None))
}

fn open_and_current(p: &Projected<'_>) -> Result<(), Refusal> {
    match repair_gate::now(p) {
        Err(
            reason @ (RepairBlockedReason::SelectedRunNotCurrent | RepairBlockedReason::RunClosed),
        ) => Err(Refusal::Blocked(reason)),
        _ => Ok(()),
    }
}

fn finish(mut draft: Draft<'_>, made: &Made, command: Option<CommandRow>) -> RepairPlan {
    let after = summary::project(&mut draft, made);
    let p = draft.p;
    RepairPlan {
        run_id: p.cx.snapshot.run.id.clone(),
        instance_id: p.cx.snapshot.run.workflow_instance_id.clone(),
        mode: Mode::Direct,
        kind: made.kind,
        task_id: Some(made.task.id.clone()),
        task_type: made.task.task_type.to_string(),
        command,
        after,
        words: words::direct(p, made, &draft.changes),
        digest: change::digest(
            &p.cx.snapshot.run,
            change::of_substance(&draft.changes),
            p.cx.now,
            &draft.ids.all(),
        ),
        changes: draft.changes,
    }
}

/// Two columns of the stored summary, which make the engine's pass look at the run.
fn nudge(draft: &Draft<'_>, made: &Made) -> Result<RepairPlan, Refusal> {
    let p = draft.p;
    if made.kind == Kind::ReplayBlocked {
        return Err(Refusal::NoNudgeUnblocks);
    }
    if !made.inserted {
        return Err(Refusal::NothingToNudge);
    }
    let summary = p.cx.snapshot.summary.as_ref();
    let summary = summary.ok_or(Refusal::NoSummaryToNudge)?;
    let nudged = RunSummary {
        liveness_state: Some(LivenessState::RepairNeeded),
        next_task_id: None,
        ..summary.clone()
    };
    let change = RowChange::update(
        RunSummary::TABLE,
        &summary.id,
        summary.cells(),
        nudged.cells(),
        vec![
            Guard::Is("liveness_state", summary.liveness_state.cell()),
            Guard::Is("next_task_id", summary.next_task_id.cell()),
        ],
    );
    let changes = vec![change.ok_or(Refusal::NothingToNudge)?];
    Ok(RepairPlan {
        run_id: p.cx.snapshot.run.id.clone(),
        instance_id: p.cx.snapshot.run.workflow_instance_id.clone(),
        mode: Mode::Nudge,
        kind: made.kind,
        task_id: None,
        task_type: made.task.task_type.to_string(),
        command: None,
        after: p.standing.clone(),
        words: words::nudge(p, made),
        // What the engine is brought to write counts too: without it, and of two columns that
        // hold the same before every nudge, one state could not be told from another.
        digest: change::digest(
            &p.cx.snapshot.run,
            draft.changes.iter().chain(&changes),
            p.cx.now,
            &draft.ids.all(),
        ),
        changes,
    })
}
