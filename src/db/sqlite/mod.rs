//! SQLite, read where it stands: rows are made on the thread that steps through them, and several
//! come over at a time. (sqlx's own driver copies every cell twice and hands over rows one by one,
//! which is most of what reading a long run costs.)
//!
//! Values are decided by storage class, never by declared type.

mod open;
mod pool;
mod transaction;

use std::sync::Arc;

use chrono::{Datelike as _, NaiveDateTime, Timelike as _};
use rusqlite::{
    Connection, Error, params_from_iter,
    types::{Value, ValueRef},
};

use super::{
    DbError, Val,
    row::{Columns, Row},
    statement::Statement,
};
use crate::zone::Zone;

pub(super) use open::open;
pub(super) use pool::SqlitePool;
pub(super) use transaction::Transaction;

/// Gives each row of a statement to `take`, until it wants no more.
fn each_row(
    connection: &Connection,
    statement: Statement,
    zone: Zone,
    mut take: impl FnMut(&mut Row) -> Result<(), DbError>,
) -> Result<(), Failure> {
    let (sql, binds) = statement.into_parts();
    let binds = bound(binds)?;
    let mut prepared = connection.prepare_cached(&sql)?;
    let names = prepared.column_names();
    let columns = Arc::new(Columns {
        names: names.into_iter().map(str::to_owned).collect(),
        zone,
    });
    let mut rows = prepared.query(params_from_iter(binds))?;
    let mut row = Row::blank(columns);
    while let Some(found) = rows.next()? {
        row.refill(|n, cell| found.get_ref(n).map(|value| read(value, cell)))?;
        take(&mut row)?;
    }
    Ok(())
}

/// Runs a statement and says how many rows it touched.
fn execute(connection: &Connection, statement: Statement) -> Result<u64, Failure> {
    let (sql, binds) = statement.into_parts();
    let touched = connection
        .prepare_cached(&sql)?
        .execute(params_from_iter(bound(binds)?))?;
    Ok(touched as u64)
}

fn bound(values: Vec<Val>) -> Result<Vec<Value>, Failure> {
    let bound = values.into_iter().map(|value| {
        Ok(match value {
            Val::Null => Value::Null,
            Val::Bool(b) => Value::Integer(b.into()),
            Val::Int(n) => Value::Integer(n),
            Val::UInt(n) => Value::Integer(
                i64::try_from(n).map_err(|error| DbError::Query(format!("{n}: {error}")))?,
            ),
            Val::Float(n) => Value::Real(n),
            Val::Text(text) => Value::Text(text),
            Val::Bytes(bytes) => Value::Blob(bytes),
            Val::Time(at) => Value::Text(stored(at)),
        })
    });
    bound.collect()
}

/// Comparison is textual: the engine's own form, always with six digits. Written out, because
/// chrono interprets a pattern anew for every value.
fn stored(at: NaiveDateTime) -> String {
    let (year, month, day) = (at.year(), at.month(), at.day());
    let (hour, minute, second) = (at.hour(), at.minute(), at.second());
    let micros = at.and_utc().timestamp_subsec_micros();
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{micros:06}")
}

fn read(value: ValueRef<'_>, cell: &mut Val) {
    *cell = match value {
        ValueRef::Null => Val::Null,
        ValueRef::Integer(n) => Val::Int(n),
        ValueRef::Real(n) => Val::Float(n),
        ValueRef::Blob(bytes) => Val::Bytes(bytes.to_owned()),
        // Looking for what is not UTF-8 costs more than seeing that all of it is.
        ValueRef::Text(bytes) => match (str::from_utf8(bytes), &mut *cell) {
            (Ok(text), Val::Text(room)) => {
                room.clear();
                room.push_str(text);
                return;
            }
            (Ok(text), _) => Val::Text(text.to_owned()),
            (Err(_), _) => Val::Text(String::from_utf8_lossy(bytes).into_owned()),
        },
    };
}

/// Why a statement did not end well: SQLite's reason, or that of whoever took its rows.
#[derive(Debug)]
enum Failure {
    Sqlite(Error),
    Ours(DbError),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<DbError> for Failure {
    fn from(error: DbError) -> Self {
        Self::Ours(error)
    }
}

impl Failure {
    fn told(self, timeout_seconds: u64) -> DbError {
        match self {
            Self::Ours(error) => error,
            Self::Sqlite(error) => told(&error, timeout_seconds),
        }
    }
}

fn told(error: &Error, timeout_seconds: u64) -> DbError {
    use rusqlite::ffi::{
        SQLITE_BUSY, SQLITE_BUSY_RECOVERY, SQLITE_BUSY_SNAPSHOT, SQLITE_CONSTRAINT_PRIMARYKEY,
        SQLITE_CONSTRAINT_UNIQUE, SQLITE_INTERRUPT, SQLITE_LOCKED,
    };
    let text = message(error);
    let Some(error) = error.sqlite_error() else {
        return DbError::Query(text);
    };
    match error.extended_code {
        SQLITE_INTERRUPT => DbError::Timeout {
            seconds: timeout_seconds,
        },
        SQLITE_BUSY | SQLITE_LOCKED | SQLITE_BUSY_RECOVERY | SQLITE_BUSY_SNAPSHOT => {
            DbError::Busy(text)
        }
        SQLITE_CONSTRAINT_UNIQUE | SQLITE_CONSTRAINT_PRIMARYKEY => DbError::Duplicate(text),
        _ => DbError::Query(text),
    }
}

/// SQLite's own words, without the driver's frame around them.
fn message(error: &Error) -> String {
    match error {
        Error::SqliteFailure(_, Some(message)) | Error::SqlInputError { msg: message, .. } => {
            message.clone()
        }
        other => other.to_string(),
    }
}
