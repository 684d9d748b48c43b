//! What a list shows of a run's failures and retries.

use super::FailureCategory;

/// One stored failure, as far as a list shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailureRow {
    pub source_kind: String,
    /// None is "unclassified".
    pub category: Option<FailureCategory>,
    pub non_retryable: bool,
    pub exception_class: String,
    pub message: String,
}

/// An activity that is between two attempts or in a later one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryingActivity {
    pub activity_type: String,
    pub attempt_count: i64,
    /// None is unlimited, or no policy that can be read.
    pub max_attempts: Option<i64>,
}
