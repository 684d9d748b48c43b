//! Counts over `workflow_run_summaries`: the table lists read, one row per run.

use super::{
    counted,
    lenient::{Lenient, Unread},
    sql::{self, Scope},
    week::{ClosedGroup, HourGroup, TypeGroup, Week, entry, matters},
};
use crate::{
    db::{DbError, Dialect, Row, Snapshot},
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
        open_repair_needed: int,
        open_claim_failed: int,
        open_compatibility_blocked: int,
        oldest_open_repair_needed_at: time,
        oldest_open_compatibility_blocked_at: time,
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
    pub hours: Vec<HourGroup>,
    pub closed: Vec<ClosedGroup>,
    pub types: Vec<TypeGroup>,
    pub longest_duration: Option<RunSummary>,
    pub most_exceptions: Option<RunSummary>,
}

/// Index only, along `(status)`. What is left of all runs is the many that completed.
const STATUSES: &str = "select status, count(*) as runs from {workflow_run_summaries} \
    where status < 'completed':and_ns group by status \
    union all select status, count(*) as runs from {workflow_run_summaries} \
    where status > 'completed':and_ns group by status";

/// Few rows each, every one along an index of its own.
const FEW: &str = "select \
    (select count(*) from {workflow_run_summaries} where is_current_run = false:and_ns) as superseded, \
    (select count(*) from {workflow_run_summaries} where archived_at is not null:and_ns) as archived, \
    (select count(*) from {workflow_run_summaries} where continue_as_new_recommended = true:and_ns) as continue_as_new_recommended_runs, \
    (select count(*) from {workflow_run_summaries} where history_budget_pressure = 'approaching':and_ns) as approaching_budget_runs, \
    (select count(*) from {workflow_run_summaries} where projection_schema_version is null:and_ns) \
      + (select count(*) from {workflow_run_summaries} where projection_schema_version < 2:and_ns) as schema_outdated, \
    (select count(*) from {workflow_run_summaries} where sort_timestamp >= :hour_utc:and_ns) \
      + (select count(*) from {workflow_run_summaries} where sort_timestamp is null and created_at >= :hour:and_ns) as flows_past_hour, \
    (select count(*) from {workflow_run_summaries} where status_bucket = 'failed':and_ns) as failed_bucket, \
    (select min(started_at) from {workflow_run_summaries} where status = 'pending':and_ns) as oldest_pending_started_at, \
    (select max(duration_ms) from (select duration_ms from {workflow_run_summaries} \
      where status_bucket = 'completed':and_ns limit 1000) sampled) as long_duration_ms, \
    (select max(exception_count) from (select exception_count from {workflow_run_summaries} \
      where status_bucket = 'failed':and_ns limit 1000) sampled) as many_exceptions";

/// Along `(status_bucket)`: open runs only.
const OPEN: &str = "select count(*) as running, \
    count(wait_started_at) as waiting, \
    min(wait_started_at) as oldest_wait_started_at, \
    count(case when started_at < :hour and wait_started_at is null then 1 end) as long_running, \
    count(case when updated_at >= :hour and exception_count >= 10 then 1 end) as retry_storm, \
    count(case when wait_started_at < :minutes30 then 1 end) as long_waits \
    from {workflow_run_summaries} where status_bucket = 'running':and_ns";

/// What no index knows, of all runs there ever were. Only runs at least as long as a long one, and
/// with at least as many exceptions as one with many, are put in order for a record.
macro_rules! largest {
    () => {
        "count(*) as total, \
         max(history_event_count) as max_event_count, \
         max(history_size_bytes) as max_size_bytes, \
         max(history_fan_out) as max_fan_out, \
         min(updated_at) as oldest_updated_at, \
         max(updated_at) as newest_updated_at, \
         count(case when :plain(updated_at) >= :week and status = 'failed' then 1 end) as failed_flows_past_week, \
         max(case when duration_ms >= :long then :longest_run end) as longest, \
         max(case when exception_count >= :many then :troubled_run end) as most_exceptions"
    };
}

