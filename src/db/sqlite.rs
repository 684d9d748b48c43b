//! SQLite: values are decided by storage class, never by declared type.

use chrono::{Datelike as _, NaiveDateTime, Timelike as _};
use sqlx::{
    Arguments as _, Decode, Row as _, Sqlite, TypeInfo as _, ValueRef as _,
    sqlite::{SqliteArguments, SqliteColumn, SqliteQueryResult, SqliteRow},
};

use super::{
    Val,
    driver::{Decoder, Driver},
};

impl Driver for Sqlite {
    fn bind(args: &mut SqliteArguments, value: Val) -> Result<(), sqlx::error::BoxDynError> {
        match value {
            Val::Null => args.add(None::<i64>),
            Val::Bool(b) => args.add(i64::from(b)),
            Val::Int(n) => args.add(n),
            Val::UInt(n) => args.add(i64::try_from(n)?),
            Val::Float(n) => args.add(n),
            Val::Text(text) => args.add(text),
            Val::Bytes(bytes) => args.add(bytes),
            Val::Time(at) => args.add(stored(at)),
        }
    }

    fn decoder(_: &SqliteColumn) -> Decoder<Self> {
        by_storage_class
    }

    fn affected(result: &SqliteQueryResult) -> u64 {
        result.rows_affected()
    }
}

/// Comparison is textual: the engine's own form, always with six digits. Written out, because
/// chrono interprets a pattern anew for every value.
fn stored(at: NaiveDateTime) -> String {
    let (year, month, day) = (at.year(), at.month(), at.day());
    let (hour, minute, second) = (at.hour(), at.minute(), at.second());
    let micros = at.and_utc().timestamp_subsec_micros();
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{micros:06}")
}

fn by_storage_class(row: &SqliteRow, index: usize) -> Result<Val, sqlx::error::BoxDynError> {
    let value = row.try_get_raw(index)?;
    if value.is_null() {
        return Ok(Val::Null);
    }
    let class = value.type_info();
    Ok(match class.name() {
        "INTEGER" => Val::Int(<i64 as Decode<Sqlite>>::decode(value)?),
        "REAL" => Val::Float(<f64 as Decode<Sqlite>>::decode(value)?),
        "BLOB" => Val::Bytes(<Vec<u8> as Decode<Sqlite>>::decode(value)?),
        _ => {
            let bytes = <&[u8] as Decode<Sqlite>>::decode(value)?;
            // Looking for what is not UTF-8 costs more than seeing that all of it is.
            Val::Text(match str::from_utf8(bytes) {
                Ok(text) => text.to_owned(),
                Err(_) => String::from_utf8_lossy(bytes).into_owned(),
            })
        }
    })
}
