//! A neutral row: cells by column name, with explicit coercions that name the column when
//! they fail.

use std::sync::Arc;

use chrono::{DateTime, NaiveDateTime, Utc};

use super::{DbError, Val};

/// The columns of one result set, shared by its rows.
#[derive(Debug)]
pub struct Columns {
    pub(super) names: Vec<String>,
    /// The zone naive stored times are written in.
    pub(super) zone: crate::zone::Zone,
}

impl Columns {
    /// Of rows that no database gave, their times in UTC.
    pub fn named<'n>(names: impl IntoIterator<Item = &'n str>) -> Arc<Self> {
        Arc::new(Self {
            names: names.into_iter().map(str::to_owned).collect(),
            zone: crate::zone::Zone::UTC,
        })
    }

    /// One row, a cell for every name.
    pub fn row<'c>(self: &'c Arc<Self>, cell: impl FnMut(&'c str) -> Val) -> Row {
        let cells = self.names.iter().map(String::as_str).map(cell).collect();
        Row::new(Arc::clone(self), cells)
    }
}

/// One row. Getters move the value out, but for that of the first cell, which names the row, and
/// expect to be called in select order (any order works, in order is fastest).
#[derive(Debug, Clone)]
pub struct Row {
    columns: Arc<Columns>,
    cells: Vec<Val>,
    next: usize,
}

/// JSON as stored: parsed, or the raw text when it is not JSON.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    Value(serde_json::Value),
    Malformed(String),
}

impl Row {
    pub(super) fn new(columns: Arc<Columns>, cells: Vec<Val>) -> Self {
        Self {
            columns,
            cells,
            next: 0,
        }
    }

    /// A row yet to be filled.
    pub(super) fn blank(columns: Arc<Columns>) -> Self {
        Self::new(columns, Vec::new())
    }

    /// Makes it the next row. What the getters left of the one before is room for it.
    pub(super) fn refill<E>(
        &mut self,
        mut fill: impl FnMut(usize, &mut Val) -> Result<(), E>,
    ) -> Result<(), E> {
        self.next = 0;
        self.cells.resize(self.columns.names.len(), Val::Null);
        let mut cells = self.cells.iter_mut().enumerate();
        cells.try_for_each(|(n, cell)| fill(n, cell))
    }

    /// The row itself, out of what will be refilled.
    #[must_use]
    pub fn kept(&mut self) -> Self {
        Self::new(Arc::clone(&self.columns), std::mem::take(&mut self.cells))
    }

    pub fn columns(&self) -> &Arc<Columns> {
        &self.columns
    }

    /// Name and value of every cell, in select order.
    pub fn cells(&self) -> impl Iterator<Item = (&str, &Val)> {
        self.columns
            .names
            .iter()
            .map(String::as_str)
            .zip(&self.cells)
    }

    /// What its texts take of memory, about.
    pub(super) fn bytes(&self) -> usize {
        let long = |cell: &Val| match cell {
            Val::Text(text) => text.len(),
            Val::Bytes(bytes) => bytes.len(),
            _ => 0,
        };
        self.cells.iter().map(long).sum()
    }

    pub fn into_values(self) -> Vec<Val> {
        self.cells
    }

    #[inline]
    pub fn take(&mut self, column: &'static str) -> Result<Val, DbError> {
        Ok(match self.place(column)? {
            0 => self.cells[0].clone(),
            at => std::mem::replace(&mut self.cells[at], Val::Null),
        })
    }

    #[inline]
    fn place(&mut self, column: &'static str) -> Result<usize, DbError> {
        let names = &self.columns.names;
        let at = if names.get(self.next).is_some_and(|name| name == column) {
            self.next
        } else {
            names
                .iter()
                .position(|name| name == column)
                .ok_or(DbError::NoSuchColumn { column })?
        };
        self.next = at + 1;
        Ok(at)
    }

