//! The activities of a run, with their attempts, as the page shows them.

use chrono::{DateTime, TimeDelta, Utc};

use super::{
    data::Preview,
    section::{Anchored, Section},
    tag::Tag,
    worker::Worker,
};

pub type Activities = Section<Activity>;

#[derive(Clone, Debug, PartialEq)]
pub struct Activity {
    pub anchor: String,
    pub name: String,
    pub class: Option<String>,
    /// Its place in the workflow's code.
    pub sequence: Option<i64>,
    pub status: Tag,
    pub marks: Vec<Tag>,
    /// `2/4`, `2` where there is no limit.
    pub attempts: String,
    /// How often it may be tried.
    pub tries: Option<String>,
    /// The wait after the first try, the second, and so on.
    pub backoff: Vec<TimeDelta>,
    pub queue: Option<String>,
    pub scheduled: Option<DateTime<Utc>>,
    pub closed: Option<DateTime<Utc>>,
    pub took: Option<TimeDelta>,
    /// Between two tries.
    pub retry: Option<Retry>,
    /// What else explains where it stands.
    pub notes: Vec<Note>,
    pub list: Vec<Attempt>,
    /// Older attempts that are not listed.
    pub left_out: usize,
    /// The same for every attempt.
    pub execution_id: String,
    /// Another for each attempt.
    pub attempt_id: Option<String>,
    pub arguments: Option<Preview>,
    pub result: Option<Preview>,
}

impl Anchored for Activity {
    fn anchor(&self) -> &str {
        &self.anchor
    }
}

/// A retry the engine has scheduled: `retry 2 of 3 after attempt 1 failed`.
#[derive(Clone, Debug, PartialEq)]
pub struct Retry {
    pub words: String,
    pub waits: Option<TimeDelta>,
    pub due: Option<DateTime<Utc>>,
}

/// A sentence, and the moment it speaks of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub words: String,
    pub at: Option<DateTime<Utc>>,
}

/// Until when a worker may hold an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lease {
    Held(DateTime<Utc>),
    /// Of an attempt that has ended since.
    Over(DateTime<Utc>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    pub number: String,
    pub id: String,
    pub outcome: Tag,
    pub worker: Option<Worker>,
    pub started: Option<DateTime<Utc>>,
    pub ended: Option<DateTime<Utc>>,
    pub took: Option<TimeDelta>,
    pub lease: Option<Lease>,
    pub heartbeat: Option<DateTime<Utc>>,
    pub progress: Option<String>,
    /// Why its worker should stop.
    pub stop: Option<&'static str>,
    pub error: Option<String>,
    pub error_class: Option<String>,
}
