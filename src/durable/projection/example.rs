//! Rows for tests: nothing in them but what a test sets.

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::Context;
use crate::durable::{
    engine_config::EngineConfig,
    store::{past::History, snapshot::RunSnapshot},
    stored::{CommandRow, CommandStatus, CommandType, EventType, HistoryEvent, Notices, TaskRow},
};

/// So many seconds into the test.
pub fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000 + seconds, 0).expect("a moment")
}

/// An event recorded so many seconds into the test as its sequence says.
pub fn event(sequence: i64, event_type: EventType, payload: &Value) -> HistoryEvent {
    HistoryEvent {
        id: format!("e{sequence}"),
        sequence,
        event_type,
        payload: Some(payload.to_string()),
        recorded_at: Some(at(sequence)),
        ..HistoryEvent::default()
    }
}

/// Accepted, and nothing more is known of it.
pub fn command(id: &str, command_type: CommandType) -> CommandRow {
    CommandRow {
        id: id.into(),
        command_type,
        status: CommandStatus::Accepted,
        ..CommandRow::default()
    }
}

/// A workflow task that says what it is for.
pub fn task(id: &str, status: &str, payload: &Value) -> TaskRow {
    use crate::durable::stored::{TaskType, loose::Raw};

    TaskRow {
        id: id.into(),
        task_type: TaskType::Workflow,
        status: status.into(),
        payload: Raw::of_value(payload),
        ..TaskRow::default()
    }
}

pub fn history(events: Vec<HistoryEvent>) -> History {
    History::new(events, Notices::default())
}

/// What is told of the rows an hour into the test, as an engine without settings would.
pub fn told<T>(snapshot: &RunSnapshot, tell: impl FnOnce(Context<'_>) -> T) -> T {
    tell(Context {
        snapshot,
        now: at(3600),
        config: &EngineConfig::defaults(),
    })
}
