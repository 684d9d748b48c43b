//! The engine's rows as structs: one macro, one line per column, names as in the tables.

use chrono::{DateTime, Utc};

use super::{
    cell::{AsCell as _, Cell},
    column::Column,
    loose::Raw,
    notice::{Cells, Notices},
    words::{
        ActivityStatus, AttemptStatus, ClosedReason, CommandStatus, CommandType, FailureCategory,
        LivenessState, RepairBlockedReason, RunStatus, SignalStatus, StatusBucket, TaskStatus,
        TaskType, TimerStatus, UpdateStatus, WaitKind, Word as _,
    },
};
use crate::db::{DbError, Json, Row};

/// A row of one of the engine's tables.
pub trait Stored: Sized + Send {
    const TABLE: &'static str;
    const COLUMNS: &'static str;

    fn read(row: &mut Row, notices: &mut Notices) -> Result<Self, DbError>;

    /// A column of text or JSON; none when there is no such column, or it holds something else.
    fn column(&mut self, name: &str) -> Option<Column<'_>>;

    /// The engine's word, or the text, in a column.
    fn word(&self, column: &str) -> Option<&str>;
}

/// Declares a row struct with `TABLE`, `COLUMNS` and `read`. The first column names the row.
///
/// Kinds: `text`, `int`, `flag` must be there (a missing number or flag of an older engine reads
/// as 0 or false); `text?`, `int?`, `time?`, `utc?`, `json?` may be null; `raw?` is JSON that
/// stays text until asked for; a type in parentheses is one of the engine's words. What a cell
/// cannot give is absent and noted, see [`Cells`].
macro_rules! rows {
    ($($(#[$doc:meta])* $name:ident in $table:literal { $($column:ident: $kind:ident $(($word:ident))? $([$opt:tt])?,)+ })+) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        #[cfg_attr(test, derive(Default))]
        #[allow(clippy::struct_excessive_bools, reason = "a row of the engine: its flags are independent columns")]
        pub struct $name {
            $(pub $column: rows!(@type $kind $(($word))? $([$opt])?),)+
        }

        impl $name {
            pub const TABLE: &'static str = $table;
            /// The columns [`Self::read`] expects, in its order.
            pub const COLUMNS: &'static str = rows!(@columns $($column)+);

            pub fn read(row: &mut Row, notices: &mut Notices) -> Result<Self, DbError> {
                let mut cells = Cells::of(Self::TABLE, row, notices);
                Ok(Self { $($column: rows!(@read cells, $column, $kind $(($word))? $([$opt])?),)+ })
            }

            /// Every column as it would be written back.
            pub fn cells(&self) -> Vec<(&'static str, Cell)> {
                vec![$((stringify!($column), self.$column.cell()),)+]
            }

            /// Name and kind of each column, for tests that damage rows.
            #[cfg(test)]
            pub const KINDS: &'static [(&'static str, &'static str)] =
                &[$((stringify!($column), stringify!($kind)),)+];
        }

        impl Stored for $name {
            const TABLE: &'static str = Self::TABLE;
            const COLUMNS: &'static str = Self::COLUMNS;

            fn read(row: &mut Row, notices: &mut Notices) -> Result<Self, DbError> {
                Self::read(row, notices)
            }

            fn column(&mut self, name: &str) -> Option<Column<'_>> {
                $(if name == stringify!($column) {
                    return rows!(@column self, $column, $kind $([$opt])?);
                })+
                None
            }

            fn word(&self, column: &str) -> Option<&str> {
                $(if column == stringify!($column) {
                    return rows!(@word self, $column, $kind $([$opt])?);
                })+
                None
            }
        }
    )+};

    (@type text) => { String };
    (@type text[?]) => { Option<String> };
    (@type int) => { i64 };
    (@type int[?]) => { Option<i64> };
    (@type flag) => { bool };
    (@type time[?]) => { Option<DateTime<Utc>> };
    (@type utc[?]) => { Option<DateTime<Utc>> };
    (@type json[?]) => { Option<Json> };
    (@type raw[?]) => { Raw };
    (@type word($word:ident)) => { $word };
    (@type word($word:ident)[?]) => { Option<$word> };

    (@read $cells:ident, $column:ident, text) => { $cells.text(stringify!($column))? };
    (@read $cells:ident, $column:ident, text[?]) => { $cells.opt_text(stringify!($column))? };
    (@read $cells:ident, $column:ident, int) => { $cells.opt_int(stringify!($column))?.unwrap_or(0) };
    (@read $cells:ident, $column:ident, int[?]) => { $cells.opt_int(stringify!($column))? };
    (@read $cells:ident, $column:ident, flag) => { $cells.flag(stringify!($column))? };
    (@read $cells:ident, $column:ident, time[?]) => { $cells.opt_time(stringify!($column))? };
    (@read $cells:ident, $column:ident, utc[?]) => { $cells.opt_utc(stringify!($column))? };
    (@read $cells:ident, $column:ident, json[?]) => { $cells.opt_json(stringify!($column))? };
    (@read $cells:ident, $column:ident, raw[?]) => { $cells.opt_raw(stringify!($column))? };
    (@read $cells:ident, $column:ident, word($word:ident)) => { $cells.word::<$word>(stringify!($column))? };
    (@read $cells:ident, $column:ident, word($word:ident)[?]) => { $cells.opt_word::<$word>(stringify!($column))? };

    (@column $row:ident, $column:ident, text) => { Some(Column::Text(&mut $row.$column)) };
    (@column $row:ident, $column:ident, text[?]) => { Some(Column::Maybe(&mut $row.$column)) };
    (@column $row:ident, $column:ident, json[?]) => { Some(Column::Json(&mut $row.$column)) };
    (@column $row:ident, $column:ident, raw[?]) => { Some(Column::Raw(&mut $row.$column)) };
    (@column $row:ident, $column:ident, $kind:ident $([$opt:tt])?) => { None };

    (@word $row:ident, $column:ident, text) => { Some($row.$column.as_str()) };
    (@word $row:ident, $column:ident, text[?]) => { $row.$column.as_deref() };
    (@word $row:ident, $column:ident, word) => { Some($row.$column.as_stored()) };
    (@word $row:ident, $column:ident, word[?]) => { $row.$column.as_ref().map(|word| word.as_stored()) };
    (@word $row:ident, $column:ident, $kind:ident $([$opt:tt])?) => { None };

    (@columns $first:ident $($rest:ident)*) => { concat!(stringify!($first) $(, ", ", stringify!($rest))*) };
}

