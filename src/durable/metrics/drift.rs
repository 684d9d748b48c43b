//! Whether what the engine stored about runs still says what their history says: sums over two
//! walks that look at a bounded number of runs per pass.

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::age_ms;
use crate::durable::{
    engine_config::EngineConfig,
    projection::{Context, Projected, contract, lineage, sources, timeline},
    store::{
        metrics::{
            Counted,
            rows::{ProjectionRows, RowStretch},
            sweep::Stretch,
        },
        snapshot::RunSnapshot,
    },
    stored::Stamp,
};

/// What the walk over rows has added up so far.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    /// Runs looked at.
    pub runs: i64,
    pub events: i64,
    pub history_orphans: i64,
    pub missing_history_events: i64,
    pub summaries_missing: i64,
    pub summaries_orphaned: i64,
    pub summaries_stale: i64,
    pub oldest_missing_run_started_at: Option<Stamp>,
    pub summaries_with_open_waits: i64,
    pub missing_current_open_waits: i64,
    pub timer_schema_version_mismatch_runs: i64,
    pub timer_schema_version_mismatch_rows: i64,
    pub waits: ProjectionRows,
    pub timeline: ProjectionRows,
    pub timers: ProjectionRows,
    pub lineage: ProjectionRows,
}

/// What the walk over histories has added up so far.
#[derive(Clone, Debug, Default)]
pub struct Drift {
    /// Runs read.
    pub runs: i64,
    pub contracts: CommandContracts,
    pub waits: Section,
    pub timeline: Section,
    pub timers: Section,
    pub lineage: Section,
}

/// One of the four stored projections.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// Runs that should have rows.
    pub with: i64,
    /// Of those, the ones that have.
    pub projected_with: i64,
    /// Runs whose rows differ from what history says.
    pub stale: i64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CommandContracts {
    pub backfill_needed_runs: i64,
    /// Needs the workflow's PHP class: none can be known from here.
    pub backfill_available_runs: i64,
    pub backfill_unavailable_runs: i64,
    pub actionable_backfill_needed_runs: i64,
    pub actionable_backfill_available_runs: i64,
    pub actionable_backfill_unavailable_runs: i64,
    pub closed_backfill_needed_runs: i64,
}

impl Rows {
    /// Adds the next stretch of runs.
    pub fn add(&mut self, stretch: &RowStretch, namespace: Option<&str>) {
        self.runs += stretch.runs.runs;
        self.events += stretch.events.events;
        self.missing_history_events += stretch.events.missing_history_events;
        self.summaries_missing += stretch.runs.missing;
        Stamp::earliest(
            &mut self.oldest_missing_run_started_at,
            stretch.runs.oldest_missing_run_started_at,
        );
        self.summaries_orphaned += stretch.summaries.orphaned;
        self.summaries_stale += stretch.summaries.stale;
        self.summaries_with_open_waits += stretch.summaries.summaries_with_open_waits;
        self.missing_current_open_waits += stretch.summaries.missing_current_open_waits;
        self.timer_schema_version_mismatch_runs +=
            stretch.timer_versions.schema_version_mismatch_runs;
        self.timer_schema_version_mismatch_rows +=
            stretch.timer_versions.schema_version_mismatch_rows;
        for (mine, theirs) in [
            (&mut self.waits, &stretch.waits),
            (&mut self.timeline, &stretch.timeline),
            (&mut self.timers, &stretch.timers),
            (&mut self.lineage, &stretch.lineage),
        ] {
            mine.add(theirs);
            // Rows without a run belong to no namespace.
            if namespace.is_some() {
                mine.orphaned = 0;
            }
        }
        if namespace.is_none() {
            self.history_orphans += stretch.events.history_orphan_total;
        }
    }
}

impl Drift {
    /// Adds the next stretch of runs.
    pub fn add(&mut self, stretch: &Stretch, now: DateTime<Utc>, config: &EngineConfig) {
        for run in &stretch.runs {
            self.add_run(run, now, config);
        }
    }

