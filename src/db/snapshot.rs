//! Transactions: read snapshots for pages, immediate transactions for writes.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use chrono::{DateTime, Utc};
use futures_util::{StreamExt as _, TryStreamExt as _, stream::BoxStream};
use sqlx::{AssertSqlSafe, MySql, Postgres, Sqlite, Transaction};

use super::{Db, DbError, Dialect, Pool, Row, Statement, count::sent, driver, row};

/// How many instructions of SQLite's virtual machine pass between two looks at the deadline.
const SQLITE_STEPS_PER_CHECK: i32 = 20_000;

#[derive(Debug)]
enum Tx {
    Sqlite(Transaction<'static, Sqlite>, Deadline),
    Postgres(Transaction<'static, Postgres>),
    MySql(Transaction<'static, MySql>),
}

/// SQLite has no statement timeout of its own: its progress handler reads this.
#[derive(Clone, Debug)]
struct Deadline {
    epoch: Instant,
    millis: Arc<AtomicU64>,
}

impl Deadline {
    fn new() -> Self {
        Self {
            epoch: Instant::now(),
            millis: Arc::new(AtomicU64::new(u64::MAX)),
        }
    }

    fn set(&self, timeout: Option<Duration>) {
        let at = timeout.map_or(u64::MAX, |timeout| {
            as_millis(self.epoch.elapsed() + timeout)
        });
        self.millis.store(at, Ordering::Relaxed);
    }

    fn is_ahead(&self) -> bool {
        as_millis(self.epoch.elapsed()) < self.millis.load(Ordering::Relaxed)
    }
}

fn as_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// One consistent view of the database for all statements of a page.
#[derive(Debug)]
pub struct Snapshot {
    db: Db,
    tx: Tx,
}

/// A statement, and what takes each of its rows.
pub struct Question<'t> {
    statement: Statement,
    take: Box<dyn FnMut(Row) -> Result<(), DbError> + Send + 't>,
}

impl<'t> Question<'t> {
    pub fn new(
        statement: Statement,
        take: impl FnMut(Row) -> Result<(), DbError> + Send + 't,
    ) -> Self {
        Self {
            statement,
            take: Box::new(take),
        }
    }

    /// Rows as they are.
    pub fn rows(statement: Statement, into: &'t mut Vec<Row>) -> Self {
        Self::new(statement, |row| {
            into.push(row);
            Ok(())
        })
    }
}

impl std::fmt::Debug for Question<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.statement.fmt(f)
    }
}

impl Db {
    /// Opens a read snapshot: REPEATABLE READ, or SQLite's read transaction.
    pub async fn snapshot(&self) -> Result<Snapshot, DbError> {
        // A pooled connection may have died since it was last used; the next one tells.
        let mut tries = 0;
        loop {
            match self.begin_read().await {
                Ok(tx) => {
                    return Ok(Snapshot {
                        db: self.clone(),
                        tx,
                    });
                }
                Err(sqlx::Error::Io(_)) if tries < 2 => tries += 1,
                Err(error) => return Err(self.error(error)),
            }
        }
    }

    async fn begin_read(&self) -> Result<Tx, sqlx::Error> {
        Ok(match &self.pool {
            Pool::Sqlite(pool) => begin_sqlite(pool, "begin").await?,
            Pool::Postgres(pool) => Tx::Postgres(
                pool.begin_with("begin isolation level repeatable read, read only")
                    .await?,
            ),
            Pool::MySql(pool) => Tx::MySql(
                pool.begin_with("start transaction with consistent snapshot, read only")
                    .await?,
            ),
        })
    }

    /// Opens a transaction that may write. SQLite takes its write lock at once.
    pub async fn write(&self) -> Result<WriteTx, DbError> {
        if self.read_only {
            return Err(DbError::ReadOnly);
        }
        let tx = match &self.pool {
            Pool::Sqlite(pool) => begin_sqlite(pool, "begin immediate").await,
            Pool::Postgres(pool) => pool.begin_with("begin read write").await.map(Tx::Postgres),
            Pool::MySql(pool) => pool
                .begin_with("start transaction read write")
                .await
                .map(Tx::MySql),
        };
        Ok(WriteTx(Snapshot {
            tx: tx.map_err(|error| self.error(error))?,
            db: self.clone(),
        }))
    }
}

