//! Every kind of column the engine's tables have, written with binds and read back the same,
//! from the least value to the greatest and null.

use chrono::NaiveDateTime;
use plimsoll::db::{Db, Dialect, Json, Row, Val};

use crate::rig::{TestDb, on_every_database};

const SQLITE: &str = "create table {column_kinds} (
    flag tinyint(1), tiny integer, small integer, medium integer, large integer,
    ratio double, at_micros datetime, at_seconds datetime,
    document text, name varchar, body text, raw blob, \"key\" varchar)";

const POSTGRES: &str = "create table {column_kinds} (
    flag boolean, tiny smallint, small smallint, medium integer, large bigint,
    ratio double precision, at_micros timestamp(6), at_seconds timestamp(0),
    document json, name varchar(255), body text, raw bytea, \"key\" varchar(191))";

const MYSQL: &str = "create table {column_kinds} (
    flag tinyint(1), tiny tinyint, small smallint, medium int, large bigint,
    ratio double, at_micros timestamp(6) null, at_seconds datetime,
    document json, name varchar(255), body longtext, raw longblob, \"key\" varchar(191))";

const COLUMNS: &str = "flag, tiny, small, medium, large, ratio, at_micros, at_seconds, \
                       document, name, body, raw, \"key\"";

const DOCUMENT: &str =
    r#"{"path":"a\/b","name":"caf\u00e9 \ud83d\ude80","quote":"\"","n":1.50,"deep":[{},[]]}"#;

fn time(text: &str) -> Val {
    Val::Time(text.parse::<NaiveDateTime>().unwrap())
}

fn least() -> Vec<Val> {
    vec![
        false.into(),
        i64::from(i8::MIN).into(),
        i64::from(i16::MIN).into(),
        i32::MIN.into(),
        i64::MIN.into(),
        f64::MIN.into(),
        time("1970-01-01T00:00:01"),
        time("1970-01-01T00:00:01"),
        "[]".into(),
        "".into(),
        "".into(),
        Vec::new().into(),
        "".into(),
    ]
}

fn greatest() -> Vec<Val> {
    vec![
        true.into(),
        i64::from(i8::MAX).into(),
        i64::from(i16::MAX).into(),
        i32::MAX.into(),
        i64::MAX.into(),
        f64::MAX.into(),
        // The last second a MySQL TIMESTAMP can hold.
        time("2038-01-19T03:14:07.999999"),
        time("2038-01-19T03:14:07"),
        DOCUMENT.into(),
        "é".repeat(255).into(),
        "🚢 ".repeat(200_000).into(),
        (0..=255).collect::<Vec<u8>>().repeat(4_000).into(),
        "quote ' \" ` \\ {brace} $1 ? %".into(),
    ]
}

async fn insert(db: &Db, values: Vec<Val>) {
    let mut tx = db.write().await.unwrap();
    let mut q = tx.statement();
    q.push("insert into {column_kinds} (")
        .push(COLUMNS)
        .push(") values ")
        .bind_list(values);
    assert_eq!(tx.execute(q).await.unwrap(), 1);
    tx.commit().await.unwrap();
}

async fn script(db: &Db, sql: &'static str) {
    let mut tx = db.write().await.unwrap();
    tx.script(sql).await.unwrap();
    tx.commit().await.unwrap();
}

async fn make(db: &TestDb) {
    script(&db.writable, db.dialect().pick(SQLITE, POSTGRES, MYSQL)).await;
}

/// Rows in the order of `large`, nulls first.
async fn read(db: &Db) -> Vec<Row> {
    let mut q = db.statement();
    q.push("select ")
        .push(COLUMNS)
        .push(" from {column_kinds} order by large is not null, large");
    db.fetch(q).await.unwrap()
}

