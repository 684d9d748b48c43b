//! How we know: by typed history, or by a mutable row that stands in for it.

/// Proven by typed events.
pub const TYPED: &str = "typed_history";
/// Open according to a row or link alone.
pub const OPEN_FALLBACK: &str = "mutable_open_fallback";
/// Ended according to a row or link alone.
pub const UNSUPPORTED: &str = "unsupported_terminal_without_history";
/// A failure known from `workflow_failures` alone.
pub const FAILURE_ROW: &str = "failure_row_fallback";

pub const ACTIVITY_UNSUPPORTED: &str = "terminal_activity_row_without_typed_history";
pub const TIMER_UNSUPPORTED: &str = "terminal_timer_row_without_typed_history";
pub const CHILD_UNSUPPORTED: &str = "terminal_child_link_without_typed_parent_history";
