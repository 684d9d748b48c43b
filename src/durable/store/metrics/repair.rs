//! What the engine's repair would look at, by scope: connection, queue and compatibility.

use super::{
    counted,
    sql::{self, Scope},
    tasks::{claim_failed, claim_ok, dispatch_failed, dispatch_ok, due, late, lease_expired},
};
use crate::{
    db::{DbError, Row, Snapshot, Statement},
    durable::stored::Stamp,
};

counted! {
    /// Candidates that share their raw connection, queue and compatibility.
    RepairGroup {
        connection: text,
        queue: text,
        compatibility: text,
        candidates: int,
        oldest: time,
    }
}

#[derive(Clone, Debug, Default)]
pub struct RepairGroups {
    /// Tasks that are there and in trouble.
    pub tasks: Vec<RepairGroup>,
    /// Runs whose task is not there.
    pub runs: Vec<RepairGroup>,
    pub oldest_missing_run_started_at: Option<Stamp>,
}

/// Which candidates are wanted; by default all.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted<'a> {
    /// Empty is every run.
    pub run_ids: &'a [String],
    pub instance_id: Option<&'a str>,
}

impl Wanted<'_> {
    fn push(self, q: &mut Statement, run_id: &'static str) {
        if !self.run_ids.is_empty() {
            q.push(" and ")
                .push(run_id)
                .push(" in ")
                .bind_list(self.run_ids);
        }
        if let Some(instance_id) = self.instance_id {
            q.push(" and ")
                .push(run_id)
                .push(" in (select w.id from {workflow_runs} w where w.workflow_instance_id = ")
                .bind(instance_id)
                .push(")");
        }
    }
}

/// Which tasks in trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// All that the engine's pass selects.
    Any,
    /// Of those, what can be made right without the engine where workers poll: tasks of open runs
    /// that no worker was refused.
    Polled,
    /// The same where workers listen to a queue: what is ready waits for the engine to publish it.
    Queued,
}

impl Trouble {
    fn sql(self) -> &'static str {
        macro_rules! of_an_open_run {
            () => {
                " and exists (select 1 from {workflow_runs} o where o.id = workflow_run_id \
                 and o.status in ('pending', 'running', 'waiting'))"
            };
        }
        match self {
            Self::Any => "",
            Self::Polled => concat!(
                " and (status = 'leased' or ",
                claim_ok!(),
                ")",
                of_an_open_run!()
            ),
            Self::Queued => concat!(" and status = 'leased'", of_an_open_run!()),
        }
    }
}

/// Connection, queue and compatibility, nothing where there is nothing.
pub type Triple = [Option<String>; 3];

/// The word that stands for nothing in a scope.
pub const NOTHING: [&str; 3] = ["default", "default", "any"];

/// Along `(status, available_at)`: open tasks only.
macro_rules! candidate {
    () => {
        concat!(
            "status in ('ready', 'leased') and ((status = 'ready' and ",
            due!(),
            " and (\
             (",
            dispatch_failed!(),
            " and (repair_available_at is null or repair_available_at <= :now)) or \
             (",
            claim_failed!(),
            " and ((repair_available_at is not null and repair_available_at <= :now) \
               or (repair_available_at is null and last_claim_failed_at <= :late))) or \
             (",
            dispatch_ok!(),
            " and ",
            claim_ok!(),
            " and ",
            late!(),
            "))) or ",
            lease_expired!(),
            ")"
        )
    };
}

/// Along `(status)`: open runs only.
macro_rules! missing {
    () => {
        "liveness_state = 'repair_needed' and next_task_id is null and status in ('pending', 'running', 'waiting')"
    };
}

const TASKS: &str = concat!(
    "select connection, queue, compatibility, count(*) as candidates, min(created_at) as oldest \
     from {workflow_tasks} where ",
    candidate!(),
);

const RUNS: &str = concat!(
    "select connection, queue, compatibility, count(*) as candidates, \
     min(coalesce(wait_started_at, started_at, created_at)) as oldest \
     from {workflow_run_summaries} where ",
    missing!(),
);

const BY_SCOPE: &str = " group by connection, queue, compatibility";

const OLDEST_RUN: &str = concat!(
    "select coalesce(wait_started_at, started_at, created_at) as oldest from {workflow_run_summaries} \
     where ",
    missing!(),
    " order by wait_started_at, started_at, id limit 1"
);

pub(super) async fn groups(
    snapshot: &mut Snapshot,
    scope: &Scope<'_>,
) -> Result<RepairGroups, DbError> {
    // The engine never repairs by namespace.
    if scope.namespace.is_some() {
        return Ok(RepairGroups::default());
    }
    let all = Wanted::default();
    Ok(RepairGroups {
        tasks: task_groups(snapshot, scope, all, Trouble::Any).await?,
        runs: run_groups(snapshot, scope, all).await?,
        oldest_missing_run_started_at: sql::one(snapshot, scope, OLDEST_RUN, |row| {
            row.time("oldest")
        })
        .await?,
    })
}

