//! Two runs side by side: their steps aligned by number and kind, and what differs.

use std::collections::{BTreeMap, HashMap};

use chrono::TimeDelta;
use serde_json::Value;

/// Most changed fields told of one step; the rest is counted.
const FIELDS: usize = 20;
/// How deep two values are followed; what lies below is compared as a whole.
const DEPTH: usize = 16;

/// One step of a run, as far as two runs can be compared by it.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The workflow's own number of it; the run itself is 0.
    pub sequence: i64,
    pub kind: &'static str,
    pub name: String,
    pub status: String,
    /// How often it was tried, where that can be more than once.
    pub attempts: Option<i64>,
    pub duration: Option<TimeDelta>,
    /// What went in and came out, by name.
    pub values: Vec<(&'static str, Option<Value>)>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Difference {
    OnlyLeft,
    OnlyRight,
    Status,
    Attempts,
    /// A part of what went in or came out; none where that side has nothing there.
    Field {
        path: String,
        left: Option<Value>,
        right: Option<Value>,
    },
    /// As many fields more.
    MoreFields(usize),
}

/// A step of either run or of both.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    pub left: Option<Step>,
    pub right: Option<Step>,
    pub differences: Vec<Difference>,
}

impl Pair {
    /// The side that is there.
    pub fn step(&self) -> Option<&Step> {
        self.left.as_ref().or(self.right.as_ref())
    }

    /// How much longer the right one took.
    pub fn longer(&self) -> Option<TimeDelta> {
        Some(self.right.as_ref()?.duration? - self.left.as_ref()?.duration?)
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    /// By the number of the step.
    pub pairs: Vec<Pair>,
}

impl Comparison {
    /// The first step that differs.
    pub fn first(&self) -> Option<&Pair> {
        self.differing().next()
    }

