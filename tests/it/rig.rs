//! Throw-away databases: each test gets its own on SQLite, PostgreSQL and MySQL or MariaDB, with
//! the engine's tables in it, gone when the test ends.

use std::{
    env, fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};

use plimsoll::{
    db::{Db, Dialect, Settings, Val},
    demo::{rows::InsertRow, write::write},
    durable::store::schema::{self, Kind},
};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, MySqlConnection, PgConnection};

/// Makes three tests of one: `name::sqlite`, `name::postgres`, `name::mysql`.
///
/// ```ignore
/// on_every_database! {
///     async fn a_run_is_found(db: TestDb) { … }
/// }
/// ```
macro_rules! on_every_database {
    ($($(#[$meta:meta])* async fn $name:ident($db:ident: $test_db:ty) $body:block)+) => {$(
        $(#[$meta])*
        mod $name {
            #[allow(unused_imports)]
            use super::*;

            async fn body($db: $test_db) $body

            #[tokio::test]
            async fn sqlite() {
                $crate::rig::on(plimsoll::db::Dialect::Sqlite, body).await;
            }

            #[tokio::test]
            async fn postgres() {
                $crate::rig::on(plimsoll::db::Dialect::Postgres, body).await;
            }

            #[tokio::test]
            async fn mysql() {
                $crate::rig::on(plimsoll::db::Dialect::MySql, body).await;
            }
        }
    )+};
}
pub(crate) use on_every_database;

/// A database of the test's own, opened both ways.
#[derive(Clone, Debug)]
pub struct TestDb {
    pub writable: Db,
    pub read_only: Db,
    pub url: String,
}

impl TestDb {
    pub fn dialect(&self) -> Dialect {
        self.writable.dialect()
    }

    /// The same database opened otherwise: another zone, prefix or timeout.
    pub async fn open(&self, change: impl FnOnce(&mut Settings)) -> Db {
        let mut settings = Settings::new(&self.url);
        change(&mut settings);
        Db::connect(&settings).await.expect("the database opens")
    }
}

/// Runs `body` on a fresh database with the engine's tables.
pub async fn on<F>(dialect: Dialect, body: impl FnOnce(TestDb) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let place = Place::make(dialect).await;
    let db = TestDb {
        writable: connect(Settings::new(&place.url).writable()).await,
        read_only: connect(Settings::new(&place.url)).await,
        url: place.url.clone(),
    };
    let (writable, read_only) = (db.writable.clone(), db.read_only.clone());
    // A task of its own, so that a failing test still gives its database back.
    let outcome = tokio::spawn(body(db)).await;
    writable.close().await;
    read_only.close().await;
    place.remove().await;
    if let Err(failure) = outcome {
        std::panic::resume_unwind(failure.into_panic());
    }
}

async fn connect(settings: Settings) -> Db {
    Db::connect(&settings).await.expect("the database opens")
}

/// Where a throw-away database lives.
struct Place {
    url: String,
    kind: PlaceKind,
}

enum PlaceKind {
    Folder(tempfile::TempDir),
    Server {
        dialect: Dialect,
        admin: String,
        name: String,
    },
}

impl Place {
    async fn make(dialect: Dialect) -> Self {
        match dialect {
            Dialect::Sqlite => sqlite_file().await,
            Dialect::Postgres => postgres_database().await,
            Dialect::MySql => mysql_database().await,
        }
    }

    async fn remove(self) {
        match self.kind {
            PlaceKind::Folder(folder) => drop(folder),
            PlaceKind::Server {
                dialect,
                admin,
                name,
            } => {
                let force = dialect.pick("", " with (force)", "");
                admin_execute(dialect, &admin, &format!("drop database {name}{force}")).await;
            }
        }
    }
}

async fn sqlite_file() -> Place {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("engine.sqlite");
    // Readers and a writer side by side, as on a live engine.
    let connection = rusqlite::Connection::open(&file).unwrap();
    connection
        .execute_batch("pragma journal_mode = wal")
        .unwrap();
    drop(connection);
    let url = format!("sqlite:{}", file.display());
    create_tables(&url).await;
    Place {
        url,
        kind: PlaceKind::Folder(folder),
    }
}

async fn create_tables(url: &str) {
    let db = connect(Settings::new(url).writable()).await;
    schema::create(&db).await.expect("the tables are made");
    db.close().await;
}

async fn postgres_database() -> Place {
    let admin = admin_url("PLIMSOLL_TEST_POSTGRES_URL");
    let template = template_name();
    let mut connection = PgConnection::connect(&admin).await.expect("PostgreSQL");
    // The template is made once per server, whichever test process comes first; the lock is
    // given back with the connection.
    connection
        .execute("select pg_advisory_lock(705811)")
        .await
        .unwrap();
    let there = sqlx::query("select 1 from pg_database where datname = $1 and datistemplate")
        .bind(&template)
        .fetch_optional(&mut connection)
        .await
        .unwrap();
    if there.is_none() {
        for statement in [
            format!("drop database if exists {template} with (force)"),
            format!("create database {template}"),
        ] {
            connection.execute(AssertSqlSafe(statement)).await.unwrap();
        }
        create_tables(&with_database(&admin, &template)).await;
        let done = format!("alter database {template} is_template true");
        connection.execute(AssertSqlSafe(done)).await.unwrap();
    }
    let name = fresh_name();
    connection
        .execute(AssertSqlSafe(format!(
            "create database {name} template {template} strategy file_copy"
        )))
        .await
        .unwrap();
    connection.close().await.unwrap();
    Place {
        url: with_database(&admin, &name),
        kind: PlaceKind::Server {
            dialect: Dialect::Postgres,
            admin,
            name,
        },
    }
}

async fn mysql_database() -> Place {
    let admin = admin_url("PLIMSOLL_TEST_MYSQL_URL");
    let name = fresh_name();
    let create = format!("create database {name} character set utf8mb4");
    admin_execute(Dialect::MySql, &admin, &create).await;
    let url = with_database(&admin, &name);
    create_tables(&url).await;
    Place {
        url,
        kind: PlaceKind::Server {
            dialect: Dialect::MySql,
            admin,
            name,
        },
    }
}

async fn admin_execute(dialect: Dialect, admin: &str, sql: &str) {
    let sql = AssertSqlSafe(sql.to_owned());
    let done = if dialect == Dialect::MySql {
        let mut connection = MySqlConnection::connect(admin).await.expect("MySQL");
        connection.execute(sql).await.map(drop)
    } else {
        let mut connection = PgConnection::connect(admin).await.expect("PostgreSQL");
        connection.execute(sql).await.map(drop)
    };
    done.expect("the administrator may do this");
}

fn admin_url(variable: &str) -> String {
    env::var(variable).unwrap_or_else(|_| {
        panic!(
            "{variable} is not set: run ./test or `scripts/databases run -- cargo test`, which \
             start a temporary server; ./test --quick leaves the tests that need one out"
        )
    })
}

fn with_database(admin: &str, name: &str) -> String {
    let mut url = url::Url::parse(admin).expect("the administrator's URL");
    url.set_path(name);
    url.into()
}

fn fresh_name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("plimsoll_{}_{next}", std::process::id())
}

/// Changes with the scripts, so that an old template is never used for new tables.
fn template_name() -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in schema::scripts(Dialect::Postgres).concat().bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    format!("plimsoll_template_{hash:016x}")
}

