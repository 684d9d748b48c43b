//! Message streams between workflows: one outbound and one inbound row per message.

use serde_json::json;

use super::RunBuilder;
use crate::demo::rows::InsertRow;

impl RunBuilder {
    /// A message on `stream` from `from`; `consumed` when workflow code already took it.
    pub fn message_in(&mut self, stream: &str, from: &str, reference: &str, consumed: bool) {
        self.push_message("inbound", stream, from, reference, consumed);
        if consumed {
            let task = self.work();
            let previous = self.message_cursor;
            self.message_cursor = self.message_sequence;
            let payload = json!({
                "stream_key": stream,
                "previous_position": previous,
                "new_position": self.message_cursor,
            });
            self.event("MessageCursorAdvanced", payload, Some(&task), None);
        }
    }

    /// A message this run sent to `to`.
    pub fn message_out(&mut self, stream: &str, to: &str, reference: &str) {
        self.push_message("outbound", stream, to, reference, false);
    }

    fn push_message(
        &mut self,
        direction: &'static str,
        stream: &str,
        peer: &str,
        reference: &str,
        consumed: bool,
    ) {
        self.message_sequence += 1;
        let at = self.at;
        let own = (Some(self.start.instance.clone()), Some(self.run_id.clone()));
        let peer = (Some(peer.to_owned()), None);
        let (source, target) = if direction == "inbound" {
            (peer, own)
        } else {
            (own, peer)
        };
        let row = InsertRow::new("workflow_messages")
            .set("workflow_instance_id", &self.start.instance)
            .set("workflow_run_id", &self.run_id)
            .set("direction", direction)
            .set("channel", "workflow_message")
            .set("stream_key", stream)
            .set("sequence", self.message_sequence)
            .set("source_workflow_instance_id", source.0)
            .set("source_workflow_run_id", source.1)
            .set("target_workflow_instance_id", target.0)
            .set("target_workflow_run_id", target.1)
            .set("correlation_id", format!("corr-{}", self.message_sequence))
            .set("payload_reference", reference)
            .set(
                "consume_state",
                if consumed { "consumed" } else { "pending" },
            )
            .time("consumed_at", consumed.then_some(at))
            .set("consumed_by_sequence", consumed.then_some(self.step))
            .set("delivery_attempt_count", u32::from(consumed))
            .json("metadata", Some(&json!({"stream": stream})))
            .stamps(at, at);
        self.with_row(row);
    }
}
