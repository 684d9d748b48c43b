//! Steps that were started together.

use serde::Serialize;
use serde_json::Value;

use crate::durable::stored::payloads::parallel::{GroupKeys, Grouped};

/// The innermost group of a step, and the path to it, outermost first.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ParallelGroup {
    pub parallel_group_kind: Option<String>,
    pub parallel_group_id: Option<String>,
    pub parallel_group_base_sequence: Option<i64>,
    pub parallel_group_size: Option<i64>,
    pub parallel_group_index: Option<i64>,
    pub parallel_group_path: Vec<GroupStep>,
}

/// One group on the way to a step, and the step's place in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GroupStep {
    pub parallel_group_id: String,
    pub parallel_group_kind: String,
    pub parallel_group_base_sequence: i64,
    pub parallel_group_size: i64,
    pub parallel_group_index: i64,
}

impl ParallelGroup {
    /// The group a path leads to: its last entry.
    pub fn of_path(path: Vec<GroupStep>) -> Self {
        let Some(inner) = path.last() else {
            return Self::default();
        };
        Self {
            parallel_group_kind: Some(inner.parallel_group_kind.clone()),
            parallel_group_id: Some(inner.parallel_group_id.clone()),
            parallel_group_base_sequence: Some(inner.parallel_group_base_sequence),
            parallel_group_size: Some(inner.parallel_group_size),
            parallel_group_index: Some(inner.parallel_group_index),
            parallel_group_path: path,
        }
    }

    /// What an event's payload says of its step.
    pub fn of_payload(payload: &impl Grouped) -> Self {
        Self::of_path(path_of(payload.group_keys()))
    }

    /// What a row's `parallel_group_path` column says: a list of entries, or a single entry.
    pub fn of_row(stored: Option<&Value>) -> Self {
        let path = match stored {
            Some(Value::Object(map)) if !map.values().next().is_some_and(is_collection) => stored
                .and_then(|single| step(GroupKeys::of_value(single)))
                .into_iter()
                .collect(),
            Some(list) => steps(list),
            None => Vec::new(),
        };
        Self::of_path(path)
    }

    /// Lays a later event over what is known: each key for itself, and no key erases.
    pub fn overlay(&mut self, later: GroupKeys<'_>) {
        let text = |slot: &mut Option<String>, value: Option<&str>| {
            if let Some(value) = value.filter(|value| slot.as_deref() != Some(value)) {
                *slot = Some(value.to_owned());
            }
        };
        let int = |slot: &mut Option<i64>, value: Option<i64>| *slot = value.or(*slot);
        text(&mut self.parallel_group_kind, later.kind);
        text(&mut self.parallel_group_id, later.id);
        int(&mut self.parallel_group_base_sequence, later.base_sequence);
        int(&mut self.parallel_group_size, later.size);
        int(&mut self.parallel_group_index, later.index);
        let path = path_of(later);
        if !path.is_empty() {
            self.parallel_group_path = path;
        }
    }
}

/// The path as written, or the flat keys as a path of one.
pub fn path_of(keys: GroupKeys<'_>) -> Vec<GroupStep> {
    let path = keys.path.map(steps).unwrap_or_default();
    if path.is_empty() {
        step(keys).into_iter().collect()
    } else {
        path
    }
}

/// PHP keeps lists and maps in one type, so a map of entries counts as a list of them.
fn steps(stored: &Value) -> Vec<GroupStep> {
    let of = |entry: &Value| step(GroupKeys::of_value(entry));
    match stored {
        Value::Array(entries) => entries.iter().filter_map(of).collect(),
        Value::Object(entries) => entries.values().filter_map(of).collect(),
        _ => Vec::new(),
    }
}

/// An entry counts only when it is complete; the kind may be told by the id.
fn step(keys: GroupKeys<'_>) -> Option<GroupStep> {
    let id = keys.id?;
    Some(GroupStep {
        parallel_group_id: id.to_owned(),
        parallel_group_kind: keys.kind.or_else(|| kind_of_id(id))?.to_owned(),
        parallel_group_base_sequence: keys.base_sequence?,
        parallel_group_size: keys.size.filter(|size| *size >= 1)?,
        parallel_group_index: keys.index?,
    })
}

fn kind_of_id(id: &str) -> Option<&'static str> {
    match id.split_once(':')?.0 {
        "parallel-activities" => Some("activity"),
        "parallel-calls" => Some("mixed"),
        "parallel-timers" => Some("timer"),
        "parallel-children" => Some("child"),
        _ => None,
    }
}

fn is_collection(value: &Value) -> bool {
    value.is_array() || value.is_object()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(id: &str, size: i64) -> Value {
        json!({"parallel_group_id": id, "parallel_group_base_sequence": 1,
            "parallel_group_size": size, "parallel_group_index": 0})
    }

    #[test]
    fn the_kind_may_be_told_by_the_id_and_incomplete_entries_do_not_count() {
        for (stored, kinds) in [
            (
                json!([entry("parallel-activities:1:2", 2)]),
                vec!["activity"],
            ),
            (
                json!([
                    entry("parallel-calls:1:2", 2),
                    entry("parallel-timers:1:2", 2)
                ]),
                vec!["mixed", "timer"],
            ),
            (entry("parallel-children:1:2", 2), vec!["child"]),
            (
                json!({"a": entry("parallel-children:1:2", 2)}),
                vec!["child"],
            ),
            (json!([entry("parallel-children:1:2", 0)]), vec![]),
            (json!([entry("something:1:2", 2)]), vec![]),
            (json!([7, null, "x"]), vec![]),
            (json!("x"), vec![]),
            (json!([]), vec![]),
        ] {
            let group = ParallelGroup::of_row(Some(&stored));
            let got: Vec<&str> = group
                .parallel_group_path
                .iter()
                .map(|step| step.parallel_group_kind.as_str())
                .collect();
            assert_eq!(got, kinds, "{stored}");
            assert_eq!(group.parallel_group_kind.as_deref(), kinds.last().copied());
        }
    }

    #[test]
    fn a_later_event_without_a_group_erases_nothing() {
        let first = entry("parallel-activities:1:2", 2);
        let mut group = ParallelGroup::default();
        group.overlay(GroupKeys::of_value(&first));
        let known = group.clone();
        group.overlay(GroupKeys::default());
        assert_eq!(group, known);
        assert_eq!(group.parallel_group_path.len(), 1);
        assert_eq!(
            group.parallel_group_kind, None,
            "the flat key was not written"
        );
    }
}
