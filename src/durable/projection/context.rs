//! What every concept is projected from, and the few conventions all of them share.

use chrono::{DateTime, SecondsFormat, Utc};
use serde::Serializer;

use crate::durable::{engine_config::EngineConfig, store::snapshot::RunSnapshot};

/// Rows, a clock and the engine's settings: all a projection may look at.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    pub snapshot: &'a RunSnapshot,
    pub now: DateTime<Utc>,
    pub config: &'a EngineConfig,
}

/// `ts`: UTC, six fractional digits, `Z`. For `#[serde(serialize_with = "ts")]`.
pub fn ts<S: Serializer>(at: &Option<DateTime<Utc>>, serializer: S) -> Result<S::Ok, S::Error> {
    match at {
        Some(at) => serializer.serialize_str(&stamp(*at)),
        None => serializer.serialize_none(),
    }
}

/// A moment as the engine's detail writes it: `2026-11-15T23:33:06.060725Z`.
pub fn stamp(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Micros, true)
}

/// A moment as the engine's list item writes it: `2026-11-15T23:33:06+00:00`.
pub fn iso(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%dT%H:%M:%S+00:00").to_string()
}

/// Milliseconds since the epoch, as the engine sorts and draws by them: rounded by PHP, which
/// before 8.4 rounds to fifteen digits first, so that .495 already goes up.
pub fn millis(at: DateTime<Utc>) -> i64 {
    let hundredths = at.timestamp_micros().saturating_add(5).div_euclid(10);
    hundredths.saturating_add(50).div_euclid(100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_go_up_a_little_early() {
        for (micros, want) in [
            (0, 1_794_787_091_387),
            (494, 1_794_787_091_387),
            (495, 1_794_787_091_388),
            (999, 1_794_787_091_388),
        ] {
            let at = DateTime::from_timestamp_micros(1_794_787_091_387_000 + micros);
            assert_eq!(at.map(millis), Some(want), "{micros}");
        }
    }
}