/// What a written value reads as, through the getter for its kind.
fn assert_reads_as(row: &mut Row, column: &'static str, written: &Val) {
    match written {
        Val::Bool(want) => assert_eq!(row.bool(column).unwrap(), *want, "{column}"),
        Val::Int(want) => assert_eq!(row.int(column).unwrap(), *want, "{column}"),
        Val::Float(want) => assert_eq!(row.opt_float(column).unwrap(), Some(*want), "{column}"),
        Val::Text(want) => assert_eq!(row.text(column).unwrap(), *want, "{column}"),
        Val::Time(want) => {
            assert_eq!(
                row.opt_utc(column).unwrap(),
                Some(want.and_utc()),
                "{column}"
            );
        }
        Val::Bytes(want) => match row.take(column).unwrap() {
            Val::Bytes(bytes) => assert_eq!(bytes, *want, "{column}"),
            other => panic!("{column}: {}", other.kind()),
        },
        Val::Null | Val::UInt(_) => unreachable!("not in these rows"),
    }
}

const NAMES: [&str; 13] = [
    "flag",
    "tiny",
    "small",
    "medium",
    "large",
    "ratio",
    "at_micros",
    "at_seconds",
    "document",
    "name",
    "body",
    "raw",
    "key",
];

on_every_database! {
    async fn every_kind_reads_back_as_written(db: TestDb) {
        make(&db).await;
        insert(&db.writable, greatest()).await;
        insert(&db.writable, vec![Val::Null; NAMES.len()]).await;
        insert(&db.writable, least()).await;
        let mut rows = read(&db.read_only).await;
        assert_eq!(rows.len(), 3);
        for (name, value) in rows[0].cells() {
            assert_eq!(*value, Val::Null, "{name}");
        }
        for (row, written) in rows[1..].iter_mut().zip([least(), greatest()]) {
            for (name, value) in NAMES.into_iter().zip(&written) {
                assert_reads_as(row, name, value);
            }
        }
    }

    async fn null_getters_say_none_and_the_others_name_the_column(db: TestDb) {
        make(&db).await;
        insert(&db.writable, vec![Val::Null; NAMES.len()]).await;
        let row = || async { read(&db.read_only).await.remove(0) };
        assert_eq!(row().await.opt_bool("flag").unwrap(), None);
        assert_eq!(row().await.opt_int("large").unwrap(), None);
        assert_eq!(row().await.opt_float("ratio").unwrap(), None);
        assert_eq!(row().await.opt_time("at_micros").unwrap(), None);
        assert_eq!(row().await.opt_json("document").unwrap(), None);
        assert_eq!(row().await.opt_text("body").unwrap(), None);
        assert_eq!(
            row().await.int("medium").unwrap_err().to_string(),
            "column medium: expected integer, found null"
        );
    }

    async fn json_is_parsed_with_its_escapes(db: TestDb) {
        make(&db).await;
        insert(&db.writable, greatest()).await;
        let document = read(&db.read_only).await[0].opt_json("document").unwrap();
        let Some(Json::Value(document)) = document else { panic!("{document:?}") };
        assert_eq!(document["path"], "a/b");
        assert_eq!(document["name"], "café 🚀");
    }

    async fn values_are_found_by_the_same_bind_they_were_written_with(db: TestDb) {
        make(&db).await;
        insert(&db.writable, greatest()).await;
        insert(&db.writable, least()).await;
        // JSON has no equality on PostgreSQL, floats none worth having, blobs no need.
        for (name, value) in NAMES.into_iter().zip(greatest()) {
            if ["document", "ratio", "raw"].contains(&name) {
                continue;
            }
            let mut q = db.read_only.statement();
            q.push("select large from {column_kinds} where \"").push(name).push("\" = ").bind(value);
            let mut rows = db.read_only.fetch(q).await.unwrap();
            assert_eq!(rows.len(), 1, "{name}");
            assert_eq!(rows[0].int("large").unwrap(), i64::MAX, "{name}");
        }
    }

    async fn what_does_not_fit_is_refused_and_not_wrapped(db: TestDb) {
        if db.dialect() == Dialect::MySql {
            script(&db.writable, "create table {unsigned_kinds} (tiny tinyint unsigned, small smallint unsigned, medium mediumint unsigned, plain int unsigned, large bigint unsigned)").await;
            let mut tx = db.writable.write().await.unwrap();
            let greatest = [u64::from(u8::MAX), u64::from(u16::MAX), 0xff_ffff, u64::from(u32::MAX), u64::MAX];
            for row in [[0; 5], greatest] {
                let mut q = tx.statement();
                q.push("insert into {unsigned_kinds} values ").bind_list(row);
                tx.execute(q).await.unwrap();
            }
            tx.commit().await.unwrap();
            let mut q = db.read_only.statement();
            q.push("select * from {unsigned_kinds} order by large");
            let rows = db.read_only.fetch(q).await.unwrap();
            for (row, want) in rows.into_iter().zip([[0; 5], greatest]) {
                assert_eq!(row.into_values(), want.map(Val::UInt));
            }
        } else {
            make(&db).await;
            let mut tx = db.writable.write().await.unwrap();
            let mut q = tx.statement();
            q.push("insert into {column_kinds} (large) values ").bind_list([u64::MAX]);
            assert!(tx.execute(q).await.is_err());
        }
    }
}

