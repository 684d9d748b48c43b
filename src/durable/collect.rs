//! One pass over the fleet: counts, then the next stretch of the walk, in one read snapshot.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use thiserror::Error;

use super::{
    engine_config::EngineConfig,
    metrics::{
        OperatorMetrics,
        dashboard::Dashboard,
        drift::{Drift, Rows},
        health::{Health, LookedAt},
        queues,
    },
    store::metrics::{
        self, Counted, Registrations, Scope, Sections,
        rows::{self, RowStretch},
        sweep::{self, Bounds, Stretch},
    },
    stored::Stamp,
};
use crate::db::{self, Db, DbError};

/// Everything one pass found.
#[derive(Clone, Debug)]
pub struct Gathered {
    pub counted: Counted,
    pub metrics: OperatorMetrics,
    pub dashboard: Dashboard,
    pub health: Health,
    /// Of the namespace asked for; none without one.
    pub queues: Option<Value>,
    /// Who registered to poll them; none where the engine's server and its table are not there.
    pub registered: Option<Registrations>,
    /// What the numbers counted row by row speak for: `history.events`, its orphans, the
    /// summaries, and the rows of every projection.
    pub rows: Coverage,
    /// What those speak for that need a run's history: the rest of `projections`, and
    /// `command_contracts`.
    pub histories: Coverage,
    pub took: Duration,
    /// The same, by part.
    pub sections: Vec<(&'static str, Duration)>,
    pub statements: u32,
}

/// Why there are no numbers, and what was being counted then.
#[derive(Clone, Debug, Error)]
#[error("{cause}")]
pub struct Failed {
    pub section: Option<&'static str>,
    pub cause: Cause,
}

#[derive(Clone, Debug, Error)]
pub enum Cause {
    #[error("{0}")]
    Database(Arc<DbError>),
    /// The connection stands, but nothing comes.
    #[error("the pass was given up after {} s", .0.as_secs())]
    NoEnd(Duration),
    #[error("the pass broke off; this is a fault in Plimsoll")]
    Panic,
}

impl Cause {
    /// Whether the database was at work for as long as the pass took, rather than away.
    pub fn was_work(&self) -> bool {
        match self {
            Self::Database(error) => !error.is_unavailable(),
            Self::NoEnd(_) => false,
            Self::Panic => true,
        }
    }
}

/// How much of the fleet some of the numbers speak for.
#[derive(Clone, Debug, PartialEq)]
pub struct Coverage {
    /// Whether they are of every run.
    pub complete: bool,
    /// Runs they are of.
    pub runs: i64,
    /// Passes that took.
    pub passes: i64,
    /// When the first and the last of those runs was read.
    pub from: Stamp,
    pub until: Stamp,
}

impl Coverage {
    /// How the numbers that rest on a walk came to be, and how old they can be.
    pub fn document(&self, now: DateTime<Utc>, bounds: Bounds, lap: LapTime) -> Value {
        json!({
            "how": "Each pass reads the next runs in the order of their ids and adds them up. \
                    The numbers are those of the last lap that reached the end; during the first, \
                    of the runs read so far.",
            "complete": self.complete,
            "runs": self.runs,
            "passes": self.passes,
            "read_from": self.from,
            "read_until": self.until,
            "oldest_age_ms": self.from.age(now).num_milliseconds().max(0),
            "whole_fleet_up_to": bounds.whole_fleet,
            "runs_per_pass": bounds.runs,
            "events_per_pass": bounds.events,
            "passes_per_lap": lap.passes,
            "lap_seconds": lap.takes.as_secs(),
        })
    }

    fn looked_at(&self) -> Option<i64> {
        (!self.complete).then_some(self.runs)
    }
}

/// How long a walk over all runs takes at the fleet's present size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LapTime {
    /// At most.
    pub passes: i64,
    pub takes: Duration,
}

impl Gathered {
    /// Of a walk within these bounds, with this long from one pass to the next.
    pub fn lap_time(&self, bounds: Bounds, pace: Duration) -> LapTime {
        let counts = &self.counted.run_table;
        // A walk goes through all runs, whichever it counts. Their events are known of those
        // counted; the others have as many each.
        let runs = counts.runs_of_all_namespaces.unwrap_or(counts.runs);
        let counted = self.metrics.history.events;
        let events = counted.saturating_mul(runs) / self.rows.runs.max(1);
        let passes = bounds.passes_per_lap(runs, events);
        LapTime {
            passes,
            takes: pace.saturating_mul(u32::try_from(passes).unwrap_or(u32::MAX)),
        }
    }
}

/// The walks over all runs, kept between passes.
#[derive(Clone, Debug, Default)]
pub struct Walk {
    rows: Lap<Rows>,
    histories: Lap<Drift>,
}

/// One walk: where it is, what it has so far, and the last one that reached the end.
#[derive(Clone, Debug, Default)]
struct Lap<S> {
    after: Option<String>,
    began: Option<Stamp>,
    passes: i64,
    so_far: S,
    whole: Option<(S, Coverage)>,
}

