//! Tells the timeline of batches of the history, for its section.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use chrono::{DateTime, Utc};
use serde_json::json;

use super::{
    Policy,
    entry::Written as _,
    folder::Batch,
    hide::{Hidden, Hide},
    spool::Spool,
    timeline_entry::timeline_entry,
};
use crate::durable::{
    engine_config::EngineConfig,
    projection::{Context, failures::Failure, sources, timeline},
};

pub(super) struct Teller {
    pub now: DateTime<Utc>,
    pub config: EngineConfig,
    pub policy: Option<Policy>,
    pub failures: Arc<Vec<Failure>>,
    /// Whether the stored timeline says the same, as far as it was compared.
    pub same: Arc<AtomicBool>,
    pub told: Timeline,
}

/// The entries of every batch.
#[derive(Default)]
pub(super) struct Timeline {
    /// By position in the history.
    pub entries: Spool<u32>,
    pub hidden: Vec<(u32, Hidden)>,
    /// Whether the stored timeline says the same.
    pub same: bool,
}

impl Teller {
    /// Keeps the timeline of these events, compares it with the stored one, and notes what is
    /// redacted of it.
    pub fn tell(&mut self, batch: &Batch) -> io::Result<()> {
        let cx = Context {
            snapshot: &batch.rows,
            now: self.now,
            config: &self.config,
        };
        let hide = Hide(self.policy.as_ref());
        let told = &mut self.told;
        let mut same = self.same.load(Ordering::Relaxed);
        same &= batch.stored.len() == batch.positions.len();
        let mut stored = batch.stored.iter();
        let mut compare = |text: &[u8]| {
            same = same
                && stored
                    .next()
                    .is_some_and(|stored| sources::same_timeline_entry(stored, text));
        };
        let entries = timeline::entries(cx, &batch.beside, &self.failures);
        for (at, entry) in batch.positions.iter().zip(entries) {
            let written = timeline_entry(&entry);
            if hide.0.is_none() {
                told.entries.push_with(*at, |out| {
                    let start = out.len();
                    written.write(out);
                    compare(&out[start..]);
                })?;
                continue;
            }
            let mut text = Vec::new();
            written.write(&mut text);
            compare(&text);
            let mut entry = json!(entry);
            let hidden = hide.redact_entry(&mut entry, *at as usize);
            told.hidden
                .extend(hidden.into_iter().map(|hidden| (*at, hidden)));
            told.entries.push(*at, &entry)?;
        }
        self.same.store(same, Ordering::Relaxed);
        Ok(())
    }
}
