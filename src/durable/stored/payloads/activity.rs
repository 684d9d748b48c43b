//! What activity events say: one shape for all eight types. A long run has thousands, so that what
//! they say stays in their text.

use super::parallel::grouped;
use crate::durable::stored::loose::{Any, Flag, Int, Map, Str, Text, Time, Verbatim, shape};

shape! {
    /// The payload of any `Activity…` event.
    #[derive(Clone, Debug)]
    pub struct ActivityEvent<'a> {
        pub activity_execution_id: Str<'a>,
        pub activity_attempt_id: Str<'a>,
        pub activity_type: Str<'a>,
        pub activity_class: Str<'a>,
        pub idempotency_key: Str<'a>,
        pub sequence: Int,
        pub execution_mode: Str<'a>,
        pub attempt_number: Int,
        pub heartbeat_at: Time,
        pub lease_expires_at: Time,
        pub progress: Any,
        pub result: Verbatim<'a>,
        pub activity: Map<ActivityPart<'a>>,
        pub activity_attempt: Map<AttemptPart<'a>>,
        pub task: Map<TaskPart<'a>>,

        pub retry_task_id: Str<'a>,
        pub retry_of_task_id: Str<'a>,
        pub retry_available_at: Time,
        pub retry_backoff_seconds: Int,
        pub retry_after_attempt_id: Str<'a>,
        pub retry_after_attempt: Int,
        pub retry_reason: Str<'a>,
        pub retry_policy: Verbatim<'a>,
        pub max_attempts: Int,
        pub timeout_kind: Str<'a>,
        pub exception_class: Str<'a>,
        pub message: Str<'a>,
        pub non_retryable: Flag,

        pub parallel_group_id: Text,
        pub parallel_group_kind: Text,
        pub parallel_group_base_sequence: Int,
        pub parallel_group_size: Int,
        pub parallel_group_index: Int,
        pub parallel_group_path: Any,
    }
}

shape! {
    /// `payload.activity`: the execution as it stood when the event was written, nulls dropped.
    #[derive(Clone, Debug)]
    pub struct ActivityPart<'a> {
        pub id: Str<'a>,
        pub idempotency_key: Str<'a>,
        pub sequence: Int,
        #[key = "type"]
        pub r#type: Str<'a>,
        pub class: Str<'a>,
        pub execution_mode: Str<'a>,
        pub local_activity: Flag,
        pub attempt_id: Str<'a>,
        pub status: Str<'a>,
        pub payload_codec: Str<'a>,
        pub attempt_count: Int,
        pub retry_policy: Verbatim<'a>,
        pub connection: Str<'a>,
        pub queue: Str<'a>,
        pub last_heartbeat_at: Time,
        pub last_heartbeat_progress: Any,
        pub created_at: Time,
        pub started_at: Time,
        pub closed_at: Time,
        pub arguments: Verbatim<'a>,
        pub result: Verbatim<'a>,

        pub parallel_group_id: Text,
        pub parallel_group_kind: Text,
        pub parallel_group_base_sequence: Int,
        pub parallel_group_size: Int,
        pub parallel_group_index: Int,
        pub parallel_group_path: Any,
    }
}

grouped!(ActivityEvent<'_>, ActivityPart<'_>);

shape! {
    /// `payload.activity_attempt`: the try as it stood.
    #[derive(Clone, Debug)]
    pub struct AttemptPart<'a> {
        pub id: Str<'a>,
        pub activity_execution_id: Str<'a>,
        pub task_id: Str<'a>,
        pub attempt_number: Int,
        pub lease_owner: Str<'a>,
        pub started_at: Time,
        pub last_heartbeat_at: Time,
        pub last_heartbeat_progress: Any,
        pub lease_expires_at: Time,
        pub closed_at: Time,
    }
}

shape! {
    /// `payload.task`: of the task that carried the event, what a try needs.
    #[derive(Clone, Debug)]
    pub struct TaskPart<'a> {
        pub id: Str<'a>,
        pub attempt_count: Int,
        pub lease_owner: Str<'a>,
        pub lease_expires_at: Time,
    }
}
