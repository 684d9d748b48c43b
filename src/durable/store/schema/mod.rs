//! The engine's tables: what they must look like, and how to make them where none are.
//!
//! The scripts under `migrations/` are the one description. [`tables`] reads the SQLite ones;
//! [`check`] compares a database with it at start-up; [`create`] runs them, only ever on a
//! database of our own or an empty one. An existing engine database is never migrated.

mod check;
mod stand_in;
mod tables;

pub use check::{SchemaReport, Verdict, check};
pub use stand_in::stand_ins;
pub use tables::{Column, Kind, Table, tables};

use crate::db::{Db, DbError, Dialect};

macro_rules! scripts {
    ($database:literal) => {
        [
            include_str!(concat!(
                "../../../../migrations/",
                $database,
                "/01_execution.sql"
            )),
            include_str!(concat!(
                "../../../../migrations/",
                $database,
                "/02_commands.sql"
            )),
            include_str!(concat!(
                "../../../../migrations/",
                $database,
                "/03_lineage.sql"
            )),
            include_str!(concat!(
                "../../../../migrations/",
                $database,
                "/04_visibility.sql"
            )),
            include_str!(concat!(
                "../../../../migrations/",
                $database,
                "/05_summaries.sql"
            )),
            include_str!(concat!(
                "../../../../migrations/",
                $database,
                "/06_run_projections.sql"
            )),
            include_str!(concat!(
                "../../../../migrations/",
                $database,
                "/07_fleet_and_schedules.sql"
            )),
            include_str!(concat!(
                "../../../../migrations/",
                $database,
                "/08_services.sql"
            )),
        ]
    };
}

const SQLITE: [&str; 8] = scripts!("sqlite");
const POSTGRES: [&str; 8] = scripts!("postgres");
const MYSQL: [&str; 8] = scripts!("mysql");

/// The scripts that make all tables and indexes, in the order they must run.
pub fn scripts(dialect: Dialect) -> [&'static str; 8] {
    match dialect {
        Dialect::Sqlite => SQLITE,
        Dialect::Postgres => POSTGRES,
        Dialect::MySql => MYSQL,
    }
}

/// Makes the engine's tables where there are none, and says whether it did. A database that
/// already has any of them is left as it is.
pub async fn create(db: &Db) -> Result<bool, DbError> {
    let made = create_tables(db).await?;
    if made {
        create_indexes(db).await?;
    }
    Ok(made)
}

/// The first half of [`create`], for a load that is faster without indexes. On MySQL they come
/// with the tables.
pub async fn create_tables(db: &Db) -> Result<bool, DbError> {
    if check(db).await?.missing_tables.len() < tables().len() {
        return Ok(false);
    }
    run(db, |line| !is_index(line)).await?;
    Ok(true)
}

/// The second half. Indexes that are there are left as they are.
pub async fn create_indexes(db: &Db) -> Result<(), DbError> {
    run(db, is_index).await
}

/// Our scripts have an index on a line of its own.
fn is_index(line: &str) -> bool {
    line.starts_with("create index ") || line.starts_with("create unique index ")
}

async fn run(db: &Db, wanted: impl Fn(&str) -> bool) -> Result<(), DbError> {
    let mut tx = db.write().await?;
    for script in scripts(db.dialect()) {
        let lines: Vec<_> = script.lines().filter(|line| wanted(line)).collect();
        if lines.iter().any(|line| line.starts_with("create ")) {
            tx.script_of(lines).await?;
        }
    }
    tx.commit().await
}
