//! Applies a policy to what is about to be written, and remembers what it hid beyond the slots
//! the engine itself looks at.

use serde_json::Value;

use super::{
    Policy,
    history::Told,
    redaction::{CopyId, Entry, Kind, Slot, command_slots, message_slot},
};
use crate::durable::stored::HistoryEvent;

/// What was hidden in an event or in an entry of the timeline. Small: there is one for each.
#[derive(Clone, Copy, Debug)]
pub(super) enum Hidden {
    /// A slot of the timeline that the engine looks at too.
    Slot(&'static &'static str),
    Copy(CopyId),
    Message,
    Summary,
}

impl Hidden {
    pub fn path(self, n: u32) -> Option<String> {
        match self {
            Self::Slot(path) => Some(format!("timeline.{n}.{path}")),
            Self::Copy(id) => id.path(n),
            Self::Message => Some(format!("timeline.{n}.message")),
            Self::Summary => Some(format!("timeline.{n}.summary")),
        }
    }
}

/// Events whose sentence quotes a reason.
const QUOTING: [&str; 9] = [
    "CancelRequested",
    "WorkflowCancelled",
    "TerminateRequested",
    "WorkflowTerminated",
    "ArchiveRequested",
    "WorkflowArchived",
    "SchedulePaused",
    "ScheduleDeleted",
    "ScheduleTriggerSkipped",
];

/// Hides what a policy says; without one, nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hide<'p>(pub Option<&'p Policy>);

impl Hide<'_> {
    pub fn touches(self, slot: Slot) -> bool {
        self.0.is_some_and(|policy| policy.touches(slot))
    }

    pub fn touches_activities(self) -> bool {
        [
            Slot::ActivityArguments,
            Slot::ActivityResult,
            Slot::ActivityProgress,
        ]
        .into_iter()
        .any(|slot| self.touches(slot))
    }

    /// The slot of a command's payload by which it is hidden, if it is.
    pub fn command_slot(self, command_type: Option<&str>) -> Slot {
        let slots = command_slots(command_type);
        let touched = slots.iter().find(|slot| self.touches(**slot));
        *touched.unwrap_or(&slots[0])
    }

    pub fn redact(self, slot: Slot, path: impl FnOnce() -> String, value: Value) -> Value {
        match self.0 {
            Some(policy) if policy.touches(slot) => policy.apply(slot, &path(), value),
            _ => value,
        }
    }

    pub fn redact_key(
        self,
        slot: Slot,
        entry: &mut Value,
        key: &str,
        path: impl FnOnce() -> String,
    ) {
        if let Some(value) = entry.get_mut(key) {
            let taken = value.take();
            *value = self.redact(slot, path, taken);
        }
    }

    /// Hides what an entry repeats of a slot, and returns the paths of what it was.
    pub fn hide_copies(
        self,
        section: &'static str,
        path: &str,
        entry: &mut Value,
    ) -> Vec<(CopyId, String)> {
        let Some(policy) = self.0 else {
            return Vec::new();
        };
        let word = |value: &Value| value.as_str().map(str::to_owned);
        let (event_type, command_type) = match section {
            "timeline" => (word(&entry["type"]), word(&entry["command"]["type"])),
            "commands" => (None, word(&entry["type"])),
            _ => (None, None),
        };
        let liveness_state = word(&entry["liveness_state"]);
        let about = Entry {
            section,
            path,
            kind: Kind {
                event_type: event_type.as_deref(),
                command_type: command_type.as_deref(),
                liveness_state: liveness_state.as_deref(),
                ..Kind::default()
            },
        };
        let mut hidden = Vec::new();
        policy.hide_copies(&about, entry, |id, path| hidden.push((id, path.to_owned())));
        hidden
    }

    /// Whether the payload of such an event is more than what a policy leaves of it.
    pub fn touches_event(self, event: &HistoryEvent) -> bool {
        let event_type = event.event_type.as_str();
        self.0
            .is_some_and(|policy| policy.touches_event(event_type))
    }

    pub fn redact_event(
        self,
        told: &mut Told,
        event: &HistoryEvent,
        n: usize,
        payload: Value,
    ) -> Value {
        let Some(policy) = self.0 else {
            return payload;
        };
        // A path the engine names stands for all below it.
        let listed = !policy.touches(Slot::EventPayload);
        let (path, event_type) = (format!("history_events.{n}"), event.event_type.as_str());
        policy.hide_event(&path, event_type, payload, |id, _| {
            if listed {
                told.hidden_events.push((at(n), Hidden::Copy(id)));
            }
        })
    }

    /// What a policy hides of a command or a failure is hidden in the entry that repeats it, and
    /// in the sentence made of it.
    pub fn redact_entry(self, entry: &mut Value, n: usize) -> Vec<Hidden> {
        let mut hidden = Vec::new();
        if self.0.is_none() {
            return hidden;
        }
        let message = message_slot(&entry["failure"]);
        let quotes = !entry["message"].is_null() || !entry["failure"]["message"].is_null();
        let command = self.command_slot(entry["command"]["type"].as_str());
        for (slot, part, key, path) in [
            (command, "command", "payload", &"command.payload"),
            (
                Slot::CommandContext,
                "command",
                "context",
                &"command.context",
            ),
            (message, "failure", "message", &"failure.message"),
            (Slot::FailureFile, "failure", "file", &"failure.file"),
        ] {
            if self.touches(slot)
                && let Some(part) = entry.get_mut(part).filter(|part| !part.is_null())
            {
                self.redact_key(slot, part, key, || format!("timeline.{n}.{path}"));
                hidden.push(Hidden::Slot(path));
            }
        }
        let copies = self.hide_copies("timeline", &format!("timeline.{n}"), entry);
        hidden.extend(copies.into_iter().map(|(id, _)| Hidden::Copy(id)));
        if self.touches(message) && !entry["message"].is_null() {
            let path = || format!("timeline.{n}.message");
            self.redact_key(message, entry, "message", path);
            hidden.push(Hidden::Message);
        }
        let kind = entry["type"].as_str().unwrap_or("Event").to_owned();
        let quotes_message = quotes || kind == "ParentClosePolicyFailed";
        let quotes_reason = QUOTING.contains(&kind.as_str());
        if (quotes_message && self.touches(message))
            || (quotes_reason && self.touches(Slot::CommandReason))
        {
            entry["summary"] = format!("{kind}: what it quotes is redacted").into();
            hidden.push(Hidden::Summary);
        }
        hidden
    }
}

/// Positions are small; one that is not is not listed.
pub(super) fn at(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
