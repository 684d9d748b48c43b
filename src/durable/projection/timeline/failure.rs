//! The failure an event tells of, as it stood then.

use serde::Serialize;

use super::{Words, filled};
use crate::durable::{
    projection::{
        exception::ResolutionSource,
        failures::{self, Failure},
    },
    stored::{EventType, HistoryEvent, payloads::timeline::TimelineEvent},
};

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EntryFailure<'a> {
    pub id: Words<'a>,
    pub source_kind: Words<'a>,
    pub source_id: Words<'a>,
    pub propagation_kind: Words<'a>,
    pub failure_category: Words<'a>,
    pub non_retryable: bool,
    /// None where the event cannot know.
    pub handled: Option<bool>,
    pub exception_type: Words<'a>,
    pub exception_class: Words<'a>,
    pub exception_resolved_class: Words<'a>,
    pub exception_resolution_source: Option<ResolutionSource>,
    pub exception_resolution_error: Words<'a>,
    pub exception_replay_blocked: bool,
    pub message: Words<'a>,
    pub file: Words<'a>,
    pub line: Option<i64>,
}

impl<'a> EntryFailure<'a> {
    pub(super) fn of(
        event: &HistoryEvent,
        told: &TimelineEvent<'a>,
        known: Option<&'a Failure>,
    ) -> Option<Self> {
        use EventType as E;
        let says_something = told.failure_id.is_some()
            || told.message.present
            || told.exception_class.present
            || told.source_kind.present
            || told.source_id.present;
        if !says_something {
            return None;
        }
        let id = told.failure_id.0.clone();
        // A completed update has a failure only if it names one.
        let defaults = failures::defaults(&event.event_type)
            .filter(|_| event.event_type != E::UpdateCompleted || id.is_some());
        let from = |field: fn(&Failure) -> &Option<String>| {
            known.and_then(|known| filled(field(known).as_deref()))
        };
        Some(Self {
            source_kind: told
                .source_kind
                .0
                .clone()
                .or_else(|| from(|known| &known.source_kind)),
            source_id: told
                .source_id
                .0
                .clone()
                .or_else(|| from(|known| &known.source_id)),
            propagation_kind: match event.event_type {
                E::FailureHandled => told
                    .propagation_kind
                    .0
                    .clone()
                    .or_else(|| from(|known| &known.propagation_kind)),
                E::UpdateCompleted if id.is_none() => None,
                _ => defaults
                    .map(|of| of.propagation_kind.into())
                    .or_else(|| from(|known| &known.propagation_kind)),
            },
            failure_category: told
                .failure_category
                .0
                .clone()
                .or_else(|| {
                    let category = known?.failure_category.as_ref()?;
                    Some(category.as_str().into())
                })
                .or_else(|| defaults.map(|of| of.failure_category.into())),
            non_retryable: told
                .non_retryable
                .unwrap_or_else(|| known.is_some_and(|known| known.non_retryable)),
            handled: match event.event_type {
                E::FailureHandled => Some(true),
                // At that moment nobody had caught it yet.
                E::ActivityFailed
                | E::ActivityTimedOut
                | E::WorkflowTimedOut
                | E::WorkflowFailed => Some(false),
                E::UpdateCompleted => id.as_ref().map(|_| false),
                _ => known.map(|known| known.handled),
            },
            exception_type: told
                .exception_type
                .0
                .clone()
                .or_else(|| from(|known| &known.exception_type)),
            exception_class: told
                .exception_class
                .0
                .clone()
                .or_else(|| from(|known| &known.exception_class)),
            exception_resolved_class: from(|known| &known.resolution.exception_resolved_class),
            exception_resolution_source: known
                .map(|known| known.resolution.exception_resolution_source),
            exception_resolution_error: from(|known| &known.resolution.exception_resolution_error),
            exception_replay_blocked: known
                .is_some_and(|known| known.resolution.exception_replay_blocked),
            message: told
                .message
                .0
                .clone()
                .or_else(|| from(|known| &known.message)),
            file: from(|known| &known.file),
            line: known.and_then(|known| known.line),
            id,
        })
    }
}
