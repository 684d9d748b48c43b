//! Our JSON beside the engine's: what differs, where, and which differences are meant.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use serde::Deserialize;
use serde_json::Value;

/// One entry of `tests/differences.json`: where we answer otherwise than the engine, and why.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Meant {
    /// Name of the scenario or engine test state; `*` stands for anything.
    scenario: String,
    /// Path of the value, such as `list_item.wait_kind`; `*` stands for anything.
    path: String,
    /// Read by people.
    #[serde(rename = "reason")]
    _reason: String,
}

/// `tests/differences.json`, and which of its entries were met.
#[derive(Debug)]
pub struct Differences {
    meant: Vec<Meant>,
    met: RefCell<BTreeSet<usize>>,
}

impl Differences {
    pub fn load() -> Self {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/differences.json");
        let text = fs::read_to_string(file).expect("tests/differences.json can be read");
        Self {
            meant: serde_json::from_str(&text).expect("tests/differences.json is a list"),
            met: RefCell::default(),
        }
    }

    pub fn is_meant(&self, scenario: &str, path: &str) -> bool {
        let found = self
            .meant
            .iter()
            .position(|meant| like(&meant.scenario, scenario) && like(&meant.path, path));
        self.met.borrow_mut().extend(found);
        found.is_some()
    }
}

/// Collects what differs.
#[derive(Debug)]
pub struct Comparison {
    /// Paths that carry a sentence: both sides must have one, its words are ours.
    prose: &'static [&'static str],
    deliberate: Differences,
    compared: usize,
    differences: Vec<String>,
}

impl Comparison {
    pub fn new(prose: &'static [&'static str]) -> Self {
        Self {
            prose,
            deliberate: Differences::load(),
            compared: 0,
            differences: Vec::new(),
        }
    }

    /// Compares one document; `path` is its name in the report.
    pub fn document(&mut self, scenario: &str, path: &str, ours: &Value, theirs: &Value) {
        self.compared += 1;
        self.value(scenario, path, Some(ours), Some(theirs));
    }

    pub fn wrong(&mut self, scenario: &str, message: &str) {
        self.differences.push(format!("{scenario}: {message}"));
    }

    fn value(&mut self, scenario: &str, path: &str, ours: Option<&Value>, theirs: Option<&Value>) {
        match (ours, theirs) {
            (Some(Value::Object(a)), Some(Value::Object(b))) => {
                for key in a.keys().chain(b.keys()).collect::<BTreeSet<_>>() {
                    self.value(scenario, &format!("{path}.{key}"), a.get(key), b.get(key));
                }
            }
            (Some(Value::Array(a)), Some(Value::Array(b))) => {
                for i in 0..a.len().max(b.len()) {
                    self.value(scenario, &format!("{path}.{i}"), a.get(i), b.get(i));
                }
            }
            // PHP writes an empty map as a list.
            (Some(Value::Object(map)), Some(Value::Array(list)))
            | (Some(Value::Array(list)), Some(Value::Object(map)))
                if map.is_empty() && list.is_empty() => {}
            (Some(Value::String(_)), Some(Value::String(_))) if self.prose.contains(&path) => {}
            (a, b) if a == b || self.deliberate.is_meant(scenario, path) => {}
            (a, b) => {
                let shown = |v: Option<&Value>| v.map_or("absent".into(), ToString::to_string);
                let (a, b) = (shown(a), shown(b));
                self.differences
                    .push(format!("{scenario}: {path}: ours {a}, the engine's {b}"));
            }
        }
    }

    /// Says how much was compared; fails when anything differs.
    pub fn finish(self, what: &str) {
        eprintln!(
            "COMPARED: {} {what}; {} of {} deliberate differences met",
            self.compared,
            self.deliberate.met.borrow().len(),
            self.deliberate.meant.len()
        );
        // A few of each kind: the same path at other positions tells nothing new.
        let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
        let shown = self.differences.iter().filter(|difference| {
            let path = difference.split(": ").nth(1).unwrap_or_default();
            let kind = path.replace(|c: char| c.is_ascii_digit(), "");
            let seen = kinds.entry(kind).or_default();
            *seen += 1;
            *seen <= 3
        });
        assert!(
            self.differences.is_empty(),
            "{} differences:\n{}",
            self.differences.len(),
            shown.take(100).cloned().collect::<Vec<_>>().join("\n")
        );
        assert!(self.compared > 0, "nothing was compared");
    }
}

/// Whether the text has the pattern's pieces in their order.
fn like(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((start, rest)) => text.strip_prefix(start).is_some_and(|text| {
            (0..=text.len())
                .filter(|at| text.is_char_boundary(*at))
                .any(|at| like(rest, &text[at..]))
        }),
    }
}

#[test]
fn a_star_stands_for_anything() {
    for (pattern, text, want) in [
        ("a.b", "a.b", true),
        ("a.b", "a.bc", false),
        ("*", "", true),
        ("a.*.c", "a.b.c", true),
        ("a.*.c", "a.c", false),
        ("*Test__*", "RunTest__case__1", true),
    ] {
        assert_eq!(like(pattern, text), want, "{pattern} {text}");
    }
}
