//! The sections of a bundle, and the entries of those that are lists.

use std::{
    collections::HashMap,
    io::{Read, Seek},
};

use chrono::{DateTime, Utc};
use serde_json::{Map, Value, value::RawValue};

use super::room::{ENTRY, Room};
use crate::{
    db::{Row, Val},
    durable::{
        export::source::{Items, ReadError, Source, Span, find},
        payload,
        stored::{Notice, Notices, Problem},
    },
};

/// One entry of a bundle: its members, not yet looked at.
pub(super) type Entry<'t> = HashMap<String, &'t RawValue>;

pub(super) struct Bundle<R> {
    pub source: Source<R>,
    pub members: Vec<(String, Span)>,
    pub notices: Notices,
    pub room: Room,
}

/// No envelope of a payload that is kept elsewhere is longer.
const ENVELOPE: usize = 64 * 1024;

impl<R: Read + Seek> Bundle<R> {
    fn note(&mut self, section: &'static str, id: String, problem: Problem, raw: &str) {
        self.notices.note(Notice {
            table: "bundle",
            id,
            column: section,
            problem,
            raw: Val::from(raw).shown(),
        });
    }

    /// A section that is a map. PHP writes an empty one as a list.
    pub fn map(&mut self, section: &'static str) -> Result<Section, ReadError> {
        let Some(span) = find(&self.members, section) else {
            return Ok(Section::default());
        };
        let text = self.source.text(span)?;
        let text = String::from_utf8_lossy(&text);
        self.room.at = span.from;
        Ok(match self.room.value(&text)? {
            Value::Object(map) => Section(map),
            Value::Null if text == "null" => Section::default(),
            Value::Array(list) if list.is_empty() => Section::default(),
            _ => {
                self.note(section, String::new(), Problem::NotARow, &text);
                Section::default()
            }
        })
    }

    pub fn moment(&mut self, member: &'static str) -> Result<Option<DateTime<Utc>>, ReadError> {
        let Some(span) = find(&self.members, member) else {
            return Ok(None);
        };
        let text = self.source.text(span)?;
        let text: Option<String> = serde_json::from_slice(&text).ok();
        Ok(text.and_then(|text| text.parse().ok()))
    }

    /// A section that is a list, as rows.
    pub fn rows(
        &mut self,
        section: &'static str,
        mut of: impl FnMut(&Entry<'_>, &mut Room) -> Result<Vec<Row>, ReadError>,
    ) -> Result<Vec<Row>, ReadError> {
        let mut rows = Vec::new();
        let span = find(&self.members, section);
        self.entries(section, "", span, |entry, room| {
            let more = of(entry, room)?;
            room.take(more.iter().map(|row| row.cells().count()).sum())?;
            rows.extend(more);
            Ok(())
        })?;
        Ok(rows)
    }

    /// The runs this one is linked to.
    pub fn relatives(&mut self) -> Result<Vec<Relative>, ReadError> {
        let mut found = Vec::new();
        let Some(span) = find(&self.members, "links") else {
            return Ok(found);
        };
        if self.source.first(span)? != Some(b'{') {
            self.map("links")?;
            return Ok(found);
        }
        let sides = self.source.members(span)?;
        for side in ["parents", "children"] {
            self.entries("links", side, find(&sides, side), |entry, room| {
                // No member of a link is more than a word.
                let words = entry
                    .iter()
                    .filter(|(_, raw)| !raw.get().starts_with(['[', '{']));
                let mut map = Map::new();
                for (key, raw) in words {
                    map.insert(key.clone(), room.value(raw.get())?);
                }
                found.push(Relative {
                    entry: Section(map),
                    is_parent: side == "parents",
                });
                Ok(())
            })?;
        }
        Ok(found)
    }

    /// A list, entry by entry.
    fn entries(
        &mut self,
        section: &'static str,
        part: &str,
        span: Option<Span>,
        mut each: impl FnMut(&Entry<'_>, &mut Room) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        let Some(span) = span else { return Ok(()) };
        if self.source.first(span)? != Some(b'[') {
            let text = self.source.text(span)?;
            let text = String::from_utf8_lossy(&text);
            if text != "null" {
                self.note(section, part.to_owned(), Problem::NotAList, &text);
            }
            return Ok(());
        }
        let Self {
            source,
            notices,
            room,
            ..
        } = self;
        room.at = span.from;
        let mut count = 0;
        source.items(span, |source, items| {
            let (from, text) = match items {
                Items::Several(from, text) => (from, text),
                Items::Long(item) => {
                    // Refused here if it has too many of them.
                    if source.first(item)? == Some(b'{') {
                        source.members(item)?;
                    }
                    (item.from, source.text(item)?)
                }
            };
            let text = [b"[", text.as_slice(), b"]"].concat();
            let entries: Vec<&RawValue> =
                serde_json::from_slice(&text).map_err(|error| ReadError::Json {
                    at: from + error.column().saturating_sub(2) as u64,
                    reason: "not a JSON value",
                })?;
            for raw in entries {
                room.take(ENTRY)?;
                match serde_json::from_str::<Entry<'_>>(raw.get()) {
                    Ok(entry) => each(&entry, room)?,
                    Err(_) => notices.note(Notice {
                        table: "bundle",
                        id: format!("{part}#{count}"),
                        column: section,
                        problem: Problem::NotARow,
                        raw: Val::from(raw.get().chars().take(200).collect::<String>()).shown(),
                    }),
                }
                count += 1;
            }
            Ok(())
        })
    }
}

/// A section that is a map.
#[derive(Clone, Debug, Default)]
pub(super) struct Section(pub Map<String, Value>);

impl Section {
    pub fn text(&self, key: &str) -> Option<String> {
        let text = self.0.get(key)?.as_str()?;
        (!text.is_empty()).then(|| text.to_owned())
    }

