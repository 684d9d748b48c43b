//! The engine's one value codec, and what may be shown of a payload.
//!
//! Nothing here resolves a class, fetches a URI or runs what it decodes.

pub mod avro;
pub mod closure;

use base64::Engine as _;
use serde_json::Value;

use super::php;

/// How a stored reference to a payload kept elsewhere begins.
const REFERENCE: &str = "dw-external-payload:v1:";

/// What a payload column or key holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Payload {
    /// Null or empty.
    None,
    /// Decoded; bytes are `{"$type":"bytes","base64":…}`.
    Value(Value),
    /// Kept elsewhere: the envelope that says where. Never fetched.
    Reference(Value),
    /// Hidden by a policy: the note in its place.
    Hidden(Value),
    /// Not decodable: why, and the text as it is.
    Raw { reason: String, text: String },
}

impl Payload {
    /// The decoded value, the envelope or the note; nothing else counts.
    pub fn known(self) -> Option<Value> {
        match self {
            Self::Value(value) | Self::Reference(value) | Self::Hidden(value) => Some(value),
            Self::None | Self::Raw { .. } => None,
        }
    }

    /// What the engine's JSON shows: the value, the envelope, or the text nobody could decode.
    pub fn preview(self) -> Option<Value> {
        match self {
            Self::None => None,
            Self::Value(value) | Self::Reference(value) | Self::Hidden(value) => Some(value),
            Self::Raw { text, .. } => Some(Value::String(text)),
        }
    }
}

/// Whether stored text only says where the payload is kept.
pub fn is_reference(text: &str) -> bool {
    text.starts_with(REFERENCE)
}

/// Decodes stored text. A missing codec is `avro`; bytes are never sniffed.
pub fn decode(codec: Option<&str>, text: Option<&str>) -> Payload {
    let Some(text) = text.filter(|text| !text.is_empty()) else {
        return Payload::None;
    };
    let raw = |reason: String| Payload::Raw {
        reason,
        text: text.to_owned(),
    };
    if let Some(envelope) = text.strip_prefix(REFERENCE) {
        return match envelope_of(envelope) {
            Some(envelope) => Payload::Reference(envelope),
            None => raw("invalid_external_reference".into()),
        };
    }
    if let Some(note) = text.strip_prefix('{').and_then(|_| hidden_note(text)) {
        return Payload::Hidden(note);
    }
    match codec {
        None | Some("" | "avro") => match avro::decode(text) {
            Ok(value) => Payload::Value(Value::from(&value)),
            Err(error) => raw(error.code()),
        },
        Some(other) => raw(format!("unsupported codec {other}")),
    }
}

/// Decodes a payload value of an event: encoded text, a reference already opened, or an object
/// that carries its own codec.
pub fn decode_value(codec: Option<&str>, value: &Value) -> Payload {
    match value {
        Value::Null => Payload::None,
        Value::String(text) => decode(codec, Some(text)),
        Value::Object(map) if map.contains_key("external_storage") => {
            Payload::Reference(value.clone())
        }
        Value::Object(_) if is_hidden(value) => Payload::Hidden(value.clone()),
        Value::Object(map) => match map.get("blob").and_then(Value::as_str) {
            Some(blob) => decode(map.get("codec").and_then(Value::as_str), Some(blob)),
            None => Payload::Raw {
                reason: "not a payload".into(),
                text: value.to_string(),
            },
        },
        other => Payload::Raw {
            reason: "not a payload".into(),
            text: other.to_string(),
        },
    }
}

/// Whether this is the note that a policy leaves where it hid a value.
pub fn is_hidden(value: &Value) -> bool {
    let Some(map) = value.as_object() else {
        return false;
    };
    map.get("redacted") == Some(&Value::Bool(true))
        && map.contains_key("path")
        && map.contains_key("category")
        && map
            .keys()
            .all(|key| ["redacted", "path", "category", "sha256"].contains(&key.as_str()))
}

/// Categories of what is read as text: in its place a note would be read as nothing.
const TEXTS: [&str; 3] = ["command_context", "command_reason", "failure_diagnostic"];

/// Whether it is the note of something that may have been text.
pub fn is_hidden_text(value: &Value) -> bool {
    let category = value.get("category").and_then(Value::as_str);
    category.is_some_and(|category| TEXTS.contains(&category)) && is_hidden(value)
}

