//! Hides what an entry of the bundle repeats of a slot.

use serde_json::Value;

use super::{
    Policy, is_note,
    slots::{Copies, EVENTS, Kind, Slot, TABLE},
};

/// One key of one row of the table of copies, kept for every event that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyId {
    slot: u8,
    copies: u8,
    key: u8,
}

impl CopyId {
    /// Its path in the entry at a position of its section.
    pub fn path(self, n: u32) -> Option<String> {
        let about = TABLE.get(usize::from(self.slot))?;
        let copies = about.copies.get(usize::from(self.copies))?;
        let key = copies.keys.get(usize::from(self.key))?;
        let way = [copies.under, &[*key]].concat();
        Some(format!("{}.{n}.{}", copies.section, way.join(".")))
    }
}

/// An entry of a section: where it stands, and what tells what its keys mean.
#[derive(Debug)]
pub struct Entry<'e> {
    pub section: &'static str,
    /// Its path in the bundle.
    pub path: &'e str,
    pub kind: Kind<'e>,
}

impl Policy {
    /// Whether an entry of the section may repeat something that is hidden.
    pub fn reaches(&self, section: &str, event_type: Option<&str>) -> bool {
        self.hiding().any(|(_, _, copies)| {
            // Which command an event tells of is seen only inside it.
            let kind = Kind {
                event_type,
                ..Kind::default()
            };
            copies.section == section && copies.when.holds(&kind)
        })
    }

    /// Hides what the entry repeats; `hidden` hears of every value that was there.
    pub fn hide_copies(
        &self,
        entry: &Entry<'_>,
        value: &mut Value,
        mut hidden: impl FnMut(CopyId, &str),
    ) {
        for (slot, n, copies) in self.hiding() {
            if copies.section != entry.section || !copies.when.holds(&entry.kind) {
                continue;
            }
            for (k, key) in copies.keys.iter().enumerate() {
                let id = CopyId {
                    slot: slot as u8,
                    copies: small(n),
                    key: small(k),
                };
                let way = copies.under.iter().copied().chain([*key]);
                let way: Vec<&str> = way.collect();
                self.hide_at(slot, entry.path, &way, value, &mut |path| hidden(id, path));
            }
        }
    }

    fn hiding(&self) -> impl Iterator<Item = (Slot, usize, &'static Copies)> {
        TABLE
            .iter()
            .filter(|about| self.touches(about.slot))
            .flat_map(|about| {
                let numbered = about.copies.iter().enumerate();
                numbered.map(|(n, copies)| (about.slot, n, copies))
            })
    }

    pub(super) fn hide_at(
        &self,
        slot: Slot,
        path: &str,
        way: &[&str],
        value: &mut Value,
        hidden: &mut dyn FnMut(&str),
    ) {
        let nothing = match &*value {
            Value::Null => true,
            Value::Array(items) => items.is_empty(),
            Value::Object(map) => map.is_empty(),
            _ => false,
        };
        if nothing || is_note(path, value) {
            return;
        }
        // The rest of the way may lie inside an encoded text.
        let Some((step, rest)) = way.split_first().filter(|_| !value.is_string()) else {
            let whole = std::mem::take(value);
            *value = self.apply(slot, path, whole);
            hidden(path);
            return;
        };
        match value {
            Value::Object(map) => {
                if let Some(value) = map.get_mut(*step) {
                    self.hide_at(slot, &format!("{path}.{step}"), rest, value, hidden);
                }
            }
            Value::Array(items) if *step == "*" => {
                for (n, value) in items.iter_mut().enumerate() {
                    self.hide_at(slot, &format!("{path}.{n}"), rest, value, hidden);
                }
            }
            _ => {}
        }
    }
}

/// The table is small.
fn small(n: usize) -> u8 {
    u8::try_from(n).unwrap_or(u8::MAX)
}

impl<'e> Entry<'e> {
    /// An event, whose payload is looked at.
    pub fn event(path: &'e str, event_type: &'e str, command_type: Option<&'e str>) -> Self {
        Self {
            section: EVENTS,
            path,
            kind: Kind {
                event_type: Some(event_type),
                command_type,
                ..Kind::default()
            },
        }
    }
}
