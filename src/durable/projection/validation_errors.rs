//! Why a signal or an update was refused: messages by argument.

use serde_json::{Map, Value};

use crate::{db::Json, durable::php::is_position};

/// Of a column; what is not JSON has none.
pub fn of_column(stored: Option<&Json>) -> Value {
    match stored {
        Some(Json::Value(value)) => of(Some(value)),
        Some(Json::Malformed(_)) | None => none(),
    }
}

/// Only names with a list of sentences count, as the engine reads them.
pub fn of(stored: Option<&Value>) -> Value {
    let Some(Value::Object(arguments)) = stored else {
        return none();
    };
    let kept: Map<String, Value> = arguments
        .iter()
        .filter(|(name, _)| !is_position(name))
        .filter_map(|(name, messages)| {
            let messages = sentences(messages)?;
            (!messages.is_empty()).then(|| (name.clone(), messages.into()))
        })
        .collect();
    if kept.is_empty() {
        none()
    } else {
        Value::Object(kept)
    }
}

pub fn is_none(errors: &Value) -> bool {
    *errors == none()
}

/// PHP writes an empty map as a list.
fn none() -> Value {
    Value::Array(Vec::new())
}

fn sentences(messages: &Value) -> Option<Vec<Value>> {
    let said = |message: &&Value| message.as_str().is_some_and(|text| !text.is_empty());
    match messages {
        Value::Array(list) => Some(list.iter().filter(said).cloned().collect()),
        Value::Object(map) => Some(map.values().filter(said).cloned().collect()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_named_lists_of_sentences_are_errors() {
        for (what, stored, want) in [
            ("nothing", None, json!([])),
            ("an empty map", Some(json!([])), json!([])),
            (
                "messages",
                Some(json!({"by": ["is missing", ""], "at": ["", 7]})),
                json!({"by": ["is missing"]}),
            ),
            (
                "messages by rule",
                Some(json!({"by": {"required": "is missing"}})),
                json!({"by": ["is missing"]}),
            ),
            ("a sentence alone", Some(json!({"by": "no"})), json!([])),
            (
                "positions",
                Some(json!({"0": ["no"], "-1": ["no"]})),
                json!([]),
            ),
            (
                "names of digits",
                Some(json!({"007": ["no"], "+1": ["no"]})),
                json!({"007": ["no"], "+1": ["no"]}),
            ),
            ("a list", Some(json!([["no"]])), json!([])),
        ] {
            assert_eq!(of(stored.as_ref()), want, "{what}");
        }
    }
}
