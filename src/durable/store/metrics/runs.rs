//! Counts over `workflow_run_summaries`: the table lists read, one row per run.

use super::{
    counted,
    sql::{self, Scope},
};
use crate::{
    db::{DbError, Row, Snapshot},
    durable::stored::{Notices, RunSummary, Stamp},
};

counted! {
    /// `runs`, and what the backlog repeats of it.
    RunCounts {
        total: int,
        current: int,
        running: int,
        completed: int,
        failed: int,
        cancelled: int,
        terminated: int,
        archived: int,
        repair_needed: int,
        oldest_repair_needed_at: time,
        claim_failed: int,
        compatibility_blocked: int,
        waiting: int,
        oldest_wait_started_at: time,
    }

    /// `history`, as far as summaries tell.
    HistoryCounts {
        continue_as_new_recommended_runs: int,
        approaching_budget_runs: int,
        max_event_count: int,
        max_size_bytes: int,
        max_fan_out: int,
    }

    /// The summaries themselves.
    SummaryCounts {
        schema_outdated: int,
        oldest_updated_at: time,
        newest_updated_at: time,
        pending_runs: int,
        oldest_pending_started_at: time,
        oldest_compatibility_blocked_started_at: time,
        compatibility_blocked_without_time: int,
    }

    /// What the dashboard counts beyond `runs`.
    DashboardCounts {
        flows_past_hour: int,
        failed_flows_past_week: int,
        failed_bucket: int,
        long_running: int,
        retry_storm: int,
        long_waits: int,
    }

    /// Runs that closed in one hour of the last week, by bucket.
    HourGroup {
        hour: time,
        status_bucket: text,
        runs: int,
        past_hour: int,
        past_day: int,
        failed_past_hour: int,
        completed_past_hour: int,
    }

    /// One workflow type over the last week.
    TypeGroup {
        workflow_type: text,
        total_runs: int,
        completed: int,
        failed: int,
        cancelled: int,
        terminated: int,
        median_duration_ms: opt_int,
    }

    /// Failures of the last week, by category.
    FailureGroup {
        failure_category: text,
        failures: int,
        past_hour: int,
    }

    StatusGroup {
        status: text,
        runs: int,
    }
}

pub(super) struct Summaries {
    pub runs: RunCounts,
    pub history: HistoryCounts,
    pub rows: SummaryCounts,
    pub dashboard: DashboardCounts,
    pub statuses: Vec<StatusGroup>,
}

macro_rules! blocked {
    () => {
        "liveness_state in ('workflow_task_waiting_for_compatible_worker', \
          'activity_task_waiting_for_compatible_worker', 'timer_task_waiting_for_compatible_worker')"
    };
}

/// Index only, along `(status)`.
const STATUSES: &str = "select status, count(*) as runs from {workflow_run_summaries} \
    where 1 = 1:and_ns group by status order by status";

/// Few rows each, every one along an index of its own.
const FEW: &str = "select \
    (select count(*) from {workflow_run_summaries} where archived_at is not null:and_ns) as archived, \
    (select count(*) from {workflow_run_summaries} where continue_as_new_recommended:and_ns) as continue_as_new_recommended_runs, \
    (select count(*) from {workflow_run_summaries} where history_budget_pressure = 'approaching':and_ns) as approaching_budget_runs, \
    (select count(*) from {workflow_run_summaries} where projection_schema_version is null:and_ns) \
      + (select count(*) from {workflow_run_summaries} where projection_schema_version < 2:and_ns) as schema_outdated, \
    (select count(*) from {workflow_run_summaries} where sort_timestamp >= :hour_utc:and_ns) \
      + (select count(*) from {workflow_run_summaries} where sort_timestamp is null and created_at >= :hour:and_ns) as flows_past_hour, \
    (select count(*) from {workflow_run_summaries} where status = 'failed' and updated_at >= :week:and_ns) as failed_flows_past_week, \
    (select count(*) from {workflow_run_summaries} where status_bucket = 'failed':and_ns) as failed_bucket, \
    (select min(started_at) from {workflow_run_summaries} where status = 'pending':and_ns) as oldest_pending_started_at";

/// Along `(status_bucket)`: open runs only.
const OPEN: &str = "select count(*) as running, \
    count(wait_started_at) as waiting, \
    min(wait_started_at) as oldest_wait_started_at, \
    count(case when started_at < :hour and wait_started_at is null then 1 end) as long_running, \
    count(case when updated_at >= :hour and exception_count >= 10 then 1 end) as retry_storm, \
    count(case when wait_started_at < :minutes30 then 1 end) as long_waits \
    from {workflow_run_summaries} where status_bucket = 'running':and_ns";

