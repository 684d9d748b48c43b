//! Serialized PHP closures among decoded values. The engine keeps some steps of its own as signed
//! code in bytes; nobody reads them on a page, and what is in them is not for its readers.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// How the bytes of one begin.
const PREFIX: &[u8] = b"durable-workflow.internal.async-closure.v1\0";
/// Letters that hold the prefix, in whole groups of four.
const LETTERS: usize = PREFIX.len().div_ceil(3) * 4;
/// Enough of a digest to tell two of them apart.
const DIGITS: usize = 12;

/// The base64 text of a closure, if a decoded value is one.
fn text(value: &Value) -> Option<&str> {
    let is_bytes = value.get("$type").and_then(Value::as_str) == Some("bytes");
    let text = value.get("base64").filter(|_| is_bytes)?.as_str()?;
    let head = STANDARD.decode(text.get(..LETTERS)?).ok()?;
    head.starts_with(PREFIX).then_some(text)
}

/// Whether a decoded value is one.
pub fn is_closure(value: &Value) -> bool {
    text(value).is_some()
}

fn holds(value: &Value) -> bool {
    is_closure(value)
        || match value {
            Value::Array(items) => items.iter().any(holds),
            Value::Object(map) => map.values().any(holds),
            _ => false,
        }
}

/// A decoded value as a page may show it, with words in place of every closure; none when it
/// holds none.
pub fn hidden(value: &Value) -> Option<Value> {
    replaced(value, words)
}

/// The same where values are compared: two closures of a length stay two.
pub fn told_apart(value: &Value) -> Option<Value> {
    replaced(value, |text| {
        let bytes = STANDARD.decode(text).unwrap_or_default();
        let digest = Sha256::digest(bytes);
        let digits: String = digest
            .into_iter()
            .take(DIGITS / 2)
            .map(two_digits)
            .collect();
        format!("{}, sha256 {digits}…", words(text))
    })
}

fn two_digits(byte: u8) -> String {
    format!("{byte:02x}")
}

/// Says how long it is.
fn words(text: &str) -> String {
    let bytes = STANDARD.decode(text).map_or(0, |bytes| bytes.len());
    format!("PHP closure, {bytes} bytes")
}

fn replaced(value: &Value, words: impl Fn(&str) -> String) -> Option<Value> {
    holds(value).then(|| {
        let mut value = value.clone();
        replace(&mut value, &words);
        value
    })
}

fn replace(value: &mut Value, words: &impl Fn(&str) -> String) {
    if let Some(said) = text(value).map(words) {
        *value = Value::String(said);
        return;
    }
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, words)),
        Value::Object(map) => map.values_mut().for_each(|item| replace(item, words)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn bytes(of: &[u8]) -> Value {
        json!({"$type": "bytes", "base64": STANDARD.encode(of)})
    }

    #[test]
    fn a_closure_is_named_wherever_it_stands() {
        let closure = bytes(&[PREFIX, b"O:47:secret"].concat());
        let said = "PHP closure, 54 bytes";
        for (what, value, want) in [
            ("alone", closure.clone(), Some(json!(said))),
            (
                "shortest",
                bytes(PREFIX),
                Some(json!("PHP closure, 43 bytes")),
            ),
            (
                "inside",
                json!([1, {"do": [closure]}]),
                Some(json!([1, {"do": [said]}])),
            ),
            ("other bytes", bytes(b"durable-workflow.internal"), None),
            ("another version", bytes(&PREFIX[..42]), None),
            ("no bytes", json!({"base64": "ZHVyYWJs"}), None),
            ("no base64", json!({"$type": "bytes", "base64": 7}), None),
        ] {
            assert_eq!(hidden(&value), want, "{what}");
        }
    }

    #[test]
    fn two_closures_of_a_length_are_told_apart() {
        let of = |code: &[u8]| told_apart(&bytes(&[PREFIX, code].concat()));
        assert_eq!(of(b"one"), of(b"one"));
        assert_ne!(of(b"one"), of(b"two"));
    }
}
