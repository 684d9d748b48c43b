//! Whatever stands in a row, every address that shows it answers, and says what it could not
//! take. SQLite, because there anything may stand anywhere.

use std::io::Cursor;

use axum_test::TestServer;
use plimsoll::{
    db::{Db, Dialect, Row, Statement, Val},
    demo::Situation,
    durable::{
        engine_config::EngineConfig,
        export::stream,
        store::schema::{self, Column, Kind, Table},
        stored::{
            AttemptRow, CommandRow, ExecutionRow, FailureRecord, HistoryEvent, LinkRow, MessageRow,
            RunRow, RunSummary, SignalRow, TaskRow, TimerRow, UpdateRow,
        },
    },
    web::bundles,
};

use crate::{
    checker,
    export::exported,
    rig,
    shop::{fill, now, server},
};

const CASES: usize = 200;

/// Columns by which rows find each other: another value makes it another run's row.
const KEYS: [&str; 4] = [
    "id",
    "workflow_run_id",
    "workflow_instance_id",
    "parent_workflow_run_id",
];

/// The tables whose rows a run's answer is read from, with the columns read whatever they hold.
const READ: [(&str, &str); 16] = [
    (
        INSTANCES,
        "namespace, business_key, visibility_labels, execution_timeout_seconds",
    ),
    // Of the values only the one that the type names is read.
    ("workflow_search_attributes", ""),
    ("workflow_memos", ""),
    (RunRow::TABLE, RunRow::COLUMNS),
    (RunSummary::TABLE, RunSummary::COLUMNS),
    (HistoryEvent::TABLE, HistoryEvent::COLUMNS),
    (TaskRow::TABLE, TaskRow::COLUMNS),
    (ExecutionRow::TABLE, ExecutionRow::COLUMNS),
    (AttemptRow::TABLE, AttemptRow::COLUMNS),
    (FailureRecord::TABLE, FailureRecord::COLUMNS),
    (TimerRow::TABLE, TimerRow::COLUMNS),
    (CommandRow::TABLE, CommandRow::COLUMNS),
    (SignalRow::TABLE, SignalRow::COLUMNS),
    (UpdateRow::TABLE, UpdateRow::COLUMNS),
    (LinkRow::TABLE, LinkRow::COLUMNS),
    (MessageRow::TABLE, MessageRow::COLUMNS),
];

const INSTANCES: &str = "workflow_instances";

/// Columns that hold a word of the engine.
const WORDS: [(&str, &str); 12] = [
    (RunRow::TABLE, "status"),
    (RunSummary::TABLE, "liveness_state"),
    (HistoryEvent::TABLE, "event_type"),
    (TaskRow::TABLE, "status"),
    (TaskRow::TABLE, "task_type"),
    (ExecutionRow::TABLE, "status"),
    (AttemptRow::TABLE, "status"),
    (TimerRow::TABLE, "status"),
    (CommandRow::TABLE, "status"),
    (CommandRow::TABLE, "command_type"),
    (SignalRow::TABLE, "status"),
    (UpdateRow::TABLE, "status"),
];

/// Tables that miss no row without others telling.
const MISSED: [&str; 3] = [INSTANCES, RunSummary::TABLE, HistoryEvent::TABLE];

/// Those the list shows something of.
const LISTED: [&str; 4] = [
    RunRow::TABLE,
    RunSummary::TABLE,
    FailureRecord::TABLE,
    ExecutionRow::TABLE,
];

fn table(name: &str) -> &'static Table {
    let found = schema::tables().iter().find(|table| table.name == name);
    found.expect("a table of the engine")
}

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % n
    }
}

