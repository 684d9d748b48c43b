//! SQLite: values are decided by storage class, never by declared type.

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
            // Comparison is textual: the engine's own form, always with six digits.
            Val::Time(at) => args.add(at.format("%Y-%m-%d %H:%M:%S%.6f").to_string()),
        }
    }

    fn decoder(_: &SqliteColumn) -> Decoder<Self> {
        by_storage_class
    }

    fn affected(result: &SqliteQueryResult) -> u64 {
        result.rows_affected()
    }
}

fn by_storage_class(row: &SqliteRow, index: usize) -> Result<Val, sqlx::error::BoxDynError> {
    let value = row.try_get_raw(index)?;
    if value.is_null() {
        return Ok(Val::Null);
    }
    let class = value.type_info();
    Ok(match class.name() {
        "INTEGER" | "BOOLEAN" => Val::Int(<i64 as Decode<Sqlite>>::decode(value)?),
        "REAL" => Val::Float(<f64 as Decode<Sqlite>>::decode(value)?),
        "BLOB" => Val::Bytes(<Vec<u8> as Decode<Sqlite>>::decode(value)?),
        _ => {
            let bytes = <&[u8] as Decode<Sqlite>>::decode(value)?;
            Val::Text(String::from_utf8_lossy(bytes).into_owned())
        }
    })
}
