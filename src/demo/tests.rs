//! The catalogue keeps the engine's own rules: schema, stored words, history, projections.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::LazyLock;

use chrono::{DateTime, TimeZone, Utc};
use serde_json::Value as Json;

use super::rows::InsertRow;
use super::{STORY_MEMO, Situation, catalogue, corpus};
use crate::{
    db::Val,
    durable::store::schema::{Kind, tables},
};

/// The situation that writes words nobody knows, on purpose.
const FUTURE: &str = "unknown-future-values";

fn now() -> DateTime<Utc> {
    Utc.with_ymd_and_hms(2026, 11, 16, 10, 0, 0)
        .single()
        .expect("a real date")
}

static CATALOGUE: LazyLock<Vec<Situation>> = LazyLock::new(|| catalogue(now()).collect());

fn rows(table: &str) -> impl Iterator<Item = (&'static str, &'static InsertRow)> {
    CATALOGUE.iter().flat_map(move |situation| {
        let rows = situation.rows.iter().filter(move |row| row.table == table);
        rows.map(|row| (situation.name, row))
    })
}

fn int(row: &InsertRow, column: &str) -> i64 {
    match row.get(column) {
        Some(Val::Int(n)) => *n,
        other => panic!("{}.{column} is {other:?}", row.table),
    }
}

fn summary(name: &str) -> &'static InsertRow {
    let situation = CATALOGUE
        .iter()
        .find(|situation| situation.name == name)
        .unwrap_or_else(|| panic!("no situation {name}"));
    situation
        .rows
        .iter()
        .find(|row| {
            row.table == "workflow_run_summaries" && row.text("id") == Some(&situation.run_id)
        })
        .unwrap_or_else(|| panic!("{name} has no summary"))
}

#[test]
fn names_are_unique_and_every_story_is_told() {
    let mut seen = HashSet::new();
    for situation in CATALOGUE.iter() {
        assert!(seen.insert(situation.name), "{} twice", situation.name);
        assert!(
            situation
                .name
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'),
            "{}",
            situation.name
        );
        assert!(!situation.story.trim().is_empty(), "{}", situation.name);
        let told = situation.rows.iter().any(|row| {
            row.table == "workflow_memos"
                && row.text("workflow_run_id") == Some(&situation.run_id)
                && row.text("key") == Some(STORY_MEMO)
        });
        assert!(told, "{} does not tell its story", situation.name);
        for table in [
            "workflow_instances",
            "workflow_runs",
            "workflow_run_summaries",
        ] {
            let named = situation.rows.iter().any(|row| {
                row.table == table
                    && row
                        .text("visibility_labels")
                        .is_some_and(|labels| labels.contains(situation.name))
            });
            let unseen = situation.name == "missing-summary" && table == "workflow_run_summaries";
            assert!(
                named || unseen,
                "{} is not named in {table}",
                situation.name
            );
        }
    }
    assert!(seen.len() >= 45, "only {} situations", seen.len());
}