    fn add_run(&mut self, run: &RunSnapshot, now: DateTime<Utc>, config: &EngineConfig) {
        self.runs += 1;
        let projected = Projected::of(Context {
            snapshot: run,
            now,
            config,
        });
        self.contracts.add(
            contract::contract(projected.cx).declared_contract_backfill_needed,
            run.run.status.is_terminal(),
        );

        let waits = &projected.waits;
        self.waits.add_run(
            !waits.is_empty(),
            !run.wait_entries.is_empty(),
            sources::waits(run, waits) != sources::WAITS,
        );
        let entries = timeline::timeline(projected.cx, &projected.failures, None);
        self.timeline.add_run(
            !entries.is_empty(),
            !run.timeline_entries.is_empty(),
            sources::timeline(run, &entries, None) != sources::TIMELINE,
        );
        let timers = &projected.timers;
        self.timers.add_run(
            !timers.is_empty(),
            !run.timer_entries.is_empty(),
            sources::timers(run, timers).0 != sources::TIMERS,
        );
        let lineage = lineage::lineage(projected.cx, &projected.related, &projected.children);
        self.lineage.add_run(
            !lineage.parents.is_empty() || !lineage.continued.is_empty(),
            !run.lineage_entries.is_empty(),
            sources::lineage(run, &lineage) != sources::LINEAGE,
        );
    }
}

impl Section {
    fn add_run(&mut self, should: bool, has: bool, differs: bool) {
        self.with += i64::from(should);
        self.projected_with += i64::from(should && has);
        self.stale += i64::from(has && differs);
    }

    fn missing(&self) -> i64 {
        self.with - self.projected_with
    }

    fn needs_rebuild(&self, rows: &ProjectionRows) -> i64 {
        self.missing() + self.stale + rows.orphaned
    }
}

impl CommandContracts {
    fn add(&mut self, needed: bool, closed: bool) {
        let needed = i64::from(needed);
        self.backfill_needed_runs += needed;
        self.backfill_unavailable_runs += needed;
        if closed {
            self.closed_backfill_needed_runs += needed;
        } else {
            self.actionable_backfill_needed_runs += needed;
            self.actionable_backfill_unavailable_runs += needed;
        }
    }
}

/// `projections`: how far the engine's stored views are from its history.
#[derive(Clone, Debug, Serialize)]
pub struct Projections {
    pub run_summaries: RunSummaries,
    pub run_waits: RunWaits,
    pub run_timeline_entries: RunTimeline,
    pub run_timer_entries: RunTimers,
    pub run_lineage_entries: RunLineage,
}

#[derive(Clone, Debug, Serialize)]
pub struct RunSummaries {
    pub runs: i64,
    pub summaries: i64,
    pub missing: i64,
    pub orphaned: i64,
    pub stale: i64,
    pub schema_outdated: i64,
    pub needs_rebuild: i64,
    pub oldest_updated_at: Option<Stamp>,
    pub newest_updated_at: Option<Stamp>,
    pub oldest_missing_run_started_at: Option<Stamp>,
    pub max_missing_run_age_ms: i64,
}

#[derive(Clone, Debug, Serialize)]
pub struct RunWaits {
    pub runs: i64,
    #[serde(flatten)]
    pub rows: ProjectionRows,
    pub runs_with_waits: i64,
    pub projected_runs_with_waits: i64,
    pub missing_runs_with_waits: i64,
    pub summaries_with_open_waits: i64,
    pub projected_current_open_waits: i64,
    pub missing_current_open_waits: i64,
    pub stale_projected_runs: i64,
    pub needs_rebuild: i64,
}

#[derive(Clone, Debug, Serialize)]
pub struct RunTimeline {
    pub runs: i64,
    pub history_events: i64,
    #[serde(flatten)]
    pub rows: ProjectionRows,
    pub runs_with_history: i64,
    pub projected_runs_with_history: i64,
    pub missing_runs_with_history: i64,
    pub missing_history_events: i64,
    pub stale_projected_runs: i64,
    pub needs_rebuild: i64,
}

#[derive(Clone, Debug, Serialize)]
pub struct RunTimers {
    pub runs: i64,
    #[serde(flatten)]
    pub rows: ProjectionRows,
    pub runs_with_timers: i64,
    pub projected_runs_with_timers: i64,
    pub missing_runs_with_timers: i64,
    pub stale_projected_runs: i64,
    pub schema_version_mismatch_runs: i64,
    pub schema_version_mismatch_rows: i64,
    pub needs_rebuild: i64,
}

