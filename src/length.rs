//! How lengths of time are written, on pages and in sentences alike.

/// A number of seconds in its two largest units.
///
/// ```
/// use plimsoll::length::of_seconds;
///
/// assert_eq!(of_seconds(0), "0 s");
/// assert_eq!(of_seconds(41), "41 s");
/// assert_eq!(of_seconds(300), "5 m");
/// assert_eq!(of_seconds(7_500), "2 h 5 m");
/// ```
pub fn of_seconds(seconds: i64) -> String {
    let (large, large_name, small, small_name) = units(seconds);
    match seconds % large / small {
        0 => format!("{} {large_name}", seconds / large),
        rest => format!("{} {large_name} {rest} {small_name}", seconds / large),
    }
}

/// The largest unit of a number of seconds, its size, its name, and that of the next one.
pub fn units(seconds: i64) -> (i64, &'static str, i64, &'static str) {
    match seconds {
        86_400.. => (86_400, "d", 3_600, "h"),
        3_600.. => (3_600, "h", 60, "m"),
        60.. => (60, "m", 1, "s"),
        _ => (1, "s", 1, "s"),
    }
}
