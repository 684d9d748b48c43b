//! What a run is and how it stands: the first lines of its page.

use chrono::{DateTime, TimeDelta, Utc};

use super::{
    fact::Said,
    tag::{Tag, Tone},
};

#[derive(Clone, Debug, PartialEq)]
pub struct Head {
    pub type_name: String,
    pub instance_id: String,
    pub run_id: String,
    pub run_number: i64,
    pub status: Tag,
    /// What deserves a look, most urgent first.
    pub attention: Vec<Tag>,
    pub closed_reason: Option<String>,
    pub business_key: Option<String>,
    pub queue: Option<String>,
    pub connection: Option<String>,
    pub namespace: Option<String>,
    pub compatibility: Option<String>,
    pub started: Option<DateTime<Utc>>,
    pub closed: Option<DateTime<Utc>>,
    pub is_open: bool,
    /// How long it took, or how long it has been open.
    pub duration: Option<TimeDelta>,
    pub deadlines: Vec<Deadline>,
    pub events: i64,
    /// Of the history; none where nobody has counted them.
    pub bytes: Option<u64>,
    pub chain: Chain,
    pub parents: Vec<Neighbour>,
    pub repair: Repair,
    /// What to know before believing the rest.
    pub notices: Vec<Notice>,
    /// Stored values that could not be taken as they stand.
    pub unreadable: Vec<super::notice::Notice>,
    /// The line a demo situation tells about itself.
    pub story: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Deadline {
    pub name: &'static str,
    pub at: DateTime<Utc>,
    /// It counts: the run is open.
    pub counts: bool,
}

/// The runs of one instance, one after the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chain {
    pub runs: usize,
    pub previous: Option<Neighbour>,
    pub next: Option<Neighbour>,
    /// None when this is the current run.
    pub current: Option<Neighbour>,
}

/// Another run, to go to.
#[derive(Clone, Debug, PartialEq)]
pub struct Neighbour {
    pub label: String,
    pub instance_id: String,
    pub run_id: String,
}

/// Whether a repair would be done, and the rule's own word for why not.
#[derive(Clone, Debug, PartialEq)]
pub struct Repair {
    pub called_for: bool,
    pub code: String,
    pub words: String,
    /// Until when it would still be refused, where time alone changes that.
    pub not_before: Option<DateTime<Utc>>,
    /// The engine's own command that does the same, for a copy that only reads.
    pub elsewhere: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Notice {
    pub tone: Tone,
    pub title: String,
    pub text: String,
    /// What it rests on.
    pub facts: Vec<Differs>,
}

/// A column whose stored value is not what is true now.
#[derive(Clone, Debug, PartialEq)]
pub struct Differs {
    pub name: &'static str,
    pub stored: Said,
    pub now: Said,
}