    pub fn differing(&self) -> impl Iterator<Item = &Pair> {
        self.pairs
            .iter()
            .filter(|pair| !pair.differences.is_empty())
    }
}

/// Aligns steps by number, kind and name; several of the same in their order.
pub fn compare(left: Vec<Step>, right: Vec<Step>) -> Comparison {
    type Key = (i64, &'static str, String, usize);
    let mut aligned: BTreeMap<Key, (Option<Step>, Option<Step>)> = BTreeMap::new();
    let keyed = |steps: Vec<Step>| {
        let mut seen: HashMap<(i64, &'static str, String), usize> = HashMap::new();
        steps.into_iter().map(move |step| {
            let nth = seen
                .entry((step.sequence, step.kind, step.name.clone()))
                .or_default();
            *nth += 1;
            ((step.sequence, step.kind, step.name.clone(), *nth), step)
        })
    };
    for (key, step) in keyed(left) {
        aligned.entry(key).or_default().0 = Some(step);
    }
    for (key, step) in keyed(right) {
        aligned.entry(key).or_default().1 = Some(step);
    }
    let pairs = aligned.into_values().map(|(left, right)| Pair {
        differences: differences(left.as_ref(), right.as_ref()),
        left,
        right,
    });
    Comparison {
        pairs: pairs.collect(),
    }
}

fn differences(left: Option<&Step>, right: Option<&Step>) -> Vec<Difference> {
    let (left, right) = match (left, right) {
        (Some(left), Some(right)) => (left, right),
        (Some(_), None) => return vec![Difference::OnlyLeft],
        (None, _) => return vec![Difference::OnlyRight],
    };
    let mut found = Vec::new();
    if left.status != right.status {
        found.push(Difference::Status);
    }
    if left.attempts != right.attempts {
        found.push(Difference::Attempts);
    }
    let mut fields = Fields::default();
    for (name, value) in &left.values {
        let other = right.values.iter().find(|(other, _)| other == name);
        let other = other.and_then(|(_, value)| value.as_ref());
        fields.walk(name, value.as_ref(), other, DEPTH);
    }
    found.append(&mut fields.found);
    if fields.more > 0 {
        found.push(Difference::MoreFields(fields.more));
    }
    found
}

#[derive(Default)]
struct Fields {
    found: Vec<Difference>,
    more: usize,
}

impl Fields {
    fn walk(&mut self, path: &str, left: Option<&Value>, right: Option<&Value>, depth: usize) {
        match (left, right) {
            (left, right) if left == right => {}
            (Some(Value::Object(left)), Some(Value::Object(right))) if depth > 0 => {
                let added = right.keys().filter(|key| !left.contains_key(*key));
                for key in left.keys().chain(added) {
                    let path = format!("{path}.{key}");
                    self.walk(&path, left.get(key), right.get(key), depth - 1);
                }
            }
            (Some(Value::Array(left)), Some(Value::Array(right))) if depth > 0 => {
                for n in 0..left.len().max(right.len()) {
                    let path = format!("{path}[{n}]");
                    self.walk(&path, left.get(n), right.get(n), depth - 1);
                }
            }
            (left, right) if self.found.len() < FIELDS => self.found.push(Difference::Field {
                path: path.to_owned(),
                left: left.cloned(),
                right: right.cloned(),
            }),
            _ => self.more += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn step(sequence: i64, name: &str, arguments: Value) -> Step {
        Step {
            sequence,
            kind: "activity",
            name: name.to_owned(),
            status: "completed".to_owned(),
            attempts: Some(1),
            duration: Some(TimeDelta::seconds(2)),
            values: vec![("arguments", Some(arguments)), ("result", None)],
        }
    }

    #[test]
    fn a_run_does_not_differ_from_itself() {
        let steps = vec![
            step(1, "charge", json!([{"amount": 1.0}])),
            step(1, "charge", json!([2])),
            step(2, "ship", json!([])),
        ];
        let comparison = compare(steps.clone(), steps);
        assert_eq!((comparison.pairs.len(), comparison.first()), (3, None));
    }

    #[test]
    fn a_changed_input_and_one_more_attempt_are_just_these_two() {
        let left = vec![
            step(1, "charge", json!([{"amount": 12, "currency": "EUR"}])),
            step(2, "ship", json!([])),
        ];
        let mut right = left.clone();
        right[0].values[0].1 = Some(json!([{"amount": 13, "currency": "EUR"}]));
        right[1].attempts = Some(2);
        right[1].duration = Some(TimeDelta::seconds(9));
        let comparison = compare(left, right);
        let found: Vec<&Difference> = comparison
            .differing()
            .flat_map(|pair| &pair.differences)
            .collect();
        let field = Difference::Field {
            path: "arguments[0].amount".to_owned(),
            left: Some(json!(12)),
            right: Some(json!(13)),
        };
        assert_eq!(found, [&field, &Difference::Attempts]);
        assert_eq!(comparison.pairs[1].longer(), Some(TimeDelta::seconds(7)));
    }

    #[test]
    fn a_step_of_another_kind_or_name_is_on_one_side_only() {
        let left = vec![step(1, "charge", json!([])), step(2, "ship", json!([]))];
        let right = vec![step(1, "charge", json!([])), step(2, "refund", json!([]))];
        let comparison = compare(left, right);
        let found: Vec<&[Difference]> = comparison
            .differing()
            .map(|pair| pair.differences.as_slice())
            .collect();
        assert_eq!(found, [[Difference::OnlyRight], [Difference::OnlyLeft]]);
        assert_eq!(comparison.first().unwrap().step().unwrap().name, "refund");
    }

    #[test]
    fn many_changed_fields_are_counted_and_not_all_told() {
        let many = |n: i64| json!((0..50).map(|at| at * n).collect::<Vec<_>>());
        let comparison = compare(vec![step(1, "a", many(1))], vec![step(1, "a", many(2))]);
        let told = &comparison.pairs[0].differences;
        assert_eq!(told.len(), FIELDS + 1);
        assert_eq!(told.last(), Some(&Difference::MoreFields(49 - FIELDS)));
    }
}
