//! The corpus is the judge: what the real engine says of databases it wrote, against what we do.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use chrono::{DateTime, Utc};
use plimsoll::{
    db::{Db, Settings},
    durable::{
        engine_config::EngineConfig,
        projection::{Context, Projected, detail::detail},
        store::snapshot::{RunSnapshot, TimelineCache},
    },
};
use serde_json::Value;

use crate::{compare::Differences, rig};

/// One run of the corpus with what the engine says of it.
struct Case {
    name: String,
    database: PathBuf,
    now: DateTime<Utc>,
    config: PathBuf,
    run_id: String,
    expected: Value,
}

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

#[tokio::test]
async fn every_run_of_the_corpus_is_told_as_the_engine_tells_it() {
    let Some(root) = rig::corpus_unpacked() else {
        return;
    };
    let mut cases = scenarios(&root);
    cases.extend(engine_test_states(&root));
    let only = std::env::var("PLIMSOLL_CONFORM").ok();
    let mut report = Report::default();
    for case in &cases {
        let actual = project(case).await;
        report.compare(case, &actual, only.as_deref());
    }
    report.finish(cases.len());
}

async fn project(case: &Case) -> Value {
    let db = Db::connect(&Settings {
        pool_size: 1,
        ..Settings::new(format!("sqlite:{}", case.database.display()))
    })
    .await
    .expect("a corpus database opens");
    let mut snapshot = db.snapshot().await.expect("a snapshot");
    let run = RunSnapshot::load(&mut snapshot, &case.run_id, TimelineCache::Whole)
        .await
        .unwrap_or_else(|error| panic!("{}: {error}", case.name))
        .unwrap_or_else(|| panic!("{}: no run {}", case.name, case.run_id));
    snapshot.end().await;
    db.close().await;
    let config = EngineConfig::load(Some(&case.config)).expect("the engine's configuration");
    detail(
        &Projected::of(Context {
            snapshot: &run,
            now: case.now,
            config: &config,
        }),
        None,
    )
}

fn scenarios(root: &Path) -> Vec<Case> {
    let mut cases = Vec::new();
    for scenario in folders(&root.join("scenarios")) {
        let now = fs::read_to_string(scenario.join("now.txt")).expect("now.txt");
        for run in folders(&scenario.join("runs")) {
            let nocode = run.join("nocode/detail.json");
            let file = if nocode.exists() {
                nocode
            } else {
                run.join("detail.json")
            };
            let Ok(text) = fs::read_to_string(&file) else {
                continue;
            };
            let mut expected: Value = serde_json::from_str(&text).expect("detail.json");
            // The engine remembers the fleet for a second of its clock. The views without code
            // were written by one process under frozen clocks, so some show another's fleet.
            if let Ok(text) = fs::read_to_string(run.join("detail.json")) {
                let mut own: Value = serde_json::from_str(&text).expect("detail.json");
                expected["compatibility_fleet"] = own["compatibility_fleet"].take();
            }
            cases.push(Case {
                name: scenario.file_name().unwrap().to_string_lossy().into_owned(),
                database: scenario.join("db.sqlite"),
                now: now.trim().parse().expect("a moment"),
                config: scenario.join("engine-config.json"),
                run_id: run.file_name().unwrap().to_string_lossy().into_owned(),
                expected,
            });
        }
    }
    cases
}

fn engine_test_states(root: &Path) -> Vec<Case> {
    let mut cases = Vec::new();
    for state in folders(&root.join("engine-test-states")) {
        let read = |name: &str| -> Value {
            serde_json::from_str(
                &fs::read_to_string(state.join(name)).expect("a file of the state"),
            )
            .expect("JSON")
        };
        let (mut views, meta) = (read("views.json"), read("meta.json"));
        let now = views["now"]
            .as_str()
            .expect("now")
            .parse()
            .expect("a moment");
        let config = state.join("workflows.json");
        fs::write(&config, meta["workflows"].to_string()).expect("the configuration, unpacked");
        for (run_id, run) in views["runs"].as_object_mut().into_iter().flatten() {
            let expected = run["detail"].take();
            // The engine itself fails on some states (run-detail.md 11.1): nothing to compare.
            if !expected.is_object() || expected.get("__exception").is_some() {
                continue;
            }
            cases.push(Case {
                name: state.file_name().unwrap().to_string_lossy().into_owned(),
                database: state.join("db.sqlite"),
                now,
                config: config.clone(),
                run_id: run_id.clone(),
                expected,
            });
        }
    }
    cases
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
    fields: u64,
    missing: BTreeMap<String, u64>,
    /// Path without indices → count and the first few examples.
    different: BTreeMap<String, (u64, Vec<String>)>,
    explained: u64,
    differences: Option<Differences>,
}

impl Report {
    fn compare(&mut self, case: &Case, actual: &Value, only: Option<&str>) {
        let (Some(expected), Some(actual)) = (case.expected.as_object(), actual.as_object()) else {
            return;
        };
        for (key, expected) in expected {
            if only.is_some_and(|only| !only.split(',').any(|name| name == key))
                || PROSE.contains(&key.as_str())
            {
                continue;
            }
            match actual.get(key) {
                None => *self.missing.entry(key.clone()).or_default() += 1,
                Some(actual) => self.walk(case, key, expected, actual),
            }
        }
    }

    fn walk(&mut self, case: &Case, path: &str, expected: &Value, actual: &Value) {
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
                    .is_meant(&case.name, path)
                {
                    self.explained += 1;
                    return;
                }
                let general = without_indices(path);
                let (count, examples) = self.different.entry(general).or_default();
                *count += 1;
                if examples.len() < 3 {
                    examples.push(format!(
                        "{} {} {path}: engine {} ours {}",
                        case.name,
                        case.run_id,
                        short(e),
                        short(a)
                    ));
                }
            }
        }
    }

    fn finish(self, runs: usize) {
        let different: u64 = self.different.values().map(|(count, _)| count).sum();
        println!(
            "corpus: {runs} runs compared, {} fields compared, {different} differences, {} deliberate",
            self.fields, self.explained
        );
        for (path, (count, examples)) in &self.different {
            println!("  {count:6} {path}");
            for example in examples {
                println!("           {example}");
            }
        }
        for (key, count) in &self.missing {
            println!("  {count:6} {key} is missing from ours");
        }
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
