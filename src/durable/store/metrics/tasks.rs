//! Counts over `workflow_tasks`.

use super::{
    counted,
    lenient::Lenient,
    sql::{self, Scope},
};
use crate::{
    db::{DbError, Snapshot},
    durable::stored::Stamp,
};

/// The engine's named conditions over tasks.
macro_rules! due {
    () => {
        "(available_at is null or available_at <= :now)"
    };
}
macro_rules! dispatch_failed {
    () => {
        "(status = 'ready' and last_dispatch_attempt_at is not null and last_dispatch_error is not null \
          and last_dispatch_error <> '' \
          and (last_dispatched_at is null or last_dispatch_attempt_at > last_dispatched_at))"
    };
}
macro_rules! dispatch_ok {
    () => {
        "(last_dispatch_attempt_at is null or last_dispatch_error is null or last_dispatch_error = '' \
          or (last_dispatched_at is not null and last_dispatch_attempt_at <= last_dispatched_at))"
    };
}
macro_rules! claim_failed {
    () => {
        "(status = 'ready' and last_claim_failed_at is not null and last_claim_error is not null \
          and last_claim_error <> '')"
    };
}
macro_rules! claim_ok {
    () => {
        "(last_claim_failed_at is null or last_claim_error is null or last_claim_error = '')"
    };
}
macro_rules! late {
    () => {
        "((last_dispatched_at is not null and last_dispatched_at <= :late) \
          or (last_dispatched_at is null and created_at <= :late))"
    };
}
macro_rules! overdue {
    () => {
        concat!(
            "(status = 'ready' and ",
            due!(),
            " and ",
            dispatch_ok!(),
            " and ",
            claim_ok!(),
            " and ",
            late!(),
            ")"
        )
    };
}
macro_rules! lease_expired {
    () => {
        "(status = 'leased' and lease_expires_at is not null and lease_expires_at <= :now)"
    };
}
macro_rules! delayed {
    () => {
        "(status = 'ready' and available_at > :now)"
    };
}
pub(super) use {
    claim_failed, claim_ok, delayed, dispatch_failed, dispatch_ok, due, late, lease_expired,
    overdue,
};

counted! {
    /// Open tasks of one queue and type, or of all of them.
    TaskCounts {
        open: int,
        ready: int,
        ready_due: int,
        delayed: int,
        leased: int,
        dispatch_failed: int,
        claim_failed: int,
        dispatch_overdue: int,
        lease_expired: int,
        oldest_lease_expired_at: time,
        oldest_ready_due_at: time,
        oldest_dispatch_overdue_since: time,
        oldest_claim_failed_at: time,
        oldest_dispatch_failed_at: time,
        max_attempt_count: int,
        max_repair_count: int,
    }

    /// Of the same rows, what other blocks show.
    TaskExtras {
        pending_start_tasks: int,
        ready_sticky_tasks: int,
        leased_sticky_tasks: int,
    }

    /// Closed tasks too: what happened in the last minute.
    RecentTasks {
        tasks_added_last_minute: int,
        tasks_dispatched_last_minute: int,
        hit_expected_last_minute: int,
        forced_cold_replay_last_minute: int,
        cold_replay_last_minute: int,
    }

    /// How often the workflow tasks of one type failed in a row.
    FailingType {
        workflow_type: text,
        max_consecutive_failures: int,
        failed_tasks: int,
    }
}

#[derive(Clone, Debug)]
pub struct TaskGroup {
    pub queue: Option<String>,
    pub task_type: String,
    pub counts: TaskCounts,
    pub extras: TaskExtras,
}

impl TaskCounts {
    /// The same over both.
    pub fn add(&mut self, other: &Self) {
        self.open += other.open;
        self.ready += other.ready;
        self.ready_due += other.ready_due;
        self.delayed += other.delayed;
        self.leased += other.leased;
        self.dispatch_failed += other.dispatch_failed;
        self.claim_failed += other.claim_failed;
        self.dispatch_overdue += other.dispatch_overdue;
        self.lease_expired += other.lease_expired;
        for (mine, theirs) in [
            (
                &mut self.oldest_lease_expired_at,
                other.oldest_lease_expired_at,
            ),
            (&mut self.oldest_ready_due_at, other.oldest_ready_due_at),
            (
                &mut self.oldest_dispatch_overdue_since,
                other.oldest_dispatch_overdue_since,
            ),
            (
                &mut self.oldest_claim_failed_at,
                other.oldest_claim_failed_at,
            ),
            (
                &mut self.oldest_dispatch_failed_at,
                other.oldest_dispatch_failed_at,
            ),
        ] {
            Stamp::earliest(mine, theirs);
        }
        self.max_attempt_count = self.max_attempt_count.max(other.max_attempt_count);
        self.max_repair_count = self.max_repair_count.max(other.max_repair_count);
    }
}

