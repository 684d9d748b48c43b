//! Whether the engine's stored projections still say what history says: both as canonical text,
//! part by part.
//!
//! The engine compares them whenever it shows a run, and rewrites those that differ. Here they
//! are only compared. The sentences in them are the engine's and ours are our own, and what
//! needs PHP classes cannot be known, so neither takes part in the comparison.

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::{
    context::stamp,
    lineage::{Lineage, Relative},
    timeline::Entry,
    timers::Timer,
    waits::Wait,
};
use crate::durable::{
    canonical,
    export::redaction::HIDEABLE_IN_TIMELINE,
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
    waits_source(all(&snapshot.wait_entries, recomputed, same_wait))
}

pub fn waits_source(up_to_date: bool) -> &'static str {
    if up_to_date {
        WAITS
    } else {
        "workflow_run_waits_rebuilt"
    }
}

/// Whether a stored wait says what was recomputed, given as canonical text.
pub fn same_wait(stored: &WaitEntry, recomputed: &[u8]) -> bool {
    let rules = Rules {
        null_is_absent: true,
        ..Rules::default()
    };
    with_payload(&stored.payload, |payload| {
        wait_entry(stored, payload).says(recomputed, rules)
    })
}

/// `timeline_projection_source`. With a limit the engine trusts what is stored.
pub fn timeline(
    snapshot: &RunSnapshot,
    recomputed: &[Entry<'_>],
    limit: Option<usize>,
) -> &'static str {
    match limit {
        Some(_) if snapshot.has_timeline_entries => "workflow_run_timeline_entries_window",
        Some(_) => "workflow_run_timeline_entries_rebuilt_window",
        None => timeline_source(all(
            &snapshot.timeline_entries,
            recomputed,
            |stored, recomputed| {
                // What is hidden in ours cannot be compared.
                let also_not = match snapshot.hidden_by {
                    Some(_) => HIDEABLE_IN_TIMELINE.as_slice(),
                    None => &[],
                };
                let rules = Rules {
                    also_not,
                    ..Rules::default()
                };
                same_timeline(stored, recomputed, rules)
            },
        )),
    }
}

pub fn timeline_source(up_to_date: bool) -> &'static str {
    if up_to_date {
        TIMELINE
    } else {
        "workflow_run_timeline_entries_rebuilt"
    }
}

/// Whether a stored entry says what was recomputed, given as canonical text.
pub fn same_timeline_entry(stored: &TimelineEntry, recomputed: &[u8]) -> bool {
    same_timeline(stored, recomputed, Rules::default())
}

fn same_timeline(stored: &TimelineEntry, recomputed: &[u8], rules: Rules) -> bool {
    with_payload(&stored.payload, |payload| {
        timeline_entry(stored, payload).says(recomputed, rules)
    })
}

/// `timers_projection_source` and `timers_projection_rebuild_reasons`.
pub fn timers(snapshot: &RunSnapshot, recomputed: &[Timer]) -> (&'static str, Vec<&'static str>) {
    let cached = &snapshot.timer_entries;
    timers_source(&TimersSeen {
        stored: cached.len(),
        recomputed: recomputed.len(),
        other_schema: cached.iter().any(of_other_schema),
        same: all(cached, recomputed, same_timer),
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

/// Whether a stored timer says what was recomputed, given as canonical text.
pub fn same_timer(stored: &TimerEntry, recomputed: &[u8]) -> bool {
    with_payload(&stored.payload, |payload| {
        timer_entry(stored, payload).says(recomputed, Rules::default())
    })
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
    let agree = |direction, relatives: &[Relative]| {
        let stored: Vec<_> = stored_lineage(snapshot, direction).collect();
        all(stored, relatives, |entry, recomputed| {
            with_payload(&entry.payload, |payload| {
                lineage_entry(entry, payload).says(recomputed, rules)
            })
        })
    };
    let up_to_date = agree(PARENT, &recomputed.parents) && agree(CHILD, &recomputed.continued);
    if up_to_date {
        LINEAGE
    } else {
        "workflow_run_lineage_entries_rebuilt"
    }
}

/// The lineage as the engine hands it out, with its `lineage_projection_source`: stored rows that
/// are up to date are handed out themselves, so that when two runs were linked is what they say.
pub fn handed_out(snapshot: &RunSnapshot, mut lineage: Lineage) -> (Lineage, &'static str) {
    let source = self::lineage(snapshot, &lineage);
    if source == LINEAGE {
        for (direction, relatives) in [
            (PARENT, &mut lineage.parents),
            (CHILD, &mut lineage.continued),
        ] {
            for (relative, stored) in relatives
                .iter_mut()
                .zip(stored_lineage(snapshot, direction))
            {
                relative.created_at = stored.linked_at;
            }
        }
    }
    (lineage, source)
}

const PARENT: &str = "parent";
const CHILD: &str = "child";

fn stored_lineage<'s>(
    snapshot: &'s RunSnapshot,
    direction: &'static str,
) -> impl Iterator<Item = &'s LineageEntry> {
    let entries = snapshot.lineage_entries.iter();
    entries.filter(move |entry| entry.direction == direction)
}

/// What else does not count in a comparison.
#[derive(Clone, Copy, Default)]
struct Rules {
    also_not: &'static [&'static str],
    /// A key that is null is as good as none.
    null_is_absent: bool,
}

