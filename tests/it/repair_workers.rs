//! Repairers and workers that claim, keep and complete the same task, in thousands of orders.

use std::{collections::HashMap, sync::Arc, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};
use plimsoll::{
    clock::Clock,
    db::{Db, DbError, Val, WriteTx},
    demo::{Situation, catalogue, write::write},
    durable::{
        engine_config::EngineConfig,
        repair::{self, ApplyError, Goal, Judged},
    },
};
use serde_json::{Map, Value};
use tokio::sync::Semaphore;

use crate::{
    copies::copy,
    repair_conformance::by_run,
    rig::{TestDb, on_every_database},
    row_diff::{self, Dump},
    shop::now,
};

/// How often they meet in each situation, each time over a run of its own.
const MEETINGS: usize = 1_000;
/// How many meetings there are at once, and who comes to each.
const AT_ONCE: usize = 6;
const REPAIRERS: usize = 3;
/// Beside the one that may hold the task already.
const WORKERS: usize = 1;

on_every_database! {
    async fn workers_and_repairers_never_undo_each_other(db: TestDb) {
        let actors = u32::try_from(AT_ONCE * (REPAIRERS + WORKERS + 1)).unwrap();
        let shared = db.open(|settings| {
            settings.read_only = false;
            settings.pool_size = actors;
        }).await;
        let mut rows = Vec::new();
        let mut stages = Vec::new();
        for situation in catalogue(now()) {
            // One whose worker may be alive although its lease ran out, one that nobody works on.
            if ["lease-expired-activity", "activity-task-lost"].contains(&situation.name) {
                for n in 0..MEETINGS {
                    let copy = copy(&situation, n);
                    stages.push(Arc::new(Stage::of(&copy)));
                    rows.extend(copy.rows);
                }
            }
        }
        assert_eq!(stages.len(), 2 * MEETINGS);
        write(&db.writable, rows, |_| ()).await.expect("the rows are written");

        let turns = Arc::new(Semaphore::new(AT_ONCE));
        let meetings: Vec<_> = stages.iter().map(|stage| {
            let (db, stage, turns) = (shared.clone(), Arc::clone(stage), Arc::clone(&turns));
            tokio::spawn(async move {
                let _turn = turns.acquire().await;
                meet(db, stage).await
            })
        }).collect();
        let mut met: Vec<Met> = Vec::new();
        for meeting in meetings {
            met.push(meeting.await.expect("no panic"));
        }
        shared.close().await;

        let dump = row_diff::dump(&db.read_only).await;
        let after = After::of(&dump);
        for (stage, met) in stages.iter().zip(&met) {
            stage.check(&after, *met);
        }
        for held in [true, false] {
            let of_kind = || stages.iter().zip(&met).filter(|(stage, _)| stage.owner.is_some() == held);
            let repaired = of_kind().filter(|(_, met)| met.repaired > 0).count();
            let completed = of_kind().filter(|(_, met)| met.completed > 0).count();
            let both = of_kind().filter(|(_, met)| met.repaired > 0 && met.completed > 0).count();
            println!("held {held}: {repaired} repaired, {completed} completed, {both} both, of {MEETINGS}");
            assert!(repaired > 0 && completed > 0 && both > 0, "each side won sometimes");
        }
    }
}

/// How a meeting went, as its actors tell it.
#[derive(Clone, Copy, Debug, Default)]
struct Met {
    repaired: usize,
    completed: usize,
}

async fn meet(db: Db, stage: Arc<Stage>) -> Met {
    let repairers: Vec<_> = (0..REPAIRERS)
        .map(|_| {
            let (db, stage) = (db.clone(), Arc::clone(&stage));
            tokio::spawn(async move { stage.repair(&db).await })
        })
        .collect();
    let names = stage.owner.iter().cloned();
    let names = names.chain((0..WORKERS).map(|n| format!("worker-{n}")));
    let workers: Vec<_> = names
        .map(|name| {
            let (db, stage) = (db.clone(), Arc::clone(&stage));
            tokio::spawn(async move { stage.work(&db, &name).await })
        })
        .collect();
    let mut met = Met::default();
    for repairer in repairers {
        met.repaired += usize::from(repairer.await.expect("no panic"));
    }
    for worker in workers {
        met.completed += usize::from(worker.await.expect("no panic"));
    }
    met
}

/// Somewhere between nothing and a few turns of the others.
async fn pause() {
    tokio::time::sleep(Duration::from_micros(fastrand::u64(0..6_000))).await;
}

/// The run they meet over.
struct Stage {
    run_id: String,
    execution_id: String,
    /// Holds the lease that ran out, and may be alive all the same.
    owner: Option<String>,
}

