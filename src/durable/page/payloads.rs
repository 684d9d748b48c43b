//! What of a payload stands in the page, and the whole of one that was asked for.

use serde_json::{Map, Value};

use crate::{
    durable::{
        payload::{self, Payload, closure},
        projection::Projected,
        stored::HistoryEvent,
    },
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
        Payload::Value(value) => return Some(decoded(of, value, most)),
        Payload::Reference(value) | Payload::Hidden(value) => written(value, most),
        Payload::Raw { text, .. } => (text.len() <= most).then(|| text.clone()),
    };
    Some(Preview {
        name: of.part,
        mark: mark(payload),
        text,
        offered: true,
        of,
    })
}

/// The same for a value the projection has already decoded.
pub fn of_value(of: PayloadRef, value: Option<&Value>) -> Option<Preview> {
    let value = value?;
    let shown = decoded(of, value, EAGER_IN_ROW);
    Some(Preview {
        mark: shown
            .mark
            .or_else(|| payload::is_hidden(value).then(hidden)),
        ..shown
    })
}

fn decoded(of: PayloadRef, value: &Value, most: usize) -> Preview {
    let replaced = closure::hidden(value);
    Preview {
        name: of.part,
        mark: replaced.as_ref().map(|_| with_closure()),
        text: match &replaced {
            Some(Value::String(words)) => Some(words.clone()),
            Some(shown) => written(shown, most),
            None => written(value, most),
        },
        offered: !replaced.is_some_and(|shown| shown.is_string()),
        of,
    }
}

/// The whole payload; none when there is none.
pub fn whole(payload: Payload) -> Option<Whole> {
    let mark = mark(&payload);
    Some(match payload {
        Payload::None => return None,
        Payload::Value(value) if let Some(shown) = closure::hidden(&value) => Whole {
            mark: Some(with_closure()),
            json: !shown.is_string(),
            offered: !shown.is_string(),
            text: match shown {
                Value::String(words) => words,
                shown => indented(&shown.to_string()),
            },
        },
        Payload::Value(value) | Payload::Reference(value) | Payload::Hidden(value) => Whole {
            mark,
            text: indented(&value.to_string()),
            json: true,
            offered: true,
        },
        Payload::Raw { text, .. } => Whole {
            mark,
            text,
            json: false,
            offered: true,
        },
    })
}

