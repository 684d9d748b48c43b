//! What pages of long runs are made from, kept for the next view while the run does not go on: its
//! sections as they were asked for, and the units its timeline is drawn from, whichever part of it
//! is asked for next.
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
/// A run with fewer events is short.
const LONG: usize = 1_000;
/// How much stays in memory for all viewers together, in bytes.
const BUDGET: u64 = 96 * 1024 * 1024;

/// Which run, and what of its sections.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    pub run_id: String,
    /// The query of the page without what is about the timeline alone.
    sections: String,
}

impl Key {
    pub fn new(run_id: String, asked: &Asked) -> Self {
        Self {
            run_id,
            sections: asked.changed(&ASKED.map(|name| (name, None))),
        }
    }
}

#[derive(Debug)]
pub struct Kept {
    /// How far the run was, as [`crate::durable::store::state::progress`] tells.
    pub progress: String,
    pub at: DateTime<Utc>,
    /// With its timeline as it was first asked for.
    pub page: Arc<Page>,
    pub asked: Asked,
    pub range: Range,
    pub story: Story,
    /// The length of the page as it was sent.
    pub sent: usize,
}

impl Kept {
    /// The page with its timeline as it is asked for now.
    pub fn page(&self, asked: &Asked, range: Range) -> Arc<Page> {
        let same = |name: &str| asked.get(name) == self.asked.get(name);
        // The same words may be another moment in another zone.
        if range == self.range && ASKED.into_iter().all(same) {
            return Arc::clone(&self.page);
        }
        Arc::new(Page {
            timeline: draw(&self.story, asked, range),
            ..Page::clone(&self.page)
        })
    }

    fn weight(&self) -> u32 {
        u32::try_from(self.sent + self.story.bytes()).unwrap_or(u32::MAX)
    }
}

#[derive(Clone, Debug)]
pub struct KeptPages(moka::future::Cache<Key, Arc<Kept>>);

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
    pub async fn get(&self, key: &Key, now: DateTime<Utc>) -> Option<Arc<Kept>> {
        let kept = self.0.get(key).await?;
        let is_closed = kept.page.head.closed.is_some();
        (is_closed || now - kept.at < OPEN).then_some(kept)
    }

    pub async fn keep(&self, key: Key, kept: Kept) {
        self.0.insert(key, Arc::new(kept)).await;
    }
}

/// Whether a page is worth keeping.
pub fn is_long(page: &Page) -> bool {
    page.history.window.total >= LONG
}
