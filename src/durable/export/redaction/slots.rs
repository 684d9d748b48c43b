//! The kinds of value a policy can act on, the columns that hold them, and every place where a
//! bundle repeats one.
//!
//! What ties rows together is no slot and stays: ids, names, types, the engine's own words, and
//! what a run is found by (business key, labels, memo, search attributes).

use serde_json::Value;

/// A kind of value a policy can act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    WorkflowArguments,
    WorkflowOutput,
    EventPayload,
    /// Payloads of commands, by what they carry: arguments of the run, of a signal, of an update,
    /// or a reason.
    StartCommand,
    SignalCommand,
    UpdateCommand,
    OtherCommand,
    CommandContext,
    CommandReason,
    ValidationErrors,
    UpdateArguments,
    UpdateResult,
    SignalArguments,
    TaskPayload,
    ActivityArguments,
    ActivityResult,
    ActivityProgress,
    FailureMessage,
    /// The message of a run that was stopped: it quotes the reason.
    StopMessage,
    FailureFile,
    FailureTrace,
}

/// What is known of a slot.
pub(super) struct About {
    pub slot: Slot,
    pub category: &'static str,
    /// Its own places, by which a rule may name it; `*` for a position.
    pub places: &'static [&'static str],
    /// Where else the bundle repeats it.
    pub copies: &'static [Copies],
    /// The columns that hold it, or a sentence made of it: each under the name of its table. What
    /// events hold is among the copies.
    pub columns: &'static [Copies],
    /// Slots that hold the same text: whoever hides one of those hides this one.
    pub repeats: &'static [Slot],
}

/// Keys of the entries of a section, or columns of the rows of a table, that repeat a slot.
#[derive(Clone, Copy)]
pub(super) struct Copies {
    pub section: &'static str,
    pub when: When,
    /// The way to the keys; `*` for every position.
    pub under: &'static [&'static str],
    pub keys: &'static [&'static str],
}

/// In which entries.
#[derive(Clone, Copy)]
pub(super) enum When {
    Always,
    /// Of events of these types, or of the timeline's entries for them.
    Type(&'static [&'static str]),
    /// The command it tells of is of such a kind.
    Command(Slot),
    /// The failure it tells of has such a message.
    Failure(Slot),
}

impl When {
    /// Whether the entry, the row, or the event of this payload is one of them.
    pub fn holds(self, of: &Kind<'_>) -> bool {
        match self {
            Self::Always => true,
            Self::Type(types) => of.event_type.is_some_and(|one| types.contains(&one)),
            Self::Command(slot) => command_slots(of.command_type).contains(&slot),
            Self::Failure(slot) => of.message.is_none_or(|message| message == slot),
        }
    }
}

/// What tells the meaning of the keys of an entry or a row; what it does not say may be any.
#[derive(Clone, Copy, Debug, Default)]
pub struct Kind<'e> {
    pub event_type: Option<&'e str>,
    pub command_type: Option<&'e str>,
    /// The slot of its failure's message.
    pub message: Option<Slot>,
}

/// The slots of a command's payload; of a type nobody knows it may be any.
pub fn command_slots(command_type: Option<&str>) -> &'static [Slot] {
    match command_type {
        Some("start") => &[Slot::StartCommand],
        Some("signal") => &[Slot::SignalCommand],
        Some("update") => &[Slot::UpdateCommand],
        Some("cancel" | "terminate" | "archive" | "repair") => &[Slot::OtherCommand],
        _ => &[
            Slot::OtherCommand,
            Slot::StartCommand,
            Slot::SignalCommand,
            Slot::UpdateCommand,
        ],
    }
}

/// The slot of the message of a failure or of an entry of the timeline that has one.
pub fn message_slot(failure: &Value) -> Slot {
    message_slot_of(|key| failure[key].as_str())
}

/// The same of anything that has the words of a failure.
pub fn message_slot_of<'f>(word: impl Fn(&str) -> Option<&'f str>) -> Slot {
    let stopped = ["cancelled", "terminated"];
    let says = |key: &str| word(key).is_some_and(|word| stopped.contains(&word));
    if says("propagation_kind") || says("failure_category") {
        Slot::StopMessage
    } else {
        Slot::FailureMessage
    }
}

