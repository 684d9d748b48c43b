//! The real binary: `repair-pass` as a script calls it, killed in the middle, and `serve` with its
//! repair loop.

use std::{
    process::{Command, Output, Stdio},
    time::Duration,
};

use plimsoll::{
    db::Db,
    demo::{Situation, catalogue, write::write},
    durable::{
        engine_config::EngineConfig,
        repair::{
            Judged,
            pass::{self, Asked},
        },
        store::schema,
    },
};
use serde_json::Value;

use crate::{
    cli::{Started, ends, plimsoll, refusal, serve},
    copies::copy,
    rig::{self, TestDb, on_every_database},
    row_diff::{self, Dump},
    shop::now,
};

const CLOCK: &str = "2026-11-15T12:00:00Z";

/// The report's keys, in the engine's order.
const KEYS: [&str; 20] = [
    "connection",
    "queue",
    "run_ids",
    "instance_id",
    "respect_throttle",
    "throttled",
    "selected_existing_task_candidates",
    "selected_missing_task_candidates",
    "selected_total_candidates",
    "repaired_existing_tasks",
    "repaired_missing_tasks",
    "dispatched_tasks",
    "existing_task_failures",
    "missing_run_failures",
    "deadline_expired_candidates",
    "deadline_expired_tasks_created",
    "deadline_expired_failures",
    "activity_timeout_candidates",
    "activity_timeouts_enforced",
    "activity_timeout_failures",
];

fn pass_args<'a>(url: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec!["repair-pass", "--database-url", url, "--clock", CLOCK];
    args.extend(more);
    args
}

/// Runs the command to its end, away from the threads the test's own connections need.
async fn called(url: &str, more: &[&str]) -> Output {
    let args: Vec<String> = pass_args(url, more).into_iter().map(Into::into).collect();
    let call = move || ends(&args.iter().map(String::as_str).collect::<Vec<_>>());
    tokio::task::spawn_blocking(call).await.unwrap()
}

async fn reported(url: &str, more: &[&str], code: i32) -> Value {
    let output = called(url, &[more, &["--json"]].concat()).await;
    let (out, log) = (
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    );
    assert_eq!(output.status.code(), Some(code), "{out}{log}");
    assert_eq!(out.lines().count(), 1, "one line: {out}");
    serde_json::from_str(&out).expect("JSON")
}

fn situation(name: &str) -> Situation {
    let found = catalogue(now())
        .into_iter()
        .find(|found| found.name == name);
    found.expect("in the catalogue")
}

async fn lay_out(db: &TestDb, situations: &[Situation]) {
    let tables: Vec<_> = schema::tables().iter().map(|table| table.name).collect();
    rig::empty(db, &tables).await;
    let rows = situations
        .iter()
        .flat_map(|situation| situation.rows.clone());
    write(&db.writable, rows.collect(), |_| ())
        .await
        .expect("the rows are written");
}

