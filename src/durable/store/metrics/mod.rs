//! The fleet's numbers, in a constant set of statements inside one read snapshot.
//!
//! Open work is counted along `(status, …)` indexes; what the engine has no index for is counted
//! in one pass per table, shared by every number that needs it; what would need each run's whole
//! history comes from [`sweep`] and what joins tables from [`rows`], a bounded number of runs at a time.

mod activities;
mod at_work;
mod lenient;
mod limits;
mod queues;
mod registrations;
pub mod repair;
pub mod rows;
mod runs;
mod sections;
mod sql;
pub mod sweep;
mod tasks;
mod things;
mod week;

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};

pub use activities::{ActivityCounts, ActivityRuns, LocalCounts};
pub use at_work::{TroubledRuns, Work};
pub use limits::{NearLimit, OpenCount, threshold};
pub use queues::{Lease, QueueCounts, QueueRows, Queues, ReadyTask, queues};
pub use registrations::{Registered, Registration, Registrations, Rollout};
pub use repair::{RepairGroup, RepairGroups};
pub use runs::{
    DashboardCounts, FailureGroup, HistoryCounts, RunCounts, StatusGroup, SummaryCounts,
};
pub use sections::Sections;
pub use sql::Scope;
pub use tasks::{FailingType, RecentTasks, TaskCounts, TaskGroup};
pub use things::{MissedSchedule, RunTableCounts, ScheduleCounts, Workers};
pub use week::{ClosedGroup, HourGroup, TypeGroup};

use crate::{
    db::{DbError, Dialect, Snapshot},
    durable::{engine_config::EngineConfig, stored::RunSummary},
    zone::Zone,
};

/// Everything one pass counts, apart from the sweep.
#[derive(Clone, Debug)]
pub struct Counted {
    pub now: DateTime<Utc>,
    pub namespace: Option<String>,
    /// Where nulls stand in an order is the database's own choice.
    pub dialect: Dialect,
    /// The zone stored times are in.
    pub zone: Zone,
    pub runs: RunCounts,
    pub history: HistoryCounts,
    pub summaries: SummaryCounts,
    pub dashboard: DashboardCounts,
    pub statuses: Vec<StatusGroup>,
    pub hours: Vec<HourGroup>,
    pub closed: Vec<ClosedGroup>,
    /// The ten busiest types of the week.
    pub types: Vec<TypeGroup>,
    pub longest_wait: Option<RunSummary>,
    pub longest_duration: Option<RunSummary>,
    pub most_exceptions: Option<RunSummary>,
    pub failures: Vec<FailureGroup>,
    pub tasks: Vec<TaskGroup>,
    pub recent_tasks: RecentTasks,
    pub failing_types: Vec<FailingType>,
    pub activities: ActivityCounts,
    pub local_activities: LocalCounts,
    pub troubled_runs: TroubledRuns,
    pub activity_runs: ActivityRuns,
    /// The latest, at most twenty.
    pub missed_schedules: Vec<MissedSchedule>,
    pub repair: RepairGroups,
    pub run_table: RunTableCounts,
    pub schedules: ScheduleCounts,
    pub workers: Workers,
    pub registered: Registered,
    pub near_limits: Vec<NearLimit>,
    /// Columns with a value that could not be read, as `table.column`: it counted for nothing.
    pub unread: BTreeSet<String>,
}

/// One pass over the tables.
pub async fn count(
    snapshot: &mut Snapshot,
    now: DateTime<Utc>,
    config: &EngineConfig,
    namespace: Option<&str>,
    sections: &mut Sections,
) -> Result<Counted, DbError> {
    let scope = Scope::new(now, config, namespace);
    alone(snapshot).await?;
    sections.enter("runs");
    let summaries = runs::count(snapshot, &scope).await?;
    let longest_wait = runs::longest_wait(snapshot, &scope).await?;
    let run_table = things::run_table(snapshot, &scope).await?;
    let failures = runs::failures(snapshot, &scope).await?;
    sections.enter("tasks");
    let tasks = tasks::open(snapshot, &scope).await?;
    let recent_tasks = tasks::recent(snapshot, &scope).await?;
    let failing_types = tasks::failing_types(snapshot, &scope).await?;
    let troubled_runs = at_work::troubled(snapshot, &scope).await?;
    sections.enter("activities");
    let (activities, local_activities, activity_runs) = activities::count(snapshot, &scope).await?;
    sections.enter("repair");
    let repair = repair::groups(snapshot, &scope).await?;
    sections.enter("schedules");
    let schedules = things::schedules(snapshot, &scope).await?;
    let missed_schedules = things::missed_schedules(snapshot, &scope).await?;
    sections.enter("workers");
    let workers = things::workers(snapshot, &scope).await?;
    let registered = registrations::registered(snapshot, &scope).await?;
    sections.enter("limits");
    let near_limits = limits::near(snapshot, &scope, config).await?;
    Ok(Counted {
        now,
        namespace: namespace.map(str::to_owned),
        dialect: snapshot.dialect(),
        zone: snapshot.zone(),
        runs: summaries.runs,
        history: summaries.history,
        summaries: summaries.rows,
        dashboard: summaries.dashboard,
        statuses: summaries.statuses,
        hours: summaries.hours,
        closed: summaries.closed,
        types: summaries.types,
        longest_wait,
        longest_duration: summaries.longest_duration,
        most_exceptions: summaries.most_exceptions,
        failures,
        tasks,
        recent_tasks,
        failing_types,
        activities,
        local_activities,
        troubled_runs,
        activity_runs,
        missed_schedules,
        repair,
        run_table,
        schedules,
        workers,
        registered,
        near_limits,
        unread: scope.unread.columns(),
    })
}

/// PostgreSQL would take several processes to each pass over a table: sooner done, at the cost of
/// more work and of processors the engine could use.
async fn alone(snapshot: &mut Snapshot) -> Result<(), DbError> {
    if snapshot.dialect() == Dialect::Postgres {
        let mut q = snapshot.statement();
        q.push("select set_config('max_parallel_workers_per_gather', '0', true) as workers");
        snapshot.fetch(q).await?;
    }
    Ok(())
}

/// Declares what one aggregate row holds: `int` is never null, `time`, `text` may be.
macro_rules! counted {
    ($($(#[$doc:meta])* $name:ident { $($column:ident: $kind:ident,)+ })+) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
        #[allow(clippy::struct_field_names, reason = "the engine's names")]
        pub struct $name {
            $(pub $column: counted!(@type $kind),)+
        }

        impl $name {
            #[allow(dead_code, reason = "some are put together from several rows")]
            pub(crate) fn read(row: &mut super::lenient::Lenient<'_>) -> Result<Self, DbError> {
                Ok(Self { $($column: counted!(@read row, $column, $kind),)+ })
            }
        }
    )+};

    (@type int) => { i64 };
    (@type opt_int) => { Option<i64> };
    (@type time) => { Option<Stamp> };
    (@type text) => { Option<String> };

    (@read $row:ident, $column:ident, int) => { $row.int(stringify!($column))? };
    (@read $row:ident, $column:ident, opt_int) => { $row.opt_int(stringify!($column))? };
    (@read $row:ident, $column:ident, time) => { $row.time(stringify!($column))? };
    (@read $row:ident, $column:ident, text) => { $row.opt_text(stringify!($column))? };
}
use counted;
