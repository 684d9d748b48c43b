//! The child workflow an event is about.

use std::borrow::Cow;

use serde::Serialize;

use super::{Words, kind::Kind};
use crate::durable::projection::parallel::GroupStep;
use crate::durable::stored::{EventType, HistoryEvent, payloads::timeline::TimelineEvent};

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Child<'a> {
    pub child_call_id: Words<'a>,
    pub instance_id: Words<'a>,
    pub run_id: Words<'a>,
    #[serde(rename = "type")]
    pub workflow_type: Words<'a>,
    pub class: Words<'a>,
    pub status: Words<'a>,
    pub run_number: Option<i64>,
    pub parallel_group_path: Vec<GroupStep>,
}

impl<'a> Child<'a> {
    pub(super) fn of(
        event: &HistoryEvent,
        told: &TimelineEvent<'a>,
        group_path: &[GroupStep],
    ) -> Option<Self> {
        use EventType as E;
        let says_something = Kind::of(&event.event_type) == Kind::Child
            || told.child_call_id.present
            || told.child_workflow_instance_id.present
            || told.child_workflow_run_id.present
            || told.child_workflow_type.present
            || told.child_workflow_class.present;
        if !says_something {
            return None;
        }
        let by_event = match event.event_type {
            E::ChildRunCompleted => Some("completed"),
            E::ChildRunFailed => Some("failed"),
            E::ChildRunCancelled => Some("cancelled"),
            E::ChildRunTerminated => Some("terminated"),
            _ => None,
        };
        // Before calls had ids of their own, the link's id stood in at the beginning.
        let begins = matches!(
            event.event_type,
            E::ChildWorkflowScheduled | E::ChildRunStarted
        );
        Some(Self {
            child_call_id: told
                .child_call_id
                .0
                .clone()
                .or_else(|| told.workflow_link_id.0.clone().filter(|_| begins)),
            instance_id: told.child_workflow_instance_id.0.clone(),
            run_id: told.child_workflow_run_id.0.clone(),
            workflow_type: told.child_workflow_type.0.clone(),
            class: told.child_workflow_class.0.clone(),
            status: told
                .child_status
                .0
                .clone()
                .or_else(|| by_event.map(Cow::Borrowed)),
            run_number: told.child_run_number.get(),
            parallel_group_path: group_path.to_vec(),
        })
    }
}
