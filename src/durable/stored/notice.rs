//! What the tables hold that cannot be taken as it stands: noted, told, and never an error.

use chrono::{DateTime, Datelike as _, Utc};
use serde::Serialize;

use super::{
    loose::{self, Raw},
    words::Word,
};
use crate::db::{DbError, Json, Row, Val};

/// Most notices kept: a damaged history may have one per row.
const MOST: usize = 100;

/// Years a stored time is believed in; others are shown, and noted.
const PLAUSIBLE: std::ops::Range<i32> = 2000..2200;

/// One stored value that is not what its column should hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Notice {
    pub table: &'static str,
    /// The row's own id, as far as it has one.
    pub id: String,
    pub column: &'static str,
    pub problem: Problem,
    /// The value as stored, shortened.
    pub raw: Option<String>,
}

/// What is wrong with a value, and so what was made of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Problem {
    /// Null where the engine always writes something.
    Missing,
    NotText,
    NotAnInteger,
    NotANumber,
    NotABoolean,
    NotATime,
    /// A time of another century: used as it is.
    ImplausibleTime,
    NotJson,
    /// JSON, but neither a list nor an object: used as it is.
    NotACollection,
    /// A word this version does not know: shown as it is.
    UnknownWord,
    /// Rows the sequence has no place for to be absent.
    MissingRows,
    /// A row that others name is not there: what it held is told without it.
    MissingRow,
    /// A payload in a codec we do not know, or damaged: it stands as it is.
    NotDecodable,
    /// Where a bundle has rows, something else.
    NotARow,
    NotAList,
}

impl Problem {
    /// For people, after the name of the column.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Missing => "is empty where the engine always writes a value",
            Self::NotText => "is not text and is left out",
            Self::NotAnInteger => "is not a whole number and is left out",
            Self::NotANumber => "is not a number and is left out",
            Self::NotABoolean => "is neither true nor false and is left out",
            Self::NotATime => "is not a time and is left out",
            Self::ImplausibleTime => "is a time far from ours",
            Self::NotJson => "is not JSON, or is cut short",
            Self::NotACollection => "is JSON, but neither a list nor an object",
            Self::UnknownWord => "is a word this version does not know",
            Self::MissingRows => "has a gap: rows are not there",
            Self::MissingRow => "is missing: other rows name it, and there is no such row",
            Self::NotDecodable => "cannot be decoded and is shown as it stands",
            Self::NotARow => "is no row and is left out",
            Self::NotAList => "is no list and is left out",
        }
    }
}

/// The notices of one reading, each once, up to a limit.
#[derive(Clone, Debug, Default)]
pub struct Notices {
    list: Vec<Notice>,
    left_out: usize,
}

impl Notices {
    pub fn note(&mut self, notice: Notice) {
        if self.list.contains(&notice) {
            return;
        }
        if self.list.len() < MOST {
            self.list.push(notice);
        } else {
            self.left_out += 1;
        }
    }

    pub fn list(&self) -> &[Notice] {
        &self.list
    }

    /// How many more there were than are kept.
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// Only those of rows that are shown.
    pub fn retain(&mut self, shown: impl Fn(&Notice) -> bool) {
        self.list.retain(|notice| shown(notice));
    }

    /// Leaves out what the values were of those it is said of.
    pub fn unquote(&mut self, said: impl Fn(&Notice) -> bool) {
        for notice in self.list.iter_mut().filter(|notice| said(notice)) {
            notice.raw = None;
        }
    }

    pub fn extend(&mut self, others: &Self) {
        for notice in &others.list {
            self.note(notice.clone());
        }
        self.left_out += others.left_out;
    }
}

/// The cells of one row, read without trust: a value of another kind is absent and noted. The
/// only error left is a column we did not ask for.
#[derive(Debug)]
pub struct Cells<'r> {
    row: &'r mut Row,
    table: &'static str,
    /// Of a row that another one came with; else the first cell is the id.
    id: Option<String>,
    /// What our statement put before the names of the table's columns.
    prefix: &'static str,
    notices: &'r mut Notices,
}

impl<'r> Cells<'r> {
    /// A row whose first column is its id.
    pub fn of(table: &'static str, row: &'r mut Row, notices: &'r mut Notices) -> Self {
        Self {
            row,
            table,
            id: None,
            prefix: "",
            notices,
        }
    }

    /// Columns of another table that came with the row, under a prefix.
    pub fn joined(
        table: &'static str,
        prefix: &'static str,
        id: String,
        row: &'r mut Row,
        notices: &'r mut Notices,
    ) -> Self {
        Self {
            row,
            table,
            id: Some(id),
            prefix,
            notices,
        }
    }

    pub fn text(&mut self, column: &'static str) -> Result<String, DbError> {
        let text = self.opt_text(column)?;
        if text.is_none() {
            self.note(column, Problem::Missing, None);
        }
        Ok(text.unwrap_or_default())
    }