impl Rules {
    fn counts(self, key: &[u8]) -> bool {
        let names = |word: &&str| word.as_bytes() == key;
        !NOT_COMPARED.iter().any(names) && !self.also_not.iter().any(names)
    }
}

/// The members of a stored payload: none when it is no map.
type Payload<'t> = Vec<(&'t [u8], &'t [u8])>;

fn with_payload<T>(stored: &Raw, with: impl FnOnce(Payload<'_>) -> T) -> T {
    let mut text = Vec::new();
    if let Some(stored) = stored.0.as_deref() {
        // What is no JSON leaves nothing.
        let _ = canonical::write_json(&mut text, stored.as_bytes());
    }
    with(canonical::members(&text).collect())
}

/// A stored entry: its payload, and the columns that outrank the payload's keys.
struct Stored<'t> {
    payload: Payload<'t>,
    columns: Columns,
}

/// Values by key, as canonical text.
#[derive(Default)]
struct Columns {
    text: Vec<u8>,
    ends: Vec<(&'static str, usize)>,
}

impl Columns {
    fn push(&mut self, key: &'static str, value: &(impl Serialize + ?Sized)) {
        canonical::write(&mut self.text, value);
        self.ends.push((key, self.text.len()));
    }

    fn time(&mut self, key: &'static str, at: Option<DateTime<Utc>>) {
        self.push(key, &at.map(stamp));
    }

    fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.ends.iter().scan(0, |from, (key, to)| {
            let value = &self.text[*from..*to];
            *from = *to;
            Some((key.as_bytes(), value))
        })
    }
}

impl<'t> Stored<'t> {
    fn new(payload: Payload<'t>) -> Self {
        Self {
            payload,
            columns: Columns::default(),
        }
    }

    fn of_payload(&self, key: &[u8]) -> Option<&'t [u8]> {
        let mut members = self.payload.iter();
        members
            .find(|(own, _)| *own == key)
            .map(|(_, value)| *value)
    }

    fn text_of(&self, key: &str) -> Option<String> {
        let value = self.of_payload(key.as_bytes())?;
        serde_json::from_slice(value).ok()
    }

    /// A word of the payload, else of its column.
    fn word(&self, key: &str, column: Option<&str>) -> Option<String> {
        self.text_of(key)
            .or_else(|| column.map(str::to_owned))
            .filter(|word| !word.is_empty())
    }

    /// A moment of the payload in the form the detail writes.
    fn moment(&self, key: &str) -> Option<String> {
        self.text_of(key)
            .as_deref()
            .and_then(loose::moment)
            .map(stamp)
    }

    fn says(&self, recomputed: &[u8], rules: Rules) -> bool {
        if recomputed.first() != Some(&b'{') {
            return false;
        }
        let counted = |(key, value): &(&[u8], &[u8])| {
            rules.counts(key) && !(rules.null_is_absent && *value == b"null")
        };
        let mut recomputed = canonical::members(recomputed).filter(counted);
        let stored = self.members();
        let mut stored = stored.iter().copied().filter(counted);
        loop {
            match (stored.next(), recomputed.next()) {
                (Some(a), Some(b)) if a.0 == b.0 && same(a.1, b.1, rules) => {}
                (None, None) => return true,
                _ => return false,
            }
        }
    }

    /// Columns and payload together, by key.
    fn members(&self) -> Payload<'_> {
        let mut columns: Payload<'_> = self.columns.iter().collect();
        columns.sort_unstable();
        let mut columns = columns.into_iter().peekable();
        let mut members = Vec::with_capacity(self.payload.len() + columns.len());
        for (key, value) in &self.payload {
            while let Some(column) = columns.next_if(|(column, _)| column < key) {
                members.push(column);
            }
            let outranked = columns.peek().is_some_and(|(column, _)| column == key);
            if !outranked {
                members.push((key, value));
            }
        }
        members.extend(columns);
        members
    }
}

