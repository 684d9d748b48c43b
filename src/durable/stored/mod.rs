//! What the tables hold: the engine's words as enums, its rows and its events' payloads as
//! structs.
//!
//! A word a newer engine may write and we do not know is carried through and shown, never
//! refused. A value that is missing or of another kind is no value and a [`Notice`], never an error.

mod cell;
mod column;
mod event;
pub mod loose;
mod notice;
pub mod payloads;
mod rows;
mod stamp;
mod trouble;
mod walk;
mod words;

pub use cell::{AsCell, Cell};
pub use column::Column;
pub use event::HistoryEvent;
pub use notice::{Cells, Notice, Notices, Problem};
pub use rows::*;
pub use stamp::Stamp;
pub use trouble::{FailureRow, RetryingActivity};
pub use words::*;
