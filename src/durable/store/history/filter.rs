//! Which events of a history somebody wants to see, and how far a statement can tell.

use serde_json::Value;

use crate::{
    db::Statement,
    durable::{
        projection::{failures, timeline::Kind},
        stored::{EventType, HistoryEvent, payloads::failure::FailureName},
    },
};

/// Which events are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventFilter {
    pub event_type: Option<String>,
    pub kind: Option<Kind>,
    pub failures: bool,
    /// Found in the type, the ids or anything the event says, whatever its case.
    pub text: Option<String>,
}

impl EventFilter {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The types that can match; none when all can.
    pub(super) fn types(&self) -> Option<Types> {
        let known = |keep: &dyn Fn(&EventType) -> bool| {
            EventType::KNOWN
                .iter()
                .copied()
                .filter(|name| keep(&EventType::from(*name)))
                .collect()
        };
        match (&self.event_type, self.failures, self.kind) {
            (Some(one), _, _) => Some(Types::One(one.clone())),
            (None, true, kind) => Some(Types::Only(known(&|event_type| {
                may_fail(event_type) && kind.is_none_or(|kind| Kind::of(event_type) == kind)
            }))),
            // What we do not know counts as the workflow's own.
            (None, false, Some(Kind::Workflow)) => Some(Types::AllBut(known(&|event_type| {
                Kind::of(event_type) != Kind::Workflow
            }))),
            (None, false, Some(kind)) => Some(Types::Only(known(&|event_type| {
                Kind::of(event_type) == kind
            }))),
            (None, false, None) => None,
        }
    }

    /// What only the event itself can answer, but for its text.
    pub(super) fn keeps(&self, event: &HistoryEvent) -> bool {
        (!self.failures || is_failure(event))
            && self
                .kind
                .is_none_or(|kind| Kind::of(&event.event_type) == kind)
    }

    pub(super) fn finds(&self, event: &HistoryEvent) -> bool {
        self.text.as_deref().is_none_or(|text| says(event, text))
    }
}

/// The event types a statement asks for.
pub(super) enum Types {
    One(String),
    Only(Vec<&'static str>),
    AllBut(Vec<&'static str>),
}

impl Types {
    pub fn push(&self, q: &mut Statement) {
        match self {
            Self::One(one) => {
                q.push("event_type = ").bind(one.as_str());
            }
            Self::Only(list) => {
                q.push("event_type in ").bind_list(list.iter().copied());
            }
            Self::AllBut(list) => {
                q.push("event_type not in ").bind_list(list.iter().copied());
            }
        }
    }
}

impl Types {
    pub fn holds(&self, event: &HistoryEvent) -> bool {
        let name = event.event_type.as_str();
        match self {
            Self::One(one) => one == name,
            Self::Only(list) => list.contains(&name),
            Self::AllBut(list) => !list.contains(&name),
        }
    }
}

/// Events that tell of something that went wrong, or may.
fn may_fail(event_type: &EventType) -> bool {
    failures::defaults(event_type).is_some()
        || matches!(
            event_type,
            EventType::ActivityRetryScheduled
                | EventType::ConditionWaitTimedOut
                | EventType::ParentClosePolicyFailed
                | EventType::ServiceCallFailed
                | EventType::StartRejected
                | EventType::UpdateRejected
        )
}

/// Whether something went wrong. An update that completed may have failed.
pub fn is_failure(event: &HistoryEvent) -> bool {
    match event.event_type {
        EventType::UpdateCompleted => {
            let named: FailureName = event.as_payload();
            named.failure_id.is_some()
        }
        ref event_type => may_fail(event_type),
    }
}

/// Searched as stored, and once more without the escapes PHP writes for letters and slashes:
/// the operator types them as they are.
fn says(event: &HistoryEvent, text: &str) -> bool {
    let plain = text.to_lowercase();
    let found = |place: &str| place.to_lowercase().contains(&plain);
    found(event.event_type.as_str())
        || found(&event.id)
        || event.workflow_task_id.as_deref().is_some_and(found)
        || event.workflow_command_id.as_deref().is_some_and(found)
        || event.payload.as_deref().is_some_and(|payload| {
            found(payload)
                || serde_json::from_str::<Value>(payload).is_ok_and(|value| {
                    let quoted = Value::from(text).to_string().to_lowercase();
                    let inside = quoted.trim_matches('"');
                    value.to_string().to_lowercase().contains(inside)
                })
        })
}
