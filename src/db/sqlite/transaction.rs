//! A transaction whose statements run on a thread of their own, off the threads that answer
//! requests.

use std::{
    mem, panic,
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use futures_util::{
    StreamExt as _, TryStreamExt as _,
    stream::{self, BoxStream},
};
use rusqlite::Connection;
use tokio::{
    sync::mpsc,
    task::{JoinHandle, spawn_blocking},
};

use super::{Failure, SqlitePool, each_row, execute, pool::Lease};
use crate::{
    db::{DbError, Row, Statement, snapshot::Question},
    zone::Zone,
};

/// How many instructions of SQLite's virtual machine pass between two looks at the clock.
const STEPS_PER_LOOK: i32 = 20_000;

/// Rows that come over together: fewer and the two threads wake each other all the time, more and
/// they lie in memory for nothing.
const ROWS_AT_ONCE: usize = 100;
/// Of long rows fewer, as soon as they hold so many bytes.
const BYTES_AT_ONCE: usize = 128 * 1024;
/// Such lots that wait to be taken.
const LOTS_AHEAD: usize = 1;

#[derive(Debug)]
pub struct Transaction {
    place: Place,
    /// What begins it, until its first statement.
    begin: Option<&'static str>,
    zone: Zone,
    /// What is told of a statement that took longer.
    timeout_seconds: u64,
}

/// Where the connection is.
#[derive(Debug)]
enum Place {
    Here(Lease),
    /// At work; it comes back by itself, unless the transaction could not even begin.
    Away(JoinHandle<Option<Lease>>),
    Lost,
}

/// What a statement runs with.
#[derive(Debug)]
pub(in crate::db) struct Work<'c> {
    connection: &'c Connection,
    zone: Zone,
    wanted: Weak<()>,
}

impl Work<'_> {
    /// From here on statements may take so long, and go on only while somebody wants the answer.
    fn limit(&self, timeout: Option<Duration>) -> Result<(), Failure> {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let wanted = Weak::clone(&self.wanted);
        self.connection.progress_handler(
            STEPS_PER_LOOK,
            Some(move || {
                wanted.strong_count() == 0
                    || deadline.is_some_and(|deadline| Instant::now() >= deadline)
            }),
        )?;
        Ok(())
    }

    fn rows(
        &self,
        statement: Statement,
        timeout: Option<Duration>,
        take: impl FnMut(&mut Row) -> Result<(), DbError>,
    ) -> Result<(), Failure> {
        self.limit(timeout)?;
        each_row(self.connection, statement, self.zone, take)
    }
}

impl Transaction {
    /// Begins with the first statement, as SQLite's own read transactions do.
    pub async fn read(pool: &SqlitePool, zone: Zone, timeout: Duration) -> Result<Self, DbError> {
        Ok(Self::on(pool.lend().await?, zone, timeout))
    }

    /// Reads the file as it is now, not what a connection remembers of it.
    pub async fn read_anew(
        pool: &SqlitePool,
        zone: Zone,
        timeout: Duration,
    ) -> Result<Self, DbError> {
        Ok(Self::on(pool.lend_anew().await?, zone, timeout))
    }

    fn on(lease: Lease, zone: Zone, timeout: Duration) -> Self {
        Self {
            place: Place::Here(lease),
            begin: Some("begin"),
            zone,
            timeout_seconds: timeout.as_secs(),
        }
    }

    /// Takes the write lock at once.
    pub async fn write(pool: &SqlitePool, zone: Zone, timeout: Duration) -> Result<Self, DbError> {
        let mut transaction = Self::read(pool, zone, timeout).await?;
        transaction.begin = Some("begin immediate");
        transaction.run(|_| Ok(())).await?;
        Ok(transaction)
    }

    pub async fn fetch(
        &mut self,
        statement: Statement,
        timeout: Duration,
    ) -> Result<Vec<Row>, DbError> {
        self.run(move |work| {
            let mut rows = Vec::new();
            work.rows(statement, Some(timeout), |row| {
                rows.push(row.kept());
                Ok(())
            })?;
            Ok(rows)
        })
        .await
    }

    /// All questions in one go, each row taken where it is read.
    pub async fn ask(
        &mut self,
        questions: Vec<Question>,
        timeout: Duration,
    ) -> Result<(), DbError> {
        self.run(move |work| {
            for Question { statement, take } in questions {
                work.rows(statement, Some(timeout), take)?;
            }
            Ok(())
        })
        .await
    }

    pub async fn execute(
        &mut self,
        statement: Statement,
        timeout: Duration,
    ) -> Result<u64, DbError> {
        self.run(move |work| {
            work.limit(Some(timeout))?;
            execute(work.connection, statement)
        })
        .await
    }

    pub async fn script(&mut self, sql: String) -> Result<(), DbError> {
        self.run(move |work| {
            work.limit(None)?;
            Ok(work.connection.execute_batch(&sql)?)
        })
        .await
    }

    pub async fn commit(mut self) -> Result<(), DbError> {
        self.run(|work| {
            work.limit(None)?;
            Ok(work.connection.execute_batch("commit")?)
        })
        .await
    }

