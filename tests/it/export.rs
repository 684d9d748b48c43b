//! Exports against the engine's own, for every run of the corpus.

use std::{
    fs,
    io::Cursor,
    path::{Path, PathBuf},
};

use chrono::{DateTime, Utc};
use plimsoll::{
    db::{Db, Settings},
    durable::{
        engine_config::EngineConfig,
        export::{
            Policy, SigningKey, stream,
            verify::{Verdict, verify},
        },
    },
};
use serde_json::Value;

use crate::{
    checker,
    compare::Comparison,
    conformance::folders,
    rig::{self, TestDb},
};

/// One bundle of the corpus and what it was made from.
struct Case {
    name: String,
    database: PathBuf,
    now: DateTime<Utc>,
    config: PathBuf,
    run_id: String,
    flavour: &'static str,
    /// Whether the fraction of a whole float was kept.
    exact_numbers: bool,
    expected: Value,
}

/// The redactor of the corpus: every slot masked.
const MASK_ALL: &str = "policy = 'closure'\nrules = [{category = '*'}]";

fn policy() -> Policy {
    toml::from_str(MASK_ALL).expect("a policy")
}

fn key() -> SigningKey {
    SigningKey::new("golden-signing-key", Some("golden-key-1")).expect("a key")
}

/// The bundle of one run as bytes, in batches of a few events.
pub async fn exported(
    db: &Db,
    run_id: &str,
    options: stream::Options<'_>,
) -> Result<(Vec<u8>, stream::Done), stream::ExportError> {
    let (sink, mut pieces) = tokio::sync::mpsc::channel(4);
    let mut snapshot = db.unhurried().await?;
    let gather = async {
        let mut out = Vec::new();
        while let Some(piece) = pieces.recv().await {
            out.extend(piece);
        }
        out
    };
    let (done, out) = tokio::join!(stream::write(&mut snapshot, run_id, options, sink), gather);
    snapshot.end().await;
    Ok((out, done?))
}

#[tokio::test]
async fn every_export_of_the_corpus_is_the_engines() {
    let Some(root) = rig::corpus_unpacked() else {
        return;
    };
    let mut comparison = Comparison::new(&[]);
    let only = std::env::var("PLIMSOLL_CONFORM").ok();
    for case in scenarios(&root)
        .into_iter()
        .chain(engine_test_states(&root))
    {
        if only.as_ref().is_some_and(|only| !case.name.contains(only)) {
            continue;
        }
        let db = open(&format!("sqlite:{}", case.database.display())).await;
        check(&mut comparison, &db, case).await;
        db.close().await;
    }
    comparison.finish("exports");
}

async fn open(url: &str) -> Db {
    Db::connect(&Settings {
        pool_size: 1,
        ..Settings::new(url)
    })
    .await
    .expect("a corpus database opens")
}

async fn check(comparison: &mut Comparison, db: &Db, case: Case) {
    let config = EngineConfig::load(Some(&case.config)).expect("the engine's configuration");
    let (policy, key) = (policy(), key());
    let options = stream::Options {
        now: case.now,
        config: &config,
        policy: (case.flavour == "export-redacted").then_some(&policy),
        key: (case.flavour == "export-signed").then_some(&key),
        batch: 4,
    };
    let (text, done) = exported(db, &case.run_id, options)
        .await
        .unwrap_or_else(|error| panic!("{} {}: {error}", case.name, case.flavour));
    let secret = options.key.map(|_| "golden-signing-key");
    if let Err(wrong) = checker::check(&text, secret) {
        comparison.wrong(&case.name, &format!("{}: {wrong}", case.flavour));
    }
    let report = verify(Cursor::new(&text), options.key, &mut |_| ());
    if report.summary.errors > 0 {
        comparison.wrong(
            &case.name,
            &format!("{}: {:?}", case.flavour, report.findings),
        );
    }
    let ours: Value = serde_json::from_slice(&text).expect("a bundle is JSON");
    assert_eq!(ours["integrity"]["checksum"], done.checksum.as_str());
    assert_eq!(done.bytes, text.len() as u64);
    comparison.exact_numbers = case.exact_numbers;
    comparison.document(
        &case.name,
        case.flavour,
        &comparable(as_far_as_the_engine_looks(ours, &case.expected)),
        &comparable(case.expected),
    );
}

fn scenarios(root: &Path) -> Vec<Case> {
    let mut cases = Vec::new();
    for scenario in folders(&root.join("scenarios")) {
        let now = fs::read_to_string(scenario.join("now.txt")).expect("now.txt");
        for run in folders(&scenario.join("runs")) {
            for (file, flavour) in [
                ("nocode/export.json", "export"),
                ("export-signed.json", "export-signed"),
                ("export-redacted.json", "export-redacted"),
            ] {
                let Ok(text) = fs::read_to_string(run.join(file)) else {
                    continue;
                };
                cases.push(Case {
                    name: scenario.file_name().unwrap().to_string_lossy().into_owned(),
                    database: scenario.join("db.sqlite"),
                    now: now.trim().parse().expect("a moment"),
                    config: scenario.join("engine-config.json"),
                    run_id: run.file_name().unwrap().to_string_lossy().into_owned(),
                    flavour,
                    // As they were sealed: `every_bundle_of_the_engine_verifies`.
                    exact_numbers: true,
                    expected: serde_json::from_str(&text).expect("a bundle"),
                });
            }
        }
    }
    cases
}

