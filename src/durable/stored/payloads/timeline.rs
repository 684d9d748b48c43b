//! Every key a timeline entry may show, whatever the event: most entries have most of them empty.
//! What they say stays in the event's text.

use crate::durable::stored::loose::{Any, Flag, Int, Map, Noted, Str, Time, Verbatim, shape};

shape! {
    /// One event's payload. Arguments and results are left out: they are large and shown elsewhere.
    #[derive(Clone, Debug)]
    pub struct TimelineEvent<'a> {
        pub sequence: Int,
        pub reason: Str<'a>,
        pub closed_reason: Str<'a>,
        pub error: Str<'a>,

        pub workflow_command_id: Str<'a>,
        pub command_type: Noted<Str<'a>>,
        pub outcome: Noted<Str<'a>>,
        pub rejection_reason: Noted<Str<'a>>,
        pub command: Map<CommandSnapshot<'a>>,

        pub task: Map<TaskSnapshot<'a>>,
        pub task_type: Str<'a>,

        pub signal_id: Str<'a>,
        pub signal_wait_id: Str<'a>,
        pub signal_name: Str<'a>,
        pub update_name: Str<'a>,

        pub condition_wait_id: Str<'a>,
        pub condition_key: Str<'a>,
        pub condition_definition_fingerprint: Str<'a>,
        pub timeout_seconds: Int,

        pub change_id: Str<'a>,
        pub version: Int,
        pub min_supported: Int,
        pub max_supported: Int,

        pub activity_execution_id: Str<'a>,
        pub activity_type: Noted<Str<'a>>,
        pub activity_class: Noted<Str<'a>>,
        pub idempotency_key: Str<'a>,
        pub attempt_number: Int,
        pub activity: Map<ActivitySnapshot<'a>>,
        pub progress: Any,
        pub retry_task_id: Str<'a>,
        pub retry_available_at: Time,
        pub retry_backoff_seconds: Int,
        pub retry_policy: Verbatim<'a>,
        pub retry_after_attempt_id: Str<'a>,
        pub retry_after_attempt: Int,
        pub max_attempts: Int,

        pub timer_id: Str<'a>,
        pub timer_kind: Str<'a>,
        pub delay_seconds: Noted<Int>,
        pub fire_at: Noted<Time>,
        pub fired_at: Noted<Time>,
        pub cancelled_at: Noted<Time>,

        pub child_call_id: Noted<Str<'a>>,
        pub child_workflow_instance_id: Noted<Str<'a>>,
        pub child_workflow_run_id: Noted<Str<'a>>,
        pub child_workflow_type: Noted<Str<'a>>,
        pub child_workflow_class: Noted<Str<'a>>,
        pub child_status: Str<'a>,
        pub child_run_number: Int,
        pub workflow_link_id: Str<'a>,
        pub continued_to_run_id: Str<'a>,
        pub retry_attempt: Int,

        pub parallel_group_id: Str<'a>,
        pub parallel_group_kind: Str<'a>,
        pub parallel_group_base_sequence: Int,
        pub parallel_group_size: Int,
        pub parallel_group_index: Int,
        pub parallel_group_path: Any,

        pub failure_id: Noted<Str<'a>>,
        pub source_kind: Noted<Str<'a>>,
        pub source_id: Noted<Str<'a>>,
        pub propagation_kind: Str<'a>,
        pub failure_category: Str<'a>,
        pub non_retryable: Flag,
        pub exception_type: Str<'a>,
        pub exception_class: Noted<Str<'a>>,
        pub message: Noted<Str<'a>>,
        pub timeout_kind: Str<'a>,
        pub structural_limit_kind: Str<'a>,
        pub structural_limit_value: Int,
        pub structural_limit_configured: Int,

        /// Search attributes and memo entries that were set, by key.
        pub attributes: Any,
        pub entries: Any,
        pub policy: Str<'a>,
        pub child_instance_id: Str<'a>,
        pub new_position: Int,
        pub stream_key: Str<'a>,
        pub schedule_id: Str<'a>,
        pub trigger_number: Int,
        pub endpoint_name: Str<'a>,
        pub service_name: Str<'a>,
        pub operation_name: Str<'a>,
    }
}

shape! {
    /// A command as it stood when the event was written.
    #[derive(Clone, Debug, PartialEq)]
    pub struct CommandSnapshot<'a> {
        pub id: Str<'a>,
        pub sequence: Int,
        #[key = "type"]
        pub command_type: Str<'a>,
        pub target_scope: Str<'a>,
        pub requested_run_id: Str<'a>,
        pub resolved_run_id: Str<'a>,
        pub target_name: Str<'a>,
        pub payload_codec: Str<'a>,
        pub payload: Any,
        pub source: Str<'a>,
        pub context: Any,
        pub caller_label: Str<'a>,
        pub principal_type: Str<'a>,
        pub principal_id: Str<'a>,
        pub principal_label: Str<'a>,
        pub auth_status: Str<'a>,
        pub auth_method: Str<'a>,
        pub request_method: Str<'a>,
        pub request_path: Str<'a>,
        pub request_route_name: Str<'a>,
        pub request_fingerprint: Str<'a>,
        pub rejection_reason: Str<'a>,
        pub accepted_at: Time,
        pub applied_at: Time,
        pub rejected_at: Time,
    }
}

shape! {
    /// A task as it stood when the event was written.
    #[derive(Clone, Debug, PartialEq)]
    pub struct TaskSnapshot<'a> {
        pub id: Str<'a>,
        #[key = "type"]
        pub task_type: Str<'a>,
        pub status: Str<'a>,
        pub available_at: Time,
        pub leased_at: Time,
        pub lease_expires_at: Time,
        pub attempt_count: Noted<Int>,
    }
}

shape! {
    /// An activity as it stood when the event was written.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ActivitySnapshot<'a> {
        pub id: Str<'a>,
        pub idempotency_key: Str<'a>,
        pub sequence: Int,
        #[key = "type"]
        pub activity_type: Str<'a>,
        pub class: Str<'a>,
        pub attempt_id: Str<'a>,
        pub status: Str<'a>,
        pub attempt_count: Int,
        pub retry_policy: Verbatim<'a>,
        pub connection: Str<'a>,
        pub queue: Str<'a>,
        pub started_at: Time,
        pub closed_at: Time,
        pub last_heartbeat_at: Time,
        pub last_heartbeat_progress: Any,
    }
}

super::parallel::grouped!(TimelineEvent<'_>);
