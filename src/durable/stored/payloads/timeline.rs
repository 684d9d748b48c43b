//! Every key a timeline entry may show, whatever the event: most entries have most of them empty.

use serde::Deserialize;

use crate::durable::stored::loose::{Any, Flag, Int, Map, Noted, Text, Time};

/// One event's payload. Arguments and results are left out: they are large and shown elsewhere.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct TimelineEvent {
    pub sequence: Int,
    pub reason: Text,
    pub closed_reason: Text,
    pub error: Text,

    pub workflow_command_id: Text,
    pub command_type: Noted<Text>,
    pub outcome: Noted<Text>,
    pub rejection_reason: Noted<Text>,
    pub command: Map<CommandSnapshot>,

    pub task: Map<TaskSnapshot>,
    pub task_type: Text,

    pub signal_id: Text,
    pub signal_wait_id: Text,
    pub signal_name: Text,
    pub update_name: Text,

    pub condition_wait_id: Text,
    pub condition_key: Text,
    pub condition_definition_fingerprint: Text,
    pub timeout_seconds: Int,

    pub change_id: Text,
    pub version: Int,
    pub min_supported: Int,
    pub max_supported: Int,

    pub activity_execution_id: Text,
    pub activity_type: Noted<Text>,
    pub activity_class: Noted<Text>,
    pub idempotency_key: Text,
    pub attempt_number: Int,
    pub activity: Map<ActivitySnapshot>,
    pub progress: Any,
    pub retry_task_id: Text,
    pub retry_available_at: Time,
    pub retry_backoff_seconds: Int,
    pub retry_policy: Any,
    pub retry_after_attempt_id: Text,
    pub retry_after_attempt: Int,
    pub max_attempts: Int,

    pub timer_id: Text,
    pub timer_kind: Text,
    pub delay_seconds: Noted<Int>,
    pub fire_at: Noted<Time>,
    pub fired_at: Noted<Time>,
    pub cancelled_at: Noted<Time>,

    pub child_call_id: Noted<Text>,
    pub child_workflow_instance_id: Noted<Text>,
    pub child_workflow_run_id: Noted<Text>,
    pub child_workflow_type: Noted<Text>,
    pub child_workflow_class: Noted<Text>,
    pub child_status: Text,
    pub child_run_number: Int,
    pub workflow_link_id: Text,
    pub continued_to_run_id: Text,
    pub retry_attempt: Int,

    pub parallel_group_id: Text,
    pub parallel_group_kind: Text,
    pub parallel_group_base_sequence: Int,
    pub parallel_group_size: Int,
    pub parallel_group_index: Int,
    pub parallel_group_path: Any,

    pub failure_id: Noted<Text>,
    pub source_kind: Noted<Text>,
    pub source_id: Noted<Text>,
    pub propagation_kind: Text,
    pub failure_category: Text,
    pub non_retryable: Flag,
    pub exception_type: Text,
    pub exception_class: Noted<Text>,
    pub message: Noted<Text>,
    pub timeout_kind: Text,
    pub structural_limit_kind: Text,
    pub structural_limit_value: Int,
    pub structural_limit_configured: Int,

    /// Search attributes and memo entries that were set, by key.
    pub attributes: Any,
    pub entries: Any,
    pub policy: Text,
    pub child_instance_id: Text,
    pub new_position: Int,
    pub stream_key: Text,
    pub schedule_id: Text,
    pub trigger_number: Int,
    pub endpoint_name: Text,
    pub service_name: Text,
    pub operation_name: Text,
}

/// A command as it stood when the event was written.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct CommandSnapshot {
    pub id: Text,
    pub sequence: Int,
    #[serde(rename = "type")]
    pub command_type: Text,
    pub target_scope: Text,
    pub requested_run_id: Text,
    pub resolved_run_id: Text,
    pub target_name: Text,
    pub payload_codec: Text,
    pub payload: Any,
    pub source: Text,
    pub context: Any,
    pub caller_label: Text,
    pub principal_type: Text,
    pub principal_id: Text,
    pub principal_label: Text,
    pub auth_status: Text,
    pub auth_method: Text,
    pub request_method: Text,
    pub request_path: Text,
    pub request_route_name: Text,
    pub request_fingerprint: Text,
    pub rejection_reason: Text,
    pub accepted_at: Time,
    pub applied_at: Time,
    pub rejected_at: Time,
}

/// A task as it stood when the event was written.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct TaskSnapshot {
    pub id: Text,
    #[serde(rename = "type")]
    pub task_type: Text,
    pub status: Text,
    pub available_at: Time,
    pub leased_at: Time,
    pub lease_expires_at: Time,
    pub attempt_count: Noted<Int>,
}

/// An activity as it stood when the event was written.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct ActivitySnapshot {
    pub id: Text,
    pub idempotency_key: Text,
    pub sequence: Int,
    #[serde(rename = "type")]
    pub activity_type: Text,
    pub class: Text,
    pub attempt_id: Text,
    pub status: Text,
    pub attempt_count: Int,
    pub retry_policy: Any,
    pub connection: Text,
    pub queue: Text,
    pub started_at: Time,
    pub closed_at: Time,
    pub last_heartbeat_at: Time,
    pub last_heartbeat_progress: Any,
}

super::parallel::grouped!(TimelineEvent);
