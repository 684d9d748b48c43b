//! Whatever becomes of its rows, a run is told: nothing panics, what is unknown is shown, what
//! is wrong is noted. Rows of the demo's situations and of the corpus, damaged in memory.

use std::{collections::BTreeSet, fs, path::Path};

use chrono::{DateTime, Utc};
use proptest::{
    prelude::*,
    test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner},
};
use serde_json::{Value, json};

use super::{
    engine_config::EngineConfig,
    projection::{
        Context, Projected, detail::detail, diagnosis::diagnose, drift::drift, notices,
        retries::retry_state,
    },
    store::{
        run_rows::{Extent, RunRows},
        schema,
        snapshot::{RunSnapshot, TimelineCache},
    },
    stored::{
        AttemptRow, CommandRow, ExecutionRow, FailureRecord, HeartbeatRow, HistoryEvent,
        LineageEntry, LinkRow, MessageRow, Problem, RunRow, RunSummary, SignalRow, TaskRow,
        TimelineEntry, TimerEntry, TimerRow, UpdateRow, WaitEntry,
    },
};
use crate::{
    db::{Db, Row, Settings, Val},
    demo::{catalogue, write::write},
};

/// Another seed: PLIMSOLL_DAMAGE_SEED, a number.
const SEED: u64 = 20_261_115;

/// Words the engine's detail does not take from these columns where history, the summary or a
/// rule outranks them. The notice shows them.
const OUTRANKED: &[(&str, &str)] = &[
    ("activity_attempts", "status"),
    ("activity_executions", "status"),
    ("workflow_failures", "failure_category"),
    ("workflow_run_summaries", "repair_blocked_reason"),
    ("workflow_run_summaries", "status"),
    ("workflow_run_timers", "status"),
    ("workflow_runs", "closed_reason"),
    ("workflow_runs", "status"),
    ("workflow_updates", "status"),
];

fn now() -> DateTime<Utc> {
    "2026-11-15T12:00:00Z".parse().expect("a moment")
}

/// Name and kind of each column of a table.
fn kinds(table: &str) -> &'static [(&'static str, &'static str)] {
    macro_rules! of {
        ($($row:ident)+) => {
            match table {
                $($row::TABLE => $row::KINDS,)+
                other => panic!("no rows of {other} are read"),
            }
        };
    }
    of!(RunRow RunSummary TaskRow ExecutionRow AttemptRow FailureRecord TimerRow CommandRow
        SignalRow UpdateRow LinkRow MessageRow HeartbeatRow WaitEntry TimelineEntry TimerEntry
        LineageEntry HistoryEvent)
}

/// What is done to one row.
#[derive(Clone, Copy, Debug)]
enum Damage {
    Delete,
    Null,
    Rename,
    CutJson,
    ReplaceJson,
    ReplaceInside,
    MoveTime,
    WrongKind,
}

/// Which run, list, row, column and value: numbers that are taken modulo what there is.
#[derive(Clone, Copy, Debug)]
struct Case {
    damage: Damage,
    run: usize,
    list: usize,
    row: usize,
    column: usize,
    value: usize,
}

fn case() -> impl Strategy<Value = Case> {
    let damage = prop::sample::select(vec![
        Damage::Delete,
        Damage::Null,
        Damage::Rename,
        Damage::CutJson,
        Damage::ReplaceJson,
        Damage::ReplaceInside,
        Damage::MoveTime,
        Damage::WrongKind,
    ]);
    let n = || 0..1_000_000_usize;
    (damage, n(), n(), n(), n(), n()).prop_map(|(damage, run, list, row, column, value)| Case {
        damage,
        run,
        list,
        row,
        column,
        value,
    })
}

/// What was done, and what must be said about it.
#[derive(Debug)]
#[expect(dead_code, reason = "from and to are shown when a case fails")]
struct Done {
    table: &'static str,
    column: &'static str,
    from: Option<String>,
    to: Option<String>,
    notice: Option<Problem>,
    /// Text the output must show.
    shows: Option<String>,
}

const SCALARS: [&str; 4] = ["5", "\"word\"", "true", "-1.5e300"];
const DOCUMENTS: [&str; 6] = [
    "[]",
    "{}",
    "null",
    "[[[[]]],{\"a\":[]}]",
    "{\"\":null}",
    "[null]",
];
/// Six of another century, three that are no time, three that may well be.
const MOMENTS: [&str; 12] = [
    "0001-01-01 00:00:00",
    "1754-08-30 22:43:41.128654",
    "2326-11-15 12:00:00",
    "9999-12-31 23:59:59.999999",
    "+262142-12-31 23:59:59.999999",
    "-262143-01-01 00:00:00",
    "soon",
    "0000-00-00 00:00:00",
    "",
    "2026-11-15 11:59:59.999999",
    "2026-11-15 12:00:00.000001",
    "2031-06-30 12:00:00",
];

