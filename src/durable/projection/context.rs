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
#[expect(clippy::ref_option, reason = "serde hands a field over by reference")]
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
