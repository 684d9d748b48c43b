//! Whether the engine's stored projections still say what history says.
//!
//! The engine compares them whenever it shows a run, and rewrites those that differ. Here they
//! are only compared. The sentences in them are the engine's and ours are our own, and what
//! needs PHP classes cannot be known, so neither takes part in the comparison.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{
    context::stamp,
    lineage::{Lineage, Relative},
    timeline::Entry,
    timers::Timer,
    waits::Wait,
};
use crate::durable::{
    store::snapshot::RunSnapshot,
    stored::{
        LineageEntry, TimelineEntry, TimerEntry, WaitEntry,
        loose::{self, Raw},
    },
};

/// The word for a stored projection that is up to date: its table.
pub const WAITS: &str = "workflow_run_waits";
pub const TIMELINE: &str = "workflow_run_timeline_entries";
pub const TIMERS: &str = "workflow_run_timer_entries";
pub const LINEAGE: &str = "workflow_run_lineage_entries";

/// The version of stored timers this engine writes.
const TIMER_SCHEMA: i64 = 1;

/// Keys that hold the engine's own sentences, or what only PHP knows.
const NOT_COMPARED: &[&str] = &[
    "summary",
    "exception_resolved_class",
    "exception_resolution_source",
    "exception_resolution_error",
    "exception_replay_blocked",
];

/// `waits_projection_source`, by the waits as they are listed.
pub fn waits(snapshot: &RunSnapshot, recomputed: &[Wait]) -> &'static str {
    waits_source(same_waits(&snapshot.wait_entries, recomputed))
}

pub fn waits_source(up_to_date: bool) -> &'static str {
    if up_to_date {
        WAITS
    } else {
        "workflow_run_waits_rebuilt"
    }
}

/// Whether the stored waits, or a stretch of them, say what was recomputed.
pub fn same_waits(stored: &[WaitEntry], recomputed: &[impl Serialize]) -> bool {
    let rules = Rules {
        null_is_absent: true,
        ..Rules::default()
    };
    all(stored, recomputed, rules, wait_entry)
}

/// `timeline_projection_source`. With a limit the engine trusts what is stored.
pub fn timeline(
    snapshot: &RunSnapshot,
    recomputed: &[Entry],
    limit: Option<usize>,
) -> &'static str {
    match limit {
        Some(_) if snapshot.has_timeline_entries => "workflow_run_timeline_entries_window",
        Some(_) => "workflow_run_timeline_entries_rebuilt_window",
        None => timeline_source(same_timeline(&snapshot.timeline_entries, recomputed)),
    }
}

pub fn timeline_source(up_to_date: bool) -> &'static str {
    if up_to_date {
        TIMELINE
    } else {
        "workflow_run_timeline_entries_rebuilt"
    }
}

/// Whether the stored timeline, or a stretch of it, says what was recomputed.
pub fn same_timeline(stored: &[TimelineEntry], recomputed: &[Entry]) -> bool {
    all(stored, recomputed, Rules::default(), timeline_entry)
}

/// `timers_projection_source` and `timers_projection_rebuild_reasons`.
pub fn timers(snapshot: &RunSnapshot, recomputed: &[Timer]) -> (&'static str, Vec<&'static str>) {
    let cached = &snapshot.timer_entries;
    timers_source(&TimersSeen {
        stored: cached.len(),
        recomputed: recomputed.len(),
        other_schema: cached.iter().any(of_other_schema),
        same: same_timers(cached, recomputed),
    })
}

/// What a comparison of the stored timers found.
#[derive(Clone, Copy, Debug)]
pub struct TimersSeen {
    pub stored: usize,
    pub recomputed: usize,
    pub other_schema: bool,
    pub same: bool,
}

pub fn timers_source(seen: &TimersSeen) -> (&'static str, Vec<&'static str>) {
    let mut reasons = Vec::new();
    if seen.stored == 0 && seen.recomputed > 0 {
        reasons.push("missing_projection");
    }
    if seen.other_schema {
        reasons.push("schema_version_mismatch");
    }
    if seen.stored > 0 && !seen.same {
        reasons.push("stale_projection");
    }
    let source = if reasons.is_empty() {
        TIMERS
    } else {
        "workflow_run_timer_entries_rebuilt"
    };
    (source, reasons)
}

