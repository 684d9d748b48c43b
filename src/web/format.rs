//! How numbers, times and ids are written on a page. Pure: the clock and the zone are
//! arguments, and the examples are the specification.

use crate::{
    length::{of_seconds, units},
    zone::Zone,
};
use chrono::{DateTime, SecondsFormat, SubsecRound as _, TimeDelta, Utc};

/// A length of time in its two largest units.
///
/// ```
/// use chrono::TimeDelta;
/// use plimsoll::web::format::duration;
///
/// assert_eq!(duration(TimeDelta::zero()), "0 ms");
/// assert_eq!(duration(TimeDelta::milliseconds(120)), "120 ms");
/// assert_eq!(duration(TimeDelta::milliseconds(18_432)), "18.4 s");
/// assert_eq!(duration(TimeDelta::milliseconds(41_000)), "41 s");
/// assert_eq!(duration(TimeDelta::milliseconds(59_980)), "59.9 s");
/// assert_eq!(duration(TimeDelta::seconds(252)), "4 m 12 s");
/// assert_eq!(duration(TimeDelta::seconds(600)), "10 m");
/// assert_eq!(duration(TimeDelta::minutes(125)), "2 h 5 m");
/// assert_eq!(duration(TimeDelta::hours(76)), "3 d 4 h");
/// // A clock that went backwards is shown, not hidden.
/// assert_eq!(duration(TimeDelta::seconds(-41)), "−41 s");
/// ```
pub fn duration(length: TimeDelta) -> String {
    if length < TimeDelta::zero() {
        return format!("−{}", duration(-length));
    }
    let milliseconds = length.num_milliseconds();
    match length.num_seconds() {
        0 => format!("{milliseconds} ms"),
        1..60 => {
            let tenths = milliseconds / 100;
            match tenths % 10 {
                0 => format!("{} s", tenths / 10),
                rest => format!("{}.{rest} s", tenths / 10),
            }
        }
        seconds => of_seconds(seconds),
    }
}

/// How far along something is, down to the unit that its steps are counted in.
///
/// ```
/// use chrono::TimeDelta;
/// use plimsoll::web::format::elapsed;
///
/// let at = |seconds, step| elapsed(TimeDelta::seconds(seconds), TimeDelta::seconds(step));
/// assert_eq!(at(0, 10), "0");
/// assert_eq!(at(90, 30), "1 m 30 s");
/// assert_eq!(at(7_170, 30), "1 h 59 m 30 s");
/// assert_eq!(at(7_200, 30), "2 h");
/// assert_eq!(at(90_000, 3_600), "1 d 1 h");
/// assert_eq!(elapsed(TimeDelta::milliseconds(41_250), TimeDelta::milliseconds(50)), "41.250 s");
/// ```
pub fn elapsed(length: TimeDelta, step: TimeDelta) -> String {
    if length < TimeDelta::zero() {
        return format!("−{}", elapsed(-length, step));
    }
    let mut rest = length.num_seconds();
    let mut parts = Vec::new();
    for (size, name) in [(86_400, "d"), (3_600, "h"), (60, "m")] {
        if rest >= size {
            parts.push(format!("{} {name}", rest / size));
            rest %= size;
        }
    }
    let milliseconds = length.num_milliseconds() % 1_000;
    if step < TimeDelta::seconds(1) && milliseconds > 0 {
        parts.push(format!("{rest}.{milliseconds:03} s"));
    } else if rest > 0 {
        parts.push(format!("{rest} s"));
    }
    if parts.is_empty() {
        "0".to_owned()
    } else {
        parts.join(" ")
    }
}

/// How far a moment is from now. The second unit is dropped once the first says enough, and
/// rounded into it.
///
/// ```
/// use chrono::{TimeDelta, TimeZone, Utc};
/// use plimsoll::web::format::relative;
///
/// let now = Utc.with_ymd_and_hms(2026, 11, 15, 23, 50, 0).unwrap();
/// let at = |seconds| relative(now + TimeDelta::seconds(seconds), now);
/// assert_eq!(at(0), "now");
/// assert_eq!(at(-18), "18 s ago");
/// assert_eq!(at(-252), "4 m 12 s ago");
/// assert_eq!(at(-371), "6 m ago");
/// assert_eq!(at(-7_500), "2 h 5 m ago");
/// assert_eq!(at(-28_640), "8 h ago");
/// assert_eq!(at(-3_590), "1 h ago");
/// assert_eq!(at(-86_400 * 40), "40 d ago");
/// assert_eq!(at(48), "in 48 s");
/// assert_eq!(at(90), "in 1 m 30 s");
/// ```
pub fn relative(at: DateTime<Utc>, now: DateTime<Utc>) -> String {
    let seconds = (at - now).num_seconds();
    let length = match seconds.abs() {
        0 => return "now".to_owned(),
        s if s / units(s).0 >= 5 => {
            let large = units(s).0;
            // Rounded up, it may be one of the next unit.
            let s = (s + large / 2) / large * large;
            let (large, name, ..) = units(s);
            format!("{} {name}", s / large)
        }
        s => of_seconds(s),
    };
    if seconds < 0 {
        format!("{length} ago")
    } else {
        format!("in {length}")
    }
}