/// What is read in place of a hidden text.
pub fn hidden_text(note: &Value) -> String {
    /// Enough to tell two texts apart.
    const DIGITS: usize = 12;
    let digest = note.get("sha256").and_then(Value::as_str);
    match digest.and_then(|digest| digest.get(..DIGITS)) {
        Some(digest) => format!("[hidden, sha256 {digest}…]"),
        None => "[hidden]".to_owned(),
    }
}

fn hidden_note(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok().filter(is_hidden)
}

/// A payload column as an export carries it: still encoded, a reference as its envelope.
pub fn stored(text: Option<&str>) -> Option<Value> {
    let text = text.filter(|text| !text.is_empty())?;
    let envelope = text.strip_prefix(REFERENCE).and_then(envelope_of);
    Some(envelope.unwrap_or_else(|| Value::String(text.to_owned())))
}

/// The column an export was made of, from what it carries.
pub fn restored(carried: &Value) -> Option<String> {
    match carried {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Object(map) if map.contains_key("external_storage") => {
            let envelope = base64::engine::general_purpose::STANDARD.encode(carried.to_string());
            Some(format!("{REFERENCE}{envelope}"))
        }
        other => Some(other.to_string()),
    }
}

/// A value of an event with every stored reference in it replaced by its envelope.
pub fn opened(value: Value) -> Value {
    match value {
        Value::String(text) if is_reference(&text) => {
            stored(Some(&text)).unwrap_or(Value::String(text))
        }
        Value::Array(items) => items.into_iter().map(opened).collect(),
        Value::Object(map) => Value::Object(
            map.into_iter()
                .map(|(key, value)| (key, opened(value)))
                .collect(),
        ),
        other => other,
    }
}

/// Whether JSON may hold a reference that is to be opened. A letter may be written as an escape,
/// and then nothing is known of the text.
pub fn may_refer(json: &str) -> bool {
    json.contains(REFERENCE) || json.contains("\\u00")
}

/// The stored text that says where a payload is kept, from its envelope.
pub fn reference(envelope: &str) -> String {
    let text = base64::engine::general_purpose::STANDARD.encode(envelope);
    format!("{REFERENCE}{text}")
}

fn envelope_of(text: &str) -> Option<Value> {
    let bytes = php::base64(text)?;
    serde_json::from_slice(&bytes).ok().filter(Value::is_object)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_missing_codec_is_avro_and_another_is_opaque() {
        assert_eq!(
            decode(None, Some("wwHioz3/VYAiNwQO")),
            Payload::Value(json!(7))
        );
        assert_eq!(
            decode(Some(""), Some("wwHioz3/VYAiNwIB")),
            Payload::Value(json!(true))
        );
        assert!(matches!(
            decode(Some("json"), Some("{}")),
            Payload::Raw { .. }
        ));
        assert!(matches!(decode(None, Some("{}")), Payload::Raw { .. }));
        assert_eq!(decode(None, Some("")), Payload::None);
    }

    #[test]
    fn a_reference_is_shown_and_never_followed() {
        let envelope = json!({"codec": "avro", "external_storage": {"uri": "s3://x"}});
        let text = base64::engine::general_purpose::STANDARD.encode(envelope.to_string());
        assert_eq!(
            decode(None, Some(&format!("{REFERENCE}{text}"))),
            Payload::Reference(envelope.clone())
        );
        assert_eq!(decode_value(None, &envelope), Payload::Reference(envelope));
    }

    #[test]
    fn what_a_policy_hid_is_told_from_what_cannot_be_decoded() {
        let note =
            json!({"redacted": true, "path": "updates.0.result", "category": "update_payload"});
        assert_eq!(
            decode(None, Some(&note.to_string())),
            Payload::Hidden(note.clone())
        );
        assert_eq!(decode_value(Some("json"), &note), Payload::Hidden(note));
        let other = json!({"redacted": true, "path": "p", "category": "c", "more": 1});
        assert!(matches!(
            decode(None, Some(&other.to_string())),
            Payload::Raw { .. }
        ));
    }

    #[test]
    fn an_event_value_may_carry_its_own_codec() {
        let value = json!({"codec": "avro", "blob": "wwHioz3/VYAiNwQO"});
        assert_eq!(decode_value(Some("json"), &value), Payload::Value(json!(7)));
    }
}
