//! The activity an event is about, as it stood then.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::durable::{
    projection::{context::ts, failures::Failure, parallel::GroupStep},
    stored::{
        EventType, ExecutionRow, HistoryEvent,
        payloads::timeline::{ActivitySnapshot, TimelineEvent},
    },
};

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Activity {
    pub id: Option<String>,
    pub idempotency_key: Option<String>,
    pub sequence: Option<i64>,
    #[serde(rename = "type")]
    pub activity_type: Option<String>,
    pub class: Option<String>,
    pub parallel_group_path: Vec<GroupStep>,
    pub attempt_id: Option<String>,
    pub status: Option<String>,
    pub attempt_count: i64,
    pub retry_policy: Option<Value>,
    pub connection: Option<String>,
    pub queue: Option<String>,
    #[serde(serialize_with = "ts")]
    pub started_at: Option<DateTime<Utc>>,
    #[serde(serialize_with = "ts")]
    pub closed_at: Option<DateTime<Utc>>,
    #[serde(serialize_with = "ts")]
    pub last_heartbeat_at: Option<DateTime<Utc>>,
    pub last_heartbeat_progress: Option<Value>,
}

impl Activity {
    pub(super) fn of(
        event: &HistoryEvent,
        told: &TimelineEvent,
        row: Option<&ExecutionRow>,
        failure: Option<&Failure>,
        group_path: &[GroupStep],
    ) -> Option<Self> {
        let none = ActivitySnapshot::default();
        let kept = told.activity.as_deref();
        let says_something = kept.is_some_and(|kept| *kept != none)
            || told.activity_execution_id.is_some()
            || told.activity_type.present
            || told.activity_class.present;
        if !says_something {
            return None;
        }
        let kept = kept.unwrap_or(&none);
        let scheduled = event.event_type == EventType::ActivityScheduled;
        let resolved = told.activity_execution_id.0.clone().or_else(|| {
            failure
                .filter(|failure| failure.source_kind.as_deref() == Some("activity_execution"))
                .and_then(|failure| failure.source_id.clone())
        });
        let status = kept
            .status
            .0
            .clone()
            .or_else(|| status(&event.event_type).map(str::to_owned));
        let began = kept.started_at.or(event
            .recorded_at
            .filter(|_| event.event_type == EventType::ActivityStarted));
        Some(Self {
            attempt_count: attempt_count(
                &event.event_type,
                told,
                kept,
                status.as_deref(),
                began.is_some(),
            ),
            id: kept.id.0.clone().or_else(|| resolved.clone()),
            idempotency_key: kept
                .idempotency_key
                .0
                .clone()
                .or_else(|| told.idempotency_key.0.clone())
                .or(resolved),
            sequence: kept
                .sequence
                .strict()
                .or_else(|| told.sequence.strict())
                .or_else(|| row.map(|row| row.sequence))
                .or_else(|| told.sequence.get()),
            activity_type: kept
                .activity_type
                .0
                .clone()
                .or_else(|| told.activity_type.0.clone())
                .or_else(|| row.map(|row| row.activity_type.clone())),
            class: kept
                .class
                .0
                .clone()
                .or_else(|| told.activity_class.0.clone())
                .or_else(|| row.map(|row| row.activity_class.clone())),
            parallel_group_path: group_path.to_vec(),
            // The row knows the attempt of now; when scheduled there was none.
            attempt_id: kept.attempt_id.0.clone().or_else(|| {
                row.filter(|_| !scheduled)
                    .and_then(|row| row.current_attempt_id.clone())
                    .filter(|id| !id.is_empty())
            }),
            status: status.or_else(|| row.map(|row| row.status.as_str().to_owned())),
            retry_policy: container(kept.retry_policy.as_ref())
                .or_else(|| container(told.retry_policy.as_ref()))
                .or_else(|| row?.retry_policy.value()),
            connection: kept
                .connection
                .0
                .clone()
                .or_else(|| row.and_then(|row| row.connection.clone())),
            queue: kept
                .queue
                .0
                .clone()
                .or_else(|| row.and_then(|row| row.queue.clone())),
            started_at: if scheduled {
                None
            } else {
                began.or_else(|| row.and_then(|row| row.started_at))
            },
            closed_at: if closes(&event.event_type) {
                kept.closed_at
                    .or(event.recorded_at)
                    .or_else(|| row.and_then(|row| row.closed_at))
            } else {
                None
            },
            last_heartbeat_at: kept
                .last_heartbeat_at
                .or_else(|| row.and_then(|row| row.last_heartbeat_at)),
            last_heartbeat_progress: progress(kept.last_heartbeat_progress.as_ref())
                .or_else(|| progress(told.progress.as_ref())),
        })
    }
}