/// Each transaction brings its own deadline: the handler stays with the pooled connection, and
/// an old one would stop whatever runs there next.
async fn begin_sqlite(pool: &sqlx::SqlitePool, begin: &'static str) -> Result<Tx, sqlx::Error> {
    let mut tx = pool.begin_with(begin).await?;
    let deadline = Deadline::new();
    let seen = deadline.clone();
    tx.lock_handle()
        .await?
        .set_progress_handler(SQLITE_STEPS_PER_CHECK, move || seen.is_ahead());
    Ok(Tx::Sqlite(tx, deadline))
}

impl Snapshot {
    pub fn dialect(&self) -> Dialect {
        self.db.dialect()
    }

    pub fn statement(&self) -> Statement {
        self.db.statement()
    }

    /// The zone stored times are in.
    pub fn zone(&self) -> crate::zone::Zone {
        self.db.zone
    }

    /// A time the engine wrote, where it comes as part of a text.
    pub fn stored_time(&self, text: &str) -> Option<DateTime<Utc>> {
        row::stored_time(text, self.db.zone)
    }

    pub async fn fetch(&mut self, statement: Statement) -> Result<Vec<Row>, DbError> {
        let timeout = self.db.statement_timeout;
        self.rows(statement, Some(timeout)).try_collect().await
    }

    /// Hands on each row as it arrives, so that rows and what is read from them never stand side
    /// by side.
    pub async fn fetch_each(
        &mut self,
        statement: Statement,
        mut each: impl FnMut(Row) -> Result<(), DbError>,
    ) -> Result<(), DbError> {
        let timeout = self.db.statement_timeout;
        let mut rows = self.rows(statement, Some(timeout));
        while let Some(row) = rows.next().await {
            each(row?)?;
        }
        Ok(())
    }

    /// Asks several questions, one after the other. SQLite is asked all of them at once: a trip
    /// to the driver's thread and back costs more than most of them do.
    pub async fn ask(&mut self, questions: Vec<Question<'_>>) -> Result<(), DbError> {
        let Tx::Sqlite(tx, deadline) = &mut self.tx else {
            for Question { statement, take } in questions {
                self.fetch_each(statement, take).await?;
            }
            return Ok(());
        };
        let (statements, mut takers): (Vec<_>, Vec<_>) = questions
            .into_iter()
            .map(|question| (question.statement, question.take))
            .unzip();
        statements.iter().for_each(sent);
        let timeout = Some(self.db.statement_timeout);
        deadline.set(timeout);
        let mut answers = driver::stream_all(tx, statements, self.db.zone);
        let mut takers = takers.iter_mut();
        let mut take = takers.next();
        while let Some(answer) = answers.next().await {
            match (answer.map_err(|error| self.db.error(error))?, &mut take) {
                (Some(row), Some(take)) => take(row)?,
                (Some(_), None) => {}
                (None, _) => {
                    take = takers.next();
                    deadline.set(timeout);
                }
            }
        }
        Ok(())
    }

    /// What is read from each row, as it arrives.
    pub async fn fetch_as<T>(
        &mut self,
        statement: Statement,
        read: impl Fn(&mut Row) -> Result<T, DbError>,
    ) -> Result<Vec<T>, DbError> {
        let mut all = Vec::new();
        self.fetch_each(statement, |mut row| {
            all.push(read(&mut row)?);
            Ok(())
        })
        .await?;
        Ok(all)
    }

    pub async fn fetch_one(&mut self, statement: Statement) -> Result<Option<Row>, DbError> {
        Ok(self.fetch(statement).await?.into_iter().next())
    }

