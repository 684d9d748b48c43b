//! The `avro` value codec: strict base64 around one Avro single-object datum of a fixed schema.
//!
//! The schema is a closed union of eight branches, so the codec is written out here instead of
//! carrying a general Avro library. Decoding is bounded: nesting stops at [`MAX_DEPTH`] and no
//! length in the input is believed before the bytes are there.

use base64::{Engine as _, engine::general_purpose::STANDARD};

use crate::durable::php;

/// The engine refuses deeper values; so do we, before the stack does.
pub const MAX_DEPTH: usize = 128;

const MAGIC: [u8; 2] = [0xC3, 0x01];
const FINGERPRINT: [u8; 8] = [0xE2, 0xA3, 0x3D, 0xFF, 0x55, 0x80, 0x22, 0x37];

/// One value of the protocol's schema. Maps keep the order they were written in.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    Bool(bool),
    Long(i64),
    Double(f64),
    Bytes(Vec<u8>),
    String(String),
    Array(Vec<Value>),
    Map(Vec<(String, Value)>),
}

/// Why a payload could not be decoded, under the engine's own diagnostic names where it has one.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum DecodeError {
    #[error("empty_payload")]
    EmptyPayload,
    #[error("invalid_base64")]
    InvalidBase64,
    /// Not base64, and it starts like JSON: somebody wrote the wrong codec tag.
    #[error("json_bytes_labeled_avro")]
    JsonBytesLabeledAvro,
    #[error("invalid_single_object_magic")]
    InvalidSingleObjectMagic,
    #[error("unsupported_payload_schema")]
    UnsupportedPayloadSchema,
    /// The envelope is right, the datum is not: cut short, trailing bytes, a branch that the
    /// schema does not have, a number that is none.
    #[error("invalid_avro_value")]
    InvalidValue,
    #[error("payload_nesting_too_deep")]
    TooDeep,
}

impl DecodeError {
    /// The name an operator can search for in the engine's documentation.
    pub fn code(self) -> String {
        self.to_string()
    }
}

/// The text the engine stores for `value`.
pub fn encode(value: &Value) -> String {
    let mut out = Vec::with_capacity(64);
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&FINGERPRINT);
    write_datum(value, &mut out);
    STANDARD.encode(out)
}

/// The value behind a stored text.
pub fn decode(text: &str) -> Result<Value, DecodeError> {
    if text.is_empty() {
        return Err(DecodeError::EmptyPayload);
    }
    let Some(bytes) = php::base64(text) else {
        return Err(if looks_like_json(text) {
            DecodeError::JsonBytesLabeledAvro
        } else {
            DecodeError::InvalidBase64
        });
    };
    let datum = bytes
        .strip_prefix(&MAGIC)
        .ok_or(DecodeError::InvalidSingleObjectMagic)?;
    if datum.len() < FINGERPRINT.len() {
        return Err(DecodeError::InvalidSingleObjectMagic);
    }
    let datum = datum
        .strip_prefix(&FINGERPRINT)
        .ok_or(DecodeError::UnsupportedPayloadSchema)?;
    let mut reader = Reader { rest: datum };
    let value = reader.datum(0)?;
    if reader.rest.is_empty() {
        Ok(value)
    } else {
        Err(DecodeError::InvalidValue)
    }
}

fn looks_like_json(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
        || text.trim_start().starts_with(['{', '[', '"'])
}

fn write_datum(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => write_long(0, out),
        Value::Bool(b) => {
            write_long(1, out);
            out.push(u8::from(*b));
        }
        Value::Long(n) => {
            write_long(2, out);
            write_long(*n, out);
        }
        Value::Double(d) => {
            write_long(3, out);
            out.extend_from_slice(&d.to_le_bytes());
        }
        Value::Bytes(bytes) => {
            write_long(4, out);
            write_blob(bytes, out);
        }
        Value::String(text) => {
            write_long(5, out);
            write_blob(text.as_bytes(), out);
        }
        Value::Array(items) => {
            write_long(6, out);
            write_count(items.len(), out);
            for item in items {
                write_datum(item, out);
            }
            end_blocks(items.len(), out);
        }
        Value::Map(entries) => {
            write_long(7, out);
            write_count(entries.len(), out);
            for (key, item) in entries {
                write_blob(key.as_bytes(), out);
                write_datum(item, out);
            }
            end_blocks(entries.len(), out);
        }
    }
}

/// A block count of zero already ends the list, so an empty one is written once.
fn end_blocks(len: usize, out: &mut Vec<u8>) {
    if len > 0 {
        write_long(0, out);
    }
}

fn write_count(len: usize, out: &mut Vec<u8>) {
    write_long(i64::try_from(len).expect("a length fits in i64"), out);
}

fn write_blob(bytes: &[u8], out: &mut Vec<u8>) {
    write_count(bytes.len(), out);
    out.extend_from_slice(bytes);
}

