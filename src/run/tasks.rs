//! The tasks of a run, those that should exist and do not among them, as the page shows them.

use chrono::{DateTime, Utc};

use super::{
    fact::Fact,
    section::{Anchored, Section},
    tag::Tag,
    worker::Worker,
};

pub type Tasks = Section<Task>;

#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    pub anchor: String,
    /// The task's row, or the one that should be there.
    pub id: Option<String>,
    pub kind: String,
    pub state: Tag,
    pub marks: Vec<Tag>,
    /// What it is for.
    pub summary: String,
    pub queue: Option<String>,
    pub available: Option<DateTime<Utc>>,
    /// Who holds it, or held it last.
    pub worker: Option<Worker>,
    pub is_held: bool,
    pub lease: Option<DateTime<Utc>>,
    /// Repairs so far.
    pub repairs: i64,
    /// What went wrong with it last.
    pub errors: Vec<(&'static str, String)>,
    pub facts: Vec<Fact>,
}

impl Anchored for Task {
    fn anchor(&self) -> &str {
        &self.anchor
    }
}