rows! {
    /// One run: status, deadlines, payloads. The engine's own truth of how it stands.
    RunRow in "workflow_runs" {
        id: text,
        workflow_instance_id: text,
        run_number: int,
        workflow_class: text,
        workflow_type: text,
        namespace: text[?],
        business_key: text[?],
        visibility_labels: json[?],
        status: word(RunStatus),
        closed_reason: word(ClosedReason)[?],
        compatibility: text[?],
        payload_codec: text[?],
        arguments: text[?],
        output: text[?],
        output_payload_codec: text[?],
        connection: text[?],
        queue: text[?],
        last_history_sequence: int,
        last_command_sequence: int,
        message_cursor_position: int,
        run_timeout_seconds: int[?],
        execution_deadline_at: time[?],
        run_deadline_at: time[?],
        started_at: time[?],
        closed_at: time[?],
        archived_at: time[?],
        archive_command_id: text[?],
        archive_reason: text[?],
        last_progress_at: time[?],
        import_source: text[?],
        import_id: text[?],
        import_dedupe_key: text[?],
        import_contract_version: int[?],
        imported_at: time[?],
        sticky_worker_id: text[?],
        sticky_until: time[?],
        priority: int[?],
        fairness_key: text[?],
        fairness_weight: int[?],
        created_at: time[?],
        updated_at: time[?],
    }

    /// As much of a summary as a row of the list shows.
    ListedRun in "workflow_run_summaries" {
        id: text,
        workflow_instance_id: text,
        run_number: int,
        is_current_run: flag,
        workflow_type: text,
        namespace: text[?],
        status: word(RunStatus),
        closed_reason: word(ClosedReason)[?],
        queue: text[?],
        started_at: time[?],
        sort_timestamp: utc[?],
        archived_at: time[?],
        duration_ms: int[?],
        wait_kind: word(WaitKind)[?],
        wait_reason: text[?],
        wait_deadline_at: time[?],
        liveness_state: word(LivenessState)[?],
        repair_blocked_reason: word(RepairBlockedReason)[?],
        task_problem: flag,
        exception_count: int,
        history_budget_pressure: text[?],
    }

    /// The engine's projection of one run.
    RunSummary in "workflow_run_summaries" {
        id: text,
        workflow_instance_id: text,
        run_number: int,
        is_current_run: flag,
        engine_source: text[?],
        projection_schema_version: int[?],
        class: text,
        workflow_type: text,
        namespace: text[?],
        compatibility: text[?],
        declared_entry_mode: text[?],
        declared_contract_source: text[?],
        business_key: text[?],
        visibility_labels: json[?],
        status: word(RunStatus),
        status_bucket: word(StatusBucket),
        closed_reason: word(ClosedReason)[?],
        connection: text[?],
        queue: text[?],
        started_at: time[?],
        sort_timestamp: utc[?],
        sort_key: text[?],
        closed_at: time[?],
        archived_at: time[?],
        archive_command_id: text[?],
        archive_reason: text[?],
        duration_ms: int[?],
        wait_kind: word(WaitKind)[?],
        wait_reason: text[?],
        wait_started_at: time[?],
        wait_deadline_at: time[?],
        open_wait_id: text[?],
        resume_source_kind: text[?],
        resume_source_id: text[?],
        next_task_at: time[?],
        liveness_state: word(LivenessState)[?],
        liveness_reason: text[?],
        repair_blocked_reason: word(RepairBlockedReason)[?],
        repair_attention: flag,
        task_problem: flag,
        next_task_id: text[?],
        next_task_type: word(TaskType)[?],
        next_task_status: word(TaskStatus)[?],
        next_task_lease_expires_at: time[?],
        exception_count: int,
        history_event_count: int,
        history_size_bytes: int,
        history_fan_out: int,
        continue_as_new_recommended: flag,
        history_budget_pressure: text[?],
        created_at: time[?],
        updated_at: time[?],
    }

    /// Transport: the only source for whether a step can be picked up.
    TaskRow in "workflow_tasks" {
        id: text,
        workflow_run_id: text,
        namespace: text[?],
        task_type: word(TaskType),
        status: word(TaskStatus),
        compatibility: text[?],
        payload: raw[?],
        connection: text[?],
        queue: text[?],
        available_at: time[?],
        leased_at: time[?],
        lease_owner: text[?],
        lease_expires_at: time[?],
        attempt_count: int,
        last_dispatch_attempt_at: time[?],
        last_dispatched_at: time[?],
        last_dispatch_error: text[?],
        last_claim_failed_at: time[?],
        last_claim_error: text[?],
        repair_count: int,
        repair_available_at: time[?],
        last_error: text[?],
        created_at: time[?],
        updated_at: time[?],
    }

    /// One logical activity; typed activity history outranks it.
    ExecutionRow in "activity_executions" {
        id: text,
        workflow_run_id: text,
        sequence: int,
        activity_class: text,
        activity_type: text,
        status: word(ActivityStatus),
        payload_codec: text[?],
        arguments: text[?],
        result: text[?],
        exception: text[?],
        connection: text[?],
        queue: text[?],
        attempt_count: int,
        current_attempt_id: text[?],
        retry_policy: raw[?],
        parallel_group_path: json[?],
        activity_options: raw[?],
        schedule_deadline_at: time[?],
        close_deadline_at: time[?],
        schedule_to_close_deadline_at: time[?],
        heartbeat_deadline_at: time[?],
        started_at: time[?],
        closed_at: time[?],
        last_heartbeat_at: time[?],
        created_at: time[?],
        updated_at: time[?],
    }

    /// One try of an activity, as the worker's lease saw it.
    AttemptRow in "activity_attempts" {
        id: text,
        workflow_run_id: text,
        activity_execution_id: text,
        workflow_task_id: text[?],
        attempt_number: int,
        status: word(AttemptStatus),
        lease_owner: text[?],
        started_at: time[?],
        last_heartbeat_at: time[?],
        lease_expires_at: time[?],
        closed_at: time[?],
        created_at: time[?],
        updated_at: time[?],
    }

    FailureRecord in "workflow_failures" {
        id: text,
        workflow_run_id: text,
        source_kind: text,
        source_id: text,
        propagation_kind: text,
        failure_category: word(FailureCategory)[?],
        non_retryable: flag,
        handled: flag,
        exception_class: text,
        message: text,
        file: text,
        line: int[?],
        trace_preview: text[?],
        created_at: time[?],
    }

    /// A durable timer; has no column for when it was cancelled.
    TimerRow in "workflow_run_timers" {
        id: text,
        workflow_run_id: text,
        sequence: int,
        status: word(TimerStatus),
        delay_seconds: int,
        fire_at: time[?],
        fired_at: time[?],
        created_at: time[?],
    }

    /// Who asked for what, accepted or rejected.
    CommandRow in "workflow_commands" {
        id: text,
        workflow_instance_id: text[?],
        workflow_run_id: text[?],
        requested_workflow_run_id: text[?],
        resolved_workflow_run_id: text[?],
        command_type: word(CommandType),
        target_scope: text,
        source: text,
        context: json[?],
        request_id: text[?],
        status: word(CommandStatus),
        outcome: text[?],
        workflow_class: text[?],
        workflow_type: text[?],
        payload_codec: text[?],
        payload: text[?],
        rejection_reason: text[?],
        command_sequence: int[?],
        message_sequence: int[?],
        accepted_at: time[?],
        applied_at: time[?],
        rejected_at: time[?],
        created_at: time[?],
    }

    SignalRow in "workflow_signal_records" {
        id: text,
        workflow_command_id: text,
        workflow_instance_id: text[?],
        workflow_run_id: text[?],
        target_scope: text,
        requested_workflow_run_id: text[?],
        resolved_workflow_run_id: text[?],
        signal_name: text,
        signal_wait_id: text[?],
        status: word(SignalStatus),
        outcome: text[?],
        command_sequence: int[?],
        workflow_sequence: int[?],
        payload_codec: text[?],
        arguments: text[?],
        validation_errors: json[?],
        rejection_reason: text[?],
        received_at: time[?],
        applied_at: time[?],
        rejected_at: time[?],
        closed_at: time[?],
        created_at: time[?],
    }

    UpdateRow in "workflow_updates" {
        id: text,
        workflow_command_id: text,
        workflow_instance_id: text[?],
        workflow_run_id: text[?],
        target_scope: text,
        requested_workflow_run_id: text[?],
        resolved_workflow_run_id: text[?],
        update_name: text,
        status: word(UpdateStatus),
        outcome: text[?],
        command_sequence: int[?],
        workflow_sequence: int[?],
        payload_codec: text[?],
        arguments: text[?],
        result: text[?],
        validation_errors: json[?],
        rejection_reason: text[?],
        failure_id: text[?],
        failure_message: text[?],
        accepted_at: time[?],
        applied_at: time[?],
        rejected_at: time[?],
        closed_at: time[?],
        created_at: time[?],
    }

    /// Parent to child, or a run to the one it continued as.
    LinkRow in "workflow_links" {
        id: text,
        link_type: text,
        sequence: int[?],
        parallel_group_path: json[?],
        parent_workflow_instance_id: text,
        parent_workflow_run_id: text,
        child_workflow_instance_id: text,
        child_workflow_run_id: text,
        is_primary_parent: flag,
        parent_close_policy: text,
        created_at: time[?],
    }

    /// A message between workflows; its payload is elsewhere.
    MessageRow in "workflow_messages" {
        id: int,
        workflow_instance_id: text,
        workflow_run_id: text[?],
        direction: text,
        channel: text,
        stream_key: text,
        sequence: int,
        source_workflow_instance_id: text[?],
        source_workflow_run_id: text[?],
        target_workflow_instance_id: text[?],
        target_workflow_run_id: text[?],
        correlation_id: text[?],
        idempotency_key: text[?],
        payload_reference: text[?],
        consume_state: text,
        consumed_at: time[?],
        consumed_by_sequence: int[?],
        expires_at: time[?],
        delivery_attempt_count: int,
        last_delivery_attempt_at: time[?],
        last_delivery_error: text[?],
        metadata: json[?],
        created_at: time[?],
    }

    /// A live worker's claim of what it can run. Its times never shift with MySQL's session zone.
    HeartbeatRow in "workflow_worker_compatibility_heartbeats" {
        worker_id: text,
        namespace: text[?],
        host: text[?],
        process_id: text[?],
        connection: text[?],
        queue: text[?],
        supported: json[?],
        recorded_at: time[?],
        expires_at: time[?],
    }

    /// A wait as the engine last projected it.
    WaitEntry in "workflow_run_waits" {
        wait_id: text,
        position: int,
        kind: text,
        sequence: int[?],
        status: text,
        source_status: text[?],
        summary: text[?],
        opened_at: time[?],
        deadline_at: time[?],
        resolved_at: time[?],
        target_name: text[?],
        target_type: text[?],
        task_backed: flag,
        external_only: flag,
        resume_source_kind: text[?],
        resume_source_id: text[?],
        task_id: text[?],
        task_type: text[?],
        task_status: text[?],
        command_id: text[?],
        command_sequence: int[?],
        command_status: text[?],
        command_outcome: text[?],
        history_authority: text[?],
        history_unsupported_reason: text[?],
        payload: raw[?],
    }

    /// A timeline entry as the engine last projected it.
    TimelineEntry in "workflow_run_timeline_entries" {
        history_event_id: text,
        sequence: int,
        kind: text,
        entry_kind: text,
        source_kind: text[?],
        source_id: text[?],
        summary: text[?],
        recorded_at: time[?],
        command_id: text[?],
        command_sequence: int[?],
        task_id: text[?],
        activity_execution_id: text[?],
        timer_id: text[?],
        failure_id: text[?],
        payload: raw[?],
    }

    /// A timer as the engine last projected it.
    TimerEntry in "workflow_run_timer_entries" {
        timer_id: text,
        schema_version: int,
        position: int,
        sequence: int[?],
        status: text,
        source_status: text[?],
        delay_seconds: int[?],
        fire_at: time[?],
        fired_at: time[?],
        cancelled_at: time[?],
        timer_kind: text[?],
        condition_wait_id: text[?],
        condition_key: text[?],
        condition_definition_fingerprint: text[?],
        history_authority: text[?],
        history_unsupported_reason: text[?],
        payload: raw[?],
    }

    /// A parent or child as the engine last projected it.
    LineageEntry in "workflow_run_lineage_entries" {
        lineage_id: text,
        direction: text,
        position: int,
        link_type: text,
        child_call_id: text[?],
        sequence: int[?],
        is_primary_parent: flag,
        related_workflow_instance_id: text[?],
        related_workflow_run_id: text[?],
        related_run_number: int[?],
        related_workflow_type: text[?],
        related_workflow_class: text[?],
        status: text[?],
        status_bucket: text[?],
        closed_reason: text[?],
        linked_at: time[?],
        payload: raw[?],
    }
}

