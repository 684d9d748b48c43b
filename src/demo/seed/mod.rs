//! The load generator: as many complete, consistent runs as asked for, the same ones for the
//! same seed and clock.
//!
//! [`Generator`] is pure: a plan in, rows out. [`load`] writes them. A story is told once, in
//! `story`; history, mutable rows and projections come from that telling, so that they cannot
//! disagree.

mod activity;
mod draft;
mod endings;
mod ids;
mod load;
mod mix;
mod project;
mod story;
mod timer;
mod waits;

pub use load::{Loaded, SeedError, load, refuse_foreign_runs, refuse_repetition};

use chrono::{DateTime, TimeDelta, Utc};

use self::{
    draft::Identity,
    ids::Ids,
    mix::{Open, Outcome},
    story::Told,
};
use super::rows::InsertRow;

/// Marks a run as ours; the column takes any word and nothing is decided by it.
pub const MARK: &str = "plimsoll-seed";

/// How far back runs start.
const WINDOW: TimeDelta = TimeDelta::days(30);

/// The last start, so that even the newest run has had time to close.
const MARGIN: TimeDelta = TimeDelta::seconds(60);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Projections {
    All,
    /// Only the list table; the others can be rebuilt from history and cost most of the load.
    Summaries,
}

/// What the runs are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A busy installation: many kinds, many endings, most of them done.
    Busy,
    /// One activity after the other, every second one tried twice, each event with the whole
    /// snapshot the engine puts into it. Every other run still waits for a retry.
    Long {
        /// How long an event's payload is, on average.
        payload_bytes: usize,
    },
}

#[derive(Clone, Debug)]
pub struct Plan {
    pub runs: u64,
    pub events_per_run: u32,
    pub shape: Shape,
    pub seed: u64,
    pub clock: DateTime<Utc>,
    pub projections: Projections,
}

/// Yields the rows of one run at a time, or of two that belong together.
#[derive(Debug)]
pub struct Generator {
    plan: Plan,
    rng: fastrand::Rng,
    ids: Ids,
    made: u64,
    last_start: DateTime<Utc>,
}

impl Generator {
    pub fn new(plan: Plan) -> Self {
        let mut rng = fastrand::Rng::with_seed(plan.seed);
        Self {
            ids: Ids::new(rng.fork()),
            rng,
            made: 0,
            last_start: plan.clock - WINDOW,
            plan,
        }
    }

    /// How many runs have been yielded so far.
    pub fn runs(&self) -> u64 {
        self.made
    }

    /// Evenly spread, never before the one before; one in five hundred at the same microsecond.
    fn next_start(&mut self) -> DateTime<Utc> {
        let window = match self.plan.shape {
            Shape::Busy => WINDOW - MARGIN,
            // A long run takes days.
            Shape::Long { .. } => WINDOW / 4,
        };
        let window = window.num_microseconds().unwrap_or(i64::MAX);
        let slot = (window / i64::try_from(self.plan.runs).unwrap_or(i64::MAX)).max(1);
        let tie = self.rng.u32(..500) == 0;
        let within = self.rng.i64(0..slot);
        if !tie {
            let offset = i64::try_from(self.made)
                .unwrap_or(i64::MAX)
                .saturating_mul(slot)
                + within;
            let start = self.plan.clock - WINDOW + TimeDelta::microseconds(offset.min(window));
            self.last_start = self.last_start.max(start);
        }
        self.last_start
    }

    fn outcome(&mut self) -> Outcome {
        match self.plan.shape {
            Shape::Busy => mix::outcome(&mut self.rng),
            Shape::Long { .. } if self.made.is_multiple_of(2) => {
                Outcome::Open(Open::ActivityBackoff)
            }
            Shape::Long { .. } => Outcome::Completed,
        }
    }

    fn identity(&mut self, started: DateTime<Utc>) -> Identity {
        let kind = mix::kind(&mut self.rng);
        let run = self.ids.at(started);
        let namespace = mix::namespace(&mut self.rng);
        let business_key =
            (self.rng.u32(..10) < 3).then(|| format!("CUST-{:05}", self.rng.u32(..100_000)));
        // Some callers name their instances, some leave it to the engine.
        let instance = if self.rng.u32(..10) < 8 {
            format!("{}-{}{}", kind.slug, &run[4..10], &run[20..])
        } else {
            self.ids.at(started)
        };
        Identity {
            run,
            instance,
            number: 1,
            kind,
            namespace,
            business_key,
            started,
        }
    }
}

impl Iterator for Generator {
    type Item = Vec<InsertRow>;

    fn next(&mut self) -> Option<Self::Item> {
        let left = self.plan.runs - self.made;
        if left == 0 {
            return None;
        }
        let started = self.next_start();
        let who = self.identity(started);
        let outcome = match self.outcome() {
            Outcome::CompletedWithChild | Outcome::Continued | Outcome::Open(Open::Child)
                if left < 2 =>
            {
                Outcome::Completed
            }
            outcome => outcome,
        };
        let Told { rows, runs } =
            story::tell(&mut self.ids, &mut self.rng, &self.plan, who, outcome);
        self.made += runs;
        Some(rows)
    }
}

#[cfg(test)]
mod tests;