/// Something the column should not hold, and whether that must be noted.
fn wrong(kind: Kind, dice: &mut Dice) -> (Val, bool) {
    let values = match kind {
        Kind::Time => vec![
            ("soon".into(), true),
            ("2326-01-01 00:00:00".into(), true),
            ("+262142-12-31 23:59:59".into(), true),
            (Val::Int(5), true),
            (Val::Float(0.5), true),
            (Val::Bytes(vec![0xff]), true),
            ("2026-11-15 11:59:59.999999".into(), false),
            ("2031-06-30 12:00:00".into(), false),
        ],
        Kind::Int => vec![
            ("many".into(), true),
            (Val::Float(0.5), true),
            (Val::Bytes(vec![0xff]), true),
            (Val::Int(i64::MAX), false),
            (Val::Int(i64::MIN), false),
        ],
        Kind::Bool => vec![("yes".into(), true), (Val::Bytes(vec![0xff]), true)],
        Kind::Float => vec![("much".into(), false)],
        Kind::Text => vec![
            ("{\"cut\":".into(), false),
            (Val::Int(i64::MAX), false),
            (Val::Float(0.5), false),
            (Val::Bytes(vec![0xff, 0x00]), false),
            ("".into(), false),
        ],
    };
    values[dice.below(values.len())].clone()
}

async fn rows_of(db: &Db, table: &'static str, situation: &Situation) -> Vec<Row> {
    let (key, id) = match table {
        INSTANCES => ("id", &situation.instance_id),
        "workflow_runs" | "workflow_run_summaries" => ("id", &situation.run_id),
        "workflow_links" => ("parent_workflow_run_id", &situation.run_id),
        _ => ("workflow_run_id", &situation.run_id),
    };
    let mut q = db.statement();
    q.push("select * from {").push(table).push("} where ");
    q.push(key).push(" = ").bind(id).push(" order by id");
    db.fetch(q).await.unwrap()
}

/// Puts a value into one cell; false where the table itself refuses it.
async fn put(db: &Db, table: &'static str, column: &Column, id: &Val, value: Val) -> bool {
    let mut q = db.statement();
    q.push("update {")
        .push(table)
        .push("} set \"")
        .push(column.name);
    q.push("\" = ")
        .bind(value)
        .push(" where id = ")
        .bind(id.clone());
    execute(db, q).await
}

async fn delete(db: &Db, table: &'static str, id: &Val) -> bool {
    let mut q = db.statement();
    q.push("delete from {").push(table).push("} where id = ");
    q.bind(id.clone());
    execute(db, q).await
}

/// The row as it was.
async fn insert(db: &Db, name: &'static str, row: &Row) -> bool {
    let columns = || table(name).columns.iter().map(|column| column.name);
    let mut q = db.statement();
    q.push("insert into {").push(name).push("} (");
    for (n, column) in columns().enumerate() {
        q.push(if n == 0 { "\"" } else { ", \"" });
        q.push(column).push("\"");
    }
    q.push(") values (");
    let mut row = row.clone();
    for (n, column) in columns().enumerate() {
        q.push(if n == 0 { "" } else { ", " });
        q.bind(row.take(column).unwrap());
    }
    q.push(")");
    execute(db, q).await
}

async fn execute(db: &Db, q: Statement) -> bool {
    let mut tx = db.write().await.unwrap();
    if tx.execute(q).await.is_err() {
        return false;
    }
    tx.commit().await.unwrap();
    true
}

/// Asks for the run wherever the row is shown; the notices of its JSON.
async fn ask(
    server: &TestServer,
    situation: &Situation,
    listed: bool,
    what: &str,
) -> Vec<serde_json::Value> {
    let encoded = |text: &str| {
        url::form_urlencoded::byte_serialize(text.as_bytes())
            .collect::<String>()
            .replace('+', "%20")
    };
    let (instance, run) = (encoded(&situation.instance_id), encoded(&situation.run_id));
    let mut paths = vec![
        format!("/waterline/api/instances/{instance}/runs/{run}"),
        format!("/waterline/api/flows/{run}?history_limit=all"),
        format!("/waterline/instances/{instance}/runs/{run}"),
    ];
    if listed {
        paths.push("/waterline/api/flows/all".to_owned());
        paths.push("/waterline/runs?per_page=100".to_owned());
    }
    let mut notices = Vec::new();
    for path in paths {
        let response = server.get(&path).await;
        assert_eq!(
            response.status_code(),
            200,
            "{what}: {path} {}",
            response.text()
        );
        if path.ends_with(&format!("/runs/{run}")) && path.contains("/api/") {
            let document: serde_json::Value = response.json();
            let found = document["plimsoll"]["notices"].as_array();
            notices.extend(found.expect("a list").iter().cloned());
        }
    }
    notices
}

