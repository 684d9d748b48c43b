//! What of a payload stands in the page, and the whole of one that was asked for.

use serde_json::Value;

use crate::{
    durable::{payload::Payload, projection::Projected},
    run::{
        data::{EAGER_IN_ROW, PayloadRef, Preview, Whole, indented, written},
        tag::{Mark, Tag, Tone},
    },
};

/// A payload in a row of a table; none when there is none.
pub fn in_row(of: PayloadRef, payload: &Payload) -> Option<Preview> {
    preview(of, payload, EAGER_IN_ROW)
}

/// What stands in the page of a payload: all of it up to `most` bytes, else only its name.
pub fn preview(of: PayloadRef, payload: &Payload, most: usize) -> Option<Preview> {
    let text = match payload {
        Payload::None => return None,
        Payload::Value(value) | Payload::Reference(value) => written(value, most),
        Payload::Raw { text, .. } => (text.len() <= most).then(|| text.clone()),
    };
    Some(Preview {
        name: of.part,
        mark: mark(payload),
        text,
        of,
    })
}

/// The same for a value the projection has already decoded.
pub fn of_value(of: PayloadRef, value: Option<&Value>) -> Option<Preview> {
    let value = value?;
    Some(Preview {
        name: of.part,
        mark: None,
        text: written(value, EAGER_IN_ROW),
        of,
    })
}

/// The whole payload; none when there is none.
pub fn whole(payload: Payload) -> Option<Whole> {
    let mark = mark(&payload);
    Some(match payload {
        Payload::None => return None,
        Payload::Value(value) | Payload::Reference(value) => Whole {
            mark,
            text: indented(&value.to_string()),
            json: true,
        },
        Payload::Raw { text, .. } => Whole {
            mark,
            text,
            json: false,
        },
    })
}

fn mark(payload: &Payload) -> Option<Tag> {
    match payload {
        Payload::None | Payload::Value(_) => None,
        Payload::Reference(_) => Some(
            Tag::new("kept elsewhere", Tone::Next, Mark::Arrow)
                .titled("an external reference, shown as it is stored and never fetched"),
        ),
        Payload::Raw { reason, .. } => Some(
            Tag::new("undecodable", Tone::Attn, Mark::Question)
                .titled(format!("shown as stored: {reason}")),
        ),
    }
}

/// The payload an address names, looked up where its preview was made from.
pub fn find(p: &Projected<'_>, of: &str, id: &str, part: &str) -> Option<Whole> {
    let decoded = |value: Option<&Value>| whole(Payload::Value(value?.clone()));
    match (of, part) {
        ("run", part) => super::data::run_payload(p, part).and_then(whole),
        ("activity", part) => {
            let activity = p.activities.iter().find(|activity| activity.id == id)?;
            match part {
                "arguments" => whole(activity.arguments.clone()),
                "result" => whole(activity.result.clone()),
                _ => None,
            }
        }
        ("signal", "arguments") => {
            let signal = p.signals.iter().find(|s| super::signals::key(s) == Some(id))?;
            decoded(signal.arguments.as_ref())
        }
        ("update", part) => {
            let update = p.updates.iter().find(|u| super::updates::key(u) == Some(id))?;
            match part {
                "arguments" => decoded(update.arguments.as_ref()),
                "result" => decoded(update.result.as_ref()),
                _ => None,
            }
        }
        ("command", "payload") => {
            let command = p.commands.iter().find(|command| command.id == id)?;
            decoded(command.payload.as_ref())
        }
        ("memo", "value") => decoded(p.cx.snapshot.memo.get(id)),
        ("search_attribute", "value") => decoded(p.cx.snapshot.search_attributes.get(id)),
        _ => None,
    }
}
