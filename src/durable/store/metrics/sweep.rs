//! The walk over all runs, a bounded number at a time.
//!
//! Whether the engine's stored projections still say what history says cannot be known without
//! reading both: for a million runs that is gigabytes. A pass reads the next runs in the order of
//! their ids and adds them up; after the last one the sums are whole and the walk starts again. A
//! small fleet is walked whole in every pass. What SQL alone can count goes by [`super::rows`],
//! in far longer steps.

use super::sql::Scope;
use crate::{
    db::{DbError, Snapshot},
    durable::store::snapshot::{RunSnapshot, TimelineCache, Which},
};

/// How far one step of a walk may reach.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// A fleet of at most this many runs is read in one pass;
    pub whole_fleet: u32,
    /// of a larger one this many,
    pub runs: u32,
    /// and no more of them once they have this many events.
    pub events: i64,
}

impl Bounds {
    /// Passes a walk over so many runs with so many events takes, at most: each ends with its share
    /// of runs or of events.
    pub fn passes_per_lap(self, runs: i64, events: i64) -> i64 {
        let runs = if runs <= i64::from(self.whole_fleet) {
            0
        } else {
            runs / i64::from(self.runs)
        };
        runs + events / self.events + 1
    }
}

/// Of the walk that reads every run's history.
pub const BOUNDS: Bounds = Bounds {
    whole_fleet: 1_000,
    runs: 250,
    events: 50_000,
};

/// Everything read of one stretch of runs.
#[derive(Debug)]
pub struct Stretch {
    pub runs: Vec<RunSnapshot>,
    /// Where the next stretch begins; none after the last run.
    pub until: Option<String>,
}

/// Reads the stretch that begins after this run.
pub async fn stretch(
    snapshot: &mut Snapshot,
    scope: &Scope<'_>,
    after: Option<&str>,
) -> Result<Stretch, DbError> {
    let until = end_of_stretch(snapshot, after, BOUNDS).await?;
    let which = Which::Range {
        after,
        until: until.as_deref(),
    };
    let mut runs = RunSnapshot::load_all(snapshot, which, TimelineCache::Whole).await?;
    if let Some(namespace) = scope.namespace {
        runs.retain(|run| run.run.namespace.as_deref() == Some(namespace));
    }
    Ok(Stretch { runs, until })
}

/// The last run of the stretch; none when nothing lies beyond it.
pub(super) async fn end_of_stretch(
    snapshot: &mut Snapshot,
    after: Option<&str>,
    bounds: Bounds,
) -> Result<Option<String>, DbError> {
    let mut q = snapshot.statement();
    q.push("select id, last_history_sequence from {workflow_runs} where ");
    Which::Range { after, until: None }.push(&mut q, "id");
    let most = match after {
        None => bounds.whole_fleet,
        Some(_) => bounds.runs,
    };
    q.push(" order by id limit ").bind(most + 1);
    let rows = snapshot.fetch(q).await?;
    let whole = rows.len() <= most as usize;
    let most = if whole { most } else { bounds.runs };
    let mut events = 0_i64;
    let mut last = None;
    for (n, mut row) in rows.into_iter().enumerate() {
        if n >= most as usize || (n > 0 && events >= bounds.events) {
            return Ok(last);
        }
        last = Some(row.text("id")?);
        // It only bounds the step; what it is not the walk itself names.
        let of_run = row.opt_int("last_history_sequence").unwrap_or(None);
        events = events.saturating_add(of_run.unwrap_or(0));
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lap_takes_as_many_passes_as_runs_and_events_ask_for() {
        for (runs, events, passes) in [
            (0, 0, 1),
            (1_000, 5_000, 1),
            (1_001, 5_000, 5),
            (1_000_000, 5_000_000, 4_101),
            (900, 120_000, 3),
        ] {
            assert_eq!(BOUNDS.passes_per_lap(runs, events), passes, "{runs} runs");
        }
    }
}
