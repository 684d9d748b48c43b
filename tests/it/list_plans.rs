//! Every statement of the run list walks an index in its order, on every database: none reads
//! the whole table of summaries, none sorts more than the bounded window it fetched.

use std::collections::BTreeSet;

use plimsoll::{
    db::{Db, Dialect, Statement, Val, recorded},
    durable::{
        store::head::last_completed,
        store::runs::{
            self, Direction, Filter, PageRequest, Skipped,
            counts::{CAP, CountCache},
            extras,
        },
        stored::{ListedRun, Notices},
    },
};
use serde_json::Value;

use crate::{
    rig::{TestDb, on_every_database},
    shop::{add_summaries, now},
};

const ROWS: u32 = 20_000;

/// One for each access path, plain and windowed, and combinations people use.
const QUERIES: &[&[(&str, &str)]] = &[
    &[],
    &[("queue", "slow")],
    &[("workflow_type", "seed.one")],
    &[("instance_id_contains", "99")],
    &[("started", "24h")],
    &[("started", "24h"), ("queue", "slow")],
    &[("namespace", "north")],
    &[("namespace", "(none)")],
    &[("namespace", "(none)"), ("queue", "slow")],
    &[("namespace", "north"), ("started", "24h")],
    &[("namespace", "north"), ("queue", "slow")],
    &[("namespace", "nobody")],
    &[("namespace", "north"), ("workflow_type", "seed.one")],
    &[("namespace", "(none)"), ("workflow_type", "seed.one")],
    &[
        ("namespace", "north"),
        ("workflow_type", "seed.one"),
        ("status", "failed"),
    ],
    &[("namespace", "north"), ("status_bucket", "failed")],
    &[("namespace", "(none)"), ("status_bucket", "failed")],
    &[
        ("namespace", "north"),
        ("status", "failed"),
        ("started", "24h"),
    ],
    &[("status_bucket", "running")],
    &[("status_bucket", "running"), ("started", "24h")],
    &[("status_bucket", "failed"), ("workflow_type", "seed.two")],
    &[("status", "failed")],
    &[("status", "completed")],
    &[("wait_kind", "signal")],
    &[("liveness_state", "waiting_for_signal")],
    &[("repair_blocked_reason", "unsupported_history")],
    &[("closed_reason", "failed")],
    &[("compatibility", "build-1")],
    &[("workflow_type_prefix", "seed.")],
    &[("workflow_type_contains", "one")],
    &[("archived", "1")],
    &[("needs_repair", "1")],
    &[("attention", "long_waits")],
    &[("attention", "repair_needed"), ("namespace", "north")],
    &[("attention", "failed_past_hour"), ("started", "24h")],
    &[("task_problem_code", "history")],
    &[("failure_category", "activity")],
    &[("non_retryable", "1")],
    &[("label[team]", "blue")],
    &[("search_attribute[tier]", "gold")],
    &[("archived", "0"), ("is_current_run", "1")],
    &[("run_id", "01seed00000000000000000777")],
    &[("instance_id", "seed-777")],
    &[("instance_id", "seed-777"), ("status", "failed")],
    &[("business_key", "SEED-7")],
    &[("business_key", "SEED-7"), ("from", "2026-11-01")],
];

/// The statements of a list: its first page, on and back, the counted page, the total.
async fn statements(db: &Db, filter: &Filter) -> Vec<(String, Statement)> {
    let mut sent = Vec::new();
    let mut snapshot = db.snapshot().await.unwrap();
    let mut keep = |what: &str, statements: Vec<Statement>| {
        sent.extend(
            statements
                .into_iter()
                .map(|statement| (what.to_owned(), statement)),
        );
    };
    for direction in [Direction::NewestFirst, Direction::OldestFirst] {
        let mut request = PageRequest {
            filter: filter.clone(),
            direction,
            cursor: None,
            size: 50,
        };
        let (first, all) = recorded(runs::page::<ListedRun>(&mut snapshot, &request)).await;
        keep("first page", all);
        let first = first.unwrap();
        let (beside, all) = recorded(extras::beside(
            &mut snapshot,
            &first.rows,
            &mut Notices::default(),
        ))
        .await;
        beside.unwrap();
        keep("beside", all);
        request.cursor = first.next;
        if request.cursor.is_some() {
            let (second, all) = recorded(runs::page::<ListedRun>(&mut snapshot, &request)).await;
            keep("next page", all);
            request.cursor = second.unwrap().previous;
            let (_, all) = recorded(runs::page::<ListedRun>(&mut snapshot, &request)).await;
            keep("previous page", all);
        }
        // Among the rows without a time, at the end of the list.
        request.cursor = Some("next~~01seed00000000000000009999".parse().unwrap());
        keep(
            "untimed",
            recorded(runs::page::<ListedRun>(&mut snapshot, &request))
                .await
                .1,
        );
        request.cursor = Some("prev~~01seed00000000000000009999".parse().unwrap());
        keep(
            "back from untimed",
            recorded(runs::page::<ListedRun>(&mut snapshot, &request))
                .await
                .1,
        );
        let (skipped, all) = recorded(runs::skip(&mut snapshot, filter, direction, 100)).await;
        assert!(matches!(
            skipped.unwrap(),
            Skipped::To(_) | Skipped::PastTheEnd | Skipped::PastTheWindow
        ));
        keep("skipped to", all);
    }
    snapshot.end().await;
    let counts = CountCache::default();
    let clock = plimsoll::clock::Clock::Frozen(now());
    let (total, all) = Box::pin(recorded(counts.total(db, clock, String::new(), filter))).await;
    total.unwrap();
    keep("total", all);
    sent
}

