//! What may not leave: a policy of rules over fixed slots of the bundle.
//!
//! A slot is a kind of value, wherever the bundle repeats it (`slots` has the table): a rule for
//! `commands.*.payload` also covers the decoded copy in the timeline and the one inside events,
//! and one for a failure's message also covers the sentences made of it.

mod columns;
mod copies;
mod rows;
mod slots;
mod ties;

use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::seal::hex;
use crate::durable::canonical;
pub use copies::{CopyId, Entry};
#[cfg(test)]
pub use rows::{held_columns, held_tables};
use slots::TABLE;
pub use slots::{HIDEABLE_IN_TIMELINE, Kind, Slot, command_slots, message_slot};

/// What becomes of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// It is null.
    Drop,
    /// A note says that something was here.
    #[default]
    Mask,
    /// The note carries a digest, so that equal values can be told.
    Hash,
}

/// The rules in force, under a name that every bundle made with them carries.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(from = "WrittenPolicy")]
pub struct Policy {
    pub name: String,
    /// Whether it holds for what pages and their JSON tell as well as for exports.
    pub pages: bool,
    salt: String,
    /// For each slot what is done to it, and where below it; in the order of the rules.
    acts: Vec<Vec<(Action, Vec<String>)>>,
}

/// A policy as it stands in the file.
#[derive(Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "a table [redaction] with its rules as [[redaction.rules]]"
)]
struct WrittenPolicy {
    #[serde(rename = "policy", default = "unnamed")]
    name: String,
    /// Mixed into digests, against guessing short values.
    #[serde(default)]
    salt: String,
    #[serde(default)]
    pages: bool,
    rules: Vec<Rule>,
}

fn unnamed() -> String {
    "plimsoll".into()
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "Written")]
struct Rule {
    target: Target,
    action: Action,
}

#[derive(Clone, Debug, PartialEq)]
enum Target {
    Category(Category),
    Place(Place),
}

/// A rule as it stands in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a rule with a category or a path")]
struct Written {
    category: Option<Category>,
    path: Option<Place>,
    #[serde(default)]
    action: Action,
}

impl TryFrom<Written> for Rule {
    type Error = &'static str;

    fn try_from(written: Written) -> Result<Self, Self::Error> {
        let target = match (written.category, written.path) {
            (Some(category), None) => Target::Category(category),
            (None, Some(path)) => Target::Place(path),
            _ => return Err("a redaction rule needs either a category or a path"),
        };
        Ok(Self {
            target,
            action: written.action,
        })
    }
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "String")]
struct Category(Vec<Slot>);

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "String")]
struct Place {
    /// Several where the same place holds values of several kinds.
    slots: Vec<Slot>,
    /// Keys below the slot; `*` stands for any one key or position.
    inner: Vec<String>,
}

impl TryFrom<String> for Category {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        let slots: Vec<Slot> = TABLE
            .iter()
            .filter(|about| name == "*" || about.category == name)
            .map(|about| about.slot)
            .collect();
        if slots.is_empty() {
            let mut known: Vec<&str> = Vec::new();
            for about in TABLE {
                if !known.contains(&about.category) {
                    known.push(about.category);
                }
            }
            return Err(format!(
                "there is no category {name:?}; choose one of {} or *",
                known.join(", ")
            ));
        }
        Ok(Self(slots))
    }
}

impl TryFrom<String> for Place {
    type Error = String;

    fn try_from(pattern: String) -> Result<Self, String> {
        let steps: Vec<&str> = pattern.split('.').collect();
        if steps.iter().any(|step| step.is_empty()) {
            return Err(format!("the pattern {pattern:?} has an empty step"));
        }
        let below = |place: &&'static str| -> Option<&[&str]> {
            let place: Vec<&str> = place.split('.').collect();
            steps.strip_prefix(place.as_slice())
        };
        let mut found: Option<Self> = None;
        for about in TABLE {
            let Some(inner) = about.places.iter().find_map(below) else {
                continue;
            };
            let place = found.get_or_insert_with(|| Self {
                slots: Vec::new(),
                inner: inner.iter().map(|step| (*step).to_owned()).collect(),
            });
            place.slots.push(about.slot);
        }
        found.ok_or_else(|| {
            let mut places: Vec<&str> = TABLE.iter().map(|about| about.places[0]).collect();
            places.dedup();
            format!(
                "the pattern {pattern:?} reaches nothing that can be redacted; it must begin with one of {}",
                places.join(", ")
            )
        })
    }
}

