//! What the engine's repair would look at, by scope: connection, queue and compatibility.

use super::{
    counted,
    sql::{self, Scope},
    tasks::{claim_failed, claim_ok, dispatch_failed, dispatch_ok, due, late, lease_expired},
};
use crate::{
    db::{DbError, Snapshot},
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

/// Along `(status, available_at)`: open tasks only.
const TASKS: &str = concat!(
    "select connection, queue, compatibility, count(*) as candidates, min(created_at) as oldest \
     from {workflow_tasks} where status in ('ready', 'leased') and ((status = 'ready' and ",
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
    ") \
     group by connection, queue, compatibility"
);

macro_rules! missing {
    () => {
        "liveness_state = 'repair_needed' and next_task_id is null and status in ('pending', 'running', 'waiting')"
    };
}

/// Along `(status)`: open runs only.
const RUNS: &str = concat!(
    "select connection, queue, compatibility, count(*) as candidates, \
     min(coalesce(wait_started_at, started_at, created_at)) as oldest \
     from {workflow_run_summaries} where ",
    missing!(),
    " group by connection, queue, compatibility"
);

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
    Ok(RepairGroups {
        tasks: sql::all(snapshot, scope, TASKS, RepairGroup::read).await?,
        runs: sql::all(snapshot, scope, RUNS, RepairGroup::read).await?,
        oldest_missing_run_started_at: sql::one(snapshot, scope, OLDEST_RUN, |row| {
            Ok(row.opt_time("oldest")?.map(Stamp))
        })
        .await?,
    })
}
