//! A place in the list: the order key of a row, and which way to go from it.

use std::{fmt, str::FromStr};

use chrono::{DateTime, SecondsFormat, Utc};

use super::filter::is_storable;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// On, in the list's own order.
    Next,
    /// Back towards its beginning.
    Previous,
}

/// The order key of one row. A null time sorts last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    pub at: Option<DateTime<Utc>>,
    pub id: String,
}

/// `next~2026-11-15T23:50:00.000000Z~01m7…` in a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    pub way: Way,
    pub key: Key,
    /// Whether the row itself belongs to what follows: `next-from` and `prev-from` in a URL.
    pub including: bool,
}

impl Cursor {
    /// From just beyond this row.
    pub fn new(way: Way, key: Key) -> Self {
        Self {
            way,
            key,
            including: false,
        }
    }

    pub fn next(key: Key) -> Self {
        Self::new(Way::Next, key)
    }

    pub fn previous(key: Key) -> Self {
        Self::new(Way::Previous, key)
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let way = match (self.way, self.including) {
            (Way::Next, false) => "next",
            (Way::Next, true) => "next-from",
            (Way::Previous, false) => "prev",
            (Way::Previous, true) => "prev-from",
        };
        let at = self
            .key
            .at
            .map(|at| at.to_rfc3339_opts(SecondsFormat::Micros, true));
        write!(f, "{way}~{}~{}", at.unwrap_or_default(), self.key.id)
    }
}

impl FromStr for Cursor {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "this is not a place in the list; go back to its beginning".to_owned();
        let mut parts = text.splitn(3, '~');
        let (Some(way), Some(at), Some(id)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(wrong());
        };
        let (way, including) = match way {
            "next" => (Way::Next, false),
            "next-from" => (Way::Next, true),
            "prev" => (Way::Previous, false),
            "prev-from" => (Way::Previous, true),
            _ => return Err(wrong()),
        };
        let at = match at {
            "" => None,
            at => Some(
                DateTime::parse_from_rfc3339(at)
                    .map(|at| at.to_utc())
                    .ok()
                    .filter(|at| is_storable(*at))
                    .ok_or_else(wrong)?,
            ),
        };
        if id.is_empty() || id.len() > 64 || id.contains('\0') {
            return Err(wrong());
        }
        Ok(Self {
            way,
            key: Key {
                at,
                id: id.to_owned(),
            },
            including,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_cursor_survives_its_url(micros in 0i64..4_000_000_000_000_000, id in "[0-9a-zA-Z]{1,26}", previous: bool, null: bool, including: bool) {
            let at = (!null).then(|| DateTime::from_timestamp_micros(micros).unwrap());
            let way = if previous { Way::Previous } else { Way::Next };
            let cursor = Cursor { way, key: Key { at, id }, including };
            prop_assert_eq!(cursor.to_string().parse::<Cursor>().unwrap(), cursor);
        }

        #[test]
        fn no_text_makes_parsing_panic(text in "\\PC*") {
            let _ = text.parse::<Cursor>();
        }
    }
}