impl Rule {
    /// The keys below the slot that it acts on; none when it does not act on the slot.
    fn inner(&self, slot: Slot) -> Option<&[String]> {
        let direct = match &self.target {
            Target::Category(category) => category.0.contains(&slot).then_some(&[][..]),
            Target::Place(place) => place.slots.contains(&slot).then_some(&*place.inner),
        };
        // What is hidden because of something else is hidden as a whole.
        let kin = slot.about().repeats.iter().copied().chain([slot]);
        direct.or_else(|| {
            let mut kin = kin.filter(|kin| self.is_on(*kin));
            kin.next().map(|_| &[][..])
        })
    }

    /// Whether it acts on the slot by its own name, or on what events tell of it.
    fn is_on(&self, slot: Slot) -> bool {
        match &self.target {
            Target::Category(Category(slots)) => {
                slots.contains(&slot)
                    || (slots.contains(&Slot::EventPayload) && slot.is_told_at(&[]))
            }
            Target::Place(Place { slots, inner }) => {
                slots.contains(&slot)
                    || (slots.contains(&Slot::EventPayload) && slot.is_told_at(inner))
            }
        }
    }
}

impl From<WrittenPolicy> for Policy {
    fn from(written: WrittenPolicy) -> Self {
        let acts = |slot: Slot| {
            let of_rule = |rule: &Rule| Some((rule.action, rule.inner(slot)?.to_vec()));
            written.rules.iter().filter_map(of_rule).collect()
        };
        Self {
            acts: TABLE.iter().map(|about| acts(about.slot)).collect(),
            name: written.name,
            pages: written.pages,
            salt: written.salt,
        }
    }
}

impl Policy {
    /// What a bundle says of its policy: that more is hidden than the engine looks at.
    pub fn told(&self) -> String {
        format!("{}, with every copy", self.name)
    }

    fn acts(&self, slot: Slot) -> &[(Action, Vec<String>)] {
        self.acts.get(slot as usize).map_or(&[], Vec::as_slice)
    }

    /// Whether some rule acts on the slot, on a part of it, or on what repeats it.
    pub fn touches(&self, slot: Slot) -> bool {
        !self.acts(slot).is_empty()
    }

    /// What of the value at `path` may leave.
    pub fn apply(&self, slot: Slot, path: &str, value: Value) -> Value {
        let mut value = value;
        for (action, inner) in self.acts(slot) {
            // An encoded payload has no keys to reach: it goes as a whole.
            if inner.is_empty() || value.is_string() {
                return self.replaced(*action, path, slot, &value);
            }
            self.inside(*action, slot, path, inner, &mut value);
        }
        value
    }

    fn inside(&self, action: Action, slot: Slot, path: &str, inner: &[String], value: &mut Value) {
        let Some((step, rest)) = inner.split_first() else {
            *value = self.replaced(action, path, slot, value);
            return;
        };
        let hit = |key: &str| step == "*" || step == key;
        match value {
            Value::Object(map) => {
                for (key, value) in map.iter_mut().filter(|(key, _)| hit(key)) {
                    self.inside(action, slot, &format!("{path}.{key}"), rest, value);
                }
            }
            Value::Array(items) => {
                for (n, value) in items.iter_mut().enumerate() {
                    if hit(&n.to_string()) {
                        self.inside(action, slot, &format!("{path}.{n}"), rest, value);
                    }
                }
            }
            // The rest of the way may lie inside an encoded text.
            Value::String(_) => *value = self.replaced(action, path, slot, value),
            _ => {}
        }
    }

    fn replaced(&self, action: Action, path: &str, slot: Slot, value: &Value) -> Value {
        if is_note(path, value) {
            return value.clone();
        }
        let mut note = json!({"redacted": true, "path": path, "category": slot.category()});
        match action {
            Action::Drop => return Value::Null,
            Action::Mask => {}
            Action::Hash => {
                let mut text = self.salt.clone().into_bytes();
                canonical::write(&mut text, value);
                note["sha256"] = hex(&Sha256::digest(&text)).into();
            }
        }
        note
    }
}

