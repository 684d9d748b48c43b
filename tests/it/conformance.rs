//! The corpus is the judge: what the real engine says of databases it wrote, against what we do.

use std::{
    collections::BTreeMap,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
};

use chrono::{DateTime, Utc};
use plimsoll::{
    db::{Db, Dialect, Settings},
    durable::{
        engine_config::EngineConfig,
        projection::{Context, Projected, detail::detail},
        store::{
            schema,
            snapshot::{RunSnapshot, TimelineCache},
        },
    },
};
use serde_json::Value;

use crate::{
    compare::{self, Differences},
    rig::{self, TestDb, on_every_database},
};

/// One recorded database, with what the engine says of each run in it.
struct State {
    name: String,
    database: PathBuf,
    now: DateTime<Utc>,
    config: EngineConfig,
    /// The engine's detail by run id.
    runs: BTreeMap<String, Value>,
    /// Its failures, of which the detail shows only a part.
    failures: BTreeMap<String, Value>,
}

/// Where rows must first be copied, one in so many of the engine-test states is compared.
const EVERY: usize = 4;

/// Sentences are ours to write (run-detail.md 0.3), and what needs PHP classes cannot be known.
const PROSE: &[&str] = &[
    "wait_reason",
    "liveness_reason",
    "read_only_reason",
    "compatibility_reason",
    "compatibility_fleet_reason",
    "description",
    "summary",
    "exception_resolution_error",
];

on_every_database! {
    async fn every_run_of_the_corpus_is_told_as_the_engine_tells_it(db: TestDb) {
        let Some(root) = rig::corpus_unpacked() else {
            return;
        };
        let tables: Vec<_> = schema::tables().iter().map(|table| table.name).collect();
        let recorded = db.dialect() == Dialect::Sqlite;
        let states = folders(&root.join("engine-test-states"));
        let states = states.iter().step_by(if recorded { 1 } else { EVERY });
        let scenarios = folders(&root.join("scenarios"));
        let states = scenarios.iter().map(|folder| scenario(folder)).chain(states.map(|folder| engine_test_state(folder)));
        let mut report = Report::default();
        for state in states {
            if recorded {
                // The engine's own file, as it wrote it.
                let file = Settings::new(format!("sqlite:{}", state.database.display()));
                let file = Db::connect(&Settings { pool_size: 1, ..file }).await.expect("a corpus database opens");
                report.compare_all(&state, &file).await;
                file.close().await;
            } else {
                rig::copy_sqlite(&state.database, &db).await;
                report.compare_all(&state, &db.read_only).await;
                rig::empty(&db, &tables).await;
            }
        }
        report.finish(db.dialect());
    }
}

/// The detail and the failures.
async fn project(state: &State, db: &Db, run_id: &str) -> (Value, Value) {
    let mut snapshot = db.snapshot().await.expect("a snapshot");
    let run = RunSnapshot::load(&mut snapshot, run_id, TimelineCache::Whole)
        .await
        .unwrap_or_else(|error| panic!("{}: {error}", state.name))
        .unwrap_or_else(|| panic!("{}: no run {run_id}", state.name));
    snapshot.end().await;
    let projected = Projected::of(Context {
        snapshot: &run,
        now: state.now,
        config: &state.config,
    });
    let failures = serde_json::to_value(&projected.failures).expect("JSON");
    let detail = serde_json::to_value(detail(&projected, None)).expect("JSON");
    (detail, failures)
}

