//! A row to insert, whatever the database: the only thing the catalogue produces.

use chrono::{DateTime, Utc};
use serde_json::Value as Json;

use crate::db::Val;

/// One row. Columns that are not named keep the database's default (auto-increment ids).
#[derive(Clone, Debug, PartialEq)]
pub struct InsertRow {
    pub table: &'static str,
    pub cells: Vec<(&'static str, Val)>,
}

impl InsertRow {
    pub fn new(table: &'static str) -> Self {
        Self {
            table,
            cells: Vec::with_capacity(32),
        }
    }

    #[must_use]
    pub fn set(mut self, column: &'static str, value: impl Into<Val>) -> Self {
        self.cells.push((column, value.into()));
        self
    }

    #[must_use]
    pub fn time(self, column: &'static str, at: impl Into<Option<DateTime<Utc>>>) -> Self {
        self.set(column, at.into().map(|at| at.naive_utc()))
    }

    /// A JSON column. An empty object is written `[]`, as the engine's PHP arrays are.
    #[must_use]
    pub fn json(self, column: &'static str, json: Option<&Json>) -> Self {
        self.set(column, json.map(json_text))
    }

    /// Both bookkeeping times, which every table of the engine has.
    #[must_use]
    pub fn stamps(self, created: DateTime<Utc>, updated: DateTime<Utc>) -> Self {
        self.time("created_at", created).time("updated_at", updated)
    }

    /// Replaces a cell, for situations that damage a row on purpose.
    pub fn replace(&mut self, column: &'static str, value: impl Into<Val>) {
        let value = value.into();
        match self.cells.iter_mut().find(|(name, _)| *name == column) {
            Some(cell) => cell.1 = value,
            None => self.cells.push((column, value)),
        }
    }

    pub fn get(&self, column: &str) -> Option<&Val> {
        self.cells
            .iter()
            .find_map(|(name, value)| (*name == column).then_some(value))
    }

    /// The cell's text; `None` for null, absent and other kinds.
    pub fn text(&self, column: &str) -> Option<&str> {
        match self.get(column) {
            Some(Val::Text(text)) => Some(text),
            _ => None,
        }
    }
}

/// Compact JSON text with the engine's spelling of an empty object.
pub fn json_text(json: &Json) -> String {
    match json {
        Json::Object(map) if map.is_empty() => "[]".to_owned(),
        other => other.to_string(),
    }
}
