//! Rows that belong to nothing, are missing or differ, as far as SQL alone can tell: a walk over
//! all runs beside the one of [`super::sweep`], in far longer steps.

use super::{
    counted,
    lenient::Lenient,
    sql::{self, Scope},
    sweep::{Bounds, end_of_stretch},
};
use crate::{
    db::{DbError, Snapshot},
    durable::{store::snapshot::Which, stored::Stamp},
};

/// A million runs in five hundred passes.
pub const BOUNDS: Bounds = Bounds {
    whole_fleet: 5_000,
    runs: 2_000,
    events: 100_000,
};

counted! {
    /// Rows of one stored projection in a range of runs.
    ProjectionRows {
        rows: int,
        projected_runs: int,
        orphaned: int,
        oldest_updated_at: time,
        newest_updated_at: time,
    }

    TimerVersions {
        schema_version_mismatch_runs: int,
        schema_version_mismatch_rows: int,
    }

    EventRows {
        events: int,
        history_orphan_total: int,
        missing_history_events: int,
    }

    RunRows {
        runs: int,
        missing: int,
        oldest_missing_run_started_at: time,
    }

    SummaryRows {
        summaries: int,
        orphaned: int,
        stale: int,
        summaries_with_open_waits: int,
        missing_current_open_waits: int,
    }
}

/// Everything counted of one stretch of runs.
#[derive(Clone, Debug, Default)]
pub struct RowStretch {
    /// Where the next stretch begins; none after the last run.
    pub until: Option<String>,
    pub runs: RunRows,
    pub waits: ProjectionRows,
    pub timeline: ProjectionRows,
    pub timers: ProjectionRows,
    pub timer_versions: TimerVersions,
    pub lineage: ProjectionRows,
    pub events: EventRows,
    pub summaries: SummaryRows,
}

macro_rules! rows_of {
    ($table:literal, $orphan:expr, $extra:literal) => {
        concat!(
            "select count(*) as \"rows\", count(distinct workflow_run_id) as projected_runs, \
             count(case when ",
            $orphan,
            " then 1 end) as orphaned, \
             min(updated_at) as oldest_updated_at, max(updated_at) as newest_updated_at",
            $extra,
            " from {",
            $table,
            "} p where 1 = 1:and_ns_x and "
        )
    };
}
macro_rules! no_run {
    () => {
        "not exists (select 1 from {workflow_runs} r where r.id = p.workflow_run_id)"
    };
}

const WAITS: &str = rows_of!("workflow_run_waits", no_run!(), "");
// An event and its entry are looked up by the event's id alone. With the run beside it, PostgreSQL
// without statistics goes through the run's whole history for each of its events.
const TIMELINE: &str = rows_of!(
    "workflow_run_timeline_entries",
    concat!(
        "(",
        no_run!(),
        " or coalesce((select e.workflow_run_id from {workflow_history_events} e \
         where e.id = p.history_event_id), '') <> p.workflow_run_id)"
    ),
    ""
);
const TIMERS: &str = rows_of!(
    "workflow_run_timer_entries",
    no_run!(),
    ", count(case when schema_version is null or schema_version <> 1 then 1 end) as schema_version_mismatch_rows, \
     count(distinct case when (schema_version is null or schema_version <> 1) and exists \
       (select 1 from {workflow_runs} r where r.id = p.workflow_run_id) then workflow_run_id end) as schema_version_mismatch_runs"
);
const LINEAGE: &str = rows_of!("workflow_run_lineage_entries", no_run!(), "");
const EVENTS: &str = "select count(*) as events, \
    count(case when r.id is null then 1 end) as history_orphan_total, \
    count(case when (select count(case when t.workflow_run_id = p.workflow_run_id then 1 end) \
      from {workflow_run_timeline_entries} t where t.history_event_id = p.id) = 0 then 1 end) as missing_history_events \
    from {workflow_history_events} p left join {workflow_runs} r on r.id = p.workflow_run_id \
    where 1 = 1:and_ns_x and ";