const fn told(keys: &'static [&'static str]) -> Copies {
    inside(&["payload"], keys)
}

const fn inside(under: &'static [&'static str], keys: &'static [&'static str]) -> Copies {
    Copies {
        section: EVENTS,
        when: When::Always,
        under,
        keys,
    }
}

const fn told_by(types: &'static [&'static str], keys: &'static [&'static str]) -> Copies {
    Copies {
        when: When::Type(types),
        ..told(keys)
    }
}

const fn told_of_command(kind: Slot) -> Copies {
    Copies {
        when: When::Command(kind),
        ..inside(&["payload", "command"], &["payload"])
    }
}

const fn copies(
    section: &'static str,
    under: &'static [&'static str],
    keys: &'static [&'static str],
) -> Copies {
    Copies {
        section,
        under,
        ..told(keys)
    }
}

/// Columns that hold a slot as a whole.
const fn held(table: &'static str, columns: &'static [&'static str]) -> Copies {
    copies(table, &[], columns)
}

const fn held_by_command(kind: Slot) -> Copies {
    Copies {
        when: When::Command(kind),
        ..held(COMMANDS, &["payload"])
    }
}

const fn held_by_failure(kind: Slot) -> Copies {
    Copies {
        when: When::Failure(kind),
        ..held("workflow_failures", &["message"])
    }
}

pub(super) const EVENTS: &str = "history_events";
const COMMANDS: &str = "workflow_commands";
const EXECUTIONS: &str = "activity_executions";
const RUNS: &str = "workflow_runs";
const SIGNAL_ROWS: &str = "workflow_signal_records";
const SUMMARIES: &str = "workflow_run_summaries";
const TASKS: &str = "workflow_tasks";
const UPDATE_ROWS: &str = "workflow_updates";

/// What the engine takes from a command's context besides its public part.
const CALLER: &[&str] = &[
    "caller_label",
    "principal_type",
    "principal_id",
    "principal_label",
    "auth_status",
    "auth_method",
    "request_method",
    "request_path",
    "request_route_name",
    "request_fingerprint",
    "request_id",
    "correlation_id",
];
const STARTS: &[&str] = &[
    "StartAccepted",
    "StartRejected",
    "WorkflowStarted",
    "WorkflowContinuedAsNew",
    "ChildWorkflowScheduled",
];
const ACTIVITIES: &[&str] = &[
    "ActivityScheduled",
    "ActivityStarted",
    "ActivityHeartbeatRecorded",
    "ActivityRetryScheduled",
    "ActivityCompleted",
    "ActivityFailed",
    "ActivityCancelled",
    "ActivityTimedOut",
];
const SIGNALS: &[&str] = &["SignalReceived", "SignalApplied"];
const UPDATES: &[&str] = &[
    "UpdateAccepted",
    "UpdateRejected",
    "UpdateApplied",
    "UpdateCompleted",
];
const STOPS: &[&str] = &[
    "WorkflowCancelled",
    "WorkflowTerminated",
    "ChildRunCancelled",
    "ChildRunTerminated",
];
const COMMAND: &[&str] = &["commands.*.payload", "timeline.*.command.payload"];
const MESSAGE: &[&str] = &[
    "failures.*.message",
    "timeline.*.failure.message",
    "timeline.*.message",
];
const SERVICE_CALLS: &[&str] = &[
    "ServiceCallStarted",
    "ServiceCallCompleted",
    "ServiceCallFailed",
    "ServiceCallCancelled",
];
/// The call as its service told it, twice: who called, what came of it, why it failed.
const SURFACE: &[&str] = &["service_call", "response_or_failure_surface"];
/// An exception's own properties, what it was caused by and what a worker adds may quote its
/// message.
const EXCEPTION: &[&str] = &[
    "message",
    "properties",
    "previous",
    "details",
    "diagnostics",
    "runtime_diagnostics",
];
/// What of an exception names files.
const TRACE: &[&str] = &["trace", "previous", "diagnostics", "runtime_diagnostics"];

/// Every slot, in the order the engine looks at them.
pub(super) const TABLE: &[About] = &[
    About {
        slot: Slot::WorkflowArguments,
        category: "workflow_payload",
        places: &["payloads.arguments.data"],
        copies: &[
            told_by(STARTS, &["arguments"]),
            // What a schedule starts, and with what.
            told_by(&["ScheduleCreated", "ScheduleUpdated"], &["action"]),
        ],
        columns: &[held(RUNS, &["arguments"])],
        repeats: &[Slot::StartCommand],
    },
    About {
        slot: Slot::WorkflowOutput,
        category: "workflow_payload",
        places: &["payloads.output.data"],
        // A child's output is one as well.
        copies: &[told_by(
            &["WorkflowCompleted", "ChildRunCompleted"],
            &["output", "result"],
        )],
        columns: &[held(RUNS, &["output"])],
        repeats: &[],
    },
    About {
        slot: Slot::EventPayload,
        category: "history_event",
        places: &["history_events.*.payload"],
        copies: &[],
        columns: &[held("workflow_history_events", &["payload"])],
        repeats: &[],
    },
    About {
        slot: Slot::StartCommand,
        category: "command_payload",
        places: COMMAND,
        copies: &[told_of_command(Slot::StartCommand)],
        columns: &[held_by_command(Slot::StartCommand)],
        repeats: &[Slot::WorkflowArguments],
    },
    About {
        slot: Slot::SignalCommand,
        category: "command_payload",
        places: COMMAND,
        copies: &[told_of_command(Slot::SignalCommand)],
        columns: &[held_by_command(Slot::SignalCommand)],
        repeats: &[Slot::SignalArguments],
    },
    About {
        slot: Slot::UpdateCommand,
        category: "command_payload",
        places: COMMAND,
        copies: &[told_of_command(Slot::UpdateCommand)],
        columns: &[held_by_command(Slot::UpdateCommand)],
        repeats: &[Slot::UpdateArguments],
    },
    About {
        slot: Slot::OtherCommand,
        category: "command_payload",
        places: COMMAND,
        copies: &[told_of_command(Slot::OtherCommand)],
        columns: &[held_by_command(Slot::OtherCommand)],
        repeats: &[Slot::CommandReason],
    },
    About {
        slot: Slot::CommandContext,
        category: "command_context",
        places: &["commands.*.context", "timeline.*.command.context"],
        copies: &[
            copies("commands", &[], CALLER),
            copies("timeline", &["command"], CALLER),
            inside(&["payload", "command"], &["context"]),
            inside(&["payload", "command"], CALLER),
            told(&["command_context"]),
            told_by(SERVICE_CALLS, SURFACE),
        ],
        columns: &[
            held(COMMANDS, &["context", "request_id"]),
            copies(COMMANDS, &["context", "caller"], &["label"]),
            copies(COMMANDS, &["context", "auth"], &["status", "method"]),
            copies(
                COMMANDS,
                &["context", "principal"],
                &["type", "id", "label"],
            ),
            copies(
                COMMANDS,
                &["context", "request"],
                &[
                    "method",
                    "path",
                    "route_name",
                    "fingerprint",
                    "request_id",
                    "correlation_id",
                ],
            ),
        ],
        repeats: &[],
    },
    About {
        slot: Slot::CommandReason,
        category: "command_reason",
        places: &["commands.*.reason"],
        copies: &[
            told(&["reason"]),
            inside(&["payload", "command"], &["reason"]),
            copies("workflow", &[], &["archive_reason"]),
            copies("summary", &[], &["archive_reason"]),
        ],
        columns: &[
            held(RUNS, &["archive_reason"]),
            held(SUMMARIES, &["archive_reason"]),
        ],
        repeats: &[Slot::OtherCommand],
    },
    About {
        slot: Slot::ValidationErrors,
        category: "command_payload",
        places: &["commands.*.validation_errors"],
        copies: &[
            copies("commands", &[], &["validation_errors"]),
            copies("signals", &[], &["validation_errors"]),
            copies("updates", &[], &["validation_errors"]),
            told(&["validation_errors"]),
            inside(&["payload", "command"], &["validation_errors"]),
        ],
        columns: &[
            held(SIGNAL_ROWS, &["validation_errors"]),
            held(UPDATE_ROWS, &["validation_errors"]),
            // Encoded, with all else.
            held(COMMANDS, &["payload"]),
        ],
        repeats: &[
            Slot::StartCommand,
            Slot::SignalCommand,
            Slot::UpdateCommand,
            Slot::SignalArguments,
            Slot::UpdateArguments,
        ],
    },
    About {
        slot: Slot::UpdateArguments,
        category: "update_payload",
        places: &["updates.*.arguments"],
        copies: &[told_by(UPDATES, &["arguments"])],
        columns: &[held(UPDATE_ROWS, &["arguments"])],
        repeats: &[Slot::UpdateCommand],
    },
    About {
        slot: Slot::UpdateResult,
        category: "update_payload",
        places: &["updates.*.result"],
        copies: &[told_by(UPDATES, &["result"])],
        columns: &[held(UPDATE_ROWS, &["result"])],
        repeats: &[],
    },
    About {
        slot: Slot::SignalArguments,
        category: "signal_payload",
        places: &["signals.*.arguments"],
        copies: &[told_by(SIGNALS, &["arguments", "value"])],
        columns: &[
            held(SIGNAL_ROWS, &["arguments"]),
            held("workflow_messages", &["metadata"]),
        ],
        repeats: &[Slot::SignalCommand],
    },
    About {
        slot: Slot::TaskPayload,
        category: "task_payload",
        places: &["tasks.*.payload"],
        copies: &[],
        columns: &[held(TASKS, &["payload"])],
        repeats: &[],
    },
    About {
        slot: Slot::ActivityArguments,
        category: "activity_payload",
        places: &["activities.*.arguments"],
        copies: &[
            told_by(ACTIVITIES, &["arguments"]),
            told_by(SERVICE_CALLS, &["request_payload"]),
            told_by(SERVICE_CALLS, SURFACE),
            inside(&["payload", "activity"], &["arguments"]),
        ],
        columns: &[held(EXECUTIONS, &["arguments"])],
        repeats: &[],
    },
    About {
        slot: Slot::ActivityResult,
        category: "activity_payload",
        places: &["activities.*.result"],
        copies: &[
            told_by(ACTIVITIES, &["result"]),
            told_by(SERVICE_CALLS, &["response_payload"]),
            told_by(SERVICE_CALLS, SURFACE),
            inside(&["payload", "activity"], &["result"]),
        ],
        columns: &[held(EXECUTIONS, &["result"])],
        repeats: &[],
    },
    About {
        slot: Slot::ActivityProgress,
        category: "activity_payload",
        places: &["activities.*.last_heartbeat_progress"],
        copies: &[
            copies("activities", &[], &["last_heartbeat_progress"]),
            copies(
                "activities",
                &["attempts", "*"],
                &["last_heartbeat_progress"],
            ),
            copies("timeline", &["activity"], &["last_heartbeat_progress"]),
            told_by(ACTIVITIES, &["progress"]),
            inside(&["payload", "activity"], &["last_heartbeat_progress"]),
            inside(
                &["payload", "activity_attempt"],
                &["last_heartbeat_progress"],
            ),
        ],
        columns: &[],
        repeats: &[],
    },
    About {
        slot: Slot::FailureMessage,
        category: "failure_diagnostic",
        places: MESSAGE,
        copies: &[
            told(&["message", "error"]),
            told_by(SERVICE_CALLS, SURFACE),
            inside(&["payload", "exception"], EXCEPTION),
            // Of the last attempt, still encoded.
            inside(&["payload", "activity"], &["exception"]),
        ],
        columns: &[
            held_by_failure(Slot::FailureMessage),
            held(EXECUTIONS, &["exception"]),
            held(UPDATE_ROWS, &["failure_message"]),
            // Of a worker that threw, or of a replay that was blocked.
            held(TASKS, &["last_error"]),
            held(SUMMARIES, &["liveness_reason"]),
            held("workflow_messages", &["last_delivery_error"]),
        ],
        repeats: &[],
    },
    About {
        slot: Slot::StopMessage,
        category: "failure_diagnostic",
        places: MESSAGE,
        copies: &[
            told_by(STOPS, &["message"]),
            Copies {
                when: When::Type(STOPS),
                ..inside(&["payload", "exception"], EXCEPTION)
            },
        ],
        columns: &[held_by_failure(Slot::StopMessage)],
        repeats: &[Slot::CommandReason, Slot::OtherCommand],
    },
    About {
        slot: Slot::FailureFile,
        category: "failure_diagnostic",
        places: &["failures.*.file", "timeline.*.failure.file"],
        copies: &[
            inside(&["payload", "exception"], &["file"]),
            inside(&["payload", "exception"], TRACE),
            inside(&["payload", "activity"], &["exception"]),
        ],
        columns: &[
            held("workflow_failures", &["file"]),
            held(EXECUTIONS, &["exception"]),
        ],
        repeats: &[],
    },
    About {
        slot: Slot::FailureTrace,
        category: "failure_diagnostic",
        places: &["failures.*.trace_preview"],
        copies: &[
            inside(&["payload", "exception"], TRACE),
            inside(&["payload", "activity"], &["exception"]),
        ],
        columns: &[
            held("workflow_failures", &["trace_preview"]),
            held(EXECUTIONS, &["exception"]),
        ],
        repeats: &[Slot::FailureFile],
    },
];

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
            "replay_blocked_expected_history_shape",
            "replay_blocked_reason",
            "replay_blocked_recorded_condition_definition_fingerprint",
            "replay_blocked_recorded_condition_key",
            "replay_blocked_recorded_event_types",
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

/// Keys of the timeline's entries that a policy may have hidden.
pub const HIDEABLE_IN_TIMELINE: &[&str] = &[
    "message",
    "file",
    "payload",
    "payload_available",
    "context",
    "last_heartbeat_progress",
    "caller_label",
    "principal_type",
    "principal_id",
    "principal_label",
    "auth_status",
    "auth_method",
    "request_method",
    "request_path",
    "request_route_name",
    "request_fingerprint",
];

impl Slot {
    pub(super) fn about(self) -> &'static About {
        // The table is in the order of the enum.
        &TABLE[self as usize]
    }

    pub fn category(self) -> &'static str {
        self.about().category
    }

    /// Whether events of some type carry it at such a way below their payload, or on it.
    pub(super) fn is_told_at(self, way: &[String]) -> bool {
        let in_events = |copies: &&Copies| copies.section == EVENTS;
        self.about()
            .copies
            .iter()
            .filter(in_events)
            .any(|copies| copies.keys.iter().any(|key| meets(copies.under, key, way)))
    }
}