on_every_database! {
    async fn the_command_repairs_what_it_is_asked_to_and_says_so(db: TestDb) {
        let [one, other, third] = ["lease-expired-activity", "activity-task-lost", "signal-task-lost"].map(situation);
        lay_out(&db, &[one.clone(), other.clone(), third.clone()]).await;
        let before = row_diff::dump(&db.read_only).await;

        let url = db.url.clone();
        let refused = tokio::task::spawn_blocking(move || refusal(&pass_args(&url, &[]), 2, &["--allow-repair", "--dry-run"]));
        refused.await.unwrap();
        let foreseen = reported(&db.url, &["--dry-run"], 0).await;
        let keys: Vec<&str> = foreseen.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, KEYS);
        assert_eq!(foreseen["dispatched_tasks"], 3);
        let told = called(&db.url, &["--dry-run"]).await;
        assert_eq!(String::from_utf8(told.stdout).unwrap(), "1 of 1 tasks in trouble would be repaired; 2 of 2 missing tasks; 0 of 0 runs past their deadline.\n");
        assert_eq!(row_diff::dump(&db.read_only).await, before, "a dry run writes nothing");

        // Twice the same run is that run; blanks are nothing.
        let by_run = ["--allow-repair", "--run-id", &other.run_id, "--run-id", &other.run_id, "--run-id", " "];
        let report = reported(&db.url, &by_run, 0).await;
        assert_eq!(report["run_ids"], serde_json::json!([other.run_id]));
        assert_eq!((&report["selected_total_candidates"], &report["repaired_missing_tasks"]), (&1.into(), &1.into()));
        let instance = ["--allow-repair", "--instance-id", &third.instance_id];
        let report = reported(&db.url, &instance, 0).await;
        assert_eq!((&report["instance_id"], &report["dispatched_tasks"]), (&third.instance_id.as_str().into(), &1.into()));
        let untouched = row_diff::dump_run(&db.read_only, &one.run_id).await;
        assert!(untouched["workflow_tasks"].iter().all(|(id, row)| before["workflow_tasks"][id] == *row));
        let nobody = reported(&db.url, &["--allow-repair", "--run-id", "nobody"], 0).await;
        assert_eq!(nobody["selected_total_candidates"], 0);

        // While another pass is under way, one that minds does nothing.
        let right = db.writable.exclusive(pass::LOCK).await.unwrap().expect("nobody else has it");
        let throttled = reported(&db.url, &["--allow-repair", "--respect-throttle"], 0).await;
        assert_eq!((&throttled["respect_throttle"], &throttled["throttled"]), (&true.into(), &true.into()));
        assert_eq!(row_diff::dump_run(&db.read_only, &one.run_id).await, untouched);
        let told = called(&db.url, &["--allow-repair", "--respect-throttle"]).await;
        assert!(String::from_utf8(told.stdout).unwrap().contains("nothing was done"));
        let report = reported(&db.url, &["--allow-repair"], 0).await;
        assert_eq!((&report["throttled"], &report["repaired_existing_tasks"]), (&false.into(), &1.into()));
        drop(right);
        let nothing = reported(&db.url, &["--allow-repair"], 0).await;
        assert_eq!(nothing["selected_total_candidates"], 0);
    }

    async fn what_could_not_be_repaired_is_told_by_the_exit_code(db: TestDb) {
        let (one, other) = (situation("lease-expired-activity"), situation("activity-task-lost"));
        lay_out(&db, &[one.clone(), other.clone()]).await;
        // The database itself refuses to give the lease back.
        let mut tx = db.writable.write().await.unwrap();
        tx.script(db.dialect().pick(
            "create trigger stubborn before update on {workflow_tasks} begin select raise(abort, 'stubborn'); end",
            "alter table {workflow_tasks} add constraint stubborn check (status <> 'ready' or attempt_count = 0) not valid",
            "create trigger stubborn before update on {workflow_tasks} for each row signal sqlstate '45000' set message_text = 'stubborn'",
        )).await.unwrap();
        tx.commit().await.unwrap();
        let before = row_diff::dump_run(&db.read_only, &one.run_id).await;
        let report = reported(&db.url, &["--allow-repair"], 1).await;
        let failures = report["existing_task_failures"].as_array().unwrap();
        assert_eq!(failures.len(), 1, "{report}");
        assert!(before["workflow_tasks"].contains_key(failures[0]["candidate_id"].as_str().unwrap()));
        assert!(!failures[0]["message"].as_str().unwrap().is_empty());
        assert_eq!(report["repaired_missing_tasks"], 1, "one failure does not stop the others: {report}");
        assert_eq!(row_diff::dump_run(&db.read_only, &one.run_id).await, before, "nothing is half done");
    }

    async fn a_process_killed_in_the_middle_leaves_each_run_as_before_or_as_after(db: TestDb) {
        const ROUNDS: usize = 8;
        const OF_EACH: usize = 8;
        let names = ["lease-expired-activity", "activity-task-lost", "signal-task-lost", "timer-row-and-task-lost"];
        let mut situations = Vec::new();
        for name in names {
            let original = situation(name);
            situations.extend((0..OF_EACH).map(|n| copy(&original, n)));
        }
        let all = situations.len();
        lay_out(&db, &situations).await;
        let before = row_diff::dump(&db.read_only).await;
        let report = pass::pass(&db.writable, judged(), &Asked::default()).await.expect("a pass");
        assert_eq!(report.dispatched_tasks, all);
        let whole = effects(&before, &row_diff::dump(&db.read_only).await, &situations);

        let mut cut = 0;
        for _ in 0..ROUNDS {
            lay_out(&db, &situations).await;
            let mut command = plimsoll(&pass_args(&db.url, &["--allow-repair"]));
            let mut pass = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the binary starts");
            // It dies somewhere in the repair after this many.
            let enough = fastrand::usize(1..all);
            while repaired(&db.read_only, &before).await < enough {
                assert!(pass.try_wait().unwrap().is_none() || repaired(&db.read_only, &before).await >= enough);
            }
            tokio::time::sleep(Duration::from_micros(fastrand::u64(0..15_000))).await;
            pass.kill().unwrap();
            pass.wait().unwrap();
            let left = effects(&before, &row_diff::dump(&db.read_only).await, &situations);
            let mut done = 0;
            for ((left, whole), situation) in left.iter().zip(&whole).zip(&situations) {
                let untouched = left.as_object().unwrap().is_empty();
                assert!(untouched || left == whole, "{} {}: {left:#}", situation.name, situation.run_id);
                done += usize::from(!untouched);
            }
            assert!(done >= enough, "{done} of {enough}");
            cut += usize::from(done < all);
            // Whoever comes next finishes the rest.
            let rest = pass::pass(&db.writable, judged(), &Asked::default()).await.expect("a pass");
            assert_eq!(rest.dispatched_tasks, all - done);
            assert_eq!(effects(&before, &row_diff::dump(&db.read_only).await, &situations), whole);
        }
        assert!(cut > 0, "it was never killed in time");
    }

    async fn of_two_copies_with_a_repair_loop_one_acts(db: TestDb) {
        let (one, other) = (situation("activity-task-lost"), situation("signal-task-lost"));
        lay_out(&db, std::slice::from_ref(&one)).await;
        let before = row_diff::dump(&db.read_only).await;
        let start = |more: &'static [&'static str]| {
            let more = [&["--clock", CLOCK, "--log", "info", "--allow-repair"], more].concat();
            let mut command: Command = plimsoll(&serve(&db.url, &more));
            command.env("DW_V2_TASK_REPAIR_LOOP_THROTTLE_SECONDS", "1");
            tokio::task::spawn_blocking(move || Started::new(command))
        };
        // Unasked, none does.
        let idle = start(&[]).await.unwrap();
        let copies = [start(&["--repair-loop"]).await.unwrap(), start(&["--repair-loop"]).await.unwrap()];
        while repaired(&db.read_only, &before).await < 1 {}
        write(&db.writable, other.rows.clone(), |_| ()).await.expect("another run is in trouble");
        while repaired(&db.read_only, &before).await < 3 {}
        let logs = copies.map(|copy| copy.stop().1);
        let acted = |log: &String| log.matches("repair pass").count();
        let mut acted = logs.each_ref().map(acted);
        acted.sort_unstable();
        assert_eq!(acted, [0, 2], "{logs:?}");
        let (_, log) = idle.stop();
        assert!(!log.contains("repair pass"), "{log}");
        let tasks = row_diff::dump(&db.read_only).await;
        for run in [&one, &other] {
            let of_run = tasks["workflow_tasks"].values().filter(|row| row["workflow_run_id"] == run.run_id.as_str());
            assert_eq!(of_run.filter(|row| row["status"] == "ready").count(), 1, "{}", run.name);
        }
    }
}