fn leaves() -> Vec<Value> {
    vec![
        Value::Null,
        json!([]),
        json!({}),
        json!("word"),
        json!(""),
        json!(-1),
        json!(i64::MAX),
        json!(i64::MIN),
        json!(u64::MAX),
        json!(1.5e300),
        json!(true),
        json!("9999-12-31T23:59:59.999999Z"),
        json!("+262142-12-31T23:59:59Z"),
        json!("-262143-01-01T00:00:00Z"),
        json!([[{}], null, 1]),
        json!({"id": {"id": []}}),
    ]
}

/// Replaces the `n`th value inside a document, counted as it is read.
fn replace_inside(value: &mut Value, n: &mut usize, with: &Value) -> bool {
    if *n == 0 {
        *value = with.clone();
        return true;
    }
    *n -= 1;
    match value {
        Value::Array(items) => items.iter_mut().any(|item| replace_inside(item, n, with)),
        Value::Object(map) => map.values_mut().any(|item| replace_inside(item, n, with)),
        _ => false,
    }
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(map) => map.values().map(count).sum(),
        _ => 0,
    }
}

/// Does it; none where the row has no such column.
fn damage(rows: &mut RunRows, case: Case) -> Option<Done> {
    let mut lists = rows.lists();
    lists.retain(|(_, rows)| !rows.is_empty());
    // The run's own row counts as one more list.
    let pick = case.list % (lists.len() + 1);
    if pick == lists.len() {
        return damage_row(RunRow::TABLE, rows.own(), case);
    }
    let (table, rows) = lists.swap_remove(pick);
    let at = case.row % rows.len();
    if matches!(case.damage, Damage::Delete) {
        let events = rows.len();
        rows.remove(at);
        let (column, notice) = match table {
            HistoryEvent::TABLE if events > 1 => ("sequence", Some(Problem::MissingRows)),
            RunSummary::TABLE => ("id", Some(Problem::MissingRow)),
            _ => ("id", None),
        };
        return Some(Done {
            table,
            column,
            from: None,
            to: None,
            notice,
            shows: None,
        });
    }
    damage_row(table, &mut rows[at], case)
}

/// Read as a value, or kept as text until asked for.
fn is_json(kind: &str) -> bool {
    matches!(kind, "json" | "raw")
}

fn damage_row(table: &'static str, row: &mut Row, case: Case) -> Option<Done> {
    let fits = |kind: &str| match case.damage {
        Damage::Delete => false,
        Damage::Null | Damage::WrongKind => true,
        Damage::Rename => kind == "word",
        Damage::CutJson | Damage::ReplaceJson | Damage::ReplaceInside => is_json(kind),
        Damage::MoveTime => matches!(kind, "time" | "utc"),
    };
    let columns: Vec<_> = kinds(table).iter().filter(|(_, kind)| fits(kind)).collect();
    let (column, kind) = **columns.get(case.column % columns.len().max(1))?;
    let kind = if is_json(kind) { "json" } else { kind };
    let before = row
        .cells()
        .find(|(name, _)| *name == column)
        .map(|(_, value)| value.clone())?;
    let text = match &before {
        Val::Text(text) => Some(text.clone()),
        _ => None,
    };
    let mut shows = None;
    let (value, notice) = match case.damage {
        Damage::Delete => return None,
        Damage::Null => (Val::Null, None),
        Damage::Rename => {
            let word = format!("renamed_{}", case.value % 1_000);
            shows = Some(word.clone());
            (Val::Text(word), Some(Problem::UnknownWord))
        }
        Damage::CutJson => {
            let text = text.filter(|text| text.len() > 2)?;
            let mut at = 1 + case.value % (text.len() - 1);
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            let cut = at > 0 && at < text.len();
            (Val::from(&text[..at]), cut.then_some(Problem::NotJson))
        }
        Damage::ReplaceJson => {
            let pick = case.value % (SCALARS.len() + DOCUMENTS.len());
            match SCALARS.get(pick) {
                Some(scalar) => (Val::from(*scalar), Some(Problem::NotACollection)),
                None => (Val::from(DOCUMENTS[pick - SCALARS.len()]), None),
            }
        }
        Damage::ReplaceInside => {
            let mut document: Value = serde_json::from_str(&text?).ok()?;
            let leaves = leaves();
            let leaf = &leaves[case.value % leaves.len()];
            let inner = count(&document) - 1;
            if inner == 0 {
                return None;
            }
            let mut n = 1 + (case.value / leaves.len()) % inner;
            replace_inside(&mut document, &mut n, leaf);
            (Val::Text(document.to_string()), None)
        }
        Damage::MoveTime => {
            let pick = case.value % MOMENTS.len();
            let problem = match pick {
                0..6 => Some(Problem::ImplausibleTime),
                6..9 => Some(Problem::NotATime),
                _ => None,
            };
            (Val::from(MOMENTS[pick]), problem)
        }
        Damage::WrongKind => {
            let values = [
                Val::Int(i64::MAX),
                Val::Int(i64::MIN),
                Val::Int(-1),
                Val::Float(1e300),
                Val::Float(0.5),
                Val::from("a word"),
                Val::Bytes(vec![0xff, 0, 0x7b]),
            ];
            let value = values[case.value % values.len()].clone();
            let notice = match (kind, &value) {
                ("int" | "flag", Val::Int(_)) | ("text", _) => None,
                ("int", _) => Some(Problem::NotAnInteger),
                ("flag", _) => Some(Problem::NotABoolean),
                ("time" | "utc", _) => Some(Problem::NotATime),
                ("word", _) => Some(Problem::UnknownWord),
                ("json", Val::Int(_) | Val::Float(_)) => Some(Problem::NotACollection),
                _ => Some(Problem::NotJson),
            };
            (value, notice)
        }
    };
    let done = Done {
        table,
        column,
        from: before.shown(),
        to: value.shown(),
        notice,
        shows,
    };
    row.put(column, value);
    Some(done)
}

