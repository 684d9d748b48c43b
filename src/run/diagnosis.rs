//! Why a run is where it is, in one sentence, and what to do next.

use chrono::{DateTime, Utc};
use serde::Serialize;

/// Who or what moves the run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Actor {
    /// It has ended.
    Nobody,
    /// A worker that takes the task.
    Worker,
    /// A timer that fires.
    Timer,
    /// Whoever sends the signal or makes the condition true.
    Sender,
    /// A child workflow that ends.
    Child,
    /// The engine's own repair.
    Engine,
    /// An operator who repairs, sees to the workers, or looks at what this version does not know.
    Operator,
    /// Somebody who changes code.
    Developer,
}

/// A row a clause rests on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Citation {
    pub table: &'static str,
    pub id: String,
    /// What the row shows.
    pub shows: String,
    /// The moment it shows, for a page to write in its zone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<DateTime<Utc>>,
    /// Where the page shows the row.
    #[serde(skip)]
    pub anchor: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diagnosis {
    /// A stable word for the situation.
    pub code: &'static str,
    pub sentence: String,
    pub next_step: String,
    pub actor: Actor,
    pub since: Option<DateTime<Utc>>,
    pub until: Option<DateTime<Utc>>,
    pub evidence: Vec<Citation>,
    /// The next step is a repair: advice that holds only where one would be done.
    #[serde(skip)]
    pub asks_repair: bool,
}

impl Diagnosis {
    /// Its next step asks for a repair.
    #[must_use]
    pub fn asking_repair(self) -> Self {
        Self {
            asks_repair: true,
            ..self
        }
    }

    /// Whether the run is left as it is until somebody sees to it.
    pub fn needs_somebody(&self) -> bool {
        match self.actor {
            Actor::Engine | Actor::Operator | Actor::Developer => true,
            Actor::Nobody | Actor::Worker | Actor::Timer | Actor::Sender | Actor::Child => false,
        }
    }
}
