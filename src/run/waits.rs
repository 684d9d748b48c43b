//! What a run waits for or has waited for, as the page shows it.

use chrono::{DateTime, Utc};

use super::{
    fact::{Fact, RowRef},
    section::{Anchored, Section},
    tag::Tag,
};

pub type Waits = Section<Wait>;

#[derive(Clone, Debug, PartialEq)]
pub struct Wait {
    pub anchor: String,
    pub kind: &'static str,
    pub status: Tag,
    pub marks: Vec<Tag>,
    pub summary: String,
    /// What will resume, or has resumed, the run.
    pub resumes: Option<RowRef>,
    pub opened: Option<DateTime<Utc>>,
    pub deadline: Option<DateTime<Utc>>,
    pub resolved: Option<DateTime<Utc>>,
    pub facts: Vec<Fact>,
}

impl Anchored for Wait {
    fn anchor(&self) -> &str {
        &self.anchor
    }
}