/// What each situation must look like in a list: (name, wait kind, liveness, repair blocked,
/// task problem).
#[test]
fn situations_show_what_their_story_says() {
    type Row = (&'static str, &'static str, &'static str, &'static str, bool);
    #[rustfmt::skip]
    let expected: &[Row] = &[
        ("completed", "-", "closed", "run_closed", false),
        ("pending-just-started", "workflow-task", "workflow_task_ready", "repair_not_needed", false),
        ("activity-running-heartbeat", "activity", "activity_task_leased", "repair_not_needed", false),
        ("workflow-task-leased", "workflow-task", "workflow_task_leased", "repair_not_needed", false),
        ("failed-application", "-", "closed", "run_closed", false),
        ("failed-activity-after-retries", "-", "closed", "run_closed", false),
        ("failed-non-retryable", "-", "closed", "run_closed", false),
        ("failed-child", "-", "closed", "run_closed", false),
        ("failed-execution-timeout", "-", "closed", "run_closed", true),
        ("failed-run-timeout", "-", "closed", "run_closed", true),
        ("failed-activity-timeout", "-", "closed", "run_closed", false),
        ("cancelled", "-", "closed", "run_closed", false),
        ("terminated", "-", "closed", "run_closed", false),
        ("failed-task-failure", "-", "closed", "run_closed", false),
        ("failed-internal", "-", "closed", "run_closed", false),
        ("failed-unclassified", "-", "closed", "run_closed", false),
        ("handled-failure", "-", "closed", "run_closed", false),
        ("retrying-mid-backoff", "activity", "activity_task_ready", "repair_not_needed", false),
        ("waiting-signal", "signal", "waiting_for_signal", "repair_not_needed", false),
        ("waiting-signal-with-timeout", "signal", "waiting_for_signal", "repair_not_needed", false),
        ("waiting-timer", "timer", "timer_scheduled", "repair_not_needed", false),
        ("waiting-condition", "condition", "waiting_for_condition", "repair_not_needed", false),
        ("waiting-condition-with-timeout", "condition", "waiting_for_condition", "repair_not_needed", false),
        ("waiting-child", "child", "waiting_for_child", "repair_not_needed", false),
        ("waiting-activity", "activity", "activity_task_ready", "repair_not_needed", false),
        ("waiting-update", "update", "workflow_task_ready", "repair_not_needed", false),
        ("signal-accepted-task-ready", "workflow-task", "workflow_task_ready", "repair_not_needed", false),
        ("signal-task-lost", "signal", "repair_needed", "-", true),
        ("update-task-lost", "update", "repair_needed", "-", true),
        ("child-resolution-task-lost", "child", "repair_needed", "-", true),
        ("timer-fired-task-lost", "-", "repair_needed", "-", true),
        ("condition-timeout-task-lost", "condition", "repair_needed", "-", true),
        ("activity-task-lost", "activity", "repair_needed", "-", false),
        ("activity-task-and-execution-lost", "activity", "repair_needed", "-", false),
        ("retry-task-lost", "activity", "repair_needed", "-", false),
        ("timer-row-and-task-lost", "timer", "repair_needed", "-", false),
        ("signal-timeout-task-lost", "signal", "repair_needed", "-", false),
        ("no-resume-source", "-", "repair_needed", "-", true),
        ("activity-running-without-task", "activity", "activity_running_without_task", "repair_not_needed", false),
        ("row-only-activity", "-", "workflow_replay_blocked", "unsupported_history", false),
        ("row-only-child", "-", "workflow_replay_blocked", "unsupported_history", false),
        ("stale-summary", "activity", "activity_task_ready", "repair_not_needed", false),
        ("repaired-in-the-past", "timer", "timer_scheduled", "repair_not_needed", true),
        ("lease-expired-workflow", "workflow-task", "repair_needed", "-", true),
        ("lease-expired-activity", "activity", "repair_needed", "-", false),
        ("lease-expired-timer", "timer", "repair_needed", "-", false),
        ("dispatch-failed", "workflow-task", "repair_needed", "-", true),
        ("dispatch-overdue", "workflow-task", "repair_needed", "-", true),
        ("dispatch-never", "workflow-task", "repair_needed", "-", true),
        ("repair-backoff", "workflow-task", "repair_needed", "-", true),
        ("claim-failed", "workflow-task", "workflow_task_claim_failed", "repair_not_needed", true),
        ("waiting-compatible-worker", "workflow-task", "workflow_task_waiting_for_compatible_worker", "waiting_for_compatible_worker", true),
        ("replay-blocked-failure-resolution", "-", "workflow_replay_blocked", "-", true),
        ("replay-blocked-condition-mismatch", "signal", "workflow_replay_blocked", "-", true),
        ("replay-blocked-history-shape", "-", "workflow_replay_blocked", "-", true),
        ("continue-as-new-chain", "timer", "timer_scheduled", "repair_not_needed", false),
        ("parent-with-ten-children", "child", "waiting_for_child", "repair_not_needed", false),
        ("parallel-activities", "activity", "activity_task_leased", "repair_not_needed", false),
        ("parallel-branch-lost", "activity", "activity_task_leased", "repair_not_needed", false),
        ("parallel-branch-expired", "activity", "activity_task_leased", "repair_not_needed", false),
        ("parallel-mixed", "child", "waiting_for_child", "repair_not_needed", false),
        ("schedules", "-", "closed", "run_closed", false),
        ("search-attributes-and-memo", "signal", "waiting_for_signal", "repair_not_needed", false),
        ("messages", "signal", "waiting_for_signal", "repair_not_needed", false),
        ("archived", "-", "closed", "run_closed", false),
        ("older-than-thirty-days", "-", "closed", "run_closed", false),
        ("five-thousand-events", "timer", "timer_scheduled", "repair_not_needed", false),
        ("unicode", "signal", "waiting_for_signal", "repair_not_needed", false),
        ("huge-payload", "-", "closed", "run_closed", false),
        ("hostile-text", "-", "closed", "run_closed", false),
        ("unknown-future-values", "quorum", "waiting_for_quorum", "quorum_pending", false),
        ("activity-result-task-lost", "-", "repair_needed", "-", true),
        ("row-only-closed-activity", "-", "workflow_replay_blocked", "unsupported_history", false),
        ("timer-overdue", "timer", "repair_needed", "-", false),
        ("run-deadline-passed", "signal", "waiting_for_signal", "repair_not_needed", false),
        ("failed-child-unclassified", "-", "closed", "run_closed", false),
        ("duplicate-start-rejected", "signal", "waiting_for_signal", "repair_not_needed", false),
        ("signal-rejected-by-limit", "signal", "waiting_for_signal", "repair_not_needed", false),
    ];
    let mut wrong = Vec::new();
    for (name, wait, liveness, blocked, problem) in expected {
        let row = summary(name);
        let text = |column| row.text(column).unwrap_or("-");
        let found = (
            *name,
            text("wait_kind"),
            text("liveness_state"),
            text("repair_blocked_reason"),
            row.get("task_problem") == Some(&Val::Bool(true)),
        );
        if found != (*name, *wait, *liveness, *blocked, *problem) {
            wrong.push(format!("{found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let named: HashSet<&str> = expected.iter().map(|row| row.0).collect();
    for situation in CATALOGUE.iter() {
        let known = named.contains(situation.name)
            || situation.name.starts_with("limit-")
            || situation.name == "missing-summary";
        assert!(known, "{} is in no list", situation.name);
    }
}

#[test]
fn every_structural_limit_has_its_run() {
    let stored: BTreeSet<String> = rows("workflow_history_events")
        .filter(|(_, row)| row.text("event_type") == Some("WorkflowFailed"))
        .filter_map(|(_, row)| {
            let payload: Json = serde_json::from_str(row.text("payload")?).ok()?;
            Some(payload["structural_limit_kind"].as_str()?.to_owned())
        })
        .collect();
    assert_eq!(stored.len(), 10, "{stored:?}");
}

#[test]
fn every_failure_category_occurs() {
    // A child's failure has no row under its parent, so events are asked too.
    let told = rows("workflow_history_events").filter_map(|(_, row)| {
        let payload: Json = serde_json::from_str(row.text("payload")?).ok()?;
        Some(payload["failure_category"].as_str()?.to_owned())
    });
    let seen: BTreeSet<String> = told.collect();
    assert_eq!(seen.len(), 9, "{seen:?}");
    assert!(rows("workflow_failures").any(|(_, r)| r.get("failure_category") == Some(&Val::Null)));
}

#[test]
fn ids_are_unique_across_the_catalogue() {
    let mut seen: HashSet<(&str, &str)> = HashSet::new();
    let mut bare: HashMap<&str, &str> = HashMap::new();
    for row in CATALOGUE.iter().flat_map(|situation| &situation.rows) {
        let Some(id) = row.text("id") else { continue };
        assert!(seen.insert((row.table, id)), "{} {id} twice", row.table);
        // A summary has its run's id by design; nothing else shares one.
        let shared = row.table != "workflow_run_summaries" && bare.insert(id, row.table).is_some();
        assert!(!shared, "{id} of {} is another row's too", row.table);
    }
}

#[test]
fn history_is_gap_free_and_the_run_knows_its_length() {
    let mut histories: HashMap<String, Vec<i64>> = HashMap::new();
    for (_, row) in rows("workflow_history_events") {
        let run = row.text("workflow_run_id").expect("a run").to_owned();
        histories.entry(run).or_default().push(int(row, "sequence"));
    }
    for (name, row) in rows("workflow_runs") {
        let id = row.text("id").expect("an id");
        let sequences = histories.remove(id).unwrap_or_default();
        let expected: Vec<i64> = (1..).take(sequences.len()).collect();
        assert_eq!(sequences, expected, "{name}");
        let last = i64::try_from(sequences.len()).expect("short");
        assert_eq!(int(row, "last_history_sequence"), last, "{name}");
    }
    assert!(histories.is_empty(), "events without a run: {histories:?}");
}

#[test]
fn every_run_has_one_instance_and_one_summary() {
    let mut summaries: HashMap<&str, usize> = HashMap::new();
    for (_, row) in rows("workflow_run_summaries") {
        *summaries.entry(row.text("id").expect("an id")).or_default() += 1;
    }
    let instances: HashSet<&str> = rows("workflow_instances")
        .map(|(_, row)| row.text("id").expect("an id"))
        .collect();
    for (name, row) in rows("workflow_runs") {
        let expected = usize::from(name != "missing-summary");
        let id = row.text("id").expect("an id");
        assert_eq!(summaries.get(id).copied().unwrap_or(0), expected, "{name}");
        assert!(instances.contains(row.text("workflow_instance_id").expect("an instance")));
    }
}

#[test]
fn the_long_run_has_five_thousand_events() {
    let row = summary("five-thousand-events");
    assert_eq!(int(row, "history_event_count"), 5_000);
}

#[test]
fn the_same_moment_gives_the_same_catalogue() {
    for (a, b) in CATALOGUE.iter().zip(catalogue(now())) {
        assert_eq!(a.rows, b.rows, "{}", a.name);
    }
}

#[test]
fn one_table_always_has_the_same_columns() {
    let mut shapes: HashMap<&str, (Vec<&str>, &str)> = HashMap::new();
    for situation in CATALOGUE.iter() {
        for row in &situation.rows {
            let columns: Vec<&str> = row.cells.iter().map(|cell| cell.0).collect();
            let (first, by) = shapes
                .entry(row.table)
                .or_insert_with(|| (columns.clone(), situation.name));
            assert_eq!(
                *first, columns,
                "{} in {} and {by}",
                row.table, situation.name
            );
        }
    }
}

#[test]
fn rows_fit_the_engines_schema() {
    let Some(text) = corpus("column-types.json") else {
        return;
    };
    let types: BTreeMap<String, Json> = serde_json::from_str(&text).expect("the corpus is JSON");
    for (name, row) in CATALOGUE
        .iter()
        .flat_map(|s| s.rows.iter().map(move |row| (s.name, row)))
    {
        for (column, value) in &row.cells {
            let key = format!("{}.{column}", row.table);
            let of = types
                .get(&key)
                .unwrap_or_else(|| panic!("{name}: no {key}"));
            let postgres = of["postgres"].as_str().expect("a type");
            if *value == Val::Null {
                assert!(!postgres.contains("NOT NULL"), "{name}: {key} is null");
            }
            if let (Val::Text(text), Some(rest)) =
                (value, postgres.strip_prefix("character varying("))
            {
                let limit: usize = rest
                    .split(')')
                    .next()
                    .and_then(|n| n.parse().ok())
                    .expect("a length");
                let long = text.chars().count();
                assert!(long <= limit, "{name}: {key} has {long} characters");
            }
        }
        for (key, of) in types.range(format!("{}.", row.table)..) {
            let Some(column) = key.strip_prefix(&format!("{}.", row.table)) else {
                break;
            };
            let definition = of["mysql"].as_str().expect("a type");
            let required = definition.contains("NOT NULL")
                && !definition.contains("DEFAULT")
                && !definition.contains("AUTO_INCREMENT");
            assert!(
                !required || row.get(column).is_some(),
                "{name}: {key} is required"
            );
        }
    }
}

#[test]
fn stored_words_are_the_engines_own() {
    let Some(text) = corpus("codec/enums.json") else {
        return;
    };
    let enums: HashMap<String, HashSet<String>> =
        serde_json::from_str(&text).expect("the corpus is JSON");
    let columns = [
        ("workflow_runs", "status", "RunStatus"),
        ("workflow_run_summaries", "status", "RunStatus"),
        ("workflow_run_summaries", "status_bucket", "StatusBucket"),
        ("workflow_run_summaries", "next_task_type", "TaskType"),
        ("workflow_run_summaries", "next_task_status", "TaskStatus"),
        ("workflow_tasks", "task_type", "TaskType"),
        ("workflow_tasks", "status", "TaskStatus"),
        ("workflow_history_events", "event_type", "HistoryEventType"),
        ("workflow_run_timeline_entries", "type", "HistoryEventType"),
        (
            "workflow_schedule_history_events",
            "event_type",
            "HistoryEventType",
        ),
        ("activity_executions", "status", "ActivityStatus"),
        ("activity_attempts", "status", "ActivityAttemptStatus"),
        ("workflow_run_timers", "status", "TimerStatus"),
        ("workflow_commands", "command_type", "CommandType"),
        ("workflow_commands", "status", "CommandStatus"),
        ("workflow_commands", "outcome", "CommandOutcome"),
        ("workflow_signal_records", "status", "SignalStatus"),
        ("workflow_updates", "status", "UpdateStatus"),
        ("workflow_failures", "failure_category", "FailureCategory"),
        ("workflow_links", "parent_close_policy", "ParentClosePolicy"),
        ("workflow_child_calls", "status", "ChildCallStatus"),
        ("workflow_messages", "direction", "MessageDirection"),
        ("workflow_messages", "channel", "MessageChannel"),
        ("workflow_messages", "consume_state", "MessageConsumeState"),
        ("workflow_schedules", "status", "ScheduleStatus"),
        (
            "workflow_schedules",
            "overlap_policy",
            "ScheduleOverlapPolicy",
        ),
    ];
    for (table, column, kind) in columns {
        for (name, row) in rows(table).filter(|(name, _)| *name != FUTURE) {
            let Some(word) = row.text(column) else {
                continue;
            };
            assert!(
                enums[kind].contains(word),
                "{name}: {table}.{column} = {word}"
            );
        }
    }
}

/// Keys the engine allows in each event, one event a line.
#[test]
fn event_payloads_have_only_the_keys_the_engine_allows() {
    let allowed: HashMap<&str, HashSet<&str>> = include_str!("event_keys.txt")
        .lines()
        .map(|line| {
            let mut words = line.split_whitespace();
            let event = words.next().expect("an event type");
            (
                event,
                words.chain(["task", "command", "schedule"]).collect(),
            )
        })
        .collect();
    let tables = [
        "workflow_history_events",
        "workflow_schedule_history_events",
    ];
    for (name, row) in tables.iter().flat_map(|table| rows(table)) {
        let event = row.text("event_type").expect("a type");
        if name == FUTURE && event == "QuorumProposed" {
            continue;
        }
        let payload: Json =
            serde_json::from_str(row.text("payload").expect("a payload")).expect("JSON");
        for key in payload.as_object().expect("an object").keys() {
            assert!(
                allowed[event].contains(key.as_str()),
                "{name}: {event} has {key}"
            );
        }
    }
}

/// Columns whose text the engine chooses: its words, its keys, encoded payloads.
const CHOSEN_BY_THE_ENGINE: &[&str] = &[
    "arguments",
    "backoff_seconds",
    "category",
    "channel",
    "child_policy",
    "closed_reason",
    "command_status",
    "command_type",
    "condition_definition_fingerprint",
    "consume_state",
    "content_hash",
    "declared_contract_source",
    "declared_entry_mode",
    "detected_by",
    "direction",
    "engine_source",
    "entry_kind",
    "event_type",
    "exception",
    "failure_category",
    "history_authority",
    "history_budget_pressure",
    "kind",
    "link_type",
    "metadata",
    "liveness_state",
    "next_task_status",
    "next_task_type",
    "outcome",
    "output",
    "overlap_policy",
    "parallel_group_path",
    "parent_close_policy",
    "payload_codec",
    "output_payload_codec",
    "propagation_kind",
    "recent_actions",
    "repair_blocked_reason",
    "resolution_status",
    "result",
    "resume_source_kind",
    "retry_policy",
    "scope_key",
    "sort_key",
    "source_kind",
    "source_status",
    "status",
    "status_bucket",
    "sticky_replay_mode",
    "target_scope",
    "task_status",
    "task_type",
    "timer_kind",
    "type",
    "value",
    "visibility",
    "wait_kind",
    "row_status",
    "last_skip_reason",
    "skip_reason",
];

#[test]
fn hostile_text_stands_wherever_an_outsider_can_write() {
    let hostile = CATALOGUE.iter().find(|s| s.name == "hostile-text");
    let hostile = hostile.expect("the situation");
    let mut clean = Vec::new();
    for table in tables() {
        let rows = hostile.rows.iter().filter(|row| row.table == table.name);
        let rows: Vec<_> = rows.collect();
        for column in table
            .columns
            .iter()
            .filter(|column| column.kind == Kind::Text)
        {
            let name = column.name;
            let written: Vec<_> = rows.iter().filter_map(|row| row.text(name)).collect();
            let is_chosen = name.ends_with("id") || CHOSEN_BY_THE_ENGINE.contains(&name);
            let is_foul = |text: &&str| text.contains("alert(1)");
            // Encoded text says the same in other letters.
            let is_encoded = |text: &&str| text.starts_with("ww");
            if !is_chosen
                && !written.is_empty()
                && !written.iter().any(|t| is_foul(t) || is_encoded(t))
            {
                clean.push(format!("{}.{name} {:?}", table.name, written[0]));
            }
        }
    }
    assert!(clean.is_empty(), "{}", clean.join("\n"));
}

#[test]
fn no_text_holds_a_nul() {
    for row in CATALOGUE.iter().flat_map(|situation| &situation.rows) {
        for (column, value) in &row.cells {
            if let Val::Text(text) = value {
                assert!(!text.contains('\0'), "{}.{column}", row.table);
            }
        }
    }
}
