//! The catalogue of situations and the load generator.

pub mod rows;
pub mod write;

/// The memo key that carries a situation's one-line story.
pub const STORY_MEMO: &str = "plimsoll.story";
