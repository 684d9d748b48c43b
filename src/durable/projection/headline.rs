//! The failure a list names of a run that ended: what its badge says, and its filters ask.

use crate::durable::stored::{FailureCategory, FailureRow, RunStatus};

/// The failure that ended a run, and what caused it where the rows show it.
#[derive(Clone, Copy, Debug)]
pub struct Headline<'f> {
    pub failure: &'f FailureRow,
    pub cause: Option<&'f FailureRow>,
}

impl<'f> Headline<'f> {
    /// Chosen among the unhandled failures, oldest first; an open run has not failed.
    pub fn of(status: &RunStatus, failures: &'f [FailureRow]) -> Option<Self> {
        if !status.is_terminal() {
            return None;
        }
        let failure = failures
            .iter()
            .rfind(|f| f.source_kind == "workflow_run")
            .or(failures.last())?;
        // The engine judges a run's failure from the exception alone, so that it reads
        // "application" even when an activity failed: the same exception, unhandled, names it.
        let cause = failures.iter().rfind(|f| {
            f.source_kind != "workflow_run"
                && f.exception_class == failure.exception_class
                && f.message == failure.message
        });
        Some(Self { failure, cause })
    }

    /// The row whose category is shown.
    pub fn shown(self) -> &'f FailureRow {
        self.cause.unwrap_or(self.failure)
    }

    pub fn category(self) -> Option<&'f FailureCategory> {
        self.shown().category.as_ref()
    }

    pub fn is_non_retryable(self) -> bool {
        self.failure.non_retryable || self.shown().non_retryable
    }
}
