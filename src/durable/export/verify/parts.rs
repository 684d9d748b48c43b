//! The few words of a bundle that rules look at, however long what they stand in.

use std::io::{Read, Seek};

use serde_json::{Map as Members, Value};

use crate::durable::{
    export::source::{Items, ReadError, Source, Span, find},
    stored::loose::{self, Flag, Int, Loose, Map, NotJson, Shape, Text, Walk, shape},
};

/// No value a rule looks at is longer.
const SCALAR: u64 = 64 * 1024;

/// A value that is short, or the file is none of ours.
pub fn scalar<R: Read + Seek>(source: &mut Source<R>, span: Span) -> Result<Value, ReadError> {
    let wrong = |reason| ReadError::Json {
        at: span.from,
        reason,
    };
    if span.to - span.from > SCALAR {
        return Err(wrong("a value of more than 64 KB where a word belongs"));
    }
    let text = source.text(span)?;
    serde_json::from_slice(&text).map_err(|_| wrong("nested too deep where a word belongs"))
}

pub fn small<R: Read + Seek>(
    source: &mut Source<R>,
    members: &[(String, Span)],
    name: &str,
) -> Result<Value, ReadError> {
    match find(members, name) {
        Some(span) => scalar(source, span),
        None => Ok(Value::Null),
    }
}

/// Where a value stands inside maps within maps.
pub fn inside<R: Read + Seek>(
    source: &mut Source<R>,
    from: Option<Span>,
    way: &[&str],
) -> Result<Option<Span>, ReadError> {
    let mut found = from;
    for step in way {
        found = match found {
            Some(span) if source.first(span)? == Some(b'{') => {
                let members = source.members(span)?;
                find(&members, step)
            }
            _ => return Ok(None),
        };
    }
    Ok(found)
}

/// What a rule wants of an item of a list; all else in it is passed over.
pub trait Item: for<'t> Shape<'t> {
    /// The ways to it inside an item that is too long to be read as a whole.
    const WAYS: &[&[&str]];
}

shape! {
    pub struct ManifestEntry {
        pub codec: Text,
        pub available: Flag,
        pub diagnostic: Text,
        pub avro_framing: Text,
        pub writer_schema_fingerprint: Text,
    }
}

impl Item for ManifestEntry {
    const WAYS: &[&[&str]] = &[
        &["codec"],
        &["available"],
        &["diagnostic"],
        &["avro_framing"],
        &["writer_schema_fingerprint"],
    ];
}

shape! {
    pub struct Command {
        pub id: Text,
        pub status: Text,
    }
}

impl Item for Command {
    const WAYS: &[&[&str]] = &[&["id"], &["status"]];
}

shape! {
    pub struct Event {
        pub id: Text,
        pub sequence: Sequence,
        #[key = "type"]
        pub r#type: Text,
        pub workflow_command_id: Text,
        pub payload: Map<Payload>,
    }
}

shape! {
    pub struct Payload {
        pub workflow_command_id: Text,
        pub command: Map<Command>,
    }
}

impl Item for Event {
    const WAYS: &[&[&str]] = &[
        &["id"],
        &["sequence"],
        &["type"],
        &["workflow_command_id"],
        &["payload", "workflow_command_id"],
        &["payload", "command", "id"],
    ];
}

/// A whole number, and not one in quotes.
#[derive(Default)]
pub struct Sequence(pub Option<i64>);

impl<'a> Loose<'a> for Sequence {
    fn read(walk: &mut Walk<'a>) -> Result<Self, NotJson> {
        Ok(Self(Int::read(walk)?.strict()))
    }
}

shape! {
    /// Anything, of which nothing is wanted.
    pub struct Whatever {}
}

impl Item for Whatever {
    const WAYS: &[&[&str]] = &[];
}

/// Calls `with` for every item of a top-level list, or of a list inside a top-level map; with
/// nothing for what is no map.
pub fn each<T: Item, R: Read + Seek>(
    source: &mut Source<R>,
    span: Option<Span>,
    mut with: impl FnMut(usize, Option<&T>),
) -> Result<(), ReadError> {
    let Some(span) = span else { return Ok(()) };
    if source.first(span)? != Some(b'[') {
        return Ok(());
    }
    let mut n = 0;
    source.items(span, |source, items| {
        let (from, text) = match items {
            Items::Long(span) => {
                let picked = pick(source, span, T::WAYS)?;
                (span.from, picked.to_string().into_bytes())
            }
            Items::Several(from, text) => (from, text),
        };
        let text = [b"[", text.as_slice(), b"]"].concat();
        let items = str::from_utf8(&text).map_err(|_| NotJson);
        let items: Vec<Map<T>> =
            items
                .and_then(loose::try_value)
                .map_err(|NotJson| ReadError::Json {
                    at: from,
                    reason: "not a JSON value in the list that goes on here",
                })?;
        for item in &items {
            with(n, item.0.as_deref());
            n += 1;
        }
        Ok(())
    })
}

/// An item with nothing in it but what is wanted.
fn pick<R: Read + Seek>(
    source: &mut Source<R>,
    span: Span,
    ways: &[&[&str]],
) -> Result<Value, ReadError> {
    if source.first(span)? != Some(b'{') {
        return Ok(Value::Null);
    }
    let mut picked = Value::Object(Members::new());
    for way in ways {
        let Some(found) = inside(source, Some(span), way)? else {
            continue;
        };
        // What is no word is none that a rule could know.
        if matches!(source.first(found)?, Some(b'{' | b'[')) {
            continue;
        }
        let mut place = &mut picked;
        for step in *way {
            place = &mut place[*step];
        }
        *place = scalar(source, found)?;
    }
    Ok(picked)
}
