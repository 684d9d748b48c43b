//! Several at once: operators, workers, and a process that dies in the middle.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use plimsoll::{
    clock::Clock,
    db::{Db, DbError},
    demo::{Situation, write::write},
    durable::{
        engine_config::EngineConfig,
        repair::{
            self, ApplyError, Goal, Judged, Kind, apply,
            pass::{self, Asked},
        },
        store::schema,
    },
};

use crate::{
    herd,
    repair_conformance::by_run,
    rig::{self, TestDb, on_every_database},
    row_diff,
    shop::{self, now},
    worker,
};

async fn lay_out(db: &TestDb, situation: &Situation) {
    let tables: Vec<_> = schema::tables().iter().map(|table| table.name).collect();
    rig::empty(db, &tables).await;
    write(&db.writable, situation.rows.clone(), |_| ())
        .await
        .expect("the rows are written");
}

/// One situation of each kind of repair, found by asking.
async fn one_of_each_kind(db: &TestDb) -> Vec<(Kind, String, Situation)> {
    let config = EngineConfig::defaults();
    let request = by_run();
    let mut found: Vec<(Kind, String, Situation)> = Vec::new();
    // A long history is no other kind.
    let small = |situation: &Situation| situation.rows.len() < 500;
    for situation in shop::at(now()).into_iter().filter(small) {
        lay_out(db, &situation).await;
        let judged = judged(&config);
        let goal = Goal::Asked(&request);
        if let Ok(plan) = repair::preview(&db.read_only, judged, &situation.run_id, goal).await
            && !found
                .iter()
                .any(|(kind, task_type, _)| (*kind, task_type) == (plan.kind, &plan.task_type))
        {
            found.push((plan.kind, plan.task_type, situation));
        }
    }
    assert!(found.len() >= 10, "{}", found.len());
    found
}

fn judged(config: &EngineConfig) -> Judged<'_> {
    Judged {
        clock: Clock::Frozen(now()),
        config,
    }
}

type Rows = Vec<serde_json::Map<String, serde_json::Value>>;

on_every_database! {
    async fn sixteen_repairers_have_one_effect(db: TestDb) {
        for (kind, _, situation) in one_of_each_kind(&db).await {
            lay_out(&db, &situation).await;
            let before = row_diff::dump(&db.read_only).await;
            let repairers = (0..16).map(|_| {
                let (db, run_id) = (db.writable.clone(), situation.run_id.clone());
                tokio::spawn(async move {
                    let (config, request) = (EngineConfig::defaults(), by_run());
                    repair::repair(&db, judged(&config), &run_id, Goal::Asked(&request), None).await
                })
            });
            let mut done = Vec::new();
            for repairer in repairers.collect::<Vec<_>>() {
                match repairer.await.expect("no panic") {
                    Ok(plan) => done.push(plan),
                    Err(ApplyError::Refused(refusal)) => assert_eq!(refusal.code(), "repair_not_needed", "{kind:?}"),
                    Err(ApplyError::StateChanged | ApplyError::Db(DbError::Busy(_))) => {}
                    Err(error) => panic!("{kind:?}: {error}"),
                }
            }
            assert_eq!(done.len(), 1, "{kind:?}");
            let after = row_diff::dump(&db.read_only).await;
            assert_eq!(row_diff::promised(&done[0].changes), row_diff::diff(&before, &after), "{kind:?}");
        }
    }

    async fn a_process_that_dies_leaves_all_or_nothing(db: TestDb) {
        let (config, request) = (EngineConfig::defaults(), by_run());
        let goal = Goal::Asked(&request);
        for (kind, _, situation) in one_of_each_kind(&db).await {
            lay_out(&db, &situation).await;
            let before = row_diff::dump(&db.read_only).await;
            let plan = repair::preview(&db.read_only, judged(&config), &situation.run_id, goal).await.expect("a plan");
            // After each statement but before the commit.
            for statements in 0..=plan.changes.len() {
                let mut tx = db.writable.write().await.expect("a transaction");
                for change in &plan.changes[..statements] {
                    let q = apply::statement(tx.statement(), change);
                    assert_eq!(tx.execute(q).await.expect("it is written"), 1);
                }
                drop(tx);
                assert_eq!(row_diff::dump(&db.read_only).await, before, "{kind:?} after {statements}");
            }
        }
    }

    async fn workers_and_repairers_never_undo_each_other(db: TestDb) {
        let (mut rounds, mut won) = (0, Tally::default());
        for (situation, by_pass) in STATES {
            let runs = herd::lay_out(&db, situation, now(), ROUNDS).await;
            let before = by_run_id(&row_diff::dump(&db.read_only).await);
            let mut tallies = BTreeMap::new();
            for some in runs.chunks(AT_ONCE) {
                let meetings: Vec<_> = some.iter().map(|run| tokio::spawn(meet(db.writable.clone(), run.clone()))).collect();
                for (run, meeting) in some.iter().zip(meetings) {
                    tallies.insert(run.clone(), meeting.await.expect("no panic"));
                }
            }
            let after = by_run_id(&row_diff::dump(&db.read_only).await);
            let mut all = Tally::default();
            for (run, tally) in &tallies {
                check(&format!("{situation} {run}"), &before[run], &after[run], *tally);
                all = all.and(*tally);
                rounds += 1;
            }
            assert!(by_pass || all.passed == 0, "{situation}: {all:?}");
            won = won.and(all);
            let tables: Vec<_> = schema::tables().iter().map(|table| table.name).collect();
            rig::empty(&db, &tables).await;
        }
        assert!(rounds >= 2_000, "{rounds}");
        // Who wins one state's meetings is for the machine to say.
        assert!(won.asked > 0 && won.passed > 0 && won.completed > 0, "each side wins sometimes: {won:?}");
    }
}

