//! The columns of rows that hold a slot, or a sentence made of it. What events hold is among the
//! copies of the slots.

use super::slots::{COMMANDS, Copies, Slot, TASKS, When, copies};

const EXECUTIONS: &str = "activity_executions";
const RUNS: &str = "workflow_runs";
const SIGNALS: &str = "workflow_signal_records";
const SUMMARIES: &str = "workflow_run_summaries";
const UPDATES: &str = "workflow_updates";

/// Each place under the name of its table, in the order of the slots.
pub(super) const COLUMNS: &[(Slot, Copies)] = &[
    (Slot::WorkflowArguments, held(RUNS, &["arguments"])),
    (Slot::WorkflowOutput, held(RUNS, &["output"])),
    (
        Slot::EventPayload,
        held("workflow_history_events", &["payload"]),
    ),
    (Slot::StartCommand, held_by_command(Slot::StartCommand)),
    (Slot::SignalCommand, held_by_command(Slot::SignalCommand)),
    (Slot::UpdateCommand, held_by_command(Slot::UpdateCommand)),
    (Slot::OtherCommand, held_by_command(Slot::OtherCommand)),
    (
        Slot::CommandContext,
        held(COMMANDS, &["context", "request_id"]),
    ),
    (
        Slot::CommandContext,
        copies(COMMANDS, &["context", "caller"], &["label"]),
    ),
    (
        Slot::CommandContext,
        copies(COMMANDS, &["context", "auth"], &["status", "method"]),
    ),
    (
        Slot::CommandContext,
        copies(
            COMMANDS,
            &["context", "principal"],
            &["type", "id", "label"],
        ),
    ),
    (
        Slot::CommandContext,
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
    ),
    (Slot::CommandReason, held(RUNS, &["archive_reason"])),
    (Slot::CommandReason, held(SUMMARIES, &["archive_reason"])),
    (
        Slot::ValidationErrors,
        held(SIGNALS, &["validation_errors"]),
    ),
    (
        Slot::ValidationErrors,
        held(UPDATES, &["validation_errors"]),
    ),
    // Encoded, with all else.
    (Slot::ValidationErrors, held(COMMANDS, &["payload"])),
    (Slot::UpdateArguments, held(UPDATES, &["arguments"])),
    (Slot::UpdateResult, held(UPDATES, &["result"])),
    (Slot::SignalArguments, held(SIGNALS, &["arguments"])),
    (
        Slot::SignalArguments,
        held("workflow_messages", &["metadata"]),
    ),
    (Slot::TaskPayload, held(TASKS, &["payload"])),
    (Slot::ActivityArguments, held(EXECUTIONS, &["arguments"])),
    (Slot::ActivityResult, held(EXECUTIONS, &["result"])),
    (Slot::FailureMessage, held_by_failure(Slot::FailureMessage)),
    (Slot::FailureMessage, held(EXECUTIONS, &["exception"])),
    (Slot::FailureMessage, held(UPDATES, &["failure_message"])),
    // Of a worker that threw, or of a replay that was blocked.
    (Slot::FailureMessage, held(TASKS, &["last_error"])),
    (
        Slot::FailureMessage,
        copies(TASKS, &["payload"], &["replay_blocked_resolution_error"]),
    ),
    (Slot::FailureMessage, held(SUMMARIES, &["liveness_reason"])),
    (
        Slot::FailureMessage,
        held("workflow_messages", &["last_delivery_error"]),
    ),
    (Slot::StopMessage, held_by_failure(Slot::StopMessage)),
    (Slot::FailureFile, held("workflow_failures", &["file"])),
    (Slot::FailureFile, held(EXECUTIONS, &["exception"])),
    (
        Slot::FailureTrace,
        held("workflow_failures", &["trace_preview"]),
    ),
    (Slot::FailureTrace, held(EXECUTIONS, &["exception"])),
];

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