/// Whether the stored timers, or a stretch of them, say what was recomputed.
pub fn same_timers(stored: &[TimerEntry], recomputed: &[impl Serialize]) -> bool {
    all(stored, recomputed, Rules::default(), timer_entry)
}

pub fn of_other_schema(entry: &TimerEntry) -> bool {
    entry.schema_version != TIMER_SCHEMA
}

/// `lineage_projection_source`. When two runs were linked does not count.
pub fn lineage(snapshot: &RunSnapshot, recomputed: &Lineage) -> &'static str {
    let rules = Rules {
        also_not: &["created_at"],
        ..Rules::default()
    };
    let side = |direction: &str| -> Vec<&LineageEntry> {
        snapshot
            .lineage_entries
            .iter()
            .filter(|entry| entry.direction == direction)
            .collect()
    };
    let agree = |direction, relatives: &[Relative]| {
        all(side(direction), relatives, rules, |entry| {
            lineage_entry(entry)
        })
    };
    let up_to_date = agree("parent", &recomputed.parents) && agree("child", &recomputed.continued);
    if up_to_date {
        LINEAGE
    } else {
        "workflow_run_lineage_entries_rebuilt"
    }
}

/// What else does not count in a comparison.
#[derive(Clone, Copy, Default)]
struct Rules {
    also_not: &'static [&'static str],
    /// A key that is null is as good as none.
    null_is_absent: bool,
}

impl Rules {
    fn counts(self, key: &str) -> bool {
        !NOT_COMPARED.contains(&key) && !self.also_not.contains(&key)
    }
}

/// A stored entry: its payload, and the columns that outrank the payload's keys.
struct Stored {
    payload: Option<Map<String, Value>>,
    columns: Vec<(&'static str, Value)>,
}

impl Stored {
    fn new(payload: &Raw, columns: Vec<(&'static str, Value)>) -> Self {
        Self {
            payload: match payload.value() {
                Some(Value::Object(map)) => Some(map),
                _ => None,
            },
            columns,
        }
    }

    fn of_payload(&self, key: &str) -> Option<&Value> {
        self.payload.as_ref()?.get(key)
    }

    /// A word of the payload, else of its column.
    fn word<'s>(&'s self, key: &str, column: Option<&'s str>) -> Option<&'s str> {
        let own = self.of_payload(key).and_then(Value::as_str);
        own.or(column).filter(|word| !word.is_empty())
    }

    fn get(&self, key: &str) -> Option<&Value> {
        self.columns
            .iter()
            .find(|(column, _)| *column == key)
            .map(|(_, value)| value)
            .or_else(|| self.of_payload(key))
    }

    fn keys(&self) -> impl Iterator<Item = &str> {
        let columns = self.columns.iter().map(|(column, _)| *column);
        let payload = self.payload.iter().flat_map(Map::keys);
        columns.chain(payload.map(String::as_str))
    }

    fn says(&self, recomputed: &Value, rules: Rules) -> bool {
        let Some(recomputed) = recomputed.as_object() else {
            return false;
        };
        let none = |value: Option<&Value>| {
            value.is_none_or(|value| rules.null_is_absent && value.is_null())
        };
        let kept = recomputed
            .iter()
            .filter(|(key, _)| rules.counts(key))
            .all(|(key, value)| match self.get(key) {
                Some(stored) if !none(Some(stored)) => same(stored, value),
                _ => none(Some(value)),
            });
        kept && self
            .keys()
            .filter(|key| rules.counts(key))
            .all(|key| recomputed.contains_key(key) || none(self.get(key)))
    }
}

/// Whether every stored entry says what was recomputed in its place. Looks at one at a time: a
/// long run has thousands.
fn all<'e, E: 'e>(
    stored: impl IntoIterator<Item = &'e E, IntoIter: ExactSizeIterator>,
    recomputed: &[impl Serialize],
    rules: Rules,
    read: impl Fn(&'e E) -> Stored,
) -> bool {
    let stored = stored.into_iter();
    stored.len() == recomputed.len()
        && stored
            .zip(recomputed)
            .all(|(entry, recomputed)| read(entry).says(&json!(recomputed), rules))
}

/// Equal but for what PHP does not tell apart, an empty list and an empty map, and for what is
/// not compared inside a failure.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            let missing = |from: &Map<String, Value>, key: &String| {
                !from.contains_key(key) && !NOT_COMPARED.contains(&key.as_str())
            };
            !b.keys().any(|key| missing(a, key))
                && a.iter().all(|(key, value)| {
                    NOT_COMPARED.contains(&key.as_str())
                        || b.get(key).is_some_and(|other| same(value, other))
                })
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Array(list), Value::Object(map)) | (Value::Object(map), Value::Array(list)) => {
            list.is_empty() && map.is_empty()
        }
        (a, b) => a == b,
    }
}

