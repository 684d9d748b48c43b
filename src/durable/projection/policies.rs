//! Retry policies as the engine snapped them: a run's activities have few, and every event, task
//! and row repeats its own.

use std::{collections::HashMap, ops::Deref, sync::Arc};

use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::durable::{canonical, stored::loose::Verbatim};

/// One value for all that have the same policy.
#[derive(Clone, Debug, PartialEq)]
pub struct RetryPolicy(Arc<Known>);

#[derive(Debug, PartialEq)]
struct Known {
    value: Value,
    canonical: Vec<u8>,
}

impl RetryPolicy {
    /// Its text in a bundle: every event of an activity repeats it there.
    pub fn canonical(&self) -> &[u8] {
        &self.0.canonical
    }
}

impl Deref for RetryPolicy {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.0.value
    }
}

impl From<Value> for RetryPolicy {
    fn from(value: Value) -> Self {
        let mut canonical = Vec::new();
        canonical::write(&mut canonical, &value);
        Self(Arc::new(Known { value, canonical }))
    }
}

impl Serialize for RetryPolicy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.value.serialize(serializer)
    }
}

/// Policies by their text, each read once.
#[derive(Debug, Default)]
pub(super) struct Policies(HashMap<Box<str>, Option<RetryPolicy>>);

impl Policies {
    /// None where there is none, or none that can be read.
    pub fn get(&mut self, written: Verbatim<'_>) -> Option<RetryPolicy> {
        let text = written.0?;
        if let Some(known) = self.0.get(text) {
            return known.clone();
        }
        let read = written.value().filter(|value| !value.is_null());
        let read = read.map(RetryPolicy::from);
        self.0.insert(text.into(), read.clone());
        read
    }
}