/// A path inside the corpus; `None`, said aloud, where the corpus is absent.
pub fn corpus(path: &str) -> Option<PathBuf> {
    let root = env::var_os("PLIMSOLL_CORPUS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus"),
        PathBuf::from,
    );
    let path = root.join(path);
    if path.exists() {
        return Some(path);
    }
    eprintln!(
        "NOT COMPARED: no corpus at {} (PLIMSOLL_CORPUS)",
        path.display()
    );
    None
}

pub fn corpus_text(path: &str) -> Option<String> {
    corpus(path).map(|path| fs::read_to_string(path).expect("the corpus can be read"))
}

/// Where the corpus is unpacked; `None`, said aloud, where it is not.
pub fn corpus_unpacked() -> Option<PathBuf> {
    let root = env::var_os("PLIMSOLL_CORPUS_UNPACKED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("target/corpus"),
        PathBuf::from,
    );
    if root.join("scenarios").is_dir() {
        return Some(root);
    }
    eprintln!(
        "NOT COMPARED: no unpacked corpus at {} (PLIMSOLL_CORPUS_UNPACKED)",
        root.display()
    );
    None
}

/// Copies every row of the engine's tables from an SQLite file, as the engine would have
/// written them to the target. Returns how many rows there were.
pub async fn copy_sqlite(file: &Path, target: &TestDb) -> u64 {
    let all: Vec<_> = schema::tables().iter().map(|table| table.name).collect();
    copy_sqlite_tables(file, target, &all).await
}

/// Deletes every row of these tables, the last first.
pub async fn empty(db: &TestDb, tables: &[&'static str]) {
    let mut tx = db.writable.write().await.expect("a transaction");
    for table in tables.iter().rev() {
        let mut q = tx.statement();
        q.push("delete from {").push(table).push("}");
        tx.execute(q).await.expect("the rows go");
    }
    tx.commit().await.expect("the rows are gone");
}

/// The same for some of the tables.
pub async fn copy_sqlite_tables(file: &Path, target: &TestDb, tables: &[&str]) -> u64 {
    let source = connect(Settings::new(format!("sqlite:{}", file.display()))).await;
    let present = schema::check(&source).await.expect("the file is readable");
    let mut rows = Vec::new();
    for table in schema::tables() {
        if !present.has_table(table.name) || !tables.contains(&table.name) {
            continue;
        }
        let columns: Vec<_> = table
            .columns
            .iter()
            .filter(|column| present.has_column(table.name, column.name))
            .collect();
        let mut q = source.statement();
        for (i, column) in columns.iter().enumerate() {
            q.push(if i == 0 { "select \"" } else { ", \"" })
                .push(column.name)
                .push("\"");
        }
        q.push(" from {").push(table.name).push("}");
        for mut row in source.fetch(q).await.expect("the rows are readable") {
            let mut out = InsertRow::new(table.name);
            for column in &columns {
                // SQLite keeps times as text: there the text itself is the truth.
                let value = match (column.kind, target.dialect()) {
                    (Kind::Time, Dialect::Postgres | Dialect::MySql) => row
                        .opt_utc(column.name)
                        .map(|at| at.map(|at| at.naive_utc()).into()),
                    (Kind::Bool, _) => row.opt_bool(column.name).map(Val::from),
                    _ => row.take(column.name),
                };
                out = out.set(column.name, value.expect("a value of the column's kind"));
            }
            rows.push(out);
        }
    }
    source.close().await;
    write(&target.writable, rows, |_| ())
        .await
        .expect("the target takes the rows")
}