    pub fn opt_text(&mut self, column: &'static str) -> Result<Option<String>, DbError> {
        let read = self.row.opt_text(column);
        self.taken(read, Problem::NotText)
    }

    pub fn opt_int(&mut self, column: &'static str) -> Result<Option<i64>, DbError> {
        let read = self.row.opt_int(column);
        self.taken(read, Problem::NotAnInteger)
    }

    pub fn opt_float(&mut self, column: &'static str) -> Result<Option<f64>, DbError> {
        let read = self.row.opt_float(column);
        self.taken(read, Problem::NotANumber)
    }

    pub fn opt_bool(&mut self, column: &'static str) -> Result<Option<bool>, DbError> {
        let read = self.row.opt_bool(column);
        self.taken(read, Problem::NotABoolean)
    }

    /// A missing flag of an older engine is false.
    pub fn flag(&mut self, column: &'static str) -> Result<bool, DbError> {
        Ok(self.opt_bool(column)?.unwrap_or(false))
    }

    /// A time in the engine's zone.
    pub fn opt_time(&mut self, column: &'static str) -> Result<Option<DateTime<Utc>>, DbError> {
        let read = self.row.opt_time(column);
        self.time(column, read)
    }

    /// A time the engine always writes in UTC.
    pub fn opt_utc(&mut self, column: &'static str) -> Result<Option<DateTime<Utc>>, DbError> {
        let read = self.row.opt_utc(column);
        self.time(column, read)
    }

    fn time(
        &mut self,
        column: &'static str,
        read: Result<Option<DateTime<Utc>>, DbError>,
    ) -> Result<Option<DateTime<Utc>>, DbError> {
        let at = self.taken(read, Problem::NotATime)?;
        if let Some(at) = at
            && !PLAUSIBLE.contains(&at.year())
        {
            self.note(column, Problem::ImplausibleTime, Some(at.to_string()));
        }
        Ok(at)
    }

    /// A list or an object, as all the engine's own documents are.
    pub fn opt_json(&mut self, column: &'static str) -> Result<Option<Json>, DbError> {
        let json = self.any_json(column)?;
        if let Some(Json::Value(value)) = &json
            && !(value.is_array() || value.is_object() || value.is_null())
        {
            let raw = Val::from(value.to_string()).shown();
            self.note(column, Problem::NotACollection, raw);
        }
        Ok(json)
    }

    /// The same, kept as text.
    pub fn opt_raw(&mut self, column: &'static str) -> Result<Raw, DbError> {
        let text = self.opt_text(column)?;
        if let Some(text) = &text {
            let problem = if !loose::is_json(text) {
                Some(Problem::NotJson)
            } else if text.trim_start().starts_with(['{', '[', 'n']) {
                None
            } else {
                Some(Problem::NotACollection)
            };
            if let Some(problem) = problem {
                let raw = Val::from(text).shown();
                self.note(column, problem, raw);
            }
        }
        Ok(Raw::of_column(text))
    }

    /// JSON an application wrote: any value.
    pub fn any_json(&mut self, column: &'static str) -> Result<Option<Json>, DbError> {
        let read = self.row.opt_json(column);
        let json = self.taken(read, Problem::NotJson)?;
        if let Some(Json::Malformed(text)) = &json {
            let raw = Val::from(text).shown();
            self.note(column, Problem::NotJson, raw);
        }
        Ok(json)
    }

    pub fn word<W: Word>(&mut self, column: &'static str) -> Result<W, DbError> {
        let word = self.opt_word(column)?;
        Ok(word.unwrap_or_else(|| {
            self.note(column, Problem::Missing, None);
            W::from("")
        }))
    }

    pub fn opt_word<W: Word>(&mut self, column: &'static str) -> Result<Option<W>, DbError> {
        let read = self.row.opt_read(column, |text| W::from(text));
        let word = self.taken(read, Problem::NotText)?;
        if let Some(word) = &word
            && !word.is_known()
        {
            let raw = Val::from(word.as_stored()).shown();
            self.note(column, Problem::UnknownWord, raw);
        }
        Ok(word)
    }

    pub fn note(&mut self, column: &'static str, problem: Problem, raw: Option<String>) {
        let first = || self.row.cells().next().and_then(|(_, id)| id.shown());
        self.notices.note(Notice {
            table: self.table,
            id: self.id.clone().or_else(first).unwrap_or_default(),
            column: column.strip_prefix(self.prefix).unwrap_or(column),
            problem,
            raw,
        });
    }

    /// What was read, or nothing and a notice.
    #[inline]
    fn taken<T>(
        &mut self,
        read: Result<Option<T>, DbError>,
        problem: Problem,
    ) -> Result<Option<T>, DbError> {
        match read {
            Err(DbError::Decode { column, found, .. }) => {
                self.note(column, problem, found.shown());
                Ok(None)
            }
            read => read,
        }
    }
}
