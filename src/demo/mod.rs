//! The catalogue of situations and the load generator.
//!
//! [`catalogue`] is a pure function of `now`: no clock, no chance, no database. What it returns
//! is rows ([`rows::InsertRow`]); writing them somewhere is somebody else's work. The rows carry
//! their own explanation to the page: the memo entry [`STORY_MEMO`] and the visibility label
//! [`SITUATION_LABEL`] on the run a situation is about.

pub mod builder;
pub mod rows;
pub mod seed;
mod situations;
pub mod write;

pub use builder::{SITUATION_LABEL, STORY_MEMO};
pub use situations::{Situation, catalogue};

/// A file of the corpus the real engine wrote, for tests; `None` (said aloud) where it is absent.
#[cfg(test)]
pub(crate) fn corpus(path: &str) -> Option<String> {
    let root = std::env::var_os("PLIMSOLL_CORPUS").map_or_else(
        || std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus"),
        Into::into,
    );
    let file = root.join(path);
    let text = std::fs::read_to_string(&file).ok();
    if text.is_none() {
        eprintln!("skipped: no corpus at {} (PLIMSOLL_CORPUS)", file.display());
    }
    text
}

#[cfg(test)]
mod tests;
