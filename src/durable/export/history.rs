//! The history of a bundle and its timeline, a stretch of events at a time.

use serde_json::Value;

use super::{
    entries,
    fold::Folded,
    hide::Hidden,
    manifest::{Entry, Path},
    redaction::Slot,
    spool::Spool,
    stream::{Export, ExportError},
};
use crate::durable::{
    payload,
    projection::{context::stamp, identity},
    store::past::History,
    stored::{EventType, HistoryEvent, Notices},
};

/// What the look at each event for `history_events` leaves for later sections: its timeline, and
/// what is to be said of both.
#[derive(Default)]
pub(super) struct Told {
    pub manifest: Vec<Entry>,
    /// What a policy hid inside events, and what it will hide in the timeline.
    pub hidden_events: Vec<(u32, Hidden)>,
    pub hidden_timeline: Vec<(u32, Hidden)>,
    pub timeline: Spool<()>,
    pub timeline_same: bool,
}

/// Whether the manifest tells of payloads inside such an event.
fn has_payloads(event_type: &EventType) -> bool {
    matches!(
        event_type,
        EventType::WorkflowCompleted | EventType::ChildRunCompleted
    )
}

impl Export<'_> {
    /// The history itself, and beside it what its timeline will hold.
    pub async fn history(&mut self, folded: &Folded) -> Result<Told, ExportError> {
        let mut told = Told {
            timeline_same: self.head.has_timeline_entries == (self.events.len() > 0),
            ..Told::default()
        };
        self.writer.open_list("history_events");
        let mut n = 0;
        let mut after = i64::MIN;
        while n < self.events.len() {
            let events = self.events.stretch(n, self.options.batch.max(1))?;
            let events = History::new(events, Notices::default());
            let last = events.iter().map(|event| event.sequence).max();
            let span = (after.saturating_add(1), last.unwrap_or(after));
            after = after.max(span.1);
            self.tell(&mut told, &events, span, &folded.failures)
                .await?;
            for event in &events {
                self.event(&mut told, event, n);
                self.flow().await?;
                n += 1;
            }
        }
        let beyond = (after.saturating_add(1), i64::MAX);
        told.timeline_same &= self.stored_timeline(&told, beyond).await?.is_empty();
        self.writer.close_list();
        Ok(told)
    }

    fn event(&mut self, told: &mut Told, event: &HistoryEvent, n: usize) {
        self.writer.open_item();
        self.writer.member("id", &event.id);
        // Nearly every payload is what the bundle shall hold, and needs no look inside.
        let as_it_is = event.payload.as_deref().filter(|text| {
            !self.touches_event(event)
                && !has_payloads(&event.event_type)
                && !payload::may_refer(text)
        });
        if !as_it_is.is_some_and(|text| text.trim() != "null" && self.writer.json("payload", text))
        {
            let payload = self.redact_event(told, event, n, entries::event_payload(event));
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
        let redacted = self.touches(Slot::EventPayload) || self.touches(Slot::WorkflowOutput);
        let list = "history_events";
        let mut note = |codec: Option<&str>, rest, value: &Value| {
            told.manifest
                .push(Entry::new(Path::At(list, n, rest), codec, value, redacted));
        };
        match event.event_type {
            EventType::WorkflowCompleted => {
                let output = identity::output_codec(&self.head.run);
                let codec = codec.map(str::to_owned).or(output);
                note(codec.as_deref(), "payload.output", &payload["output"]);
            }
            EventType::ChildRunCompleted => {
                note(codec, "payload.output", &payload["output"]);
                note(codec, "payload.result", &payload["result"]);
            }
            _ => {}
        }
    }
}