impl Stage {
    fn of(situation: &Situation) -> Self {
        let of_table = |table: &'static str| {
            let rows = situation.rows.iter();
            rows.filter(move |row| row.table == table && row.text("workflow_run_id").is_some())
        };
        let open = of_table("activity_executions")
            .find(|row| matches!(row.text("status"), Some("pending" | "running")));
        let leased = of_table("workflow_tasks").find(|row| row.text("status") == Some("leased"));
        Self {
            run_id: situation.run_id.clone(),
            execution_id: open
                .and_then(|row| row.text("id"))
                .expect("open")
                .to_owned(),
            owner: leased
                .and_then(|row| row.text("lease_owner"))
                .map(str::to_owned),
        }
    }

    async fn repair(&self, db: &Db) -> bool {
        let (config, request) = (EngineConfig::defaults(), by_run());
        let judged = Judged {
            clock: Clock::Frozen(now()),
            config: &config,
        };
        pause().await;
        match repair::repair(db, judged, &self.run_id, Goal::Asked(&request), None).await {
            Ok(_) => true,
            Err(
                ApplyError::Refused(_)
                | ApplyError::StateChanged
                | ApplyError::Db(DbError::Busy(_)),
            ) => false,
            Err(error) => panic!("{error}"),
        }
    }

    /// A few turns of an activity worker as the engine's is: it claims what is ready, says that it
    /// lives, and completes what it holds. Says whether it completed.
    async fn work(&self, db: &Db, name: &str) -> bool {
        for _ in 0..5 {
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
        let Some(task_id) = self.open_task(db).await? else {
            return Ok(());
        };
        let mut tx = db.write().await?;
        let mut q = tx.statement();
        q.push("update {workflow_tasks} set lease_expires_at = ")
            .bind_time(later())
            .push(" where id = ")
            .bind(task_id)
            .push(" and status = 'leased' and lease_owner = ")
            .bind(name);
        tx.execute(q).await?;
        tx.commit().await
    }

    async fn claim(&self, db: &Db, name: &str) -> Result<(), DbError> {
        let Some(task_id) = self.open_task(db).await? else {
            return Ok(());
        };
        let mut tx = db.write().await?;
        let task = self.locked(&mut tx, &task_id).await?;
        if task.status != "ready" {
            return Ok(());
        }
        let number = task.execution_attempts + 1;
        let attempt_id = ulid::Ulid::generate().to_string();
        let mut q = tx.statement();
        q.push("insert into {activity_attempts} (id, workflow_run_id, activity_execution_id, workflow_task_id, attempt_number, status, lease_owner, started_at, lease_expires_at) values (")
            .bind(&attempt_id)
            .push(", ").bind(&self.run_id)
            .push(", ").bind(&self.execution_id)
            .push(", ").bind(&task_id)
            .push(", ").bind(number)
            .push(", 'running', ").bind(name)
            .push(", ").bind_time(now())
            .push(", ").bind_time(later())
            .push(")");
        tx.execute(q).await?;
        let mut q = tx.statement();
        q.push("update {activity_executions} set status = 'running', attempt_count = ")
            .bind(number)
            .push(", current_attempt_id = ")
            .bind(&attempt_id)
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
            .bind(&task_id);
        tx.execute(q).await?;
        tx.commit().await
    }

    async fn complete(&self, db: &Db, name: &str) -> Result<bool, DbError> {
        let Some(task_id) = self.open_task(db).await? else {
            return Ok(false);
        };
        let mut tx = db.write().await?;
        let task = self.locked(&mut tx, &task_id).await?;
        if task.status != "leased" || task.lease_owner.as_deref() != Some(name) {
            return Ok(false);
        }
        for (update, id) in [
            (
                "update {workflow_tasks} set status = 'completed', lease_expires_at = null where id = ",
                &task_id,
            ),
            (
                "update {activity_attempts} set status = 'completed' where status = 'running' and activity_execution_id = ",
                &self.execution_id,
            ),
            (
                "update {activity_executions} set status = 'completed' where id = ",
                &self.execution_id,
            ),
        ] {
            let mut q = tx.statement();
            q.push(update).bind(id);
            tx.execute(q).await?;
        }
        let sequence = task.last_history_sequence + 1;
        let mut q = tx.statement();
        q.push("insert into {workflow_history_events} (id, workflow_run_id, sequence, event_type, payload, workflow_task_id) values (")
            .bind(ulid())
            .push(", ").bind(&self.run_id)
            .push(", ").bind(sequence)
            .push(", 'ActivityCompleted', ")
            .bind(format!(r#"{{"activity_execution_id":"{}"}}"#, self.execution_id))
            .push(", ").bind(&task_id)
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

    /// What a worker would be handed: there is never more than one.
    async fn open_task(&self, db: &Db) -> Result<Option<String>, DbError> {
        let mut q = db.statement();
        q.push("select id from {workflow_tasks} where status in ('ready', 'leased') and task_type = 'activity' and workflow_run_id = ")
            .bind(&self.run_id);
        let mut open = db.fetch(q).await?;
        assert!(open.len() <= 1, "two open tasks for one activity");
        open.pop().map(|mut row| row.text("id")).transpose()
    }

    /// Task, then run, as the engine locks them.
    async fn locked(&self, tx: &mut WriteTx, task_id: &str) -> Result<Locked, DbError> {
        let mut q = tx.statement();
        let locking = q.dialect().pick("", " for update", " for update");
        q.push("select status, lease_owner from {workflow_tasks} where id = ")
            .bind(task_id)
            .push(locking);
        let mut task = tx.fetch(q).await?.pop().expect("tasks stay");
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
        Ok(Locked {
            status: task.text("status")?,
            lease_owner: task.opt_text("lease_owner")?,
            last_history_sequence: run.int("last_history_sequence")?,
            execution_attempts: execution.int("attempt_count")?,
        })
    }

    /// What must hold whoever won.
    fn check(&self, after: &After<'_>, met: Met) {
        let name = &self.run_id;
        let Met {
            repaired,
            completed,
        } = met;
        let events = after.rows("workflow_history_events", name);
        let sequences = numbers(events, "sequence");
        assert_eq!(
            sequences,
            dense(events.len()),
            "{name}: the history has no gap and no double"
        );
        let count = |kind: &str| {
            events
                .iter()
                .filter(|event| event["event_type"] == kind)
                .count()
        };
        let commands = after.rows("workflow_commands", name);
        let sequences = numbers(commands, "command_sequence");
        assert_eq!(
            sequences,
            dense(commands.len()),
            "{name}: nor have its commands"
        );
        assert!(repaired <= 1 && completed <= 1, "{name}: {met:?}");
        assert_eq!(
            count("ActivityCompleted"),
            completed,
            "{name}: no completion is lost"
        );
        assert_eq!(
            count("RepairRequested"),
            repaired,
            "{name}: each repair is recorded"
        );
        let ours = commands
            .iter()
            .filter(|row| row["command_type"] == "repair");
        assert_eq!(ours.count(), repaired, "{name}");

        let tasks = after.rows("workflow_tasks", name);
        let serves =
            |task: &&&Row| task["payload"]["activity_execution_id"] == self.execution_id.as_str();
        let serving: Vec<_> = tasks.iter().filter(serves).collect();
        let there = usize::from(self.owner.is_some());
        assert_eq!(
            serving.len(),
            there.max(repaired),
            "{name}: never a second task for the activity"
        );
        if completed == 1 {
            assert_eq!(
                serving[0]["status"], "completed",
                "{name}: nobody undoes an outcome"
            );
        }
        let is_open = |task: &&&Row| task["status"] == "ready" || task["status"] == "leased";
        let resuming = tasks.iter().filter(|task| task["task_type"] == "workflow");
        assert_eq!(
            resuming.filter(is_open).count(),
            completed,
            "{name}: one task to go on with"
        );

        let attempts = after.rows("activity_attempts", name);
        let of_activity: Vec<&Row> = attempts
            .iter()
            .copied()
            .filter(|row| row["activity_execution_id"] == self.execution_id.as_str())
            .collect();
        let mut distinct = numbers(&of_activity, "attempt_number");
        distinct.dedup();
        assert_eq!(
            distinct.len(),
            of_activity.len(),
            "{name}: no attempt has another's number"
        );
        let running = of_activity.iter().filter(|row| row["status"] == "running");
        assert!(running.count() <= 1, "{name}: one try at a time");
        let run = &after.dump["workflow_runs"][name];
        assert_eq!(
            run["last_history_sequence"],
            events.len(),
            "{name}: the counters are right"
        );
        assert_eq!(run["last_command_sequence"], commands.len(), "{name}");
    }
}

type Row = Map<String, Value>;

/// All rows afterwards, by table and run.
struct After<'d> {
    dump: &'d Dump,
    by_run: HashMap<(&'static str, &'d str), Vec<&'d Row>>,
}

impl<'d> After<'d> {
    fn of(dump: &'d Dump) -> Self {
        let mut by_run: HashMap<_, Vec<_>> = HashMap::new();
        for (table, rows) in dump {
            for row in rows.values() {
                if let Some(run_id) = row.get("workflow_run_id").and_then(Value::as_str) {
                    by_run.entry((*table, run_id)).or_default().push(row);
                }
            }
        }
        Self { dump, by_run }
    }

    fn rows(&self, table: &'static str, run_id: &'d str) -> &[&'d Row] {
        self.by_run.get(&(table, run_id)).map_or(&[], Vec::as_slice)
    }
}

/// In order.
fn numbers(rows: &[&Row], column: &str) -> Vec<i64> {
    let mut numbers: Vec<i64> = rows
        .iter()
        .map(|row| row[column].as_i64().expect("a number"))
        .collect();
    numbers.sort_unstable();
    numbers
}

fn dense(n: usize) -> Vec<i64> {
    (1..=i64::try_from(n).unwrap()).collect()
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