#[derive(Clone, Debug, Serialize)]
pub struct RunLineage {
    pub runs: i64,
    #[serde(flatten)]
    pub rows: ProjectionRows,
    pub runs_with_lineage: i64,
    pub projected_runs_with_lineage: i64,
    pub missing_runs_with_lineage: i64,
    pub stale_projected_runs: i64,
    pub needs_rebuild: i64,
}

impl Projections {
    pub fn of(counted: &Counted, rows: &Rows, drift: &Drift) -> Self {
        let runs = counted.run_table.runs;
        let summaries = &counted.summaries;
        Self {
            run_summaries: RunSummaries {
                runs,
                summaries: counted.runs.total,
                missing: rows.summaries_missing,
                orphaned: rows.summaries_orphaned,
                stale: rows.summaries_stale,
                schema_outdated: summaries.schema_outdated,
                needs_rebuild: rows.summaries_missing
                    + rows.summaries_orphaned
                    + rows.summaries_stale
                    + summaries.schema_outdated,
                oldest_updated_at: summaries.oldest_updated_at,
                newest_updated_at: summaries.newest_updated_at,
                oldest_missing_run_started_at: rows.oldest_missing_run_started_at,
                max_missing_run_age_ms: age_ms(counted.now, rows.oldest_missing_run_started_at),
            },
            run_waits: RunWaits {
                runs,
                rows: rows.waits.clone(),
                runs_with_waits: drift.waits.with,
                projected_runs_with_waits: drift.waits.projected_with,
                missing_runs_with_waits: drift.waits.missing(),
                summaries_with_open_waits: rows.summaries_with_open_waits,
                projected_current_open_waits: (rows.summaries_with_open_waits
                    - rows.missing_current_open_waits)
                    .max(0),
                missing_current_open_waits: rows.missing_current_open_waits,
                stale_projected_runs: drift.waits.stale,
                needs_rebuild: drift.waits.needs_rebuild(&rows.waits),
            },
            run_timeline_entries: RunTimeline {
                runs,
                history_events: rows.events,
                rows: rows.timeline.clone(),
                runs_with_history: drift.timeline.with,
                projected_runs_with_history: drift.timeline.projected_with,
                missing_runs_with_history: drift.timeline.missing(),
                missing_history_events: rows.missing_history_events,
                stale_projected_runs: drift.timeline.stale,
                needs_rebuild: drift.timeline.needs_rebuild(&rows.timeline),
            },
            run_timer_entries: RunTimers {
                runs,
                rows: rows.timers.clone(),
                runs_with_timers: drift.timers.with,
                projected_runs_with_timers: drift.timers.projected_with,
                missing_runs_with_timers: drift.timers.missing(),
                stale_projected_runs: drift.timers.stale,
                schema_version_mismatch_runs: rows.timer_schema_version_mismatch_runs,
                schema_version_mismatch_rows: rows.timer_schema_version_mismatch_rows,
                needs_rebuild: drift.timers.needs_rebuild(&rows.timers),
            },
            run_lineage_entries: RunLineage {
                runs,
                rows: rows.lineage.clone(),
                runs_with_lineage: drift.lineage.with,
                projected_runs_with_lineage: drift.lineage.projected_with,
                missing_runs_with_lineage: drift.lineage.missing(),
                stale_projected_runs: drift.lineage.stale,
                needs_rebuild: drift.lineage.needs_rebuild(&rows.lineage),
            },
        }
    }

    /// `needs_rebuild` of each table.
    pub fn needs_rebuild(&self) -> [(&'static str, i64); 5] {
        [
            ("workflow_run_summaries", self.run_summaries.needs_rebuild),
            ("workflow_run_waits", self.run_waits.needs_rebuild),
            (
                "workflow_run_timeline_entries",
                self.run_timeline_entries.needs_rebuild,
            ),
            (
                "workflow_run_timer_entries",
                self.run_timer_entries.needs_rebuild,
            ),
            (
                "workflow_run_lineage_entries",
                self.run_lineage_entries.needs_rebuild,
            ),
        ]
    }
}
