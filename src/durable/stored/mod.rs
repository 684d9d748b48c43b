//! What the tables hold: the engine's words as enums and its rows as structs.
//!
//! A word a newer engine may write and we do not know is carried through and shown, never
//! refused.

mod summary;
mod words;

pub use summary::RunSummary;
pub use words::*;
