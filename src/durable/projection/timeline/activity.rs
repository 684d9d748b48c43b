//! The activity an event is about, as it stood then.

use std::borrow::Cow;

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::{Words, filled};
use crate::durable::{
    projection::{
        context::ts,
        failures::Failure,
        parallel::GroupStep,
        policies::{Policies, RetryPolicy},
        progress::Progress,
    },
    stored::{
        EventType, ExecutionRow, HistoryEvent,
        loose::Verbatim,
        payloads::timeline::{ActivitySnapshot, TimelineEvent},
    },
};

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Activity<'a> {
    pub id: Words<'a>,
    pub idempotency_key: Words<'a>,
    pub sequence: Option<i64>,
    #[serde(rename = "type")]
    pub activity_type: Words<'a>,
    pub class: Words<'a>,
    pub parallel_group_path: Vec<GroupStep>,
    pub attempt_id: Words<'a>,
    pub status: Words<'a>,
    pub attempt_count: i64,
    pub retry_policy: Option<RetryPolicy>,
    pub connection: Words<'a>,
    pub queue: Words<'a>,
    #[serde(serialize_with = "ts")]
    pub started_at: Option<DateTime<Utc>>,
    #[serde(serialize_with = "ts")]
    pub closed_at: Option<DateTime<Utc>>,
    #[serde(serialize_with = "ts")]
    pub last_heartbeat_at: Option<DateTime<Utc>>,
    pub last_heartbeat_progress: Option<Progress>,
}

impl<'a> Activity<'a> {
    pub(super) fn of(
        event: &HistoryEvent,
        told: &TimelineEvent<'a>,
        row: Option<&'a ExecutionRow>,
        failure: Option<&'a Failure>,
        group_path: &[GroupStep],
        policies: &mut Policies,
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
                .and_then(|failure| failure.source_id.as_deref().map(Cow::Borrowed))
        });
        let status = kept
            .status
            .0
            .clone()
            .or_else(|| status(&event.event_type).map(Cow::Borrowed));
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
                .or_else(|| row.map(|row| row.activity_type.as_str().into())),
            class: kept
                .class
                .0
                .clone()
                .or_else(|| told.activity_class.0.clone())
                .or_else(|| row.map(|row| row.activity_class.as_str().into())),
            parallel_group_path: group_path.to_vec(),
            // The row knows the attempt of now; when scheduled there was none.
            attempt_id: kept.attempt_id.0.clone().or_else(|| {
                row.filter(|_| !scheduled)
                    .and_then(|row| filled(row.current_attempt_id.as_deref()))
            }),
            status: status.or_else(|| row.map(|row| row.status.as_str().into())),
            retry_policy: policies
                .get(kept.retry_policy.collection())
                .or_else(|| policies.get(told.retry_policy.collection()))
                .or_else(|| policies.get(Verbatim::of(&row?.retry_policy))),
            connection: kept
                .connection
                .0
                .clone()
                .or_else(|| row.and_then(|row| row.connection.as_deref().map(Cow::Borrowed))),
            queue: kept
                .queue
                .0
                .clone()
                .or_else(|| row.and_then(|row| row.queue.as_deref().map(Cow::Borrowed))),
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
            last_heartbeat_progress: Progress::of(kept.last_heartbeat_progress.as_ref())
                .or_else(|| Progress::of(told.progress.as_ref())),
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
    told: &TimelineEvent<'_>,
    kept: &ActivitySnapshot<'_>,
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
