//! The kinds of value a policy can act on, and every place where a bundle repeats one.
//!
//! What ties rows together is no slot and stays: ids, names, types, the engine's own words, and
//! what a run is found by (business key, labels, memo, search attributes).

use std::sync::LazyLock;

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
    /// The run's liveness is stored as this.
    Liveness(&'static str),
}

impl When {
    /// Whether the entry, the row, or the event of this payload is one of them.
    pub fn holds(self, of: &Kind<'_>) -> bool {
        match self {
            Self::Always => true,
            Self::Type(types) => of.event_type.is_some_and(|one| types.contains(&one)),
            Self::Command(slot) => command_slots(of.command_type).contains(&slot),
            Self::Failure(slot) => of.message.is_none_or(|message| message == slot),
            Self::Liveness(state) => of.liveness_state.is_none_or(|one| one == state),
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
    pub liveness_state: Option<&'e str>,
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

pub(super) const fn told(keys: &'static [&'static str]) -> Copies {
    inside(&["payload"], keys)
}

pub(super) const fn inside(
    under: &'static [&'static str],
    keys: &'static [&'static str],
) -> Copies {
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

pub(super) const fn copies(
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
/// The tables whose documents hold slots and ties.
pub(super) const COMMANDS: &str = "workflow_commands";
pub(super) const TASKS: &str = "workflow_tasks";

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
            // The error of the task that stopped. In any other state the reason is the engine's
            // own sentence.
            Copies {
                when: When::Liveness("workflow_replay_blocked"),
                ..copies("summary", &[], &["liveness_reason"])
            },
            copies("tasks", &["payload"], &["replay_blocked_resolution_error"]),
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

/// Keys of the timeline's entries that a policy may have hidden, and what tells whether there is
/// such a value.
pub static HIDEABLE_IN_TIMELINE: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let places = TABLE.iter().flat_map(|about| about.places);
    let places = places.filter(|place| place.starts_with("timeline."));
    let copies = TABLE.iter().flat_map(|about| about.copies);
    let copies = copies.filter(|copies| copies.section == "timeline");
    let mut keys: Vec<_> = places
        .filter_map(|place| place.rsplit('.').next())
        .chain(copies.flat_map(|copies| copies.keys.iter().copied()))
        .chain(["payload_available"])
        .collect();
    keys.sort_unstable();
    keys.dedup();
    keys
});

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

    #[test]
    fn a_comparison_of_timelines_leaves_out_all_that_may_be_hidden() {
        let keys = [
            &["message", "file", "payload", "payload_available", "context"],
            CALLER,
        ]
        .concat();
        for key in keys.iter().chain(&["last_heartbeat_progress"]) {
            assert!(HIDEABLE_IN_TIMELINE.contains(key), "{key}");
        }
        assert_eq!(HIDEABLE_IN_TIMELINE.len(), keys.len() + 1);
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
