//! How much a bundle may make of itself in memory: a short text can name a great many rows.

use serde_json::Value;

use crate::durable::export::source::ReadError;

/// No export has more cells than one for so many of its bytes: each is named.
const BYTES: u64 = 16;
/// What the shortest file may have.
const LEAST: u64 = 20_000;
/// An entry that becomes no row is looked at all the same.
pub(super) const ENTRY: usize = 8;

/// The cells the rest of a file may still become.
#[derive(Debug)]
pub(super) struct Room {
    left: u64,
    taken: u64,
    /// Where the section stands that is being read.
    pub at: u64,
}

impl Room {
    pub fn of(bytes: u64) -> Self {
        Self {
            left: bytes / BYTES + LEAST,
            taken: 0,
            at: 0,
        }
    }

    pub fn taken(&self) -> u64 {
        self.taken
    }

    pub fn take(&mut self, cells: usize) -> Result<(), ReadError> {
        let cells = cells as u64;
        self.left = self.left.checked_sub(cells).ok_or(ReadError::Json {
            at: self.at,
            reason: "more entries than a file of this length can have, in the section that begins",
        })?;
        self.taken += cells;
        Ok(())
    }

    /// JSON as a value, if there is room for it; what cannot be read is null.
    pub fn value(&mut self, json: &str) -> Result<Value, ReadError> {
        self.take(parts(json))?;
        Ok(serde_json::from_str(json).unwrap_or_default())
    }
}

/// How many values a JSON text has, and their keys; what stands in strings does not count.
pub(super) fn parts(json: &str) -> usize {
    let (mut count, mut quoted, mut escaped) = (1, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = quoted,
            b'"' => quoted = !quoted,
            b'[' | b'{' | b',' | b':' if !quoted => count += 1,
            _ => {}
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_counted_outside_of_strings() {
        for (json, want) in [
            ("7", 1),
            ("[]", 2),
            ("[1,2]", 3),
            (r#"{"a":[1],"b":"x,{[:\",,"}"#, 6),
            (r#"["\\",1]"#, 3),
        ] {
            assert_eq!(parts(json), want, "{json}");
        }
    }
}
