//! What every concept is projected from, and the few conventions all of them share.

use chrono::{DateTime, Datelike as _, SecondsFormat, Timelike as _, Utc};
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
    match plain_stamp(at) {
        Some(text) => str::from_utf8(&text).unwrap_or_default().to_owned(),
        None => at.to_rfc3339_opts(SecondsFormat::Micros, true),
    }
}

/// The same, appended.
pub fn write_stamp(out: &mut Vec<u8>, at: DateTime<Utc>) {
    match plain_stamp(at) {
        Some(text) => out.extend_from_slice(&text),
        None => out.extend_from_slice(stamp(at).as_bytes()),
    }
}

/// The same of a year of four digits and a second that is no leap second: a long run has hundreds
/// of thousands of them, and chrono takes its time.
fn plain_stamp(at: DateTime<Utc>) -> Option<[u8; 27]> {
    let year = u32::try_from(at.year())
        .ok()
        .filter(|year| *year < 10_000)?;
    let micros = Some(at.nanosecond() / 1_000).filter(|micros| *micros < 1_000_000)?;
    let mut text = *b"0000-00-00T00:00:00.000000Z";
    for (mut number, from, digits) in [
        (year, 0, 4),
        (at.month(), 5, 2),
        (at.day(), 8, 2),
        (at.hour(), 11, 2),
        (at.minute(), 14, 2),
        (at.second(), 17, 2),
        (micros, 20, 6),
    ] {
        for digit in text[from..from + digits].iter_mut().rev() {
            *digit = b'0' + u8::try_from(number % 10).unwrap_or(0);
            number /= 10;
        }
    }
    Some(text)
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
    fn a_moment_is_written_as_chrono_writes_it() {
        for (seconds, nanos) in [
            (0, 0),
            (1_794_787_091, 387_654_321),
            (-1, 999_999_999),
            (253_402_300_799, 1_000),
            (253_402_300_800, 0),
            (-62_167_219_200, 0),
            (-62_167_219_201, 5),
            (1_483_228_799, 1_500_000_000),
            (951_782_400, 60_000),
        ] {
            let at = DateTime::from_timestamp(seconds, nanos).unwrap();
            let chrono = at.to_rfc3339_opts(SecondsFormat::Micros, true);
            assert_eq!(stamp(at), chrono);
        }
    }

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
