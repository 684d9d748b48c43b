//! Histories that were read already. Events are only added, so a history of as many events up to
//! the same sequence is the same history; but for the first event, into which the engine may
//! write a contract that was missing, so that none is kept for long.

use std::{ops::Deref, sync::Arc, time::Duration};

use crate::durable::stored::{HistoryEvent, Notices};

/// How much stays in memory for all viewers together, in bytes.
const BUDGET: u64 = 256 * 1024 * 1024;
/// For how long an event that was written anew may be shown as it was.
const LIFETIME: Duration = Duration::from_secs(20);
/// What a row weighs beside its texts.
const ROW: usize = 256;

/// The events of one run, by sequence, with what their rows held that could not be taken; cheap
/// to hand on.
#[derive(Clone, Debug, Default)]
pub struct History {
    events: Arc<Vec<HistoryEvent>>,
    notices: Arc<Notices>,
    /// How long it is as stored, where something of it is hidden.
    size: Option<usize>,
}

impl History {
    pub fn new(events: Vec<HistoryEvent>, notices: Notices) -> Self {
        Self {
            events: Arc::new(events),
            notices: Arc::new(notices),
            size: None,
        }
    }

    /// The same history with something hidden: it still weighs what it weighs as stored.
    pub fn hidden(events: Vec<HistoryEvent>, notices: Notices, size: usize) -> Self {
        Self {
            size: Some(size),
            ..Self::new(events, notices)
        }
    }

    pub fn stored_size(&self) -> Option<usize> {
        self.size
    }

    pub fn notices(&self) -> &Notices {
        &self.notices
    }
}

impl Deref for History {
    type Target = [HistoryEvent];

    fn deref(&self) -> &[HistoryEvent] {
        &self.events
    }
}

impl<'h> IntoIterator for &'h History {
    type Item = &'h HistoryEvent;
    type IntoIter = std::slice::Iter<'h, HistoryEvent>;

    fn into_iter(self) -> Self::IntoIter {
        self.events.iter()
    }
}

/// Which history, as the table itself counts it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Version {
    pub run_id: String,
    pub events: i64,
    /// None when the rows do not hold one that can be read: such a history is not kept.
    pub last_sequence: Option<i64>,
}

/// Histories by version, within a budget of bytes.
#[derive(Clone, Debug)]
pub struct HistoryCache(moka::future::Cache<Version, History>);

impl Default for HistoryCache {
    fn default() -> Self {
        Self(
            moka::future::Cache::builder()
                .weigher(|_, history: &History| weight(history))
                .max_capacity(BUDGET)
                .time_to_live(LIFETIME)
                .build(),
        )
    }
}

impl HistoryCache {
    pub async fn get(&self, version: &Version) -> Option<History> {
        version.last_sequence?;
        self.0.get(version).await
    }

    pub async fn keep(&self, version: Version, history: History) {
        if version.last_sequence.is_some() {
            self.0.insert(version, history).await;
        }
    }
}

fn weight(history: &History) -> u32 {
    let bytes: usize = history
        .iter()
        .map(|event| ROW + event.payload.as_ref().map_or(0, String::len))
        .sum();
    u32::try_from(bytes).unwrap_or(u32::MAX)
}
