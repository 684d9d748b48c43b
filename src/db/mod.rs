//! The narrow waist over SQLite, PostgreSQL and MySQL: [`Statement`] in, [`Row`] out.
//!
//! Drivers are seen in this room only. Reads happen inside a [`Snapshot`], one consistent view
//! for all statements of a page; writes inside a [`WriteTx`], which a read-only connection
//! cannot give.

mod connect;
mod count;
mod driver;
mod error;
mod exclusive;
mod mysql;
pub mod packed;
mod postgres;
mod row;
mod snapshot;
mod sqlite;
mod statement;
mod val;

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

pub use connect::{Settings, masked};
#[cfg(test)]
pub use count::bump;
pub use count::{counted, recorded, statements_total};
pub use error::DbError;
pub use exclusive::Exclusive;
pub use row::{Columns, Json, Row, plain_time};
pub use snapshot::{Question, Snapshot, WriteTx};
pub use statement::{Dialect, Statement, is_whole_second};
pub use val::Val;

use statement::StandIns;

/// How long the end waits for connections that are in use.
const CLOSING: Duration = Duration::from_secs(5);

#[derive(Clone, Debug)]
enum Pool {
    Sqlite(sqlite::SqlitePool),
    Postgres(sqlx::PgPool),
    MySql(sqlx::MySqlPool),
}

/// A database the engine writes to. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Db {
    pool: Pool,
    prefix: Arc<str>,
    zone: crate::zone::Zone,
    stand_ins: Arc<StandIns>,
    read_only: bool,
    statement_timeout: Duration,
    pool_size: u32,
    /// How many transactions are open.
    lent: Arc<AtomicUsize>,
}

/// Connections of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolUse {
    pub idle: u32,
    pub used: u32,
    pub most: u32,
}

impl Db {
    pub fn dialect(&self) -> Dialect {
        match self.pool {
            Pool::Sqlite(_) => Dialect::Sqlite,
            Pool::Postgres(_) => Dialect::Postgres,
            Pool::MySql(_) => Dialect::MySql,
        }
    }

    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The same database, with `name as (select …)` standing in for each table that an older
    /// engine has not made whole.
    #[must_use]
    pub fn with_stand_ins(self, stand_ins: BTreeMap<&'static str, String>) -> Self {
        Self {
            stand_ins: Arc::new(stand_ins),
            ..self
        }
    }

    /// Whether every table is as we know it, and so may be written.
    pub fn is_whole(&self) -> bool {
        self.stand_ins.is_empty()
    }

    pub fn statement(&self) -> Statement {
        Statement::new(
            self.dialect(),
            Arc::clone(&self.prefix),
            self.zone,
            Arc::clone(&self.stand_ins),
        )
    }

    /// One statement in a snapshot of its own.
    pub async fn fetch(&self, statement: Statement) -> Result<Vec<Row>, DbError> {
        let mut snapshot = self.snapshot().await?;
        let rows = snapshot.fetch(statement).await?;
        snapshot.end().await;
        Ok(rows)
    }

    /// Whether this can be read now: of an SQLite file that was replaced or spoilt, connections
    /// would go on telling what they remember.
    pub async fn probe(&self, statement: Statement) -> Result<(), DbError> {
        match &self.pool {
            Pool::Sqlite(pool) => {
                let timeout = self.statement_timeout;
                count::sent(&statement);
                let anew = sqlite::Transaction::read_anew(pool, self.zone, timeout).await;
                anew?.fetch(statement, timeout).await.map(drop)
            }
            Pool::Postgres(_) | Pool::MySql(_) => self.fetch(statement).await.map(drop),
        }
    }

    /// How many connections are open, and how many may be.
    pub fn pool_use(&self) -> PoolUse {
        let (size, idle) = match &self.pool {
            Pool::Sqlite(pool) => pool.size(),
            Pool::Postgres(pool) => (pool.size(), pool.num_idle()),
            Pool::MySql(pool) => (pool.size(), pool.num_idle()),
        };
        let idle = u32::try_from(idle).unwrap_or(u32::MAX);
        PoolUse {
            idle,
            used: size.saturating_sub(idle),
            most: self.pool_size,
        }
    }

    /// Waits until every connection is back and closes them. One that does not come back is not
    /// waited for: whoever holds it must not hold the process.
    pub async fn close(&self) {
        let closing = async {
            match &self.pool {
                Pool::Sqlite(pool) => pool.close().await,
                Pool::Postgres(pool) => pool.close().await,
                Pool::MySql(pool) => pool.close().await,
            }
        };
        if tokio::time::timeout(CLOSING, closing).await.is_err() {
            tracing::warn!("left database connections open that were still in use");
        }
    }

    fn error(&self, error: sqlx::Error) -> DbError {
        if matches!(error, sqlx::Error::PoolTimedOut) {
            // The pool goes on trying a server that refuses, and says the same of one that has
            // no connection left for us.
            return if self.lent.load(Ordering::Relaxed) < self.pool_size as usize {
                DbError::Lost(format!(
                    "no connection could be made within {} s",
                    connect::ACQUIRE.as_secs()
                ))
            } else {
                DbError::PoolExhausted(self.pool_size)
            };
        }
        DbError::from_sqlx(error, self.statement_timeout.as_secs())
    }
}
