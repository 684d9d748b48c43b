//! The walk over all runs, a bounded number at a time.
//!
//! Whether the engine's stored projections still say what history says, and whether rows lost
//! their run, cannot be counted without reading both: for a million runs that is gigabytes. A
//! pass reads the next runs in the order of their ids and adds them up; after the last one the
//! sums are whole and the walk starts again. A small fleet is walked whole in every pass.

use super::{
    counted,
    sql::{self, Scope},
};
use crate::{
    db::{DbError, Row, Snapshot},
    durable::{
        store::snapshot::{RunSnapshot, TimelineCache, Which},
        stored::Stamp,
    },
};

/// A fleet of at most this many runs is read in one pass;
pub const WHOLE_FLEET: u32 = 1_000;
/// of a larger one this many,
pub const RUNS_PER_PASS: u32 = 250;
/// and no more of them once they have this many events.
pub const EVENTS_PER_PASS: i64 = 50_000;

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

    SummaryRows {
        summaries: int,
        orphaned: int,
        stale: int,
        summaries_with_open_waits: int,
        missing_current_open_waits: int,
    }
}

/// Everything read of one stretch of runs.
#[derive(Debug)]
pub struct Stretch {
    pub runs: Vec<RunSnapshot>,
    /// Where the next stretch begins; none after the last run.
    pub until: Option<String>,
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
const TIMELINE: &str = rows_of!(
    "workflow_run_timeline_entries",
    concat!(
        "(",
        no_run!(),
        " or not exists (select 1 from {workflow_history_events} e \
         where e.workflow_run_id = p.workflow_run_id and e.id = p.history_event_id))"
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
const EVENTS: &str = concat!(
    "select count(*) as events, \
     count(case when ",
    no_run!(),
    " then 1 end) as history_orphan_total, \
     count(case when not exists (select 1 from {workflow_run_timeline_entries} t \
       where t.workflow_run_id = p.workflow_run_id and t.history_event_id = p.id) then 1 end) as missing_history_events \
     from {workflow_history_events} p where 1 = 1:and_ns_x and "
);
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
    left join {workflow_instances} i on i.id = r.workflow_instance_id where 1 = 1";

/// Reads the stretch that begins after this run.
pub async fn stretch(
    snapshot: &mut Snapshot,
    scope: &Scope<'_>,
    after: Option<&str>,
) -> Result<Stretch, DbError> {
    let until = end_of_stretch(snapshot, after).await?;
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
    let mut runs = RunSnapshot::load_all(reader.snapshot, which, TimelineCache::Whole).await?;
    if let Some(namespace) = scope.namespace {
        runs.retain(|run| run.run.namespace.as_deref() == Some(namespace));
    }
    Ok(Stretch {
        waits: reader.of_run(WAITS, ProjectionRows::read).await?,
        timeline: reader.of_run(TIMELINE, ProjectionRows::read).await?,
        timers,
        timer_versions,
        lineage: reader.of_run(LINEAGE, ProjectionRows::read).await?,
        events: reader.of_run(EVENTS, EventRows::read).await?,
        summaries: reader.summaries().await?,
        runs,
        until,
    })
}

/// The last run of the stretch; none when nothing lies beyond it.
async fn end_of_stretch(
    snapshot: &mut Snapshot,
    after: Option<&str>,
) -> Result<Option<String>, DbError> {
    let mut q = snapshot.statement();
    q.push("select id, last_history_sequence from {workflow_runs} where ");
    Which::Range { after, until: None }.push(&mut q, "id");
    q.push(" order by id limit ").bind(WHOLE_FLEET + 1);
    let rows = snapshot.fetch(q).await?;
    let most = match after {
        None if rows.len() <= WHOLE_FLEET as usize => WHOLE_FLEET,
        _ => RUNS_PER_PASS,
    };
    let mut events = 0_i64;
    let mut last = None;
    for (n, mut row) in rows.into_iter().enumerate() {
        if n >= most as usize || (n > 0 && events >= EVENTS_PER_PASS) {
            return Ok(last);
        }
        last = Some(row.text("id")?);
        events = events.saturating_add(row.opt_int("last_history_sequence")?.unwrap_or(0));
    }
    Ok(None)
}

struct Reader<'s> {
    snapshot: &'s mut Snapshot,
    scope: &'s Scope<'s>,
    which: Which<'s>,
}

impl Reader<'_> {
    /// The one row of a template that ends where the stretch is named.
    async fn of_run<T: Default>(
        &mut self,
        template: &'static str,
        read: impl Fn(&mut Row) -> Result<T, DbError>,
    ) -> Result<T, DbError> {
        let mut q = sql::statement(self.snapshot, self.scope, template);
        self.which.push(&mut q, "workflow_run_id");
        let row = self.snapshot.fetch_one(q).await?;
        row.map_or_else(|| Ok(T::default()), |mut row| read(&mut row))
    }

    async fn summaries(&mut self) -> Result<SummaryRows, DbError> {
        let mut q = sql::statement(self.snapshot, self.scope, SUMMARIES);
        if let Some(namespace) = self.scope.namespace {
            q.push(" and s.namespace = ").bind(namespace);
        }
        q.push(" and ");
        self.which.push(&mut q, "s.id");
        let row = self.snapshot.fetch_one(q).await?;
        row.map_or_else(
            || Ok(SummaryRows::default()),
            |mut row| SummaryRows::read(&mut row),
        )
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
