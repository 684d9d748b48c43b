//! The history of a bundle, an event at a time.

use serde_json::Value;

use super::{
    entries, head,
    hide::Hidden,
    manifest::{Entry, Path},
    redaction::Slot,
    stream::{Export, ExportError},
};
use crate::durable::{
    payload,
    projection::{context::stamp, identity},
    stored::{EventType, HistoryEvent},
};

/// What the look at each event for `history_events` leaves for later sections.
#[derive(Default)]
pub(super) struct Told {
    pub manifest: Vec<Entry>,
    /// What a policy hid inside events.
    pub hidden_events: Vec<(u32, Hidden)>,
}

/// Whether the manifest tells of payloads inside such an event.
fn has_payloads(event_type: &EventType) -> bool {
    matches!(
        event_type,
        EventType::WorkflowCompleted | EventType::ChildRunCompleted
    )
}

impl Export<'_> {
    pub async fn history(&mut self) -> Result<Told, ExportError> {
        let mut told = Told::default();
        self.writer.open_list("history_events");
        for n in 0..self.events.len() {
            if let Some(event) = self.events.get(n)? {
                self.event(&mut told, &event, n);
                self.flow().await?;
            }
        }
        self.writer.close_list();
        Ok(told)
    }

    fn event(&mut self, told: &mut Told, event: &HistoryEvent, n: usize) {
        self.writer.open_item();
        self.writer.member("id", &event.id);
        // Nearly every payload is what the bundle shall hold, and needs no look inside.
        let as_it_is = event.payload.as_deref().filter(|text| {
            !self.hide.touches_event(event)
                && !has_payloads(&event.event_type)
                && !payload::may_refer(text)
        });
        if !as_it_is.is_some_and(|text| text.trim() != "null" && self.writer.json("payload", text))
        {
            let payload = self
                .hide
                .redact_event(told, event, n, entries::event_payload(event));
            self.event_payloads(told, event, n, &payload);
            self.writer.member("payload", &payload);
        }
        self.writer
            .member("recorded_at", &event.recorded_at.map(stamp));
        self.writer.member("sequence", &event.sequence);
        self.writer.member("type", &event.event_type);
        self.writer
            .member("workflow_command_id", &event.workflow_command_id);
        self.writer
            .member("workflow_task_id", &event.workflow_task_id);
        self.writer.close_map();
    }

    /// What the manifest says of the payloads inside an event.
    fn event_payloads(&self, told: &mut Told, event: &HistoryEvent, n: usize, payload: &Value) {
        let codec = payload["payload_codec"].as_str();
        let codec = codec.filter(|codec| !codec.is_empty());
        let redacted =
            self.hide.touches(Slot::EventPayload) || self.hide.touches(Slot::WorkflowOutput);
        let list = "history_events";
        let mut note = |codec: Option<&str>, rest, value: &Value| {
            told.manifest
                .push(Entry::new(Path::At(list, n, rest), codec, value, redacted));
        };
        match event.event_type {
            EventType::WorkflowCompleted => {
                let output = identity::output_codec(&self.head.run);
                let output = output.as_deref().unwrap_or(head::run_codec(&self.head.run));
                note(codec.or(Some(output)), "payload.output", &payload["output"]);
            }
            EventType::ChildRunCompleted => {
                note(codec, "payload.output", &payload["output"]);
                note(codec, "payload.result", &payload["result"]);
            }
            _ => {}
        }
    }
}
