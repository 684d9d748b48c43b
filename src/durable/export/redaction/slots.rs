//! The kinds of value a policy can act on, and every place where a bundle repeats one.
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
    /// Slots that hold the same text: whoever hides one of those hides this one.
    pub repeats: &'static [Slot],
}

/// Keys of the entries of a section that repeat a slot.
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
}

impl When {
    /// Whether the entry, or the event of this payload, is one of them.
    pub fn holds(self, event_type: Option<&str>, command_type: Option<&str>) -> bool {
        match self {
            Self::Always => true,
            Self::Type(types) => event_type.is_some_and(|one| types.contains(&one)),
            Self::Command(slot) => command_slots(command_type).contains(&slot),
        }
    }
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
    let stopped = ["cancelled", "terminated"];
    let says = |key: &str| {
        failure[key]
            .as_str()
            .is_some_and(|word| stopped.contains(&word))
    };
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

pub(super) const EVENTS: &str = "history_events";

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
        repeats: &[],
    },
    About {
        slot: Slot::EventPayload,
        category: "history_event",
        places: &["history_events.*.payload"],
        copies: &[],
        repeats: &[],
    },
    About {
        slot: Slot::StartCommand,
        category: "command_payload",
        places: COMMAND,
        copies: &[told_of_command(Slot::StartCommand)],
        repeats: &[Slot::WorkflowArguments],
    },
    About {
        slot: Slot::SignalCommand,
        category: "command_payload",
        places: COMMAND,
        copies: &[told_of_command(Slot::SignalCommand)],
        repeats: &[Slot::SignalArguments],
    },
    About {
        slot: Slot::UpdateCommand,
        category: "command_payload",
        places: COMMAND,
        copies: &[told_of_command(Slot::UpdateCommand)],
        repeats: &[Slot::UpdateArguments],
    },
    About {
        slot: Slot::OtherCommand,
        category: "command_payload",
        places: COMMAND,
        copies: &[told_of_command(Slot::OtherCommand)],
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
        repeats: &[Slot::UpdateCommand],
    },
    About {
        slot: Slot::UpdateResult,
        category: "update_payload",
        places: &["updates.*.result"],
        copies: &[told_by(UPDATES, &["result"])],
        repeats: &[],
    },
    About {
        slot: Slot::SignalArguments,
        category: "signal_payload",
        places: &["signals.*.arguments"],
        copies: &[told_by(SIGNALS, &["arguments", "value"])],
        repeats: &[Slot::SignalCommand],
    },
    About {
        slot: Slot::TaskPayload,
        category: "task_payload",
        places: &["tasks.*.payload"],
        copies: &[],
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
        repeats: &[Slot::FailureFile],
    },
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

    /// Keys that only say which, when, how often and in the engine's own words, or what a run is
    /// found by.
    fn is_harmless(key: &str) -> bool {
        const ENDS: &[&str] = &[
            "_id",
            "_at",
            "_class",
            "_type",
            "_types",
            "_kind",
            "_mode",
            "_status",
            "_name",
            "_number",
            "_sequence",
            "_seconds",
            "_policy",
            "_attempts",
            "_position",
            "_supported",
            "_language",
            "_fingerprint",
            "_count",
            "_value",
            "_configured",
            "_size",
            "_index",
            "_path",
            "_key",
            "_codec",
            "_ulid",
            "_reference",
            "_category",
            "_state",
            "_contracts",
            "_method",
            "_fields",
            "_expression",
            "_time",
        ];
        const WORDS: &[&str] = &[
            "attributes",
            "business_key",
            "closed_reason",
            "code",
            "declared_queries",
            "declared_signals",
            "declared_updates",
            "entries",
            "handled",
            "local_activity",
            "memo",
            "merged",
            "non_retryable",
            "outcome",
            "policy",
            "rejection_reason",
            "retry_after_attempt",
            "retry_attempt",
            "retry_reason",
            "search_attributes",
            "sequence",
            "spec",
            "status",
            "terminal_reason",
            "timezone",
            "version",
            "visibility_labels",
            "wait_for",
        ];
        WORDS.contains(&key) || ENDS.iter().any(|end| key.ends_with(end))
    }

    #[test]
    fn every_key_of_an_event_is_a_slots_or_harmless() {
        for key in KEYS.split(' ') {
            let way = [key.to_owned()];
            let told = TABLE.iter().any(|about| about.slot.is_told_at(&way));
            assert!(told != is_harmless(key), "{key}");
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