/// A row of `workflow_run_summaries`, read whole or in part.
pub trait Summary: Stored {
    fn id(&self) -> &str;
    fn started_at(&self) -> Option<DateTime<Utc>>;
    fn sort_timestamp(&self) -> Option<DateTime<Utc>>;
    fn exception_count(&self) -> i64;
    fn standing(&self) -> Standing<'_>;
}

/// How the engine says a run stands: what the badges and gates of a list decide on.
#[derive(Clone, Copy, Debug)]
pub struct Standing<'s> {
    pub is_current_run: bool,
    pub status: &'s RunStatus,
    pub wait_kind: Option<&'s WaitKind>,
    pub liveness_state: Option<&'s LivenessState>,
    pub repair_blocked_reason: Option<&'s RepairBlockedReason>,
    pub task_problem: bool,
}

macro_rules! summaries {
    ($($name:ident)+) => {$(
        impl Summary for $name {
            fn id(&self) -> &str {
                &self.id
            }

            fn started_at(&self) -> Option<DateTime<Utc>> {
                self.started_at
            }

            fn sort_timestamp(&self) -> Option<DateTime<Utc>> {
                self.sort_timestamp
            }

            fn exception_count(&self) -> i64 {
                self.exception_count
            }

            fn standing(&self) -> Standing<'_> {
                Standing {
                    is_current_run: self.is_current_run,
                    status: &self.status,
                    wait_kind: self.wait_kind.as_ref(),
                    liveness_state: self.liveness_state.as_ref(),
                    repair_blocked_reason: self.repair_blocked_reason.as_ref(),
                    task_problem: self.task_problem,
                }
            }
        }
    )+};
}

summaries!(ListedRun RunSummary);

#[cfg(test)]
impl ListedRun {
    /// An open, current, healthy run, for tests to vary.
    pub fn example() -> Self {
        let started: DateTime<Utc> = "2026-11-15T11:50:00Z".parse().expect("a valid time");
        Self {
            id: "01m7gs4khysxa25xp00b9ev2hv".into(),
            workflow_instance_id: "ord-48213".into(),
            run_number: 1,
            is_current_run: true,
            workflow_type: "order.fulfil".into(),
            namespace: Some("production".into()),
            status: RunStatus::Waiting,
            closed_reason: None,
            queue: Some("orders".into()),
            started_at: Some(started),
            sort_timestamp: Some(started),
            archived_at: None,
            duration_ms: None,
            wait_kind: None,
            wait_reason: None,
            wait_deadline_at: None,
            liveness_state: Some(LivenessState::WorkflowTaskReady),
            repair_blocked_reason: Some(RepairBlockedReason::RepairNotNeeded),
            task_problem: false,
            exception_count: 0,
            history_budget_pressure: Some("ok".into()),
        }
    }
}
