//! What the engine's own repair pass did to the databases of the corpus, against what ours does.

use std::{
    fs,
    path::{Path, PathBuf},
};

use chrono::TimeDelta;
use plimsoll::{
    clock::Clock,
    demo::{rows::InsertRow, write::write},
    durable::{
        engine_config::EngineConfig,
        repair::{
            Judged, clocks,
            pass::{self, Asked, Refused, Report},
        },
        store::schema,
    },
};
use serde_json::{Value, json};

use crate::{
    compare::Comparison,
    conformance::folders,
    herd,
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

fn read(file: &Path) -> Value {
    let text =
        fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    serde_json::from_str(&text).expect("JSON")
}

/// The scenario's own configuration, but for how workers learn of a task. The engine's pass in the
/// corpus published what it repaired; ours does what it does where there is nothing to publish.
fn polled(folder: &Path) -> EngineConfig {
    in_mode(&read(&folder.join("engine-config.json")), "poll")
}

pub fn in_mode(settings: &Value, mode: &str) -> EngineConfig {
    let mut settings = settings.clone();
    settings["task_dispatch_mode"] = mode.into();
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("engine-config.json");
    fs::write(&file, settings.to_string()).expect("it is written");
    let config = EngineConfig::load(Some(&file)).expect("the configuration");
    assert_eq!(config.text("task_dispatch_mode"), Some(mode));
    config
}

/// Why a pass of ours has nothing to do for candidates of the engine's.
#[derive(Clone, Copy, Debug)]
enum Inert {
    AsItIs,
    RunClosed,
    /// The parents have gone on since their child ended.
    TakenUp,
}

impl Inert {
    async fn make(self, db: &TestDb, runs: &[String]) {
        let update = match self {
            Self::AsItIs => return,
            Self::RunClosed => "update {workflow_runs} set status = 'completed'",
            Self::TakenUp => {
                let dump = row_diff::dump(&db.read_only).await;
                let step = |run: &String| {
                    let last = dump["workflow_runs"][run]["last_history_sequence"].as_i64();
                    InsertRow::new("workflow_history_events")
                        .set("id", format!("01m7step{}", &run[8..]))
                        .set("workflow_run_id", run.as_str())
                        .set("sequence", last.expect("a number") + 1)
                        .set("event_type", "SignalWaitOpened")
                        .set(
                            "payload",
                            r#"{"sequence":9,"signal_wait_id":"W","signal_name":"paid"}"#,
                        )
                        .time("recorded_at", Some(now()))
                };
                let steps = runs.iter().map(step).collect();
                write(&db.writable, steps, |_| ())
                    .await
                    .expect("the rows are written");
                "update {workflow_runs} set last_history_sequence = last_history_sequence + 1 where workflow_type = 'order.return'"
            }
        };
        script(db, update).await;
    }
}

async fn script(db: &TestDb, sql: &'static str) {
    let mut tx = db.writable.write().await.expect("a transaction");
    tx.script(sql).await.expect("it is written");
    tx.commit().await.expect("a commit");
}

const ONE_SCOPE: &str =
    "update {workflow_tasks} set connection = null, queue = 'one', compatibility = null;
    update {workflow_run_summaries} set connection = null, queue = 'one', compatibility = null;";
/// What is there is looked at before what comes later.
const FIRST: &str = "update {workflow_tasks} set available_at = '2026-11-15 02:00:00.000000';
    update {workflow_run_summaries} set wait_started_at = '2026-11-15 02:00:00.000000';";

/// The report as the engine makes one.
fn engine_keys(report: &Report) -> Value {
    let mut told = serde_json::to_value(report).expect("JSON");
    told.as_object_mut().expect("an object").remove("plimsoll");
    told
}

/// How many passes the corpus holds, at least.
const PASSES: usize = 34;

/// The scenarios in which the engine's own pass was let loose.
fn passed_over(root: &Path) -> Vec<PathBuf> {
    let mut folders = folders(&root.join("scenarios"));
    folders.retain(|folder| folder.join("diff-after-watchdog.json").exists());
    folders
}

on_every_database! {
    async fn a_database_on_the_same_machine_goes_by_the_same_clock(db: TestDb) {
        let ahead = clocks::apart(&db.read_only).await.expect("the time there");
        assert_eq!(ahead, None);
    }

    async fn every_pass_of_the_engine_is_done_alike(db: TestDb) {
        let Some(root) = rig::corpus_unpacked() else {
            return;
        };
        let tables: Vec<_> = schema::tables().iter().map(|table| table.name).collect();
        let mut comparison = Comparison::new(PROSE);
        let mut passed = 0;
        for folder in passed_over(&root) {
            passed += 1;
            let recorded = folder.join("diff-after-watchdog.json");
            let name = folder.file_name().unwrap().to_string_lossy().into_owned();
            rig::copy_sqlite(&folder.join("db.sqlite"), &db).await;
            let config = polled(&folder);
            let judged = Judged { clock: Clock::Frozen(moment(&folder)), config: &config };
            let before = row_diff::dump(&db.read_only).await;
            let foreseen = pass::pass(&db.read_only, judged, &Asked { dry_run: true, ..Asked::default() }).await.expect("a dry run");
            assert_eq!(before, row_diff::dump(&db.read_only).await, "{name}: a dry run writes nothing");
            let report = pass::pass(&db.writable, judged, &Asked::default()).await.expect("a pass");
            let after = row_diff::dump(&db.read_only).await;
            assert_eq!(engine_keys(&foreseen), engine_keys(&report), "{name}: as foreseen");
            assert_eq!((foreseen.plimsoll.dry_run, report.plimsoll.dry_run), (true, false));
            let ours = row_diff::without_new_ids(&row_diff::diff(&before, &after));
            let theirs = row_diff::without_new_ids(&row_diff::recorded(&read(&recorded)));
            comparison.document(&name, "pass", &ours, &theirs);
            comparison.document(&name, "pass_report", &engine_keys(&report), &read(&folder.join("watchdog-report.json")));
            rig::empty(&db, &tables).await;
        }
        assert!(passed >= PASSES);
        comparison.finish(&format!("repair pass on {:?}", db.dialect()));
    }

    async fn where_workers_listen_to_a_queue_the_engine_still_gets_to_publish(db: TestDb) {
        let Some(root) = rig::corpus_unpacked() else {
            return;
        };
        let tables: Vec<_> = schema::tables().iter().map(|table| table.name).collect();
        let mut comparison = Comparison::new(PROSE);
        let (mut made_ready, mut left) = (0, 0);
        for folder in passed_over(&root) {
            let name = folder.file_name().unwrap().to_string_lossy().into_owned();
            rig::copy_sqlite(&folder.join("db.sqlite"), &db).await;
            let config = configured(&folder);
            assert_ne!(config.text("task_dispatch_mode"), Some("poll"), "{name}");
            let ready = |dump: &row_diff::Dump| -> Vec<Value> {
                let tasks = dump["workflow_tasks"].values();
                tasks.filter(|task| task["status"] == "ready").map(|task| task["id"].clone()).collect()
            };
            let before = row_diff::dump(&db.read_only).await;
            let mut report = Report::default();
            // Again and again, before and after the engine's patience ends.
            for seconds in 0..12 {
                let clock = Clock::Frozen(moment(&folder) + TimeDelta::seconds(seconds));
                report = pass::pass(&db.writable, Judged { clock, config: &config }, &Asked::default()).await.expect("a pass");
                assert!(!report.failed(), "{name}: {report:?}");
                if seconds == 0 {
                    let after = row_diff::dump(&db.read_only).await;
                    let ours = row_diff::without_new_ids(&row_diff::diff(&before, &after));
                    let theirs = row_diff::recorded(&read(&folder.join("diff-after-watchdog.json")));
                    comparison.document(&name, "pass_queued", &ours, &row_diff::without_new_ids(&theirs));
                    comparison.document(&name, "pass_queued_report", &engine_keys(&report), &read(&folder.join("watchdog-report.json")));
                }
            }
            let after = row_diff::dump(&db.read_only).await;
            for (id, task) in &after["workflow_tasks"] {
                let was = before["workflow_tasks"].get(id);
                for column in ["last_dispatch_attempt_at", "last_dispatched_at", "last_dispatch_error"] {
                    let was = was.map_or(&Value::Null, |was| &was[column]);
                    assert_eq!(&task[column], was, "{name}: {column} is the engine's to write");
                }
                let repairs = |task: &serde_json::Map<String, Value>| task["repair_count"].as_i64().expect("a number");
                let spent = repairs(task) - was.map_or(0, repairs);
                assert!(spent <= 1, "{name}: repaired {spent} times");
            }
            let (was_ready, is_ready) = (ready(&before), ready(&after));
            made_ready += is_ready.iter().filter(|id| !was_ready.contains(id)).count();
            left += report.plimsoll.left_to_the_engine;
            // What is due and ready is what the engine's own selection finds.
            let due = report.selected_existing_task_candidates;
            assert_eq!(report.repaired_existing_tasks, 0, "{name}");
            assert!(report.plimsoll.left_to_the_engine <= due && due <= is_ready.len(), "{name}: {report:?}");
            rig::empty(&db, &tables).await;
        }
        comparison.finish(&format!("repair pass without publishing on {:?}", db.dialect()));
        assert!(made_ready >= 5 && left >= 5, "{made_ready} made ready, {left} left to the engine");
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

    async fn a_run_past_its_deadline_that_gets_its_task_back_needs_no_other(db: TestDb) {
        let config = EngineConfig::defaults();
        let judged = Judged { clock: Clock::Frozen(now()), config: &config };
        herd::lay_out(&db, "signal-task-lost", now(), 1).await;
        script(&db, "update {workflow_runs} set run_deadline_at = '2026-11-15 02:00:00.000000'").await;
        for dry_run in [true, false] {
            let asked = Asked { dry_run, ..Asked::default() };
            let report = pass::pass(&db.writable, judged, &asked).await.expect("a pass");
            assert_eq!(report.repaired_missing_tasks, 1, "{report:?}");
            assert_eq!(report.deadline_expired_candidates, 0, "{report:?}");
            assert_eq!(report.plimsoll.refused, [], "{report:?}");
        }
    }

    async fn what_a_pass_leaves_alone_does_not_hold_up_what_it_repairs(db: TestDb) {
        let tables: Vec<_> = schema::tables().iter().map(|table| table.name).collect();
        for (candidates, inert, mode, in_need) in [
            ("dispatch-overdue", Inert::AsItIs, "queue", "lease-expired-workflow"),
            ("dispatch-overdue", Inert::RunClosed, "poll", "lease-expired-workflow"),
            ("lease-expired-workflow", Inert::RunClosed, "queue", "lease-expired-activity"),
            ("claim-failed", Inert::AsItIs, "poll", "lease-expired-workflow"),
            ("child-resolution-task-lost", Inert::TakenUp, "queue", "signal-task-lost"),
        ] {
            let what = format!("{candidates} {inert:?} before {in_need} in {mode} mode");
            let config = in_mode(&json!({"task_repair": {"scan_limit": 2}}), mode);
            let judged = Judged { clock: Clock::Frozen(now()), config: &config };
            let runs = herd::lay_out(&db, candidates, now(), 3).await;
            inert.make(&db, &runs).await;
            script(&db, ONE_SCOPE).await;
            script(&db, FIRST).await;
            let before = row_diff::dump(&db.read_only).await;
            let report = pass::pass(&db.writable, judged, &Asked::default()).await.expect("a pass");
            let selected = report.selected_total_candidates;
            assert_eq!((selected, report.dispatched_tasks), (2, 0), "{what}: {report:?}");
            assert_eq!(row_diff::dump(&db.read_only).await, before, "{what}: left as it is");
            herd::lay_out(&db, in_need, now(), 1).await;
            script(&db, ONE_SCOPE).await;
            let report = pass::pass(&db.writable, judged, &Asked::default()).await.expect("a pass");
            assert_eq!(report.dispatched_tasks, 1, "{what}: {report:?}");
            assert_eq!(report.selected_total_candidates, selected, "{what}: as the engine selects");
            rig::empty(&db, &tables).await;
        }
    }

    async fn a_pass_gets_past_many_it_leaves_alone_and_tells_where_it_ends(db: TestDb) {
        let config = in_mode(&json!({"task_repair": {"scan_limit": 1}}), "queue");
        let judged = Judged { clock: Clock::Frozen(now()), config: &config };
        // Summaries alone: a look at one finds no run.
        let inert = async |numbers: std::ops::Range<u32>| {
            let moment = now() - TimeDelta::hours(10);
            let row = |n| {
                InsertRow::new("workflow_run_summaries")
                    .set("id", format!("01m7summaryalone{n:010}"))
                    .set("workflow_instance_id", format!("alone-{n}"))
                    .set("run_number", 1)
                    .set("is_current_run", true)
                    .set("class", "App\\Alone")
                    .set("workflow_type", "alone")
                    .set("status", "waiting")
                    .set("status_bucket", "running")
                    .set("liveness_state", "repair_needed")
                    .time("wait_started_at", Some(moment))
                    .time("started_at", Some(moment))
                    .stamps(moment, moment)
            };
            write(&db.writable, numbers.map(row).collect(), |_| ()).await.expect("the rows are written");
            script(&db, ONE_SCOPE).await;
        };
        let asked = Asked { dry_run: true, ..Asked::default() };
        let lost = herd::lay_out(&db, "signal-task-lost", now(), 1).await;
        inert(0..30).await;
        let report = pass::pass(&db.writable, judged, &asked).await.expect("a pass");
        assert_eq!((report.repaired_missing_tasks, report.plimsoll.not_looked_at), (1, 0), "{report:?}");
        assert_eq!(report.selected_missing_task_candidates, 1, "as the engine selects");

        inert(30..82).await;
        let report = pass::pass(&db.writable, judged, &asked).await.expect("a pass");
        assert_eq!((report.repaired_missing_tasks, report.plimsoll.not_looked_at), (0, 3), "{report:?}");
        let named = Asked { run_ids: lost, ..asked };
        let report = pass::pass(&db.writable, judged, &named).await.expect("a pass");
        assert_eq!((report.repaired_missing_tasks, report.plimsoll.not_looked_at), (1, 0), "{report:?}");
    }

    async fn what_is_stuck_for_good_fails_the_pass_and_what_is_not_is_named(db: TestDb) {
        let tables: Vec<_> = schema::tables().iter().map(|table| table.name).collect();
        let config = EngineConfig::defaults();
        let judged = Judged { clock: Clock::Frozen(now()), config: &config };
        for (name, update, code, failed) in [
            ("timer-row-and-task-lost", "update {workflow_runs} set last_history_sequence = last_history_sequence + 1", "unreadable_rows", true),
            ("activity-task-lost", "update {activity_executions} set status = 'running'", "not_restorable", true),
            ("signal-task-lost", "update {workflow_tasks} set status = 'suspended'", "open_task", false),
        ] {
            let run = &herd::lay_out(&db, name, now(), 1).await[0];
            let whole = pass::pass(&db.read_only, judged, &Asked { dry_run: true, ..Asked::default() }).await.expect("a dry run");
            assert_eq!(whole.repaired_missing_tasks, 1, "{name}: it is repairable as it is");
            script(&db, update).await;
            let report = pass::pass(&db.writable, judged, &Asked::default()).await.expect("a pass");
            assert_eq!((report.dispatched_tasks, report.failed()), (0, failed), "{name}: {report:?}");
            if failed {
                let failure = &report.missing_run_failures[0];
                assert_eq!(&failure.run_id, run);
                assert!(failure.message.starts_with(code), "{name}: {}", failure.message);
                assert_eq!(report.plimsoll.refused, [], "{name}");
            } else {
                let refused = Refused { run_id: run.clone(), code: code.to_owned() };
                assert_eq!(report.plimsoll.refused, [refused], "{name}");
            }
            rig::empty(&db, &tables).await;
        }
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
