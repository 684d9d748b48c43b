//! Counts over `activity_executions` and `activity_attempts`, which have no index on status.

use super::{
    counted,
    sql::{self, Scope},
};
use crate::{
    db::{DbError, Snapshot},
    durable::stored::Stamp,
};

counted! {
    ActivityCounts {
        open: int,
        pending: int,
        running: int,
        local: int,
        local_open: int,
        local_pending: int,
        local_running: int,
        local_attempts: int,
        local_failed_attempts: int,
        retrying: int,
        oldest_retrying_started_at: time,
        timeout_overdue: int,
        oldest_timeout_overdue_at: time,
        failed_attempts: int,
        max_attempt_count: int,
    }

    /// Which of them run inside their worker.
    LocalCounts {
        local_retrying: int,
        local_timeout_overdue: int,
    }

    /// Open runs that have them.
    ActivityRuns {
        retrying_runs: int,
        overdue_runs: int,
    }

    Overdue {
        overdue_schedule: time,
        overdue_close: time,
        overdue_schedule_to_close: time,
        overdue_heartbeat: time,
    }
}

macro_rules! schedule {
    () => {
        "(status = 'pending' and schedule_deadline_at <= :now_us)"
    };
}
macro_rules! close {
    () => {
        "(status = 'running' and close_deadline_at <= :now_us)"
    };
}
macro_rules! whole {
    () => {
        "(status in ('pending', 'running') and schedule_to_close_deadline_at <= :now_us)"
    };
}
macro_rules! heartbeat {
    () => {
        "(status = 'running' and heartbeat_deadline_at <= :now_us)"
    };
}
macro_rules! overdue {
    () => {
        concat!(
            "(",
            schedule!(),
            " or ",
            close!(),
            " or ",
            whole!(),
            " or ",
            heartbeat!(),
            ")"
        )
    };
}

macro_rules! retrying {
    () => {
        "(status = 'pending' and attempt_count > 0)"
    };
}
pub(super) use {close, heartbeat, overdue, retrying, schedule, whole};

/// Of an open run that has a summary: what a list of them holds.
macro_rules! of_an_open_run {
    () => {
        "(select s.status_bucket from {workflow_run_summaries} s where s.id = x.workflow_run_id:and_ns_s) = 'running'"
    };
}

/// Highest of some: of all the others only one with more attempts can have the most.
macro_rules! many_attempts {
    () => {
        "(select max(attempt_count) from (select attempt_count from {activity_executions} \
         where 1 = 1:and_ns_x limit 1000) sampled)"
    };
}

/// Nearly all executions are closed and ran on a queue, and count for nothing but the highest
/// attempt: asking each of them every question would cost three times as much.
const EXECUTIONS: &str = concat!(
    "select count(case when status in ('pending', 'running') then 1 end) as \"open\", \
     count(case when status = 'pending' then 1 end) as pending, \
     count(case when status = 'running' then 1 end) as running, \
     count(case when :local then 1 end) as \"local\", \
     count(case when status in ('pending', 'running') and :local then 1 end) as local_open, \
     count(case when status = 'pending' and :local then 1 end) as local_pending, \
     count(case when status = 'running' and :local then 1 end) as local_running, \
     cast(sum(case when :local then (select count(*) from {activity_attempts} a where a.activity_execution_id = x.id:and_ns_a) else 0 end) as :integer) as local_attempts, \
     cast(sum(case when :local then (select count(*) from {activity_attempts} a where a.activity_execution_id = x.id and a.status = 'failed':and_ns_a) else 0 end) as :integer) as local_failed_attempts, \
     count(case when ",
    retrying!(),
    " then 1 end) as retrying, \
     count(case when ",
    retrying!(),
    " and :local then 1 end) as local_retrying, \
     count(distinct case when ",
    retrying!(),
    " and ",
    of_an_open_run!(),
    " then workflow_run_id end) as retrying_runs, \
     min(case when ",
    retrying!(),
    " then started_at end) as oldest_retrying_started_at, \
     count(distinct case when ",
    overdue!(),
    " and ",
    of_an_open_run!(),
    " then workflow_run_id end) as overdue_runs, \
     count(case when ",
    overdue!(),
    " then 1 end) as timeout_overdue, \
     count(case when ",
    overdue!(),
    " and :local then 1 end) as local_timeout_overdue, \
     min(case when ",
    schedule!(),
    " then schedule_deadline_at end) as overdue_schedule, \
     min(case when ",
    close!(),
    " then close_deadline_at end) as overdue_close, \
     min(case when ",
    whole!(),
    " then schedule_to_close_deadline_at end) as overdue_schedule_to_close, \
     min(case when ",
    heartbeat!(),
    " then heartbeat_deadline_at end) as overdue_heartbeat, \
     null as oldest_timeout_overdue_at, null as failed_attempts, \
     max(attempt_count) as max_attempt_count, ",
    many_attempts!(),
    " as many_attempts \
     from {activity_executions} x \
     where (status in ('pending', 'running') or :local or attempt_count > ",
    many_attempts!(),
    "):and_ns_x",
);

const ATTEMPTS: &str = "select count(*) as failed_attempts from {activity_attempts} \
    where status = 'failed':and_ns_x";

pub(super) async fn count(
    snapshot: &mut Snapshot,
    scope: &Scope<'_>,
) -> Result<(ActivityCounts, LocalCounts, ActivityRuns), DbError> {
    let (mut counts, local, runs, overdue, many_attempts) =
        sql::one(snapshot, scope, EXECUTIONS, |row| {
            Ok((
                ActivityCounts::read(row)?,
                LocalCounts::read(row)?,
                ActivityRuns::read(row)?,
                Overdue::read(row)?,
                row.opt_int("many_attempts")?,
            ))
        })
        .await?;
    counts.max_attempt_count = counts.max_attempt_count.max(many_attempts.unwrap_or(0));
    for deadline in [
        overdue.overdue_schedule,
        overdue.overdue_close,
        overdue.overdue_schedule_to_close,
        overdue.overdue_heartbeat,
    ] {
        Stamp::earliest(&mut counts.oldest_timeout_overdue_at, deadline);
    }
    counts.failed_attempts =
        sql::one(snapshot, scope, ATTEMPTS, |row| row.int("failed_attempts")).await?;
    Ok((counts, local, runs))
}