    /// The text in a cell that is still there, without taking it out.
    pub fn peek(&self, column: &'static str) -> Option<&str> {
        let at = self.columns.names.iter().position(|name| name == column)?;
        match self.cells.get(at)? {
            Val::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Puts another value in a cell, for tests that damage rows.
    #[cfg(test)]
    pub(crate) fn put(&mut self, column: &str, value: Val) {
        let at = self.columns.names.iter().position(|name| name == column);
        self.cells[at.expect("a column of the row")] = value;
    }

    pub fn opt_text(&mut self, column: &'static str) -> Result<Option<String>, DbError> {
        match self.take(column)? {
            Val::Null => Ok(None),
            Val::Text(text) => Ok(Some(text)),
            // SQLite lets any class stand in a text column; show it as it is.
            Val::Int(n) => Ok(Some(n.to_string())),
            Val::UInt(n) => Ok(Some(n.to_string())),
            Val::Float(n) => Ok(Some(n.to_string())),
            Val::Bytes(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
            found @ (Val::Bool(_) | Val::Time(_)) => Err(wrong(column, "text", found)),
        }
    }

    /// What is made of a text where it stands.
    pub fn opt_read<T>(
        &mut self,
        column: &'static str,
        read: impl FnOnce(&str) -> T,
    ) -> Result<Option<T>, DbError> {
        let at = self.place(column)?;
        match &self.cells[at] {
            Val::Text(text) => Ok(Some(read(text))),
            _ => Ok(self.opt_text(column)?.map(|text| read(&text))),
        }
    }

    pub fn opt_int(&mut self, column: &'static str) -> Result<Option<i64>, DbError> {
        match self.take(column)? {
            Val::Null => Ok(None),
            Val::Int(n) => Ok(Some(n)),
            Val::UInt(n) => match i64::try_from(n) {
                Ok(n) => Ok(Some(n)),
                Err(_) => Err(wrong(column, "integer below 2^63", Val::UInt(n))),
            },
            Val::Bool(b) => Ok(Some(b.into())),
            Val::Text(text) => match text.parse() {
                Ok(n) => Ok(Some(n)),
                Err(_) => Err(wrong(column, "integer", Val::Text(text))),
            },
            found => Err(wrong(column, "integer", found)),
        }
    }

    pub fn opt_float(&mut self, column: &'static str) -> Result<Option<f64>, DbError> {
        match self.take(column)? {
            Val::Null => Ok(None),
            Val::Float(n) => Ok(Some(n)),
            #[expect(
                clippy::cast_precision_loss,
                reason = "an integer in a float column is one PHP wrote without a fraction"
            )]
            Val::Int(n) => Ok(Some(n as f64)),
            found => Err(wrong(column, "float", found)),
        }
    }

    pub fn opt_bool(&mut self, column: &'static str) -> Result<Option<bool>, DbError> {
        match self.take(column)? {
            Val::Null => Ok(None),
            Val::Bool(b) => Ok(Some(b)),
            Val::Int(n) => Ok(Some(n != 0)),
            Val::UInt(n) => Ok(Some(n != 0)),
            found => Err(wrong(column, "boolean", found)),
        }
    }

    /// A time the engine wrote in its own zone.
    pub fn opt_time(&mut self, column: &'static str) -> Result<Option<DateTime<Utc>>, DbError> {
        let zone = self.columns.zone;
        Ok(self.naive(column)?.map(|naive| from_zone(naive, zone)))
    }

    /// A time the engine always writes in UTC (`sort_timestamp`).
    pub fn opt_utc(&mut self, column: &'static str) -> Result<Option<DateTime<Utc>>, DbError> {
        Ok(self.naive(column)?.map(|naive| naive.and_utc()))
    }

    pub fn opt_json(&mut self, column: &'static str) -> Result<Option<Json>, DbError> {
        Ok(self
            .opt_text(column)?
            .map(|text| match serde_json::from_str(&text) {
                Ok(value) => Json::Value(value),
                Err(_) => Json::Malformed(text),
            }))
    }

    pub fn text(&mut self, column: &'static str) -> Result<String, DbError> {
        self.opt_text(column)?
            .ok_or_else(|| wrong(column, "text", Val::Null))
    }

    pub fn int(&mut self, column: &'static str) -> Result<i64, DbError> {
        self.opt_int(column)?
            .ok_or_else(|| wrong(column, "integer", Val::Null))
    }

    pub fn bool(&mut self, column: &'static str) -> Result<bool, DbError> {
        self.opt_bool(column)?
            .ok_or_else(|| wrong(column, "boolean", Val::Null))
    }

    #[inline]
    fn naive(&mut self, column: &'static str) -> Result<Option<NaiveDateTime>, DbError> {
        let at = self.place(column)?;
        let found = &self.cells[at];
        let read = match found {
            Val::Null => return Ok(None),
            Val::Time(at) => Some(*at),
            Val::Text(text) => parse_time(text),
            _ => None,
        };
        match read {
            Some(at) => Ok(Some(at)),
            None => Err(wrong(column, "timestamp", found.clone())),
        }
    }
}

fn wrong(column: &'static str, expected: &'static str, found: Val) -> DbError {
    DbError::Decode {
        column,
        expected,
        found,
    }
}

#[inline]
fn from_zone(naive: NaiveDateTime, zone: crate::zone::Zone) -> DateTime<Utc> {
    // In the hour a clock is set back the stored text is ambiguous: the earlier moment is taken.
    // In the hour that does not exist, read it as UTC rather than lose it.
    zone.moment(naive).unwrap_or_else(|| naive.and_utc())
}

/// A time the engine wrote in its own zone, from its text.
pub(super) fn stored_time(text: &str, zone: crate::zone::Zone) -> Option<DateTime<Utc>> {
    parse_time(text).map(|naive| from_zone(naive, zone))
}

/// The forms a stored time takes on SQLite: with and without fraction, with a space or a `T`,
/// with or without a zone.
fn parse_time(text: &str) -> Option<NaiveDateTime> {
    let text = text.trim();
    if let Some(at) = plain_time(text.as_bytes()) {
        return Some(at);
    }
    NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S%.f")
        .or_else(|_| NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.f"))
        .or_else(|_| DateTime::parse_from_rfc3339(text).map(|at| at.naive_utc()))
        .or_else(|_| {
            chrono::NaiveDate::parse_from_str(text, "%Y-%m-%d")
                .map(|day| day.and_time(chrono::NaiveTime::MIN))
        })
        .ok()
}

/// `YYYY-MM-DD HH:MM:SS[.f]`, the form nearly every stored time has, without the cost of
/// interpreting a format string. Anything else is left to the slower readers.
pub fn plain_time(text: &[u8]) -> Option<NaiveDateTime> {
    let (whole, fraction) = text.split_first_chunk::<19>()?;
    let separators = [whole[4], whole[7], whole[10], whole[13], whole[16]];
    if !matches!(&separators, b"-- ::" | b"--T::") {
        return None;
    }
    let nanos = match fraction {
        [] => 0,
        [b'.', digits @ ..] if (1..=9).contains(&digits.len()) => {
            number(digits)? * 10_u32.pow(9 - u32::try_from(digits.len()).ok()?)
        }
        _ => return None,
    };
    chrono::NaiveDate::from_ymd_opt(
        number(&whole[..4])?.try_into().ok()?,
        number(&whole[5..7])?,
        number(&whole[8..10])?,
    )?
    .and_hms_nano_opt(
        number(&whole[11..13])?,
        number(&whole[14..16])?,
        number(&whole[17..])?,
        nanos,
    )
}

/// At most nine decimal digits.
#[inline]
fn number(digits: &[u8]) -> Option<u32> {
    let (mut number, mut all) = (0_u32, true);
    for digit in digits {
        let digit = digit.wrapping_sub(b'0');
        all &= digit < 10;
        number = number.wrapping_mul(10).wrapping_add(digit.into());
    }
    all.then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(zone: crate::zone::Zone, cells: Vec<(&str, Val)>) -> Row {
        let (names, cells) = cells
            .into_iter()
            .map(|(name, val)| (name.to_owned(), val))
            .unzip();
        Row::new(Arc::new(Columns { names, zone }), cells)
    }

    #[test]
    fn times_are_read_in_every_stored_form() {
        for (text, want) in [
            ("2026-04-05 10:11:12.123456", "2026-04-05T10:11:12.123456Z"),
            ("2026-04-05 10:11:12", "2026-04-05T10:11:12Z"),
            ("2026-04-05 10:11:12.1", "2026-04-05T10:11:12.1Z"),
            (
                "2026-04-05 10:11:12.123456789",
                "2026-04-05T10:11:12.123456789Z",
            ),
            (" 2026-04-05 10:11:12 ", "2026-04-05T10:11:12Z"),
            ("2024-02-29 23:59:59.999999", "2024-02-29T23:59:59.999999Z"),
            ("0001-01-01 00:00:00", "0001-01-01T00:00:00Z"),
            ("2016-12-31 23:59:60", "2016-12-31T23:59:60Z"),
            ("2026-4-5 1:2:3", "2026-04-05T01:02:03Z"),
            ("2026-04-05T10:11:12.5", "2026-04-05T10:11:12.5Z"),
            ("2026-04-05T12:11:12+02:00", "2026-04-05T10:11:12Z"),
            ("2026-04-05", "2026-04-05T00:00:00Z"),
        ] {
            let got = row(crate::zone::Zone::UTC, vec![("at", Val::from(text))])
                .opt_time("at")
                .unwrap()
                .unwrap();
            assert_eq!(got, want.parse::<DateTime<Utc>>().unwrap(), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused_whatever_its_shape() {
        for text in [
            "",
            "2026-02-30 10:11:12",
            "2026-04-05 24:00:00",
            "2026-04-05 10:60:00",
            "2026-04-05 10:11:12.",
            "2026-04-05 10:11:12.12x",
            "2026-04-05 10-11-12",
            "2026-04-05 1\u{661}:11:12",
            "0000-00-00 00:00:00",
            "soon, very soon, now",
        ] {
            assert!(
                row(crate::zone::Zone::UTC, vec![("at", Val::from(text))])
                    .opt_time("at")
                    .is_err(),
                "{text}"
            );
        }
    }

    #[test]
    fn the_stored_zone_applies_to_engine_times_only() {
        let mut r = row(
            "Europe/Berlin".parse().unwrap(),
            vec![
                ("started_at", "2026-07-01 12:00:00".into()),
                ("sort_timestamp", "2026-07-01 10:00:00".into()),
            ],
        );
        assert_eq!(
            r.opt_time("started_at").unwrap(),
            r.opt_utc("sort_timestamp").unwrap()
        );
    }

    #[test]
    fn a_wrong_kind_names_the_column() {
        let error = row(
            crate::zone::Zone::UTC,
            vec![("run_number", Val::from("seven"))],
        )
        .int("run_number")
        .unwrap_err();
        assert_eq!(
            error.to_string(),
            "column run_number: expected integer, found text"
        );
    }

    #[test]
    fn integers_beyond_63_bits_are_refused_not_wrapped() {
        assert!(
            row(crate::zone::Zone::UTC, vec![("n", Val::UInt(u64::MAX))])
                .int("n")
                .is_err()
        );
        assert_eq!(
            row(crate::zone::Zone::UTC, vec![("n", Val::UInt(7))])
                .int("n")
                .unwrap(),
            7
        );
    }

    #[test]
    fn broken_json_is_kept_as_text() {
        let mut r = row(
            crate::zone::Zone::UTC,
            vec![
                ("a", "{\"x\":".into()),
                ("b", "[]".into()),
                ("c", Val::Null),
            ],
        );
        assert_eq!(
            r.opt_json("a").unwrap(),
            Some(Json::Malformed("{\"x\":".into()))
        );
        assert_eq!(
            r.opt_json("b").unwrap(),
            Some(Json::Value(serde_json::json!([])))
        );
        assert_eq!(r.opt_json("c").unwrap(), None);
    }
}
