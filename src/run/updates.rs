//! The updates of a run, as the page shows them.

use chrono::{DateTime, Utc};

use super::{data::Preview, fact::Fact, tag::Tag, window::Window};

#[derive(Clone, Debug, PartialEq)]
pub struct Updates {
    pub window: Window,
    pub rows: Vec<Update>,
}

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
