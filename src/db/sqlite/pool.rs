//! Connections to one file: opened as they are needed, lent to one transaction at a time.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rusqlite::Connection;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use super::{
    open::{How, connect},
    told,
};
use crate::db::DbError;

#[derive(Clone, Debug)]
pub struct SqlitePool(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    file: PathBuf,
    how: How,
    most: u32,
    patience: Duration,
    turns: Arc<Semaphore>,
    idle: Mutex<Vec<Opened>>,
}

/// A connection, and which file stood under the name when it was opened: it goes on reading that
/// one when another is put in its place.
#[derive(Debug)]
struct Opened {
    connection: Box<Connection>,
    file: FileId,
}

type FileId = Option<(u64, u64)>;

#[cfg(unix)]
fn file_id(file: &Path) -> FileId {
    use std::os::unix::fs::MetadataExt as _;
    let found = file.metadata().ok()?;
    Some((found.dev(), found.ino()))
}

#[cfg(not(unix))]
fn file_id(_: &Path) -> FileId {
    None
}

impl SqlitePool {
    pub(super) fn new(file: PathBuf, how: How, most: u32, patience: Duration) -> Self {
        Self(Arc::new(Inner {
            file,
            how,
            most,
            patience,
            turns: Arc::new(Semaphore::new(most as usize)),
            idle: Mutex::default(),
        }))
    }

    pub fn file(&self) -> &Path {
        &self.0.file
    }

    /// Connections that are open, and those of them that nobody uses.
    pub fn size(&self) -> (u32, usize) {
        let free = u32::try_from(self.0.turns.available_permits()).unwrap_or(self.0.most);
        let idle = self.idle().len();
        let used = self.0.most.saturating_sub(free);
        (used + u32::try_from(idle).unwrap_or(0), idle)
    }

    /// Waits until every connection is back and closes them.
    pub async fn close(&self) {
        if self.0.turns.acquire_many(self.0.most).await.is_ok() {
            self.0.turns.close();
            self.idle().clear();
        }
    }

    pub(super) async fn lend(&self) -> Result<Lease, DbError> {
        let mut lease = self.lend_anew().await?;
        lease.keep = true;
        Ok(lease)
    }

    /// A connection that knows the file only as it is now, and is closed again.
    pub(super) async fn lend_anew(&self) -> Result<Lease, DbError> {
        let turn = timeout(self.0.patience, Arc::clone(&self.0.turns).acquire_owned())
            .await
            .map_err(|_| DbError::PoolExhausted(self.0.most))?
            .map_err(|_| DbError::Lost("the pool is closed".into()))?;
        Ok(Lease {
            opened: Mutex::default(),
            keep: false,
            pool: self.clone(),
            _turn: turn,
        })
    }

    /// One that nobody uses. Those of a file that is no longer there are closed.
    fn reuse(&self, file: FileId) -> Option<Opened> {
        let mut idle = self.idle();
        let (mut same, other): (Vec<_>, Vec<_>) =
            idle.drain(..).partition(|opened| opened.file == file);
        let opened = same.pop();
        *idle = same;
        drop(idle);
        drop(other);
        opened
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Opened>> {
        self.0.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection until it is dropped, which undoes what was not committed.
#[derive(Debug)]
pub(super) struct Lease {
    /// Taken or opened when it is first used: that may take its time. Locked by nobody, only so
    /// that a lease can be seen from two threads.
    opened: Mutex<Option<Opened>>,
    /// Whether others may have it afterwards.
    keep: bool,
    pool: SqlitePool,
    _turn: OwnedSemaphorePermit,
}

impl Lease {
    pub fn connection(&mut self) -> Result<&Connection, DbError> {
        let place = self.opened.get_mut();
        let place = place.unwrap_or_else(PoisonError::into_inner);
        let opened = match place.take() {
            Some(opened) => opened,
            None => opened(&self.pool, self.keep)?,
        };
        Ok(&place.insert(opened).connection)
    }
}

fn opened(pool: &SqlitePool, reuse: bool) -> Result<Opened, DbError> {
    let Inner { file, how, .. } = &*pool.0;
    let id = file_id(file);
    if let Some(opened) = Some(id).filter(|_| reuse).and_then(|id| pool.reuse(id)) {
        return Ok(opened);
    }
    match connect(file, *how) {
        Ok(connection) => Ok(Opened {
            connection: Box::new(connection),
            file: id,
        }),
        // A file that cannot be opened is a database that is away.
        Err(error) => Err(match told(&error, 0) {
            DbError::Query(why) => DbError::Lost(why),
            other => other,
        }),
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let place = self.opened.get_mut();
        let Some(opened) = place.unwrap_or_else(PoisonError::into_inner).take() else {
            return;
        };
        // One that cannot even be cleared is closed instead.
        let connection = &opened.connection;
        let cleared = self.keep
            && connection.progress_handler(0, None::<fn() -> bool>).is_ok()
            && (connection.is_autocommit() || connection.execute_batch("rollback").is_ok());
        if cleared {
            self.pool.idle().push(opened);
        }
    }
}