/// Every meeting is of two operators, a pass and two workers on one run, a few dozen statements in
/// an order of its own.
const ROUNDS: usize = 200;
const AT_ONCE: usize = 4;
/// What is wrong with the run they meet on, and whether a pass may repair it: a replay block is an
/// operator's to clear, and where workers listen to a queue a ready task is the engine's to publish.
const STATES: [(&str, bool); 10] = [
    ("lease-expired-activity", true),
    ("lease-expired-workflow", true),
    ("replay-blocked-history-shape", false),
    ("dispatch-failed", false),
    ("dispatch-overdue", false),
    ("activity-task-lost", true),
    ("signal-task-lost", true),
    ("timer-row-and-task-lost", true),
    ("update-task-lost", true),
    ("child-resolution-task-lost", true),
];

/// What was done to one run.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    /// Repairs by operators.
    asked: usize,
    /// Repairs by a pass.
    passed: usize,
    /// Tasks that workers completed.
    completed: usize,
}

impl Tally {
    fn and(self, other: Self) -> Self {
        Self {
            asked: self.asked + other.asked,
            passed: self.passed + other.passed,
            completed: self.completed + other.completed,
        }
    }
}

async fn meet(db: Db, run_id: String) -> Tally {
    let owner = worker::holder(&db, &run_id).await;
    let mut workers = Vec::new();
    for name in [owner.as_deref().unwrap_or("a-worker"), "another-worker"] {
        let (db, run_id, name) = (db.clone(), run_id.clone(), name.to_owned());
        workers.push(tokio::spawn(async move {
            worker::work(&db, &run_id, &name).await
        }));
    }
    let mut operators = Vec::new();
    for _ in 0..2 {
        let (db, run_id) = (db.clone(), run_id.clone());
        operators.push(tokio::spawn(async move {
            let (config, request) = (EngineConfig::defaults(), by_run());
            pause().await;
            let goal = Goal::Asked(&request);
            match repair::repair(&db, judged(&config), &run_id, goal, None).await {
                Ok(_) => 1,
                Err(ApplyError::Db(error)) if !matches!(error, DbError::Busy(_)) => {
                    panic!("{error}")
                }
                Err(_) => 0,
            }
        }));
    }
    let passing = tokio::spawn(async move {
        let config = EngineConfig::defaults();
        pause().await;
        let asked = Asked {
            run_ids: vec![run_id],
            ..Asked::default()
        };
        let report = pass::pass(&db, judged(&config), &asked).await;
        report.expect("a pass").dispatched_tasks
    });
    let mut tally = Tally {
        passed: passing.await.expect("no panic"),
        ..Tally::default()
    };
    for operator in operators {
        tally.asked += operator.await.expect("no panic");
    }
    for worker in workers {
        tally.completed += worker.await.expect("no panic");
    }
    tally
}

/// Somewhere between nothing and a few turns of the others.
pub async fn pause() {
    for _ in 0..fastrand::u32(0..40) {
        tokio::task::yield_now().await;
    }
    if fastrand::bool() {
        tokio::time::sleep(Duration::from_micros(fastrand::u64(0..4_000))).await;
    }
}