fn engine_test_states(root: &Path) -> Vec<Case> {
    let mut cases = Vec::new();
    for state in folders(&root.join("engine-test-states")) {
        let read = |name: &str| -> Value {
            let text = fs::read_to_string(state.join(name)).expect("a file of the state");
            serde_json::from_str(&text).expect("JSON")
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
            let expected = run["export"].take();
            // The engine itself fails on some states: nothing to compare.
            if !expected.is_object() || expected.get("__exception").is_some() {
                continue;
            }
            cases.push(Case {
                name: state.file_name().unwrap().to_string_lossy().into_owned(),
                database: state.join("db.sqlite"),
                now,
                config: config.clone(),
                run_id: run_id.clone(),
                flavour: "export",
                // Written where nobody minds the fraction of a whole float.
                exact_numbers: false,
                expected,
            });
        }
    }
    cases
}

/// Without what we hide besides, which is named after all the engine names.
fn as_far_as_the_engine_looks(mut ours: Value, theirs: &Value) -> Value {
    let known = theirs["redaction"]["paths"].as_array();
    if let (Some(known), Some(paths)) = (known, ours["redaction"]["paths"].as_array_mut()) {
        let more = paths.split_off(known.len().min(paths.len()));
        assert!(more.iter().all(|path| !known.contains(path)), "{more:?}");
    }
    ours
}

/// What of a bundle must be equal: not the fields of history-export.md §10, not our sentences.
fn comparable(mut bundle: Value) -> Value {
    for key in ["exported_at", "integrity", "selected_run"] {
        bundle[key] = Value::Null;
    }
    for (part, key) in [
        ("workflow", "source_runtime"),
        ("workflow", "source_process_class"),
        ("links", "projection_source"),
    ] {
        bundle[part][key] = Value::Null;
    }
    for section in ["failures", "timeline", "waits"] {
        bundle[section]
            .as_array_mut()
            .into_iter()
            .flatten()
            .for_each(not_ours_to_know);
    }
    if let Some(badge) = bundle["summary"]["task_problem_badge"].as_object_mut() {
        badge.remove("description");
    }
    if let Some(tasks) = bundle["tasks"].as_array_mut() {
        tasks.sort_by_key(|task| {
            ["available_at", "created_at", "id"].map(|key| task[key].as_str().map(str::to_owned))
        });
        for (n, task) in tasks.iter_mut().enumerate() {
            if let Some(path) = task["payload"].get_mut("path") {
                *path = format!("tasks.{n}.payload").into();
            }
        }
    }
    bundle
}

fn not_ours_to_know(entry: &mut Value) {
    if let Some(map) = entry.as_object_mut() {
        map.retain(|key, value| {
            let sentence = key == "summary" && value.is_string();
            !sentence && !key.starts_with("exception_resol") && key != "exception_replay_blocked"
        });
        if let Some(failure) = map.get_mut("failure").filter(|of| of.is_object()) {
            not_ours_to_know(failure);
        }
    }
}

#[test]
fn every_bundle_of_the_engine_verifies() {
    let Some(root) = rig::corpus_unpacked() else {
        return;
    };
    let (key, mut seen) = (key(), 0);
    for scenario in folders(&root.join("scenarios")) {
        for run in folders(&scenario.join("runs")) {
            for file in [
                "export.json",
                "export-signed.json",
                "export-redacted.json",
                "nocode/export.json",
            ] {
                let path = run.join(file);
                let Ok(text) = fs::read(&path) else { continue };
                let key = file.contains("signed").then_some(&key);
                let report = verify(Cursor::new(&text), key, &mut |_| ());
                let told = format!("{}: {:?}", path.display(), report.findings);
                assert_eq!(report.verdict(), Verdict::Intact, "{told}");
                assert_eq!(
                    report.integrity.signature_verified,
                    key.map(|_| true),
                    "{told}"
                );
                seen += 1;
            }
        }
    }
    eprintln!("COMPARED: {seen} engine bundles verified");
    assert!(seen > 0);
}

rig::on_every_database! {
    async fn every_scenario_is_exported_alike(db: TestDb) {
        let Some(root) = rig::corpus_unpacked() else {
            return;
        };
        let tables: Vec<&'static str> = plimsoll::durable::store::schema::tables()
            .iter()
            .map(|table| table.name)
            .collect();
        let mut comparison = Comparison::new(&[]);
        let mut filled: Option<PathBuf> = None;
        for case in scenarios(&root) {
            if filled.as_ref() != Some(&case.database) {
                rig::empty(&db, &tables).await;
                rig::copy_sqlite(&case.database, &db).await;
                filled = Some(case.database.clone());
            }
            check(&mut comparison, &db.read_only, case).await;
        }
        let database = db.dialect().name();
        comparison.finish(&format!("exports of copied scenarios on {database}"));
    }
}