fn json(file: &Path) -> Value {
    let text =
        fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    serde_json::from_str(&text).expect("JSON")
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

fn scenario(folder: &Path) -> State {
    let now = fs::read_to_string(folder.join("now.txt")).expect("now.txt");
    let (mut runs, mut failures) = (BTreeMap::new(), BTreeMap::new());
    for run in folders(&folder.join("runs")) {
        let (with_code, nocode) = (run.join("detail.json"), run.join("nocode/detail.json"));
        let has_nocode = nocode.exists();
        if !has_nocode && !with_code.exists() {
            continue;
        }
        let mut expected = json(if has_nocode { &nocode } else { &with_code });
        // The engine remembers the fleet for a second of its clock. The views without code
        // were written by one process under frozen clocks, so some show another's fleet.
        if has_nocode && with_code.exists() {
            expected["compatibility_fleet"] = json(&with_code)["compatibility_fleet"].take();
        }
        runs.insert(name(&run), expected);
        let with_code = run.join("failures.json");
        let nocode = run.join("nocode/failures.json");
        let file = if has_nocode { nocode } else { with_code };
        failures.insert(name(&run), json(&file));
    }
    State {
        name: name(folder),
        database: folder.join("db.sqlite"),
        now: now.trim().parse().expect("a moment"),
        config: EngineConfig::load(Some(&folder.join("engine-config.json")))
            .expect("the engine's configuration"),
        runs,
        failures,
    }
}

fn engine_test_state(folder: &Path) -> State {
    let (mut views, meta) = (
        json(&folder.join("views.json")),
        json(&folder.join("meta.json")),
    );
    let mut config = tempfile::NamedTempFile::new().expect("a temporary file");
    write!(config, "{}", meta["workflows"]).expect("the configuration is written");
    let mut view = |name: &str| -> BTreeMap<String, Value> {
        let runs = views["runs"].as_object_mut().into_iter().flatten();
        runs.map(|(run, views)| (run.clone(), views[name].take()))
            .collect()
    };
    let (mut runs, failures) = (view("detail"), view("failures"));
    // The engine itself fails on some states (run-detail.md 11.1): nothing to compare.
    runs.retain(|_, detail| detail.is_object() && detail.get("__exception").is_none());
    State {
        name: name(folder),
        database: folder.join("db.sqlite"),
        runs,
        failures,
        now: views["now"]
            .as_str()
            .expect("now")
            .parse()
            .expect("a moment"),
        config: EngineConfig::load(Some(config.path())).expect("the engine's configuration"),
    }
}

pub fn folders(root: &Path) -> Vec<PathBuf> {
    let mut out: Vec<PathBuf> = fs::read_dir(root)
        .map(|entries| {
            entries
                .filter_map(Result::ok)
                .map(|entry| entry.path())
                .filter(|path| path.is_dir())
                .collect()
        })
        .unwrap_or_default();
    out.sort();
    out
}

#[derive(Default)]
struct Report {
    runs: u64,
    fields: u64,
    missing: BTreeMap<String, u64>,
    /// Path without indices → count and the first few examples.
    different: BTreeMap<String, (u64, Vec<String>)>,
    explained: u64,
    differences: Option<Differences>,
}

impl Report {
    async fn compare_all(&mut self, state: &State, db: &Db) {
        for (run_id, expected) in &state.runs {
            let case = format!("{} {run_id}", state.name);
            let (actual, failures) = project(state, db, run_id).await;
            self.compare(&case, state, expected, &actual);
            self.walk(
                (&case, &state.name),
                "failures",
                &state.failures[run_id],
                &failures,
            );
        }
    }

    fn compare(&mut self, case: &str, state: &State, expected: &Value, actual: &Value) {
        let (Some(expected), Some(actual)) = (expected.as_object(), actual.as_object()) else {
            return;
        };
        self.runs += 1;
        for (key, expected) in expected {
            if PROSE.contains(&key.as_str()) {
                continue;
            }
            match actual.get(key) {
                None => *self.missing.entry(key.clone()).or_default() += 1,
                Some(actual) => self.walk((case, &state.name), key, expected, actual),
            }
        }
    }

    fn walk(&mut self, case: (&str, &str), path: &str, expected: &Value, actual: &Value) {
        let empty = |value: &Value| {
            value.as_array().is_some_and(Vec::is_empty)
                || value.as_object().is_some_and(serde_json::Map::is_empty)
        };
        match (expected, actual) {
            (e, a) if empty(e) && empty(a) => self.fields += 1,
            (Value::Object(e), Value::Object(a)) => {
                for key in e.keys().chain(a.keys().filter(|key| !e.contains_key(*key))) {
                    if PROSE.contains(&key.as_str()) {
                        continue;
                    }
                    let absent = Value::String("(absent)".into());
                    let below = format!("{path}.{key}");
                    self.walk(
                        case,
                        &below,
                        e.get(key).unwrap_or(&absent),
                        a.get(key).unwrap_or(&absent),
                    );
                }
            }
            (Value::Array(e), Value::Array(a)) if e.len() == a.len() => {
                for (n, (e, a)) in e.iter().zip(a).enumerate() {
                    self.walk(case, &format!("{path}[{n}]"), e, a);
                }
            }
            (e, a) => {
                self.fields += 1;
                if e == a {
                    return;
                }
                if self
                    .differences
                    .get_or_insert_with(Differences::load)
                    .is_meant(case.1, path)
                {
                    self.explained += 1;
                    return;
                }
                let general = without_indices(path);
                let (count, examples) = self.different.entry(general).or_default();
                *count += 1;
                if examples.len() < 3 {
                    examples.push(format!(
                        "{} {path}: engine {} ours {}",
                        case.0,
                        short(e),
                        short(a)
                    ));
                }
            }
        }
    }

    fn finish(self, dialect: Dialect) {
        let different: u64 = self.different.values().map(|(count, _)| count).sum();
        compare::report(&format!(
            "run details on {}: {} runs, {} fields compared, {} unexplained differences, {} deliberate",
            dialect.name(),
            self.runs,
            self.fields,
            different + self.missing.values().sum::<u64>(),
            self.explained
        ));
        for (path, (count, examples)) in &self.different {
            println!("  {count:6} {path}");
            for example in examples {
                println!("           {example}");
            }
        }
        for (key, count) in &self.missing {
            println!("  {count:6} {key} is missing from ours");
        }
        assert!(self.runs > 0, "nothing was compared");
        assert!(
            self.different.is_empty() && self.missing.is_empty(),
            "{different} differences, {} keys missing",
            self.missing.len()
        );
    }
}

fn without_indices(path: &str) -> String {
    let mut out = String::new();
    let mut inside = false;
    for c in path.chars() {
        match c {
            '[' => inside = true,
            ']' => {
                inside = false;
                out.push_str("[]");
            }
            c if !inside => out.push(c),
            _ => {}
        }
    }
    out
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(160) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}
