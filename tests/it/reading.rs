//! What a connection promises whatever the database: no writes, one view, bounded time.

use std::{
    fs, mem,
    path::Path,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use futures_util::TryStreamExt as _;
use plimsoll::{
    db::{Db, DbError, Dialect, Question, Row, Settings, Statement},
    durable::store::schema,
};

use crate::rig::{self, TestDb, on_every_database};

async fn add_row(db: &Db, key: &'static str) {
    let mut tx = db.write().await.unwrap();
    let mut q = tx.statement();
    q.push("insert into {workflow_child_projection_repairs} (workflow_history_event_id, workflow_run_id, workflow_task_id, history_sequence) values (")
        .bind(key)
        .push(", 'r', 't', 1)");
    assert_eq!(tx.execute(q).await.unwrap(), 1);
    tx.commit().await.unwrap();
}

fn count(db: &Db) -> Statement {
    let mut q = db.statement();
    q.push("select count(*) as n from {workflow_child_projection_repairs}");
    q
}

fn raw(db: &Db, sql: &'static str) -> Statement {
    let mut q = db.statement();
    q.push(sql);
    q
}

/// Rows of a question, where they can be seen when it was answered.
#[derive(Clone, Default)]
struct Answer(Arc<Mutex<Vec<Row>>>);

impl Answer {
    fn to(&self, statement: Statement) -> Question {
        let rows = Arc::clone(&self.0);
        Question::new(statement, move |row| {
            rows.lock().unwrap().push(row.kept());
            Ok(())
        })
    }

    fn rows(&self) -> Vec<Row> {
        mem::take(&mut self.0.lock().unwrap())
    }
}

/// After a restart or a failover of the server every connection of a pool is dead: none of them may
/// cost a request, whether it reads or writes.
mod connections_that_died_are_tried_past {
    use sqlx::{AssertSqlSafe, Connection as _, Executor as _, MySqlConnection, PgConnection};

    use super::*;

    async fn warm(db: &Db) {
        let opened = (0..6).map(|_| db.snapshot());
        for snapshot in futures_util::future::join_all(opened).await {
            snapshot.unwrap().end().await;
        }
    }

    async fn all_are_answered(db: &TestDb) {
        for _ in 0..8 {
            db.read_only.fetch(count(&db.read_only)).await.unwrap();
        }
        add_row(&db.writable, "one").await;
    }

    #[tokio::test]
    async fn postgres() {
        rig::on(Dialect::Postgres, async |db: TestDb| {
            warm(&db.read_only).await;
            warm(&db.writable).await;
            let mut server = PgConnection::connect(&db.url).await.unwrap();
            let end = "select pg_terminate_backend(pid) from pg_stat_activity \
                       where datname = current_database() and pid <> pg_backend_pid()";
            server.execute(end).await.unwrap();
            all_are_answered(&db).await;
        })
        .await;
    }

    #[tokio::test]
    async fn mysql() {
        rig::on(Dialect::MySql, async |db: TestDb| {
            warm(&db.read_only).await;
            warm(&db.writable).await;
            let mut server = MySqlConnection::connect(&db.url).await.unwrap();
            let others = "select id from information_schema.processlist \
                          where db = database() and id <> connection_id()";
            let others: Vec<i64> = sqlx::query_scalar(others)
                .fetch_all(&mut server)
                .await
                .unwrap();
            assert!(others.len() > 6);
            for id in others {
                let end = AssertSqlSafe(format!("kill {id}"));
                server.execute(end).await.unwrap();
            }
            all_are_answered(&db).await;
        })
        .await;
    }
}

/// PostgreSQL ends the one of two that waited longest for each other, and that may be a worker.
mod who_waits_for_a_row_gives_way_to_a_worker {
    use sqlx::{Connection as _, Executor as _, PgConnection};

    use super::*;

    const ONE: &str = "select 1 as n from workflow_child_projection_repairs where workflow_history_event_id = 'one' for update";
    const OTHER: &str = "select 1 as n from workflow_child_projection_repairs where workflow_history_event_id = 'other' for update";
    const PATIENCE: &str = "set deadlock_timeout = '2s'";
    const WAITING: &str = "select count(*) as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";

    #[tokio::test]
    async fn postgres() {
        rig::on(Dialect::Postgres, async |db: TestDb| {
            add_row(&db.writable, "one").await;
            add_row(&db.writable, "other").await;
            let mut ours = db.writable.write().await.unwrap();
            ours.fetch(raw(&db.writable, ONE)).await.unwrap();
            let mut worker = PgConnection::connect(&db.url).await.unwrap();
            // Twice as long as usual for both, for a machine that is slow.
            ours.script(PATIENCE).await.unwrap();
            worker.execute(PATIENCE).await.unwrap();
            worker.execute("begin").await.unwrap();
            worker.execute(OTHER).await.unwrap();
            let goes_on = tokio::spawn(async move { worker.execute(ONE).await.map(drop) });
            let waits = async || {
                let mut rows = db
                    .read_only
                    .fetch(raw(&db.read_only, WAITING))
                    .await
                    .unwrap();
                rows[0].int("n").unwrap() > 0
            };
            while !waits().await {
                tokio::task::yield_now().await;
            }
            let gives_way = ours.fetch(raw(&db.writable, OTHER)).await;
            assert!(matches!(gives_way, Err(DbError::Busy(_))), "{gives_way:?}");
            drop(ours);
            goes_on.await.unwrap().expect("the worker goes on");
        })
        .await;
    }
}

/// A server may be set to another isolation, under which a row that was waited for is an error.
mod what_is_written_is_judged_by_what_is_committed {
    use super::*;

    #[tokio::test]
    async fn postgres() {
        rig::on(Dialect::Postgres, async |db: TestDb| {
            let strict = |settings: &mut Settings| {
                settings.read_only = false;
                let mark = if settings.url.contains('?') { '&' } else { '?' };
                let set = "options[default_transaction_isolation]=serializable";
                settings.url = format!("{}{mark}{set}", settings.url);
            };
            let strict = db.open(strict).await;
            let mut tx = strict.write().await.unwrap();
            let asked = "select current_setting('transaction_isolation') as n, current_setting('default_transaction_isolation') as usual";
            let mut rows = tx.fetch(raw(&strict, asked)).await.unwrap();
            assert_eq!(rows[0].text("usual").unwrap(), "serializable");
            assert_eq!(rows[0].text("n").unwrap(), "read committed");
            drop(tx);
            strict.close().await;
        })
        .await;
    }
}

on_every_database! {
    async fn a_read_only_connection_refuses_every_write(db: TestDb) {
        assert!(matches!(db.read_only.write().await, Err(DbError::ReadOnly)));
        add_row(&db.writable, "kept").await;
        for sql in [
            "insert into {workflow_instances} (id, workflow_class, workflow_type) values ('a', 'b', 'c')",
            "update {workflow_child_projection_repairs} set history_sequence = 2",
            "delete from {workflow_child_projection_repairs}",
            "drop table {workflow_child_projection_repairs}",
            "create table {made_by_a_reader} (id integer)",
        ] {
            let outcome = db.read_only.fetch(raw(&db.read_only, sql)).await;
            assert!(outcome.is_err(), "{sql}");
        }
        let mut rows = db.read_only.fetch(count(&db.read_only)).await.unwrap();
        assert_eq!(rows[0].int("n").unwrap(), 1);
        assert!(schema::check(&db.read_only).await.unwrap().missing_tables.is_empty());
    }

    async fn every_question_gets_its_own_rows(db: TestDb) {
        for key in ["a", "b", "c"] {
            add_row(&db.writable, key).await;
        }
        let keys = |key: &'static str, column: &'static str| {
            let mut q = db.read_only.statement();
            q.push("select workflow_history_event_id as ")
                .push(column)
                .push(" from {workflow_child_projection_repairs} where workflow_history_event_id > ")
                .bind(key)
                .push(" order by workflow_history_event_id");
            q
        };
        let [all, none, last, counted] = [(); 4].map(|()| Answer::default());
        let mut snapshot = db.read_only.snapshot().await.unwrap();
        let questions = vec![
            all.to(keys("", "one")),
            none.to(keys("z", "two")),
            counted.to(count(&db.read_only)),
            last.to(keys("b", "three")),
        ];
        snapshot.ask(questions).await.unwrap();
        let texts = |answer: Answer, column| -> Vec<_> {
            answer.rows().iter().map(|row| row.peek(column).map(str::to_owned)).collect()
        };
        assert_eq!(texts(all, "one"), ["a", "b", "c"].map(|key| Some(key.to_owned())));
        assert_eq!(none.rows().len(), 0);
        assert_eq!(counted.rows()[0].int("n").unwrap(), 3);
        assert_eq!(texts(last, "three"), [Some("c".to_owned())]);

        // What one of them takes badly ends the rest, and the snapshot goes on.
        let later = Answer::default();
        let questions = vec![
            Question::new(keys("", "one"), |_| Err(DbError::ReadOnly)),
            later.to(keys("", "one")),
        ];
        assert!(matches!(snapshot.ask(questions).await, Err(DbError::ReadOnly)));
        assert_eq!(later.rows().len(), 0);
        assert_eq!(snapshot.fetch(keys("", "one")).await.unwrap().len(), 3);
        snapshot.end().await;
    }

    async fn a_snapshot_does_not_see_what_is_committed_beside_it(db: TestDb) {
        let mut snapshot = db.read_only.snapshot().await.unwrap();
        let before = snapshot.fetch(count(&db.read_only)).await.unwrap()[0].int("n").unwrap();
        add_row(&db.writable, "meanwhile").await;
        let during = snapshot.fetch(count(&db.read_only)).await.unwrap()[0].int("n").unwrap();
        snapshot.end().await;
        let after = db.read_only.fetch(count(&db.read_only)).await.unwrap()[0].int("n").unwrap();
        assert_eq!((before, during, after), (0, 0, 1));
    }

    async fn a_dropped_write_leaves_no_trace(db: TestDb) {
        let mut tx = db.writable.write().await.unwrap();
        tx.execute(raw(&db.writable, "insert into {workflow_instances} (id, workflow_class, workflow_type) values ('a', 'b', 'c')"))
            .await
            .unwrap();
        drop(tx);
        let rows = db.writable.fetch(raw(&db.writable, "select id from {workflow_instances}")).await;
        assert_eq!(rows.unwrap().len(), 0);
    }

    async fn a_statement_that_runs_too_long_is_stopped(db: TestDb) {
        let impatient = db.open(|settings| settings.statement_timeout = Duration::from_millis(300)).await;
        let mut q = impatient.statement();
        q.push(db.dialect().pick(
            "with recursive n(x) as (select 1 union all select x + 1 from n) select count(*) as n from n",
            "select pg_sleep(30)",
            "select sleep(30)",
        ));
        let asked = Instant::now();
        let outcome = impatient.fetch(q).await;
        assert!(matches!(outcome, Err(DbError::Timeout { .. })), "{outcome:?}");
        assert!(asked.elapsed() < Duration::from_secs(10));
        // The pool is still good, and the old deadline does not stop what comes next.
        let rows = impatient.fetch(numbers(&impatient)).await.unwrap();
        assert_eq!(rows.len(), 20_000);
        impatient.close().await;
    }

    async fn an_export_may_take_longer_than_a_page(db: TestDb) {
        let impatient = db.open(|settings| {
            settings.statement_timeout = Duration::from_millis(300);
            settings.pool_size = 1;
        }).await;
        let long = raw(&impatient, db.dialect().pick(
            "with recursive n(x) as (select 1 union all select x + 1 from n where x < 4000000) select count(*) as n from n",
            "select pg_sleep(0.7)",
            "select sleep(0.7)",
        ));
        let mut snapshot = impatient.unhurried().await.unwrap();
        let rows: Vec<Row> = snapshot.stream(long.clone()).try_collect().await.unwrap();
        assert_eq!(rows.len(), 1);
        snapshot.end().await;
        // Whoever comes next has no more time than before.
        if db.dialect() != Dialect::Sqlite {
            let outcome = impatient.fetch(long).await;
            assert!(matches!(outcome, Err(DbError::Timeout { .. })), "{outcome:?}");
        }
        impatient.close().await;
    }

    async fn what_is_left_half_way_is_not_read_to_its_end(db: TestDb) {
        let narrow = db.open(|settings| settings.pool_size = 1).await;
        let endless = raw(&narrow, db.dialect().pick(
            "with recursive n(x) as (select 1 union all select x + 1 from n) select x from n",
            "select generate_series(1, 2000000000) as x",
            "with recursive d(x) as (select 1 union all select x + 1 from d where x < 200) \
             select 1 as x from d a join d b join d c join d e",
        ));
        let mut snapshot = narrow.unhurried().await.unwrap();
        let first = snapshot.stream(endless).try_next().await.unwrap();
        assert_eq!(first.unwrap().int("x").unwrap(), 1);
        let next = async {
            snapshot.end().await;
            narrow.fetch(count(&narrow)).await
        };
        let next = tokio::time::timeout(Duration::from_mins(1), next).await;
        assert_eq!(next.expect("the connection is free at once").unwrap().len(), 1);
        narrow.close().await;
    }

    async fn many_rows_stream(db: TestDb) {
        let mut snapshot = db.read_only.snapshot().await.unwrap();
        let mut rows = snapshot.stream(numbers(&db.read_only));
        let mut sum = 0;
        while let Some(mut row) = rows.try_next().await.unwrap() {
            sum += row.int("x").unwrap();
        }
        drop(rows);
        assert_eq!(sum, 20_000 * 20_001 / 2);
        // A stream left half-way gives the snapshot back.
        let first = snapshot.stream(numbers(&db.read_only)).try_next().await.unwrap();
        assert_eq!(first.unwrap().int("x").unwrap(), 1);
        assert_eq!(snapshot.fetch(count(&db.read_only)).await.unwrap().len(), 1);
        snapshot.end().await;
    }

    async fn a_table_prefix_keeps_two_applications_apart(db: TestDb) {
        let other = db.open(|settings| {
            settings.read_only = false;
            settings.prefix = "app_".into();
        }).await;
        let before = schema::check(&other).await.unwrap();
        assert!(before.is_fatal());
        assert_eq!(before.other_prefixes, [""]);
        assert!(schema::create(&other).await.unwrap());
        assert_eq!(schema::check(&other).await.unwrap().verdict, schema::Verdict::Current);
        add_row(&other, "mine").await;
        for (db, want) in [(&other, 1), (&db.writable, 0)] {
            let mut rows = db.fetch(count(db)).await.unwrap();
            assert_eq!(rows[0].int("n").unwrap(), want);
        }
        other.close().await;
    }

    async fn engine_times_are_read_in_the_zone_they_were_written_in(db: TestDb) {
        let mut tx = db.writable.write().await.unwrap();
        let mut q = tx.statement();
        q.push("insert into {workflow_run_summaries} (id, workflow_instance_id, run_number, class, workflow_type, status, status_bucket, started_at, sort_timestamp) values ('r', 'i', 1, 'c', 't', 'waiting', 'running', ")
            .bind("2026-07-01T12:00:00.5".parse::<chrono::NaiveDateTime>().unwrap())
            .push(", ")
            .bind("2026-07-01T10:00:00.5".parse::<chrono::NaiveDateTime>().unwrap())
            .push(")");
        tx.execute(q).await.unwrap();
        tx.commit().await.unwrap();
        let berlin = db.open(|settings| settings.zone = "Europe/Berlin".parse().unwrap()).await;
        let at: chrono::DateTime<chrono::Utc> = "2026-07-01T10:00:00.5Z".parse().unwrap();
        let mut q = berlin.statement();
        q.push("select started_at, sort_timestamp from {workflow_run_summaries} where started_at = ")
            .bind_time(at)
            .push(" and sort_timestamp = ")
            .bind_utc(at);
        let mut rows = berlin.fetch(q).await.unwrap();
        assert_eq!(rows[0].opt_time("started_at").unwrap(), Some(at));
        assert_eq!(rows[0].opt_utc("sort_timestamp").unwrap(), Some(at));
        berlin.close().await;
    }
}

/// 1 to 20,000, without a table.
fn numbers(db: &Db) -> Statement {
    raw(
        db,
        match db.dialect() {
            Dialect::Sqlite => {
                "with recursive n(x) as (select 1 union all select x + 1 from n where x < 20000) select x from n"
            }
            Dialect::Postgres => "select x from generate_series(1, 20000) as n(x)",
            // A recursion is limited to 1,000 steps there, so: four digits, five times over.
            Dialect::MySql => {
                "with recursive d(x) as (select 0 union all select x + 1 from d where x < 199) \
                 select a.x * 100 + b.x + 1 as x from d a join d b on b.x < 100 order by x"
            }
        },
    )
}

/// A backup was put back under the same name: what is told is told of it.
#[tokio::test]
async fn a_file_that_is_replaced_is_read_anew_sqlite() {
    rig::on(Dialect::Sqlite, async |db: TestDb| {
        db.writable.close().await;
        let rows = async || {
            let rows = db.read_only.fetch(count(&db.read_only)).await;
            rows.unwrap()[0].int("n").unwrap()
        };
        assert_eq!(rows().await, 0);
        let file = Path::new(db.url.strip_prefix("sqlite:").unwrap());
        let other = file.with_extension("backup");
        fs::copy(file, &other).unwrap();
        let backup = rusqlite::Connection::open(&other).unwrap();
        backup
            .execute(
                "insert into workflow_child_projection_repairs (workflow_history_event_id, \
                 workflow_run_id, workflow_task_id, history_sequence) values ('a', 'r', 't', 1)",
                [],
            )
            .unwrap();
        drop(backup);
        fs::rename(&other, file).unwrap();
        assert_eq!(rows().await, 1);
    })
    .await;
}
