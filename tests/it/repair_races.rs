//! Several at once: operators, workers, and a process that dies in the middle.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use plimsoll::{
    clock::Clock,
    db::{Db, DbError, Val},
    demo::{Situation, catalogue, write::write},
    durable::{
        engine_config::EngineConfig,
        repair::{self, ApplyError, Goal, Judged, Kind, apply},
        store::schema,
    },
};

use crate::{
    repair_conformance::by_run,
    rig::{self, TestDb, on_every_database},
    row_diff,
    shop::now,
};

/// How often actors meet. Each meeting is a few dozen statements in an order of its own.
const ROUNDS: usize = 120;

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
    for situation in catalogue(now()).into_iter().filter(small) {
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

fn rows(dump: &row_diff::Dump, table: &str) -> Rows {
    dump[table].values().cloned().collect()
}

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

    async fn a_worker_and_repairers_never_undo_each_other(db: TestDb) {
        let expired = one_of_each_kind(&db).await.into_iter();
        let mut expired = expired.filter(|(kind, task_type, _)| *kind == Kind::LeaseExpired && task_type == "activity");
        let (.., situation) = expired.next().expect("an activity whose lease ran out");
        let mut met = (0, 0);
        for _ in 0..ROUNDS {
            lay_out(&db, &situation).await;
            let stage = Arc::new(Stage::find(&db, &situation).await);
            let repairers = (0..3).map(|_| {
                let (db, run_id) = (db.writable.clone(), situation.run_id.clone());
                tokio::spawn(async move {
                    let (config, request) = (EngineConfig::defaults(), by_run());
                    pause().await;
                    repair::repair(&db, judged(&config), &run_id, Goal::Asked(&request), None).await.is_ok()
                })
            });
            let repairers: Vec<_> = repairers.collect();
            let workers = [stage.owner.clone(), "another-worker".to_owned()].map(|name| {
                let (db, stage) = (db.writable.clone(), Arc::clone(&stage));
                tokio::spawn(async move { stage.work(&db, &name).await })
            });
            let (mut repaired, mut completed) = (0, 0);
            for repairer in repairers {
                repaired += usize::from(repairer.await.expect("no panic"));
            }
            for worker in workers {
                completed += usize::from(worker.await.expect("no panic"));
            }
            stage.check(&db, repaired, completed).await;
            met = (met.0 + repaired, met.1 + completed);
        }
        assert!(met.0 > 0 && met.1 > 0, "both sides won sometimes: {met:?}");
    }
}

/// Somewhere between nothing and a few turns of the others.
async fn pause() {
    for _ in 0..fastrand::u32(0..40) {
        tokio::task::yield_now().await;
    }
}

/// The rows the engine's worker and a repairer meet on.
struct Stage {
    run_id: String,
    task_id: String,
    execution_id: String,
    /// Holds the lease that ran out, and may be alive all the same.
    owner: String,
}

impl Stage {
    async fn find(db: &TestDb, situation: &Situation) -> Self {
        let tasks = rows(&row_diff::dump(&db.read_only).await, "workflow_tasks");
        let task = tasks.iter().find(|task| {
            task["workflow_run_id"] == situation.run_id.as_str() && task["status"] == "leased"
        });
        let task = task.expect("the leased task");
        let text = |value: &serde_json::Value| value.as_str().expect("text").to_owned();
        Self {
            run_id: situation.run_id.clone(),
            task_id: text(&task["id"]),
            execution_id: text(&task["payload"]["activity_execution_id"]),
            owner: text(&task["lease_owner"]),
        }
    }