/// A row that is not as the engine wrote it.
struct Case<'s> {
    situation: &'s Situation,
    table: &'static str,
    column: &'static Column,
    /// The row as it was.
    before: Row,
    gone: bool,
    /// A notice must tell of it.
    noted: bool,
    what: String,
}

impl<'s> Case<'s> {
    /// Damages some row; none where the dice found nothing to damage.
    async fn make(db: &Db, situations: &'s [Situation], dice: &mut Dice) -> Option<Self> {
        let situation = &situations[dice.below(situations.len())];
        let (name, read) = READ[dice.below(READ.len())];
        let rows = rows_of(db, name, situation).await;
        if rows.is_empty() {
            return None;
        }
        let before = rows[dice.below(rows.len())].clone();
        let table = table(name);
        let words: Vec<_> = WORDS.iter().filter(|(table, _)| *table == name).collect();
        let columns = &table.columns;
        let is_read = |column: &str| read.split(", ").any(|read| read == column);
        let (column, value, noted) = match dice.below(5) {
            // A run that is not there is another answer.
            0 if name != RunRow::TABLE => {
                let noted =
                    MISSED.contains(&name) && (name != HistoryEvent::TABLE || rows.len() > 1);
                (&columns[0], None, noted)
            }
            1 => (&columns[dice.below(columns.len())], Some(Val::Null), false),
            2 if !words.is_empty() => {
                let (_, word) = words[dice.below(words.len())];
                let column = columns.iter().find(|column| column.name == *word)?;
                (column, Some("renamed".into()), true)
            }
            _ => {
                let column = &columns[dice.below(columns.len())];
                let (value, must_be_noted) = wrong(column.kind, dice);
                (column, Some(value), must_be_noted && is_read(column.name))
            }
        };
        if value.is_some() && KEYS.contains(&column.name) {
            return None;
        }
        let case = Self {
            situation,
            table: name,
            column,
            gone: value.is_none(),
            noted,
            what: format!("{} {name}.{} = {value:?}", situation.name, column.name),
            before,
        };
        let id = case.id();
        let done = match value {
            Some(value) => put(db, name, column, &id, value).await,
            None => delete(db, name, &id).await,
        };
        done.then_some(case)
    }

    fn id(&self) -> Val {
        self.before.clone().take("id").unwrap()
    }

    /// Whether these notices tell of it.
    fn is_told<'n>(&self, mut notices: impl Iterator<Item = (&'n str, &'n str)>) -> bool {
        notices
            .any(|(table, column)| table == self.table && (self.gone || column == self.column.name))
    }

    async fn put_back(self, db: &Db) {
        let id = self.id();
        let back = if self.gone {
            insert(db, self.table, &self.before).await
        } else {
            let value = self.before.clone().take(self.column.name).unwrap();
            put(db, self.table, self.column, &id, value).await
        };
        assert!(back, "{} is put back", self.what);
    }
}

