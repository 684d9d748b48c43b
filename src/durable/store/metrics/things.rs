//! Counts over the small tables, and over the runs' own.

use super::{
    counted,
    sql::{self, Scope},
};
use crate::{
    db::{DbError, Snapshot},
    durable::{
        store::snapshot::heartbeats,
        stored::{HeartbeatRow, Stamp},
    },
};

counted! {
    ScheduleCounts {
        active: int,
        paused: int,
        missed: int,
        oldest_overdue_at: time,
        fires_total: int,
        failures_total: int,
    }

    RunTableCounts {
        runs: int,
        active_sticky_runs: int,
    }
}

#[derive(Clone, Debug, Default)]
pub struct Workers {
    pub heartbeats: Vec<HeartbeatRow>,
    /// Heartbeats that stopped between five minutes and an hour ago.
    pub stuck: i64,
}

/// Along `(status, next_fire_at)`.
const SCHEDULES: &str = "select count(case when status = 'active' then 1 end) as active, \
    count(case when status = 'paused' then 1 end) as paused, \
    count(case when status = 'active' and next_fire_at <= :now then 1 end) as missed, \
    min(case when status = 'active' and next_fire_at <= :now then next_fire_at end) as oldest_overdue_at, \
    cast(sum(case when status = 'active' then fires_count else 0 end) as :integer) as fires_total, \
    cast(sum(case when status = 'active' then failures_count else 0 end) as :integer) as failures_total \
    from {workflow_schedules} where status in ('active', 'paused'):and_ns";

pub(super) async fn schedules(
    snapshot: &mut Snapshot,
    scope: &Scope<'_>,
) -> Result<ScheduleCounts, DbError> {
    let row = sql::one(snapshot, scope, SCHEDULES).await?;
    row.map_or_else(
        || Ok(ScheduleCounts::default()),
        |mut row| ScheduleCounts::read(&mut row),
    )
}

/// Rows along the primary key, sticky runs along `(sticky_until)`.
const RUN_TABLE: &str = "select (select count(*) from {workflow_runs} r where 1 = 1:and_ns_r) as runs, \
    (select count(*) from {workflow_runs} r where sticky_worker_id is not null and sticky_until > :now \
     and status not in ('completed', 'failed', 'cancelled', 'terminated'):and_ns_r) as active_sticky_runs";

pub(super) async fn run_table(
    snapshot: &mut Snapshot,
    scope: &Scope<'_>,
) -> Result<RunTableCounts, DbError> {
    let row = sql::one(snapshot, scope, RUN_TABLE).await?;
    row.map_or_else(
        || Ok(RunTableCounts::default()),
        |mut row| RunTableCounts::read(&mut row),
    )
}

const STUCK: &str = "select count(*) as stuck from {workflow_worker_compatibility_heartbeats} \
    where recorded_at < :minutes5 and recorded_at > :hour";

pub(super) async fn workers(
    snapshot: &mut Snapshot,
    scope: &Scope<'_>,
) -> Result<Workers, DbError> {
    Ok(Workers {
        heartbeats: heartbeats(snapshot).await?,
        stuck: match sql::one(snapshot, scope, STUCK).await? {
            Some(mut row) => row.opt_int("stuck")?.unwrap_or(0),
            None => 0,
        },
    })
}