fn wait_entry(entry: &WaitEntry) -> Stored {
    let mut stored = Stored::new(
        &entry.payload,
        vec![
            ("id", json!(entry.wait_id)),
            ("kind", json!(entry.kind)),
            ("sequence", json!(entry.sequence)),
            ("status", json!(entry.status)),
            ("source_status", json!(entry.source_status)),
            ("opened_at", json!(entry.opened_at.map(stamp))),
            ("deadline_at", json!(entry.deadline_at.map(stamp))),
            ("resolved_at", json!(entry.resolved_at.map(stamp))),
            ("target_name", json!(entry.target_name)),
            ("target_type", json!(entry.target_type)),
            ("task_backed", json!(entry.task_backed)),
            ("external_only", json!(entry.external_only)),
            ("resume_source_kind", json!(entry.resume_source_kind)),
            ("resume_source_id", json!(entry.resume_source_id)),
            ("task_id", json!(entry.task_id)),
            ("task_type", json!(entry.task_type)),
            ("task_status", json!(entry.task_status)),
            ("command_id", json!(entry.command_id)),
            ("command_sequence", json!(entry.command_sequence)),
            ("command_status", json!(entry.command_status)),
            ("command_outcome", json!(entry.command_outcome)),
            ("history_authority", json!(entry.history_authority)),
            (
                "history_unsupported_reason",
                json!(entry.history_unsupported_reason),
            ),
        ],
    );
    let fired = moment(stored.of_payload("timeout_fired_at"));
    stored.columns.push(("timeout_fired_at", fired));
    stored
}

fn timeline_entry(entry: &TimelineEntry) -> Stored {
    Stored::new(
        &entry.payload,
        vec![
            ("id", json!(entry.history_event_id)),
            ("sequence", json!(entry.sequence)),
            ("kind", json!(entry.kind)),
            ("entry_kind", json!(entry.entry_kind)),
            ("source_kind", json!(entry.source_kind)),
            ("source_id", json!(entry.source_id)),
            ("recorded_at", json!(entry.recorded_at.map(stamp))),
            ("command_id", json!(entry.command_id)),
            ("command_sequence", json!(entry.command_sequence)),
            ("task_id", json!(entry.task_id)),
            ("activity_execution_id", json!(entry.activity_execution_id)),
            ("timer_id", json!(entry.timer_id)),
            ("failure_id", json!(entry.failure_id)),
        ],
    )
}

/// Here the payload outranks the columns for how the timer stands.
fn timer_entry(entry: &TimerEntry) -> Stored {
    let mut stored = Stored::new(
        &entry.payload,
        vec![
            ("id", json!(entry.timer_id)),
            ("sequence", json!(entry.sequence)),
            ("delay_seconds", json!(entry.delay_seconds)),
            ("fire_at", json!(entry.fire_at.map(stamp))),
            ("fired_at", json!(entry.fired_at.map(stamp))),
            ("cancelled_at", json!(entry.cancelled_at.map(stamp))),
            ("timer_kind", json!(entry.timer_kind)),
            ("condition_wait_id", json!(entry.condition_wait_id)),
            ("condition_key", json!(entry.condition_key)),
            (
                "condition_definition_fingerprint",
                json!(entry.condition_definition_fingerprint),
            ),
        ],
    );
    let status = stored.word("status", Some(&entry.status));
    let authority = stored.word("history_authority", entry.history_authority.as_deref());
    let overlay = [
        ("status", json!(status)),
        (
            "source_status",
            json!(
                stored
                    .word("source_status", entry.source_status.as_deref())
                    .or(status)
            ),
        ),
        ("history_authority", json!(authority)),
        (
            "history_unsupported_reason",
            json!(stored.word(
                "history_unsupported_reason",
                entry.history_unsupported_reason.as_deref()
            )),
        ),
        ("row_status", json!(stored.word("row_status", None))),
        (
            "diagnostic_only",
            json!(authority.is_some_and(|authority| authority != super::authority::TYPED)),
        ),
        ("created_at", moment(stored.of_payload("created_at"))),
    ];
    stored.columns.extend(overlay);
    stored
}