#[tokio::test]
async fn every_address_answers_whatever_stands_in_a_row() {
    rig::on(Dialect::Sqlite, |db| async move {
        let situations = fill(&db).await;
        let mut dice = Dice(20_261_115);
        let mut noted = 0;
        let mut asked = 0;
        while asked < CASES {
            let Some(case) = Case::make(&db.writable, &situations, &mut dice).await else {
                continue;
            };
            // A server of its own: counts are remembered for a while.
            let listed = LISTED.contains(&case.table);
            let server = server(&db.read_only);
            let notices = ask(&server, case.situation, listed, &case.what).await;
            if case.noted {
                let text =
                    |value: &'_ serde_json::Value| value.as_str().unwrap_or_default().to_owned();
                let told: Vec<_> = notices
                    .iter()
                    .map(|notice| (text(&notice["table"]), text(&notice["column"])))
                    .collect();
                let told = told
                    .iter()
                    .map(|(table, column)| (table.as_str(), column.as_str()));
                assert!(
                    case.is_told(told),
                    "{} is not noted: {notices:?}",
                    case.what
                );
                noted += 1;
            }
            case.put_back(&db.writable).await;
            asked += 1;
        }
        assert!(
            noted > CASES / 4,
            "only {noted} of {CASES} were to be noted"
        );
    })
    .await;
}

/// A bundle has no place for notices: it is whole and sealed, and whoever made it is told.
#[tokio::test]
async fn every_export_is_whole_whatever_stands_in_a_row_sqlite() {
    rig::on(Dialect::Sqlite, |db| async move {
        let situations = fill(&db).await;
        let config = EngineConfig::defaults();
        let mut dice = Dice(15_112_026);
        let (mut noted, mut made) = (0, 0);
        while made < CASES || noted < CASES / 4 {
            assert!(made < 2 * CASES, "only {noted} of {made} were to be noted");
            let Some(case) = Case::make(&db.writable, &situations, &mut dice).await else {
                continue;
            };
            let options = stream::Options {
                now: now(),
                config: &config,
                policy: None,
                key: None,
                batch: 50,
            };
            let run = &case.situation.run_id;
            let (text, done) = exported(&db.read_only, run, options)
                .await
                .unwrap_or_else(|error| panic!("{}: {error}", case.what));
            checker::check(&text, None).unwrap_or_else(|wrong| panic!("{}: {wrong}", case.what));
            // It can be opened again, however damaged.
            let opened = bundles::read(Cursor::new(&text), 0, None);
            assert!(opened.is_ok(), "{}: {:?}", case.what, opened.err());
            // Messages are no part of a bundle; what a row is missed by is told of a run.
            if case.noted && !case.gone && case.table != MessageRow::TABLE {
                let told = done.notices.list().iter();
                let told = told.map(|notice| (notice.table, notice.column));
                assert!(
                    case.is_told(told),
                    "{} is not noted: {:?}",
                    case.what,
                    done.notices
                );
                noted += 1;
            }
            case.put_back(&db.writable).await;
            made += 1;
        }
    })
    .await;
}

#[tokio::test]
async fn the_pages_tell_what_they_could_not_take() {
    rig::on(Dialect::Sqlite, |db| async move {
        let situations = fill(&db).await;
        let situation = &situations[0];
        let column = table("workflow_run_summaries")
            .column("started_at")
            .unwrap();
        let id = Val::from(&situation.run_id);
        assert!(
            put(
                &db.writable,
                "workflow_run_summaries",
                &column,
                &id,
                "<soon>".into()
            )
            .await
        );
        let server = server(&db.read_only);
        let (instance, run) = (&situation.instance_id, &situation.run_id);
        for path in [
            format!("/waterline/instances/{instance}/runs/{run}"),
            "/waterline/runs?per_page=100".to_owned(),
        ] {
            let html = server.get(&path).await.text();
            assert!(
                html.contains("workflow_run_summaries.started_at"),
                "{path}: {html}"
            );
            assert!(html.contains("is not a time and is left out"), "{path}");
            assert!(
                html.contains("&lt;soon&gt;") || html.contains("&#60;soon&#62;"),
                "{path}: {html}"
            );
        }
    })
    .await;
}
