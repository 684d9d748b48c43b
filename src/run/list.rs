//! One row of a list of runs, whatever engine wrote it.

use chrono::{DateTime, TimeDelta, Utc};

use super::tag::Tag;

#[derive(Clone, Debug, PartialEq)]
pub struct ListRow {
    pub run_id: String,
    pub instance_id: String,
    pub run_number: i64,
    pub type_name: String,
    pub namespace: Option<String>,
    pub queue: Option<String>,
    pub status: Tag,
    pub started: Option<DateTime<Utc>>,
    /// Closed runs: how long it took. Open runs: how long it has been open.
    pub duration: Option<TimeDelta>,
    /// What an open run waits for, or how a closed one ended.
    pub note: Option<String>,
    /// When the wait ends by itself, and what that moment is.
    pub until: Option<(&'static str, DateTime<Utc>)>,
    /// What deserves a look, most urgent first.
    pub attention: Vec<Tag>,
    /// Whether a repair is offered.
    pub repairable: bool,
}