pub async fn script(db: &TestDb, sql: &'static str) {
    let mut tx = db.writable.write().await.unwrap();
    tx.script(sql).await.unwrap();
    tx.commit().await.unwrap();
}

on_every_database! {
    async fn every_list_walks_an_index(db: TestDb) {
        // InnoDB would count anew in the background, between two of the plans.
        if db.dialect() == Dialect::MySql {
            script(&db, "alter table {workflow_run_summaries} stats_auto_recalc = 0").await;
        }
        // There a window of 5,000 in 20,000 rows is better sorted than walked, and rightly so.
        let rows = if db.dialect() == Dialect::MySql { ROWS * 3 } else { ROWS };
        add_summaries(&db, 0..rows).await;
        script(&db, db.dialect().pick("analyze", "analyze", "analyze table {workflow_run_summaries}")).await;

        let mut all = Vec::new();
        for params in QUERIES {
            let (filter, errors) = Filter::parse(params.iter().copied(), &[], now(), plimsoll::zone::Zone::UTC);
            assert!(errors.is_empty(), "{errors:?}");
            let named = Box::pin(statements(&db.read_only, &filter)).await;
            all.extend(named.into_iter().map(|(what, statement)| (format!("{params:?}, {what}"), statement)));
        }
        let clock = plimsoll::clock::Clock::Frozen(now());
        let counts = CountCache::default();
        let (buckets, sent) = Box::pin(recorded(counts.buckets(&db.read_only, clock))).await;
        buckets.unwrap();
        all.extend(sent.into_iter().map(|statement| ("bucket counts".to_owned(), statement)));

        // The run a run is compared with: the last of its type that ended well.
        for n in [777, 778, 779, 780] {
            let run = format!("01seed{n:020}");
            let mut snapshot = db.read_only.snapshot().await.unwrap();
            let (partner, sent) = recorded(last_completed(&mut snapshot, &run)).await;
            snapshot.end().await;
            assert!(partner.unwrap().is_some_and(|partner| partner != run));
            all.extend(sent.into_iter().map(|statement| (format!("partner of {n}"), statement)));
        }

        let mut seen = BTreeSet::new();
        let mut bad = Vec::new();
        for (what, statement) in all {
            // The same text with other values is the same plan often enough to explain once per list.
            if !seen.insert((what.clone(), statement.sql().to_owned())) {
                continue;
            }
            let plan = explain(&db.read_only, &statement).await;
            let faults = match db.dialect() {
                Dialect::Sqlite => sqlite_faults(&plan),
                Dialect::Postgres => postgres_faults(&plan, limit_of(&statement)),
                Dialect::MySql => mysql_faults(&plan, limit_of(&statement)),
            };
            if !faults.is_empty() {
                bad.push(format!("{what}: {}\n  {}", faults.join("; "), short(statement.sql())));
            }
        }
        eprintln!("EXPLAINED: {} statements on {}", seen.len(), db.dialect().name());
        assert!(seen.len() > 200);
        assert!(bad.is_empty(), "{} of {} plans are bad:\n{}", bad.len(), seen.len(), bad.join("\n"));
    }
}

/// How many rows are wanted from the index: the page's limit, the window's or the offset.
fn limit_of(statement: &Statement) -> u64 {
    let number = |bind: &Val| match bind {
        Val::Int(n) => u64::try_from(*n).ok(),
        _ => None,
    };
    statement
        .binds()
        .iter()
        .filter_map(number)
        .max()
        .unwrap_or(1)
}

/// The statement without its list of columns.
fn short(sql: &str) -> String {
    sql.replace(ListedRun::COLUMNS, "…")
}