/// Letters that several zones are called by, at different offsets.
const SHARED: [&str; 4] = ["CDT", "CST", "IST", "PST"];

/// What a zone is called at a moment: by its offset where the letters could be another's.
///
/// ```
/// use chrono::{TimeZone, Utc};
/// use plimsoll::web::format::called;
///
/// let at = Utc.with_ymd_and_hms(2026, 11, 15, 23, 50, 0).unwrap();
/// assert_eq!(called(at, "Europe/Berlin".parse().unwrap()), "CET");
/// // India, Israel and Ireland; Chicago and Shanghai.
/// assert_eq!(called(at, "Asia/Kolkata".parse().unwrap()), "+05:30");
/// assert_eq!(called(at, "America/Chicago".parse().unwrap()), "-06:00");
/// ```
pub fn called(at: DateTime<Utc>, zone: Zone) -> String {
    let letters = zone.letters(at);
    if SHARED.contains(&letters.as_str()) {
        zone.local(at).offset().to_string()
    } else {
        letters
    }
}

/// A moment in a zone, to the second, with the zone named.
///
/// ```
/// use chrono::{TimeZone, Utc};
/// use plimsoll::{web::format::absolute, zone::Zone};
///
/// let at = Utc.with_ymd_and_hms(2026, 11, 15, 23, 50, 0).unwrap();
/// assert_eq!(absolute(at, Zone::UTC), "2026-11-15 23:50:00 UTC");
/// assert_eq!(absolute(at, "Europe/Berlin".parse().unwrap()), "2026-11-16 00:50:00 CET");
/// // A zone without letters is named by its offset.
/// assert_eq!(absolute(at, "America/Sao_Paulo".parse().unwrap()), "2026-11-15 20:50:00 -03");
/// ```
pub fn absolute(at: DateTime<Utc>, zone: Zone) -> String {
    // Written out: chrono interprets a pattern anew for every value, and a page has many.
    let local = zone.local(at);
    format!(
        "{} {} {}",
        local.date_naive(),
        local.time().trunc_subsecs(0),
        called(at, zone)
    )
}

/// A moment in a zone, to the millisecond, with the zone named.
///
/// ```
/// use chrono::{TimeDelta, TimeZone, Utc};
/// use plimsoll::{web::format::exact, zone::Zone};
///
/// let at = Utc.with_ymd_and_hms(2026, 11, 15, 23, 50, 0).unwrap();
/// assert_eq!(exact(at, Zone::UTC), "2026-11-15 23:50:00.000 UTC");
/// let at = at + TimeDelta::microseconds(340_900);
/// assert_eq!(exact(at, Zone::UTC), "2026-11-15 23:50:00.340 UTC");
/// ```
pub fn exact(at: DateTime<Utc>, zone: Zone) -> String {
    let local = zone.local(at);
    format!(
        "{} {}.{:03} {}",
        local.date_naive(),
        local.time().trunc_subsecs(0),
        at.timestamp_subsec_millis(),
        called(at, zone)
    )
}

