//! What ties rows together inside of documents, and stays.

use super::slots::{COMMANDS, Copies, TASKS, copies, inside, told};

const GROUP: [&str; 6] = [
    "parallel_group_id",
    "parallel_group_kind",
    "parallel_group_base_sequence",
    "parallel_group_size",
    "parallel_group_index",
    "parallel_group_path",
];

/// What ties rows together inside of documents: ids, names, moments and the engine's own words. A
/// run is told by them also where the rest of the document is hidden.
pub(super) const TIES: &[Copies] = &[
    told(&GROUP),
    told(&[
        "activity_attempt_id",
        "activity_class",
        "activity_execution_id",
        "activity_type",
        "archive_command_id",
        "attempt_number",
        "caller_sdk_language",
        "caller_workflow_instance_id",
        "caller_workflow_run_id",
        "cancelled_at",
        "change_id",
        "changed_fields",
        "child_call_id",
        "child_instance_id",
        "child_run_id",
        "child_run_number",
        "child_status",
        "child_workflow_class",
        "child_workflow_instance_id",
        "child_workflow_run_id",
        "child_workflow_type",
        "close_deadline_at",
        "closed_at",
        "closed_reason",
        "code",
        "command_sequence",
        "command_type",
        "condition_definition_fingerprint",
        "condition_key",
        "condition_wait_id",
        "continued_from_run_id",
        "continued_to_run_id",
        "continued_to_run_number",
        "cron_expression",
        "declared_entry_declaring_class",
        "declared_entry_method",
        "declared_entry_mode",
        "declared_queries",
        "declared_query_contracts",
        "declared_signal_contracts",
        "declared_signals",
        "declared_update_contracts",
        "declared_updates",
        "delay_seconds",
        "deleted_at",
        "effective_overlap_policy",
        "endpoint_name",
        "exception_class",
        "exception_type",
        "execution_deadline_at",
        "execution_mode",
        "execution_timeout_seconds",
        "failure_category",
        "failure_id",
        "fire_at",
        "fired_at",
        "handled",
        "heartbeat_at",
        "heartbeat_deadline_at",
        "idempotency_key",
        "last_skipped_at",
        "lease_expires_at",
        "linked_workflow_instance_id",
        "linked_workflow_run_id",
        "linked_workflow_update_id",
        "liveness_state",
        "local_activity",
        "max_attempts",
        "max_supported",
        "min_supported",
        "new_position",
        "next_fire_at",
        "non_retryable",
        "occurrence_time",
        "operation_mode",
        "operation_name",
        "ordering_state",
        "outcome",
        "overlap_policy",
        "parent_close_policy",
        "parent_sequence",
        "parent_workflow_instance_id",
        "parent_workflow_run_id",
        "paused_at",
        "payload_codec",
        "policy",
        "previous_position",
        "propagation_kind",
        "queued_behind_command_id",
        "queued_behind_command_sequence",
        "queued_behind_command_type",
        "rejection_reason",
        "resolved_binding_kind",
        "resolved_target_reference",
        "retry_after_attempt",
        "retry_after_attempt_id",
        "retry_attempt",
        "retry_available_at",
        "retry_backoff_seconds",
        "retry_of_child_workflow_run_id",
        "retry_of_task_id",
        "retry_policy",
        "retry_reason",
        "retry_task_id",
        "run_deadline_at",
        "run_timeout_seconds",
        "schedule_deadline_at",
        "schedule_id",
        "schedule_to_close_deadline_at",
        "schedule_ulid",
        "sequence",
        "service_call_id",
        "service_name",
        "service_sdk_language",
        "signal_id",
        "signal_name",
        "signal_wait_id",
        "skipped_trigger_count",
        "source_id",
        "source_kind",
        "status",
        "stream_key",
        "structural_limit_configured",
        "structural_limit_kind",
        "structural_limit_value",
        "task_id",
        "task_type",
        "terminal_reason",
        "timeout_kind",
        "timeout_policy",
        "timeout_seconds",
        "timer_id",
        "timer_kind",
        "timezone",
        "trigger_number",
        "update_id",
        "update_name",
        "version",
        "wait_for",
        "wait_kind",
        "workflow_class",
        "workflow_command_id",
        "workflow_definition_fingerprint",
        "workflow_instance_id",
        "workflow_link_id",
        "workflow_run_id",
        "workflow_signal_id",
        "workflow_task_id",
        "workflow_type",
        "workflow_update_id",
    ]),
    inside(&["payload", "activity"], &GROUP),
    inside(
        &["payload", "activity"],
        &[
            "attempt_count",
            "attempt_id",
            "class",
            "closed_at",
            "connection",
            "created_at",
            "execution_mode",
            "id",
            "idempotency_key",
            "last_heartbeat_at",
            "local_activity",
            "payload_codec",
            "queue",
            "retry_policy",
            "sequence",
            "started_at",
            "status",
            "type",
        ],
    ),
    inside(
        &["payload", "activity_attempt"],
        &[
            "activity_execution_id",
            "attempt_number",
            "closed_at",
            "id",
            "last_heartbeat_at",
            "lease_expires_at",
            "lease_owner",
            "started_at",
            "status",
            "task_id",
        ],
    ),
    inside(
        &["payload", "task"],
        &[
            "attempt_count",
            "available_at",
            "compatibility",
            "connection",
            "id",
            "lease_expires_at",
            "lease_owner",
            "leased_at",
            "queue",
            "repair_count",
            "status",
            "type",
        ],
    ),
    inside(
        &["payload", "command"],
        &[
            "accepted_at",
            "applied_at",
            "id",
            "message_sequence",
            "outcome",
            "payload_codec",
            "rejected_at",
            "rejection_reason",
            "requested_run_id",
            "resolved_run_id",
            "sequence",
            "source",
            "status",
            "target_name",
            "target_scope",
            "type",
        ],
    ),
    inside(
        &["payload", "exception"],
        &["class", "code", "line", "non_retryable", "type"],
    ),
    copies(
        COMMANDS,
        &["context", "workflow"],
        &[
            "child_call_id",
            "parent_instance_id",
            "parent_run_id",
            "sequence",
        ],
    ),
    copies(COMMANDS, &["context", "intake"], &["group_id", "mode"]),
    copies(
        TASKS,
        &["payload"],
        &[
            "activity_execution_id",
            "activity_type",
            "child_call_id",
            "child_workflow_run_id",
            "condition_definition_fingerprint",
            "condition_key",
            "condition_wait_id",
            "execution_mode",
            "max_attempts",
            "open_wait_id",
            "reason",
            "replay_blocked",
            "replay_blocked_condition_wait_id",
            "replay_blocked_current_condition_definition_fingerprint",
            "replay_blocked_current_condition_key",
            "replay_blocked_exception_class",
            "replay_blocked_exception_type",
            "replay_blocked_expected_history_shape",
            "replay_blocked_reason",
            "replay_blocked_recorded_condition_definition_fingerprint",
            "replay_blocked_recorded_condition_key",
            "replay_blocked_recorded_event_types",
            "replay_blocked_resolution_source",
            "replay_blocked_workflow_sequence",
            "resume_reason",
            "resume_source_id",
            "resume_source_kind",
            "retry_after_attempt",
            "retry_after_attempt_id",
            "retry_backoff_seconds",
            "retry_of_task_id",
            "retry_policy",
            "retry_reason",
            "service_call_id",
            "signal_name",
            "signal_wait_id",
            "timeout_kind",
            "timer_id",
            "workflow_command_id",
            "workflow_event_type",
            "workflow_history_event_id",
            "workflow_sequence",
            "workflow_signal_id",
            "workflow_update_id",
            "workflow_wait_kind",
        ],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::durable::export::redaction::{
        columns::COLUMNS,
        slots::{EVENTS, TABLE},
    };

    /// Every key of the events of the engine, as its contract lists them.
    const KEYS: &str = "action activity activity_attempt activity_attempt_id activity_class \
        activity_execution_id activity_type archive_command_id arguments attempt_number attributes \
        business_key caller_sdk_language caller_workflow_instance_id caller_workflow_run_id \
        cancelled_at change_id changed_fields child_call_id child_instance_id child_run_id \
        child_run_number child_status child_workflow_class child_workflow_instance_id \
        child_workflow_run_id child_workflow_type close_deadline_at closed_at closed_reason code \
        command_context command_type condition_definition_fingerprint condition_key \
        condition_wait_id continued_from_run_id continued_to_run_id continued_to_run_number \
        cron_expression declared_entry_declaring_class declared_entry_method declared_entry_mode \
        declared_queries declared_query_contracts declared_signal_contracts declared_signals \
        declared_update_contracts declared_updates delay_seconds deleted_at \
        effective_overlap_policy endpoint_name entries error exception exception_class \
        exception_type execution_deadline_at execution_mode execution_timeout_seconds \
        failure_category failure_id fire_at fired_at handled heartbeat_at heartbeat_deadline_at \
        last_skipped_at lease_expires_at linked_workflow_instance_id linked_workflow_run_id \
        linked_workflow_update_id liveness_state local_activity max_attempts max_supported memo \
        merged message min_supported new_position next_fire_at non_retryable occurrence_time \
        operation_mode operation_name ordering_state outcome output overlap_policy \
        parallel_group_base_sequence parallel_group_id parallel_group_index parallel_group_kind \
        parallel_group_path parallel_group_size parent_close_policy parent_sequence \
        parent_workflow_instance_id parent_workflow_run_id paused_at payload_codec policy \
        previous_position progress propagation_kind queued_behind_command_id \
        queued_behind_command_sequence queued_behind_command_type reason rejection_reason \
        request_payload resolved_binding_kind resolved_target_reference \
        response_or_failure_surface response_payload result retry_after_attempt \
        retry_after_attempt_id retry_attempt retry_available_at retry_backoff_seconds \
        retry_of_child_workflow_run_id retry_of_task_id retry_policy retry_reason retry_task_id \
        run_deadline_at run_timeout_seconds schedule_deadline_at schedule_id \
        schedule_to_close_deadline_at schedule_ulid search_attributes sequence service_call \
        service_call_id service_name service_sdk_language signal_id signal_name signal_wait_id \
        skipped_trigger_count source_id source_kind spec status stream_key \
        structural_limit_configured structural_limit_kind structural_limit_value task_id task_type \
        terminal_reason timeout_kind timeout_policy timeout_seconds timer_id timer_kind timezone \
        trigger_number update_id update_name validation_errors value version visibility_labels \
        wait_for wait_kind workflow_class workflow_command_id workflow_definition_fingerprint \
        workflow_instance_id workflow_link_id workflow_run_id workflow_signal_id workflow_task_id \
        workflow_type";

    /// What a run is found by is no slot and ties nothing.
    const FOUND_BY: &[&str] = &[
        "attributes",
        "business_key",
        "entries",
        "memo",
        "merged",
        "search_attributes",
        "spec",
        "visibility_labels",
    ];

    #[test]
    fn every_key_of_an_event_is_a_slots_or_ties_or_is_found_by() {
        let ties = |key: &str| {
            let top = TIES.iter().filter(|ties| ties.under == ["payload"]);
            top.filter(|ties| ties.section == EVENTS)
                .any(|ties| ties.keys.contains(&key))
        };
        for key in KEYS.split(' ') {
            let way = [key.to_owned()];
            let told = TABLE.iter().any(|about| about.slot.is_told_at(&way));
            let harmless = ties(key) || FOUND_BY.contains(&key);
            assert!(told != harmless, "{key}");
        }
    }

    #[test]
    fn nothing_that_ties_is_a_slot() {
        let places = || {
            let copies = TABLE.iter().flat_map(|about| about.copies);
            copies.chain(COLUMNS.iter().map(|(_, place)| place))
        };
        for ties in TIES {
            let same =
                places().filter(|place| (place.section, place.under) == (ties.section, ties.under));
            for place in same {
                let both: Vec<_> = place
                    .keys
                    .iter()
                    .filter(|key| ties.keys.contains(key))
                    .collect();
                assert!(both.is_empty(), "{both:?} of {}", ties.section);
            }
        }
    }
}
