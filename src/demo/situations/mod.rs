//! Every state an operator may meet, as a small shop floor: orders, invoices, subscriptions,
//! imports, reports, mailbox pollers.
//!
//! A situation is one run to look at, with the rows around it. That run, and only that one,
//! carries its own explanation: the memo entry `plimsoll.story` holds the story, the visibility
//! label `plimsoll_situation` (on instance, run and summary) its name. Names are stable: tests,
//! screenshots and links use them.
//!
//! Times are relative to `now`. Leases and dispatches age like real ones, so a catalogue that was
//! loaded long ago slowly turns into a shop floor without workers; worker heartbeats alone are
//! written with a day of grace, so that the fleet still looks alive.

mod failed;
mod fleet;
mod limits;
mod lineage;
mod lost;
mod replay;
mod shapes;
mod transport;
mod visibility;
mod waiting;

use chrono::{DateTime, Utc};

use super::builder::RunBuilder;
use super::rows::InsertRow;

/// One named state and the rows that make it.
#[derive(Clone, Debug)]
pub struct Situation {
    /// Stable, kebab-case.
    pub name: &'static str,
    /// One line an operator understands.
    pub story: &'static str,
    /// The run to look at.
    pub run_id: String,
    pub instance_id: String,
    pub rows: Vec<InsertRow>,
}

impl Situation {
    /// The situation of `run` as a reader finds it at `now`.
    fn of(name: &'static str, story: &'static str, run: RunBuilder, now: DateTime<Utc>) -> Self {
        Self::told_by(name, story, run, |run| run.build(now))
    }

    /// The same, where the rows are not simply what the builder makes.
    fn told_by(
        name: &'static str,
        story: &'static str,
        mut run: RunBuilder,
        build: impl FnOnce(RunBuilder) -> Vec<InsertRow>,
    ) -> Self {
        run.tells(name, story);
        Self {
            name,
            story,
            run_id: run.run_id().to_owned(),
            instance_id: run.instance_id().to_owned(),
            rows: build(run),
        }
    }

    /// Another run of the same story.
    fn and(mut self, other: RunBuilder, now: DateTime<Utc>) -> Self {
        self.rows.extend(other.build(now));
        self
    }

    fn and_rows(mut self, rows: Vec<InsertRow>) -> Self {
        self.rows.extend(rows);
        self
    }
}

/// All situations, the same for the same `now`: each theme is made when it is come to, so that
/// whoever looks for one situation need not make the long ones at the end.
pub fn catalogue(now: DateTime<Utc>) -> impl Iterator<Item = Situation> {
    let themes: [fn(DateTime<Utc>) -> Vec<Situation>; 10] = [
        fleet::situations,
        failed::situations,
        limits::situations,
        waiting::situations,
        lost::situations,
        transport::situations,
        replay::situations,
        lineage::situations,
        visibility::situations,
        shapes::situations,
    ];
    themes.into_iter().flat_map(move |theme| theme(now))
}
