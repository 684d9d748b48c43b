//! Repair: putting back what was lost, and nothing else.
//!
//! [`plan()`] is pure: a run's rows and the clock in, the rows that would be written out, or a
//! refusal. [`repair()`] writes a plan in one short transaction, after planning again under the
//! run's lock. Nothing here decides whether Repair is called for: that is
//! [`repair_gate`](super::projection::repair_gate). Whether it is offered, [`offered()`] says: where
//! it is called for, unless the plan would be refused.

pub mod apply;
pub mod batch;
pub mod change;
pub mod clocks;
pub mod explain;
pub mod pass;
pub mod php_json;
pub mod plan;
pub mod refusal;
pub mod request;
pub mod rights;

pub use apply::{ApplyError, Goal, Judged, preview, repair};
pub use change::{Action, CellChange, RowChange};
pub use explain::{Explained, Verdict, explain};
pub use plan::{Kind, RepairPlan, offered, plan};
pub use refusal::Refusal;
pub use request::{Caller, HttpRequest, Mode, NewIds, Principal, Request, Scope};