    /// Rows as they are read, a few ahead of whoever takes them.
    pub fn stream(
        &mut self,
        statement: Statement,
        timeout: Option<Duration>,
    ) -> BoxStream<'_, Result<Row, DbError>> {
        let (sender, receiver) = mpsc::channel(LOTS_AHEAD);
        let wanted = Arc::new(());
        let seconds = self.timeout_seconds;
        let asked = Arc::downgrade(&wanted);
        let begun = self.start(asked, move |work| {
            let sent = work.and_then(|work| {
                let mut lot = LotOfRows::default();
                work.rows(statement, timeout, |row| {
                    lot.push(row.kept());
                    match lot.full() {
                        rows @ Some(_) => hand_over(&sender, rows),
                        None => Ok(()),
                    }
                })?;
                hand_over(&sender, Some(lot.rows))?;
                Ok(hand_over(&sender, None)?)
            });
            if let Err(failure) = sent {
                // Whoever has left needs no reason.
                let _ = sender.blocking_send(Err(failure.told(seconds)));
            }
        });
        let lots = stream::unfold(Some((receiver, wanted)), |more| async {
            let (mut receiver, wanted) = more?;
            match receiver.recv().await {
                Some(Ok(Some(rows))) => Some((Ok(rows), Some((receiver, wanted)))),
                Some(Ok(None)) => None,
                Some(Err(error)) => Some((Err(error), None)),
                // Rows that end without their end are not all rows.
                None => Some((Err(stopped()), None)),
            }
        });
        stream::once(async { begun.await.map(|()| lots) })
            .try_flatten()
            .map_ok(|lot| stream::iter(lot.into_iter().map(Ok)))
            .try_flatten()
            .boxed()
    }

    /// Does something on the connection's thread and waits for it.
    async fn run<T: Send + 'static>(
        &mut self,
        job: impl FnOnce(&Work<'_>) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, DbError> {
        let (answer, answered) = tokio::sync::oneshot::channel();
        let wanted = Arc::new(());
        self.start(Arc::downgrade(&wanted), move |work| {
            // Whoever has left needs no answer.
            let _ = answer.send(work.and_then(|work| job(&work)));
        })
        .await?;
        match answered.await {
            Ok(done) => done.map_err(|failure| failure.told(self.timeout_seconds)),
            Err(_) => Err(self.broke_off().await),
        }
    }

    /// A fault in what was done there is a fault here too, not one of the database.
    async fn broke_off(&mut self) -> DbError {
        if let Place::Away(lease) = mem::replace(&mut self.place, Place::Lost)
            && let Err(error) = lease.await
            && error.is_panic()
        {
            panic::resume_unwind(error.into_panic());
        }
        stopped()
    }

    /// Sets the connection to work once it is here.
    async fn start(
        &mut self,
        wanted: Weak<()>,
        job: impl FnOnce(Result<Work<'_>, Failure>) + Send + 'static,
    ) -> Result<(), DbError> {
        let mut lease = self.here().await?;
        let (begin, zone) = (self.begin.take(), self.zone);
        self.place = Place::Away(spawn_blocking(move || {
            match begun(&mut lease, begin) {
                Ok(connection) => job(Ok(Work {
                    connection,
                    zone,
                    wanted,
                })),
                // What comes next must not run outside a transaction.
                Err(failure) => {
                    job(Err(failure));
                    return None;
                }
            }
            Some(lease)
        }));
        Ok(())
    }

    async fn here(&mut self) -> Result<Lease, DbError> {
        if let Place::Away(lease) = &mut self.place {
            self.place = match lease.await {
                Ok(Some(lease)) => Place::Here(lease),
                Ok(None) | Err(_) => Place::Lost,
            };
        }
        match mem::replace(&mut self.place, Place::Lost) {
            Place::Here(lease) => Ok(lease),
            Place::Away(_) | Place::Lost => Err(stopped()),
        }
    }
}

fn begun<'l>(lease: &'l mut Lease, begin: Option<&str>) -> Result<&'l Connection, Failure> {
    let connection = lease.connection()?;
    if let Some(begin) = begin {
        connection.prepare_cached(begin)?.execute([])?;
    }
    Ok(connection)
}

fn stopped() -> DbError {
    DbError::Lost("the work on the SQLite file broke off".into())
}

/// What comes over: rows, or that there are no more.
type Lots = mpsc::Sender<Result<Option<Vec<Row>>, DbError>>;

fn hand_over(sender: &Lots, rows: Option<Vec<Row>>) -> Result<(), DbError> {
    sender.blocking_send(Ok(rows)).map_err(|_| stopped())
}

/// Rows on their way over.
#[derive(Default)]
struct LotOfRows {
    rows: Vec<Row>,
    bytes: usize,
}

impl LotOfRows {
    fn push(&mut self, row: Row) {
        self.bytes += row.bytes();
        self.rows.push(row);
    }

    fn full(&mut self) -> Option<Vec<Row>> {
        if self.rows.len() < ROWS_AT_ONCE && self.bytes < BYTES_AT_ONCE {
            return None;
        }
        self.bytes = 0;
        Some(mem::take(&mut self.rows))
    }
}