/// The database's plan: lines for SQLite, JSON for the others.
pub async fn explain(db: &Db, statement: &Statement) -> String {
    let mut q = db.statement();
    q.push(db.dialect().pick(
        "explain query plan ",
        "explain (format json) ",
        "explain format=json ",
    ))
    .append(statement);
    let column = db.dialect().pick("detail", "QUERY PLAN", "EXPLAIN");
    let rows = db.fetch(q).await.unwrap();
    let lines = rows.into_iter().map(|mut row| row.text(column).unwrap());
    lines.collect::<Vec<_>>().join("\n")
}

/// `SCAN table` reads every row, unless it follows an index in its order. A sorter is fine for
/// the last term only (blocks of equal times) and around a subquery, which is the window.
fn sqlite_faults(plan: &str) -> Vec<String> {
    let lines: Vec<_> = plan.lines().collect();
    let windowed = lines
        .iter()
        .any(|line| *line == "CO-ROUTINE w" || *line == "MATERIALIZE w");
    let is_fault = |line: &&&str| {
        // The table itself goes by that name where a whole bucket is looked at.
        let table =
            line.starts_with("SCAN workflow_run_summaries") || *line == &"SCAN w" && !windowed;
        let scans = table && !line.contains("USING");
        let sorts = line.contains("USE TEMP B-TREE FOR ORDER BY") && !windowed;
        scans || sorts
    };
    lines
        .iter()
        .filter(is_fault)
        .map(|line| (*line).to_owned())
        .collect()
}

/// A sequential scan reads every row; only a count may start one, where it expects most rows
/// to match and so to stop at its cap. A sort is fine over the window (`w`), and where the index
/// leaves hardly more rows than are wanted; an incremental sort only orders rows that share the
/// time the index is ordered by.
fn postgres_faults(plan: &str, limit: u64) -> Vec<String> {
    fn walk(node: &Value, limit: u64, faults: &mut Vec<String>) {
        let rows = node["Plan Rows"].as_u64().unwrap_or_default();
        match node["Node Type"].as_str().unwrap_or_default() {
            "Seq Scan"
                if node["Relation Name"] == "workflow_run_summaries"
                    && !(limit > u64::from(CAP) && rows > u64::from(ROWS / 2)) =>
            {
                faults.push(format!("sequential scan of {rows} rows"));
            }
            "Sort" => {
                let by = node["Sort Key"].to_string();
                if rows > few(limit) && !by.starts_with("[\"w.") {
                    faults.push(format!("sort of {rows} rows by {by}"));
                }
            }
            _ => {}
        }
        for child in node["Plans"].as_array().into_iter().flatten() {
            walk(child, limit, faults);
        }
    }
    let plan: Value = serde_json::from_str(plan).unwrap();
    let mut faults = Vec::new();
    walk(&plan[0]["Plan"], limit, &mut faults);
    faults
}

/// How many rows may be sorted to give so many.
fn few(limit: u64) -> u64 {
    limit * 2 + 200
}

/// `ALL` reads every row. A file sort is fine over a derived table, which is the window.
fn mysql_faults(plan: &str, limit: u64) -> Vec<String> {
    fn walk(value: &Value, sorted: bool, limit: u64, faults: &mut Vec<String>) {
        match value {
            Value::Object(map) => {
                // By that name also where a whole bucket is looked at; a window is made from something.
                let named = |name: &Value| {
                    let derived = map.keys().any(|key| key.starts_with("materialized"));
                    name == "workflow_run_summaries" || name == "w" && !derived
                };
                if map.get("table_name").is_some_and(named) {
                    if map.get("access_type").is_some_and(|kind| kind == "ALL") {
                        faults.push("full scan".into());
                    }
                    let rows = map.get("rows").and_then(Value::as_u64).unwrap_or_default();
                    if sorted && rows > few(limit) {
                        let key = map.get("key").unwrap_or(&Value::Null);
                        faults.push(format!("file sort of {rows} rows over {key}"));
                    }
                }
                for (key, value) in map {
                    let sorted = match key.as_str() {
                        "filesort" | "temporary_table" => true,
                        // What is made into the derived table is limited by itself.
                        "materialized" | "query_block" => false,
                        _ => sorted,
                    };
                    walk(value, sorted, limit, faults);
                }
            }
            Value::Array(list) => list
                .iter()
                .for_each(|value| walk(value, sorted, limit, faults)),
            _ => {}
        }
    }
    let plan: Value = serde_json::from_str(plan).unwrap();
    let mut faults = Vec::new();
    walk(&plan, false, limit, &mut faults);
    faults
}