    /// A few turns of an activity worker as the engine's is: it claims what is ready, says that it
    /// lives, and completes what it holds. Says whether it completed.
    async fn work(&self, db: &Db, name: &str) -> bool {
        for _ in 0..4 {
            pause().await;
            let outcome = match fastrand::u8(0..3) {
                0 => self.heartbeat(db, name).await.map(|()| false),
                1 => self.claim(db, name).await.map(|()| false),
                _ => self.complete(db, name).await,
            };
            match outcome {
                Ok(true) => return true,
                Ok(false) | Err(DbError::Busy(_) | DbError::Duplicate(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
        false
    }

    async fn heartbeat(&self, db: &Db, name: &str) -> Result<(), DbError> {
        let mut tx = db.write().await?;
        let mut q = tx.statement();
        q.push("update {workflow_tasks} set lease_expires_at = ")
            .bind_time(later())
            .push(" where id = ")
            .bind(&self.task_id)
            .push(" and status = 'leased' and lease_owner = ")
            .bind(name);
        tx.execute(q).await?;
        tx.commit().await
    }

    async fn claim(&self, db: &Db, name: &str) -> Result<(), DbError> {
        let mut tx = db.write().await?;
        let Some(task) = self.locked(&mut tx).await? else {
            return Ok(());
        };
        if task.status != "ready" {
            return Ok(());
        }
        let number = task.execution_attempts + 1;
        let mut q = tx.statement();
        q.push("insert into {activity_attempts} (id, workflow_run_id, activity_execution_id, workflow_task_id, attempt_number, status, lease_owner, started_at, lease_expires_at) values (")
            .bind(ulid())
            .push(", ").bind(&self.run_id)
            .push(", ").bind(&self.execution_id)
            .push(", ").bind(&self.task_id)
            .push(", ").bind(number)
            .push(", 'running', ").bind(name)
            .push(", ").bind_time(now())
            .push(", ").bind_time(later())
            .push(")");
        tx.execute(q).await?;
        let mut q = tx.statement();
        q.push("update {activity_executions} set attempt_count = ")
            .bind(number)
            .push(" where id = ")
            .bind(&self.execution_id);
        tx.execute(q).await?;
        let mut q = tx.statement();
        q.push("update {workflow_tasks} set status = 'leased', lease_owner = ")
            .bind(name)
            .push(", lease_expires_at = ")
            .bind_time(later())
            .push(", attempt_count = ")
            .bind(number)
            .push(" where id = ")
            .bind(&self.task_id);
        tx.execute(q).await?;
        tx.commit().await
    }

    async fn complete(&self, db: &Db, name: &str) -> Result<bool, DbError> {
        let mut tx = db.write().await?;
        let Some(task) = self.locked(&mut tx).await? else {
            return Ok(false);
        };
        if task.status != "leased" || task.lease_owner.as_deref() != Some(name) {
            return Ok(false);
        }
        let mut q = tx.statement();
        q.push(
            "update {workflow_tasks} set status = 'completed', lease_expires_at = null where id = ",
        )
        .bind(&self.task_id);
        tx.execute(q).await?;
        let mut q = tx.statement();
        q.push(
            "update {activity_attempts} set status = 'completed' where activity_execution_id = ",
        )
        .bind(&self.execution_id)
        .push(" and status = 'running'");
        tx.execute(q).await?;
        let sequence = task.last_history_sequence + 1;
        let mut q = tx.statement();
        q.push("insert into {workflow_history_events} (id, workflow_run_id, sequence, event_type, payload, workflow_task_id) values (")
            .bind(ulid())
            .push(", ").bind(&self.run_id)
            .push(", ").bind(sequence)
            .push(", 'ActivityCompleted', ")
            .bind(format!(r#"{{"activity_execution_id":"{}"}}"#, self.execution_id))
            .push(", ").bind(&self.task_id)
            .push(")");
        tx.execute(q).await?;
        let mut q = tx.statement();
        q.push("insert into {workflow_tasks} (id, workflow_run_id, task_type, status, payload, available_at, last_dispatched_at, created_at) values (")
            .bind(ulid())
            .push(", ").bind(&self.run_id)
            .push(", 'workflow', 'ready', '[]', ").bind_time(now())
            .push(", ").bind_time(now())
            .push(", ").bind_time(now())
            .push(")");
        tx.execute(q).await?;
        let mut q = tx.statement();
        q.push("update {workflow_runs} set last_history_sequence = ")
            .bind(sequence)
            .push(" where id = ")
            .bind(&self.run_id);
        tx.execute(q).await?;
        tx.commit().await?;
        Ok(true)
    }

    /// Task, then run, as the engine locks them.
    async fn locked(&self, tx: &mut plimsoll::db::WriteTx) -> Result<Option<Locked>, DbError> {
        let mut q = tx.statement();
        let locking = q.dialect().pick("", " for update", " for update");
        q.push("select status, lease_owner from {workflow_tasks} where id = ")
            .bind(&self.task_id)
            .push(locking);
        let Some(mut task) = tx.fetch(q).await?.pop() else {
            return Ok(None);
        };
        let mut q = tx.statement();
        q.push("select last_history_sequence from {workflow_runs} where id = ")
            .bind(&self.run_id)
            .push(locking);
        let mut run = tx.fetch(q).await?.pop().expect("the run");
        let mut q = tx.statement();
        q.push("select attempt_count from {activity_executions} where id = ")
            .bind(&self.execution_id)
            .push(locking);
        let mut execution = tx.fetch(q).await?.pop().expect("the execution");
        Ok(Some(Locked {
            status: task.text("status")?,
            lease_owner: task.opt_text("lease_owner")?,
            last_history_sequence: run.int("last_history_sequence")?,
            execution_attempts: execution.int("attempt_count")?,
        }))
    }

    /// What must hold whoever won.
    async fn check(&self, db: &TestDb, repaired: usize, completed: usize) {
        let of_run = |row: &serde_json::Map<String, serde_json::Value>| {
            row["workflow_run_id"] == self.run_id.as_str()
        };
        let dump = row_diff::dump_run(&db.read_only, &self.run_id).await;
        let mut events = rows(&dump, "workflow_history_events");
        events.retain(of_run);
        let mut sequences: Vec<i64> = events
            .iter()
            .map(|event| event["sequence"].as_i64().expect("a number"))
            .collect();
        sequences.sort_unstable();
        let dense: Vec<i64> = (1..=i64::try_from(events.len()).unwrap()).collect();
        assert_eq!(sequences, dense, "no gap and no double in the history");
        let count = |kind: &str| {
            events
                .iter()
                .filter(|event| event["event_type"] == kind)
                .count()
        };
        assert_eq!(
            count("ActivityCompleted"),
            completed,
            "no completion is lost"
        );
        assert!(completed <= 1, "one outcome");
        assert_eq!(
            count("RepairRequested"),
            repaired,
            "each repair is recorded"
        );
        let commands = rows(&dump, "workflow_commands");
        let repairs = commands
            .iter()
            .filter(|row| row["command_type"] == "repair");
        assert_eq!(repairs.count(), repaired);

        let mut tasks = rows(&dump, "workflow_tasks");
        tasks.retain(of_run);
        let serving: Vec<_> = tasks
            .iter()
            .filter(|task| task["payload"]["activity_execution_id"] == self.execution_id.as_str())
            .collect();
        assert_eq!(serving.len(), 1, "never a second task for the activity");
        assert_eq!(serving[0]["repair_count"], repaired);
        if completed == 1 {
            assert_eq!(
                serving[0]["status"], "completed",
                "nobody undoes an outcome"
            );
        }
        let attempts = rows(&dump, "activity_attempts");
        let of_activity = attempts
            .iter()
            .filter(|row| row["activity_execution_id"] == self.execution_id.as_str());
        let mut numbers: Vec<i64> = of_activity
            .clone()
            .map(|row| row["attempt_number"].as_i64().expect("a number"))
            .collect();
        let all = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), all, "no number twice");
        let running = of_activity.filter(|row| row["status"] == "running").count();
        assert!(running <= 1, "one try at a time");
        let runs = rows(&dump, "workflow_runs");
        let run = runs.iter().find(|row| row["id"] == self.run_id.as_str());
        assert_eq!(
            run.expect("the run")["last_history_sequence"],
            dense.len(),
            "the counter is the history's"
        );
    }
}

struct Locked {
    status: String,
    lease_owner: Option<String>,
    last_history_sequence: i64,
    execution_attempts: i64,
}

fn later() -> DateTime<Utc> {
    now() + TimeDelta::seconds(300)
}

fn ulid() -> Val {
    Val::Text(ulid::Ulid::generate().to_string())
}
