//! History export: one run as a sealed document that outlives the database.
//!
//! What a bundle says is worked out purely, rows in and entries out, as are redaction, the seal and
//! the check. [`stream`] drives it and reads one snapshot of the database, with `fold` for what
//! belongs to steps; `apart` works on threads of its own, and `spool` keeps in a temporary file what
//! must wait for its place. A bundle is written in its canonical form, so that the seal is computed
//! over the very bytes that leave; nothing is added after it but the seal itself.

mod apart;
mod entries;
mod entry;
mod events;
mod fold;
mod folder;
mod head;
mod hide;
mod history;
mod known_tasks;
mod manifest;
mod notes;
mod outlet;
mod plan;
pub mod redaction;
pub mod seal;
mod sections;
pub mod source;
mod spool;
mod step_rows;
pub mod stream;
mod teller;
mod timeline_entry;
pub mod verify;
mod writer;

pub use redaction::Policy;
pub use seal::SigningKey;

/// The schema every bundle of v2 names.
pub const SCHEMA: &str = "durable-workflow.v2.history-export";
/// Frozen for all of v2.
pub const SCHEMA_VERSION: i64 = 1;
