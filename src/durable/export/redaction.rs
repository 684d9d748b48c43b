//! What may not leave: a policy of rules over fixed slots of the bundle.
//!
//! A slot is a kind of value, wherever the bundle repeats it: a rule for `commands.*.payload`
//! also covers the decoded copy in the timeline, and one for a failure's message also covers the
//! sentences made of it.

use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{canonical, seal::hex};

/// A kind of value a policy can act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    WorkflowArguments,
    WorkflowOutput,
    EventPayload,
    CommandPayload,
    CommandContext,
    CommandReason,
    UpdateArguments,
    UpdateResult,
    SignalArguments,
    TaskPayload,
    ActivityArguments,
    ActivityResult,
    FailureMessage,
    FailureFile,
    FailureTrace,
}

impl Slot {
    const ALL: [Self; 15] = [
        Self::WorkflowArguments,
        Self::WorkflowOutput,
        Self::EventPayload,
        Self::CommandPayload,
        Self::CommandContext,
        Self::CommandReason,
        Self::UpdateArguments,
        Self::UpdateResult,
        Self::SignalArguments,
        Self::TaskPayload,
        Self::ActivityArguments,
        Self::ActivityResult,
        Self::FailureMessage,
        Self::FailureFile,
        Self::FailureTrace,
    ];

    pub fn category(self) -> &'static str {
        match self {
            Self::WorkflowArguments | Self::WorkflowOutput => "workflow_payload",
            Self::EventPayload => "history_event",
            Self::CommandPayload => "command_payload",
            Self::CommandContext => "command_context",
            Self::CommandReason => "command_reason",
            Self::UpdateArguments | Self::UpdateResult => "update_payload",
            Self::SignalArguments => "signal_payload",
            Self::TaskPayload => "task_payload",
            Self::ActivityArguments | Self::ActivityResult => "activity_payload",
            Self::FailureMessage | Self::FailureFile | Self::FailureTrace => "failure_diagnostic",
        }
    }

    /// Its places in the bundle, `*` for a position.
    fn places(self) -> &'static [&'static str] {
        match self {
            Self::WorkflowArguments => &["payloads.arguments.data"],
            Self::WorkflowOutput => &["payloads.output.data"],
            Self::EventPayload => &["history_events.*.payload"],
            Self::CommandPayload => &["commands.*.payload", "timeline.*.command.payload"],
            Self::CommandContext => &["commands.*.context", "timeline.*.command.context"],
            Self::CommandReason => &["commands.*.reason"],
            Self::UpdateArguments => &["updates.*.arguments"],
            Self::UpdateResult => &["updates.*.result"],
            Self::SignalArguments => &["signals.*.arguments"],
            Self::TaskPayload => &["tasks.*.payload"],
            Self::ActivityArguments => &["activities.*.arguments"],
            Self::ActivityResult => &["activities.*.result"],
            Self::FailureMessage => &[
                "failures.*.message",
                "timeline.*.failure.message",
                "timeline.*.message",
            ],
            Self::FailureFile => &["failures.*.file", "timeline.*.failure.file"],
            Self::FailureTrace => &["failures.*.trace_preview"],
        }
    }
}

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
#[serde(deny_unknown_fields)]
pub struct Policy {
    #[serde(rename = "policy", default = "unnamed")]
    pub name: String,
    /// Mixed into digests, against guessing short values.
    #[serde(default)]
    salt: String,
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
#[serde(deny_unknown_fields)]
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
    slot: Slot,
    /// Keys below the slot; `*` stands for any one key or position.
    inner: Vec<String>,
}

impl TryFrom<String> for Category {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        let slots: Vec<Slot> = Slot::ALL
            .into_iter()
            .filter(|slot| name == "*" || slot.category() == name)
            .collect();
        if slots.is_empty() {
            let mut known: Vec<&str> = Slot::ALL.iter().map(|slot| slot.category()).collect();
            known.dedup();
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
        for slot in Slot::ALL {
            for place in slot.places() {
                let place: Vec<&str> = place.split('.').collect();
                if let Some(inner) = steps.strip_prefix(place.as_slice()) {
                    return Ok(Self {
                        slot,
                        inner: inner.iter().map(|step| (*step).to_owned()).collect(),
                    });
                }
            }
        }
        let places: Vec<&str> = Slot::ALL.iter().map(|slot| slot.places()[0]).collect();
        Err(format!(
            "the pattern {pattern:?} reaches nothing that can be redacted; it must begin with one of {}",
            places.join(", ")
        ))
    }
}

impl Rule {
    /// The keys below the slot that it acts on; none when it does not act on the slot.
    fn inner(&self, slot: Slot) -> Option<&[String]> {
        match &self.target {
            Target::Category(category) => category.0.contains(&slot).then_some(&[]),
            Target::Place(place) => (place.slot == slot).then_some(place.inner.as_slice()),
        }
    }
}

impl Policy {
    /// Whether some rule acts on the slot or on a part of it.
    pub fn touches(&self, slot: Slot) -> bool {
        self.rules.iter().any(|rule| rule.inner(slot).is_some()) || self.derived(slot).is_some()
    }

    /// What is done to a value because of what it was made of.
    fn derived(&self, slot: Slot) -> Option<Action> {
        match slot {
            Slot::FailureMessage => self.hides_told_failures("message"),
            Slot::FailureFile => self.hides_told_failures("file"),
            Slot::FailureTrace => self.hides_told_failures("trace"),
            _ => None,
        }
    }

    /// Whether what an event says of a failure is hidden, so that what is made of it must be too.
    fn hides_told_failures(&self, key: &str) -> Option<Action> {
        self.rules.iter().find_map(|rule| {
            let inner = rule.inner(Slot::EventPayload)?;
            let hidden = match inner.first().map(String::as_str) {
                None | Some("*" | "exception") => true,
                Some(first) => first == key,
            };
            hidden.then_some(rule.action)
        })
    }

    /// What of the value at `path` may leave.
    pub fn apply(&self, slot: Slot, path: &str, value: Value) -> Value {
        let mut value = value;
        if let Some(action) = self.derived(slot) {
            return self.replaced(action, path, slot, &value);
        }
        for rule in &self.rules {
            let Some(inner) = rule.inner(slot) else {
                continue;
            };
            // An encoded payload has no keys to reach: it goes as a whole.
            if inner.is_empty() || value.is_string() {
                return self.replaced(rule.action, path, slot, &value);
            }
            self.inside(rule.action, slot, path, inner, &mut value);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(toml: &str) -> Result<Policy, String> {
        toml::from_str(toml).map_err(|error| error.to_string())
    }

    #[test]
    fn a_rule_covers_every_copy_of_its_value() {
        let policy = policy("rules = [{path = 'commands.*.payload', action = 'drop'}]").unwrap();
        for path in ["commands.0.payload", "timeline.7.command.payload"] {
            let left = policy.apply(Slot::CommandPayload, path, json!("secret"));
            assert_eq!(left, Value::Null);
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
        ] {
            let policy = policy(&format!("rules = [{rule}]")).unwrap();
            let left = policy.apply(Slot::FailureMessage, "failures.0.message", json!("secret"));
            assert_eq!(left["redacted"], true, "{rule}");
        }
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
