//! MySQL and MariaDB: unsigned columns are unsigned on the wire, JSON arrives as a blob.

use chrono::{DateTime, NaiveDateTime, Utc};
use sqlx::{
    Arguments as _, Column as _, MySql, TypeInfo as _,
    mysql::{MySqlArguments, MySqlColumn, MySqlQueryResult},
};

use super::{
    Val,
    driver::{Decoder, Driver, cell},
};

impl Driver for MySql {
    fn bind(args: &mut MySqlArguments, value: Val) -> Result<(), sqlx::error::BoxDynError> {
        match value {
            Val::Null => args.add(None::<String>),
            Val::Bool(b) => args.add(b),
            Val::Int(n) => args.add(n),
            Val::UInt(n) => args.add(n),
            Val::Float(n) => args.add(n),
            Val::Text(text) => args.add(text),
            Val::Bytes(bytes) => args.add(bytes),
            Val::Time(at) => args.add(at),
        }
    }

    fn decoder(column: &MySqlColumn) -> Decoder<Self> {
        let info = column.type_info();
        match info.name() {
            name if name.ends_with("UNSIGNED") => |row, i| cell::<Self, u64>(row, i, Val::UInt),
            "BOOLEAN" | "TINYINT" | "SMALLINT" | "INT" | "MEDIUMINT" | "BIGINT" => {
                |row, i| cell::<Self, i64>(row, i, Val::Int)
            }
            "FLOAT" => |row, i| cell::<Self, f32>(row, i, |n| Val::Float(n.into())),
            "DOUBLE" => |row, i| cell::<Self, f64>(row, i, Val::Float),
            // The driver labels what the session zone produced as UTC; it is the naive text.
            "TIMESTAMP" => {
                |row, i| cell::<Self, DateTime<Utc>>(row, i, |at| Val::Time(at.naive_utc()))
            }
            "DATETIME" => |row, i| cell::<Self, NaiveDateTime>(row, i, Val::Time),
            // Exact numbers, such as a union of a signed and an unsigned column, arrive as text.
            "JSON" | "DECIMAL" => |row, i| cell::<Self, String>(row, i, Val::Text),
            _ if <String as sqlx::Type<Self>>::compatible(info) => {
                |row, i| cell::<Self, String>(row, i, Val::Text)
            }
            _ => |row, i| cell::<Self, Vec<u8>>(row, i, Val::Bytes),
        }
    }

    fn affected(result: &MySqlQueryResult) -> u64 {
        result.rows_affected()
    }
}
