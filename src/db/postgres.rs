//! PostgreSQL: the wire carries exact types; one decoder per type name.

use chrono::DateTime;
use sqlx::{
    Arguments as _, Column as _, Postgres, TypeInfo as _, ValueRef as _,
    encode::IsNull,
    postgres::{
        PgArgumentBuffer, PgArguments, PgColumn, PgQueryResult, PgTypeInfo, PgValueRef, types::Oid,
    },
};

use super::{
    Val,
    driver::{Decoder, Driver, cell},
};

/// Text or null whose type the server infers, so that one bind fits varchar, text and json.
struct Untyped(Option<String>);

impl sqlx::Type<Postgres> for Untyped {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_oid(Oid(705))
    }
}

impl sqlx::Encode<'_, Postgres> for Untyped {
    fn encode_by_ref(
        &self,
        buffer: &mut PgArgumentBuffer,
    ) -> Result<IsNull, sqlx::error::BoxDynError> {
        match &self.0 {
            None => Ok(IsNull::Yes),
            Some(text) => {
                buffer.extend_from_slice(text.as_bytes());
                Ok(IsNull::No)
            }
        }
    }
}

/// Any type whose wire form is its text, taken as it is.
struct WireText(String);

impl<'r> sqlx::Decode<'r, Postgres> for WireText {
    fn decode(value: PgValueRef<'r>) -> Result<Self, sqlx::error::BoxDynError> {
        let is_jsonb = value.type_info().name() == "JSONB";
        let text = value.as_str()?;
        // JSONB has one version byte before its text.
        Ok(Self(if is_jsonb {
            text[1..].to_owned()
        } else {
            text.to_owned()
        }))
    }
}

/// A type the engine's tables do not use: its bytes, undecoded.
struct WireBytes(Vec<u8>);

impl<'r> sqlx::Decode<'r, Postgres> for WireBytes {
    fn decode(value: PgValueRef<'r>) -> Result<Self, sqlx::error::BoxDynError> {
        Ok(Self(value.as_bytes()?.to_vec()))
    }
}

/// Microseconds since 2000. The server holds moments our calendar does not reach, and
/// infinity: those stay text.
struct WireTime(Val);

impl<'r> sqlx::Decode<'r, Postgres> for WireTime {
    fn decode(value: PgValueRef<'r>) -> Result<Self, sqlx::error::BoxDynError> {
        const EPOCH: i64 = 946_684_800_000_000;
        let micros = i64::from_be_bytes(value.as_bytes()?.try_into()?);
        let at = micros
            .checked_add(EPOCH)
            .and_then(DateTime::from_timestamp_micros);
        Ok(Self(match (micros, at) {
            (i64::MAX, _) => Val::Text("infinity".into()),
            (i64::MIN, _) => Val::Text("-infinity".into()),
            (_, Some(at)) => Val::Time(at.naive_utc()),
            (_, None) => Val::Text(format!("{micros} microseconds after 2000-01-01")),
        }))
    }
}

impl Driver for Postgres {
    fn bind(args: &mut PgArguments, value: Val) -> Result<(), sqlx::error::BoxDynError> {
        match value {
            Val::Null => args.add(Untyped(None)),
            Val::Bool(b) => args.add(b),
            Val::Int(n) => args.add(n),
            Val::UInt(n) => args.add(i64::try_from(n)?),
            Val::Float(n) => args.add(n),
            Val::Text(text) => args.add(Untyped(Some(text))),
            Val::Bytes(bytes) => args.add(bytes),
            Val::Time(at) => args.add(at),
        }
    }

    fn decoder(column: &PgColumn) -> Decoder<Self> {
        match column.type_info().name() {
            "BOOL" => |row, i| cell::<Self, bool>(row, i, Val::Bool),
            "INT2" => |row, i| cell::<Self, i16>(row, i, |n| Val::Int(n.into())),
            "INT4" => |row, i| cell::<Self, i32>(row, i, |n| Val::Int(n.into())),
            "INT8" => |row, i| cell::<Self, i64>(row, i, Val::Int),
            "FLOAT4" => |row, i| cell::<Self, f32>(row, i, |n| Val::Float(n.into())),
            "FLOAT8" => |row, i| cell::<Self, f64>(row, i, Val::Float),
            "TIMESTAMP" | "TIMESTAMPTZ" => |row, i| cell::<Self, WireTime>(row, i, |at| at.0),
            "TEXT" | "VARCHAR" | "CHAR" | "NAME" | "JSON" | "JSONB" | "UNKNOWN" => {
                |row, i| cell::<Self, WireText>(row, i, |text| Val::Text(text.0))
            }
            _ => |row, i| cell::<Self, WireBytes>(row, i, |bytes| Val::Bytes(bytes.0)),
        }
    }

    fn affected(result: &PgQueryResult) -> u64 {
        result.rows_affected()
    }
}
