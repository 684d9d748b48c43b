//! Counts over the small tables, and over the runs' own.

use super::{
    counted,
    sql::{self, Scope},
};
use crate::{
    db::{DbError, Snapshot},
    durable::{
        store::snapshot::heartbeats,
        stored::{HeartbeatRow, Notices, Stamp},
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

    /// An active schedule past its time.
    MissedSchedule {
        schedule_id: text,
        next_fire_at: time,
    }

    /// Runs, and the accepted starts of those that have not begun.
    RunTableCounts {
        runs: int,
        runs_of_all_namespaces: opt_int,
        active_sticky_runs: int,
        pending_commands: int,
        oldest_accepted_at: time,
    }
}

#[derive(Clone, Debug, Default)]
pub struct Workers {
    pub heartbeats: Vec<HeartbeatRow>,
    /// Heartbeats that stopped between five minutes and an hour ago.
    pub stuck: Vec<HeartbeatRow>,
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
    sql::one(snapshot, scope, SCHEDULES, ScheduleCounts::read).await
}

/// Along `(status, next_fire_at)`, the latest of them.
const MISSED: &str = "select schedule_id, next_fire_at from {workflow_schedules} \
    where status = 'active' and next_fire_at <= :now:and_ns order by next_fire_at, id limit 20";

pub(super) async fn missed_schedules(
    snapshot: &mut Snapshot,
    scope: &Scope<'_>,
) -> Result<Vec<MissedSchedule>, DbError> {
    sql::all(snapshot, scope, MISSED, MissedSchedule::read).await
}

macro_rules! start_of {
    ($what:literal) => {
        concat!(
            "(select ",
            $what,
            " from {workflow_commands} c where c.workflow_run_id = r.id \
             and :plain(c.command_type) = 'start' and :plain(c.status) = 'accepted' \
             and c.outcome = 'started_new')"
        )
    };
}

/// Held runs along `(sticky_until)`; then one pass, because no index knows a run's status: from the
/// few runs that are pending to their commands, not the other way round.
macro_rules! run_table {
    (runs: $runs:literal, of: $run:literal, start: $before:literal $after:literal) => {
        concat!(
            "select ",
            $runs,
            " as runs, :runs_beside as runs_of_all_namespaces, \
             (select count(*) from {workflow_runs} r where r.sticky_until > :now and r.sticky_worker_id is not null \
               and r.status not in ('completed', 'failed', 'cancelled', 'terminated'):and_ns_r) as active_sticky_runs, \
             cast(sum(",
            $before,
            start_of!("count(*)"),
            $after,
            ") as :integer) as pending_commands, min(",
            $before,
            start_of!("min(c.accepted_at)"),
            $after,
            ") as oldest_accepted_at from {workflow_runs} r where ",
            $run,
            ":and_ns_r"
        )
    };
}

/// All runs are counted along an index.
const RUN_TABLE: &str = run_table!(
    runs: "(select count(*) from {workflow_runs} r where 1 = 1:and_ns_r)",
    of: "r.status = 'pending'",
    start: "" ""
);

/// PostgreSQL has an index say of each row whether it is still there: one more in a pass that reads
/// them all anyway costs it a third of that.
const RUN_TABLE_IN_ONE: &str = run_table!(
    runs: "count(*)",
    of: "1 = 1",
    start: "case when r.status = 'pending' then " " end"
);

pub(super) async fn run_table(
    snapshot: &mut Snapshot,
    scope: &Scope<'_>,
) -> Result<RunTableCounts, DbError> {
    let template = snapshot
        .dialect()
        .pick(RUN_TABLE, RUN_TABLE_IN_ONE, RUN_TABLE);
    sql::one(snapshot, scope, template, RunTableCounts::read).await
}

const STUCK: &str = " from {workflow_worker_compatibility_heartbeats} \
    where recorded_at < :minutes5 and recorded_at > :hour order by recorded_at desc, id";

pub(super) async fn workers(
    snapshot: &mut Snapshot,
    scope: &Scope<'_>,
) -> Result<Workers, DbError> {
    let mut stuck = snapshot.statement();
    stuck
        .push("select ")
        .push(HeartbeatRow::COLUMNS)
        .append(&sql::statement(snapshot, scope, STUCK));
    Ok(Workers {
        heartbeats: heartbeats(snapshot).await?,
        stuck: snapshot
            .fetch_as(stuck, |row| {
                HeartbeatRow::read(row, &mut Notices::default())
            })
            .await?,
    })
}