/// All of that, and the runs of the week, in one pass.
const PASS: &str = concat!(
    "select ",
    largest!(),
    ", :list(",
    entry!(),
    ":list_end filter (where ",
    matters!(),
    ") as entries from {workflow_run_summaries} where 1 = 1:and_ns"
);

/// MySQL cuts a list at the length of a packet, without a word: there the same comes in rows.
const LARGEST: &str = concat!(
    "select ",
    largest!(),
    " from {workflow_run_summaries} where 1 = 1:and_ns"
);
const ENTRIES: &str = concat!(
    "select ",
    entry!(),
    " as entries from {workflow_run_summaries} where (",
    matters!(),
    "):and_ns"
);

pub(super) async fn count(
    snapshot: &mut Snapshot,
    scope: &Scope<'_>,
) -> Result<Summaries, DbError> {
    let mut statuses = sql::all(snapshot, scope, STATUSES, StatusGroup::read).await?;
    // Every part reads its own columns of the one row these make.
    let mut row = Merged::of(scope);
    for template in [FEW, OPEN] {
        let q = sql::statement(snapshot, scope, template);
        row.add(template, snapshot.fetch_one(q).await?);
    }
    let long = row.opt_int("long_duration_ms")?.unwrap_or(0);
    let many = row.opt_int("many_exceptions")?.unwrap_or(0).max(1);
    let values = [("long", long.into()), ("many", many.into())];
    let in_one = snapshot.dialect() != Dialect::MySql;
    let template = if in_one { PASS } else { LARGEST };
    let q = sql::statement_with(snapshot, scope, template, &values);
    row.add(template, snapshot.fetch_one(q).await?);
    let lists = if in_one {
        Vec::from_iter(row.opt_text("entries")?)
    } else {
        sql::all(snapshot, scope, ENTRIES, |row| row.text("entries")).await?
    };
    let week = Week::of(snapshot, lists).await;
    let total = row.int("total")?;
    let other: i64 = statuses.iter().map(|group| group.runs).sum();
    if total > other {
        statuses.push(StatusGroup {
            status: Some("completed".to_owned()),
            runs: total - other,
        });
    }
    statuses.sort_by(|a, b| a.status.cmp(&b.status));
    let of = |status: &str| {
        let groups = statuses.iter();
        groups
            .filter(|group| group.status.as_deref() == Some(status))
            .map(|group| group.runs)
            .sum()
    };
    let longest = id_of(row.opt_text("longest")?);
    let most_exceptions = id_of(row.opt_text("most_exceptions")?);
    let records = by_id(snapshot, [&longest, &most_exceptions]).await?;
    let record = |id: &Option<String>| {
        let id = id.as_ref()?;
        records.iter().find(|run| run.id == *id).cloned()
    };
    Ok(Summaries {
        runs: RunCounts {
            total,
            current: total - row.int("superseded")?,
            running: row.int("running")?,
            completed: of("completed"),
            failed: of("failed"),
            cancelled: of("cancelled"),
            terminated: of("terminated"),
            archived: row.int("archived")?,
            repair_needed: week.rare.repair_needed,
            oldest_repair_needed_at: week.rare.oldest_repair_needed_at,
            claim_failed: week.rare.claim_failed,
            compatibility_blocked: week.rare.compatibility_blocked,
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
            oldest_compatibility_blocked_started_at: week
                .rare
                .oldest_compatibility_blocked_started_at,
            compatibility_blocked_without_time: week.rare.compatibility_blocked_without_time,
        },
        dashboard: DashboardCounts {
            flows_past_hour: row.int("flows_past_hour")?,
            failed_flows_past_week: row.int("failed_flows_past_week")?,
            failed_bucket: row.int("failed_bucket")?,
            long_running: row.int("long_running")?,
            retry_storm: row.int("retry_storm")?,
            long_waits: row.int("long_waits")?,
            open_repair_needed: week.open.repair_needed,
            open_claim_failed: week.open.claim_failed,
            open_compatibility_blocked: week.open.compatibility_blocked,
            oldest_open_repair_needed_at: week.open.oldest_repair_needed_at,
            oldest_open_compatibility_blocked_at: week.open.oldest_compatibility_blocked_started_at,
        },
        statuses,
        longest_duration: record(&longest),
        most_exceptions: record(&most_exceptions),
        hours: week.hours,
        closed: week.closed,
        types: week.types,
    })
}

