//! The catalogue of situations and the load generator.

/// The memo key that carries a situation's one-line story.
pub const STORY_MEMO: &str = "plimsoll.story";
