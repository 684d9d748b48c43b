//! The engine's words, each with its stored spelling in one place.

/// A stored word, known to this version or not.
pub trait Word: for<'t> From<&'t str> {
    fn is_known(&self) -> bool;
    fn as_stored(&self) -> &str;
}

/// Declares an enum of stored words with an arm for what we do not know yet.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $stored:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)+
            /// A word this version does not know, as stored.
            Other(String),
        }

        impl $name {
            /// Every known stored spelling, in declaration order.
            pub const KNOWN: &'static [&'static str] = &[$($stored,)+];

            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $stored,)+
                    Self::Other(word) => word,
                }
            }
        }

        #[cfg(test)]
        impl Default for $name {
            fn default() -> Self {
                Self::Other(String::new())
            }
        }

        impl From<&str> for $name {
            fn from(word: &str) -> Self {
                match word {
                    $($stored => Self::$variant,)+
                    _ => Self::Other(word.to_owned()),
                }
            }
        }

        impl Word for $name {
            fn is_known(&self) -> bool {
                !matches!(self, Self::Other(_))
            }

            fn as_stored(&self) -> &str {
                self.as_str()
            }
        }

        impl From<String> for $name {
            fn from(word: String) -> Self {
                Self::from(word.as_str())
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl super::AsCell for $name {
            fn cell(&self) -> super::Cell {
                self.as_str().cell()
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
    };
}

words! {
    /// `workflow_runs.status`. `running` is rarely stored; ask the bucket.
    RunStatus {
        Pending = "pending",
        Running = "running",
        Waiting = "waiting",
        Completed = "completed",
        Failed = "failed",
        Cancelled = "cancelled",
        Terminated = "terminated",
    }
}

impl RunStatus {
    pub const TERMINAL: [&'static str; 4] = ["completed", "failed", "cancelled", "terminated"];

    pub fn is_terminal(&self) -> bool {
        Self::TERMINAL.contains(&self.as_str())
    }

    /// The bucket the engine files this status under; unknown for a word we do not know.
    pub fn bucket(&self) -> Option<StatusBucket> {
        match self {
            Self::Pending | Self::Running | Self::Waiting => Some(StatusBucket::Running),
            Self::Completed => Some(StatusBucket::Completed),
            Self::Failed | Self::Cancelled | Self::Terminated => Some(StatusBucket::Failed),
            Self::Other(_) => None,
        }
    }
}

words! {
    /// `workflow_run_summaries.status_bucket`.
    StatusBucket {
        Running = "running",
        Completed = "completed",
        Failed = "failed",
    }
}

words! {
    /// `closed_reason`: how a run ended. A timeout is a reason, not a status.
    ClosedReason {
        Completed = "completed",
        Failed = "failed",
        Cancelled = "cancelled",
        Terminated = "terminated",
        Continued = "continued",
        TimedOut = "timed_out",
    }
}

words! {
    /// What an open run waits for. `workflow-task` has a hyphen here, an underscore elsewhere.
    WaitKind {
        Activity = "activity",
        Update = "update",
        Signal = "signal",
        Timer = "timer",
        Condition = "condition",
        WorkflowTask = "workflow-task",
        Child = "child",
    }
}

words! {
    /// Whether a run can go on by itself, as of its last projection.
    LivenessState {
        Closed = "closed",
        RepairNeeded = "repair_needed",
        WorkflowReplayBlocked = "workflow_replay_blocked",
        ActivityRunningWithoutTask = "activity_running_without_task",
        WaitingForCondition = "waiting_for_condition",
        WaitingForSignal = "waiting_for_signal",
        WaitingForChild = "waiting_for_child",
        TimerScheduled = "timer_scheduled",
        WorkflowTaskReady = "workflow_task_ready",
        WorkflowTaskLeased = "workflow_task_leased",
        WorkflowTaskClaimFailed = "workflow_task_claim_failed",
        WorkflowTaskWaitingForCompatibleWorker = "workflow_task_waiting_for_compatible_worker",
        ActivityTaskReady = "activity_task_ready",
        ActivityTaskLeased = "activity_task_leased",
        ActivityTaskClaimFailed = "activity_task_claim_failed",
        ActivityTaskWaitingForCompatibleWorker = "activity_task_waiting_for_compatible_worker",
        TimerTaskReady = "timer_task_ready",
        TimerTaskLeased = "timer_task_leased",
        TimerTaskClaimFailed = "timer_task_claim_failed",
        TimerTaskWaitingForCompatibleWorker = "timer_task_waiting_for_compatible_worker",
    }
}

impl LivenessState {
    /// The run does not go on until somebody sees to it.
    pub fn needs_somebody(&self) -> bool {
        let state = self.as_str();
        matches!(self, Self::RepairNeeded | Self::WorkflowReplayBlocked)
            || state.ends_with("_claim_failed")
            || state.ends_with("_waiting_for_compatible_worker")
    }
}

words! {
    /// Why Repair is not offered; absent means it is.
    RepairBlockedReason {
        UnsupportedHistory = "unsupported_history",
        WaitingForCompatibleWorker = "waiting_for_compatible_worker",
        SelectedRunNotCurrent = "selected_run_not_current",
        RunClosed = "run_closed",
        RepairNotNeeded = "repair_not_needed",
    }
}

words! {
    /// `workflow_failures.failure_category`; a null is "unclassified".
    FailureCategory {
        Application = "application",
        Cancelled = "cancelled",
        Terminated = "terminated",
        Timeout = "timeout",
        Activity = "activity",
        ChildWorkflow = "child_workflow",
        TaskFailure = "task_failure",
        Internal = "internal",
        StructuralLimit = "structural_limit",
    }
}

words! {
    /// `workflow_tasks.task_type`.
    TaskType {
        Workflow = "workflow",
        Activity = "activity",
        Timer = "timer",
    }
}

words! {
    /// `workflow_tasks.status`.
    TaskStatus {
        Ready = "ready",
        Leased = "leased",
        Completed = "completed",
        Failed = "failed",
        Cancelled = "cancelled",
    }
}

impl TaskStatus {
    /// A worker may still take it or has it.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Ready | Self::Leased)
    }

    /// Nobody will take it any more. A word we do not know may be that of a task at work.
    pub fn is_over(&self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

words! {
    /// `activity_executions.status`. A timed-out activity is `failed`.
    ActivityStatus {
        Pending = "pending",
        Running = "running",
        Completed = "completed",
        Failed = "failed",
        Cancelled = "cancelled",
    }
}

words! {
    /// `activity_attempts.status`.
    AttemptStatus {
        Running = "running",
        Completed = "completed",
        Failed = "failed",
        Cancelled = "cancelled",
        Expired = "expired",
    }
}

impl AttemptStatus {
    /// Nobody works on it any more. A word we do not know may be that of one at work.
    pub fn is_over(&self) -> bool {
        matches!(
            self,
            Self::Completed | Self::Failed | Self::Cancelled | Self::Expired
        )
    }
}

words! {
    /// `workflow_run_timers.status`.
    TimerStatus {
        Pending = "pending",
        Fired = "fired",
        Cancelled = "cancelled",
    }
}

words! {
    /// `workflow_commands.command_type`.
    CommandType {
        Start = "start",
        Signal = "signal",
        Update = "update",
        Repair = "repair",
        Cancel = "cancel",
        Terminate = "terminate",
        Archive = "archive",
    }
}

words! {
    /// `workflow_commands.status`.
    CommandStatus {
        Accepted = "accepted",
        Rejected = "rejected",
    }
}

words! {
    /// `workflow_signal_records.status`.
    SignalStatus {
        Received = "received",
        Applied = "applied",
        Rejected = "rejected",
    }
}

words! {
    /// `workflow_updates.status`.
    UpdateStatus {
        Accepted = "accepted",
        Rejected = "rejected",
        Completed = "completed",
        Failed = "failed",
    }
}

words! {
    /// `workflow_history_events.event_type`.
    EventType {
        StartAccepted = "StartAccepted",
        StartRejected = "StartRejected",
        WorkflowStarted = "WorkflowStarted",
        WorkflowContinuedAsNew = "WorkflowContinuedAsNew",
        ChildWorkflowScheduled = "ChildWorkflowScheduled",
        ChildRunStarted = "ChildRunStarted",
        ChildRunCompleted = "ChildRunCompleted",
        ChildRunFailed = "ChildRunFailed",
        ChildRunCancelled = "ChildRunCancelled",
        ChildRunTerminated = "ChildRunTerminated",
        ServiceCallStarted = "ServiceCallStarted",
        ServiceCallCompleted = "ServiceCallCompleted",
        ServiceCallFailed = "ServiceCallFailed",
        ServiceCallCancelled = "ServiceCallCancelled",
        ConditionWaitOpened = "ConditionWaitOpened",
        ConditionWaitSatisfied = "ConditionWaitSatisfied",
        ConditionWaitTimedOut = "ConditionWaitTimedOut",
        SignalWaitOpened = "SignalWaitOpened",
        SignalReceived = "SignalReceived",
        SignalApplied = "SignalApplied",
        UpdateAccepted = "UpdateAccepted",
        UpdateRejected = "UpdateRejected",
        UpdateApplied = "UpdateApplied",
        UpdateCompleted = "UpdateCompleted",
        RepairRequested = "RepairRequested",
        CancelRequested = "CancelRequested",
        WorkflowCancelled = "WorkflowCancelled",
        TerminateRequested = "TerminateRequested",
        WorkflowTerminated = "WorkflowTerminated",
        ArchiveRequested = "ArchiveRequested",
        WorkflowArchived = "WorkflowArchived",
        ActivityScheduled = "ActivityScheduled",
        ActivityStarted = "ActivityStarted",
        ActivityHeartbeatRecorded = "ActivityHeartbeatRecorded",
        ActivityRetryScheduled = "ActivityRetryScheduled",
        ActivityCompleted = "ActivityCompleted",
        ActivityFailed = "ActivityFailed",
        ActivityCancelled = "ActivityCancelled",
        ActivityTimedOut = "ActivityTimedOut",
        FailureHandled = "FailureHandled",
        SideEffectRecorded = "SideEffectRecorded",
        VersionMarkerRecorded = "VersionMarkerRecorded",
        TimerScheduled = "TimerScheduled",
        TimerFired = "TimerFired",
        TimerCancelled = "TimerCancelled",
        SearchAttributesUpserted = "SearchAttributesUpserted",
        MemoUpserted = "MemoUpserted",
        WorkflowTimedOut = "WorkflowTimedOut",
        WorkflowCompleted = "WorkflowCompleted",
        WorkflowFailed = "WorkflowFailed",
        ParentClosePolicyApplied = "ParentClosePolicyApplied",
        ParentClosePolicyFailed = "ParentClosePolicyFailed",
        MessageCursorAdvanced = "MessageCursorAdvanced",
        ScheduleCreated = "ScheduleCreated",
        SchedulePaused = "SchedulePaused",
        ScheduleResumed = "ScheduleResumed",
        ScheduleUpdated = "ScheduleUpdated",
        ScheduleTriggered = "ScheduleTriggered",
        ScheduleDeleted = "ScheduleDeleted",
        ScheduleTriggerSkipped = "ScheduleTriggerSkipped",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_of_a_newer_engine_is_carried_through() {
        let status = RunStatus::from("hibernating");
        assert_eq!(status, RunStatus::Other("hibernating".into()));
        assert_eq!(status.as_str(), "hibernating");
        assert_eq!(status.bucket(), None);
        assert!(!status.is_terminal());
    }

    #[test]
    fn every_known_word_survives_the_round_trip() {
        for word in RunStatus::KNOWN {
            assert_eq!(RunStatus::from(*word).as_str(), *word);
            assert!(!matches!(RunStatus::from(*word), RunStatus::Other(_)));
        }
        for word in LivenessState::KNOWN {
            assert!(
                !matches!(LivenessState::from(*word), LivenessState::Other(_)),
                "{word}"
            );
        }
    }
}
