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
        self.moments(shown).into_iter().flatten().next()
    }

    /// The same with something behind it that says the zone: what a clock here was called then
    /// (which also tells the two hours apart when it is set back), an offset, or a zone's name.
    ///
    /// ```
    /// use chrono::NaiveDateTime;
    /// use plimsoll::zone::Zone;
    ///
    /// let berlin: Zone = "Europe/Berlin".parse().unwrap();
    /// let moment = |text: &str, behind: &str| {
    ///     let shown: NaiveDateTime = text.parse().unwrap();
    ///     berlin.moment_called(shown, behind).map(|at| at.to_rfc3339())
    /// };
    /// let noon = "2026-11-15T12:00:00";
    /// assert_eq!(moment(noon, "CET").unwrap(), "2026-11-15T11:00:00+00:00");
    /// assert_eq!(moment(noon, "UTC").unwrap(), "2026-11-15T12:00:00+00:00");
    /// assert_eq!(moment(noon, "Z").unwrap(), "2026-11-15T12:00:00+00:00");
    /// assert_eq!(moment(noon, "-03").unwrap(), "2026-11-15T15:00:00+00:00");
    /// assert_eq!(moment(noon, "+0530").unwrap(), "2026-11-15T06:30:00+00:00");
    /// assert_eq!(moment(noon, "America/Sao_Paulo").unwrap(), "2026-11-15T15:00:00+00:00");
    /// let twice = "2026-10-25T02:30:00";
    /// assert_eq!(moment(twice, "CEST").unwrap(), "2026-10-25T00:30:00+00:00");
    /// assert_eq!(moment(twice, "CET").unwrap(), "2026-10-25T01:30:00+00:00");
    /// // Nothing is guessed: it is not called that in November, and letters of elsewhere could
    /// // mean several zones.
    /// assert_eq!(moment(noon, "CEST"), None);
    /// assert_eq!(moment(noon, "IST"), None);
    /// ```
    pub fn moment_called(self, shown: NaiveDateTime, behind: &str) -> Option<DateTime<Utc>> {
        let called = |zone: Self| {
            let moments = zone.moments(shown).into_iter().flatten();
            moments.into_iter().find(|at| zone.letters(*at) == behind)
        };
        if let Some(at) = called(self) {
            return Some(at);
        }
        if let Some(offset) = offset(behind) {
            return Some((shown - offset).and_utc());
        }
        let zone: Self = behind.parse().ok()?;
        // The database has zones named CET and EST too, and in summer they are not called that.
        if behind.contains('/') {
            zone.moment(shown)
        } else {
            called(zone)
        }
    }

    /// The moments at which a clock on the wall shows this, the earlier first.
    fn moments(self, shown: NaiveDateTime) -> [Option<DateTime<Utc>>; 2] {
        let Some(zone) = self.0 else {
            return [Some(shown.and_utc()), None];
        };
        let Some(civil) = civil(shown) else {
            return [None; 2];
        };
        let at = |offset: tz::Offset| {
            let offset = FixedOffset::east_opt(offset.seconds())?;
            Some((shown - offset).and_utc())
        };
        match zone.to_ambiguous_timestamp(civil).offset() {
            tz::AmbiguousOffset::Unambiguous { offset } => [at(offset), None],
            tz::AmbiguousOffset::Fold { before, after } => [at(before), at(after)],
            tz::AmbiguousOffset::Gap { .. } => [None; 2],
        }
    }
}

/// To the second: what offsets are looked up by.
fn civil(shown: NaiveDateTime) -> Option<jiff::civil::DateTime> {
    let small = |n: u32| i8::try_from(n).ok();
    jiff::civil::DateTime::new(
        i16::try_from(shown.year()).ok()?,
        small(shown.month())?,
        small(shown.day())?,
        small(shown.hour())?,
        small(shown.minute())?,
        small(shown.second())?,
        0,
    )
    .ok()
}

/// `Z`, `+01`, `-0330` or `+05:30`.
fn offset(text: &str) -> Option<FixedOffset> {
    if text.eq_ignore_ascii_case("Z") {
        return Some(Utc.fix());
    }
    let (sign, digits) = match text.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let (hours, minutes) = match digits.split_once(':') {
        Some(parts) => parts,
        None if digits.len() == 4 => digits.split_at_checked(2)?,
        None => (digits, "00"),
    };
    let two = |digits: &str| {
        let is_two = digits.len() == 2 && digits.bytes().all(|digit| digit.is_ascii_digit());
        digits.parse::<i32>().ok().filter(|_| is_two)
    };
    let (hours, minutes) = (two(hours)?, two(minutes).filter(|minutes| *minutes < 60)?);
    FixedOffset::east_opt(sign * (hours * 3_600 + minutes * 60))
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
