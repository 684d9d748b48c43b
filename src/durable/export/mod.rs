//! History export: one run as a sealed document that outlives the database.
//!
//! Pure but for [`stream`], which reads one snapshot and writes as it reads. A bundle is written
//! in its canonical form, so that the seal is computed over the very bytes that leave; nothing is
//! added after it but the seal itself.

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
