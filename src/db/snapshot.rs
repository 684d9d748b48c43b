//! Transactions: read snapshots for pages, immediate transactions for writes.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use chrono::{DateTime, Utc};
use futures_util::{StreamExt as _, TryStreamExt as _, stream::BoxStream};
use sqlx::{
    AssertSqlSafe, Database, Executor as _, MySql, Postgres, SqlSafeStr as _, SqlStr, Transaction,
};

use super::{Db, DbError, Dialect, Pool, Row, Statement, count::sent, driver, row, sqlite};

#[derive(Debug)]
enum Tx {
    Sqlite(sqlite::Transaction),
    Postgres(Transaction<'static, Postgres>),
    MySql(Transaction<'static, MySql>),
}

#[derive(Clone, Copy)]
enum Access {
    Read,
    Write,
}

/// One consistent view of the database for all statements of a page.
#[derive(Debug)]
pub struct Snapshot {
    db: Db,
    tx: Tx,
    /// Its connection is closed when it ends, and nobody else's.
    own: bool,
    _lent: Lent,
}

/// One of the transactions that are open, until it is dropped.
#[derive(Debug)]
struct Lent(Arc<AtomicUsize>);

impl Lent {
    fn of(open: &Arc<AtomicUsize>) -> Self {
        open.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(open))
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

const POSTGRES_READ: &str = "begin isolation level repeatable read, read only";
const MYSQL_READ: &str = "start transaction with consistent snapshot, read only";
/// Whatever the server's default: what a statement waited for is read as it is then.
const POSTGRES_WRITE: &str = "begin isolation level read committed, read write";
const MYSQL_WRITE: &str = "start transaction read write";

type TakeRow = dyn FnMut(&mut Row) -> Result<(), DbError> + Send;

/// A statement, and what takes each of its rows: on SQLite where they are read, so it is whole by
/// itself. Each row is lent; one that is kept is taken out of it.
pub struct Question {
    pub(super) statement: Statement,
    pub(super) take: Box<TakeRow>,
}

impl Question {
    pub fn new(
        statement: Statement,
        take: impl FnMut(&mut Row) -> Result<(), DbError> + Send + 'static,
    ) -> Self {
        Self {
            statement,
            take: Box::new(take),
        }
    }
}

impl std::fmt::Debug for Question {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.statement.fmt(f)
    }
}

impl Db {
    /// Opens a read snapshot: REPEATABLE READ, or SQLite's read transaction.
    pub async fn snapshot(&self) -> Result<Snapshot, DbError> {
        let tx = self.begin(Access::Read).await?;
        Ok(self.within(tx, false))
    }

    fn within(&self, tx: Tx, own: bool) -> Snapshot {
        Snapshot {
            db: self.clone(),
            tx,
            own,
            _lent: Lent::of(&self.lent),
        }
    }

    /// A pooled connection may have died since it was last used, and so may all others: the next
    /// one tells.
    async fn begin(&self, access: Access) -> Result<Tx, DbError> {
        let (postgres, mysql) = match access {
            Access::Read => (POSTGRES_READ, MYSQL_READ),
            Access::Write => (POSTGRES_WRITE, MYSQL_WRITE),
        };
        let mut tries = 0;
        loop {
            let begun = match &self.pool {
                Pool::Sqlite(pool) => {
                    let (zone, timeout) = (self.zone, self.statement_timeout);
                    let begun = match access {
                        Access::Read => sqlite::Transaction::read(pool, zone, timeout).await,
                        Access::Write => sqlite::Transaction::write(pool, zone, timeout).await,
                    };
                    return begun.map(Tx::Sqlite);
                }
                Pool::Postgres(pool) => pool.begin_with(postgres).await.map(Tx::Postgres),
                Pool::MySql(pool) => pool.begin_with(mysql).await.map(Tx::MySql),
            };
            match begun {
                Ok(tx) => return Ok(tx),
                Err(error) if is_dead(&error) && tries < self.pool_size => tries += 1,
                Err(error) => return Err(self.error(error)),
            }
        }
    }

    /// Opens a read snapshot whose statements may take as long as their reader does, on a
    /// connection of its own: one that is left half-way is closed, not read to its end first.
    pub async fn unhurried(&self) -> Result<Snapshot, DbError> {
        let begun = match &self.pool {
            // A statement that streams has no limit there, and stops where it is left.
            Pool::Sqlite(_) => return self.snapshot().await,
            Pool::Postgres(pool) => {
                let limit = "set statement_timeout = 0";
                begin_own(pool, limit, POSTGRES_READ)
                    .await
                    .map(Tx::Postgres)
            }
            Pool::MySql(pool) => {
                // Each of the two servers skips what is for the other.
                let limit =
                    "set session /*!50708 max_execution_time */ /*M! max_statement_time */ = 0";
                begin_own(pool, limit, MYSQL_READ).await.map(Tx::MySql)
            }
        };
        let begun = begun.map_err(|error| self.error(error))?;
        Ok(self.within(begun, true))
    }

    /// Opens a transaction that may write. SQLite takes its write lock at once.
    pub async fn write(&self) -> Result<WriteTx, DbError> {
        if self.read_only {
            return Err(DbError::ReadOnly);
        }
        let tx = self.begin(Access::Write).await?;
        Ok(WriteTx(self.within(tx, false)))
    }
}

/// Whether the connection was gone before anything was asked of it.
fn is_dead(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) => true,
        // PostgreSQL leaves its last word in the socket.
        sqlx::Error::Database(error) => error
            .code()
            .is_some_and(|code| code.starts_with("57P") || code.starts_with("08")),
        _ => false,
    }
}

