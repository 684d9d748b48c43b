//! The events of a run, as the page shows them.

use chrono::{DateTime, Utc};

use super::{tag::Tag, window::Window};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    pub window: Window,
    /// In the order they are shown in.
    pub rows: Vec<Event>,
    /// Older events begin below this one.
    pub older: Option<i64>,
    /// Newer events begin above this one.
    pub newer: Option<i64>,
    /// What is shown, and how far was looked for it.
    pub note: String,
    /// A filter has not looked at everything.
    pub looks_on: bool,
    /// The event the address asks for, when it is not there.
    pub missing: Option<i64>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    pub sequence: i64,
    /// What it is about.
    pub kind: &'static str,
    pub event_type: String,
    pub summary: String,
    pub at: Option<DateTime<Utc>>,
    /// Set where something failed.
    pub failure: Option<Tag>,
    /// The address names this one.
    pub chosen: bool,
    pub has_payload: bool,
}
