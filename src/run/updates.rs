//! The updates of a run, as the page shows them.

use chrono::{DateTime, Utc};

use super::{
    data::Preview,
    fact::Fact,
    section::{Anchored, Section},
    tag::Tag,
};

pub type Updates = Section<Update>;

#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    pub anchor: String,
    pub name: String,
    pub status: Tag,
    /// How it stands in line, why it was rejected or what it failed with.
    pub outcome: Option<String>,
    pub accepted: Option<DateTime<Utc>>,
    pub closed: Option<DateTime<Utc>>,
    pub arguments: Option<Preview>,
    pub result: Option<Preview>,
    pub facts: Vec<Fact>,
}

impl Anchored for Update {
    fn anchor(&self) -> &str {
        &self.anchor
    }
}
