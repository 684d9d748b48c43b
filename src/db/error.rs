//! What can go wrong with the database, told to the one who has to fix it.

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
                let code = db.code();
                match code.as_deref() {
                    // PostgreSQL query_canceled; MariaDB and MySQL statement timeouts.
                    Some("57014" | "70100") => Self::Timeout {
                        seconds: timeout_seconds,
                    },
                    Some("HY000") if db.message().contains("maximum statement execution time") => {
                        Self::Timeout {
                            seconds: timeout_seconds,
                        }
                    }
                    // MariaDB and MySQL: a lock not given in time, a row changed since it was read.
                    Some("HY000")
                        if db.message().starts_with("Lock wait timeout")
                            || db.message().starts_with("Record has changed") =>
                    {
                        Self::Busy(db.message().to_owned())
                    }
                    Some("40001" | "40P01" | "55P03") => Self::Busy(db.message().to_owned()),
                    // PostgreSQL goes down or comes up; MariaDB and MySQL go down.
                    Some("57P01" | "57P02" | "57P03" | "08S01") => {
                        Self::Lost(db.message().to_owned())
                    }
                    _ => Self::Query(db.message().to_owned()),
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
