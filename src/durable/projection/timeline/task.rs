//! The task that carried an event.

use std::borrow::Cow;

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::Words;
use crate::durable::{
    projection::context::ts,
    stored::{
        EventType, HistoryEvent, TaskRow,
        payloads::timeline::{TaskSnapshot, TimelineEvent},
    },
};

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Task<'a> {
    pub id: Words<'a>,
    #[serde(rename = "type")]
    pub task_type: Words<'a>,
    pub status: Words<'a>,
    #[serde(serialize_with = "ts")]
    pub available_at: Option<DateTime<Utc>>,
    #[serde(serialize_with = "ts")]
    pub leased_at: Option<DateTime<Utc>>,
    #[serde(serialize_with = "ts")]
    pub lease_expires_at: Option<DateTime<Utc>>,
    pub attempt_count: Option<i64>,
}

impl<'a> Task<'a> {
    pub(super) fn of(
        event: &'a HistoryEvent,
        told: &TimelineEvent<'a>,
        row: Option<&'a TaskRow>,
    ) -> Option<Self> {
        let none = TaskSnapshot::default();
        let kept = told.task.as_deref();
        if event.workflow_task_id.is_none() && kept.is_none() {
            return None;
        }
        let kept = kept.unwrap_or(&none);
        let id = event
            .workflow_task_id
            .as_deref()
            .map(Cow::Borrowed)
            .or_else(|| kept.id.0.clone());
        let stored_type = || {
            kept.task_type
                .0
                .clone()
                .or_else(|| row.map(|row| row.task_type.as_str().into()))
        };
        let (task_type, status, attempt_count) = if event.event_type == EventType::RepairRequested {
            // Repair's own task has not begun, whatever became of it since.
            (
                told.task_type.0.clone().or_else(stored_type),
                id.as_ref().map(|_| "ready".into()),
                None,
            )
        } else {
            let by_event = id.as_ref().map(|_| carried(&event.event_type));
            (
                by_event
                    .map(|(of_type, _)| of_type.into())
                    .or_else(stored_type),
                by_event
                    .map(|(_, status)| status.into())
                    .or_else(|| kept.status.0.clone())
                    .or_else(|| row.map(|row| row.status.as_str().into())),
                if kept.attempt_count.present {
                    kept.attempt_count.get()
                } else {
                    row.map(|row| row.attempt_count)
                },
            )
        };
        Some(Self {
            id,
            task_type,
            status,
            available_at: kept
                .available_at
                .or_else(|| row.and_then(|row| row.available_at)),
            leased_at: kept.leased_at.or_else(|| row.and_then(|row| row.leased_at)),
            lease_expires_at: kept
                .lease_expires_at
                .or_else(|| row.and_then(|row| row.lease_expires_at)),
            attempt_count,
        })
    }
}

/// Type and status of the task that wrote such an event, at that moment.
fn carried(event_type: &EventType) -> (&'static str, &'static str) {
    use EventType as E;
    match event_type {
        E::ActivityStarted | E::ActivityHeartbeatRecorded => ("activity", "leased"),
        E::ActivityCancelled => ("activity", "cancelled"),
        E::ActivityRetryScheduled
        | E::ActivityCompleted
        | E::ActivityFailed
        | E::ActivityTimedOut => ("activity", "completed"),
        E::TimerFired => ("timer", "completed"),
        E::WorkflowFailed => ("workflow", "failed"),
        _ => ("workflow", "completed"),
    }
}
