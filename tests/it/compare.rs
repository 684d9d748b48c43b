//! Our JSON beside the engine's: what differs, where, and which differences are meant.

use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet},
    fs,
    io::Write as _,
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
    /// Whether something differed there.
    #[serde(skip)]
    found: Cell<bool>,
}

/// `tests/differences.json`.
#[derive(Debug)]
pub struct Differences {
    meant: Vec<Meant>,
}

impl Differences {
    pub fn load() -> Self {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/differences.json");
        let text = fs::read_to_string(file).expect("tests/differences.json can be read");
        Self {
            meant: serde_json::from_str(&text).expect("tests/differences.json is a list"),
        }
    }

    pub fn is_meant(&self, scenario: &str, path: &str) -> bool {
        let here = |meant: &&Meant| like(&meant.scenario, scenario) && like(&meant.path, path);
        let mut found = self.meant.iter().filter(here).peekable();
        let is_meant = found.peek().is_some();
        found.for_each(|meant| meant.found.set(true));
        is_meant
    }

    /// Entries about one of these documents where nothing differed.
    fn idle(&self, documents: &BTreeSet<String>) -> Vec<String> {
        let of = |meant: &&Meant| {
            let document = meant.path.split('.').next().unwrap_or_default();
            documents.contains(document) && !meant.found.get()
        };
        let idle = self.meant.iter().filter(of);
        idle.map(|meant| format!("{}: {}", meant.scenario, meant.path))
            .collect()
    }
}

/// Collects what differs.
#[derive(Debug)]
pub struct Comparison {
    /// Paths that carry a sentence, `*` standing for anything: both sides must have one, its words are ours.
    prose: &'static [&'static str],
    deliberate: Differences,
    /// Whether 1 and 1.0 are two: a seal tells them apart.
    pub exact_numbers: bool,
    documents: BTreeSet<String>,
    compared: usize,
    fields: usize,
    explained: usize,
    differences: Vec<String>,
    paths: BTreeMap<String, usize>,
}

impl Comparison {
    pub fn new(prose: &'static [&'static str]) -> Self {
        Self {
            prose,
            deliberate: Differences::load(),
            exact_numbers: false,
            documents: BTreeSet::new(),
            compared: 0,
            fields: 0,
            explained: 0,
            differences: Vec::new(),
            paths: BTreeMap::new(),
        }
    }

    /// Compares one document; `path` is its name in the report.
    pub fn document(&mut self, scenario: &str, path: &str, ours: &Value, theirs: &Value) {
        self.compared += 1;
        self.documents.insert(path.to_owned());
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
                if map.is_empty() && list.is_empty() =>
            {
                self.fields += 1;
            }
            (Some(Value::String(_)), Some(Value::String(_)))
                if self.prose.iter().any(|prose| like(prose, path)) => {}
            // PHP writes 1.0 and 1 alike, where it is not told otherwise.
            (Some(Value::Number(a)), Some(Value::Number(b)))
                if a.as_f64() == b.as_f64()
                    && (!self.exact_numbers || a.is_f64() == b.is_f64()) =>
            {
                self.fields += 1;
            }
            (a, b) if a == b => self.fields += 1,
            (a, b) => {
                self.fields += 1;
                if self.deliberate.is_meant(scenario, path) {
                    self.explained += 1;
                    return;
                }
                let shown = |v: Option<&Value>| v.map_or("absent".into(), ToString::to_string);
                let (a, b) = (shown(a), shown(b));
                *self.paths.entry(path.to_owned()).or_default() += 1;
                self.differences
                    .push(format!("{scenario}: {path}: ours {a}, the engine's {b}"));
            }
        }
    }

    /// The same where everything was compared: an entry that excuses nothing has had its day.
    pub fn finish_whole(self, what: &str) {
        let idle = self.deliberate.idle(&self.documents);
        self.finish(what);
        assert!(
            idle.is_empty(),
            "nothing differs any more at:\n{}",
            idle.join("\n")
        );
    }

    /// Says how much was compared; fails when anything differs.
    pub fn finish(self, what: &str) {
        report(&format!(
            "{what}: {} runs, {} fields compared, {} unexplained differences, {} deliberate",
            self.compared,
            self.fields,
            self.differences.len(),
            self.explained
        ));
        for (path, count) in &self.paths {
            eprintln!("  {count:6} {path}");
        }
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

/// Says what was compared, and writes it where `./test` looks for it.
pub fn report(line: &str) {
    println!("corpus: {line}");
    if let Some(file) = std::env::var_os("PLIMSOLL_CORPUS_REPORT") {
        let mut file = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(file)
            .expect("PLIMSOLL_CORPUS_REPORT can be written");
        // One write per line: tests of other processes append to the same file.
        file.write_all(format!("{line}\n").as_bytes())
            .expect("PLIMSOLL_CORPUS_REPORT can be written");
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
