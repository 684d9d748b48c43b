//! A moment as the engine's JSON writes it.

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use serde::{Serialize, Serializer};

/// UTC, six fractional digits, `Z`: `2026-11-15T23:33:06.060725Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp(pub DateTime<Utc>);

impl Stamp {
    /// Keeps the earlier of two; none is no moment at all.
    pub fn earliest(kept: &mut Option<Self>, other: Option<Self>) {
        *kept = kept.iter().copied().chain(other).min();
    }

    pub fn latest(kept: &mut Option<Self>, other: Option<Self>) {
        *kept = (*kept).max(other);
    }

    /// Time since then, negative for a moment ahead.
    pub fn age(self, now: DateTime<Utc>) -> TimeDelta {
        now - self.0
    }
}

impl std::fmt::Display for Stamp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.to_rfc3339_opts(SecondsFormat::Micros, true))
    }
}

impl Serialize for Stamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
