//! `workflow_tasks.payload`: what a task is for.

use crate::durable::stored::loose::{Any, Flag, Int, Str, Verbatim, shape};

shape! {
    /// By what name a task is found.
    #[derive(Clone, Debug)]
    pub struct TaskNames<'a> {
        pub activity_execution_id: Str<'a>,
        pub timer_id: Str<'a>,
        pub child_call_id: Str<'a>,
        pub child_workflow_run_id: Str<'a>,
        pub workflow_wait_kind: Str<'a>,
    }
}

shape! {
    #[derive(Clone, Debug)]
    pub struct TaskPayload<'a> {
        pub activity_execution_id: Str<'a>,
        pub retry_of_task_id: Str<'a>,
        pub retry_after_attempt_id: Str<'a>,
        pub retry_after_attempt: Int,
        pub retry_backoff_seconds: Int,
        pub max_attempts: Int,
        pub retry_policy: Verbatim<'a>,
        pub timer_id: Str<'a>,
        pub condition_wait_id: Str<'a>,
        pub condition_key: Str<'a>,
        pub condition_definition_fingerprint: Str<'a>,
        pub signal_wait_id: Str<'a>,
        pub signal_name: Str<'a>,
        pub workflow_wait_kind: Str<'a>,
        pub open_wait_id: Str<'a>,
        pub resume_source_kind: Str<'a>,
        pub resume_source_id: Str<'a>,
        pub workflow_update_id: Str<'a>,
        pub workflow_signal_id: Str<'a>,
        pub workflow_command_id: Str<'a>,
        pub workflow_sequence: Int,
        pub child_call_id: Str<'a>,
        pub child_workflow_run_id: Str<'a>,
        pub replay_blocked: Flag,
        pub replay_blocked_reason: Str<'a>,
        pub replay_blocked_exception_class: Str<'a>,
        pub replay_blocked_exception_type: Str<'a>,
        pub replay_blocked_resolution_source: Str<'a>,
        pub replay_blocked_resolution_error: Str<'a>,
        pub replay_blocked_workflow_sequence: Int,
        pub replay_blocked_condition_wait_id: Str<'a>,
        pub replay_blocked_recorded_condition_key: Str<'a>,
        pub replay_blocked_current_condition_key: Str<'a>,
        pub replay_blocked_recorded_condition_definition_fingerprint: Str<'a>,
        pub replay_blocked_current_condition_definition_fingerprint: Str<'a>,
        pub replay_blocked_expected_history_shape: Str<'a>,
        pub replay_blocked_recorded_event_types: Any,
    }
}
