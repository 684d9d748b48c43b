//! A column of a row that holds what people or workflows wrote, to be replaced in place.

use serde_json::Value;

use super::loose::Raw;
use crate::{db::Json, durable::payload};

#[derive(Debug)]
pub enum Column<'r> {
    Text(&'r mut String),
    Maybe(&'r mut Option<String>),
    Json(&'r mut Option<Json>),
    Raw(&'r mut Raw),
}

impl Column<'_> {
    /// What it holds, as an export would carry it.
    pub fn value(&self) -> Value {
        let carried = match self {
            Self::Text(text) => payload::stored(Some(text)),
            Self::Maybe(text) => payload::stored(text.as_deref()),
            Self::Json(None) => None,
            Self::Json(Some(Json::Value(value))) => Some(value.clone()),
            Self::Json(Some(Json::Malformed(text))) => Some(text.as_str().into()),
            Self::Raw(raw) => match raw.value() {
                Some(value) => Some(value),
                None => raw.0.as_deref().map(Value::from),
            },
        };
        carried.unwrap_or_default()
    }

    /// Puts in its place what is left of it.
    pub fn set(self, left: Value) {
        match self {
            Self::Text(text) => *text = payload::restored(&left).unwrap_or_default(),
            Self::Maybe(text) => *text = payload::restored(&left),
            Self::Json(json) => *json = (!left.is_null()).then_some(Json::Value(left)),
            Self::Raw(raw) => *raw = Raw::of_value(&left),
        }
    }
}
