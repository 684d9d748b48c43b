//! What can go wrong with the database, told to the one who has to fix it.

use sqlx::mysql::MySqlDatabaseError;
use thiserror::Error;

use super::Val;

#[derive(Debug, Error)]
pub enum DbError {
    #[error("{message}")]
    Settings { message: String },
    #[error("cannot open {target}: {cause}. {advice}")]
    Connect {
        target: String,
        cause: String,
        advice: &'static str,
    },
    #[error("the statement ran longer than {seconds} s and was stopped")]
    Timeout { seconds: u64 },
    #[error("the database is busy: {0}")]
    Busy(String),
    /// A row with such a key is there already.
    #[error("{0}")]
    Duplicate(String),
    #[error("all {0} database connections are in use; try again shortly")]
    PoolExhausted(u32),
    /// The account may not do what was asked.
    #[error("the database refuses: {0}")]
    Denied(String),
    #[error("this connection is read-only")]
    ReadOnly,
    #[error("column {column}: expected {expected}, found {}", found.kind())]
    Decode {
        column: &'static str,
        expected: &'static str,
        found: Val,
    },
    #[error("the result has no column {column}")]
    NoSuchColumn { column: &'static str },
    #[error("lost the connection to the database: {0}")]
    Lost(String),
    #[error("{0}")]
    Query(String),
}

impl DbError {
    /// Whether trying again later may help, as opposed to a fault in us or in the data.
    pub fn is_unavailable(&self) -> bool {
        matches!(
            self,
            Self::Connect { .. } | Self::Busy(_) | Self::PoolExhausted(_) | Self::Lost(_)
        )
    }

    pub(super) fn from_sqlx(error: sqlx::Error, timeout_seconds: u64) -> Self {
        match error {
            sqlx::Error::Database(db) if db.is_unique_violation() => {
                Self::Duplicate(db.message().to_owned())
            }
            sqlx::Error::Database(db) => {
                let told = db.message().to_owned();
                // MySQL's and MariaDB's words are in the server's language, and most share a state.
                let number = db
                    .try_downcast_ref::<MySqlDatabaseError>()
                    .map(MySqlDatabaseError::number);
                match (db.code().as_deref(), number) {
                    // query_canceled; max_statement_time of MariaDB, max_execution_time of MySQL.
                    (Some("57014"), _) | (_, Some(1969 | 3024)) => Self::Timeout {
                        seconds: timeout_seconds,
                    },
                    // A lock not given in time, a row changed since it was read, a deadlock.
                    (Some("40001" | "40P01" | "55P03"), _) | (_, Some(1020 | 1205 | 1213)) => {
                        Self::Busy(told)
                    }
                    // No connection is left for us.
                    (Some("53300"), _) | (_, Some(1040 | 1203 | 1226)) => Self::Busy(told),
                    // insufficient_privilege; a table or a column.
                    (Some("42501"), _) | (_, Some(1044 | 1142 | 1143)) => Self::Denied(told),
                    // The server goes down or comes up.
                    (Some("57P01" | "57P02" | "57P03" | "08S01"), _) => Self::Lost(told),
                    _ => Self::Query(told),
                }
            }
            sqlx::Error::Io(io) => Self::Lost(io.to_string()),
            // A connection cut off while it was made ends in the middle of a word.
            sqlx::Error::Tls(error) => Self::Lost(error.to_string()),
            sqlx::Error::Protocol(what) => Self::Lost(what),
            sqlx::Error::PoolClosed => Self::Lost("the pool is closed".into()),
            other => Self::Query(other.to_string()),
        }
    }
}
