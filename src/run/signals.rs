//! The signals of a run, as the page shows them.

use chrono::{DateTime, Utc};

use super::{
    data::Preview,
    fact::Fact,
    section::{Anchored, Section},
    tag::Tag,
};

pub type Signals = Section<Signal>;

#[derive(Clone, Debug, PartialEq)]
pub struct Signal {
    pub anchor: String,
    pub name: String,
    pub status: Tag,
    /// What became of it, in words.
    pub outcome: Option<String>,
    pub received: Option<DateTime<Utc>>,
    pub applied: Option<DateTime<Utc>>,
    pub arguments: Option<Preview>,
    pub facts: Vec<Fact>,
}

impl Anchored for Signal {
    fn anchor(&self) -> &str {
        &self.anchor
    }
}