/// Whether this is what a rule left at the path. Nothing else fits in it.
fn is_note(path: &str, value: &Value) -> bool {
    let Some(map) = value.as_object() else {
        return false;
    };
    map.get("path").and_then(Value::as_str) == Some(path)
        && map.iter().all(|(key, value)| match key.as_str() {
            "path" => true,
            "redacted" => *value == true,
            "category" => TABLE.iter().any(|about| *value == about.category),
            "sha256" => value.as_str().is_some_and(|hash| {
                hash.len() == 64 && hash.bytes().all(|b| b.is_ascii_hexdigit())
            }),
            _ => false,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(toml: &str) -> Result<Policy, String> {
        toml::from_str(toml).map_err(|error| error.to_string())
    }

    #[test]
    fn a_rule_covers_every_copy_of_its_value() {
        let policy = policy("rules = [{path = 'commands.*.payload', action = 'drop'}]").unwrap();
        for kind in [
            Slot::StartCommand,
            Slot::SignalArguments,
            Slot::CommandReason,
        ] {
            let left = policy.apply(kind, "somewhere", json!("secret"));
            assert_eq!(left, Value::Null, "{kind:?}");
        }
        assert!(!policy.touches(Slot::CommandContext));
        let kept = policy.apply(Slot::CommandContext, "commands.0.context", json!({"a": 1}));
        assert_eq!(kept, json!({"a": 1}));
    }

    #[test]
    fn a_key_inside_is_reached_and_an_encoded_value_goes_as_a_whole() {
        let policy = policy(
            "salt = 's'\nrules = [{path = 'history_events.*.payload.card.number'}, \
             {path = 'history_events.*.payload.list.*.pin', action = 'hash'}]",
        )
        .unwrap();
        let left = policy.apply(
            Slot::EventPayload,
            "history_events.3.payload",
            json!({"card": {"number": "4111", "kind": "visa"}, "list": [{"pin": 1}, {"pin": 1}]}),
        );
        assert_eq!(left["card"]["kind"], "visa");
        assert_eq!(
            left["card"]["number"],
            json!({"redacted": true, "path": "history_events.3.payload.card.number", "category": "history_event"})
        );
        assert_eq!(
            left["list"][0]["pin"]["sha256"], left["list"][1]["pin"]["sha256"],
            "equal values keep an equal digest"
        );
        assert!(!left.to_string().contains("4111"));
        let encoded = policy.apply(Slot::EventPayload, "p", json!({"card": "wwHioz3/"}));
        assert!(!encoded.to_string().contains("wwHioz3/"), "{encoded}");
    }

    #[test]
    fn what_is_made_of_a_hidden_event_is_hidden_too() {
        for rule in [
            "{category = 'history_event'}",
            "{path = 'history_events.*.payload.message'}",
            "{path = 'history_events.*.payload.exception.message'}",
            "{path = 'history_events.*.payload.exception'}",
            "{path = 'history_events.*.payload.*.message'}",
        ] {
            let policy = policy(&format!("rules = [{rule}]")).unwrap();
            let left = policy.apply(Slot::FailureMessage, "failures.0.message", json!("secret"));
            assert_eq!(left["redacted"], true, "{rule}");
        }
        let other = policy("rules = [{path = 'history_events.*.payload.card'}]").unwrap();
        assert!(!other.touches(Slot::FailureMessage) && !other.touches(Slot::ActivityResult));
    }

    #[test]
    fn a_rule_that_reaches_nothing_is_refused() {
        for (rule, says) in [
            ("{path = 'commands.*.payloads'}", "reaches nothing"),
            ("{path = 'commands..payload'}", "empty step"),
            ("{category = 'everything'}", "no category"),
            ("{action = 'mask'}", "either a category or a path"),
            ("{category = '*', action = 'burn'}", "burn"),
        ] {
            let error = policy(&format!("rules = [{rule}]")).unwrap_err();
            assert!(error.contains(says), "{rule}: {error}");
        }
    }
}
