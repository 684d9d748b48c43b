//! What the engine's own repair did to every database of the corpus, against what ours does.

use std::{
    fs,
    path::{Path, PathBuf},
};

use chrono::{DateTime, TimeDelta, Utc};
use plimsoll::{
    clock::Clock,
    durable::{
        engine_config::EngineConfig,
        repair::{self, ApplyError, Caller, Goal, Judged, Mode, Request, Scope},
        store::schema,
    },
};
use serde_json::Value;

use crate::{
    compare::{self, Comparison, Differences},
    conformance::folders,
    rig::{self, TestDb, on_every_database},
    row_diff,
};

/// Sentences are ours to write.
const PROSE: &[&str] = &[
    "*.workflow_run_summaries.*.liveness_reason.*",
    "*.workflow_run_summaries.*.wait_reason.*",
];

/// One manual repair the engine did, in its scenario.
pub struct Case {
    pub name: String,
    pub folder: PathBuf,
    pub now: DateTime<Utc>,
    pub config: EngineConfig,
    result: Value,
    diff: Value,
}

fn json(file: &Path) -> Value {
    let text =
        fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    serde_json::from_str(&text).expect("JSON")
}

/// When the engine repaired: a second after its views were taken.
pub fn moment(folder: &Path) -> DateTime<Utc> {
    let text = fs::read_to_string(folder.join("now.txt")).expect("now.txt");
    let now: DateTime<Utc> = text.trim().parse().expect("a moment");
    now + TimeDelta::seconds(1)
}

pub fn configured(folder: &Path) -> EngineConfig {
    EngineConfig::load(Some(&folder.join("engine-config.json"))).expect("the configuration")
}

/// Every repair the engine did: of most scenarios one, of a chain one per run.
fn cases(root: &Path) -> Vec<Case> {
    let mut out = Vec::new();
    for folder in folders(&root.join("scenarios")) {
        let mut results: Vec<String> = fs::read_dir(&folder)
            .expect("the scenario can be listed")
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| name.starts_with("repair-result"))
            .collect();
        results.sort();
        for result in results {
            let diff = result.replace("repair-result", "diff-after-repair");
            out.push(Case {
                name: folder.file_name().unwrap().to_string_lossy().into_owned(),
                now: moment(&folder),
                config: configured(&folder),
                result: json(&folder.join(&result)),
                diff: json(&folder.join(diff)),
                folder: folder.clone(),
            });
        }
    }
    out
}

pub fn by_run() -> Request {
    Request {
        scope: Scope::Run,
        mode: Mode::Direct,
        reason: None,
        caller: Caller::default(),
    }
}

/// What the engine itself says forbids the repair; the reason why it rejects one is named
/// otherwise than the reason why it does not offer it.
fn expected_code(case: &Case, run_id: &str) -> String {
    match case.result["rejection_reason"].as_str() {
        Some("run_not_active") => return "run_closed".to_owned(),
        Some(code) => return code.to_owned(),
        None => {}
    }
    let detail = json(&case.folder.join("runs").join(run_id).join("detail.json"));
    detail["repair_blocked_reason"]
        .as_str()
        .unwrap_or("none")
        .to_owned()
}

on_every_database! {
    async fn every_repair_of_the_engine_is_done_alike(db: TestDb) {
        let Some(root) = rig::corpus_unpacked() else {
            return;
        };
        let tables: Vec<_> = schema::tables().iter().map(|table| table.name).collect();
        let mut comparison = Comparison::new(PROSE);
        let meant = Differences::load();
        let (mut equal, mut refused, mut deliberately) = (0, 0, 0);
        for case in cases(&root) {
            rig::copy_sqlite(&case.folder.join("db.sqlite"), &db).await;
            let run_id = case.result["run_id"].as_str().expect("a run id");
            let judged = Judged { clock: Clock::Frozen(case.now), config: &case.config };
            let request = by_run();
            let before = row_diff::dump(&db.read_only).await;
            let previewed = repair::preview(&db.read_only, judged, run_id, Goal::Asked(&request)).await;
            let digest = previewed.as_ref().ok().map(|plan| plan.digest.clone());
            let done = repair::repair(&db.writable, judged, run_id, Goal::Asked(&request), digest.as_deref()).await;
            let after = row_diff::dump(&db.read_only).await;
            let effect = row_diff::diff(&before, &after);
            match done {
                Ok(plan) => {
                    assert_eq!(row_diff::promised(&plan.changes), effect, "{}: the plan is the effect", case.name);
                    let previewed = previewed.expect("what is done can be previewed");
                    let shown = row_diff::promised(&previewed.changes);
                    assert_eq!(row_diff::without_new_ids(&shown), row_diff::without_new_ids(&effect), "{}: what was shown is done", case.name);
                    let theirs = row_diff::without_new_ids(&row_diff::recorded(&case.diff));
                    comparison.document(&case.name, "repair", &row_diff::without_new_ids(&effect), &theirs);
                    equal += 1;
                    let again = repair::repair(&db.writable, judged, run_id, Goal::Asked(&request), None).await;
                    match again {
                        Err(ApplyError::Refused(refusal)) => assert_eq!(refusal.code(), "repair_not_needed", "{}: again", case.name),
                        other => panic!("{}: repaired twice: {other:?}", case.name),
                    }
                    assert_eq!(row_diff::dump(&db.read_only).await, after, "{}: again", case.name);
                }
                Err(ApplyError::Refused(refusal)) => {
                    assert_eq!(before, after, "{}: a refusal writes nothing", case.name);
                    refused += 1;
                    if case.result["outcome"] == "repair_dispatched" {
                        let path = format!("repair.refused.{}", refusal.code());
                        if meant.is_meant(&case.name, &path) {
                            deliberately += 1;
                        } else {
                            comparison.wrong(&case.name, &format!("{path}: the engine repairs it"));
                        }
                    } else if refusal.code() != expected_code(&case, run_id) {
                        comparison.wrong(&case.name, &format!("refused as {}, the engine as {}", refusal.code(), expected_code(&case, run_id)));
                    }
                }
                Err(error) => panic!("{}: {error}", case.name),
            }
            rig::empty(&db, &tables).await;
        }
        compare::report(&format!(
            "{:?}: {equal} repairs done as the engine does, {refused} refused, {deliberately} of them deliberately",
            db.dialect()
        ));
        comparison.finish(&format!("manual repair on {:?}", db.dialect()));
        assert!(equal > 0 && refused > 0, "nothing was compared");
    }
}