fn judged() -> Judged<'static> {
    static CONFIG: std::sync::LazyLock<EngineConfig> =
        std::sync::LazyLock::new(EngineConfig::defaults);
    Judged {
        clock: plimsoll::clock::Clock::Frozen(now()),
        config: &CONFIG,
    }
}

/// How many tasks are there that were not, or are not what they were.
async fn repaired(db: &Db, before: &Dump) -> usize {
    let mut q = db.statement();
    q.push("select id, status, repair_count from {workflow_tasks}");
    let rows = db.fetch(q).await.expect("the tasks");
    let changed = rows.into_iter().filter_map(|mut row| {
        let old = before["workflow_tasks"].get(&row.text("id").unwrap());
        let same = old.is_some_and(|old| old["repair_count"] == row.int("repair_count").unwrap());
        (!same).then_some(())
    });
    changed.count()
}

/// What happened to each run, new ids aside.
fn effects(before: &Dump, after: &Dump, situations: &[Situation]) -> Vec<Value> {
    let of_run = |dump: &Dump, run_id: &str| -> Dump {
        let mine = |table: &str, key: &str, row: &serde_json::Map<String, Value>| match table {
            "workflow_runs" | "workflow_run_summaries" => key == run_id,
            _ => row.get("workflow_run_id").is_some_and(|id| id == run_id),
        };
        let tables = dump.iter().map(|(table, rows)| {
            let rows = rows.iter().filter(|(key, row)| mine(table, key, row));
            (
                *table,
                rows.map(|(key, row)| (key.clone(), row.clone())).collect(),
            )
        });
        tables.collect()
    };
    let effects = situations.iter().map(|situation| {
        let id = &situation.run_id;
        row_diff::without_new_ids(&row_diff::diff(&of_run(before, id), &of_run(after, id)))
    });
    effects.collect()
}
