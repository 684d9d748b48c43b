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
        data::{Data, EAGER, EAGER_IN_ROW, Entry, Message, PayloadRef, Preview, written},
        fact::{Facts, RunRef, anchor},
        tag::{Mark, Tag, Tone},
        window::{Asked, Window},
    },
};

pub fn data(p: &Projected<'_>, asked: &Asked) -> Data {
    let snapshot = p.cx.snapshot;
    let payloads: Vec<Preview> = ["arguments", "output"]
        .into_iter()
        .filter_map(|part| {
            let of = PayloadRef {
                of: "run",
                id: String::new(),
                part,
            };
            payloads::preview(of, &run_payload(p, part)?, EAGER)
        })
        .collect();
    let memo: Vec<_> = entries(&snapshot.memo).collect();
    let attributes: Vec<_> = entries(&snapshot.search_attributes).collect();
    // One after the other, so that one window pages through all of it.
    let before = payloads.len() + memo.len() + attributes.len();
    let window = asked.window("data", before + snapshot.messages.len(), |at| {
        let id = at.strip_prefix("message-")?;
        let found = snapshot
            .messages
            .iter()
            .position(|message| message.id.to_string() == id)?;
        Some(before + found)
    });
    Data {
        memo: part(window, payloads.len(), &memo)
            .iter()
            .map(|(key, value)| entry("memo", key, value))
            .collect(),
        search_attributes: part(window, payloads.len() + memo.len(), &attributes)
            .iter()
            .map(|(key, value)| entry("search_attribute", key, value))
            .collect(),
        messages: part(window, before, &snapshot.messages)
            .iter()
            .map(message)
            .collect(),
        payloads: part(window, 0, &payloads).to_vec(),
        window,
    }
}

/// What a window shows of a list that begins at `start`.
fn part<T>(window: Window, start: usize, list: &[T]) -> &[T] {
    let from = window.from.saturating_sub(start).min(list.len());
    let end = window.from.saturating_add(window.len);
    let to = end.saturating_sub(start).min(list.len());
    list.get(from..to).unwrap_or_default()
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

fn entries(map: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    map.iter()
        .filter(|(key, _)| *key != crate::demo::STORY_MEMO)
}

fn entry(of: &'static str, key: &str, value: &Value) -> Entry {
    Entry {
        key: key.to_owned(),
        value: written(value, EAGER_IN_ROW),
        of: PayloadRef {
            of,
            id: key.to_owned(),
            part: "value",
        },
    }
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
        stream: row.stream_key.clone(),
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
            .run(
                "From",
                other(
                    &row.source_workflow_instance_id,
                    &row.source_workflow_run_id,
                ),
            )
            .run(
                "To",
                other(
                    &row.target_workflow_instance_id,
                    &row.target_workflow_run_id,
                ),
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
