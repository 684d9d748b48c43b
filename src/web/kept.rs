//! Pages of long runs, kept for the next viewer while the run does not go on.
//!
//! A page is a statement about one moment; a kept one is shown as of its own moment, which is not
//! long ago. Short runs cost little and are always read.

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};

use crate::{run::page::Page, zone::Zone};

/// How old the page of an open run may be: workers tell of themselves without a step of the run.
const OPEN: TimeDelta = TimeDelta::seconds(10);
/// And of one that is closed, where only the ages of things change.
const CLOSED: Duration = Duration::from_mins(1);
/// A run with fewer events is short.
const LONG: usize = 1_000;
/// How much stays in memory for all viewers together, in bytes of the pages as they are sent.
const BUDGET: u64 = 32 * 1024 * 1024;

/// Which page.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    pub run_id: String,
    pub query: Option<String>,
    /// The zone in which the query's times are meant.
    pub zone: Zone,
}

#[derive(Debug)]
pub struct Kept {
    /// How far the run was, as [`crate::durable::store::state::progress`] tells.
    pub progress: String,
    pub at: DateTime<Utc>,
    pub page: Arc<Page>,
    /// Its length as it was sent.
    pub bytes: usize,
}

#[derive(Clone, Debug)]
pub struct KeptPages(moka::future::Cache<Key, Arc<Kept>>);

impl Default for KeptPages {
    fn default() -> Self {
        Self(
            moka::future::Cache::builder()
                .weigher(|_, kept: &Arc<Kept>| u32::try_from(kept.bytes).unwrap_or(u32::MAX))
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