/// The rows of each run, by table.
fn by_run_id(dump: &row_diff::Dump) -> BTreeMap<String, BTreeMap<&'static str, Rows>> {
    let mut runs: BTreeMap<String, BTreeMap<&'static str, Rows>> = BTreeMap::new();
    for (table, rows) in dump {
        for row in rows.values() {
            let owner = match *table {
                "workflow_runs" => row.get("id"),
                _ => row.get("workflow_run_id"),
            };
            if let Some(owner) = owner.and_then(|owner| owner.as_str()) {
                let tables = runs.entry(owner.to_owned()).or_default();
                tables.entry(table).or_default().push(row.clone());
            }
        }
    }
    runs
}

/// What must hold whoever won.
fn check(
    name: &str,
    before: &BTreeMap<&'static str, Rows>,
    after: &BTreeMap<&'static str, Rows>,
    tally: Tally,
) {
    let none = Rows::new();
    let of = |table: &str| after.get(table).unwrap_or(&none);
    let count = |rows: &BTreeMap<&'static str, Rows>, table: &str, column: &str, value: &str| {
        let rows = rows.get(table).into_iter().flatten();
        rows.filter(|row| row[column] == value).count()
    };
    let events = of("workflow_history_events");
    let mut sequences: Vec<i64> = events.iter().map(|event| int(event, "sequence")).collect();
    sequences.sort_unstable();
    let dense: Vec<i64> = (1..=i64::try_from(events.len()).unwrap()).collect();
    assert_eq!(
        sequences, dense,
        "{name}: no gap and no double in the history"
    );
    assert_eq!(
        of("workflow_runs")[0]["last_history_sequence"],
        dense.len(),
        "{name}: the counter is the history's"
    );
    let recorded = count(
        after,
        "workflow_history_events",
        "event_type",
        "RepairRequested",
    );
    assert_eq!(recorded, tally.asked, "{name}: each repair is recorded");
    let commands = count(after, "workflow_commands", "command_type", "repair");
    assert_eq!(commands, tally.asked, "{name}: by a command");

    let completed = ["ActivityCompleted", "TimerFired", "WorkflowCompleted"].map(|kind| {
        count(after, "workflow_history_events", "event_type", kind)
            - count(before, "workflow_history_events", "event_type", kind)
    });
    assert_eq!(
        completed.iter().sum::<usize>(),
        tally.completed,
        "{name}: no completion is lost"
    );
    assert!(completed.iter().all(|n| *n <= 1), "{name}: one outcome");
    let closed = |rows| count(rows, "workflow_tasks", "status", "completed");
    assert_eq!(
        closed(after) - closed(before),
        tally.completed,
        "{name}: nobody undoes an outcome"
    );

    let tasks = of("workflow_tasks");
    let open = count(after, "workflow_tasks", "status", "ready")
        + count(after, "workflow_tasks", "status", "leased");
    assert!(open <= 1, "{name}: {open} open tasks for one step");
    if tally.completed == 0 && tally.asked + tally.passed > 0 {
        assert_eq!(open, 1, "{name}: the run can go on");
    }
    // A workflow task may name the step that woke it.
    for (kind, key) in [("activity", "activity_execution_id"), ("timer", "timer_id")] {
        let served: Vec<_> = tasks
            .iter()
            .filter(|task| task["task_type"] == kind)
            .filter_map(|task| task["payload"].get(key)?.as_str())
            .collect();
        let steps: BTreeSet<_> = served.iter().collect();
        assert_eq!(
            served.len(),
            steps.len(),
            "{name}: never a second task for a step"
        );
    }
    let repairs = |rows: &BTreeMap<&'static str, Rows>| {
        let tasks = rows.get("workflow_tasks").into_iter().flatten();
        tasks.map(|task| int(task, "repair_count")).sum::<i64>()
    };
    assert_eq!(
        usize::try_from(repairs(after) - repairs(before)).unwrap(),
        tally.asked + tally.passed,
        "{name}: each repair counts once"
    );

    let attempts = of("activity_attempts");
    let numbers: BTreeSet<_> = attempts
        .iter()
        .map(|row| {
            (
                row["activity_execution_id"].as_str(),
                int(row, "attempt_number"),
            )
        })
        .collect();
    assert_eq!(numbers.len(), attempts.len(), "{name}: no number twice");
    let running = count(after, "activity_attempts", "status", "running");
    assert!(running <= 1, "{name}: one try at a time");
}

fn int(row: &serde_json::Map<String, serde_json::Value>, column: &str) -> i64 {
    row[column].as_i64().expect("a number")
}
