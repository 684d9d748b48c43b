//! The fleet's numbers, gathered once for everybody who asks.
//!
//! One task per process makes the passes, one after the other: every few seconds, less often
//! when a pass is slow, and at once when somebody asks for fresh numbers. Answers come from the
//! last good pass; while passes fail they go on with their age, and say since when.

use std::{
    fmt,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use chrono::{DateTime, Utc};
use tokio::sync::{Notify, watch};

use crate::{
    clock::Clock,
    db::{Db, DbError},
    durable::{
        collect::{Failed, Gathered, Walk, gather},
        engine_config::EngineConfig,
    },
    web::{api::metrics::Rendered, error::AppError},
};

/// A pass may use at most this part of the time: the pause is as many times longer.
const PAUSE_PER_PASS: u32 = 9;

/// How the numbers are gathered.
#[derive(Clone, Debug)]
pub struct Options {
    /// The shortest time between two passes.
    pub interval: Duration,
    /// The one namespace to look at; all of them without it.
    pub namespace: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(5),
            namespace: None,
        }
    }
}

/// What the passes have brought so far.
#[derive(Clone, Default)]
pub struct Standing {
    pub latest: Option<Arc<Latest>>,
    /// Set while passes fail.
    pub failing: Option<Failing>,
    /// Passes that began.
    begun: u64,
    /// Passes that ended, well or not.
    ended: u64,
    pub failed: u64,
}

/// The last good pass, and what is answered from it.
#[derive(Debug)]
pub struct Latest {
    pub at: DateTime<Utc>,
    pub gathered: Gathered,
    pub rendered: Rendered,
}

#[derive(Clone, Debug)]
pub struct Failing {
    pub since: DateTime<Utc>,
    /// What was being counted when the last pass failed; none before the first statement.
    pub section: Option<&'static str>,
    pub error: Arc<DbError>,
}

impl Standing {
    pub fn passes(&self) -> u64 {
        self.ended
    }
}

impl fmt::Debug for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Standing")
            .field("at", &self.latest.as_ref().map(|latest| latest.at))
            .field("failing", &self.failing)
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}

/// Cheap to clone; the task ends with the last copy.
#[derive(Clone, Debug)]
pub struct Collector(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    db: Db,
    clock: Clock,
    engine: EngineConfig,
    options: Options,
    standing: watch::Sender<Standing>,
    asked: Notify,
    started: AtomicBool,
}

impl Collector {
    /// Nothing is gathered before somebody asks, or [`Collector::start`].
    pub fn new(db: Db, clock: Clock, engine: EngineConfig, options: Options) -> Self {
        Self(Arc::new(Inner {
            db,
            clock,
            engine,
            options,
            standing: watch::Sender::new(Standing::default()),
            asked: Notify::new(),
            started: AtomicBool::new(false),
        }))
    }

    /// Begins to gather; a second call changes nothing.
    pub fn start(&self) {
        if !self.0.started.swap(true, Ordering::Relaxed) {
            tokio::spawn(run(Arc::downgrade(&self.0)));
        }
    }

    pub fn namespace(&self) -> Option<&str> {
        self.0.options.namespace.as_deref()
    }

    pub fn engine(&self) -> &EngineConfig {
        &self.0.engine
    }

    /// How things stand now, without waiting.
    pub fn standing(&self) -> Standing {
        self.0.standing.borrow().clone()
    }

    /// The last good numbers; the first caller waits for the first pass, and whoever wants them
    /// fresh for one that begins after the asking.
    pub async fn latest(&self, fresh: bool) -> Result<(Arc<Latest>, Standing), AppError> {
        self.start();
        let mut changes = self.0.standing.subscribe();
        let wanted = {
            let now = changes.borrow();
            if fresh { now.begun + 1 } else { 1 }
        };
        if fresh {
            self.0.asked.notify_one();
        }
        let standing = changes
            .wait_for(|standing| standing.ended >= wanted)
            .await
            .map_err(|error| AppError::internal("gathering the numbers", error))?
            .clone();
        match (&standing.latest, &standing.failing) {
            (Some(latest), _) => Ok((Arc::clone(latest), standing.clone())),
            (None, Some(failing)) => Err(AppError::from(&failing.error)),
            (None, None) => Err(AppError::Timeout),
        }
    }
}

async fn run(collector: Weak<Inner>) {
    let mut walk = Walk::default();
    while let Some(inner) = collector.upgrade() {
        let pause = pass(&inner, &mut walk).await;
        drop(inner);
        // Looked at once a second, so that the task ends soon after the last user.
        let mut left = pause;
        while !left.is_zero() {
            let Some(inner) = collector.upgrade() else {
                return;
            };
            let step = left.min(Duration::from_secs(1));
            tokio::select! {
                () = inner.asked.notified() => break,
                () = tokio::time::sleep(step) => left -= step,
            }
        }
    }
}

/// One pass; says how long to rest after it.
async fn pass(inner: &Inner, walk: &mut Walk) -> Duration {
    inner.standing.send_modify(|standing| standing.begun += 1);
    let now = inner.clock.now();
    let began = std::time::Instant::now();
    let namespace = inner.options.namespace.as_deref();
    let gathered = gather(&inner.db, now, &inner.engine, namespace, walk).await;
    let took = began.elapsed();
    match gathered {
        Ok(gathered) => {
            tracing::debug!(
                ms = took.as_secs_f64() * 1e3,
                statements = gathered.statements,
                "gathered the numbers"
            );
            let latest = Arc::new(Latest {
                at: now,
                rendered: Rendered::of(&gathered, namespace),
                gathered,
            });
            inner.standing.send_modify(|standing| {
                standing.ended += 1;
                standing.latest = Some(latest);
                standing.failing = None;
            });
        }
        Err(Failed { section, error }) => {
            tracing::warn!(%error, section, "the numbers could not be gathered");
            let error = Arc::new(error);
            inner.standing.send_modify(|standing| {
                standing.ended += 1;
                standing.failed += 1;
                let since = standing.failing.take().map_or(now, |failing| failing.since);
                standing.failing = Some(Failing {
                    since,
                    section,
                    error,
                });
            });
        }
    }
    inner.options.interval.max(took * PAUSE_PER_PASS)
}
