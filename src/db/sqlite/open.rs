//! Opening an SQLite file, and an explanation when it does not open.

use std::{
    io::Read as _,
    path::{Path, PathBuf},
    time::Duration,
};

use percent_encoding::percent_decode_str;
use rusqlite::{Connection, OpenFlags};
use tokio::task::spawn_blocking;

use super::{SqlitePool, message, pool::Lease};
use crate::db::{
    DbError, Settings,
    connect::{ACQUIRE, BULK_STATEMENTS},
};

/// How long a statement waits for a lock another process holds.
const BUSY: Duration = Duration::from_secs(5);

/// In KiB, hence negative: the indexes of a million runs do not fit, but their ends do.
const BULK: &str = "pragma journal_mode = off; pragma synchronous = off; \
                    pragma cache_size = -1000000;";

/// Statements kept ready for the next time.
const STATEMENTS: usize = 100;

/// How the connections of a pool are opened.
#[derive(Clone, Copy, Debug)]
pub(super) struct How {
    read_only: bool,
    create: bool,
    bulk: bool,
}

pub async fn open(settings: &Settings) -> Result<SqlitePool, DbError> {
    let file = file(&settings.url)?;
    let target = format!("SQLite file {}", file.display());
    let fail = |cause: String, advice| DbError::Connect {
        target: target.clone(),
        cause,
        advice,
    };
    if !settings.create && !file.exists() {
        return Err(fail(
            "it does not exist".into(),
            "Check the path in --database-url.",
        ));
    }
    if file.is_dir() {
        return Err(fail(
            "it is a folder".into(),
            "Name the database file in it in --database-url.",
        ));
    }
    let how = How {
        read_only: settings.read_only,
        create: settings.create,
        bulk: settings.bulk,
    };
    let pool = SqlitePool::new(file.clone(), how, settings.pool_size, ACQUIRE);
    let first = pool.lend().await?;
    match spawn_blocking(move || try_it(first)).await {
        Ok(Ok(())) => Ok(pool),
        Ok(Err(cause)) => {
            let advice = advice(&cause, &file);
            Err(fail(cause, advice))
        }
        Err(broke) => Err(fail(broke.to_string(), "Start again.")),
    }
}

/// `sqlite:PATH` or `sqlite://PATH`, percent-encoded. Whether it is read or written is decided
/// elsewhere: a `mode` after it says nothing new.
fn file(url: &str) -> Result<PathBuf, DbError> {
    let place = url.strip_prefix("sqlite:").unwrap_or(url);
    let place = place.strip_prefix("//").unwrap_or(place);
    let (path, parameters) = place.split_once('?').unwrap_or((place, ""));
    let wrong = |what: String| DbError::Settings {
        message: format!("the database URL {url} cannot be read: {what}. Write it as sqlite:PATH"),
    };
    if let Some(other) = parameters
        .split('&')
        .find(|parameter| !parameter.is_empty() && !parameter.starts_with("mode="))
    {
        return Err(wrong(format!("{other} means nothing here")));
    }
    if path.is_empty() || path == ":memory:" {
        return Err(wrong("it names no file".into()));
    }
    let path = percent_decode_str(path).decode_utf8();
    let path = path.map_err(|_| wrong("its path is not UTF-8".into()))?;
    Ok(PathBuf::from(path.as_ref()))
}

/// Opening is lazy: only a read shows a locked file or one that is not a database.
fn try_it(mut lease: Lease) -> Result<(), String> {
    let connection = lease.connection().map_err(|error| match error {
        DbError::Lost(why) => why,
        other => other.to_string(),
    })?;
    connection
        .query_row("select count(*) from sqlite_master", [], |_| Ok(()))
        .map_err(|error| message(&error))
}

pub(super) fn connect(file: &Path, how: How) -> rusqlite::Result<Connection> {
    let flags = match how {
        How {
            read_only: true, ..
        } => OpenFlags::SQLITE_OPEN_READ_ONLY,
        How { create: true, .. } => {
            OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE
        }
        _ => OpenFlags::SQLITE_OPEN_READ_WRITE,
    };
    let connection = Connection::open_with_flags(file, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY)?;
    connection.execute_batch("pragma foreign_keys = on")?;
    if how.read_only {
        connection.execute_batch("pragma query_only = on")?;
    }
    if how.bulk {
        connection.execute_batch(BULK)?;
        connection.set_prepared_statement_cache_capacity(BULK_STATEMENTS);
    } else {
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
    }
    Ok(connection)
}

fn advice(cause: &str, file: &Path) -> &'static str {
    if cause.contains("not a database") {
        "The file is not an SQLite database; check the path in --database-url."
    } else if cause.contains("locked") || cause.contains("busy") {
        "Another process holds it exclusively; wait for it or stop it, then start again."
    } else if is_wal(file) {
        "The file is in WAL mode: while nobody else has it open, even reading it makes files beside \
         it, and this user may not write to its folder. Give this user write access to the folder, \
         or keep the engine running."
    } else {
        "Check that this user may read the file and its folder."
    }
}

/// Whether the file's header says WAL: its write and read version, bytes 18 and 19, are 2. The
/// files beside it tell nothing, they go with the last connection.
fn is_wal(file: &Path) -> bool {
    let mut header = [0; 20];
    std::fs::File::open(file)
        .and_then(|mut file| file.read_exact(&mut header))
        .is_ok_and(|()| header[18..] == [2, 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_in_wal_mode_is_told_by_its_header() {
        let folder = tempfile::tempdir().unwrap();
        for (mode, wal) in [("wal", true), ("delete", false)] {
            let path = folder.path().join(format!("{mode}.sqlite"));
            let connection = Connection::open(&path).unwrap();
            let made = format!("pragma journal_mode = {mode}; create table t (x)");
            connection.execute_batch(&made).unwrap();
            drop(connection);
            assert_eq!(is_wal(&path), wal);
            let advice = advice("unable to open database file", &path);
            assert_eq!(advice.contains("WAL mode"), wal, "{advice}");
        }
    }

    #[test]
    fn a_url_names_one_file() {
        for (url, want) in [
            ("sqlite:engine.sqlite", "engine.sqlite"),
            ("sqlite:/srv/engine.sqlite", "/srv/engine.sqlite"),
            ("sqlite:///srv/engine.sqlite?mode=ro", "/srv/engine.sqlite"),
            ("sqlite:/srv/a%3Fb%20c.sqlite", "/srv/a?b c.sqlite"),
        ] {
            assert_eq!(file(url).unwrap(), Path::new(want), "{url}");
        }
        for (url, says) in [
            ("sqlite:", "names no file"),
            ("sqlite::memory:", "names no file"),
            (
                "sqlite:/srv/a?cache=shared",
                "cache=shared means nothing here",
            ),
            ("sqlite:/srv/%ff", "not UTF-8"),
        ] {
            let error = file(url).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
