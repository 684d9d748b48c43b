//! The fleet's numbers against the engine's own, on every state of the corpus.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    time::Duration,
};

use chrono::{DateTime, Utc};
use plimsoll::{
    db::{Db, Settings},
    durable::{
        collect::{Gathered, Walk, gather},
        engine_config::EngineConfig,
        metrics::queues::document,
        store::metrics::{Scope, queues},
    },
};
use serde_json::{Value, json};

use crate::{
    compare::Comparison,
    conformance::folders,
    rig::{self, TestDb, on_every_database},
};

/// Sentences, and what only describes the contract (operator-metrics.md 1.1 and 19).
const PROSE: &[&str] = &[
    "*.message",
    "*.action",
    "*.reason",
    "*.wait_reason",
    "*.liveness_reason",
    "*.repair_blocked.description",
    "*.task_problem_badge.description",
];

/// A database with what the engine says of the whole fleet in it.
struct State {
    name: String,
    database: PathBuf,
    now: DateTime<Utc>,
    config: PathBuf,
    /// Document name → the engine's.
    expected: Vec<(&'static str, Value)>,
    /// The tables the engine changed while it showed the runs, where that is written down.
    changed: Option<Vec<String>>,
}

fn states(root: &Path) -> Vec<State> {
    let mut states = Vec::new();
    for folder in folders(&root.join("scenarios")) {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        states.push(scenario(&name, &folder, &folder, "db.sqlite", "now.txt"));
        if folder.join("after-repair/operator-metrics.json").exists() {
            states.push(scenario(
                &format!("{name} after repair"),
                &folder,
                &folder.join("after-repair"),
                "db-after-repair.sqlite",
                "now-repair.txt",
            ));
        }
    }
    for folder in folders(&root.join("engine-test-states")) {
        states.push(engine_test(&folder));
    }
    states
}

fn json_file(file: &Path) -> Value {
    let text =
        fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    serde_json::from_str(&text).expect("JSON")
}

/// The application the corpus was written in: the engine's settings beside its host's. Put in
/// place as a whole, since other tests write and read the same.
fn host(folder: &Path, workflows: &Value, queue: &Value) -> PathBuf {
    let file = folder.join("host.json");
    let whole = json!({
        "workflows": workflows,
        "queue": queue,
        "cache": { "default": "array", "stores": { "array": { "driver": "array" } } },
        "database": { "default": "golden" },
    });
    let mut made = tempfile::NamedTempFile::new_in(folder).expect("a file");
    made.write_all(whole.to_string().as_bytes())
        .expect("the configuration");
    made.persist(&file).expect("its place");
    file
}

fn scenario(scenario: &str, folder: &Path, views: &Path, database: &str, now: &str) -> State {
    // The application's queue is written down nowhere else.
    let queue = &json_file(&views.join("backend-capabilities.json"))["queue"];
    let name = queue["connection"].as_str().expect("a connection");
    let queue = json!({ "default": name, "connections": { name: { "driver": queue["driver"] } } });
    let engine = json_file(&folder.join("engine-config.json"));
    let config = host(folder, &engine, &queue);
    let now = fs::read_to_string(folder.join(now)).expect("now");
    let changed = json_file(&views.join("views-mutated-tables.json"));
    State {
        name: scenario.to_owned(),
        changed: changed
            .as_object()
            .map(|tables| tables.keys().cloned().collect()),
        database: folder.join(database),
        now: now.trim().parse().expect("a moment"),
        config,
        expected: [
            ("operator_metrics", "operator-metrics"),
            ("dashboard_summary", "dashboard-summary"),
            ("fleet_trends", "fleet-trends"),
            ("health_checks", "health-check"),
            ("structural_limits", "structural-limits"),
            ("backend_capabilities", "backend-capabilities"),
            ("task_repair_candidates", "task-repair-candidates"),
            ("task_repair_policy", "task-repair-policy"),
            ("queue_visibility", "queue-visibility.default"),
        ]
        .into_iter()
        .map(|(document, file)| (document, json_file(&views.join(format!("{file}.json")))))
        .collect(),
    }
}

fn engine_test(folder: &Path) -> State {
    let mut views = json_file(&folder.join("views.json"));
    let meta = json_file(&folder.join("meta.json"));
    let queue =
        json!({ "default": meta["queue_default"], "connections": meta["queue_connections"] });
    let config = host(folder, &meta["workflows"], &queue);
    State {
        name: folder.file_name().unwrap().to_string_lossy().into_owned(),
        database: folder.join("db.sqlite"),
        changed: None,
        now: views["now"]
            .as_str()
            .expect("now")
            .parse()
            .expect("a moment"),
        config,
        expected: ["operator_metrics", "dashboard_summary", "health_checks"]
            .into_iter()
            .map(|document| (document, views[document].take()))
            .collect(),
    }
}

/// There the clock stood still: what was rewritten is as new as it was before.
const REWRITTEN_AT_ONCE: &str =
    "V2WorkflowTest__testReplayBlocksFiredTimerProjectionWithoutTypedStepHistory__02";

/// The engine rewrites stored projections whenever it shows a run, and it had shown them all
/// before it counted. Names the state by the projections it rewrote; where that is not written
/// down, by those in which we find more to rebuild than it then had.
fn named(state: &State, ours: &Value) -> String {
    let theirs = &state.expected[0].1;
    let needs = |document: &Value, section: &str| {
        document["projections"][section]["needs_rebuild"].as_i64()
    };
    let rewritten: Vec<&str> = [
        "run_waits",
        "run_timeline_entries",
        "run_timer_entries",
        "run_lineage_entries",
    ]
    .into_iter()
    .filter(|section| match &state.changed {
        Some(tables) => tables.contains(&format!("workflow_{section}")),
        // One that was rewritten has other rows, or newer ones: more to rebuild in the same rows
        // would be a fault of ours.
        None => {
            needs(ours, section) > needs(theirs, section)
                && (state.name == REWRITTEN_AT_ONCE
                    || ["rows", "newest_updated_at"].iter().any(|evidence| {
                        ours["projections"][section][evidence]
                            != theirs["projections"][section][evidence]
                    }))
        }
    })
    .collect();
    if rewritten.is_empty() {
        state.name.clone()
    } else {
        format!("{} (rewritten {})", state.name, rewritten.join(" "))
    }
}

fn compare(
    comparison: &mut Comparison,
    state: &State,
    (got, queues): &(Gathered, Value),
    only: &[&str],
) {
    let name = named(state, &json!(got.metrics));
    for (document, theirs) in &state.expected {
        if !only.is_empty() && !only.contains(document) {
            continue;
        }
        let mut ours = match *document {
            "operator_metrics" => json!(got.metrics),
            "dashboard_summary" => json!(got.dashboard),
            "fleet_trends" => json!(got.dashboard.fleet_trends_series),
            "health_checks" => json!(got.health),
            "structural_limits" => json!(got.metrics.structural_limits),
            "backend_capabilities" => json!(got.metrics.backend),
            "task_repair_candidates" => json!(got.metrics.repair),
            "task_repair_policy" => json!(got.metrics.repair_policy),
            "queue_visibility" => queues.clone(),
            other => panic!("{other}"),
        };
        let mut theirs = theirs.clone();
        for value in [&mut ours, &mut theirs] {
            // Compared once, by itself; and a contract of words.
            if let Some(map) = value.as_object_mut()
                && *document != "operator_metrics"
            {
                map.remove("operator_metrics");
                map.remove("readiness_contract");
            }
            if let Some(backend) = value.get_mut("backend").and_then(Value::as_object_mut) {
                backend.remove("readiness_contract");
            }
        }
        comparison.document(&name, document, &ours, &theirs);
    }
}

/// One pass over all namespaces, and the queues of the one the corpus tells of.
async fn pass(db: &Db, state: &State) -> (Gathered, Value) {
    let config = EngineConfig::load(Some(&state.config)).expect("the engine's configuration");
    let gathered = gather(
        db,
        state.now,
        &config,
        None,
        &mut Walk::default(),
        Duration::from_mins(2),
    )
    .await
    .unwrap_or_else(|error| panic!("{}: {error}", state.name));
    let mut snapshot = db.snapshot().await.expect("a snapshot");
    let scope = Scope::new(state.now, &config, Some("default"));
    let rows = queues(&mut snapshot, &scope).await.expect("queues");
    snapshot.end().await;
    let queues = document("default", &rows, state.now, &config);
    (gathered, queues)
}

#[tokio::test]
async fn the_corpus_is_counted_as_the_engine_counts_it() {
    let Some(root) = rig::corpus_unpacked() else {
        return;
    };
    let only = std::env::var("PLIMSOLL_CONFORM").ok();
    let mut comparison = Comparison::new(PROSE);
    for state in states(&root) {
        if only.as_ref().is_some_and(|only| !state.name.contains(only)) {
            continue;
        }
        let db = Db::connect(&Settings {
            pool_size: 1,
            ..Settings::new(format!("sqlite:{}", state.database.display()))
        })
        .await
        .expect("a corpus database opens");
        let got = pass(&db, &state).await;
        db.close().await;
        compare(&mut comparison, &state, &got, &[]);
    }
    if only.is_none() {
        comparison.finish_whole("fleet documents");
    } else {
        comparison.finish("fleet documents");
    }
}

on_every_database! {
    /// Every scenario, copied. Left out is what the database itself decides: its own
    /// capabilities, and what falls on the clock's own second, which SQLite compares as text.
    async fn a_copied_scenario_is_counted_alike(db: TestDb) {
        let Some(root) = rig::corpus_unpacked() else {
            return;
        };
        let tables: Vec<_> = plimsoll::durable::store::schema::tables().iter().map(|table| table.name).collect();
        let mut comparison = Comparison::new(PROSE);
        for state in states(&root).into_iter().filter(|state| state.expected.len() > 3 && state.now.timestamp_subsec_micros() > 0) {
            rig::copy_sqlite(&state.database, &db).await;
            let got = pass(&db.read_only, &state).await;
            rig::empty(&db, &tables).await;
            let mut state = state;
            for (document, theirs) in &mut state.expected {
                if *document == "operator_metrics" {
                    theirs["backend"] = json!(got.0.metrics.backend);
                }
            }
            compare(
                &mut comparison,
                &state,
                &got,
                &["operator_metrics", "dashboard_summary", "fleet_trends", "task_repair_candidates", "queue_visibility"],
            );
        }
        let database = db.dialect().name();
        comparison.finish(&format!("fleet documents of copied scenarios on {database}"));
    }
}
