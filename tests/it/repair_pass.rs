//! What the engine's own repair pass did to the databases of the corpus, against what ours does.

use std::{fs, path::Path};

use plimsoll::{
    clock::Clock,
    durable::{
        engine_config::EngineConfig,
        repair::{
            Judged,
            pass::{self, Asked, Report},
        },
        store::schema,
    },
};
use serde_json::Value;

use crate::{
    compare::Comparison,
    conformance::folders,
    repair_conformance::{configured, moment},
    rig::{self, TestDb, on_every_database},
    row_diff,
    shop::{self, now},
};

/// Sentences are ours to write.
const PROSE: &[&str] = &[
    "*.workflow_run_summaries.*.liveness_reason.*",
    "*.workflow_run_summaries.*.wait_reason.*",
];

fn json(file: &Path) -> Value {
    let text =
        fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    serde_json::from_str(&text).expect("JSON")
}

on_every_database! {
    async fn every_pass_of_the_engine_is_done_alike(db: TestDb) {
        let Some(root) = rig::corpus_unpacked() else {
            return;
        };
        let tables: Vec<_> = schema::tables().iter().map(|table| table.name).collect();
        let mut comparison = Comparison::new(PROSE);
        for folder in folders(&root.join("scenarios")) {
            let recorded = folder.join("diff-after-watchdog.json");
            if !recorded.exists() {
                continue;
            }
            let name = folder.file_name().unwrap().to_string_lossy().into_owned();
            rig::copy_sqlite(&folder.join("db.sqlite"), &db).await;
            let config = configured(&folder);
            let judged = Judged { clock: Clock::Frozen(moment(&folder)), config: &config };
            let before = row_diff::dump(&db.read_only).await;
            let foreseen = pass::pass(&db.read_only, judged, &Asked { dry_run: true, ..Asked::default() }).await.expect("a dry run");
            assert_eq!(before, row_diff::dump(&db.read_only).await, "{name}: a dry run writes nothing");
            let report = pass::pass(&db.writable, judged, &Asked::default()).await.expect("a pass");
            let after = row_diff::dump(&db.read_only).await;
            let told = |report: &Report| serde_json::to_value(report).expect("JSON");
            assert_eq!(told(&foreseen), told(&report), "{name}: as foreseen");
            let ours = row_diff::without_new_ids(&row_diff::diff(&before, &after));
            let theirs = row_diff::without_new_ids(&row_diff::recorded(&json(&recorded)));
            comparison.document(&name, "pass", &ours, &theirs);
            comparison.document(&name, "pass_report", &told(&report), &json(&folder.join("watchdog-report.json")));
            rig::empty(&db, &tables).await;
        }
        comparison.finish(&format!("repair pass on {:?}", db.dialect()));
    }

    async fn a_pass_takes_what_it_is_asked_for(db: TestDb) {
        let situations = shop::fill(&db).await;
        let config = EngineConfig::defaults();
        let judged = Judged { clock: Clock::Frozen(now()), config: &config };
        let find = |name: &str| situations.iter().find(|s| s.name == name).expect("in the catalogue");
        let (one, other) = (find("activity-task-lost"), find("signal-task-lost"));
        let before = row_diff::dump_run(&db.read_only, &other.run_id).await;
        let by_run = Asked { run_ids: vec![one.run_id.clone()], ..Asked::default() };
        let report = pass::pass(&db.writable, judged, &by_run).await.expect("a pass");
        assert_eq!((report.selected_total_candidates, report.repaired_missing_tasks), (1, 1));
        assert_eq!(row_diff::dump_run(&db.read_only, &other.run_id).await, before);
        let again = pass::pass(&db.writable, judged, &by_run).await.expect("a pass");
        assert_eq!(again.selected_total_candidates, 0);
        let by_instance = Asked { instance_id: Some(other.instance_id.clone()), ..Asked::default() };
        let report = pass::pass(&db.writable, judged, &by_instance).await.expect("a pass");
        assert_eq!((report.selected_total_candidates, report.dispatched_tasks), (1, 1));
        let nobody = Asked { run_ids: vec!["nobody".into()], ..Asked::default() };
        let report = pass::pass(&db.writable, judged, &nobody).await.expect("a pass");
        assert_eq!(report.selected_total_candidates, 0);
    }

    async fn only_one_has_the_right_to_a_pass(db: TestDb) {
        let first = db.writable.exclusive(pass::LOCK).await.expect("an answer");
        let mut first = first.expect("nobody else has it");
        assert!(first.is_held().await);
        assert!(db.writable.exclusive(pass::LOCK).await.expect("an answer").is_none());
        assert!(db.writable.exclusive("another").await.expect("an answer").is_some());
        drop(first);
        // A server notices in its own time that the connection is gone.
        let mut again = None;
        while again.is_none() {
            again = db.writable.exclusive(pass::LOCK).await.expect("an answer");
        }
    }
}