async fn begin_own<D>(
    pool: &sqlx::Pool<D>,
    limit: &'static str,
    begin: &'static str,
) -> Result<Transaction<'static, D>, sqlx::Error>
where
    D: Database,
    for<'c> &'c mut D::Connection: sqlx::Executor<'c, Database = D>,
{
    let mut tries = 0;
    loop {
        let mut connection = pool.acquire().await?;
        connection.close_on_drop();
        match connection.execute(limit).await {
            Ok(_) => {
                let begin: SqlStr = begin.into_sql_str();
                return Transaction::begin(connection, Some(begin)).await;
            }
            Err(error) if is_dead(&error) && tries < pool.options().get_max_connections() => {
                tries += 1;
            }
            Err(error) => return Err(error),
        }
    }
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
        if let Tx::Sqlite(tx) = &mut self.tx {
            sent(&statement);
            return tx.fetch(statement, timeout).await;
        }
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
    /// to another thread and back costs more than most of them do.
    pub async fn ask(&mut self, questions: Vec<Question>) -> Result<(), DbError> {
        if let Tx::Sqlite(tx) = &mut self.tx {
            for question in &questions {
                sent(&question.statement);
            }
            return tx.ask(questions, self.db.statement_timeout).await;
        }
        for Question {
            statement,
            mut take,
        } in questions
        {
            self.fetch_each(statement, |mut row| take(&mut row)).await?;
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
            Tx::Sqlite(tx) => return tx.stream(statement, timeout),
            Tx::Postgres(tx) => driver::stream::<Postgres>(tx, statement, zone),
            Tx::MySql(tx) => driver::stream::<MySql>(tx, statement, zone),
        };
        let db = &self.db;
        rows.map(move |row| row.map_err(|error| db.error(error)))
            .boxed()
    }

    /// Gives the connection back. Dropping does the same a little later.
    pub async fn end(self) {
        if self.own {
            return;
        }
        let ended = match self.tx {
            Tx::Sqlite(_) => Ok(()),
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
        let Snapshot { db, tx, .. } = &mut self.0;
        let done = match tx {
            Tx::Sqlite(tx) => return tx.execute(statement, db.statement_timeout).await,
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
        let Snapshot { db, tx, .. } = &mut self.0;
        let mut script = db.statement();
        for piece in pieces {
            script.push(piece).push("\n");
        }
        let script = script.into_parts().0;
        let raw = |script| sqlx::raw_sql(AssertSqlSafe(script));
        let done = match tx {
            Tx::Sqlite(tx) => return tx.script(script).await,
            Tx::Postgres(tx) => raw(script).execute(&mut **tx).await.map(drop),
            Tx::MySql(tx) => raw(script).execute(&mut **tx).await.map(drop),
        };
        done.map_err(|error| db.error(error))
    }

    pub async fn commit(self) -> Result<(), DbError> {
        let Snapshot { db, tx, .. } = self.0;
        let done = match tx {
            Tx::Sqlite(tx) => return tx.commit().await,
            Tx::Postgres(tx) => tx.commit().await,
            Tx::MySql(tx) => tx.commit().await,
        };
        done.map_err(|error| db.error(error))
    }
}
