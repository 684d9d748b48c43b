//! `workflow_history_events`: the truth. The payload stays text until a concept reads it as the
//! shape it needs.

use std::sync::OnceLock;

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::{
    Column, EventType, loose,
    notice::{Cells, Notices},
    rows::Stored,
};
use crate::db::{DbError, Row};

#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(test, derive(Default))]
pub struct HistoryEvent {
    pub id: String,
    pub sequence: i64,
    pub event_type: EventType,
    pub payload: Option<String>,
    pub workflow_task_id: Option<String>,
    pub workflow_command_id: Option<String>,
    pub recorded_at: Option<DateTime<Utc>>,
    pub created_at: Option<DateTime<Utc>>,
    /// Whether the payload is JSON, once it was read.
    pub is_json: OnceLock<bool>,
}

impl Stored for HistoryEvent {
    const TABLE: &'static str = Self::TABLE;
    const COLUMNS: &'static str = Self::COLUMNS;

    fn read(row: &mut Row, notices: &mut Notices) -> Result<Self, DbError> {
        Self::read(row, notices)
    }

    /// What an event says is replaced by [`Self::saying`].
    fn column(&mut self, _: &str) -> Option<Column<'_>> {
        None
    }

    fn word(&self, column: &str) -> Option<&str> {
        (column == "event_type").then_some(self.event_type.as_str())
    }
}

impl HistoryEvent {
    pub const TABLE: &'static str = "workflow_history_events";
    /// The columns [`HistoryEvent::read`] expects, in its order.
    pub const COLUMNS: &'static str = "id, sequence, event_type, payload, workflow_task_id, \
        workflow_command_id, recorded_at, created_at";

    pub fn read(row: &mut Row, notices: &mut Notices) -> Result<Self, DbError> {
        let mut cells = Cells::of(Self::TABLE, row, notices);
        Ok(Self {
            id: cells.text("id")?,
            sequence: cells.opt_int("sequence")?.unwrap_or(0),
            event_type: cells.word("event_type")?,
            payload: cells.opt_text("payload")?,
            workflow_task_id: cells.opt_text("workflow_task_id")?,
            workflow_command_id: cells.opt_text("workflow_command_id")?,
            recorded_at: cells.opt_time("recorded_at")?,
            created_at: cells.opt_time("created_at")?,
            is_json: OnceLock::new(),
        })
    }

    /// Name and kind of each column, for tests that damage rows.
    #[cfg(test)]
    pub const KINDS: &'static [(&'static str, &'static str)] = &[
        ("id", "text"),
        ("sequence", "int"),
        ("event_type", "word"),
        ("payload", "json"),
        ("workflow_task_id", "text"),
        ("workflow_command_id", "text"),
        ("recorded_at", "time"),
        ("created_at", "time"),
    ];

    /// The same event with another payload.
    #[must_use]
    pub fn saying(self, payload: &Value) -> Self {
        Self {
            payload: Some(payload.to_string()),
            is_json: OnceLock::new(),
            ..self
        }
    }

    /// When it happened, as far as the row says.
    pub fn time(&self) -> Option<DateTime<Utc>> {
        self.recorded_at.or(self.created_at)
    }

    /// The payload as one of the shapes of [`super::payloads`]. Never fails: what is missing or
    /// of another kind is no value.
    pub fn as_payload<'a, T: loose::Shape<'a>>(&'a self) -> T {
        let Some(Ok(read)) = self.payload.as_deref().map(loose::try_read) else {
            return T::default();
        };
        let _ = self.is_json.set(true);
        read
    }

    /// Whether the payload is JSON at all. A long history is not read twice to know it.
    pub fn payload_is_json(&self) -> bool {
        *self.is_json.get_or_init(|| {
            let text = self.payload.as_deref();
            text.is_none_or(loose::is_json)
        })
    }
}
