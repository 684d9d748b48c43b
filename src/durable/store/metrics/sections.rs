//! The parts of a pass, and how long each took.

use std::time::{Duration, Instant};

/// A pass goes through these, one after the other.
#[derive(Debug, Default)]
pub struct Sections {
    current: Option<(&'static str, Instant)>,
    took: Vec<(&'static str, Duration)>,
}

impl Sections {
    /// Every name there is: a bound for whoever makes a label of them.
    pub const ALL: [&str; 9] = [
        "runs",
        "tasks",
        "activities",
        "repair",
        "schedules",
        "workers",
        "limits",
        "projections",
        "queues",
    ];

    /// Ends the section before and begins this one.
    pub fn enter(&mut self, section: &'static str) {
        debug_assert!(Self::ALL.contains(&section), "{section} is not listed");
        self.leave();
        self.current = Some((section, Instant::now()));
    }

    fn leave(&mut self) {
        if let Some((section, since)) = self.current.take() {
            self.took.push((section, since.elapsed()));
        }
    }

    /// Where the pass is now.
    pub fn current(&self) -> Option<&'static str> {
        self.current.map(|(section, _)| section)
    }

    /// What each took.
    pub fn finish(mut self) -> Vec<(&'static str, Duration)> {
        self.leave();
        self.took
    }
}
