//! The catalogue of situations and the load generator.

pub mod builder;
pub mod rows;
mod situations;
pub mod write;

pub use builder::STORY_MEMO;
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