/// Tells the run from its damaged rows, as the API does.
fn tell(rows: RunRows, config: &EngineConfig) -> (Value, super::stored::Notices) {
    let snapshot = RunSnapshot::of(rows, TimelineCache::Whole).expect("rows are always read");
    let projected = Projected::of(Context {
        snapshot: &snapshot,
        now: now(),
        config,
    });
    let document = detail(&projected, None);
    let diagnosis = diagnose(&projected);
    assert!(!diagnosis.sentence.is_empty() && !diagnosis.next_step.is_empty());
    json!(drift(&projected));
    json!(projected.standing);
    for activity in &projected.activities {
        json!(retry_state(projected.cx, activity));
    }
    (
        serde_json::to_value(&document).expect("JSON"),
        notices::notices(&projected),
    )
}

fn check(runs: &[RunRows], config: &EngineConfig, case: Case) -> Result<(), TestCaseError> {
    let mut rows = runs[case.run % runs.len()].clone();
    let Some(done) = damage(&mut rows, case) else {
        return Err(TestCaseError::reject("the row has no such column"));
    };
    let (document, notices) = tell(rows, config);
    if let Some(problem) = done.notice {
        let noted = notices.list().iter().any(|notice| {
            (notice.table, notice.column, notice.problem) == (done.table, done.column, problem)
                && (done.shows.is_none() || notice.raw == done.shows)
        });
        prop_assert!(noted, "{done:?} is not noted: {:?}", notices.list());
    }
    if let Some(word) = &done.shows {
        let outranked = OUTRANKED.contains(&(done.table, done.column));
        prop_assert!(
            outranked || document.to_string().contains(word),
            "{done:?} is not shown"
        );
    }
    Ok(())
}

async fn fetch_all(db: &Db) -> Vec<RunRows> {
    let mut snapshot = db.snapshot().await.unwrap();
    let mut q = snapshot.statement();
    q.push("select id from {workflow_runs} order by id");
    let mut runs = Vec::new();
    for mut row in snapshot.fetch(q).await.unwrap() {
        let id = row.text("id").unwrap();
        let rows = RunRows::fetch(
            &mut snapshot,
            &id,
            TimelineCache::Whole,
            Extent::Unread,
            None,
        )
        .await;
        runs.extend(rows.unwrap().map(|(rows, _)| rows));
    }
    snapshot.end().await;
    runs
}

async fn demo() -> Vec<RunRows> {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("demo.sqlite").display());
    let mut settings = Settings::new(url).writable();
    settings.create = true;
    let db = Db::connect(&settings).await.unwrap();
    schema::create(&db).await.unwrap();
    let rows = catalogue(now())
        .flat_map(|situation| situation.rows)
        .collect();
    write(&db, rows, |_| ()).await.unwrap();
    let runs = fetch_all(&db).await;
    db.close().await;
    runs
}

/// Runs of some of the recorded states, where there are any, with the states' names.
async fn recorded(part: &str, every: usize) -> Vec<(String, RunRows)> {
    let root = std::env::var_os("PLIMSOLL_CORPUS_UNPACKED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("target/corpus"),
        Into::into,
    );
    let mut folders: Vec<_> = fs::read_dir(root.join(part))
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path().join("db.sqlite")))
        .filter(|file| file.exists())
        .collect();
    folders.sort();
    let mut runs = Vec::new();
    for file in folders.iter().step_by(every) {
        let settings = Settings::new(format!("sqlite:{}", file.display()));
        let db = Db::connect(&settings).await.unwrap();
        let name = file.parent().and_then(Path::file_name).unwrap_or_default();
        let name = name.to_string_lossy();
        let found = fetch_all(&db).await.into_iter().take(3);
        runs.extend(found.map(|run| (name.to_string(), run)));
        db.close().await;
    }
    runs
}

