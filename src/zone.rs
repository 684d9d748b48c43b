//! Time zones by their IANA names, from a database inside the binary.

use std::{
    fmt,
    str::FromStr,
    sync::{Mutex, PoisonError},
};

use chrono::{DateTime, Datelike, FixedOffset, NaiveDateTime, Offset as _, Timelike, Utc};
use jiff::{Timestamp, tz};
use thiserror::Error;

/// A named zone. UTC is none of the database's: most reading is of UTC and looks nothing up.
#[derive(Clone, Copy)]
pub struct Zone(Option<&'static tz::TimeZone>);

#[derive(Debug, Error)]
#[error("no zone has this name")]
pub struct NoSuchZone;

impl Zone {
    pub const UTC: Self = Self(None);

    pub fn name(self) -> &'static str {
        self.0.and_then(tz::TimeZone::iana_name).unwrap_or("UTC")
    }

    /// What a clock on the wall shows at this moment.
    ///
    /// ```
    /// use chrono::{DateTime, Utc};
    /// use plimsoll::zone::Zone;
    ///
    /// let berlin: Zone = "Europe/Berlin".parse().unwrap();
    /// let at: DateTime<Utc> = "2026-07-15T23:50:00Z".parse().unwrap();
    /// assert_eq!(berlin.local(at).to_string(), "2026-07-16 01:50:00 +02:00");
    /// assert_eq!(Zone::UTC.local(at).to_string(), "2026-07-15 23:50:00 +00:00");
    /// ```
    pub fn local(self, at: DateTime<Utc>) -> DateTime<FixedOffset> {
        let offset = self
            .0
            .zip(Timestamp::from_second(at.timestamp()).ok())
            .and_then(|(zone, at)| FixedOffset::east_opt(zone.to_offset(at).seconds()));
        at.with_timezone(&offset.unwrap_or_else(|| Utc.fix()))
    }

    /// What the zone is called at this moment; its offset where it has no letters.
    ///
    /// ```
    /// use chrono::{DateTime, Utc};
    /// use plimsoll::zone::Zone;
    ///
    /// let called = |zone: &str, at: &str| {
    ///     let zone: Zone = zone.parse().unwrap();
    ///     zone.letters(at.parse::<DateTime<Utc>>().unwrap())
    /// };
    /// assert_eq!(called("Europe/Berlin", "2026-07-15T23:50:00Z"), "CEST");
    /// assert_eq!(called("America/Sao_Paulo", "2026-07-15T23:50:00Z"), "-03");
    /// assert_eq!(called("UTC", "2026-07-15T23:50:00Z"), "UTC");
    /// ```
    pub fn letters(self, at: DateTime<Utc>) -> String {
        match self.0.zip(Timestamp::from_second(at.timestamp()).ok()) {
            Some((zone, at)) => zone.to_offset_info(at).abbreviation().to_owned(),
            None => "UTC".to_owned(),
        }
    }

    /// The moment at which a clock on the wall shows this: the earlier of two in the hour it is
    /// set back, none in the hour it skips.
    ///
    /// ```
    /// use chrono::NaiveDateTime;
    /// use plimsoll::zone::Zone;
    ///
    /// let berlin: Zone = "Europe/Berlin".parse().unwrap();
    /// let moment = |text: &str| {
    ///     let shown: NaiveDateTime = text.parse().unwrap();
    ///     berlin.moment(shown).map(|at| at.to_rfc3339())
    /// };
    /// assert_eq!(moment("2026-11-15T12:00:00").unwrap(), "2026-11-15T11:00:00+00:00");
    /// assert_eq!(moment("2026-10-25T02:30:00").unwrap(), "2026-10-25T00:30:00+00:00");
    /// assert_eq!(moment("2026-03-29T02:30:00"), None);
    /// ```
    pub fn moment(self, shown: NaiveDateTime) -> Option<DateTime<Utc>> {
        let Some(zone) = self.0 else {
            return Some(shown.and_utc());
        };
        let small = |n: u32| i8::try_from(n).ok();
        let civil = jiff::civil::DateTime::new(
            i16::try_from(shown.year()).ok()?,
            small(shown.month())?,
            small(shown.day())?,
            small(shown.hour())?,
            small(shown.minute())?,
            small(shown.second())?,
            0,
        )
        .ok()?;
        let offset = match zone.to_ambiguous_timestamp(civil).offset() {
            tz::AmbiguousOffset::Unambiguous { offset } => offset,
            tz::AmbiguousOffset::Fold { before, .. } => before,
            tz::AmbiguousOffset::Gap { .. } => return None,
        };
        let offset = FixedOffset::east_opt(offset.seconds())?;
        Some((shown - offset).and_utc())
    }
}

impl FromStr for Zone {
    type Err = NoSuchZone;

    fn from_str(name: &str) -> Result<Self, NoSuchZone> {
        // A zone once asked for is kept for good: there are a few hundred of them.
        static KNOWN: Mutex<Vec<Zone>> = Mutex::new(Vec::new());
        if name == "UTC" {
            return Ok(Self::UTC);
        }
        let zone = tz::TimeZone::get(name).map_err(|_| NoSuchZone)?;
        let called = zone.iana_name().ok_or(NoSuchZone)?;
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(zone) = known.iter().find(|known| known.name() == called) {
            return Ok(*zone);
        }
        let zone = Self(Some(Box::leak(Box::new(zone))));
        known.push(zone);
        Ok(zone)
    }
}

// Zones are told apart by their names.

impl PartialEq for Zone {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Zone {}

impl std::hash::Hash for Zone {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
