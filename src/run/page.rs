//! Everything one run's page shows, section by section.

use super::{
    activities::Activities,
    children::Children,
    commands::Commands,
    data::Data,
    diagnosis::Diagnosis,
    exceptions::Exceptions,
    head::Head,
    history::History,
    signals::Signals,
    tasks::Tasks,
    timeline::Timeline,
    updates::Updates,
    waits::Waits,
    window::{Asked, Window},
};

/// A run with fewer events is short.
const LONG: usize = 1_000;

/// Whether the page of a run with so many events is kept for the next view.
pub fn is_long(events: usize) -> bool {
    events >= LONG
}

#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    pub head: Head,
    pub diagnosis: Diagnosis,
    pub timeline: Timeline,
    pub activities: Activities,
    pub exceptions: Exceptions,
    pub tasks: Tasks,
    pub waits: Waits,
    pub signals: Signals,
    pub updates: Updates,
    pub commands: Commands,
    pub children: Children,
    pub data: Data,
    pub history: History,
}

impl Page {
    /// The page with its sections as they are asked for now, its timeline as it is; none where
    /// that takes rows that were not made.
    pub fn turned(&self, asked: &Asked) -> Option<Self> {
        // Rows are named by their kind and id, sections by a word.
        let row = asked.get("at").filter(|at| at.contains('-'));
        if row.is_some_and(|row| !self.has(row)) {
            return None;
        }
        let same = |name, window: Window| {
            let place = |at: &str| self.has_here(name, at).then_some(window.from);
            asked.window(name, window.total, place) == window
        };
        if !same("children", self.children.window) || !same("data", self.data.window) {
            return None;
        }
        Some(Self {
            activities: self.activities.turned("activities", asked)?,
            exceptions: self.exceptions.turned("exceptions", asked)?,
            tasks: self.tasks.turned("tasks", asked)?,
            waits: self.waits.turned("waits", asked)?,
            signals: self.signals.turned("signals", asked)?,
            updates: self.updates.turned("updates", asked)?,
            commands: self.commands.turned("commands", asked)?,
            ..self.clone()
        })
    }

    /// Whether it has a row of this name in any section.
    pub fn has(&self, row: &str) -> bool {
        self.activities.has(row)
            || self.exceptions.has(row)
            || self.tasks.has(row)
            || self.waits.has(row)
            || self.signals.has(row)
            || self.updates.has(row)
            || self.commands.has(row)
            || self.has_here("children", row)
            || self.has_here("data", row)
    }

    /// Whether the run has this event, by its number or anchor.
    pub fn has_event(&self, at: &str) -> bool {
        let number = at.strip_prefix("event-").unwrap_or(at).parse().ok();
        number.is_some_and(|number: usize| (1..=self.history.window.total).contains(&number))
    }

    /// Of the two sections that make only what they show.
    fn has_here(&self, section: &str, row: &str) -> bool {
        match section {
            "children" => {
                let (parents, rows) = (&self.children.parents, &self.children.rows);
                parents.iter().chain(rows).any(|of| of.anchor == row)
            }
            _ => self.data.messages.iter().any(|of| of.anchor == row),
        }
    }

    /// How many rows its sections keep.
    pub fn rows_made(&self) -> usize {
        self.activities.made()
            + self.exceptions.made()
            + self.tasks.made()
            + self.waits.made()
            + self.signals.made()
            + self.updates.made()
            + self.commands.made()
    }
}
