//! The made-up runs hold together: what an operator would see of them is what happened.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::*;
use crate::{db::Val, durable::store::schema::tables};

fn plan(runs: u64, events_per_run: u32) -> Plan {
    Plan {
        runs,
        events_per_run,
        shape: Shape::Busy,
        seed: 7,
        clock: "2026-06-01T12:00:00Z".parse().unwrap(),
        projections: Projections::All,
    }
}

fn rows(plan: Plan) -> Vec<InsertRow> {
    Generator::new(plan).flatten().collect()
}

fn of<'r>(rows: &'r [InsertRow], table: &str) -> Vec<&'r InsertRow> {
    rows.iter().filter(|row| row.table == table).collect()
}

fn int(row: &InsertRow, column: &str) -> i64 {
    match row.get(column) {
        Some(Val::Int(n)) => *n,
        other => panic!("{}.{column}: {other:?}", row.table),
    }
}

fn signed(n: usize) -> i64 {
    i64::try_from(n).unwrap()
}

fn text<'r>(row: &'r InsertRow, column: &str) -> &'r str {
    row.text(column)
        .unwrap_or_else(|| panic!("{}.{column} is not text", row.table))
}

fn ids<'r>(rows: &'r [InsertRow], table: &str) -> BTreeSet<&'r str> {
    of(rows, table).iter().map(|row| text(row, "id")).collect()
}

#[test]
fn the_same_seed_and_clock_give_the_same_rows() {
    assert_eq!(rows(plan(300, 5)), rows(plan(300, 5)));
    let other = Plan {
        seed: 8,
        ..plan(300, 5)
    };
    assert_ne!(rows(plan(300, 5)), rows(other));
}

#[test]
fn as_many_runs_as_asked_for_with_about_as_many_events() {
    for (runs, events) in [(1, 3), (2, 5), (800, 5), (500, 20)] {
        let rows = rows(plan(runs, events));
        let made = of(&rows, "workflow_runs").len();
        assert_eq!(made as u64, runs);
        if runs >= 500 {
            let mean = of(&rows, "workflow_history_events").len() / made;
            assert!(mean.abs_diff(events as usize) <= 2, "{mean} for {events}");
        }
    }
}

#[test]
fn every_table_and_column_is_the_engines_and_ids_are_unique() {
    let rows = rows(plan(800, 8));
    let mut seen = BTreeSet::new();
    for row in &rows {
        let table = tables().iter().find(|table| table.name == row.table);
        let table = table.unwrap_or_else(|| panic!("no table {}", row.table));
        for (column, _) in &row.cells {
            assert!(table.column(column).is_some(), "{}.{column}", row.table);
        }
        if let Some(id) = row.text("id") {
            assert!(seen.insert((row.table, id)), "{} {id} twice", row.table);
        }
    }
    // Every kind of story was told.
    let states: BTreeSet<_> = of(&rows, "workflow_run_summaries")
        .iter()
        .map(|row| text(row, "liveness_state"))
        .collect();
    assert!(states.len() >= 6, "{states:?}");
}

#[test]
fn every_reference_leads_somewhere() {
    let rows = rows(plan(800, 8));
    let runs = ids(&rows, "workflow_runs");
    let instances = ids(&rows, "workflow_instances");
    let targets: HashMap<&str, BTreeSet<&str>> = [
        ("workflow_run_id", runs.clone()),
        ("resolved_workflow_run_id", runs.clone()),
        ("parent_workflow_run_id", runs.clone()),
        ("child_workflow_run_id", runs.clone()),
        ("resolved_child_run_id", runs.clone()),
        ("related_workflow_run_id", runs.clone()),
        ("current_run_id", runs),
        ("workflow_instance_id", instances.clone()),
        ("parent_workflow_instance_id", instances.clone()),
        ("child_workflow_instance_id", instances),
        ("workflow_task_id", ids(&rows, "workflow_tasks")),
        ("task_id", ids(&rows, "workflow_tasks")),
        ("next_task_id", ids(&rows, "workflow_tasks")),
        ("workflow_command_id", ids(&rows, "workflow_commands")),
        ("command_id", ids(&rows, "workflow_commands")),
        ("activity_execution_id", ids(&rows, "activity_executions")),
        ("current_attempt_id", ids(&rows, "activity_attempts")),
        ("timer_id", ids(&rows, "workflow_run_timers")),
        ("failure_id", ids(&rows, "workflow_failures")),
        ("history_event_id", ids(&rows, "workflow_history_events")),
    ]
    .into();
    for row in &rows {
        for (column, _) in &row.cells {
            let (Some(known), Some(id)) = (targets.get(column), row.text(column)) else {
                continue;
            };
            assert!(known.contains(id), "{}.{column} = {id}", row.table);
        }
    }
}