    pub fn object(&self, key: &str) -> Map<String, Value> {
        match self.0.get(key) {
            Some(Value::Object(map)) => map.clone(),
            _ => Map::new(),
        }
    }

    pub fn cell(&self, key: &str) -> Val {
        self.0.get(key).map_or(Val::Null, val)
    }
}

/// The other end of a link.
pub(super) struct Relative {
    pub entry: Section,
    pub is_parent: bool,
}

impl Relative {
    pub fn id(&self, what: &str) -> Option<String> {
        let side = if self.is_parent { "parent" } else { "child" };
        self.entry.text(&format!("{side}_workflow_{what}_id"))
    }
}

/// Where the members of an entry go.
pub(super) trait Members {
    fn cell(&self, key: &str) -> Val;
}

impl Members for Entry<'_> {
    fn cell(&self, key: &str) -> Val {
        let Some(raw) = self.get(key).map(|raw| raw.get()) else {
            return Val::Null;
        };
        match raw.as_bytes().first() {
            Some(b'{') if raw.len() <= ENVELOPE && raw.contains("\"redacted\"") => {
                serde_json::from_str(raw).map_or_else(|_| Val::from(raw), |value| val(&value))
            }
            // Kept as it is written: numbers in it keep their kind, and its depth costs nothing.
            Some(b'[' | b'{') if raw.len() > ENVELOPE => Val::from(raw),
            Some(b'[' | b'{') if !raw.contains("\"external_storage\"") => Val::from(raw),
            _ => serde_json::from_str(raw).map_or_else(|_| Val::from(raw), |value| val(&value)),
        }
    }
}

impl Members for Section {
    fn cell(&self, key: &str) -> Val {
        Self::cell(self, key)
    }
}

/// A cell for what a bundle says. Whether the column can hold it is asked when it is read.
pub(super) fn val(value: &Value) -> Val {
    match value {
        Value::Null => Val::Null,
        Value::Bool(flag) => Val::Bool(*flag),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(number), _) => Val::Int(number),
            (None, Some(number)) => Val::Float(number),
            (None, None) => Val::from(number.to_string()),
        },
        note if payload::is_hidden_text(note) => Val::from(payload::hidden_text(note)),
        other => payload::restored(other).map_or(Val::Null, Val::from),
    }
}
