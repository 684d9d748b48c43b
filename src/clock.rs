//! The only source of "now". Everything below the shell takes the time as an argument;
//! a frozen clock makes pages reproducible for conformance checks and screenshots.

use chrono::{DateTime, Utc};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    System,
    Frozen(DateTime<Utc>),
}

impl Clock {
    pub fn now(self) -> DateTime<Utc> {
        match self {
            Self::System => Utc::now(),
            Self::Frozen(at) => at,
        }
    }
}