#[test]
fn history_is_gap_free_and_in_order_and_summaries_agree_with_it() {
    let plan = plan(800, 8);
    let clock = Val::Time(plan.clock.naive_utc());
    let rows = rows(plan);
    let mut histories: BTreeMap<&str, Vec<&InsertRow>> = BTreeMap::new();
    for event in of(&rows, "workflow_history_events") {
        let run = text(event, "workflow_run_id");
        histories.entry(run).or_default().push(event);
    }
    let runs: HashMap<_, _> = of(&rows, "workflow_runs")
        .into_iter()
        .map(|run| (text(run, "id"), run))
        .collect();
    let mut failures: HashMap<&str, i64> = HashMap::new();
    for failure in of(&rows, "workflow_failures") {
        *failures
            .entry(text(failure, "workflow_run_id"))
            .or_default() += 1;
    }
    for summary in of(&rows, "workflow_run_summaries") {
        let id = text(summary, "id");
        let (run, history) = (runs[id], &histories[id]);
        let mut bytes = 0;
        for (i, event) in history.iter().enumerate() {
            assert_eq!(int(event, "sequence"), signed(i) + 1, "{id}");
            bytes += text(event, "event_type").len() + text(event, "payload").len();
            let at = event.get("recorded_at").unwrap();
            assert!(time(at) <= time(&clock), "{id}: after the clock");
            assert!(i == 0 || time(history[i - 1].get("recorded_at").unwrap()) <= time(at));
        }
        let count = signed(history.len());
        assert_eq!(int(summary, "history_event_count"), count);
        assert_eq!(int(run, "last_history_sequence"), count);
        assert_eq!(int(summary, "history_size_bytes"), signed(bytes));
        assert_eq!(
            int(summary, "exception_count"),
            failures.get(id).copied().unwrap_or(0)
        );
        for column in [
            "status",
            "closed_reason",
            "queue",
            "workflow_type",
            "namespace",
        ] {
            assert_eq!(summary.get(column), run.get(column), "{id} {column}");
        }
        assert_eq!(summary.get("sort_timestamp"), run.get("started_at"));
    }
    let timeline = of(&rows, "workflow_run_timeline_entries").len();
    assert_eq!(timeline, of(&rows, "workflow_history_events").len());
}

fn time(value: &Val) -> chrono::NaiveDateTime {
    match value {
        Val::Time(at) => *at,
        other => panic!("{other:?}"),
    }
}

#[test]
fn run_ids_sort_as_start_times_do_and_a_few_starts_tie() {
    let rows = rows(plan(2_000, 5));
    let mut runs: Vec<_> = of(&rows, "workflow_runs")
        .into_iter()
        .map(|run| (text(run, "id"), time(run.get("started_at").unwrap())))
        .collect();
    runs.sort_unstable();
    assert!(runs.is_sorted_by_key(|(_, started)| *started));
    let ties = runs
        .windows(2)
        .filter(|pair| pair[0].1 == pair[1].1)
        .count();
    assert!((1..200).contains(&ties), "{ties} ties");
}

#[test]
fn only_summaries_are_projected_when_that_is_asked_for() {
    let all = rows(plan(200, 5));
    let few = rows(Plan {
        projections: Projections::Summaries,
        ..plan(200, 5)
    });
    assert_eq!(ids(&all, "workflow_runs"), ids(&few, "workflow_runs"));
    assert_eq!(of(&few, "workflow_run_summaries").len(), 200);
    assert!(of(&few, "workflow_run_timeline_entries").is_empty());
    assert!(of(&few, "workflow_run_waits").is_empty());
}

#[test]
fn a_long_run_has_exactly_the_events_and_about_the_bytes_asked_for() {
    for payload_bytes in [1_800, 4_000] {
        let rows = rows(Plan {
            shape: Shape::Long { payload_bytes },
            ..plan(2, 2_000)
        });
        let events = of(&rows, "workflow_history_events");
        assert_eq!(events.len(), 4_000);
        let bytes: usize = events
            .iter()
            .map(|event| text(event, "payload").len())
            .sum();
        let mean = bytes / events.len();
        assert!(
            mean.abs_diff(payload_bytes) * 20 < payload_bytes,
            "{mean} for {payload_bytes}"
        );
        let status = |at: usize| text(of(&rows, "workflow_runs")[at], "status");
        assert_eq!((status(0), status(1)), ("waiting", "completed"));
    }
}
