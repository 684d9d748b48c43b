//! What activity events say: one shape for all eight types.

use serde::Deserialize;

use super::parallel::grouped;
use crate::durable::stored::loose::{Any, Flag, Int, Map, Raw, Text, Time};

/// The payload of any `Activity…` event.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ActivityEvent {
    pub activity_execution_id: Text,
    pub activity_attempt_id: Text,
    pub activity_type: Text,
    pub activity_class: Text,
    pub idempotency_key: Text,
    pub sequence: Int,
    pub execution_mode: Text,
    pub attempt_number: Int,
    pub heartbeat_at: Time,
    pub lease_expires_at: Time,
    pub progress: Any,
    pub result: Raw,
    pub activity: Map<ActivityPart>,
    pub activity_attempt: Map<AttemptPart>,
    pub task: Map<TaskPart>,

    pub retry_task_id: Text,
    pub retry_of_task_id: Text,
    pub retry_available_at: Time,
    pub retry_backoff_seconds: Int,
    pub retry_after_attempt_id: Text,
    pub retry_after_attempt: Int,
    pub retry_reason: Text,
    pub retry_policy: Raw,
    pub max_attempts: Int,
    pub timeout_kind: Text,
    pub exception_class: Text,
    pub message: Text,
    pub non_retryable: Flag,

    pub parallel_group_id: Text,
    pub parallel_group_kind: Text,
    pub parallel_group_base_sequence: Int,
    pub parallel_group_size: Int,
    pub parallel_group_index: Int,
    pub parallel_group_path: Any,
}

/// `payload.activity`: the execution as it stood when the event was written, nulls dropped.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ActivityPart {
    pub id: Text,
    pub idempotency_key: Text,
    pub sequence: Int,
    pub r#type: Text,
    pub class: Text,
    pub execution_mode: Text,
    pub local_activity: Flag,
    pub attempt_id: Text,
    pub status: Text,
    pub payload_codec: Text,
    pub attempt_count: Int,
    pub retry_policy: Raw,
    pub connection: Text,
    pub queue: Text,
    pub last_heartbeat_at: Time,
    pub last_heartbeat_progress: Any,
    pub created_at: Time,
    pub started_at: Time,
    pub closed_at: Time,
    pub arguments: Raw,
    pub result: Raw,

    pub parallel_group_id: Text,
    pub parallel_group_kind: Text,
    pub parallel_group_base_sequence: Int,
    pub parallel_group_size: Int,
    pub parallel_group_index: Int,
    pub parallel_group_path: Any,
}

grouped!(ActivityEvent, ActivityPart);

/// `payload.activity_attempt`: the try as it stood.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct AttemptPart {
    pub id: Text,
    pub activity_execution_id: Text,
    pub task_id: Text,
    pub attempt_number: Int,
    pub lease_owner: Text,
    pub started_at: Time,
    pub last_heartbeat_at: Time,
    pub last_heartbeat_progress: Any,
    pub lease_expires_at: Time,
    pub closed_at: Time,
}

/// `payload.task`: of the task that carried the event, what a try needs.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct TaskPart {
    pub id: Text,
    pub attempt_count: Int,
    pub lease_owner: Text,
    pub lease_expires_at: Time,
}
