//! Writing a plan: one short transaction in which everything is read and planned again under the
//! locks, so that what was shown is what is written, or nothing is.

use std::time::{Duration, Instant};

use chrono::SubsecRound as _;

use super::{
    change::{Action, Guard, RowChange},
    php_json,
    plan::{self, RepairPlan},
    refusal::Refusal,
    request::{NewIds, Request},
};
use crate::{
    clock::Clock,
    db::{Db, DbError, Snapshot, Statement, Val, WriteTx},
    durable::{
        engine_config::EngineConfig,
        projection::{Context, Projected},
        store::{
            past::HistoryCache,
            snapshot::{RunSnapshot, TimelineCache},
        },
        stored::{Cell, TaskRow},
    },
};

/// How often a transaction that lost a race is begun again.
const TRIES: u32 = 6;
/// How long one may go on beginning again: whoever asked is still waiting for the answer.
const LONGEST: Duration = Duration::from_secs(15);
/// The longest pause before the second try; each later one may be twice as long.
const PAUSE: Duration = Duration::from_millis(20);

#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    #[error("no run {0}")]
    NoSuchRun(String),
    #[error("{}", .0.told())]
    Refused(Refusal),
    /// The run is not as it was when the repair was previewed. Nothing was written.
    #[error("the run has changed since the repair was previewed")]
    StateChanged,
    /// Nothing was written.
    #[error("others kept changing the run while it was being repaired")]
    LostRaces,
    #[error(transparent)]
    Db(#[from] DbError),
}

/// What is planned: an operator's wish, or a step of a pass.
#[derive(Clone, Copy, Debug)]
pub enum Goal<'a> {
    Asked(&'a Request),
    Task(&'a str),
    MissingTask,
    Deadline,
}

impl Goal<'_> {
    fn plan(self, p: &Projected<'_>) -> Result<RepairPlan, Refusal> {
        let ids = NewIds::mint();
        match self {
            Self::Asked(request) => plan::plan(p, request, &ids),
            Self::Task(id) => plan::of_task(p, id, &ids),
            Self::MissingTask => plan::of_missing(p, &ids),
            Self::Deadline => plan::of_deadline(p, &ids),
        }
    }
}

/// By what a run is judged.
#[derive(Clone, Copy, Debug)]
pub struct Judged<'a> {
    pub clock: Clock,
    pub config: &'a EngineConfig,
}

/// What a repair would write now. Reads only.
pub async fn preview(
    db: &Db,
    judged: Judged<'_>,
    run_id: &str,
    goal: Goal<'_>,
) -> Result<RepairPlan, ApplyError> {
    previewed(db, judged, run_id, goal, None).await
}

async fn previewed(
    db: &Db,
    judged: Judged<'_>,
    run_id: &str,
    goal: Goal<'_>,
    past: Option<&HistoryCache>,
) -> Result<RepairPlan, ApplyError> {
    let mut snapshot = db.snapshot().await?;
    let run = load(&mut snapshot, run_id, past).await?;
    snapshot.end().await;
    planned(run, judged, run_id, goal)
}

async fn load(
    snapshot: &mut Snapshot,
    run_id: &str,
    past: Option<&HistoryCache>,
) -> Result<Option<RunSnapshot>, DbError> {
    RunSnapshot::load_with(snapshot, run_id, TimelineCache::Presence, past).await
}

/// Repairs the run and gives the plan that was carried out. With the digest of a plan that was
/// shown, only that plan is.
pub async fn repair(
    db: &Db,
    judged: Judged<'_>,
    run_id: &str,
    goal: Goal<'_>,
    shown: Option<&str>,
) -> Result<RepairPlan, ApplyError> {
    let past = HistoryCache::default();
    let mut pause = PAUSE;
    let begun = Instant::now();
    for _ in 1..TRIES {
        match attempt(db, judged, run_id, goal, shown, &past).await {
            Ok(Outcome::Done(plan)) => return Ok(*plan),
            Ok(Outcome::LostRace)
            | Err(ApplyError::Db(DbError::Busy(_) | DbError::Duplicate(_))) => {}
            Err(error) => return Err(error),
        }
        if begun.elapsed() > LONGEST {
            break;
        }
        // Those who met must not meet again.
        tokio::time::sleep(pause.mul_f64(fastrand::f64())).await;
        pause *= 2;
    }
    match attempt(db, judged, run_id, goal, shown, &past).await {
        Ok(Outcome::Done(plan)) => Ok(*plan),
        Ok(Outcome::LostRace) | Err(ApplyError::Db(DbError::Duplicate(_))) => {
            Err(ApplyError::LostRaces)
        }
        Err(error) => Err(error),
    }
}

enum Outcome {
    Done(Box<RepairPlan>),
    /// Someone else wrote first; what is true now has to be looked at again.
    LostRace,
}

