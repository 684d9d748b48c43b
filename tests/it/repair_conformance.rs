//! What the engine's own repair did to every database of the corpus, against what ours does.

use std::{
    fs,
    path::{Path, PathBuf},
};

use axum_test::TestServer;
use chrono::{DateTime, TimeDelta, Utc};
use plimsoll::{
    clock::Clock,
    db::Dialect,
    durable::{
        engine_config::EngineConfig,
        repair::{self, ApplyError, Caller, Goal, Judged, Mode, Request, Scope},
        store::schema,
    },
    web::{
        routes,
        state::{App, Repairs, Settings},
    },
};
use serde_json::{Value, json};

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

/// How many repairs the corpus holds, at least.
const REPAIRS: usize = 73;

/// One manual repair the engine did, in its scenario.
pub struct Case {
    pub name: String,
    pub folder: PathBuf,
    pub now: DateTime<Utc>,
    pub config: EngineConfig,
    result: Value,
    diff: Value,
}

fn read(file: &Path) -> Value {
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
                result: read(&folder.join(&result)),
                diff: read(&folder.join(diff)),
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
    let detail = read(&case.folder.join("runs").join(run_id).join("detail.json"));
    detail["repair_blocked_reason"]
        .as_str()
        .unwrap_or("none")
        .to_owned()
}

/// The answers of the engine to a caller, and ours. What was written is compared elsewhere.
#[tokio::test]
async fn every_answer_of_the_engine_is_given_alike() {
    let Some(root) = rig::corpus_unpacked() else {
        return;
    };
    rig::on(Dialect::Sqlite, |db| async move {
        let tables: Vec<_> = schema::tables().iter().map(|table| table.name).collect();
        // An id of a new row.
        let mut comparison = Comparison::new(&["repair_reply.command_id"]);
        let mut answers = 0;
        for case in cases(&root) {
            rig::copy_sqlite(&case.folder.join("db.sqlite"), &db).await;
            let theirs = &case.result["http_payload"];
            let word = |key: &str| theirs[key].as_str().expect("a word");
            let server = TestServer::new(routes::router(App::new(Settings {
                clock: Clock::Frozen(case.now),
                engine: case.config,
                db: Some(db.read_only.clone()),
                repairs: Some(Repairs {
                    db: db.writable.clone(),
                    mode: Mode::Direct,
                }),
                ..Settings::default()
            })));
            let (instance, run) = (word("workflow_id"), word("run_id"));
            let path = format!("/waterline/api/instances/{instance}/runs/{run}/repair");
            let response = server.post(&path).json(&json!({})).await;
            let mut ours: Value = response.json();
            let map = ours.as_object_mut().expect("an object");
            for added in ["plimsoll", "message"] {
                map.remove(added);
            }
            let document = match (response.status_code().as_u16(), word("command_status")) {
                (200, _) => "repair_reply",
                (409, "rejected") => "repair_refusal",
                (409, _) => "repair_no_op",
                other => panic!("{}: {other:?}: {ours}", case.name),
            };
            comparison.document(&case.name, document, &ours, theirs);
            answers += 1;
            rig::empty(&db, &tables).await;
        }
        comparison.finish("answers to a repair");
        assert!(answers >= REPAIRS);
    })
    .await;
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
        assert!(equal + refused >= REPAIRS);
    }
}