/// A moment as an address has it: the same one for every reader, whatever zone a page is in.
///
/// ```
/// use chrono::{TimeDelta, TimeZone, Utc};
/// use plimsoll::web::format::{instant, is_instant};
///
/// let at = Utc.with_ymd_and_hms(2026, 11, 15, 23, 50, 0).unwrap();
/// assert_eq!(instant(at), "2026-11-15T23:50:00Z");
/// assert_eq!(instant(at + TimeDelta::milliseconds(340)), "2026-11-15T23:50:00.340Z");
/// assert!(is_instant(&instant(at)) && is_instant("2026-11-15T23:50:00+05:30"));
/// assert!(!is_instant("2026-11-15T23:50:00"));
/// ```
pub fn instant(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

/// Whether a text names a moment without a zone behind it that a reader would have to know.
pub fn is_instant(text: &str) -> bool {
    DateTime::parse_from_rfc3339(text.trim()).is_ok()
}

/// From one moment to another; the day and the zone are said once if they are the same.
///
/// ```
/// use chrono::{TimeZone, Utc};
/// use plimsoll::{web::format::span, zone::Zone};
///
/// let at = |day, hour| Utc.with_ymd_and_hms(2026, 11, day, hour, 50, 0).unwrap();
/// let zone = Zone::UTC;
/// assert_eq!(span(at(15, 23), at(15, 9), zone), "2026-11-15 23:50:00 to 09:50:00 UTC");
/// assert_eq!(
///     span(at(15, 1), at(14, 9), zone),
///     "2026-11-15 01:50:00 to 2026-11-14 09:50:00 UTC"
/// );
/// assert_eq!(span(at(15, 1), at(15, 1), zone), "2026-11-15 01:50:00 UTC");
/// // Seconds alone would be the same twice.
/// let short = at(15, 1) + chrono::TimeDelta::milliseconds(40);
/// assert_eq!(span(at(15, 1), short, zone), "2026-11-15 01:50:00.000 to 01:50:00.040 UTC");
/// // Across a change of the clocks both zones are named.
/// let zone: Zone = "Europe/Berlin".parse().unwrap();
/// let before = Utc.with_ymd_and_hms(2026, 10, 25, 0, 30, 0).unwrap();
/// let after = Utc.with_ymd_and_hms(2026, 10, 25, 1, 30, 0).unwrap();
/// assert_eq!(
///     span(before, after, zone),
///     "2026-10-25 02:30:00 CEST to 2026-10-25 02:30:00 CET"
/// );
/// ```
pub fn span(from: DateTime<Utc>, to: DateTime<Utc>, zone: Zone) -> String {
    if from == to {
        return absolute(from, zone);
    }
    let (start, end) = (zone.local(from), zone.local(to));
    // Of so short a stretch, whole seconds may be the same ones.
    let is_short = (to - from).abs() < FINE;
    let whole = if is_short { exact } else { absolute };
    if start.offset() != end.offset() {
        return format!("{} to {}", whole(from, zone), whole(to, zone));
    }
    let clock = if is_short { "%H:%M:%S%.3f" } else { "%H:%M:%S" };
    let start_text = format!("{} {}", start.date_naive(), start.format(clock));
    if start.date_naive() == end.date_naive() {
        let end = end.format(clock);
        return format!("{start_text} to {end} {}", called(to, zone));
    }
    format!("{start_text} to {}", whole(to, zone))
}

/// Below this length a stretch is told to the millisecond.
pub const FINE: TimeDelta = TimeDelta::seconds(5);

/// A whole number with thousands separated.
///
/// ```
/// use plimsoll::web::format::number;
///
/// assert_eq!(number(0), "0");
/// assert_eq!(number(999), "999");
/// assert_eq!(number(1_204), "1,204");
/// assert_eq!(number(-1_234_567), "-1,234,567");
/// assert_eq!(number(i64::MIN), "-9,223,372,036,854,775,808");
/// ```
pub fn number(n: i64) -> String {
    let digits = n.unsigned_abs().to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3 + 1);
    if n < 0 {
        text.push('-');
    }
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count that may have stopped short of the truth.
///
/// ```
/// use plimsoll::web::format::capped;
///
/// assert_eq!(capped(311, false), "311");
/// assert_eq!(capped(10_000, true), "10,000+");
/// ```
pub fn capped(n: u32, more: bool) -> String {
    let shown = number(i64::from(n));
    if more { shown + "+" } else { shown }
}

/// An id shortened in the middle: ULIDs made together differ at their end.
///
/// ```
/// use plimsoll::web::format::short_id;
///
/// assert_eq!(short_id("01m7gs4khysxa25xp00b9ev2hv"), "01m7gs…2hv");
/// assert_eq!(short_id("ord-48213"), "ord-48213");
/// assert_eq!(short_id("bestellung-größe-ß"), "bestel…e-ß");
/// ```
pub fn short_id(id: &str) -> String {
    cut_middle(id, 14, 6, 3)
}

/// An id people chose: both its ends say something.
///
/// ```
/// use plimsoll::web::format::middle;
///
/// assert_eq!(middle("report-2026-10-revenue"), "report-2026-10-revenue");
/// assert_eq!(middle("schedule:nightly-report:1794715200"), "schedule:nigh…t:1794715200");
/// ```
pub fn middle(id: &str) -> String {
    cut_middle(id, 27, 13, 12)
}

/// Cut in the middle when longer than `most` characters.
fn cut_middle(id: &str, most: usize, head: usize, tail: usize) -> String {
    let length = id.chars().count();
    if length <= most {
        return id.to_owned();
    }
    let tail = id.chars().skip(length - tail);
    id.chars().take(head).chain(['…']).chain(tail).collect()
}

/// A size in bytes, by 1,024.
///
/// ```
/// use plimsoll::web::format::bytes;
///
/// assert_eq!(bytes(0), "0 B");
/// assert_eq!(bytes(1_023), "1,023 B");
/// assert_eq!(bytes(18_432), "18 KiB");
/// assert_eq!(bytes(1_572_864), "1.5 MiB");
/// assert_eq!(bytes(u64::MAX), "16,383 PiB");
/// ```
pub fn bytes(n: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut unit = 0;
    let mut scale = 1_u64;
    while unit + 1 < UNITS.len() && n / scale >= 1_024 {
        scale *= 1_024;
        unit += 1;
    }
    let whole = number(i64::try_from(n / scale).unwrap_or(i64::MAX));
    // The remainder is below 2^50, so the product cannot overflow.
    match n % scale * 10 / scale {
        tenths if n / scale < 10 && tenths > 0 => format!("{whole}.{tenths} {}", UNITS[unit]),
        _ => format!("{whole} {}", UNITS[unit]),
    }
}

/// One moment, in every form a page needs: made once, drawn by the `time` macros.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// RFC 3339 in UTC, for `<time datetime>`.
    pub machine: String,
    pub absolute: String,
    pub relative: String,
}

impl Moment {
    pub fn new(at: DateTime<Utc>, now: DateTime<Utc>, zone: Zone) -> Self {
        Self {
            machine: instant(at),
            absolute: absolute(at, zone),
            relative: relative(at, now),
        }
    }
}
