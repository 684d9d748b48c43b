//! The projections the engine would have stored, derived from the finished story.
//!
//! Sentences are the demo's own; every other column follows the engine's rules.

mod entries;
mod liveness;
mod summary;
mod timeline;
mod transport;
mod waits;

use super::RunBuilder;
use super::model::Time;
use crate::demo::rows::InsertRow;

impl RunBuilder {
    pub(super) fn projection_rows(&self, now: Time) -> Vec<InsertRow> {
        let mut rows = vec![self.summary_row(now)];
        // The engine takes a shortcut for a run that has only just started: the summary alone.
        if !self.is_fresh(now) {
            rows.extend(self.wait_rows());
            rows.extend(self.timeline_rows());
            rows.extend(self.timer_entry_rows());
            rows.extend(self.lineage_rows());
        }
        rows
    }
}

fn index(position: usize) -> u32 {
    u32::try_from(position).expect("a projection fits in u32")
}
