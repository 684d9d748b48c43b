//! Events: what happened, one line each.

use crate::{
    durable::{
        projection::{
            Projected,
            timeline::{Kind, told},
        },
        store::history::{EventWindow, Listed, Place, WINDOW, is_failure},
        stored::{EventType, HistoryEvent},
    },
    run::{
        history::{Event, History},
        tag::{Mark, Tag, Tone},
        window::Window,
    },
};

/// A history no longer than this stands in the run's page.
const EAGER: usize = 60;

/// The history as part of the run's page: whole when it is short, otherwise left to its own page.
pub fn history(p: &Projected<'_>) -> History {
    let events = &p.cx.snapshot.events;
    let loaded = events.len() <= EAGER;
    History {
        window: Window {
            from: 0,
            len: if loaded { events.len() } else { 0 },
            total: events.len(),
            loaded,
        },
        rows: events
            .iter()
            .rev()
            .take(if loaded { EAGER } else { 0 })
            .map(|event| row(event, event.payload.is_some()))
            .collect(),
        ..History::default()
    }
}

/// A window as its own page shows it; `newest_first` says in which order.
pub fn window(window: &EventWindow, place: Place, newest_first: bool) -> History {
    let sequences = || window.events.iter().map(|listed| listed.event.sequence);
    let (lowest, highest) = (sequences().min(), sequences().max());
    let until = window.looked.and_then(|looked| looked.until);
    let down = !matches!(place, Place::Oldest | Place::After(_));
    let chosen = match place {
        Place::Around(sequence) => Some(sequence),
        _ => None,
    };
    let mut rows: Vec<Event> = window.events.iter().map(listed).collect();
    for row in &mut rows {
        row.chosen = Some(row.sequence) == chosen;
    }
    if newest_first {
        rows.reverse();
    }
    let edge = |more: bool, own: Option<i64>, walked: bool| {
        more.then(|| if walked { until.or(own) } else { own })
            .flatten()
    };
    History {
        older: edge(window.more_below, lowest, down),
        newer: edge(window.more_above, highest, !down),
        looks_on: until.is_some(),
        note: note(window),
        missing: chosen.filter(|chosen| sequences().all(|sequence| sequence != *chosen)),
        window: Window {
            from: 0,
            len: rows.len(),
            total: rows.len(),
            loaded: true,
        },
        rows,
    }
}

fn note(window: &EventWindow) -> String {
    let shown = match (window.events.first(), window.events.last()) {
        (Some(first), Some(last)) if window.looked.is_none() => {
            format!("Events {} to {}", first.event.sequence, last.event.sequence)
        }
        (Some(_), Some(_)) => match window.events.len() {
            1 => "1 event".to_owned(),
            n => format!("{n} events"),
        },
        _ => "No event".to_owned(),
    };
    match window.looked {
        None => format!("{shown}."),
        Some(looked) => match looked.until {
            None if window.events.len() < WINDOW => {
                format!("{shown}; the history was looked at to its end.")
            }
            None => format!("{shown}."),
            Some(until) => format!(
                "{shown} in the {} events looked at, up to event {until}.",
                looked.events
            ),
        },
    }
}

fn listed(listed: &Listed) -> Event {
    let mut row = row(&listed.event, listed.bytes > 0);
    if !listed.is_read() {
        row.summary
            .push_str(" (its payload is too long to be read here)");
    }
    row
}

fn row(event: &HistoryEvent, has_payload: bool) -> Event {
    Event {
        sequence: event.sequence,
        kind: word(Kind::of(&event.event_type)),
        event_type: event.event_type.as_str().to_owned(),
        summary: told(event),
        at: event.time(),
        failure: is_failure(event).then(|| mark(&event.event_type)),
        chosen: false,
        has_payload,
    }
}

fn mark(event_type: &EventType) -> Tag {
    use EventType as E;
    match event_type {
        E::ActivityRetryScheduled => Tag::new("retried", Tone::Attn, Mark::Loop),
        E::ActivityTimedOut | E::WorkflowTimedOut | E::ConditionWaitTimedOut => {
            Tag::new("timed out", Tone::Late, Mark::Clock)
        }
        E::WorkflowCancelled | E::ChildRunCancelled => {
            Tag::new("cancelled", Tone::Wait, Mark::Slash)
        }
        E::WorkflowTerminated | E::ChildRunTerminated => {
            Tag::new("terminated", Tone::Halt, Mark::Stop)
        }
        E::StartRejected | E::UpdateRejected => Tag::new("rejected", Tone::Fail, Mark::Slash),
        _ => Tag::new("failed", Tone::Fail, Mark::Cross),
    }
}

/// The kinds an operator may filter by, as the address spells them.
pub const KINDS: [Kind; 11] = [
    Kind::Workflow,
    Kind::Activity,
    Kind::Timer,
    Kind::Signal,
    Kind::Update,
    Kind::Child,
    Kind::Condition,
    Kind::Command,
    Kind::Failure,
    Kind::SideEffect,
    Kind::Version,
];

pub fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Command => "command",
        Kind::Update => "update",
        Kind::Signal => "signal",
        Kind::Child => "child",
        Kind::Condition => "condition",
        Kind::Activity => "activity",
        Kind::Timer => "timer",
        Kind::Failure => "failure",
        Kind::Version => "version",
        Kind::SideEffect => "side effect",
        Kind::Workflow => "workflow",
    }
}