async fn attempt(
    db: &Db,
    judged: Judged<'_>,
    run_id: &str,
    goal: Goal<'_>,
    shown: Option<&str>,
    past: &HistoryCache,
) -> Result<Outcome, ApplyError> {
    // Without a lock first: most refusals need none, which task to lock must be known, and a long
    // history is not read again while others wait.
    let seen = previewed(db, judged, run_id, goal, Some(past)).await?;
    if shown.is_some_and(|digest| digest != seen.digest) {
        return Err(ApplyError::StateChanged);
    }
    let mut tx = db.write().await?;
    // As workers and the engine's pass lock: the task, then its run. On MySQL these must come
    // first: what is read later is as of the first plain read.
    if let Some(task_id) = existing_task(&seen) {
        lock(&mut tx, LOCK_TASK, task_id).await?;
    }
    lock(&mut tx, LOCK_RUN, run_id).await?;
    let run = load(tx.reading(), run_id, Some(past)).await?;
    let plan = match planned(run, judged, run_id, goal) {
        Err(ApplyError::Refused(_)) if shown.is_some() => return Err(ApplyError::StateChanged),
        planned => planned?,
    };
    if shown.is_some_and(|digest| digest != plan.digest) {
        return Err(ApplyError::StateChanged);
    }
    if existing_task(&plan) != existing_task(&seen) {
        return Ok(Outcome::LostRace);
    }
    for change in &plan.changes {
        if tx.execute(statement(tx.statement(), change)).await? != 1 {
            return Ok(Outcome::LostRace);
        }
    }
    tx.commit().await?;
    Ok(Outcome::Done(Box::new(plan)))
}

fn planned(
    run: Option<RunSnapshot>,
    judged: Judged<'_>,
    run_id: &str,
    goal: Goal<'_>,
) -> Result<RepairPlan, ApplyError> {
    let run = run.ok_or_else(|| ApplyError::NoSuchRun(run_id.to_owned()))?;
    let projected = Projected::of(Context {
        snapshot: &run,
        // As fine as the tables keep it.
        now: judged.clock.now().trunc_subsecs(6),
        config: judged.config,
    });
    goal.plan(&projected).map_err(ApplyError::Refused)
}

fn existing_task(plan: &RepairPlan) -> Option<&str> {
    plan.changes
        .iter()
        .find(|change| change.table == TaskRow::TABLE && change.action == Action::Update)
        .map(|change| change.id.as_str())
}

const LOCK_TASK: &str = "select id from {workflow_tasks} where id = ";
const LOCK_RUN: &str = "select id from {workflow_runs} where id = ";

async fn lock(tx: &mut WriteTx, select: &'static str, id: &str) -> Result<(), DbError> {
    let mut q = tx.statement();
    q.push(select).bind(id);
    // SQLite's transaction holds the whole file already.
    let locking = q.dialect().pick("", " for update", " for update");
    q.push(locking);
    tx.fetch(q).await.map(drop)
}

/// The one statement that writes one row. It must touch exactly one.
pub fn statement(mut q: Statement, change: &RowChange) -> Statement {
    match change.action {
        Action::Insert => {
            q.push("insert into {").push(change.table).push("} (");
            for (i, cell) in change.cells.iter().enumerate() {
                q.push(if i == 0 { "\"" } else { ", \"" })
                    .push(cell.column)
                    .push("\"");
            }
            q.push(") values (");
            for (i, cell) in change.cells.iter().enumerate() {
                q.push(if i == 0 { "" } else { ", " });
                bind(&mut q, &cell.after);
            }
            q.push(")");
        }
        Action::Update => {
            q.push("update {").push(change.table).push("} set ");
            for (i, cell) in change.cells.iter().enumerate() {
                q.push(if i == 0 { "\"" } else { ", \"" })
                    .push(cell.column)
                    .push("\" = ");
                bind(&mut q, &cell.after);
            }
            q.push(" where id = ").bind(&change.id);
            for guard in &change.guards {
                q.push(" and \"");
                match guard {
                    Guard::Is(column, Cell::Null) => {
                        q.push(column).push("\" is null");
                    }
                    Guard::Is(column, cell) => {
                        q.push(column).push("\" = ");
                        bind(&mut q, cell);
                    }
                    Guard::Past(column, at) => {
                        q.push(column).push("\" <= ").bind_time(*at);
                    }
                }
            }
        }
    }
    q
}

fn bind(q: &mut Statement, cell: &Cell) {
    match cell {
        Cell::Null => q.bind(Val::Null),
        Cell::Bool(b) => q.bind(*b),
        Cell::Int(n) => q.bind(*n),
        Cell::Text(text) => q.bind(text),
        Cell::Time(at) => q.bind_time(*at),
        Cell::Json(value) => q.bind(php_json::text(value)),
    };
}