fn run_cases(runs: &[RunRows], cases: u32) {
    let seed = std::env::var("PLIMSOLL_DAMAGE_SEED").map_or(SEED, |seed| {
        seed.parse().expect("PLIMSOLL_DAMAGE_SEED is a number")
    });
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config = Config {
        cases,
        failure_persistence: None,
        max_global_rejects: 10 * cases,
        ..Config::default()
    };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let engine = EngineConfig::defaults();
    let mut runner = TestRunner::new_with_rng(config, rng);
    if let Err(failure) = runner.run(&case(), |case| check(runs, &engine, case)) {
        panic!(
            "PLIMSOLL_DAMAGE_SEED={seed}, {} runs: {failure}",
            runs.len()
        );
    }
}

#[tokio::test]
async fn a_run_of_the_demo_is_told_whatever_becomes_of_its_rows() {
    let mut runs = demo().await;
    runs.retain_mut(is_short);
    run_cases(&runs, 10_000);
}

#[tokio::test]
async fn a_recorded_run_is_told_whatever_becomes_of_its_rows() {
    let mut runs = recorded("scenarios", 4).await;
    runs.extend(recorded("engine-test-states", 20).await);
    let mut runs: Vec<RunRows> = runs.into_iter().map(|(_, run)| run).collect();
    runs.retain_mut(is_short);
    if runs.is_empty() {
        eprintln!("skipped: no unpacked corpus (PLIMSOLL_CORPUS_UNPACKED)");
        return;
    }
    run_cases(&runs, 2_000);
}

/// A run of thousands of rows would take all the time.
fn is_short(run: &mut RunRows) -> bool {
    run.lists().iter().all(|(_, rows)| rows.len() < 60)
}

/// Situations that are about rows that are gone, and whose.
const LOST: [(&str, &str); 4] = [
    ("activity-running-without-task", TaskRow::TABLE),
    ("activity-task-and-execution-lost", ExecutionRow::TABLE),
    ("missing-summary", RunSummary::TABLE),
    ("timer-row-and-task-lost", TimerRow::TABLE),
];

/// Recorded states of the same kind.
const RECORDED_LOST: [(&str, &str); 5] = [
    ("activity-running-no-task", TaskRow::TABLE),
    ("activity-task-and-execution-deleted", ExecutionRow::TABLE),
    ("signal-timeout-timer-lost", TimerRow::TABLE),
    ("summary-missing", RunSummary::TABLE),
    // Its history was rewritten to tell of a timer that never was.
    ("replay-blocked-after-repair-blocked-again", TimerRow::TABLE),
];

/// A notice is worth reading because sound rows have none.
#[tokio::test]
async fn only_what_is_wrong_is_noted() {
    let engine = EngineConfig::defaults();
    let situations: Vec<_> = catalogue(now()).collect();
    let name_of = |rows: &RunRows| {
        let id = rows.run_id();
        let situation = situations.iter().find(|situation| situation.run_id == id);
        situation.map_or(id.to_owned(), |situation| situation.name.to_string())
    };
    let told = demo().await.into_iter().map(|run| (name_of(&run), run));
    assert_eq!(missed(told, &engine), owned(&LOST));
    let recorded = recorded("scenarios", 1).await;
    if !recorded.is_empty() {
        assert_eq!(missed(recorded, &engine), owned(&RECORDED_LOST));
    }
}

fn owned(lost: &[(&str, &'static str)]) -> BTreeSet<(String, &'static str)> {
    let owned = lost
        .iter()
        .map(|(name, table)| ((*name).to_owned(), *table));
    owned.collect()
}

/// Whose rows are missed in which runs; of everything else only the words nobody knows are noted.
fn missed(
    runs: impl IntoIterator<Item = (String, RunRows)>,
    engine: &EngineConfig,
) -> BTreeSet<(String, &'static str)> {
    let mut missed = BTreeSet::new();
    for (name, run) in runs {
        let (_, notices) = tell(run, engine);
        let (missing, wrong): (Vec<_>, Vec<_>) = notices
            .list()
            .iter()
            .partition(|notice| notice.problem == Problem::MissingRow);
        missed.extend(missing.iter().map(|notice| (name.clone(), notice.table)));
        assert_eq!(
            name == "unknown-future-values",
            !wrong.is_empty(),
            "{name}: {wrong:?}"
        );
    }
    missed
}
