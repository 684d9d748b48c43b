//! Every statement of the run list walks an index in its order, on every database: none reads
//! the whole table of summaries, none sorts more than the bounded window it fetched. On
//! SQLite nobody gathers statistics, so its plans must be good without them too, and what they ask
//! of other tables they must ask of one run at a time.

use std::collections::BTreeSet;

use plimsoll::{
    db::{Db, Dialect, Statement, Val, recorded},
    demo::{rows::InsertRow, write::write},
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
    shop::{failure_of, now, run_of, summary},
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
    &[("attention", "unhealthy_task")],
    &[("attention", "overdue_activity"), ("namespace", "north")],
    &[("task_problem_code", "history")],
    &[("failure_category", "activity")],
    &[("failure_category", "unclassified")],
    &[
        ("failure_category", "activity"),
        ("status_bucket", "failed"),
    ],
    &[("non_retryable", "1")],
    &[("label[team]", "blue")],
    &[("search_attribute[tier]", "gold")],
    &[("search_attribute[tier]", "7")],
    &[("search_attribute[tier]", "true")],
    &[("search_attribute[tier]", "2026-11-15T12:00:00Z")],
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

/// Runs with what filters ask about besides the summary: two failures of each that failed, of a few
/// categories, and an attribute of a few.
async fn add_runs(db: &TestDb, runs: std::ops::Range<u32>) {
    const CATEGORIES: [Option<&str>; 4] =
        [Some("activity"), Some("application"), Some("timeout"), None];
    let failed = |n: u32| n % 7 == 4;
    let summaries = runs.clone().map(|n| {
        let mut row = summary(n);
        if failed(n) {
            row.replace("exception_count", 2);
        }
        row
    });
    let failures = runs.clone().filter(|n| failed(*n)).flat_map(|n| {
        let category = CATEGORIES[n as usize % 4];
        [failure_of(n, 0, category), failure_of(n, 1, category)]
    });
    let attribute = |n: u32| {
        InsertRow::new("workflow_search_attributes")
            .set("workflow_run_id", format!("01seed{n:020}"))
            .set("workflow_instance_id", format!("seed-{}", n / 2))
            .set("key", "tier")
            .set("type", "keyword")
            .set("value_keyword", ["gold", "silver"][n as usize % 2])
            .set("upserted_at_sequence", 1)
            .stamps(now(), now())
    };
    let attributes = runs
        .clone()
        .filter(|n| n % 70 == 6)
        .flat_map(|n| [run_of(n), attribute(n)]);
    let rows = summaries.chain(failures).chain(attributes).collect();
    write(&db.writable, rows, |_| ()).await.unwrap();
}

on_every_database! {
    async fn every_list_walks_an_index(db: TestDb) {
        // InnoDB would count anew in the background, between two of the plans.
        if db.dialect() == Dialect::MySql {
            for table in [
                "alter table {workflow_run_summaries} stats_auto_recalc = 0",
                "alter table {workflow_failures} stats_auto_recalc = 0",
                "alter table {workflow_search_attributes} stats_auto_recalc = 0",
            ] {
                script(&db, table).await;
            }
        }
        // There a window of 5,000 in 20,000 rows is better sorted than walked, and rightly so.
        let rows = if db.dialect() == Dialect::MySql { ROWS * 3 } else { ROWS };
        add_runs(&db, 0..rows).await;
        if db.dialect() == Dialect::Sqlite {
            every_plan_is_good(&db.read_only, "without statistics").await;
        }
        script(&db, db.dialect().pick(
            "analyze",
            "analyze",
            "analyze table {workflow_run_summaries}, {workflow_failures}, {workflow_search_attributes}",
        )).await;
        // SQLite reads its statistics when it opens a file.
        let fresh = db.open(|_| ()).await;
        every_plan_is_good(&fresh, "with statistics").await;
        fresh.close().await;
    }
}

async fn every_plan_is_good(db: &Db, when: &str) {
    let mut all = Vec::new();
    for params in QUERIES {
        let (filter, errors) = Filter::parse(
            params.iter().copied(),
            &[],
            now(),
            plimsoll::zone::Zone::UTC,
        );
        assert!(errors.is_empty(), "{errors:?}");
        let named = Box::pin(statements(db, &filter)).await;
        all.extend(
            named
                .into_iter()
                .map(|(what, statement)| (format!("{params:?}, {what}"), statement)),
        );
    }
    let clock = plimsoll::clock::Clock::Frozen(now());
    let counts = CountCache::default();
    let (buckets, sent) = Box::pin(recorded(counts.buckets(db, clock))).await;
    buckets.unwrap();
    all.extend(
        sent.into_iter()
            .map(|statement| ("bucket counts".to_owned(), statement)),
    );

    // The run a run is compared with: the last of its type that ended well.
    for n in [777, 778, 779, 780] {
        let run = format!("01seed{n:020}");
        let mut snapshot = db.snapshot().await.unwrap();
        let (partner, sent) = recorded(last_completed(&mut snapshot, &run)).await;
        snapshot.end().await;
        assert!(partner.unwrap().is_some_and(|partner| partner != run));
        all.extend(
            sent.into_iter()
                .map(|statement| (format!("partner of {n}"), statement)),
        );
    }

    let mut seen = BTreeSet::new();
    let mut bad = Vec::new();
    for (what, statement) in all {
        // The same text with other values is the same plan often enough to explain once per list.
        if !seen.insert((what.clone(), statement.sql().to_owned())) {
            continue;
        }
        let plan = explain(db, &statement).await;
        let faults = match db.dialect() {
            Dialect::Sqlite => sqlite_faults(&plan),
            Dialect::Postgres => postgres_faults(&plan, limit_of(&statement)),
            Dialect::MySql => mysql_faults(&plan, limit_of(&statement)),
        };
        if !faults.is_empty() {
            bad.push(format!(
                "{what}: {}\n  {}",
                faults.join("; "),
                short(statement.sql())
            ));
        }
    }
    let name = db.dialect().name();
    eprintln!("EXPLAINED: {} statements on {name} {when}", seen.len());
    assert!(seen.len() > 200);
    assert!(
        bad.is_empty(),
        "{when}, {} of {} plans are bad:\n{}",
        bad.len(),
        seen.len(),
        bad.join("\n")
    );
}

/// Tables asked about the runs of a page, by the names statements give them.
const BESIDE: [&str; 7] = [
    "workflow_failures",
    "f",
    "workflow_search_attributes",
    "a",
    "workflow_history_events",
    "e",
    "activity_executions",
];

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
/// the last term only (blocks of equal times) and around a subquery, which is the window. Other
/// tables are entered with a run's id, or they would be read for all runs.
fn sqlite_faults(plan: &str) -> Vec<String> {
    let lines: Vec<_> = plan.lines().collect();
    let windowed = lines
        .iter()
        .any(|line| *line == "CO-ROUTINE w" || *line == "MATERIALIZE w");
    let is_fault = |line: &&&str| {
        let table = line.starts_with("SCAN workflow_run_summaries");
        let scans = table && !line.contains("USING");
        let sorts = line.contains("USE TEMP B-TREE FOR ORDER BY") && !windowed;
        let mut words = line.split(' ');
        let reads = words
            .next()
            .is_some_and(|word| word == "SCAN" || word == "SEARCH");
        let beside = reads && words.next().is_some_and(|table| BESIDE.contains(&table));
        scans || sorts || beside && !line.contains("(workflow_run_id=")
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
/// time the index is ordered by. What is asked of other tables it may gather for all runs first:
/// it weighs that against asking for each run of the window, and in tables this small it is less.
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

/// `ALL` reads every row. A file sort is fine over a derived table, which is the window. Other tables
/// are weighed as by PostgreSQL.
fn mysql_faults(plan: &str, limit: u64) -> Vec<String> {
    fn walk(value: &Value, sorted: bool, limit: u64, faults: &mut Vec<String>) {
        match value {
            Value::Object(map) => {
                if map
                    .get("table_name")
                    .is_some_and(|name| name == "workflow_run_summaries")
                {
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
