//! The events of updates, by the update and the command they name.

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, Utc};

use crate::durable::{
    projection::Context,
    stored::{
        EventType, HistoryEvent,
        loose::Any,
        payloads::{command::CommandSnapshot, update::UpdateEvent},
    },
};

/// An update's event, read.
pub(super) struct Read<'a> {
    event: &'a HistoryEvent,
    pub payload: UpdateEvent,
}

impl Read<'_> {
    pub fn time(&self) -> Option<DateTime<Utc>> {
        self.event.time()
    }

    fn command_id(&self) -> Option<&str> {
        self.payload.command_id(self.event)
    }
}

/// Every event of an update, read once.
pub(super) fn read_events(cx: Context<'_>) -> Vec<Read<'_>> {
    cx.snapshot
        .events
        .iter()
        .filter(|event| {
            matches!(
                event.event_type,
                EventType::UpdateAccepted
                    | EventType::UpdateRejected
                    | EventType::UpdateApplied
                    | EventType::UpdateCompleted
            )
        })
        .map(|event| Read {
            event,
            payload: event.as_payload(),
        })
        .collect()
}

pub(super) struct UpdateHistory<'a> {
    events: &'a [Read<'a>],
    by_update: BTreeMap<&'a str, Vec<usize>>,
    by_command: HashMap<&'a str, Vec<usize>>,
}

impl<'a> UpdateHistory<'a> {
    pub fn of(events: &'a [Read<'a>]) -> Self {
        let mut by_update: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        let mut by_command: HashMap<&str, Vec<usize>> = HashMap::new();
        for (n, read) in events.iter().enumerate() {
            if let Some(id) = read.payload.update_id.as_deref() {
                by_update.entry(id).or_default().push(n);
            }
            if let Some(id) = read.command_id() {
                by_command.entry(id).or_default().push(n);
            }
        }
        Self {
            events,
            by_update,
            by_command,
        }
    }

    /// Every update id that some event names.
    pub fn update_ids(&self) -> impl Iterator<Item = &'a str> {
        self.by_update.keys().copied()
    }

    /// The first event of each kind that names either id.
    pub fn of_update(&self, id: Option<&str>, command_id: Option<&str>) -> Events<'a> {
        let by_update = id.and_then(|id| self.by_update.get(id));
        let by_command = command_id.and_then(|id| self.by_command.get(id));
        let mut indices: Vec<usize> = by_update
            .into_iter()
            .chain(by_command)
            .flatten()
            .copied()
            .collect();
        indices.sort_unstable();
        let mut found = Events::default();
        for read in indices.iter().filter_map(|n| self.events.get(*n)) {
            let slot = match read.event.event_type {
                EventType::UpdateAccepted => &mut found.accepted,
                EventType::UpdateRejected => &mut found.rejected,
                EventType::UpdateApplied => &mut found.applied,
                _ => &mut found.completed,
            };
            slot.get_or_insert(read);
        }
        found
    }
}

/// The first event of each kind of one update.
#[derive(Default)]
pub(super) struct Events<'a> {
    pub accepted: Option<&'a Read<'a>>,
    pub rejected: Option<&'a Read<'a>>,
    pub applied: Option<&'a Read<'a>>,
    pub completed: Option<&'a Read<'a>>,
}

impl<'a> Events<'a> {
    fn all(&self) -> impl Iterator<Item = &'a Read<'a>> {
        [self.accepted, self.rejected, self.applied, self.completed]
            .into_iter()
            .flatten()
    }

    /// The command as the first event that carries one saw it: a later one does not fill its
    /// gaps.
    pub fn command(&self) -> Option<&'a CommandSnapshot> {
        self.all().find_map(|read| read.payload.command.as_deref())
    }

    pub fn name(&self) -> Option<String> {
        [self.accepted, self.rejected, self.completed]
            .into_iter()
            .flatten()
            .find_map(|read| read.payload.update_name.0.clone())
    }

    pub fn update_id(&self) -> Option<&'a str> {
        self.all()
            .find_map(|read| read.payload.update_id.as_deref())
    }

    pub fn command_id(&self) -> Option<&'a str> {
        self.all().find_map(Read::command_id)
    }

    /// What the first event with the key says of the arguments, null included.
    pub fn arguments(&self) -> Option<&'a Any> {
        self.all().find_map(|read| read.payload.arguments.seen())
    }

    /// The same of the result.
    pub fn result(&self) -> Option<&'a Any> {
        self.completed?.payload.result.seen()
    }

    pub fn failure_id(&self) -> Option<String> {
        self.completed?.payload.failure_id.0.clone()
    }
}
