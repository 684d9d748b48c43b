//! What an event is about.

use serde::Serialize;

use crate::durable::stored::EventType;

/// The kind of a timeline entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Command,
    Update,
    Signal,
    Child,
    Condition,
    Activity,
    Timer,
    Failure,
    Version,
    SideEffect,
    Workflow,
}

impl Kind {
    pub fn of(event_type: &EventType) -> Self {
        use EventType as E;
        match event_type {
            E::StartAccepted
            | E::StartRejected
            | E::SignalReceived
            | E::UpdateAccepted
            | E::UpdateRejected
            | E::RepairRequested
            | E::CancelRequested
            | E::TerminateRequested
            | E::ArchiveRequested => Self::Command,
            E::UpdateApplied | E::UpdateCompleted => Self::Update,
            E::SignalWaitOpened | E::SignalApplied => Self::Signal,
            E::ChildWorkflowScheduled
            | E::ChildRunStarted
            | E::ChildRunCompleted
            | E::ChildRunFailed
            | E::ChildRunCancelled
            | E::ChildRunTerminated => Self::Child,
            E::ConditionWaitOpened | E::ConditionWaitSatisfied | E::ConditionWaitTimedOut => {
                Self::Condition
            }
            E::ActivityScheduled
            | E::ActivityStarted
            | E::ActivityHeartbeatRecorded
            | E::ActivityRetryScheduled
            | E::ActivityCompleted
            | E::ActivityFailed
            | E::ActivityCancelled
            | E::ActivityTimedOut => Self::Activity,
            E::TimerScheduled | E::TimerFired | E::TimerCancelled => Self::Timer,
            E::FailureHandled => Self::Failure,
            E::VersionMarkerRecorded => Self::Version,
            E::SideEffectRecorded => Self::SideEffect,
            // The run itself, its service calls and schedules, and what a newer engine may write.
            E::WorkflowStarted
            | E::WorkflowContinuedAsNew
            | E::WorkflowCompleted
            | E::WorkflowFailed
            | E::WorkflowTimedOut
            | E::WorkflowCancelled
            | E::WorkflowTerminated
            | E::WorkflowArchived
            | E::SearchAttributesUpserted
            | E::MemoUpserted
            | E::ParentClosePolicyApplied
            | E::ParentClosePolicyFailed
            | E::MessageCursorAdvanced
            | E::ServiceCallStarted
            | E::ServiceCallCompleted
            | E::ServiceCallFailed
            | E::ServiceCallCancelled
            | E::ScheduleCreated
            | E::SchedulePaused
            | E::ScheduleResumed
            | E::ScheduleUpdated
            | E::ScheduleTriggered
            | E::ScheduleDeleted
            | E::ScheduleTriggerSkipped
            | E::Other(_) => Self::Workflow,
        }
    }

    /// What `source_id` names.
    pub fn source_kind(self) -> &'static str {
        match self {
            Self::Command | Self::Update => "workflow_command",
            Self::Signal => "signal_wait",
            Self::Child => "child_workflow_run",
            Self::Condition => "condition_wait",
            Self::Activity => "activity_execution",
            Self::Timer => "timer",
            Self::Failure => "workflow_failure",
            Self::Version => "version_marker",
            Self::SideEffect | Self::Workflow => "workflow_run",
        }
    }
}