/// What no index knows: one pass over all summaries.
const PASS: &str = concat!(
    "select count(case when is_current_run then 1 end) as \"current\", \
     count(case when liveness_state = 'repair_needed' then 1 end) as repair_needed, \
     min(case when liveness_state = 'repair_needed' then coalesce(updated_at, started_at) end) as oldest_repair_needed_at, \
     count(case when liveness_state in ('workflow_task_claim_failed', 'activity_task_claim_failed', 'timer_task_claim_failed') then 1 end) as claim_failed, \
     count(case when ",
    blocked!(),
    " then 1 end) as compatibility_blocked, \
     min(case when ",
    blocked!(),
    " then coalesce(wait_started_at, next_task_at) end) as oldest_compatibility_blocked_started_at, \
     count(case when ",
    blocked!(),
    " and coalesce(wait_started_at, next_task_at) is null then 1 end) as compatibility_blocked_without_time, \
     max(history_event_count) as max_event_count, \
     max(history_size_bytes) as max_size_bytes, \
     max(history_fan_out) as max_fan_out, \
     min(updated_at) as oldest_updated_at, \
     max(updated_at) as newest_updated_at \
     from {workflow_run_summaries} where 1 = 1:and_ns",
);

pub(super) async fn count(
    snapshot: &mut Snapshot,
    scope: &Scope<'_>,
) -> Result<Summaries, DbError> {
    let statuses: Vec<StatusGroup> = sql::all(snapshot, scope, STATUSES)
        .await?
        .iter_mut()
        .map(StatusGroup::read)
        .collect::<Result<_, _>>()?;
    let of = |status: &str| {
        let groups = statuses.iter();
        groups
            .filter(|group| group.status.as_deref() == Some(status))
            .map(|group| group.runs)
            .sum()
    };
    // Every part reads its own columns of the one row these four make.
    let mut row = Merged::default();
    for template in [FEW, OPEN, PASS] {
        row.0.extend(sql::one(snapshot, scope, template).await?);
    }
    let all = Summaries {
        runs: RunCounts {
            total: statuses.iter().map(|group| group.runs).sum(),
            current: row.int("current")?,
            running: row.int("running")?,
            completed: of("completed"),
            failed: of("failed"),
            cancelled: of("cancelled"),
            terminated: of("terminated"),
            archived: row.int("archived")?,
            repair_needed: row.int("repair_needed")?,
            oldest_repair_needed_at: row.time("oldest_repair_needed_at")?,
            claim_failed: row.int("claim_failed")?,
            compatibility_blocked: row.int("compatibility_blocked")?,
            waiting: row.int("waiting")?,
            oldest_wait_started_at: row.time("oldest_wait_started_at")?,
        },
        history: HistoryCounts {
            continue_as_new_recommended_runs: row.int("continue_as_new_recommended_runs")?,
            approaching_budget_runs: row.int("approaching_budget_runs")?,
            max_event_count: row.int("max_event_count")?,
            max_size_bytes: row.int("max_size_bytes")?,
            max_fan_out: row.int("max_fan_out")?,
        },
        rows: SummaryCounts {
            schema_outdated: row.int("schema_outdated")?,
            oldest_updated_at: row.time("oldest_updated_at")?,
            newest_updated_at: row.time("newest_updated_at")?,
            pending_runs: of("pending"),
            oldest_pending_started_at: row.time("oldest_pending_started_at")?,
            oldest_compatibility_blocked_started_at: row
                .time("oldest_compatibility_blocked_started_at")?,
            compatibility_blocked_without_time: row.int("compatibility_blocked_without_time")?,
        },
        dashboard: DashboardCounts {
            flows_past_hour: row.int("flows_past_hour")?,
            failed_flows_past_week: row.int("failed_flows_past_week")?,
            failed_bucket: row.int("failed_bucket")?,
            long_running: row.int("long_running")?,
            retry_storm: row.int("retry_storm")?,
            long_waits: row.int("long_waits")?,
        },
        statuses: Vec::new(),
    };
    Ok(Summaries { statuses, ..all })
}

/// Several rows of different columns, read as one.
#[derive(Default)]
struct Merged(Vec<Row>);

impl Merged {
    fn row(&mut self, column: &'static str) -> Option<&mut Row> {
        self.0
            .iter_mut()
            .find(|row| row.cells().any(|(name, _)| name == column))
    }

    fn int(&mut self, column: &'static str) -> Result<i64, DbError> {
        let found = self
            .row(column)
            .map(|row| row.opt_int(column))
            .transpose()?;
        Ok(found.flatten().unwrap_or(0))
    }

    fn time(&mut self, column: &'static str) -> Result<Option<Stamp>, DbError> {
        let found = self
            .row(column)
            .map(|row| row.opt_time(column))
            .transpose()?;
        Ok(found.flatten().map(Stamp))
    }
}

const HOURS: &str = "select :closed_hour as hour, status_bucket, count(*) as runs, \
    count(case when closed_at >= :hour then 1 end) as past_hour, \
    count(case when closed_at >= :day then 1 end) as past_day, \
    count(case when closed_at >= :hour and status = 'failed' then 1 end) as failed_past_hour, \
    count(case when closed_at >= :hour and status = 'completed' then 1 end) as completed_past_hour \
    from {workflow_run_summaries} \
    where closed_at >= :week:and_ns group by 1, 2";

