//! What a worker says of how far it is, as far as it may be shown: strangers wrote it.

use serde::Serialize;
use serde_json::{Map, Number, Value};

use crate::durable::{payload, php::is_position};

const MESSAGE: usize = 280;
const UNIT: usize = 64;
const DETAIL: usize = 191;
const DETAIL_KEY: usize = 64;

/// The valid parts of a heartbeat's progress; at least one is there.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Progress {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<Number>,
    /// Only with `current` or `total`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// By key; values are scalars or null.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub details: Map<String, Value>,
}

impl Progress {
    /// What is invalid is left out; none when nothing is left.
    pub fn of(stored: Option<&Value>) -> Option<Self> {
        let stored = stored?;
        if payload::is_hidden(stored) {
            return Some(Self {
                message: Some(payload::hidden_text(stored)),
                ..Self::default()
            });
        }
        let stored = stored.as_object()?;
        let text = |key: &str, limit| short(stored.get(key)?.as_str()?, limit);
        let number = |key: &str| amount(stored.get(key)?);
        let (current, total) = (number("current"), number("total"));
        let progress = Self {
            message: text("message", MESSAGE),
            unit: text("unit", UNIT).filter(|_| current.is_some() || total.is_some()),
            current,
            total,
            details: details(stored.get("details")),
        };
        (progress != Self::default()).then_some(progress)
    }
}

/// Trimmed as PHP trims; none when empty or too long.
fn short(text: &str, limit: usize) -> Option<String> {
    let text = text.trim_matches([' ', '\t', '\n', '\r', '\0', '\x0B']);
    (!text.is_empty() && text.chars().count() <= limit).then(|| text.to_owned())
}

/// A number from zero up; a quoted one counts.
fn amount(value: &Value) -> Option<Number> {
    let number = match value {
        Value::Number(number) => number.clone(),
        Value::String(text) => quoted(text.trim())?,
        _ => return None,
    };
    (number.as_f64()? >= 0.0).then(|| whole(&number))
}

fn quoted(text: &str) -> Option<Number> {
    let numeric = |c: char| c.is_ascii_digit() || "+-.eE".contains(c);
    if !text.chars().all(numeric) {
        return None;
    }
    match text.parse::<i64>() {
        Ok(int) => Some(int.into()),
        Err(_) => Number::from_f64(text.parse().ok()?),
    }
}

/// A float without a fraction is an integer.
fn whole(number: &Number) -> Number {
    // Above this a float no longer tells integers apart.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match number.as_f64() {
        Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() <= EXACT =>
        {
            #[expect(clippy::cast_possible_truncation, reason = "whole and in range")]
            Number::from(float as i64)
        }
        _ => number.clone(),
    }
}

fn details(stored: Option<&Value>) -> Map<String, Value> {
    let mut kept: Vec<(String, Value)> = stored
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter(|(key, _)| is_detail_key(key))
        .filter_map(|(key, value)| Some((key.clone(), detail(value)?)))
        .collect();
    kept.sort_by(|(a, _), (b, _)| a.cmp(b));
    kept.into_iter().collect()
}

fn is_detail_key(key: &str) -> bool {
    (1..=DETAIL_KEY).contains(&key.len())
        && key
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"_.:-".contains(&b))
        && !is_position(key)
}

fn detail(value: &Value) -> Option<Value> {
    match value {
        Value::Null | Value::Bool(_) => Some(value.clone()),
        Value::Number(number) => Some(Value::Number(whole(number))),
        Value::String(text) => short(text, DETAIL).map(Value::String),
        Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_valid_stays_and_the_rest_is_left_out() {
        for (stored, want) in [
            (
                json!({"message": " half way \n"}),
                json!({"message": "half way"}),
            ),
            (
                json!({"message": "x".repeat(281), "current": 3}),
                json!({"current": 3}),
            ),
            (
                json!({"current": 3.0, "total": "10", "unit": "rows"}),
                json!({"current": 3, "total": 10, "unit": "rows"}),
            ),
            (
                json!({"current": 2.5, "total": -1}),
                json!({"current": 2.5}),
            ),
            (json!({"unit": "rows"}), json!(null)),
            (json!({"current": "NaN", "total": "1e999"}), json!(null)),
            (
                json!({"details": {"b": 1.0, "a": "  x ", "bad key": 1, "7": 1, "list": [], "n": null, "e": ""}}),
                json!({"details": {"a": "x", "b": 1, "n": null}}),
            ),
            (json!({"details": [1, 2]}), json!(null)),
            (json!([]), json!(null)),
            (json!("half way"), json!(null)),
        ] {
            let got = Progress::of(Some(&stored));
            assert_eq!(json!(got), want, "{stored}");
        }
        assert_eq!(Progress::of(None), None);
    }
}
