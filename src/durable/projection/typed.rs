//! Arguments and results as the engine's JSON shows them: text decoded, all else as it stands.

use serde_json::Value;

use crate::durable::payload::{self, Payload};

/// A typed value, and whether there is one at all: null is a value too.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Typed {
    pub available: bool,
    pub shown: Option<Value>,
}

impl Typed {
    pub fn of_text(codec: Option<&str>, text: Option<&str>) -> Self {
        Self {
            available: text.is_some(),
            shown: match payload::decode(codec, text) {
                // Not null and not a payload: the text as it is.
                Payload::None => text.map(Value::from),
                payload => payload.preview(),
            },
        }
    }

    /// Of an event's key.
    pub fn of_value(codec: Option<&str>, value: Option<&Value>) -> Self {
        match value {
            Some(Value::String(text)) => Self::of_text(codec, Some(text)),
            Some(other) => Self {
                available: payload::is_hidden(other)
                    || other
                        .get("external_storage")
                        .is_some_and(|kept| kept.is_object() || kept.is_array()),
                shown: Some(other.clone()),
            },
            None => Self::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_text_and_a_reference_count_as_available() {
        let note = json!({"redacted": true, "path": "p", "category": "update_payload"});
        let kept = json!({"codec": "avro", "external_storage": {"uri": "s3://x"}});
        for (what, value, available, shown) in [
            ("no key", None, false, None),
            (
                "encoded",
                Some(json!("wwHioz3/VYAiNwQO")),
                true,
                Some(json!(7)),
            ),
            ("empty text", Some(json!("")), true, Some(json!(""))),
            ("not decodable", Some(json!("x")), true, Some(json!("x"))),
            ("kept elsewhere", Some(kept.clone()), true, Some(kept)),
            ("a plain list", Some(json!([1])), false, Some(json!([1]))),
            ("hidden", Some(note.clone()), true, Some(note)),
        ] {
            let typed = Typed::of_value(None, value.as_ref());
            assert_eq!((typed.available, typed.shown), (available, shown), "{what}");
        }
    }
}
