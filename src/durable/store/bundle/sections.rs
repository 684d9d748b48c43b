//! The sections of a bundle, and the entries of those that are lists.

use std::{
    collections::HashMap,
    io::{Read, Seek},
};

use chrono::{DateTime, Utc};
use serde_json::{Map, Value, value::RawValue};

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
}

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
        Ok(match serde_json::from_slice(&text) {
            Ok(Value::Object(map)) => Section(map),
            Ok(Value::Null) => Section::default(),
            Ok(Value::Array(list)) if list.is_empty() => Section::default(),
            _ => {
                let text = String::from_utf8_lossy(&text);
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

    /// A section that is a list, entry by entry.
    pub fn rows(
        &mut self,
        section: &'static str,
        mut of: impl FnMut(&Entry<'_>) -> Vec<Row>,
    ) -> Result<Vec<Row>, ReadError> {
        let Some(span) = find(&self.members, section) else {
            return Ok(Vec::new());
        };
        if self.source.first(span)? != Some(b'[') {
            let text = self.source.text(span)?;
            let text = String::from_utf8_lossy(&text);
            if text != "null" {
                self.note(section, String::new(), Problem::NotAList, &text);
            }
            return Ok(Vec::new());
        }
        let mut rows = Vec::new();
        let mut odd: Vec<(usize, String)> = Vec::new();
        let mut count = 0;
        self.source.items(span, |source, items| {
            let (from, text) = match items {
                Items::Several(from, text) => (from, text),
                Items::Long(item) => (item.from, source.text(item)?),
            };
            let text = [b"[", text.as_slice(), b"]"].concat();
            let entries: Vec<&RawValue> =
                serde_json::from_slice(&text).map_err(|error| ReadError::Json {
                    at: from + error.column().saturating_sub(2) as u64,
                    reason: "not a JSON value",
                })?;
            for entry in entries {
                match serde_json::from_str::<Entry<'_>>(entry.get()) {
                    Ok(entry) => rows.extend(of(&entry)),
                    Err(_) => odd.push((count, entry.get().chars().take(200).collect())),
                }
                count += 1;
            }
            Ok(())
        })?;
        for (n, text) in odd {
            self.note(section, format!("#{n}"), Problem::NotARow, &text);
        }
        Ok(rows)
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

    /// The runs this section names, as links.
    pub fn relatives(&self, notices: &mut Notices) -> Vec<Relative> {
        let mut found = Vec::new();
        for side in ["parents", "children"] {
            let entries = self.0.get(side).and_then(Value::as_array);
            for (n, entry) in entries.into_iter().flatten().enumerate() {
                let Value::Object(map) = entry else {
                    notices.note(Notice {
                        table: "bundle",
                        id: format!("{side} #{n}"),
                        column: "links",
                        problem: Problem::NotARow,
                        raw: Val::from(entry.to_string()).shown(),
                    });
                    continue;
                };
                found.push(Relative {
                    entry: Section(map.clone()),
                    is_parent: side == "parents",
                });
            }
        }
        found
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
            // Kept as it is written: numbers in it keep their kind, and its depth costs nothing.
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
        other => payload::restored(other).map_or(Val::Null, Val::from),
    }
}
