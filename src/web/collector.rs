//! The fleet's numbers, gathered once for everybody who asks.
//!
//! One task per process makes the passes, one after the other: every few seconds, less often
//! when a pass is slow, and at once when somebody asks for fresh numbers. Answers come from the
//! last good pass; while passes fail they go on with their age, and say since when.

use std::{
    fmt,
    panic::AssertUnwindSafe,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use chrono::{DateTime, Utc};
use futures_util::FutureExt as _;
use tokio::sync::{Notify, watch};

use crate::{
    clock::Clock,
    db::{Db, DbError},
    durable::{
        collect::{Cause, Failed, Gathered, Walk, gather},
        engine_config::EngineConfig,
        metrics::{
            ground::Lacks,
            health::{Health, Stalled},
        },
        stored::Stamp,
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
    /// How long a pass may take before it is given up.
    pub limit: Duration,
    /// What the database lacked at the start of what they are counted in.
    pub lacks: Lacks,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(5),
            namespace: None,
            limit: Duration::from_mins(2),
            lacks: Lacks::default(),
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
    pub gathered: Arc<Gathered>,
    /// What may be said now of what it found.
    pub health: Health,
    pub rendered: Rendered,
}

#[derive(Clone, Debug)]
pub struct Failing {
    pub since: DateTime<Utc>,
    /// How the last pass failed.
    pub failed: Failed,
}

impl Failing {
    /// What to say of it to those who look at the numbers.
    pub fn words(&self) -> (&'static str, String) {
        let (what, more) = match &self.failed.cause {
            Cause::Database(error) => match &**error {
                DbError::Timeout { seconds } => (
                    "Counting takes too long",
                    format!("A statement was stopped after {seconds} s"),
                ),
                DbError::Busy(_) => ("The database is busy", "A statement was turned away".into()),
                DbError::PoolExhausted(_) => (
                    "All database connections are in use",
                    "None was free in time".into(),
                ),
                DbError::Denied(_) => (
                    "The database refuses",
                    "This account may not read a table; Plimsoll's log says which".into(),
                ),
                error if error.is_unavailable() => (
                    "The database does not answer",
                    "The connection is lost or cannot be made".into(),
                ),
                _ => (
                    "The database answers with an error",
                    "Plimsoll's log has its words".into(),
                ),
            },
            Cause::NoEnd(limit) => (
                "The database does not answer",
                format!("Nothing came for {} s", limit.as_secs()),
            ),
            Cause::Panic => (
                "The numbers could not be gathered",
                "This is a fault in Plimsoll; its log says where".into(),
            ),
        };
        match self.failed.section {
            Some(section) => (what, format!("{more}, while counting {section}.")),
            None => (what, format!("{more}.")),
        }
    }

    pub fn stalled(&self) -> Stalled {
        let (what, more) = self.words();
        Stalled {
            since: Stamp(self.since),
            because: format!("{what}. {more}"),
        }
    }
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

impl Latest {
    fn told(inner: &Inner, gathered: Arc<Gathered>, failing: Option<&Failing>) -> Self {
        let Options {
            namespace, lacks, ..
        } = &inner.options;
        let stalled = failing.map(Failing::stalled);
        let health = gathered
            .health
            .standing(lacks, stalled.as_ref(), &gathered.counted.unread);
        Self {
            at: gathered.counted.now,
            rendered: Rendered::of(
                &gathered,
                &health,
                namespace.as_deref(),
                &inner.engine,
                lacks,
            ),
            health,
            gathered,
        }
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

    pub fn lacks(&self) -> &Lacks {
        &self.0.options.lacks
    }

    /// How long from one pass to the next, at the speed of this one.
    pub fn pace(&self, latest: &Latest) -> Duration {
        let took = latest.gathered.took;
        took + rest(self.0.options.interval, took, None)
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
            (None, Some(failing)) => Err(match &failing.failed.cause {
                Cause::Database(error) => AppError::from(error),
                Cause::NoEnd(_) => AppError::Timeout,
                Cause::Panic => AppError::internal("gathering the numbers", failing.failed.clone()),
            }),
            (None, None) => Err(AppError::Timeout),
        }
    }
}

async fn run(collector: Weak<Inner>) {
    let mut walk = Walk::default();
    while let Some(inner) = collector.upgrade() {
        let Rest { least, usual } = pass(&inner, &mut walk).await;
        drop(inner);
        let mut rested = Duration::ZERO;
        // Looked at once a second, so that the task ends soon after the last user.
        while rested < usual {
            let Some(inner) = collector.upgrade() else {
                return;
            };
            let until = if rested < least { least } else { usual };
            let step = until.saturating_sub(rested).min(Duration::from_secs(1));
            tokio::select! {
                () = inner.asked.notified(), if rested >= least => break,
                () = tokio::time::sleep(step) => rested += step,
            }
        }
    }
}

/// How long the database is left alone after a pass.
struct Rest {
    /// Whoever asks: for as long as the pass took, so that nobody keeps it at work all the time.
    least: Duration,
    usual: Duration,
}

/// One pass; says how long to rest after it.
async fn pass(inner: &Inner, walk: &mut Walk) -> Rest {
    inner.standing.send_modify(|standing| standing.begun += 1);
    let now = inner.clock.now();
    let began = std::time::Instant::now();
    // A fault in one pass must not end all others.
    let made = AssertUnwindSafe(latest(inner, now, walk)).catch_unwind();
    let made = made.await.unwrap_or(Err(Failed {
        section: None,
        cause: Cause::Panic,
    }));
    let took = began.elapsed();
    let usual = rest(inner.options.interval, took, made.as_ref().err());
    let rest = Rest {
        least: took.min(usual),
        usual,
    };
    match made {
        Ok(latest) => {
            tracing::debug!(
                ms = took.as_secs_f64() * 1e3,
                statements = latest.gathered.statements,
                "gathered the numbers"
            );
            let before = inner.standing.borrow().failing.clone();
            if let Some(failing) = before {
                tracing::info!(since = %failing.since, "the numbers can be gathered again");
            }
            inner.standing.send_modify(|standing| {
                standing.ended += 1;
                standing.latest = Some(Arc::new(latest));
                standing.failing = None;
            });
        }
        Err(failed) => {
            let before = inner.standing.borrow().clone();
            // Once, then when it fails otherwise: a database may be away for a day.
            let told = before
                .failing
                .as_ref()
                .map(|failing| failing.failed.to_string());
            if told.as_deref() == Some(failed.to_string().as_str()) {
                tracing::debug!(error = %failed, section = failed.section, "the numbers could not be gathered");
            } else {
                tracing::warn!(error = %failed, section = failed.section, "the numbers could not be gathered");
            }
            let failing = Failing {
                since: before.failing.map_or(now, |failing| failing.since),
                failed,
            };
            let latest = before
                .latest
                .and_then(|latest| retold(inner, &latest, &failing));
            inner.standing.send_modify(|standing| {
                standing.ended += 1;
                standing.failed += 1;
                if latest.is_some() {
                    standing.latest = latest;
                }
                standing.failing = Some(failing);
            });
        }
    }
    rest
}

async fn latest(inner: &Inner, now: DateTime<Utc>, walk: &mut Walk) -> Result<Latest, Failed> {
    let Options {
        namespace, limit, ..
    } = &inner.options;
    let namespace = namespace.as_deref();
    let gathered = gather(&inner.db, now, &inner.engine, namespace, walk, *limit).await?;
    Ok(Latest::told(inner, Arc::new(gathered), None))
}

/// The same numbers, said to be the last. What breaks here may be what broke the pass.
fn retold(inner: &Inner, latest: &Latest, failing: &Failing) -> Option<Arc<Latest>> {
    let gathered = Arc::clone(&latest.gathered);
    let told = AssertUnwindSafe(|| Latest::told(inner, gathered, Some(failing)));
    std::panic::catch_unwind(told).ok().map(Arc::new)
}

/// Many times as long as the pass took; but waiting for a database that is away is no load on it,
/// and it may be back soon.
fn rest(interval: Duration, took: Duration, failed: Option<&Failed>) -> Duration {
    if failed.is_some_and(|failed| !failed.cause.was_work()) {
        interval
    } else {
        interval.max(took * PAUSE_PER_PASS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_that_is_away_is_asked_again_soon() {
        let seconds = Duration::from_secs;
        let database = |error| Cause::Database(Arc::new(error));
        for (cause, took, want) in [
            (None, 0, 5),
            (None, 2, 18),
            (Some(database(DbError::Lost("gone".into()))), 30, 5),
            (Some(database(DbError::PoolExhausted(8))), 30, 5),
            (Some(Cause::NoEnd(seconds(120))), 120, 5),
            (Some(database(DbError::Timeout { seconds: 10 })), 20, 180),
            (Some(Cause::Panic), 1, 9),
        ] {
            let failed = cause.map(|cause| Failed {
                section: None,
                cause,
            });
            let rest = rest(seconds(5), seconds(took), failed.as_ref());
            assert_eq!(rest, seconds(want), "{failed:?} after {took} s");
        }
    }

    #[test]
    fn what_went_wrong_is_said_in_words_and_not_in_the_databases() {
        let said = |error| {
            let failing = Failing {
                since: DateTime::UNIX_EPOCH,
                failed: Failed {
                    section: Some("tasks"),
                    cause: Cause::Database(Arc::new(error)),
                },
            };
            let (what, more) = failing.words();
            format!("{what}. {more}")
        };
        assert_eq!(
            said(DbError::Timeout { seconds: 10 }),
            "Counting takes too long. A statement was stopped after 10 s, while counting tasks."
        );
        assert!(said(DbError::Lost("secret".into())).starts_with("The database does not answer. "));
        let other = said(DbError::Query("no such table: secret".into()));
        assert!(
            other.starts_with("The database answers with an error. ") && !other.contains("secret")
        );
    }
}