/// Whether one of the two ways below an event's payload lies on the other.
fn meets(under: &[&str], key: &str, way: &[String]) -> bool {
    let own = under.iter().copied().skip(1).chain([key]);
    own.zip(way)
        .all(|(own, asked)| asked == "*" || own == asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_slots() {
        for (n, about) in TABLE.iter().enumerate() {
            assert_eq!(about.slot as usize, n, "{:?}", about.slot);
        }
    }

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
            TABLE
                .iter()
                .flat_map(|about| about.copies.iter().chain(about.columns))
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

    #[test]
    fn a_comparison_of_timelines_leaves_out_all_that_may_be_hidden() {
        let of_places = TABLE.iter().flat_map(|about| about.places);
        let of_places = of_places.filter(|place| place.starts_with("timeline."));
        let of_places = of_places.filter_map(|place| place.rsplit('.').next());
        let copied = TABLE.iter().flat_map(|about| about.copies);
        let copied = copied.filter(|copies| copies.section == "timeline");
        for key in of_places.chain(copied.flat_map(|copies| copies.keys.iter().copied())) {
            let of_commands_alone = ["request_id", "correlation_id"].contains(&key);
            assert!(
                of_commands_alone || HIDEABLE_IN_TIMELINE.contains(&key),
                "{key}"
            );
        }
    }

    #[test]
    fn what_repeats_the_same_text_is_hidden_both_ways() {
        // A message quotes a reason, a trace names files, errors are about values: not the other
        // way round.
        let one_way = [
            Slot::StopMessage,
            Slot::FailureTrace,
            Slot::ValidationErrors,
        ];
        for about in TABLE.iter().filter(|about| !one_way.contains(&about.slot)) {
            for other in about.repeats {
                let back = other.about().repeats;
                assert!(back.contains(&about.slot), "{:?} and {other:?}", about.slot);
            }
        }
    }
}