const SUMMARIES: &str = "select count(*) as summaries, \
    count(case when not exists (select 1 from {workflow_runs} r where r.id = s.id:and_ns_r) then 1 end) as orphaned, \
    count(s.open_wait_id) as summaries_with_open_waits, \
    count(case when s.open_wait_id is not null and not exists (select 1 from {workflow_run_waits} w \
      where w.workflow_run_id = s.id and w.wait_id = s.open_wait_id) then 1 end) as missing_current_open_waits, \
    count(case when r.id is not null and not (\
      s.workflow_instance_id = r.workflow_instance_id and s.run_number = r.run_number \
      and s.workflow_type = r.workflow_type and s.status = r.status and s.class = r.workflow_class \
      and s.closed_reason :same r.closed_reason and s.compatibility :same r.compatibility \
      and s.connection :same r.connection and s.queue :same r.queue \
      and s.started_at :same r.started_at and s.closed_at :same r.closed_at \
      and s.archived_at :same r.archived_at and s.archive_command_id :same r.archive_command_id \
      and s.archive_reason :same r.archive_reason \
      and case when s.is_current_run then coalesce(i.current_run_id = r.id, 1 = 0) \
          else coalesce(i.current_run_id <> r.id, 1 = 1) end) then 1 end) as stale \
    from {workflow_run_summaries} s left join {workflow_runs} r on r.id = s.id \
    left join {workflow_instances} i on i.id = r.workflow_instance_id where 1 = 1:and_ns_s and ";

/// Both sides of one namespace: a summary elsewhere is none.
const RUNS: &str = "select count(*) as runs, count(case when s.id is null then 1 end) as missing, \
    min(case when s.id is null then coalesce(r.started_at, r.created_at) end) as oldest_missing_run_started_at \
    from {workflow_runs} r left join {workflow_run_summaries} s on s.id = r.id:and_ns_s \
    where 1 = 1:and_ns_r and ";

/// Counts the stretch that begins after this run.
pub async fn row_stretch(
    snapshot: &mut Snapshot,
    scope: &Scope<'_>,
    after: Option<&str>,
) -> Result<RowStretch, DbError> {
    let until = end_of_stretch(snapshot, after, BOUNDS).await?;
    let which = Which::Range {
        after,
        until: until.as_deref(),
    };
    let mut reader = Reader {
        snapshot,
        scope,
        which,
    };
    let (timers, timer_versions) = reader
        .of_run(TIMERS, |row| {
            Ok((ProjectionRows::read(row)?, TimerVersions::read(row)?))
        })
        .await?;
    Ok(RowStretch {
        runs: reader.one(RUNS, "r.id", RunRows::read).await?,
        waits: reader.of_run(WAITS, ProjectionRows::read).await?,
        timeline: reader.of_run(TIMELINE, ProjectionRows::read).await?,
        timers,
        timer_versions,
        lineage: reader.of_run(LINEAGE, ProjectionRows::read).await?,
        events: reader.of_run(EVENTS, EventRows::read).await?,
        summaries: reader.one(SUMMARIES, "s.id", SummaryRows::read).await?,
        until,
    })
}

struct Reader<'s> {
    snapshot: &'s mut Snapshot,
    scope: &'s Scope<'s>,
    which: Which<'s>,
}

impl Reader<'_> {
    /// The one row of a template that ends where the stretch is named.
    async fn one<T: Default>(
        &mut self,
        template: &'static str,
        run_id: &'static str,
        read: impl Fn(&mut Lenient<'_>) -> Result<T, DbError>,
    ) -> Result<T, DbError> {
        let mut q = sql::statement(self.snapshot, self.scope, template);
        self.which.push(&mut q, run_id);
        let row = self.snapshot.fetch_one(q).await?;
        row.map_or_else(
            || Ok(T::default()),
            |mut row| read(&mut Lenient::new(&mut row, template, &self.scope.unread)),
        )
    }

    async fn of_run<T: Default>(
        &mut self,
        template: &'static str,
        read: impl Fn(&mut Lenient<'_>) -> Result<T, DbError>,
    ) -> Result<T, DbError> {
        self.one(template, "workflow_run_id", read).await
    }
}

impl ProjectionRows {
    pub fn add(&mut self, other: &Self) {
        self.rows += other.rows;
        self.projected_runs += other.projected_runs;
        self.orphaned += other.orphaned;
        Stamp::earliest(&mut self.oldest_updated_at, other.oldest_updated_at);
        Stamp::latest(&mut self.newest_updated_at, other.newest_updated_at);
    }
}