fn write_long(n: i64, out: &mut Vec<u8>) {
    // Zig-zag: the sign moves to the lowest bit, so small negatives stay short.
    let mut rest = ((n << 1) ^ (n >> 63)).cast_unsigned();
    loop {
        let low = u8::try_from(rest & 0x7F).expect("seven bits");
        rest >>= 7;
        if rest == 0 {
            out.push(low);
            return;
        }
        out.push(low | 0x80);
    }
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8], DecodeError> {
        let (head, tail) = self
            .rest
            .split_at_checked(n)
            .ok_or(DecodeError::InvalidValue)?;
        self.rest = tail;
        Ok(head)
    }

    fn byte(&mut self) -> Result<u8, DecodeError> {
        Ok(self.take(1)?[0])
    }

    fn long(&mut self) -> Result<i64, DecodeError> {
        let mut raw: u64 = 0;
        for shift in (0..70).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7F);
            // The tenth byte has room for one bit only.
            if shift == 63 && bits > 1 {
                return Err(DecodeError::InvalidValue);
            }
            raw |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok((raw >> 1).cast_signed() ^ -(raw & 1).cast_signed());
            }
        }
        Err(DecodeError::InvalidValue)
    }

    fn blob(&mut self) -> Result<&'a [u8], DecodeError> {
        let len = usize::try_from(self.long()?).map_err(|_| DecodeError::InvalidValue)?;
        self.take(len)
    }

    fn text(&mut self) -> Result<String, DecodeError> {
        std::str::from_utf8(self.blob()?)
            .map(str::to_owned)
            .map_err(|_| DecodeError::InvalidValue)
    }

    fn datum(&mut self, depth: usize) -> Result<Value, DecodeError> {
        if depth > MAX_DEPTH {
            return Err(DecodeError::TooDeep);
        }
        Ok(match self.long()? {
            0 => Value::Null,
            1 => match self.byte()? {
                0 => Value::Bool(false),
                1 => Value::Bool(true),
                _ => return Err(DecodeError::InvalidValue),
            },
            2 => Value::Long(self.long()?),
            3 => {
                let raw = self.take(8)?.try_into().expect("eight bytes were taken");
                let number = f64::from_le_bytes(raw);
                if !number.is_finite() {
                    return Err(DecodeError::InvalidValue);
                }
                Value::Double(number)
            }
            4 => Value::Bytes(self.blob()?.to_vec()),
            5 => Value::String(self.text()?),
            6 => {
                let mut items = Vec::new();
                self.blocks(|reader| {
                    items.push(reader.datum(depth + 1)?);
                    Ok(())
                })?;
                Value::Array(items)
            }
            7 => {
                let mut entries = Vec::new();
                self.blocks(|reader| {
                    entries.push((reader.text()?, reader.datum(depth + 1)?));
                    Ok(())
                })?;
                Value::Map(entries)
            }
            _ => return Err(DecodeError::InvalidValue),
        })
    }

    /// Reads blocks until the one of count zero. Every item takes at least one byte, so a lying
    /// count runs into the end of the input instead of into memory.
    fn blocks(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<(), DecodeError>,
    ) -> Result<(), DecodeError> {
        loop {
            let count = self.long()?;
            if count == 0 {
                return Ok(());
            }
            if count < 0 {
                self.long()?; // byte size of the block, for readers that skip
            }
            for _ in 0..count.unsigned_abs() {
                item(self)?;
            }
        }
    }
}

/// How the engine shows a decoded value: bytes as a marked base64 object, a map that no PHP array
/// can be by its pairs.
impl From<&Value> for serde_json::Value {
    fn from(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(b) => Self::Bool(*b),
            Value::Long(n) => (*n).into(),
            Value::Double(d) => (*d).into(),
            Value::Bytes(bytes) => {
                serde_json::json!({"$type": "bytes", "base64": STANDARD.encode(bytes)})
            }
            Value::String(text) => text.as_str().into(),
            Value::Array(items) => items.iter().map(Self::from).collect(),
            Value::Map(entries) => {
                // A key that is there twice has the last value, where the first one stood.
                let map: serde_json::Map<String, Self> = entries
                    .iter()
                    .map(|(key, item)| (key.clone(), Self::from(item)))
                    .collect();
                if !map.is_empty() && !map.keys().any(|key| is_integer(key)) {
                    return Self::Object(map);
                }
                let pair = |(key, value)| serde_json::json!([key, value]);
                let pairs: Vec<Self> = map.into_iter().map(pair).collect();
                serde_json::json!({"pairs": pairs})
            }
        }
    }
}

/// Whether PHP makes an integer of an array's key.
fn is_integer(key: &str) -> bool {
    key.parse::<i64>()
        .is_ok_and(|number| number.to_string() == key)
}

/// Plain JSON as the engine would store it. An empty object has no PHP form of its own: it is
/// an empty array there, hence here.
impl From<&serde_json::Value> for Value {
    fn from(json: &serde_json::Value) -> Self {
        match json {
            serde_json::Value::Null => Self::Null,
            serde_json::Value::Bool(b) => Self::Bool(*b),
            serde_json::Value::Number(n) => n.as_i64().map_or_else(
                || Self::Double(n.as_f64().expect("JSON numbers are finite")),
                Self::Long,
            ),
            serde_json::Value::String(text) => Self::String(text.clone()),
            serde_json::Value::Array(items) => Self::Array(items.iter().map(Self::from).collect()),
            serde_json::Value::Object(entries) if entries.is_empty() => Self::Array(Vec::new()),
            serde_json::Value::Object(entries) => Self::Map(
                entries
                    .iter()
                    .map(|(key, item)| (key.clone(), Self::from(item)))
                    .collect(),
            ),
        }
    }
}

#[cfg(test)]
mod tests;
