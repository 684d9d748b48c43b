//! The timer an event is about.

use std::borrow::Cow;

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::Words;
use crate::durable::{
    projection::context::ts,
    stored::{EventType, HistoryEvent, TimerRow, payloads::timeline::TimelineEvent},
};

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Timer<'a> {
    pub id: Words<'a>,
    pub sequence: Option<i64>,
    pub status: Words<'a>,
    pub delay_seconds: Option<i64>,
    #[serde(serialize_with = "ts")]
    pub fire_at: Option<DateTime<Utc>>,
    #[serde(serialize_with = "ts")]
    pub fired_at: Option<DateTime<Utc>>,
    #[serde(serialize_with = "ts")]
    pub cancelled_at: Option<DateTime<Utc>>,
}

impl<'a> Timer<'a> {
    pub(super) fn of(
        event: &HistoryEvent,
        told: &TimelineEvent<'a>,
        row: Option<&'a TimerRow>,
    ) -> Option<Self> {
        let says_something = told.timer_id.is_some()
            || told.delay_seconds.present
            || told.fire_at.present
            || told.fired_at.present
            || told.cancelled_at.present;
        if !says_something {
            return None;
        }
        let by_event = match event.event_type {
            EventType::TimerScheduled => Some("pending"),
            EventType::TimerFired => Some("fired"),
            EventType::TimerCancelled => Some("cancelled"),
            _ => None,
        };
        Some(Self {
            id: told.timer_id.0.clone(),
            sequence: told.sequence.get().or_else(|| row.map(|row| row.sequence)),
            status: by_event
                .map(Cow::Borrowed)
                .or_else(|| row.map(|row| row.status.as_str().into())),
            delay_seconds: told
                .delay_seconds
                .get()
                .or_else(|| row.map(|row| row.delay_seconds)),
            fire_at: told.fire_at.or_else(|| row.and_then(|row| row.fire_at)),
            // The row may have fired since; when scheduled it had not.
            fired_at: if event.event_type == EventType::TimerScheduled {
                None
            } else {
                told.fired_at.or_else(|| row.and_then(|row| row.fired_at))
            },
            cancelled_at: told
                .cancelled_at
                .filter(|_| event.event_type == EventType::TimerCancelled),
        })
    }
}
