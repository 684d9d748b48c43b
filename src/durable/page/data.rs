//! What a run was given and what it made: arguments, output, memo, search attributes, messages.

use serde_json::{Map, Value};

use super::payloads;
use crate::{
    db::Json,
    durable::{
        payload::{self, Payload},
        projection::Projected,
        stored::MessageRow,
    },
    run::{
        data::{Data, EAGER, EAGER_IN_ROW, Entry, Message, PayloadRef, written},
        fact::{Facts, RunRef, anchor},
        tag::{Mark, Tag, Tone},
        window::Asked,
    },
};

pub fn data(p: &Projected<'_>, asked: &Asked) -> Data {
    let snapshot = p.cx.snapshot;
    let window = asked.window("messages", snapshot.messages.len(), |at| {
        let id = at.strip_prefix("message-")?;
        snapshot
            .messages
            .iter()
            .position(|message| message.id.to_string() == id)
    });
    Data {
        payloads: ["arguments", "output"]
            .into_iter()
            .filter_map(|part| {
                let of = PayloadRef {
                    of: "run",
                    id: String::new(),
                    part,
                };
                payloads::preview(of, &run_payload(p, part)?, EAGER)
            })
            .collect(),
        memo: entries(&snapshot.memo),
        search_attributes: entries(&snapshot.search_attributes),
        messages: window.of(&snapshot.messages).iter().map(message).collect(),
        window,
    }
}

/// The run's own arguments or output.
pub(super) fn run_payload(p: &Projected<'_>, part: &str) -> Option<Payload> {
    let run = &p.cx.snapshot.run;
    let (codec, text) = match part {
        "arguments" => (&run.payload_codec, &run.arguments),
        "output" => (
            if run.output_payload_codec.is_some() {
                &run.output_payload_codec
            } else {
                &run.payload_codec
            },
            &run.output,
        ),
        _ => return None,
    };
    Some(payload::decode(codec.as_deref(), text.as_deref()))
}

fn entries(map: &Map<String, Value>) -> Vec<Entry> {
    map.iter()
        .filter(|(key, _)| *key != crate::demo::STORY_MEMO)
        .map(|(key, value)| Entry {
            key: key.clone(),
            value: written(value, EAGER_IN_ROW),
        })
        .collect()
}

fn message(row: &MessageRow) -> Message {
    let other = |instance: &Option<String>, run: &Option<String>| {
        Some(RunRef {
            instance_id: instance.clone()?,
            run_id: run.clone(),
            text: instance.clone()?,
        })
    };
    let metadata = match &row.metadata {
        Some(Json::Value(value)) if !value.is_null() => written(value, EAGER_IN_ROW),
        _ => None,
    };
    Message {
        anchor: anchor("message", &row.id.to_string()),
        direction: row.direction.clone(),
        channel: row.channel.clone(),
        sequence: row.sequence,
        state: match row.consume_state.as_str() {
            "pending" => Tag::new("pending", Tone::Wait, Mark::Hourglass),
            "consumed" => Tag::new("consumed", Tone::Ok, Mark::Tick),
            "expired" => Tag::new("expired", Tone::Late, Mark::Clock),
            "failed" => Tag::new("failed", Tone::Fail, Mark::Cross),
            other => Tag::unknown(other),
        },
        at: row.created_at,
        consumed: row.consumed_at,
        error: row.last_delivery_error.clone(),
        facts: Facts::default()
            .code("Stream", Some(&row.stream_key))
            .run(
                "From",
                other(&row.source_workflow_instance_id, &row.source_workflow_run_id),
            )
            .run(
                "To",
                other(&row.target_workflow_instance_id, &row.target_workflow_run_id),
            )
            .code("Correlation id", row.correlation_id.as_deref())
            .id("Idempotency key", row.idempotency_key.as_deref())
            .code("Payload reference", row.payload_reference.as_deref())
            .count("Consumed at sequence", row.consumed_by_sequence)
            .count("Deliveries tried", Some(row.delivery_attempt_count))
            .at("Last tried", row.last_delivery_attempt_at)
            .at("Expires", row.expires_at)
            .code("Metadata", metadata)
            .list(),
    }
}