/// Tasks that are there and in trouble, by scope.
pub async fn task_groups(
    snapshot: &mut Snapshot,
    scope: &Scope<'_>,
    wanted: Wanted<'_>,
    trouble: Trouble,
) -> Result<Vec<RepairGroup>, DbError> {
    let mut q = sql::statement(snapshot, scope, TASKS);
    q.push(trouble.sql());
    wanted.push(&mut q, "workflow_run_id");
    q.push(BY_SCOPE);
    sql::rows(snapshot, scope, TASKS, q, RepairGroup::read).await
}

/// Runs whose task is not there, by scope.
pub async fn run_groups(
    snapshot: &mut Snapshot,
    scope: &Scope<'_>,
    wanted: Wanted<'_>,
) -> Result<Vec<RepairGroup>, DbError> {
    let mut q = sql::statement(snapshot, scope, RUNS);
    wanted.push(&mut q, "id");
    q.push(BY_SCOPE);
    sql::rows(snapshot, scope, RUNS, q, RepairGroup::read).await
}

/// The first tasks of one scope, each with its run.
pub async fn task_ids(
    snapshot: &mut Snapshot,
    scope: &Scope<'_>,
    wanted: Wanted<'_>,
    trouble: Trouble,
    (asked, limit): (&Triple, i64),
) -> Result<Vec<(String, String)>, DbError> {
    const SQL: &str = concat!(
        "select id, workflow_run_id from {workflow_tasks} where ",
        candidate!()
    );
    let mut q = sql::statement(snapshot, scope, SQL);
    q.push(trouble.sql());
    wanted.push(&mut q, "workflow_run_id");
    push_scope(&mut q, asked);
    q.push(" order by available_at, created_at, id limit ")
        .bind(limit);
    let read = |row: &mut Row| Ok((row.text("id")?, row.text("workflow_run_id")?));
    snapshot.fetch_as(q, read).await
}

/// The first runs of one scope.
pub async fn run_ids(
    snapshot: &mut Snapshot,
    scope: &Scope<'_>,
    wanted: Wanted<'_>,
    (asked, limit): (&Triple, i64),
) -> Result<Vec<String>, DbError> {
    const SQL: &str = concat!("select id from {workflow_run_summaries} where ", missing!());
    let mut q = sql::statement(snapshot, scope, SQL);
    wanted.push(&mut q, "id");
    push_scope(&mut q, asked);
    q.push(" order by wait_started_at, started_at, id limit ")
        .bind(limit);
    snapshot.fetch_as(q, |row| row.text("id")).await
}

/// Open runs past a deadline that no workflow task will close.
pub async fn overdue_runs(
    snapshot: &mut Snapshot,
    scope: &Scope<'_>,
    wanted: Wanted<'_>,
    limit: i64,
) -> Result<Vec<String>, DbError> {
    const SQL: &str = "select r.id from {workflow_runs} r where r.status in ('pending', 'running', 'waiting') \
        and (r.execution_deadline_at <= :now or r.run_deadline_at <= :now) \
        and not exists (select 1 from {workflow_tasks} t where t.workflow_run_id = r.id \
        and t.task_type = 'workflow' and t.status in ('ready', 'leased'))";
    let mut q = sql::statement(snapshot, scope, SQL);
    wanted.push(&mut q, "r.id");
    q.push(" order by r.id limit ").bind(limit);
    snapshot.fetch_as(q, |row| row.text("id")).await
}

/// How many activities are past a deadline of theirs, up to a limit.
pub async fn overdue_activities(
    snapshot: &mut Snapshot,
    scope: &Scope<'_>,
    limit: i64,
) -> Result<usize, DbError> {
    const SQL: &str = "select id from {activity_executions} where \
        (status in ('pending', 'running') and schedule_to_close_deadline_at <= :now_us) \
        or (status = 'pending' and schedule_deadline_at <= :now_us) \
        or (status = 'running' and (close_deadline_at <= :now_us or heartbeat_deadline_at <= :now_us)) limit ";
    let mut q = sql::statement(snapshot, scope, SQL);
    q.bind(limit);
    Ok(snapshot.fetch(q).await?.len())
}

/// Nothing also finds the word that stands for it; a word finds only itself.
fn push_scope(q: &mut Statement, asked: &Triple) {
    const COLUMNS: [&str; 3] = ["connection", "queue", "compatibility"];
    for ((column, asked), nothing) in COLUMNS.into_iter().zip(asked).zip(NOTHING) {
        q.push(" and ");
        match asked {
            Some(asked) => q.push(column).push(" = ").bind(asked),
            None => q
                .push("(")
                .push(column)
                .push(" is null or ")
                .push(column)
                .push(" in ")
                .bind_list(["", nothing])
                .push(")"),
        };
    }
}
