//! A run's parents and children, as the page shows them: a tree of this run, what it comes from
//! and what comes from it.

use chrono::{DateTime, TimeDelta, Utc};

use super::{
    fact::{Fact, RunRef},
    tag::Tag,
    window::Window,
};

#[derive(Clone, Debug, PartialEq)]
pub struct Children {
    pub window: Window,
    pub parents: Vec<Relative>,
    /// This run, between the two.
    pub this: String,
    /// How many children stand how, most urgent first.
    pub roll_up: Vec<(usize, Tag)>,
    /// The window's children, and the run that continues this one.
    pub rows: Vec<Relative>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Relative {
    pub anchor: String,
    pub run: RunRef,
    pub type_name: String,
    /// `parent`, `child`, `continued from`, `continued as`.
    pub relation: String,
    pub status: Option<Tag>,
    pub marks: Vec<Tag>,
    pub started: Option<DateTime<Utc>>,
    pub ended: Option<DateTime<Utc>>,
    /// What happens to it when this run closes, and what did.
    pub close_policy: Option<String>,
    pub facts: Vec<Fact>,
}

impl Relative {
    pub fn took(&self) -> Option<TimeDelta> {
        Some(self.ended? - self.started?)
    }
}
