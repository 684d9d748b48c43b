//! `workflow_tasks.payload`: what a task is for.

use serde::Deserialize;

use crate::durable::stored::loose::{Any, Flag, Int, Raw, Text};

/// By what name a task is found.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct TaskNames {
    pub activity_execution_id: Text,
    pub timer_id: Text,
    pub child_call_id: Text,
    pub child_workflow_run_id: Text,
    pub workflow_wait_kind: Text,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct TaskPayload {
    pub activity_execution_id: Text,
    pub retry_of_task_id: Text,
    pub retry_after_attempt_id: Text,
    pub retry_after_attempt: Int,
    pub retry_backoff_seconds: Int,
    pub max_attempts: Int,
    pub retry_policy: Raw,
    pub timer_id: Text,
    pub condition_wait_id: Text,
    pub condition_key: Text,
    pub condition_definition_fingerprint: Text,
    pub signal_wait_id: Text,
    pub signal_name: Text,
    pub workflow_wait_kind: Text,
    pub open_wait_id: Text,
    pub resume_source_kind: Text,
    pub resume_source_id: Text,
    pub workflow_update_id: Text,
    pub workflow_signal_id: Text,
    pub workflow_command_id: Text,
    pub workflow_sequence: Int,
    pub child_call_id: Text,
    pub child_workflow_run_id: Text,
    pub replay_blocked: Flag,
    pub replay_blocked_reason: Text,
    pub replay_blocked_exception_class: Text,
    pub replay_blocked_workflow_sequence: Int,
    pub replay_blocked_condition_wait_id: Text,
    pub replay_blocked_recorded_condition_key: Text,
    pub replay_blocked_current_condition_key: Text,
    pub replay_blocked_recorded_condition_definition_fingerprint: Text,
    pub replay_blocked_current_condition_definition_fingerprint: Text,
    pub replay_blocked_expected_history_shape: Text,
    pub replay_blocked_recorded_event_types: Any,
}
