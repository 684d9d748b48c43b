//! Workers as the engine's are, as far as the tables tell: they claim what is ready, say that they
//! live, and complete what they hold, each in one transaction that locks the task, then its run.

use chrono::{DateTime, TimeDelta, Utc};
use plimsoll::db::{Db, DbError, Statement, Val, WriteTx};
use serde_json::Value;

use crate::{repair_races::pause, shop::now};

/// How often a worker does something.
const TURNS: usize = 6;

/// A few turns of one worker on one run; how many tasks it completed.
pub async fn work(db: &Db, run_id: &str, name: &str) -> usize {
    let mut completed = 0;
    for _ in 0..TURNS {
        pause().await;
        let turn = match fastrand::u8(0..3) {
            0 => heartbeat(db, run_id, name).await.map(|()| false),
            1 => claim(db, run_id, name).await.map(|()| false),
            _ => complete(db, run_id, name).await,
        };
        match turn {
            Ok(done) => completed += usize::from(done),
            Err(DbError::Busy(_) | DbError::Duplicate(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
    completed
}

/// Who holds the run's task, perhaps under a lease that ran out, and may be alive all the same.
pub async fn holder(db: &Db, run_id: &str) -> Option<String> {
    let mut q = db.statement();
    q.push(
        "select lease_owner from {workflow_tasks} where status = 'leased' and workflow_run_id = ",
    )
    .bind(run_id);
    let held = db.fetch(q).await.expect("an answer").pop();
    held.and_then(|mut task| task.opt_text("lease_owner").expect("a name"))
}

/// A task and its run, locked.
struct Held {
    id: String,
    kind: String,
    status: String,
    owner: Option<String>,
    payload: Value,
    run: String,
    last_history_sequence: i64,
}

/// The run's open task, if there is one.
async fn open_task(db: &Db, run_id: &str) -> Result<Option<String>, DbError> {
    let mut q = db.statement();
    q.push("select id from {workflow_tasks} where status in ('ready', 'leased') and workflow_run_id = ")
        .bind(run_id);
    let found = db.fetch(q).await?.pop();
    found.map(|mut row| row.text("id")).transpose()
}

async fn hold(tx: &mut WriteTx, id: &str, run_id: &str) -> Result<Option<Held>, DbError> {
    let columns =
        "select task_type, status, lease_owner, payload from {workflow_tasks} where id = ";
    let Some(mut task) = locked(tx, columns, id).await? else {
        return Ok(None);
    };
    let columns = "select last_history_sequence from {workflow_runs} where id = ";
    let mut run = locked(tx, columns, run_id).await?.expect("the run");
    let payload = task.text("payload")?;
    Ok(Some(Held {
        id: id.to_owned(),
        kind: task.text("task_type")?,
        status: task.text("status")?,
        owner: task.opt_text("lease_owner")?,
        payload: serde_json::from_str(&payload).expect("JSON"),
        run: run_id.to_owned(),
        last_history_sequence: run.int("last_history_sequence")?,
    }))
}

async fn locked(
    tx: &mut WriteTx,
    columns: &'static str,
    id: &str,
) -> Result<Option<plimsoll::db::Row>, DbError> {
    let mut q = tx.statement();
    let locking = q.dialect().pick("", " for update", " for update");
    q.push(columns).bind(id).push(locking);
    Ok(tx.fetch(q).await?.pop())
}

async fn said(tx: &mut WriteTx, what: impl FnOnce(&mut Statement)) -> Result<(), DbError> {
    let mut q = tx.statement();
    what(&mut q);
    tx.execute(q).await.map(drop)
}

async fn heartbeat(db: &Db, run_id: &str, name: &str) -> Result<(), DbError> {
    let mut tx = db.write().await?;
    said(&mut tx, |q| {
        q.push("update {workflow_tasks} set lease_expires_at = ")
            .bind_time(later())
            .push(" where status = 'leased' and lease_owner = ")
            .bind(name)
            .push(" and workflow_run_id = ")
            .bind(run_id);
    })
    .await?;
    said(&mut tx, |q| {
        q.push("update {activity_attempts} set lease_expires_at = ")
            .bind_time(later())
            .push(" where status = 'running' and lease_owner = ")
            .bind(name)
            .push(" and workflow_run_id = ")
            .bind(run_id);
    })
    .await?;
    tx.commit().await
}

async fn claim(db: &Db, run_id: &str, name: &str) -> Result<(), DbError> {
    let Some(id) = open_task(db, run_id).await? else {
        return Ok(());
    };
    let mut tx = db.write().await?;
    let Some(task) = hold(&mut tx, &id, run_id).await? else {
        return Ok(());
    };
    if task.status != "ready" {
        return Ok(());
    }
    if task.kind == "activity" {
        begin_attempt(&mut tx, &task, name).await?;
    }
    said(&mut tx, |q| {
        q.push("update {workflow_tasks} set status = 'leased', lease_owner = ")
            .bind(name)
            .push(", lease_expires_at = ")
            .bind_time(later())
            .push(", attempt_count = attempt_count + 1 where id = ")
            .bind(&task.id);
    })
    .await?;
    tx.commit().await
}

async fn begin_attempt(tx: &mut WriteTx, task: &Held, name: &str) -> Result<(), DbError> {
    let execution = task.payload["activity_execution_id"]
        .as_str()
        .expect("an id");
    let columns = "select attempt_count from {activity_executions} where id = ";
    let mut row = locked(tx, columns, execution)
        .await?
        .expect("the execution");
    let number = row.int("attempt_count")? + 1;
    let attempt = ulid();
    said(tx, |q| {
        q.push("insert into {activity_attempts} (id, workflow_run_id, activity_execution_id, workflow_task_id, attempt_number, status, lease_owner, started_at, lease_expires_at) values (")
            .bind(attempt.clone())
            .push(", ").bind(&task.run)
            .push(", ").bind(execution)
            .push(", ").bind(&task.id)
            .push(", ").bind(number)
            .push(", 'running', ").bind(name)
            .push(", ").bind_time(now())
            .push(", ").bind_time(later())
            .push(")");
    })
    .await?;
    said(tx, |q| {
        q.push("update {activity_executions} set status = 'running', attempt_count = ")
            .bind(number)
            .push(", current_attempt_id = ")
            .bind(attempt)
            .push(" where id = ")
            .bind(execution);
    })
    .await
}

/// Whether it had something to complete.
async fn complete(db: &Db, run_id: &str, name: &str) -> Result<bool, DbError> {
    let Some(id) = open_task(db, run_id).await? else {
        return Ok(false);
    };
    let mut tx = db.write().await?;
    let Some(task) = hold(&mut tx, &id, run_id).await? else {
        return Ok(false);
    };
    if task.status != "leased" || task.owner.as_deref() != Some(name) {
        return Ok(false);
    }
    said(&mut tx, |q| {
        q.push(
            "update {workflow_tasks} set status = 'completed', lease_expires_at = null where id = ",
        )
        .bind(&task.id);
    })
    .await?;
    let event = match task.kind.as_str() {
        "activity" => {
            end_activity(&mut tx, &task).await?;
            "ActivityCompleted"
        }
        "timer" => {
            fire(&mut tx, &task).await?;
            "TimerFired"
        }
        _ => {
            close(&mut tx, &task).await?;
            "WorkflowCompleted"
        }
    };
    if task.kind != "workflow" {
        resume(&mut tx, &task).await?;
    }
    record(&mut tx, &task, event).await?;
    tx.commit().await?;
    Ok(true)
}

async fn end_activity(tx: &mut WriteTx, task: &Held) -> Result<(), DbError> {
    let execution = task.payload["activity_execution_id"]
        .as_str()
        .expect("an id");
    said(tx, |q| {
        q.push("update {activity_attempts} set status = 'completed' where status = 'running' and activity_execution_id = ")
            .bind(execution);
    })
    .await?;
    said(tx, |q| {
        q.push("update {activity_executions} set status = 'completed' where id = ")
            .bind(execution);
    })
    .await
}

async fn fire(tx: &mut WriteTx, task: &Held) -> Result<(), DbError> {
    let timer = task.payload["timer_id"].as_str().expect("an id");
    said(tx, |q| {
        q.push("update {workflow_run_timers} set status = 'fired', fired_at = ")
            .bind_time(now())
            .push(" where id = ")
            .bind(timer);
    })
    .await
}

async fn close(tx: &mut WriteTx, task: &Held) -> Result<(), DbError> {
    said(tx, |q| {
        q.push("update {workflow_runs} set status = 'completed', closed_at = ")
            .bind_time(now())
            .push(" where id = ")
            .bind(&task.run);
    })
    .await
}

/// The workflow task that sees what the step came to.
async fn resume(tx: &mut WriteTx, task: &Held) -> Result<(), DbError> {
    said(tx, |q| {
        q.push("insert into {workflow_tasks} (id, workflow_run_id, task_type, status, payload, available_at, last_dispatched_at, created_at) values (")
            .bind(ulid())
            .push(", ").bind(&task.run)
            .push(", 'workflow', 'ready', '[]', ").bind_time(now())
            .push(", ").bind_time(now())
            .push(", ").bind_time(now())
            .push(")");
    })
    .await
}

async fn record(tx: &mut WriteTx, task: &Held, event: &str) -> Result<(), DbError> {
    let sequence = task.last_history_sequence + 1;
    said(tx, |q| {
        q.push("insert into {workflow_history_events} (id, workflow_run_id, sequence, event_type, payload, workflow_task_id, recorded_at) values (")
            .bind(ulid())
            .push(", ").bind(&task.run)
            .push(", ").bind(sequence)
            .push(", ").bind(event)
            .push(", ").bind(task.payload.to_string())
            .push(", ").bind(&task.id)
            .push(", ").bind_time(now())
            .push(")");
    })
    .await?;
    said(tx, |q| {
        q.push("update {workflow_runs} set last_history_sequence = ")
            .bind(sequence)
            .push(" where id = ")
            .bind(&task.run);
    })
    .await
}

fn later() -> DateTime<Utc> {
    now() + TimeDelta::seconds(300)
}

fn ulid() -> Val {
    Val::Text(ulid::Ulid::generate().to_string())
}