/// The run that holds a record, which is named last in its key.
fn id_of(record: Option<String>) -> Option<String> {
    Some(record?.splitn(4, '!').nth(3)?.to_owned())
}

/// The runs of these ids, those there are.
async fn by_id(
    snapshot: &mut Snapshot,
    ids: [&Option<String>; 2],
) -> Result<Vec<RunSummary>, DbError> {
    let mut q = snapshot.statement();
    q.push("select ")
        .push(RunSummary::COLUMNS)
        .push(" from {workflow_run_summaries} where id in ")
        .bind_list(ids.into_iter().flatten().cloned());
    snapshot
        .fetch_as(q, |row| RunSummary::read(row, &mut Notices::default()))
        .await
}

/// Several rows of different columns, read as one.
struct Merged<'s> {
    /// Each with the template that asked for it.
    rows: Vec<(&'static str, Row)>,
    unread: &'s Unread,
}

impl<'s> Merged<'s> {
    fn of(scope: &'s Scope<'_>) -> Self {
        Self {
            rows: Vec::new(),
            unread: &scope.unread,
        }
    }

    fn add(&mut self, template: &'static str, row: Option<Row>) {
        self.rows.extend(row.map(|row| (template, row)));
    }

    fn row(&mut self, column: &'static str) -> Option<Lenient<'_>> {
        let (template, row) = self
            .rows
            .iter_mut()
            .find(|(_, row)| row.cells().any(|(name, _)| name == column))?;
        Some(Lenient::new(row, template, self.unread))
    }

    fn opt_int(&mut self, column: &'static str) -> Result<Option<i64>, DbError> {
        self.row(column)
            .map_or(Ok(None), |mut row| row.opt_int(column))
    }

    fn opt_text(&mut self, column: &'static str) -> Result<Option<String>, DbError> {
        self.row(column)
            .map_or(Ok(None), |mut row| row.opt_text(column))
    }

    fn int(&mut self, column: &'static str) -> Result<i64, DbError> {
        Ok(self.opt_int(column)?.unwrap_or(0))
    }

    fn time(&mut self, column: &'static str) -> Result<Option<Stamp>, DbError> {
        self.row(column)
            .map_or(Ok(None), |mut row| row.time(column))
    }
}

/// Along `(status_bucket)`: open runs only.
pub(super) async fn longest_wait(
    snapshot: &mut Snapshot,
    scope: &Scope<'_>,
) -> Result<Option<RunSummary>, DbError> {
    let mut q = snapshot.statement();
    q.push("select ").push(RunSummary::COLUMNS).push(
        " from {workflow_run_summaries} where status_bucket = 'running' and wait_started_at is not null",
    );
    if let Some(namespace) = scope.namespace {
        q.push(" and namespace = ").bind(namespace);
    }
    q.push(" order by wait_started_at, sort_timestamp, created_at, id limit 1");
    snapshot
        .fetch_one(q)
        .await?
        .map(|mut row| RunSummary::read(&mut row, &mut Notices::default()))
        .transpose()
}

const FAILURES: &str = "select failure_category, count(*) as failures, \
    count(case when created_at >= :hour and exists (select 1 from {workflow_runs} r where r.id = workflow_run_id:and_ns_r) then 1 end) as past_hour \
    from {workflow_failures} where created_at >= :week:and_ns_x \
    group by failure_category order by 2 desc, 1";

pub(super) async fn failures(
    snapshot: &mut Snapshot,
    scope: &Scope<'_>,
) -> Result<Vec<FailureGroup>, DbError> {
    sql::all(snapshot, scope, FAILURES, FailureGroup::read).await
}
