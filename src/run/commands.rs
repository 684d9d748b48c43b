//! Who asked the run for what, as the page shows it.

use chrono::{DateTime, Utc};

use super::{
    data::Preview,
    fact::Fact,
    section::{Anchored, Section},
    tag::Tag,
};

pub type Commands = Section<Command>;

#[derive(Clone, Debug, PartialEq)]
pub struct Command {
    pub anchor: String,
    pub sequence: Option<i64>,
    pub kind: String,
    /// The signal or update it names.
    pub target: Option<String>,
    pub status: Tag,
    pub outcome: Option<String>,
    /// Why, in the words of whoever asked.
    pub reason: Option<String>,
    /// Who asked: the principal, or what else names the sender.
    pub principal: Option<String>,
    /// Where it came from.
    pub source: String,
    pub at: Option<DateTime<Utc>>,
    pub payload: Option<Preview>,
    pub facts: Vec<Fact>,
}

impl Anchored for Command {
    fn anchor(&self) -> &str {
        &self.anchor
    }
}