fn lineage_entry(entry: &LineageEntry) -> Stored {
    let instance = json!(entry.related_workflow_instance_id);
    let run = json!(entry.related_workflow_run_id);
    let (own_instance, own_run) = if entry.direction == "parent" {
        ("parent_workflow_id", "parent_workflow_run_id")
    } else {
        ("child_workflow_id", "child_workflow_run_id")
    };
    let mut stored = Stored::new(
        &entry.payload,
        vec![
            ("id", json!(entry.lineage_id)),
            ("link_type", json!(entry.link_type)),
            ("child_call_id", json!(entry.child_call_id)),
            ("sequence", json!(entry.sequence)),
            ("is_primary_parent", json!(entry.is_primary_parent)),
            (own_instance, instance.clone()),
            (own_run, run.clone()),
            ("workflow_instance_id", instance),
            ("workflow_run_id", run),
            ("run_number", json!(entry.related_run_number)),
            ("workflow_type", json!(entry.related_workflow_type)),
            ("class", json!(entry.related_workflow_class)),
            ("status", json!(entry.status)),
            ("status_bucket", json!(entry.status_bucket)),
            ("closed_reason", json!(entry.closed_reason)),
        ],
    );
    if stored.of_payload("history_authority").is_none() {
        stored.columns.push(("history_authority", Value::Null));
    }
    let diagnostic = stored.of_payload("diagnostic_only") == Some(&Value::Bool(true));
    stored.columns.push(("diagnostic_only", json!(diagnostic)));
    stored
}

/// A moment of a payload in the form the detail writes.
fn moment(text: Option<&Value>) -> Value {
    let text = text.and_then(Value::as_str);
    json!(text.and_then(loose::moment).map(stamp))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_entry_is_up_to_date_when_columns_and_payload_say_what_was_recomputed() {
        let exact = Rules::default();
        let lenient = Rules {
            null_is_absent: true,
            ..Rules::default()
        };
        // payload, column `status`, recomputed, rules → up to date
        let table = [
            (
                json!({"a": 1}),
                "open",
                json!({"status": "open", "a": 1}),
                exact,
                true,
            ),
            (
                json!({"status": "old"}),
                "open",
                json!({"status": "open"}),
                exact,
                true,
            ),
            (
                json!({"a": 1}),
                "open",
                json!({"status": "open", "a": 2}),
                exact,
                false,
            ),
            (
                json!({"a": 1}),
                "open",
                json!({"status": "open"}),
                exact,
                false,
            ),
            (
                json!({}),
                "open",
                json!({"status": "open", "a": null}),
                exact,
                false,
            ),
            (
                json!({}),
                "open",
                json!({"status": "open", "a": null}),
                lenient,
                true,
            ),
            (
                json!({"a": null}),
                "open",
                json!({"status": "open"}),
                lenient,
                true,
            ),
            (
                json!({"a": []}),
                "open",
                json!({"status": "open", "a": {}}),
                exact,
                true,
            ),
            (
                json!({"summary": "theirs"}),
                "open",
                json!({"status": "open", "summary": "ours"}),
                exact,
                true,
            ),
            (
                json!("no map"),
                "open",
                json!({"status": "open"}),
                exact,
                true,
            ),
            (json!({}), "open", json!(null), exact, false),
        ];
        for (payload, status, recomputed, rules, expected) in table {
            let case = format!("{payload} {recomputed}");
            let payload = Raw::of_column(Some(payload.to_string()));
            let stored = Stored::new(&payload, vec![("status", json!(status))]);
            assert_eq!(stored.says(&recomputed, rules), expected, "{case}");
        }
    }
}
