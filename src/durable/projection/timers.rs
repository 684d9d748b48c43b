//! The timers of a run: what typed history says of each. A row fills what no event told, and
//! speaks for itself only when there is no event at all.

use std::borrow::Cow;

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::{
    activities::UNSUPPORTED,
    attempts::later,
    authority,
    context::{Context, millis, ts},
    keyed::Keyed,
    parallel::ParallelGroup,
};
use crate::durable::stored::{
    EventType, HistoryEvent, TimerRow, TimerStatus, payloads::timer::TimerEvent,
};

/// `timer_kind` of a timer that ends a wait for a condition.
pub const CONDITION_TIMEOUT: &str = "condition_timeout";
/// `timer_kind` of a timer that ends a wait for a signal.
pub const SIGNAL_TIMEOUT: &str = "signal_timeout";

/// One timer, with the engine's JSON keys.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Timer {
    pub id: String,
    pub sequence: Option<i64>,
    pub status: TimerStatus,
    pub source_status: TimerStatus,
    pub delay_seconds: Option<i64>,
    #[serde(serialize_with = "ts")]
    pub fire_at: Option<DateTime<Utc>>,
    #[serde(serialize_with = "ts")]
    pub fired_at: Option<DateTime<Utc>>,
    #[serde(serialize_with = "ts")]
    pub cancelled_at: Option<DateTime<Utc>>,
    #[serde(serialize_with = "ts")]
    pub created_at: Option<DateTime<Utc>>,
    /// None for a plain timer, else what it is the timeout of.
    pub timer_kind: Option<String>,
    pub condition_wait_id: Option<String>,
    pub condition_key: Option<String>,
    pub condition_definition_fingerprint: Option<String>,
    pub signal_wait_id: Option<String>,
    pub signal_name: Option<String>,
    #[serde(flatten)]
    pub group: ParallelGroup,
    pub history_authority: &'static str,
    pub diagnostic_only: bool,
    pub history_event_types: Vec<EventType>,
    pub history_unsupported_reason: Option<&'static str>,
    /// Whenever a row exists.
    pub row_status: Option<TimerStatus>,
}

impl Timer {
    /// It ends another wait instead of being one.
    pub fn is_timeout(&self) -> bool {
        matches!(
            self.timer_kind.as_deref(),
            Some(CONDITION_TIMEOUT | SIGNAL_TIMEOUT)
        )
    }

    pub(super) fn unheard_of(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            sequence: None,
            status: TimerStatus::Pending,
            source_status: TimerStatus::Pending,
            delay_seconds: None,
            fire_at: None,
            fired_at: None,
            cancelled_at: None,
            created_at: None,
            timer_kind: None,
            condition_wait_id: None,
            condition_key: None,
            condition_definition_fingerprint: None,
            signal_wait_id: None,
            signal_name: None,
            group: ParallelGroup::default(),
            history_authority: authority::TYPED,
            diagnostic_only: false,
            history_event_types: Vec::new(),
            history_unsupported_reason: None,
            row_status: None,
        }
    }

    fn of_row(row: &TimerRow) -> Self {
        let pending = row.status == TimerStatus::Pending;
        Self {
            sequence: Some(row.sequence),
            status: if pending {
                row.status.clone()
            } else {
                TimerStatus::from(UNSUPPORTED)
            },
            source_status: row.status.clone(),
            delay_seconds: Some(row.delay_seconds),
            fire_at: row.fire_at,
            fired_at: row.fired_at.filter(|_| pending),
            created_at: row.created_at,
            history_authority: if pending {
                authority::OPEN_FALLBACK
            } else {
                authority::UNSUPPORTED
            },
            diagnostic_only: true,
            history_unsupported_reason: (!pending).then_some(authority::TIMER_UNSUPPORTED),
            row_status: Some(row.status.clone()),
            ..Self::unheard_of(&row.id)
        }
    }

    fn overlay(&mut self, event: &HistoryEvent, status: &TimerStatus, payload: TimerEvent<'_>) {
        self.history_authority = authority::TYPED;
        self.diagnostic_only = false;
        self.history_unsupported_reason = None;
        if !self.history_event_types.contains(&event.event_type) {
            self.history_event_types.push(event.event_type.clone());
        }
        self.status = status.clone();
        self.source_status = status.clone();
        later(&mut self.sequence, payload.sequence.get());
        later(&mut self.delay_seconds, payload.delay_seconds.get());
        match status {
            TimerStatus::Fired => later(&mut self.fired_at, *payload.fired_at),
            TimerStatus::Cancelled => {
                later(&mut self.fire_at, *payload.fire_at);
                later(
                    &mut self.cancelled_at,
                    payload.cancelled_at.or(event.time()),
                );
            }
            _ => {
                later(&mut self.fire_at, *payload.fire_at);
                later(&mut self.created_at, event.time());
            }
        }
        let group = ParallelGroup::of_payload(&payload);
        if !group.parallel_group_path.is_empty() {
            self.group = group;
        }
        later(&mut self.timer_kind, payload.timer_kind.0);
        later(&mut self.condition_wait_id, payload.condition_wait_id.0);
        later(&mut self.condition_key, payload.condition_key.0);
        later(
            &mut self.condition_definition_fingerprint,
            payload.condition_definition_fingerprint.0,
        );
        later(&mut self.signal_wait_id, payload.signal_wait_id.0);
        later(&mut self.signal_name, payload.signal_name.0);
    }
}

/// All timers of the run, by sequence.
pub fn timers(cx: Context<'_>) -> Vec<Timer> {
    let snapshot = cx.snapshot;
    let mut timers: Keyed<'_, Timer> = Keyed::default();
    // A timer starts from its row, so that what the events leave out comes from there; a row
    // no event names stays as it is.
    for row in &snapshot.timers {
        timers.entry(Cow::Borrowed(&row.id), |_| Timer::of_row(row));
    }
    for event in &snapshot.events {
        let Some(status) = status_of(&event.event_type) else {
            continue;
        };
        let payload: TimerEvent<'_> = event.as_payload();
        if let Some(id) = payload.timer_id.0.clone() {
            timers
                .entry(id, |id| Timer::unheard_of(&id))
                .overlay(event, &status, payload);
        }
    }
    let mut timers: Vec<Timer> = timers.into_values().collect();
    timers.sort_by(|a, b| order(a).cmp(&order(b)));
    timers
}

/// None when it is no timer event.
fn status_of(event: &EventType) -> Option<TimerStatus> {
    Some(match event {
        EventType::TimerScheduled => TimerStatus::Pending,
        EventType::TimerFired => TimerStatus::Fired,
        EventType::TimerCancelled => TimerStatus::Cancelled,
        _ => return None,
    })
}

/// By sequence, then due time, then creation, then id; what is missing comes last.
pub fn order(timer: &Timer) -> (i64, i64, i64, &str) {
    (
        timer.sequence.unwrap_or(i64::MAX),
        timer.fire_at.map_or(i64::MAX, millis),
        timer.created_at.map_or(i64::MAX, millis),
        &timer.id,
    )
}
