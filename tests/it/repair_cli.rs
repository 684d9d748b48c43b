//! `plimsoll repair-pass` and `serve --repair-loop` as an operator meets them.

use plimsoll::{clock::Clock, db::Dialect, durable::repair::pass};
use serde_json::Value;

use crate::{
    cli::{Started, ends, plimsoll, refusal, serve},
    herd,
    rig::{self, TestDb, on_every_database},
    row_diff,
};

const KEYS: [&str; 21] = [
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
    "plimsoll",
];

/// Runs a pass that must succeed; its report.
async fn passed(db: &TestDb, more: &[&str]) -> Value {
    let (code, out) = ran(db, more).await;
    assert_eq!(code, Some(0), "{out}");
    serde_json::from_str(&out).expect("one line of JSON")
}

/// Exit code and standard output of a pass that reports as JSON.
async fn ran(db: &TestDb, more: &[&str]) -> (Option<i32>, String) {
    let mut args = vec!["repair-pass", "--json", "--database-url", &db.url];
    args.extend(more);
    let args: Vec<String> = args.into_iter().map(str::to_owned).collect();
    let output = tokio::task::spawn_blocking(move || {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        ends(&args)
    });
    let output = output.await.expect("no panic");
    (
        output.status.code(),
        String::from_utf8(output.stdout).expect("text"),
    )
}

/// How many tasks of a run are open.
async fn open_tasks(db: &TestDb, run: &str) -> usize {
    let dump = row_diff::dump_run(&db.read_only, run).await;
    let tasks = dump["workflow_tasks"].values();
    tasks.filter(|task| task["status"] == "ready").count()
}

#[test]
fn a_pass_that_may_not_be_is_explained() {
    let pass = |more: &[&'static str]| {
        let mut args = vec!["repair-pass"];
        args.extend(more);
        args
    };
    refusal(&pass(&[]), 2, &["--database-url"]);
    let nowhere = ["--database-url", "sqlite:/nowhere"];
    refusal(&pass(&nowhere), 2, &["--allow-repair", "--dry-run"]);
    let frozen = [
        &nowhere[..],
        &["--allow-repair", "--clock", "2030-01-01T00:00:00Z"],
    ]
    .concat();
    refusal(&pass(&frozen), 2, &["--clock", "--allow-repair"]);
    refusal(
        &serve(
            "sqlite:/nowhere",
            &["--allow-repair", "--clock", "2030-01-01T00:00:00Z"],
        ),
        2,
        &["--clock", "--allow-repair"],
    );
    refusal(
        &serve("sqlite:/nowhere", &["--repair-loop"]),
        2,
        &["--allow-repair"],
    );
}

