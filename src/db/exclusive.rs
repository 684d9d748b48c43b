//! Something only one process may do at a time, whichever machine it runs on: a lock that goes
//! with its holder. Where the database is a file, so is the lock.

use std::{
    fs::{File, TryLockError},
    path::{Path, PathBuf},
};

use sqlx::{Connection as _, MySqlConnection, PgConnection, Row as _};

use super::{Db, DbError, Pool};

/// Held until dropped.
#[derive(Debug)]
pub struct Exclusive(Holder);

#[derive(Debug)]
enum Holder {
    #[expect(dead_code, reason = "the lock lasts as long as the open file")]
    File(File),
    Postgres(Box<PgConnection>),
    MySql(Box<MySqlConnection>),
}

impl Db {
    /// The right to do what `name` names; none while another has it.
    pub async fn exclusive(&self, name: &str) -> Result<Option<Exclusive>, DbError> {
        let holder = match &self.pool {
            Pool::Sqlite(pool) => {
                let file = lock_file(pool.file(), name);
                let opened = File::create(&file);
                let opened = opened.map_err(|error| DbError::Settings {
                    message: format!("cannot make the lock {}: {error}", file.display()),
                })?;
                match opened.try_lock() {
                    Ok(()) => Some(Holder::File(opened)),
                    Err(TryLockError::WouldBlock) => None,
                    Err(TryLockError::Error(error)) => {
                        return Err(DbError::Settings {
                            message: format!("cannot lock {}: {error}", file.display()),
                        });
                    }
                }
            }
            Pool::Postgres(pool) => {
                let connection = pool.acquire().await.map_err(|error| self.error(error))?;
                let mut connection = connection.detach();
                let taken: bool = sqlx::query(
                    "select pg_try_advisory_lock(hashtext(current_schema()), hashtext($1))",
                )
                .bind(name)
                .fetch_one(&mut connection)
                .await
                .and_then(|row| row.try_get(0))
                .map_err(|error| self.error(error))?;
                taken.then_some(Holder::Postgres(Box::new(connection)))
            }
            Pool::MySql(pool) => {
                let connection = pool.acquire().await.map_err(|error| self.error(error))?;
                let mut connection = connection.detach();
                let taken: Option<i64> =
                    sqlx::query("select get_lock(concat(left(sha1(database()), 20), ?), 0)")
                        .bind(name)
                        .fetch_one(&mut connection)
                        .await
                        .and_then(|row| row.try_get(0))
                        .map_err(|error| self.error(error))?;
                (taken == Some(1)).then_some(Holder::MySql(Box::new(connection)))
            }
        };
        Ok(holder.map(Exclusive))
    }
}

impl Exclusive {
    /// Whether it is still ours: a server that went away has forgotten it.
    pub async fn is_held(&mut self) -> bool {
        match &mut self.0 {
            Holder::File(_) => true,
            Holder::Postgres(connection) => connection.ping().await.is_ok(),
            Holder::MySql(connection) => connection.ping().await.is_ok(),
        }
    }
}

/// Beside the database, as SQLite's own files are: where that may be written, so may its folder,
/// and whoever shares the database shares the lock.
fn lock_file(database: &Path, name: &str) -> PathBuf {
    let real = database.canonicalize();
    let mut file = real
        .unwrap_or_else(|_| database.to_owned())
        .into_os_string();
    file.push(format!("-plimsoll-{name}.lock"));
    file.into()
}
