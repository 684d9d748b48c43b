//! A named value among the details of a row.

use chrono::{DateTime, TimeDelta, Utc};

#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    pub name: &'static str,
    pub said: Said,
}

/// How the value is written.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    /// Words of ours, or stored text.
    Text(String),
    /// A stored word an operator may search for.
    Code(String),
    /// Written whole, with a button that copies it.
    Id(String),
    At(DateTime<Utc>),
    Length(TimeDelta),
    Run(RunRef),
    /// Another row of this page.
    Row(RowRef),
}

/// The page of another run; without a run id, of an instance's current run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRef {
    pub instance_id: String,
    pub run_id: Option<String>,
    pub text: String,
}

/// A row of this page, by its anchor; without one where the page has no such row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowRef {
    pub anchor: Option<String>,
    pub text: String,
}

/// Facts as they are put together: what has no value is left out.
#[derive(Debug, Default)]
pub struct Facts(Vec<Fact>);

impl Facts {
    fn with(mut self, name: &'static str, said: Option<Said>) -> Self {
        self.0.extend(said.map(|said| Fact { name, said }));
        self
    }

    #[must_use]
    pub fn text(self, name: &'static str, text: Option<impl Into<String>>) -> Self {
        let text = text
            .map(Into::into)
            .filter(|text: &String| !text.is_empty());
        self.with(name, text.map(Said::Text))
    }

    #[must_use]
    pub fn code(self, name: &'static str, text: Option<impl Into<String>>) -> Self {
        let text = text
            .map(Into::into)
            .filter(|text: &String| !text.is_empty());
        self.with(name, text.map(Said::Code))
    }

    #[must_use]
    pub fn id(self, name: &'static str, id: Option<impl Into<String>>) -> Self {
        let id = id.map(Into::into).filter(|id: &String| !id.is_empty());
        self.with(name, id.map(Said::Id))
    }

    #[must_use]
    pub fn at(self, name: &'static str, at: Option<DateTime<Utc>>) -> Self {
        self.with(name, at.map(Said::At))
    }

    #[must_use]
    pub fn seconds(self, name: &'static str, seconds: Option<i64>) -> Self {
        let length = seconds.and_then(TimeDelta::try_seconds);
        self.with(name, length.map(Said::Length))
    }

    /// A number, unless it is zero or missing.
    #[must_use]
    pub fn count(self, name: &'static str, count: Option<i64>) -> Self {
        let count = count.filter(|count| *count != 0);
        self.with(name, count.map(|count| Said::Text(count.to_string())))
    }

    #[must_use]
    pub fn run(self, name: &'static str, run: Option<RunRef>) -> Self {
        self.with(name, run.map(Said::Run))
    }

    #[must_use]
    pub fn row(self, name: &'static str, row: Option<RowRef>) -> Self {
        self.with(name, row.map(Said::Row))
    }

    pub fn list(self) -> Vec<Fact> {
        self.0
    }
}

/// What a row's id becomes in the page: addresses and diagnoses lead there.
pub fn anchor(kind: &str, id: &str) -> String {
    format!("{kind}-{id}")
}
