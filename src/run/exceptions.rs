//! What went wrong in a run, as the page shows it.

use chrono::{DateTime, Utc};

use super::{
    fact::{Fact, RowRef},
    section::{Anchored, Section},
    tag::Tag,
};

pub type Exceptions = Section<Exception>;

#[derive(Clone, Debug, PartialEq)]
pub struct Exception {
    pub anchor: String,
    /// Its event; none when only a row knows of it.
    pub sequence: Option<i64>,
    pub category: Tag,
    pub marks: Vec<Tag>,
    /// What failed.
    pub source: RowRef,
    /// Which of the source's tries.
    pub attempt: Option<String>,
    pub message: String,
    pub class: Option<String>,
    /// The durable name the application gave it.
    pub alias: Option<String>,
    pub code: Option<String>,
    /// `ChargeCard.php:58`.
    pub place: Option<String>,
    /// The whole path of the same, with the line.
    pub path: Option<String>,
    pub at: Option<DateTime<Utc>>,
    /// The limit that was hit: kind, value and ceiling.
    pub limit: Option<Limit>,
    pub replay: Replay,
    pub facts: Vec<Fact>,
    pub causes: Vec<Cause>,
    /// What the throwable carried, by name.
    pub properties: Vec<(String, String)>,
    pub trace: Trace,
}

impl Anchored for Exception {
    fn anchor(&self) -> &str {
        &self.anchor
    }
}

/// A structural limit that was hit; what is not told is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    pub kind: String,
    pub value: Option<i64>,
    pub most: Option<i64>,
    /// The numbers are bytes.
    pub of_bytes: bool,
}

impl Limit {
    /// Both in bytes, where they are that and both are told.
    pub fn sizes(&self) -> Option<(u64, u64)> {
        let size = |n: Option<i64>| u64::try_from(n?).ok();
        size(self.value)
            .zip(size(self.most))
            .filter(|_| self.of_bytes)
    }
}

/// How replay will restore it.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    pub tag: Tag,
    pub words: String,
    /// The task that could not restore it.
    pub task: Option<RowRef>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    pub class: Option<String>,
    pub message: Option<String>,
    pub place: Option<String>,
}

/// The application's own calls before those of libraries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    pub own: Vec<Frame>,
    pub others: Vec<Frame>,
    /// Frames that are not listed.
    pub left_out: usize,
    /// As stored, where there are no frames.
    pub text: Option<String>,
}

impl Trace {
    pub fn is_empty(&self) -> bool {
        self.own.is_empty() && self.others.is_empty() && self.text.is_none()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its place in the stack, from 0: the frames of libraries stand between those of the
    /// application.
    pub number: usize,
    pub call: String,
    pub place: Option<String>,
}
