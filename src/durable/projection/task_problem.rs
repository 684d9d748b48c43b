//! The task-problem badge: is a workflow task in trouble now, or was it once?

use crate::durable::stored::{LivenessState, Standing, WaitKind};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskProblem {
    /// The recorded history cannot be replayed by the deployed code.
    ReplayBlocked,
    /// A workflow task is in trouble now.
    Active,
    /// It was once; the run goes on.
    History,
}

impl TaskProblem {
    pub const ALL: [Self; 3] = [Self::ReplayBlocked, Self::Active, Self::History];

    pub fn code(self) -> &'static str {
        match self {
            Self::ReplayBlocked => "replay_blocked",
            Self::Active => "active",
            Self::History => "history",
        }
    }

    /// The engine's label and tone, as its JSON carries them.
    pub fn label(self) -> &'static str {
        match self {
            Self::ReplayBlocked => "Task Failure",
            Self::Active => "Task Problem",
            Self::History => "Task History",
        }
    }

    pub fn tone(self) -> &'static str {
        match self {
            Self::ReplayBlocked => "dark",
            Self::Active => "warning",
            Self::History => "secondary",
        }
    }

    pub fn description(self) -> &'static str {
        match self {
            Self::ReplayBlocked => "The workflow task cannot replay its recorded history.",
            Self::Active => {
                "The workflow task is lost, refused or without a worker that may take it."
            }
            Self::History => "A workflow task needed repair or recovery earlier; none does now.",
        }
    }
}

/// The badge of a stored summary's standing; none unless the engine flagged the run.
pub fn badge(standing: Standing<'_>) -> Option<TaskProblem> {
    standing
        .task_problem
        .then(|| classify(standing.liveness_state, standing.wait_kind))
}

fn classify(liveness: Option<&LivenessState>, wait: Option<&WaitKind>) -> TaskProblem {
    let Some(liveness) = liveness else {
        return TaskProblem::History;
    };
    match liveness {
        LivenessState::WorkflowReplayBlocked => TaskProblem::ReplayBlocked,
        // The workflow task itself is missing: not so when an activity or a timer is.
        LivenessState::RepairNeeded => match wait {
            None
            | Some(
                WaitKind::WorkflowTask
                | WaitKind::Update
                | WaitKind::Signal
                | WaitKind::Child
                | WaitKind::Condition,
            ) => TaskProblem::Active,
            Some(WaitKind::Activity | WaitKind::Timer | WaitKind::Other(_)) => TaskProblem::History,
        },
        // Whatever the task's type, and whatever a newer engine puts around the words.
        other if other.as_str().contains("task_claim_failed") => TaskProblem::Active,
        other if other.as_str().contains("waiting_for_compatible_worker") => TaskProblem::Active,
        _ => TaskProblem::History,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_badge_follows_liveness_and_wait_kind() {
        use TaskProblem::{Active, History, ReplayBlocked};
        for (liveness, wait, want) in [
            (Some("workflow_replay_blocked"), None, ReplayBlocked),
            (
                Some("workflow_replay_blocked"),
                Some("activity"),
                ReplayBlocked,
            ),
            (Some("repair_needed"), None, Active),
            (Some("repair_needed"), Some("workflow-task"), Active),
            (Some("repair_needed"), Some("update"), Active),
            (Some("repair_needed"), Some("signal"), Active),
            (Some("repair_needed"), Some("child"), Active),
            (Some("repair_needed"), Some("condition"), Active),
            (Some("repair_needed"), Some("activity"), History),
            (Some("repair_needed"), Some("timer"), History),
            (
                Some("workflow_task_claim_failed"),
                Some("workflow-task"),
                Active,
            ),
            (Some("activity_task_claim_failed"), Some("activity"), Active),
            (
                Some("timer_task_waiting_for_compatible_worker"),
                None,
                Active,
            ),
            (Some("workflow_task_ready"), Some("workflow-task"), History),
            (Some("closed"), None, History),
            (None, None, History),
        ] {
            let got = classify(
                liveness.map(LivenessState::from).as_ref(),
                wait.map(WaitKind::from).as_ref(),
            );
            assert_eq!(got, want, "{liveness:?} {wait:?}");
        }
    }
}
