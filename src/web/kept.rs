//! Pages of long runs, kept for the next viewer while their rows stay as they are.
//!
//! A page is a statement about one moment; a kept one is shown as of its own moment, which is at
//! most ten seconds ago. Short runs cost little and are always read.

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, Utc};

use crate::{run::page::Page, zone::Zone};

/// How old a page may be.
const AGE: Duration = Duration::from_secs(10);
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
    /// What the rows were, as [`crate::durable::store::state`] tells.
    pub state: String,
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
                .time_to_live(AGE)
                .build(),
        )
    }
}

impl KeptPages {
    pub async fn get(&self, key: &Key) -> Option<Arc<Kept>> {
        self.0.get(key).await
    }

    pub async fn keep(&self, key: Key, kept: Kept) {
        self.0.insert(key, Arc::new(kept)).await;
    }
}

/// Whether a page is worth keeping.
pub fn is_long(page: &Page) -> bool {
    page.history.window.total >= LONG
}