/// Whether every stored entry says what was recomputed in its place. Looks at one at a time: a
/// long run has thousands.
fn all<'e, E: 'e>(
    stored: impl IntoIterator<Item = &'e E, IntoIter: ExactSizeIterator>,
    recomputed: &[impl Serialize],
    same: impl Fn(&'e E, &[u8]) -> bool,
) -> bool {
    let stored = stored.into_iter();
    let mut text = Vec::new();
    stored.len() == recomputed.len()
        && stored.zip(recomputed).all(|(entry, recomputed)| {
            text.clear();
            canonical::write(&mut text, recomputed);
            same(entry, &text)
        })
}

/// Equal but for what is not compared inside a failure.
fn same(a: &[u8], b: &[u8], rules: Rules) -> bool {
    if a == b {
        return true;
    }
    match (a.first(), b.first()) {
        (Some(b'{'), Some(b'{')) => {
            let counted = |map| -> Payload<'_> {
                canonical::members(map)
                    .filter(|(key, _)| rules.counts(key))
                    .collect()
            };
            let (a, b) = (counted(a), counted(b));
            a.len() == b.len()
                && a.iter()
                    .zip(&b)
                    .all(|(a, b)| a.0 == b.0 && same(a.1, b.1, rules))
        }
        (Some(b'['), Some(b'[')) => {
            let (mut a, mut b) = (canonical::items(a), canonical::items(b));
            loop {
                match (a.next(), b.next()) {
                    (Some(a), Some(b)) if same(a, b, rules) => {}
                    (None, None) => return true,
                    _ => return false,
                }
            }
        }
        _ => false,
    }
}

fn wait_entry<'t>(entry: &WaitEntry, payload: Payload<'t>) -> Stored<'t> {
    let mut stored = Stored::new(payload);
    let fired = stored.moment("timeout_fired_at");
    let columns = &mut stored.columns;
    columns.push("id", &entry.wait_id);
    columns.push("kind", &entry.kind);
    columns.push("sequence", &entry.sequence);
    columns.push("status", &entry.status);
    columns.push("source_status", &entry.source_status);
    columns.time("opened_at", entry.opened_at);
    columns.time("deadline_at", entry.deadline_at);
    columns.time("resolved_at", entry.resolved_at);
    columns.push("target_name", &entry.target_name);
    columns.push("target_type", &entry.target_type);
    columns.push("task_backed", &entry.task_backed);
    columns.push("external_only", &entry.external_only);
    columns.push("resume_source_kind", &entry.resume_source_kind);
    columns.push("resume_source_id", &entry.resume_source_id);
    columns.push("task_id", &entry.task_id);
    columns.push("task_type", &entry.task_type);
    columns.push("task_status", &entry.task_status);
    columns.push("command_id", &entry.command_id);
    columns.push("command_sequence", &entry.command_sequence);
    columns.push("command_status", &entry.command_status);
    columns.push("command_outcome", &entry.command_outcome);
    columns.push("history_authority", &entry.history_authority);
    columns.push(
        "history_unsupported_reason",
        &entry.history_unsupported_reason,
    );
    columns.push("timeout_fired_at", &fired);
    stored
}