fn status(event_type: &EventType) -> Option<&'static str> {
    use EventType as E;
    match event_type {
        E::ActivityScheduled | E::ActivityRetryScheduled => Some("pending"),
        E::ActivityStarted | E::ActivityHeartbeatRecorded => Some("running"),
        E::ActivityCompleted => Some("completed"),
        E::ActivityFailed | E::ActivityTimedOut => Some("failed"),
        E::ActivityCancelled => Some("cancelled"),
        _ => None,
    }
}

fn closes(event_type: &EventType) -> bool {
    use EventType as E;
    matches!(
        event_type,
        E::ActivityCompleted | E::ActivityFailed | E::ActivityCancelled | E::ActivityTimedOut
    )
}

/// Attempts begun so far. Rows count the first attempt before it begins; history does not.
fn attempt_count(
    event_type: &EventType,
    told: &TimelineEvent,
    kept: &ActivitySnapshot,
    status: Option<&str>,
    began: bool,
) -> i64 {
    use EventType as E;
    let carried = matches!(
        event_type,
        E::ActivityStarted
            | E::ActivityHeartbeatRecorded
            | E::ActivityRetryScheduled
            | E::ActivityCompleted
            | E::ActivityFailed
            | E::ActivityCancelled
            | E::ActivityTimedOut
    );
    let count = told
        .task
        .as_deref()
        .filter(|_| carried)
        .and_then(|task| task.attempt_count.strict())
        .or_else(|| kept.attempt_count.strict());
    let not_begun = *event_type == E::ActivityScheduled || (status == Some("pending") && !began);
    if not_begun && count.is_none_or(|count| count <= 1) {
        return 0;
    }
    count.filter(|count| *count > 0).unwrap_or(1)
}

fn container(value: Option<&Value>) -> Option<Value> {
    value
        .filter(|value| value.is_object() || value.is_array())
        .cloned()
}

/// Most characters of a progress message, of its unit, and of a detail.
const MESSAGE: usize = 280;
const UNIT: usize = 64;
const DETAIL: usize = 191;

/// A heartbeat's progress with only what the engine itself would show of it.
fn progress(stored: Option<&Value>) -> Option<Value> {
    let stored = stored?.as_object()?;
    let mut out = Map::new();
    let text = |key: &str, most| short_text(stored.get(key)?, most).map(Value::from);
    let number = |key: &str| amount(stored.get(key)?);
    let (current, total) = (number("current"), number("total"));
    let counts = current.is_some() || total.is_some();
    let details: Map<String, Value> = stored
        .get("details")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter(|(key, _)| is_detail_key(key))
        .filter_map(|(key, value)| Some((key.clone(), detail(value)?)))
        .collect();
    for (key, value) in [
        ("message", text("message", MESSAGE)),
        ("current", current),
        ("total", total),
        ("unit", text("unit", UNIT).filter(|_| counts)),
        (
            "details",
            (!details.is_empty()).then_some(Value::Object(details)),
        ),
    ] {
        if let Some(value) = value {
            out.insert(key.to_owned(), value);
        }
    }
    (!out.is_empty()).then_some(Value::Object(out))
}

fn short_text(value: &Value, most: usize) -> Option<String> {
    let text = value.as_str()?.trim();
    (!text.is_empty() && text.chars().count() <= most).then(|| text.to_owned())
}

fn amount(value: &Value) -> Option<Value> {
    let value = match value {
        Value::String(text) => {
            let text = text.trim();
            text.parse::<i64>()
                .map(Value::from)
                .or_else(|_| text.parse::<f64>().map(Value::from))
                .ok()?
        }
        other => other.clone(),
    };
    (value.as_f64()? >= 0.0).then(|| whole(&value))
}

/// A float without a fraction is shown as the integer it is.
fn whole(value: &Value) -> Value {
    match value.as_f64() {
        #[expect(clippy::cast_possible_truncation, reason = "checked to be in range")]
        Some(float) if value.is_f64() && float.fract() == 0.0 && float.abs() < 9.0e15 => {
            Value::from(float as i64)
        }
        _ => value.clone(),
    }
}

fn is_detail_key(key: &str) -> bool {
    (1..=64).contains(&key.len())
        && key
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_.:-".contains(&byte))
}

fn detail(value: &Value) -> Option<Value> {
    match value {
        Value::Null | Value::Bool(_) => Some(value.clone()),
        Value::Number(_) => Some(whole(value)),
        Value::String(_) => short_text(value, DETAIL).map(Value::from),
        Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn progress_keeps_only_what_may_be_shown() {
        for (stored, shown) in [
            (json!([]), None),
            (json!({"unit": "rows"}), None),
            (
                json!({"message": " copying ", "current": "3", "total": 10.0, "unit": "rows"}),
                Some(json!({"message": "copying", "current": 3, "total": 10, "unit": "rows"})),
            ),
            (json!({"current": -1, "message": 7}), None),
            (
                json!({"details": {"ok": true, "bad key": 1, "list": [1], "half": 0.5}}),
                Some(json!({"details": {"ok": true, "half": 0.5}})),
            ),
        ] {
            assert_eq!(progress(Some(&stored)), shown, "{stored}");
        }
    }
}