mod on_one_database {
    use super::*;

    mod jsonb_zoned_times_and_padded_text_are_read {
        use super::*;

        #[tokio::test]
        async fn postgres() {
            crate::rig::on(Dialect::Postgres, async |db: TestDb| {
                let mut q = db.read_only.statement();
                q.push(
                    "select '[1, \"a\"]'::jsonb as j, '2026-04-05 12:11:12+02'::timestamptz as at, \
                 'ab'::char(4) as c, 1.5::real as r, current_schema() as s",
                );
                let mut row = db.read_only.fetch(q).await.unwrap().remove(0);
                assert_eq!(row.text("j").unwrap(), "[1, \"a\"]");
                assert_eq!(
                    row.opt_utc("at").unwrap(),
                    Some("2026-04-05T10:11:12Z".parse().unwrap())
                );
                assert_eq!(row.text("c").unwrap(), "ab  ");
                assert_eq!(row.opt_float("r").unwrap(), Some(1.5));
                assert_eq!(row.text("s").unwrap(), "public");
            })
            .await;
        }
    }

    mod what_is_stored_decides_not_what_is_declared {
        use super::*;

        #[tokio::test]
        async fn sqlite() {
            crate::rig::on(Dialect::Sqlite, async |db: TestDb| {
                script(&db.writable, SQLITE).await;
                script(
                    &db.writable,
                    "insert into {column_kinds} (name, ratio, at_micros, at_seconds, body, tiny) \
                 values (7, 3, '2026-04-05', '2026-04-05T10:11:12.5Z', x'6869', '42')",
                )
                .await;
                let mut row = read(&db.read_only).await.remove(0);
                let time = |text: &str| Some(text.parse().unwrap());
                assert_eq!(row.text("name").unwrap(), "7");
                assert_eq!(row.opt_float("ratio").unwrap(), Some(3.0));
                assert_eq!(
                    row.opt_time("at_micros").unwrap(),
                    time("2026-04-05T00:00:00Z")
                );
                assert_eq!(
                    row.opt_time("at_seconds").unwrap(),
                    time("2026-04-05T10:11:12.5Z")
                );
                assert_eq!(row.text("body").unwrap(), "hi");
                assert_eq!(row.int("tiny").unwrap(), 42);
            })
            .await;
        }
    }

    mod times_stay_as_written_in_any_session_zone {
        use super::*;

        #[tokio::test]
        async fn mysql() {
            crate::rig::on(Dialect::MySql, async |db: TestDb| {
                make(&db).await;
                let east = db
                    .open(|settings| {
                        settings.read_only = false;
                        settings.mysql_session_zone = Some("+02:00".into());
                    })
                    .await;
                insert(&east, greatest_but_earlier()).await;
                let want = Some("2026-07-01T12:00:00.5Z".parse().unwrap());
                assert_eq!(read(&east).await[0].opt_utc("at_micros").unwrap(), want);
                // Another session zone shifts a TIMESTAMP, which is why the zone is a setting.
                let shifted = read(&db.read_only).await[0].opt_utc("at_micros").unwrap();
                assert_eq!(shifted, Some("2026-07-01T10:00:00.5Z".parse().unwrap()));
                east.close().await;
            })
            .await;
        }
    }

    fn greatest_but_earlier() -> Vec<Val> {
        let mut values = greatest();
        values[6] = time("2026-07-01T12:00:00.5");
        values
    }
}