on_every_database! {
    async fn a_pass_does_what_its_flags_say(db: TestDb) {
        let runs = herd::lay_out(&db, "activity-task-lost", Clock::System.now(), 5).await;
        let before = row_diff::dump(&db.read_only).await;
        let report = passed(&db, &["--dry-run"]).await;
        let keys: Vec<&str> = report.as_object().expect("an object").keys().map(String::as_str).collect();
        assert_eq!(keys, KEYS);
        assert_eq!((&report["selected_total_candidates"], &report["repaired_missing_tasks"]), (&5.into(), &5.into()));
        assert_eq!(report["plimsoll"], serde_json::json!({"dry_run": true, "left_to_the_engine": 0, "not_looked_at": 0, "refused": []}));
        assert_eq!(row_diff::dump(&db.read_only).await, before, "a dry run writes nothing");

        let padded = format!(" {} ", runs[1]);
        let report = passed(&db, &["--allow-repair", "--run-id", &runs[0], "--run-id", &padded, "--run-id", &runs[0], "--run-id", " "]).await;
        assert_eq!(report["plimsoll"]["dry_run"], false);
        assert_eq!(report["run_ids"], serde_json::json!([runs[0], runs[1]]), "trimmed, each once");
        assert_eq!((&report["repaired_missing_tasks"], &report["dispatched_tasks"]), (&2.into(), &2.into()));
        assert_eq!((open_tasks(&db, &runs[0]).await, open_tasks(&db, &runs[1]).await, open_tasks(&db, &runs[2]).await), (1, 1, 0));

        let instance = before["workflow_runs"][&runs[2]]["workflow_instance_id"].as_str().expect("an id").to_owned();
        let report = passed(&db, &["--allow-repair", "--instance-id", &instance]).await;
        assert_eq!((&report["instance_id"], &report["repaired_missing_tasks"]), (&instance.as_str().into(), &1.into()));
        assert_eq!((open_tasks(&db, &runs[2]).await, open_tasks(&db, &runs[3]).await), (1, 0));

        let right = db.writable.exclusive(pass::LOCK).await.expect("an answer").expect("nobody else has it");
        let report = passed(&db, &["--allow-repair", "--respect-throttle", "--run-id", &runs[3]]).await;
        assert_eq!((&report["respect_throttle"], &report["throttled"]), (&true.into(), &true.into()));
        assert_eq!(open_tasks(&db, &runs[3]).await, 0, "another is at it");
        let report = passed(&db, &["--allow-repair", "--run-id", &runs[3]]).await;
        assert_eq!((&report["throttled"], &report["repaired_missing_tasks"]), (&false.into(), &1.into()));
        drop(right);

        let report = passed(&db, &["--allow-repair"]).await;
        assert_eq!(report["repaired_missing_tasks"], 1);
        for run in &runs {
            assert_eq!(open_tasks(&db, run).await, 1, "{run}");
        }
        let report = passed(&db, &["--allow-repair"]).await;
        assert_eq!(report["dispatched_tasks"], 0, "there is nothing left");
    }

    async fn of_several_copies_one_repairs_and_another_takes_its_place(db: TestDb) {
        let copy = |db: &TestDb| {
            let mut command = plimsoll(&serve(&db.url, &["--allow-repair", "--repair-loop"]));
            command.env("DW_V2_TASK_REPAIR_LOOP_THROTTLE_SECONDS", "1");
            tokio::task::spawn_blocking(move || Started::new(command))
        };
        let passes = |log: &str| log.lines().filter(|line| line.contains("repair pass")).count();
        let stop = |copy: Started| tokio::task::spawn_blocking(move || copy.stop());

        let first = copy(&db).await.expect("no panic");
        let moment = Clock::System.now();
        repaired(&db, &herd::lay_out(&db, "activity-task-lost", moment, 1).await[0]).await;
        let others = [copy(&db).await.expect("no panic"), copy(&db).await.expect("no panic")];
        repaired(&db, &herd::lay_out(&db, "signal-task-lost", moment, 1).await[0]).await;
        let (status, log) = stop(first).await.expect("no panic");
        assert_eq!((status.code(), passes(&log)), (Some(0), 2), "{log}");
        repaired(&db, &herd::lay_out(&db, "update-task-lost", moment, 1).await[0]).await;
        let mut taken_over = 0;
        for other in others {
            let (status, log) = stop(other).await.expect("no panic");
            assert_eq!(status.code(), Some(0), "{log}");
            taken_over += passes(&log);
        }
        assert_eq!(taken_over, 1, "one of them, once the first was gone");
    }
}

/// Looks until the run has its task.
async fn repaired(db: &TestDb, run: &str) {
    let looking = async {
        while open_tasks(db, run).await == 0 {
            tokio::task::yield_now().await;
        }
    };
    let found = tokio::time::timeout(crate::cli::PATIENCE, looking).await;
    found.unwrap_or_else(|_| panic!("nobody repairs {run}"));
    assert_eq!(open_tasks(db, run).await, 1);
}

/// A repair that the database refuses is told by the exit code, and the others are done.
#[tokio::test]
async fn what_could_not_be_repaired_fails_the_pass() {
    rig::on(Dialect::Sqlite, |db| async move {
        let runs = herd::lay_out(&db, "activity-task-lost", Clock::System.now(), 3).await;
        let mut tx = db.writable.write().await.expect("a transaction");
        // Of the copies, the second.
        tx.script(
            "create trigger refuse before insert on {workflow_tasks} when new.workflow_run_id like '%0001'
             begin select raise(abort, 'not this one'); end",
        )
        .await
        .expect("a trigger");
        tx.commit().await.expect("a commit");
        let (code, out) = ran(&db, &["--allow-repair"]).await;
        assert_eq!(code, Some(1), "{out}");
        let report: Value = serde_json::from_str(&out).expect("one line of JSON");
        assert_eq!(report["repaired_missing_tasks"], 2);
        let failures = report["missing_run_failures"].as_array().expect("a list");
        assert_eq!(failures.len(), 1, "{out}");
        assert_eq!(failures[0]["run_id"], runs[1].as_str());
        assert_eq!(failures[0].as_object().expect("an object").len(), 2);
        assert_eq!((open_tasks(&db, &runs[0]).await, open_tasks(&db, &runs[1]).await, open_tasks(&db, &runs[2]).await), (1, 0, 1));
    })
    .await;
}