    /// Rows as they arrive, for what may be longer than memory.
    pub fn stream(&mut self, statement: Statement) -> BoxStream<'_, Result<Row, DbError>> {
        self.rows(statement, None)
    }

    fn rows(
        &mut self,
        statement: Statement,
        timeout: Option<Duration>,
    ) -> BoxStream<'_, Result<Row, DbError>> {
        sent(&statement);
        let zone = self.db.zone;
        let rows = match &mut self.tx {
            Tx::Sqlite(tx, deadline) => {
                deadline.set(timeout);
                driver::stream::<Sqlite>(tx, statement, zone)
            }
            Tx::Postgres(tx) => driver::stream::<Postgres>(tx, statement, zone),
            Tx::MySql(tx) => driver::stream::<MySql>(tx, statement, zone),
        };
        let db = &self.db;
        rows.map(move |row| row.map_err(|error| db.error(error)))
            .boxed()
    }

    /// Gives the connection back. Dropping does the same a little later.
    pub async fn end(self) {
        let ended = match self.tx {
            Tx::Sqlite(tx, _) => tx.rollback().await,
            Tx::Postgres(tx) => tx.rollback().await,
            Tx::MySql(tx) => tx.rollback().await,
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a read snapshot did not end cleanly");
        }
    }
}

/// A transaction that may write. Dropped without [`WriteTx::commit`], it leaves no trace.
#[derive(Debug)]
pub struct WriteTx(Snapshot);

impl WriteTx {
    pub fn statement(&self) -> Statement {
        self.0.statement()
    }

    pub async fn fetch(&mut self, statement: Statement) -> Result<Vec<Row>, DbError> {
        self.0.fetch(statement).await
    }

    /// For what reads through a snapshot, and must see what this transaction sees.
    pub fn reading(&mut self) -> &mut Snapshot {
        &mut self.0
    }

    /// Runs one statement and says how many rows it touched.
    pub async fn execute(&mut self, statement: Statement) -> Result<u64, DbError> {
        sent(&statement);
        let Snapshot { db, tx } = &mut self.0;
        let done = match tx {
            Tx::Sqlite(tx, deadline) => {
                deadline.set(Some(db.statement_timeout));
                driver::execute::<Sqlite>(tx, statement).await
            }
            Tx::Postgres(tx) => driver::execute::<Postgres>(tx, statement).await,
            Tx::MySql(tx) => driver::execute::<MySql>(tx, statement).await,
        };
        done.map_err(|error| db.error(error))
    }

    /// Runs a static script of several statements without binds, such as a migration. Braces
    /// and quotes mean what they mean in [`Statement::push`]. MySQL commits after each change
    /// of a table, whatever the transaction says.
    pub async fn script(&mut self, sql: &'static str) -> Result<(), DbError> {
        self.script_of([sql]).await
    }

    /// As [`WriteTx::script`], from pieces.
    pub async fn script_of(
        &mut self,
        pieces: impl IntoIterator<Item = &'static str>,
    ) -> Result<(), DbError> {
        let Snapshot { db, tx } = &mut self.0;
        let mut script = db.statement();
        for piece in pieces {
            script.push(piece).push("\n");
        }
        let script = sqlx::raw_sql(AssertSqlSafe(script.into_parts().0));
        let done = match tx {
            Tx::Sqlite(tx, deadline) => {
                deadline.set(None);
                script.execute(&mut **tx).await.map(drop)
            }
            Tx::Postgres(tx) => script.execute(&mut **tx).await.map(drop),
            Tx::MySql(tx) => script.execute(&mut **tx).await.map(drop),
        };
        done.map_err(|error| db.error(error))
    }

    pub async fn commit(self) -> Result<(), DbError> {
        let Snapshot { db, tx } = self.0;
        let done = match tx {
            Tx::Sqlite(tx, _) => tx.commit().await,
            Tx::Postgres(tx) => tx.commit().await,
            Tx::MySql(tx) => tx.commit().await,
        };
        done.map_err(|error| db.error(error))
    }
}