fn timeline_entry<'t>(entry: &TimelineEntry, payload: Payload<'t>) -> Stored<'t> {
    let mut stored = Stored::new(payload);
    let columns = &mut stored.columns;
    columns.push("id", &entry.history_event_id);
    columns.push("sequence", &entry.sequence);
    columns.push("kind", &entry.kind);
    columns.push("entry_kind", &entry.entry_kind);
    columns.push("source_kind", &entry.source_kind);
    columns.push("source_id", &entry.source_id);
    columns.time("recorded_at", entry.recorded_at);
    columns.push("command_id", &entry.command_id);
    columns.push("command_sequence", &entry.command_sequence);
    columns.push("task_id", &entry.task_id);
    columns.push("activity_execution_id", &entry.activity_execution_id);
    columns.push("timer_id", &entry.timer_id);
    columns.push("failure_id", &entry.failure_id);
    stored
}

/// Here the payload outranks the columns for how the timer stands.
fn timer_entry<'t>(entry: &TimerEntry, payload: Payload<'t>) -> Stored<'t> {
    let mut stored = Stored::new(payload);
    let status = stored.word("status", Some(&entry.status));
    let source_status = stored
        .word("source_status", entry.source_status.as_deref())
        .or_else(|| status.clone());
    let authority = stored.word("history_authority", entry.history_authority.as_deref());
    let reason = stored.word(
        "history_unsupported_reason",
        entry.history_unsupported_reason.as_deref(),
    );
    let row_status = stored.word("row_status", None);
    let created_at = stored.moment("created_at");
    let diagnostic = authority
        .as_deref()
        .is_some_and(|authority| authority != super::authority::TYPED);
    let columns = &mut stored.columns;
    columns.push("id", &entry.timer_id);
    columns.push("sequence", &entry.sequence);
    columns.push("delay_seconds", &entry.delay_seconds);
    columns.time("fire_at", entry.fire_at);
    columns.time("fired_at", entry.fired_at);
    columns.time("cancelled_at", entry.cancelled_at);
    columns.push("timer_kind", &entry.timer_kind);
    columns.push("condition_wait_id", &entry.condition_wait_id);
    columns.push("condition_key", &entry.condition_key);
    columns.push(
        "condition_definition_fingerprint",
        &entry.condition_definition_fingerprint,
    );
    columns.push("status", &status);
    columns.push("source_status", &source_status);
    columns.push("history_authority", &authority);
    columns.push("history_unsupported_reason", &reason);
    columns.push("row_status", &row_status);
    columns.push("diagnostic_only", &diagnostic);
    columns.push("created_at", &created_at);
    stored
}

fn lineage_entry<'t>(entry: &LineageEntry, payload: Payload<'t>) -> Stored<'t> {
    let mut stored = Stored::new(payload);
    let told = stored.of_payload(b"history_authority").is_some();
    let diagnostic = stored.of_payload(b"diagnostic_only") == Some(b"true");
    let (own_instance, own_run) = if entry.direction == PARENT {
        ("parent_workflow_id", "parent_workflow_run_id")
    } else {
        ("child_workflow_id", "child_workflow_run_id")
    };
    let columns = &mut stored.columns;
    columns.push("id", &entry.lineage_id);
    columns.push("link_type", &entry.link_type);
    columns.push("child_call_id", &entry.child_call_id);
    columns.push("sequence", &entry.sequence);
    columns.push("is_primary_parent", &entry.is_primary_parent);
    for key in [own_instance, "workflow_instance_id"] {
        columns.push(key, &entry.related_workflow_instance_id);
    }
    for key in [own_run, "workflow_run_id"] {
        columns.push(key, &entry.related_workflow_run_id);
    }
    columns.push("run_number", &entry.related_run_number);
    columns.push("workflow_type", &entry.related_workflow_type);
    columns.push("class", &entry.related_workflow_class);
    columns.push("status", &entry.status);
    columns.push("status_bucket", &entry.status_bucket);
    columns.push("closed_reason", &entry.closed_reason);
    if !told {
        columns.push("history_authority", &());
    }
    columns.push("diagnostic_only", &diagnostic);
    stored
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
            let says = with_payload(&payload, |payload| {
                let mut stored = Stored::new(payload);
                stored.columns.push("status", status);
                let mut text = Vec::new();
                canonical::write(&mut text, &recomputed);
                stored.says(&text, rules)
            });
            assert_eq!(says, expected, "{case}");
        }
    }
}