/// At most 169 hours of three buckets.
pub(super) async fn hours(
    snapshot: &mut Snapshot,
    scope: &Scope<'_>,
) -> Result<Vec<HourGroup>, DbError> {
    let mut rows = sql::all(snapshot, scope, HOURS).await?;
    rows.iter_mut().map(HourGroup::read).collect()
}

const TYPES: &str = "select workflow_type, count(*) as total_runs, \
    count(case when status = 'completed' then 1 end) as completed, \
    count(case when status = 'failed' then 1 end) as failed, \
    count(case when status = 'cancelled' then 1 end) as cancelled, \
    count(case when status = 'terminated' then 1 end) as \"terminated\", \
    null as median_duration_ms \
    from {workflow_run_summaries} where created_at >= :week:and_ns \
    group by workflow_type order by total_runs desc, workflow_type desc limit 10";

const MEDIANS: &str = "select workflow_type, duration_ms from (\
    select workflow_type, duration_ms, \
    row_number() over (partition by workflow_type order by duration_ms) as place, \
    count(*) over (partition by workflow_type) as places \
    from {workflow_run_summaries} \
    where created_at >= :week and :plain(status) = 'completed' and duration_ms is not null:and_ns \
    and workflow_type in ";

/// The busiest types with their upper median durations.
pub(super) async fn types(
    snapshot: &mut Snapshot,
    scope: &Scope<'_>,
) -> Result<Vec<TypeGroup>, DbError> {
    let mut rows = sql::all(snapshot, scope, TYPES).await?;
    let mut types: Vec<TypeGroup> = rows
        .iter_mut()
        .map(TypeGroup::read)
        .collect::<Result<_, _>>()?;
    let mut q = sql::statement(snapshot, scope, MEDIANS);
    q.bind_list(types.iter().filter_map(|group| group.workflow_type.clone()))
        .push(") ranked where place - 1 = ")
        .push(
            snapshot
                .dialect()
                .pick("places / 2", "places / 2", "places div 2"),
        );
    for mut row in snapshot.fetch(q).await? {
        let workflow_type = row.opt_text("workflow_type")?;
        let median = row.opt_int("duration_ms")?;
        for group in &mut types {
            if group.workflow_type == workflow_type {
                group.median_duration_ms = median;
            }
        }
    }
    // Of the same size, in the same order on every database.
    types.sort_by(|a, b| (b.total_runs, &b.workflow_type).cmp(&(a.total_runs, &a.workflow_type)));
    Ok(types)
}

async fn first(
    snapshot: &mut Snapshot,
    scope: &Scope<'_>,
    end: &'static str,
) -> Result<Option<RunSummary>, DbError> {
    let mut q = snapshot.statement();
    q.push("select ")
        .push(RunSummary::COLUMNS)
        .push(" from {workflow_run_summaries} where 1 = 1");
    if let Some(namespace) = scope.namespace {
        q.push(" and namespace = ").bind(namespace);
    }
    q.push(end);
    snapshot
        .fetch_one(q)
        .await?
        .map(|mut row| RunSummary::read(&mut row, &mut Notices::default()))
        .transpose()
}

/// Along `(status_bucket)`: open runs only.
pub(super) async fn longest_wait(
    snapshot: &mut Snapshot,
    scope: &Scope<'_>,
) -> Result<Option<RunSummary>, DbError> {
    let end = " and status_bucket = 'running' and wait_started_at is not null \
               order by wait_started_at, sort_timestamp, created_at, id limit 1";
    first(snapshot, scope, end).await
}

pub(super) async fn longest_duration(
    snapshot: &mut Snapshot,
    scope: &Scope<'_>,
) -> Result<Option<RunSummary>, DbError> {
    let end = " and duration_ms is not null \
               order by duration_ms desc, sort_timestamp desc, created_at desc, id desc limit 1";
    first(snapshot, scope, end).await
}

pub(super) async fn most_exceptions(
    snapshot: &mut Snapshot,
    scope: &Scope<'_>,
) -> Result<Option<RunSummary>, DbError> {
    let end = " and exception_count > 0 \
               order by exception_count desc, sort_timestamp desc, created_at desc, id desc limit 1";
    first(snapshot, scope, end).await
}

const FAILURES: &str = "select failure_category, count(*) as failures, \
    count(case when created_at >= :hour and exists (select 1 from {workflow_runs} r where r.id = workflow_run_id:and_ns_r) then 1 end) as past_hour \
    from {workflow_failures} where created_at >= :week:and_ns_x \
    group by failure_category order by 2 desc, 1";

pub(super) async fn failures(
    snapshot: &mut Snapshot,
    scope: &Scope<'_>,
) -> Result<Vec<FailureGroup>, DbError> {
    let mut rows = sql::all(snapshot, scope, FAILURES).await?;
    rows.iter_mut().map(FailureGroup::read).collect()
}