fn mark(payload: &Payload) -> Option<Tag> {
    match payload {
        Payload::None | Payload::Value(_) => None,
        Payload::Hidden(_) => Some(hidden()),
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

fn with_closure() -> Tag {
    Tag::new("PHP closure", Tone::Wait, Mark::Lock)
        .titled("serialized code of the application: its length is all that is shown")
}

fn hidden() -> Tag {
    Tag::new("hidden", Tone::Wait, Mark::Lock).titled("a redaction policy hides this value")
}

/// The payload an address names, looked up where its preview was made from.
pub fn find(p: &Projected<'_>, of: &str, id: &str, part: &str) -> Option<Whole> {
    let decoded = |value: Option<&Value>| {
        let value = value?.clone();
        whole(if payload::is_hidden(&value) {
            Payload::Hidden(value)
        } else {
            Payload::Value(value)
        })
    };
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
            let signal = p
                .signals
                .iter()
                .find(|s| super::signals::key(s) == Some(id))?;
            decoded(signal.arguments.as_ref())
        }
        ("update", part) => {
            let update = p
                .updates
                .iter()
                .find(|u| super::updates::key(u) == Some(id))?;
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

/// Keys of an event under which a payload is kept encoded.
const ENCODED: [&str; 6] = [
    "arguments",
    "output",
    "request_payload",
    "response_payload",
    "result",
    "value",
];
/// Of a command's request nobody but the engine needs these.
const WITHHELD: [&str; 3] = ["headers", "ip", "user_agent"];
/// Deeper than any event of the engine's.
const DEPTH: usize = 8;

/// An event's payload as stored, and after it each encoded value in it, by its path.
pub fn of_event(event: &HistoryEvent, codec: Option<&str>) -> Vec<(String, Whole)> {
    let Some(text) = event.payload.as_deref() else {
        return Vec::new();
    };
    let Ok(mut value) = serde_json::from_str::<Value>(text) else {
        let raw = Payload::Raw {
            reason: "not JSON".into(),
            text: text.to_owned(),
        };
        return whole(raw)
            .map(|whole| ("payload".to_owned(), whole))
            .into_iter()
            .collect();
    };
    let mut found = Vec::new();
    let mut withheld = withhold(&mut value, DEPTH);
    if let Value::Object(map) = &mut value {
        withheld |= decode_inside(map, codec, "", DEPTH, &mut found);
    }
    let stored = Whole {
        mark: withheld.then(|| {
            Tag::new("partly withheld", Tone::Wait, Mark::Lock).titled(
                "a request's address, agent and headers are never shown, nor is a PHP closure",
            )
        }),
        // Only where something had to go is it not word for word what is stored.
        text: if withheld {
            indented(&value.to_string())
        } else {
            indented(text)
        },
        json: true,
        offered: true,
    };
    found.insert(0, ("payload".to_owned(), stored));
    found
}

/// Finds what is encoded; a closure among it is taken out where it stands, and then it is true.
fn decode_inside(
    map: &mut Map<String, Value>,
    codec: Option<&str>,
    path: &str,
    depth: usize,
    found: &mut Vec<(String, Whole)>,
) -> bool {
    let own = map.get("payload_codec").and_then(Value::as_str);
    let own = own.filter(|own| !own.is_empty()).map(str::to_owned);
    let codec = own.as_deref().or(codec);
    let mut withheld = false;
    for (key, value) in map {
        let path = if path.is_empty() {
            key.clone()
        } else {
            format!("{path}.{key}")
        };
        match value {
            Value::String(_) | Value::Object(_) if ENCODED.contains(&key.as_str()) => {
                let decoded = payload::decode_value(codec, value);
                if let Payload::Value(decoded) = &decoded
                    && let Some(shown) = closure::hidden(decoded)
                {
                    *value = shown;
                    withheld = true;
                }
                if matches!(decoded, Payload::Value(_) | Payload::Reference(_)) {
                    found.extend(whole(decoded).map(|whole| (path, whole)));
                }
            }
            Value::Object(inner) if depth > 0 => {
                withheld |= decode_inside(inner, codec, &path, depth - 1, found);
            }
            _ => {}
        }
    }
    withheld
}

/// Takes out what a page may not say of a request; true when there was any.
fn withhold(value: &mut Value, depth: usize) -> bool {
    let Value::Object(map) = value else {
        return false;
    };
    let mut any = false;
    if let Some(Value::Object(request)) = map.get_mut("request") {
        for key in WITHHELD {
            any |= request.remove(key).is_some();
        }
    }
    if depth > 0 {
        for inner in map.values_mut() {
            any |= withhold(inner, depth - 1);
        }
    }
    any
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(payload: &str) -> HistoryEvent {
        HistoryEvent {
            id: "event".into(),
            sequence: 1,
            event_type: "ActivityCompleted".into(),
            payload: Some(payload.into()),
            workflow_task_id: None,
            workflow_command_id: None,
            recorded_at: None,
            created_at: None,
            is_json: std::sync::OnceLock::new(),
        }
    }

    #[test]
    fn an_event_shows_what_is_stored_and_what_it_means() {
        let stored = r#"{"sequence":1.0,"activity":{"result":"wwHioz3/VYAiNwQO"},"result":"?"}"#;
        let found = of_event(&event(stored), None);
        let paths: Vec<&str> = found.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(paths, ["payload", "activity.result"]);
        assert!(found[0].1.text.contains("1.0"), "{}", found[0].1.text);
        assert_eq!(found[1].1.text, "7");
    }

    const CLOSURE: &[u8] = b"durable-workflow.internal.async-closure.v1\0O:47:signed code";

    #[test]
    fn a_closure_is_named_and_nothing_of_it_is_offered() {
        use crate::durable::payload::avro;

        let stored = avro::encode(&avro::Value::Bytes(CLOSURE.into()));
        let closure = payload::decode(None, Some(&stored));
        let of = || PayloadRef {
            of: "activity",
            id: "a".into(),
            part: "arguments",
        };
        let said = "PHP closure, 59 bytes";
        let preview = in_row(of(), &closure).unwrap();
        assert_eq!(preview.text.as_deref(), Some(said));
        assert!(preview.mark.is_some() && !preview.offered);
        let whole = super::whole(closure.clone()).unwrap();
        assert_eq!((whole.text.as_str(), whole.offered), (said, false));

        let list = payload::Payload::Value(json!([1, closure.known()]));
        let preview = in_row(of(), &list).unwrap();
        assert_eq!(
            preview.text.as_deref(),
            Some(format!("[\n  1,\n  \"{said}\"\n]").as_str())
        );
        assert!(preview.offered, "the rest of it");

        let event = event(&json!({"activity": {"arguments": stored}}).to_string());
        let found = of_event(&event, None);
        assert!(found[0].1.mark.is_some() && !found[0].1.text.contains(&stored));
        assert!(found[0].1.text.contains(said));
        assert_eq!(
            (found[1].1.text.as_str(), found[1].1.offered),
            (said, false)
        );
    }

    #[test]
    fn what_is_no_json_is_shown_as_it_is() {
        let found = of_event(&event("{\"cut"), None);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].1.text, "{\"cut");
        assert!(found[0].1.mark.is_some() && !found[0].1.json);
        assert_eq!(
            of_event(
                &HistoryEvent {
                    payload: None,
                    ..event("")
                },
                None
            ),
            []
        );
    }

    #[test]
    fn a_requests_address_and_headers_stay_in_the_database() {
        let stored = json!({"command_context": {"request": {
            "path": "/signal", "ip": "10.9.8.7", "headers": {"cookie": "secret"}, "user_agent": "curl",
        }}});
        let found = of_event(&event(&stored.to_string()), None);
        let text = &found[0].1.text;
        assert!(text.contains("/signal") && found[0].1.mark.is_some());
        for hidden in ["10.9.8.7", "secret", "curl"] {
            assert!(!text.contains(hidden), "{hidden}");
        }
    }
}
