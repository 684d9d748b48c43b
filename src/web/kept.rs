//! What pages of long runs are made from, kept for the next view while the run does not go on: its
//! head, the rows of its sections around those asked for, and the units its timeline is drawn from,
//! whichever part of it is asked for next. One of each run: what lies further off is read again.
//!
//! A page is a statement about one moment; a kept one is shown as of its own moment, which is not
//! long ago. Short runs cost little and are always read.

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};

use crate::run::{
    page::Page,
    timeline::draw::{ASKED, Range, Story, draw},
    window::Asked,
};

/// How old the page of an open run may be: workers tell of themselves without a step of the run.
const OPEN: TimeDelta = TimeDelta::seconds(10);
/// And of one that is closed, where only the ages of things change.
const CLOSED: Duration = Duration::from_mins(1);
/// How much stays in memory for all viewers together, in bytes.
const BUDGET: u64 = 96 * 1024 * 1024;
/// What a row of a section takes, about, with the payloads that stand in it.
const ROW: usize = 3 * 1024;

#[derive(Debug)]
pub struct Kept {
    /// How far the run was, as [`crate::durable::store::state::progress`] tells.
    pub progress: String,
    pub at: DateTime<Utc>,
    /// As it was first asked for.
    pub page: Arc<Page>,
    pub asked: Asked,
    pub range: Range,
    pub story: Story,
    /// The length of the page as it was sent.
    pub sent: usize,
}

impl Kept {
    /// The page as it is asked for now; none where that takes reading.
    pub fn page(&self, asked: &Asked, range: Range) -> Option<Arc<Page>> {
        let same = |name: &str| asked.get(name) == self.asked.get(name);
        // The same words may be another moment in another zone.
        let as_drawn = range == self.range && ASKED.into_iter().all(same);
        if as_drawn && *asked == self.asked {
            return Some(Arc::clone(&self.page));
        }
        let mut page = self.page.turned(asked)?;
        if !as_drawn {
            page.timeline = draw(&self.story, asked, range);
        }
        Some(Arc::new(page))
    }

    fn weight(&self) -> u32 {
        let rows = self.page.rows_made() * ROW;
        u32::try_from(self.sent + rows + self.story.bytes()).unwrap_or(u32::MAX)
    }
}

#[derive(Clone, Debug)]
pub struct KeptPages(moka::future::Cache<String, Arc<Kept>>);

impl Default for KeptPages {
    fn default() -> Self {
        Self(
            moka::future::Cache::builder()
                .weigher(|_, kept: &Arc<Kept>| kept.weight())
                .max_capacity(BUDGET)
                .time_to_live(CLOSED)
                .build(),
        )
    }
}

impl KeptPages {
    pub async fn get(&self, run_id: &str, now: DateTime<Utc>) -> Option<Arc<Kept>> {
        let kept = self.0.get(run_id).await?;
        let is_closed = kept.page.head.closed.is_some();
        (is_closed || now - kept.at < OPEN).then_some(kept)
    }

    pub async fn keep(&self, run_id: String, kept: Kept) {
        self.0.insert(run_id, Arc::new(kept)).await;
    }
}
