//! Open work as the runs it is of. The overview counts them and a list holds them: both ask the
//! same conditions of the same rows, of open runs that have a summary.

use chrono::{DateTime, Utc};

use super::{
    activities::{close, heartbeat, overdue as activity_overdue, retrying, schedule, whole},
    counted,
    sql::{self, Scope},
    tasks::{
        claim_failed, claim_ok, delayed, dispatch_failed, dispatch_ok, due, late, lease_expired,
        overdue,
    },
};
use crate::db::{DbError, Snapshot, Statement};

/// What a run has open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    ReadyTask,
    DelayedTask,
    LeasedTask,
    LeaseExpired,
    DispatchFailed,
    DispatchOverdue,
    ClaimFailed,
    /// A task in any of these four troubles.
    UnhealthyTask,
    RetryingActivity,
    OverdueActivity,
}

/// The run `w` has such a row, found by the run's id. The limit keeps PostgreSQL from joining, the
/// case all of them from entering by status.
macro_rules! has {
    ($table:literal, $($condition:expr),+) => {
        concat!(
            "(select 1 from {", $table, "} open_work where open_work.workflow_run_id = w.id \
             and case when ", $($condition,)+ " then 1 end = 1 limit 1) is not null"
        )
    };
}

macro_rules! unhealthy {
    () => {
        concat!(
            "(",
            lease_expired!(),
            " or ",
            dispatch_failed!(),
            " or ",
            overdue!(),
            " or ",
            claim_failed!(),
            ")"
        )
    };
}

impl Work {
    fn template(self) -> &'static str {
        match self {
            Self::ReadyTask => has!("workflow_tasks", "status = 'ready' and ", due!()),
            Self::DelayedTask => has!("workflow_tasks", delayed!()),
            Self::LeasedTask => has!("workflow_tasks", "status = 'leased'"),
            Self::LeaseExpired => has!("workflow_tasks", lease_expired!()),
            Self::DispatchFailed => has!("workflow_tasks", dispatch_failed!()),
            Self::DispatchOverdue => has!("workflow_tasks", overdue!()),
            Self::ClaimFailed => has!("workflow_tasks", claim_failed!()),
            Self::UnhealthyTask => has!("workflow_tasks", unhealthy!()),
            Self::RetryingActivity => has!("activity_executions", retrying!()),
            Self::OverdueActivity => has!("activity_executions", activity_overdue!()),
        }
    }

    /// Pushes that the run `w` has it.
    pub fn push(self, q: &mut Statement, now: DateTime<Utc>, redispatch_after: i64) {
        sql::push(q, &Scope::at(now, redispatch_after), self.template());
    }
}

counted! {
    /// Open runs with a task in trouble.
    TroubledRuns {
        unhealthy: int,
        lease_expired: int,
        dispatch_failed: int,
        dispatch_overdue: int,
        claim_failed: int,
    }
}

/// Along `(status, available_at)`, and from the tasks in trouble to their runs.
const TROUBLED: &str = concat!(
    "select count(distinct workflow_run_id) as unhealthy, \
     count(distinct case when ",
    lease_expired!(),
    " then workflow_run_id end) as lease_expired, \
     count(distinct case when ",
    dispatch_failed!(),
    " then workflow_run_id end) as dispatch_failed, \
     count(distinct case when ",
    overdue!(),
    " then workflow_run_id end) as dispatch_overdue, \
     count(distinct case when ",
    claim_failed!(),
    " then workflow_run_id end) as claim_failed \
     from {workflow_tasks} where status in ('ready', 'leased') and ",
    unhealthy!(),
    " and (select s.status_bucket from {workflow_run_summaries} s \
      where s.id = workflow_run_id:and_ns_s) = 'running'"
);

pub(super) async fn troubled(
    snapshot: &mut Snapshot,
    scope: &Scope<'_>,
) -> Result<TroubledRuns, DbError> {
    sql::one(snapshot, scope, TROUBLED, TroubledRuns::read).await
}