impl<S: Clone + Default> Lap<S> {
    /// Goes on to where the stretch just added ended; at the end of the walk the sums are whole.
    fn reach(&mut self, until: Option<String>, runs: fn(&S) -> i64, now: DateTime<Utc>) {
        let from = *self.began.get_or_insert(Stamp(now));
        self.passes += 1;
        self.after = until;
        if self.after.is_none() {
            let sums = std::mem::take(&mut self.so_far);
            let coverage = Coverage {
                complete: true,
                runs: runs(&sums),
                passes: std::mem::take(&mut self.passes),
                from,
                until: Stamp(now),
            };
            self.whole = Some((sums, coverage));
            self.began = None;
        }
    }

    /// The last whole walk, or what the first one has so far.
    fn known(&self, runs: fn(&S) -> i64, now: DateTime<Utc>) -> (&S, Coverage) {
        match &self.whole {
            Some((sums, coverage)) => (sums, coverage.clone()),
            None => (
                &self.so_far,
                Coverage {
                    complete: false,
                    runs: runs(&self.so_far),
                    passes: self.passes,
                    from: self.began.unwrap_or(Stamp(now)),
                    until: Stamp(now),
                },
            ),
        }
    }
}

impl Walk {
    fn add(
        &mut self,
        counted: RowStretch,
        read: Stretch,
        now: DateTime<Utc>,
        config: &EngineConfig,
        namespace: Option<&str>,
    ) {
        self.rows.so_far.add(&counted, namespace);
        self.rows.reach(counted.until, |rows| rows.runs, now);
        self.histories.so_far.add(&read, now, config);
        self.histories.reach(read.until, |drift| drift.runs, now);
    }
}

/// One pass, given up after `limit`. A walk that breaks off begins anew.
pub async fn gather(
    db: &Db,
    now: DateTime<Utc>,
    config: &EngineConfig,
    namespace: Option<&str>,
    walk: &mut Walk,
    limit: Duration,
) -> Result<Gathered, Failed> {
    let started = Instant::now();
    let mut sections = Sections::default();
    // Forty statements, one after the other, make a large future. The databases stop a statement
    // that runs too long; a connection on which nothing comes is stopped by nobody but us.
    let read = Box::pin(read(db, now, config, namespace, walk, &mut sections));
    let (read, statements) = db::counted(tokio::time::timeout(limit, read)).await;
    let read = read.map_err(|_| Cause::NoEnd(limit));
    let read = read.and_then(|read| read.map_err(|error| Cause::Database(Arc::new(error))));
    let (counted, rows, stretch, queues) = read.map_err(|cause| Failed {
        section: sections.current(),
        cause,
    })?;
    // Up to fifty thousand events are looked at: too long for a thread others wait for.
    let mut walked = std::mem::take(walk);
    let (config, namespace) = (config.clone(), namespace.map(str::to_owned));
    let made = tokio::task::spawn_blocking(move || {
        let namespace = namespace.as_deref();
        walked.add(rows, stretch, now, &config, namespace);
        let (rows, of_rows) = walked.rows.known(|rows| rows.runs, now);
        let (drift, of_histories) = walked.histories.known(|drift| drift.runs, now);
        let metrics = OperatorMetrics::of(&counted, rows, drift, &config);
        let looked_at = LookedAt {
            rows: of_rows.looked_at(),
            histories: of_histories.looked_at(),
        };
        let gathered = Gathered {
            dashboard: Dashboard::of(&counted),
            health: Health::of(&metrics, &config, looked_at),
            metrics,
            counted,
            queues: queues
                .as_ref()
                .zip(namespace)
                .map(|(queues, namespace)| queues::document(namespace, queues, now, &config)),
            registered: queues.and_then(|queues| queues.registered),
            rows: of_rows,
            histories: of_histories,
            took: started.elapsed(),
            sections: sections.finish(),
            statements,
        };
        (gathered, walked)
    });
    let (gathered, walked) = made.await.map_err(|_| Failed {
        section: Some("projections"),
        cause: Cause::Panic,
    })?;
    *walk = walked;
    Ok(gathered)
}

async fn read(
    db: &Db,
    now: DateTime<Utc>,
    config: &EngineConfig,
    namespace: Option<&str>,
    walk: &Walk,
    sections: &mut Sections,
) -> Result<(Counted, RowStretch, Stretch, Option<metrics::Queues>), DbError> {
    let mut snapshot = db.snapshot().await?;
    let scope = Scope::new(now, config, namespace);
    let mut counted = metrics::count(&mut snapshot, now, config, namespace, sections).await?;
    sections.enter("projections");
    let after = walk.rows.after.as_deref();
    let rows = rows::row_stretch(&mut snapshot, &scope, after).await?;
    let after = walk.histories.after.as_deref();
    let stretch = sweep::stretch(&mut snapshot, &scope, after).await?;
    let queues = match scope.namespace {
        Some(_) => {
            sections.enter("queues");
            Some(metrics::queues(&mut snapshot, &scope).await?)
        }
        None => None,
    };
    snapshot.end().await;
    counted.unread.extend(scope.unread.columns());
    Ok((counted, rows, stretch, queues))
}
