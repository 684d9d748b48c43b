//! Whether Repair is called for, and if not, why. The list, its "needs repair" filter, the page
//! and the API all ask here; where all rows of the run are at hand, the plan may still refuse.

use chrono::{DateTime, Utc};

use super::projected::Projected;
use crate::durable::stored::{LivenessState, RepairBlockedReason, Standing};

/// The facts the gate decides on.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    pub is_current_run: bool,
    pub is_terminal: bool,
    pub liveness_state: Option<&'a LivenessState>,
    /// A failed workflow task marked replay-blocked exists.
    pub replay_blocked_task: bool,
}

/// `Ok` when Repair is called for, else the first reason that forbids it.
pub fn decide(facts: Facts<'_>) -> Result<(), RepairBlockedReason> {
    match facts.liveness_state {
        _ if !facts.is_current_run => Err(RepairBlockedReason::SelectedRunNotCurrent),
        _ if facts.is_terminal => Err(RepairBlockedReason::RunClosed),
        Some(LivenessState::RepairNeeded) => Ok(()),
        Some(LivenessState::WorkflowReplayBlocked) if facts.replay_blocked_task => Ok(()),
        Some(LivenessState::WorkflowReplayBlocked) => Err(RepairBlockedReason::UnsupportedHistory),
        Some(state) if state.as_str().contains("waiting_for_compatible_worker") => {
            Err(RepairBlockedReason::WaitingForCompatibleWorker)
        }
        _ => Err(RepairBlockedReason::RepairNotNeeded),
    }
}

/// The gate on a stored summary. The engine records its own verdict on the replay-blocked
/// task there: a null reason means it saw one.
pub fn of_summary(standing: Standing<'_>) -> Result<(), RepairBlockedReason> {
    decide(Facts {
        is_current_run: standing.is_current_run,
        is_terminal: standing.status.is_terminal(),
        liveness_state: standing.liveness_state,
        replay_blocked_task: standing.repair_blocked_reason.is_none(),
    })
}

/// The gate on how the run stands now, whatever its stored summary says: what a repair asks.
pub fn now(p: &Projected<'_>) -> Result<(), RepairBlockedReason> {
    let run = &p.cx.snapshot.run;
    decide(Facts {
        is_current_run: p.current_run.current_run_id.as_deref() == Some(run.id.as_str()),
        is_terminal: run.status.is_terminal(),
        liveness_state: Some(&p.standing.liveness_state),
        replay_blocked_task: p.standing.replay_blocked_task,
    })
}

/// The gate's verdict in one of four words, as a list is filtered by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepairState {
    Repairable,
    Blocked,
    NotNeeded,
    /// The engine has not said how the run stands.
    Unknown,
}

impl RepairState {
    pub const WORDS: &'static [&'static str] = &["repairable", "blocked", "not_needed", "unknown"];

    pub fn of(standing: Standing<'_>) -> Self {
        use RepairBlockedReason as R;
        match of_summary(standing) {
            Ok(()) => Self::Repairable,
            Err(R::UnsupportedHistory | R::WaitingForCompatibleWorker) => Self::Blocked,
            Err(R::RunClosed | R::SelectedRunNotCurrent) => Self::NotNeeded,
            Err(R::RepairNotNeeded) if standing.liveness_state.is_some() => Self::NotNeeded,
            Err(R::RepairNotNeeded | R::Other(_)) => Self::Unknown,
        }
    }

    pub fn word(self) -> &'static str {
        Self::WORDS[self as usize]
    }
}

/// Why a run that is open and current needs no repair, by how it stands now.
pub fn not_needed(p: &Projected<'_>) -> &'static str {
    let run = &p.cx.snapshot.run;
    let past = |at: Option<DateTime<Utc>>| at.is_some_and(|at| at <= p.cx.now);
    let state = p.standing.liveness_state.as_str();
    if past(run.run_deadline_at) || past(run.execution_deadline_at) {
        "The run is past its deadline: the engine's repair pass closes it."
    } else if p.standing.liveness_state == LivenessState::ActivityRunningWithoutTask {
        "Putting the task back could run the activity twice: its code may still be running."
    } else if state.ends_with("_task_claim_failed") {
        "The task is there and was refused: the engine offers it again by itself."
    } else if p.tasks.iter().any(|task| task.task_missing) {
        "The engine judges the run by another step, and repairs nothing else meanwhile."
    } else {
        NOTHING_SEEN
    }
}

const NOTHING_SEEN: &str = "The engine sees nothing to repair.";

/// How a reason is shown: the engine's label and tone, our words.
#[derive(Clone, Copy, Debug)]
pub struct Shown {
    pub label: &'static str,
    pub tone: &'static str,
    pub badge_visible: bool,
    pub description: &'static str,
}

/// None for a reason we do not know: shown by its code alone.
pub fn shown(reason: &RepairBlockedReason) -> Option<Shown> {
    let (label, tone, badge_visible, description) = match reason {
        RepairBlockedReason::UnsupportedHistory => (
            "Replay Blocked",
            "dark",
            true,
            "Only rows without typed history are left; there is nothing safe to repair from.",
        ),
        RepairBlockedReason::WaitingForCompatibleWorker => (
            "Compat Blocked",
            "warning",
            true,
            "The task is there; no live worker may take it. Start a worker that supports the run's marker.",
        ),
        RepairBlockedReason::SelectedRunNotCurrent => (
            "Historical Run",
            "secondary",
            false,
            "A newer run of this instance is the current one.",
        ),
        RepairBlockedReason::RunClosed => (
            "Run Closed",
            "secondary",
            false,
            "The run has ended; nothing is left to repair.",
        ),
        RepairBlockedReason::RepairNotNeeded => {
            ("Repair Not Needed", "secondary", false, NOTHING_SEEN)
        }
        RepairBlockedReason::Other(_) => return None,
    };
    Some(Shown {
        label,
        tone,
        badge_visible,
        description,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_reason_that_forbids_wins() {
        use RepairBlockedReason as R;
        for (current, terminal, liveness, blocked_task, want) in [
            (
                false,
                false,
                Some("repair_needed"),
                true,
                Err(R::SelectedRunNotCurrent),
            ),
            (true, true, Some("repair_needed"), true, Err(R::RunClosed)),
            (true, false, Some("repair_needed"), false, Ok(())),
            (true, false, Some("workflow_replay_blocked"), true, Ok(())),
            (
                true,
                false,
                Some("workflow_replay_blocked"),
                false,
                Err(R::UnsupportedHistory),
            ),
            (
                true,
                false,
                Some("activity_task_waiting_for_compatible_worker"),
                false,
                Err(R::WaitingForCompatibleWorker),
            ),
            (
                true,
                false,
                Some("workflow_task_claim_failed"),
                false,
                Err(R::RepairNotNeeded),
            ),
            (
                true,
                false,
                Some("activity_running_without_task"),
                true,
                Err(R::RepairNotNeeded),
            ),
            (true, false, None, true, Err(R::RepairNotNeeded)),
        ] {
            let liveness = liveness.map(LivenessState::from);
            let got = decide(Facts {
                is_current_run: current,
                is_terminal: terminal,
                liveness_state: liveness.as_ref(),
                replay_blocked_task: blocked_task,
            });
            assert_eq!(
                got, want,
                "{current} {terminal} {liveness:?} {blocked_task}"
            );
        }
    }
}