/// Along `(status, available_at)`: open tasks only.
const OPEN: &str = concat!(
    "select queue, task_type, count(*) as \"open\", \
     count(case when status = 'ready' then 1 end) as ready, \
     count(case when status = 'ready' and ",
    due!(),
    " then 1 end) as ready_due, \
     count(case when ",
    delayed!(),
    " then 1 end) as \"delayed\", \
     count(case when status = 'leased' then 1 end) as leased, \
     count(case when ",
    dispatch_failed!(),
    " then 1 end) as dispatch_failed, \
     count(case when ",
    claim_failed!(),
    " then 1 end) as claim_failed, \
     count(case when ",
    overdue!(),
    " then 1 end) as dispatch_overdue, \
     count(case when ",
    lease_expired!(),
    " then 1 end) as lease_expired, \
     min(case when ",
    lease_expired!(),
    " then lease_expires_at end) as oldest_lease_expired_at, \
     min(case when status = 'ready' and ",
    due!(),
    " then coalesce(available_at, created_at) end) as oldest_ready_due_at, \
     min(case when ",
    overdue!(),
    " then coalesce(last_dispatched_at, created_at) end) as oldest_dispatch_overdue_since, \
     min(case when ",
    claim_failed!(),
    " then last_claim_failed_at end) as oldest_claim_failed_at, \
     min(case when ",
    dispatch_failed!(),
    " then last_dispatch_attempt_at end) as oldest_dispatch_failed_at, \
     max(attempt_count) as max_attempt_count, \
     max(repair_count) as max_repair_count, \
     count(case when task_type = 'workflow' and status = 'ready' and ",
    due!(),
    " and \
       (select sr.status from {workflow_runs} sr where sr.id = workflow_run_id) = 'pending' then 1 end) as pending_start_tasks, \
     count(case when task_type = 'workflow' and status = 'ready' and sticky_worker_id is not null and sticky_until > :now then 1 end) as ready_sticky_tasks, \
     count(case when task_type = 'workflow' and status = 'leased' and sticky_worker_id is not null then 1 end) as leased_sticky_tasks \
     from {workflow_tasks} where status in ('ready', 'leased'):and_ns_x group by queue, task_type",
);

pub(super) async fn open(
    snapshot: &mut Snapshot,
    scope: &Scope<'_>,
) -> Result<Vec<TaskGroup>, DbError> {
    let group = |row: &mut Lenient<'_>| {
        Ok(TaskGroup {
            queue: row.opt_text("queue")?,
            task_type: row.opt_text("task_type")?.unwrap_or_default(),
            counts: TaskCounts::read(row)?,
            extras: TaskExtras::read(row)?,
        })
    };
    sql::all(snapshot, scope, OPEN, group).await
}

macro_rules! claimed {
    ($how:literal, $name:literal) => {
        concat!(
            "(select count(*) from {workflow_tasks} where sticky_claimed_at >= :minute \
             and task_type = 'workflow' and :plain(sticky_replay_mode) = '",
            $how,
            "':and_ns_x) as ",
            $name
        )
    };
}

/// Claims along `(sticky_claimed_at)`. No index knows when a task was made or dispatched: one pass
/// over all of them.
const RECENT: &str = concat!(
    "select ",
    claimed!("sticky_hit_expected", "hit_expected_last_minute"),
    ", ",
    claimed!("forced_cold_replay", "forced_cold_replay_last_minute"),
    ", ",
    claimed!("cold_replay", "cold_replay_last_minute"),
    ", count(case when created_at >= :minute then 1 end) as tasks_added_last_minute, \
     count(case when last_dispatched_at >= :minute then 1 end) as tasks_dispatched_last_minute \
     from {workflow_tasks} \
     where (:plain(created_at) >= :minute or :plain(last_dispatched_at) >= :minute):and_ns_x"
);

pub(super) async fn recent(
    snapshot: &mut Snapshot,
    scope: &Scope<'_>,
) -> Result<RecentTasks, DbError> {
    sql::one(snapshot, scope, RECENT, RecentTasks::read).await
}

/// Along `(status, available_at)`, and from each task to its run: as a join PostgreSQL would read
/// all runs there are. The engine's server takes the task's own namespace here.
const FAILING: &str = "select workflow_type, max(attempt_count) as max_consecutive_failures, count(*) as failed_tasks \
    from (select t.attempt_count, (select r.workflow_type from {workflow_runs} r \
      where r.id = t.workflow_run_id) as workflow_type \
      from {workflow_tasks} t where t.status = 'failed' and t.task_type = 'workflow' and t.attempt_count > 0:and_ns) failed \
    group by workflow_type order by 2 desc, 1";

pub(super) async fn failing_types(
    snapshot: &mut Snapshot,
    scope: &Scope<'_>,
) -> Result<Vec<FailingType>, DbError> {
    let mut types = sql::all(snapshot, scope, FAILING, FailingType::read).await?;
    // Tasks of no run.
    types.retain(|of_type| of_type.workflow_type.is_some());
    Ok(types)
}
