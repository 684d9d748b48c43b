//! What the tables hold: the engine's words as enums and its rows as structs.
//!
//! A word a newer engine may write and we do not know is carried through and shown, never
//! refused.

mod run;
mod summary;
mod trouble;
mod words;

pub use run::RunRow;
pub use summary::RunSummary;
pub use trouble::{FailureRow, RetryingActivity};
pub use words::*;
