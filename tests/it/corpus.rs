//! Where the corpus is, and the one list of deliberate differences from the engine.

use std::path::PathBuf;

use serde::Deserialize;

/// The unpacked corpus; none, said aloud, where there is none.
pub fn unpacked() -> Option<PathBuf> {
    let root = std::env::var_os("PLIMSOLL_CORPUS_UNPACKED").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("target/corpus"),
        PathBuf::from,
    );
    if root.join("scenarios").is_dir() {
        return Some(root);
    }
    eprintln!(
        "NOT RUN: no unpacked corpus at {} (PLIMSOLL_CORPUS_UNPACKED)",
        root.display()
    );
    None
}

/// One deliberate difference: where, and why ours is better.
#[derive(Debug, Deserialize)]
struct Difference {
    /// Scenario or state name; a star at either end for anything.
    case: String,
    /// Path with `[]` for any index; a trailing `*` for everything below.
    path: String,
    #[expect(dead_code, reason = "for the reader of the file")]
    reason: String,
}

/// `tests/differences.json`.
#[derive(Debug)]
pub struct Differences(Vec<Difference>);

impl Differences {
    pub fn load() -> Self {
        let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/differences.json");
        let text = std::fs::read_to_string(&file).expect("tests/differences.json");
        Self(serde_json::from_str(&text).expect("tests/differences.json is a list of differences"))
    }

    /// Whether a difference at this place is a deliberate one.
    pub fn explain(&self, case: &str, path: &str) -> bool {
        let path = path.replace(|c: char| c.is_ascii_digit(), "");
        self.0.iter().any(|difference| {
            matches(&difference.case, case)
                && matches(
                    &difference.path.replace(|c: char| c.is_ascii_digit(), ""),
                    &path,
                )
        })
    }
}

/// A star at either end stands for anything.
fn matches(pattern: &str, text: &str) -> bool {
    match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (Some(_), Some(_)) => text.contains(pattern.trim_matches('*')),
        (Some(suffix), None) => text.ends_with(suffix),
        (None, Some(prefix)) => text.starts_with(prefix),
        (None, None) => pattern == text,
    }
}
