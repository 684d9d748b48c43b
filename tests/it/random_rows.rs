//! Rows in any state, for numbers that must agree whatever the tables hold.

use chrono::{DateTime, TimeDelta, Utc};
use plimsoll::demo::rows::InsertRow;

use crate::shop::{now, run_of, summary};

/// One of these, or none.
fn maybe<'w>(rng: &mut fastrand::Rng, words: &[&'w str]) -> Option<&'w str> {
    let n = rng.usize(..=words.len());
    words.get(n).copied()
}

fn one<'w>(rng: &mut fastrand::Rng, words: &[&'w str]) -> &'w str {
    words[rng.usize(..words.len())]
}

/// Around now, on the second or beside it, or never.
fn moment(rng: &mut fastrand::Rng) -> Option<DateTime<Utc>> {
    let seconds = rng.i64(-7_200..=60) * i64::from(rng.bool());
    let micros = rng.i64(0..1_000_000) * i64::from(rng.bool());
    rng.u8(..4)
        .gt(&0)
        .then(|| now() + TimeDelta::seconds(seconds) + TimeDelta::microseconds(micros))
}

/// A run with or without its row and its summary, and what belongs to it, in any state.
pub fn run(rng: &mut fastrand::Rng, seed: u64, n: u32) -> Vec<InsertRow> {
    let (status, bucket) = [
        ("pending", "running"),
        ("waiting", "running"),
        ("completed", "completed"),
        ("failed", "failed"),
        ("cancelled", "failed"),
        ("terminated", "failed"),
    ][rng.usize(..6)];
    // Short enough for what belongs to the run to add to it.
    let id = format!("01rand{seed:04}{n:012}");
    let namespace = maybe(rng, &["north", "south"]);
    let exists = rng.u8(..5) > 0;
    let mut rows = vec![task(rng, &id, namespace.filter(|_| exists))];
    rows.extend(activity(rng, &id));
    rows.extend(history(rng, &id));
    if exists {
        let mut run = run_of(0).set("namespace", namespace);
        run.replace("id", id.clone());
        run.replace("workflow_instance_id", id.clone());
        run.replace("status", status);
        rows.push(run);
        rows.push(
            InsertRow::new("workflow_commands")
                .set("id", id.replace("01rand", "01comm"))
                .set("workflow_run_id", id.clone())
                .set("command_type", one(rng, &["start", "start", "signal"]))
                .set("status", one(rng, &["accepted", "accepted", "rejected"]))
                .set(
                    "outcome",
                    one(rng, &["started_new", "started_new", "rejected"]),
                )
                .time("accepted_at", moment(rng)),
        );
    }
    if rng.u8(..5) > 0 {
        rows.push(projected_summary(rng, &id, n, (status, bucket), namespace));
    }
    rows
}

fn projected_summary(
    rng: &mut fastrand::Rng,
    id: &str,
    n: u32,
    (status, bucket): (&str, &str),
    namespace: Option<&str>,
) -> InsertRow {
    let open = bucket == "running";
    // The engine calls every run that ended closed.
    let liveness = one(
        rng,
        &[
            "repair_needed",
            "workflow_task_claim_failed",
            "activity_task_waiting_for_compatible_worker",
            "waiting_for_signal",
        ],
    );
    let pressure = one(rng, &["ok", "approaching", "continue_as_new_recommended"]);
    let mut row = summary(n)
        .time("wait_started_at", moment(rng))
        .time("closed_at", moment(rng).filter(|_| !open))
        .set("next_task_id", maybe(rng, &["x"]))
        .set("open_wait_id", maybe(rng, &["signal:1"]))
        .set("history_budget_pressure", pressure);
    row.replace("id", id);
    row.replace("workflow_instance_id", id);
    row.replace("namespace", namespace);
    row.replace("status", status);
    row.replace("status_bucket", bucket);
    row.replace("liveness_state", if open { liveness } else { "closed" });
    row.replace("exception_count", rng.i64(0..20));
    row.replace(
        "continue_as_new_recommended",
        pressure == "continue_as_new_recommended",
    );
    row
}

fn task(rng: &mut fastrand::Rng, run: &str, namespace: Option<&str>) -> InsertRow {
    InsertRow::new("workflow_tasks")
        .set("id", run.replace("01rand", "01task"))
        .set("workflow_run_id", run)
        .set("namespace", namespace)
        .set("task_type", one(rng, &["workflow", "activity", "timer"]))
        .set("status", one(rng, &["ready", "leased", "completed"]))
        .set("queue", maybe(rng, &["default", "", "orders"]))
        .set("connection", maybe(rng, &["redis", "default"]))
        .set("compatibility", maybe(rng, &["any", "v2"]))
        .set("last_dispatch_error", maybe(rng, &["", "refused"]))
        .set("last_claim_error", maybe(rng, &["", "refused"]))
        .set("attempt_count", rng.i64(0..5))
        .set("repair_count", rng.i64(0..5))
        .set("sticky_worker_id", maybe(rng, &["w"]))
        .set(
            "sticky_replay_mode",
            maybe(
                rng,
                &["sticky_hit_expected", "forced_cold_replay", "cold_replay"],
            ),
        )
        .time("sticky_claimed_at", moment(rng))
        .time("sticky_until", moment(rng))
        .time("available_at", moment(rng))
        .time("lease_expires_at", moment(rng))
        .time("last_dispatch_attempt_at", moment(rng))
        .time("last_dispatched_at", moment(rng))
        .time("last_claim_failed_at", moment(rng))
        .time("repair_available_at", moment(rng))
        .stamps(moment(rng).unwrap_or_else(now), now())
}

fn activity(rng: &mut fastrand::Rng, run: &str) -> Vec<InsertRow> {
    let id = run.replace("01rand", "01acti");
    let execution = InsertRow::new("activity_executions")
        .set("id", id.clone())
        .set("workflow_run_id", run)
        .set("sequence", 1)
        .set("activity_class", "App\\A")
        .set("activity_type", "a")
        .set("status", one(rng, &["pending", "running", "completed"]))
        .set("attempt_count", rng.i64(0..3))
        .set(
            "activity_options",
            maybe(rng, &["{\"execution_mode\":\"local\"}", "[]"]),
        )
        .time("schedule_deadline_at", moment(rng))
        .time("close_deadline_at", moment(rng))
        .time("schedule_to_close_deadline_at", moment(rng))
        .time("heartbeat_deadline_at", moment(rng))
        .time("started_at", moment(rng));
    let attempt = |rng: &mut fastrand::Rng, number: i64| {
        InsertRow::new("activity_attempts")
            .set("id", format!("{id}a{number}"))
            .set("workflow_run_id", run)
            .set("activity_execution_id", id.clone())
            .set("attempt_number", number)
            .set(
                "workflow_task_id",
                (number == 1).then(|| run.replace("01rand", "01task")),
            )
            .set(
                "status",
                one(rng, &["running", "failed", "completed", "expired"]),
            )
            .time("started_at", now())
    };
    let attempts = rng.i64(0..3);
    let mut rows = vec![execution];
    rows.extend((1..=attempts).map(|number| attempt(rng, number)));
    rows
}

/// Events, and what was stored of them: right, wrong, or of nothing.
fn history(rng: &mut fastrand::Rng, run: &str) -> Vec<InsertRow> {
    const EVENTS: &[(&str, &str)] = &[
        ("WorkflowStarted", "{\"declared_queries\":[]}"),
        (
            "TimerScheduled",
            "{\"timer_id\":\"t1\",\"sequence\":1,\"delay_seconds\":5}",
        ),
        (
            "SignalReceived",
            "{\"signal_name\":\"go\",\"signal_id\":\"s1\"}",
        ),
        (
            "ActivityScheduled",
            "{\"activity_execution_id\":\"x\",\"sequence\":2}",
        ),
        ("WorkflowContinuedAsNew", "{\"continued_to_run_id\":\"y\"}"),
        ("SomethingNew", "[]"),
    ];
    let mut rows = Vec::new();
    for sequence in 1..=rng.u8(0..5) {
        let (kind, payload) = EVENTS[if sequence == 1 {
            0
        } else {
            rng.usize(..EVENTS.len())
        }];
        let id = format!("{}e{sequence}", run.replace("01rand", "01even"));
        rows.push(
            InsertRow::new("workflow_history_events")
                .set("id", id.clone())
                .set("workflow_run_id", run)
                .set("sequence", i64::from(sequence))
                .set("event_type", kind)
                .set("payload", payload)
                .time("recorded_at", now()),
        );
        if rng.bool() {
            rows.push(
                projection(rng, "workflow_run_timeline_entries", run, &id)
                    .set(
                        "history_event_id",
                        if rng.u8(..4) > 0 {
                            id
                        } else {
                            format!("{id}x")
                        },
                    )
                    .set("sequence", i64::from(sequence))
                    .set("type", kind)
                    .set("kind", "event"),
            );
        }
    }
    let owner = run.replace("01rand", "01proj");
    if rng.bool() {
        rows.push(
            projection(rng, "workflow_run_waits", run, &format!("{owner}w"))
                .set("wait_id", "signal:1")
                .set("position", 0)
                .set("kind", "signal")
                .set("status", "open"),
        );
    }
    if rng.bool() {
        rows.push(
            projection(rng, "workflow_run_timer_entries", run, &format!("{owner}t"))
                .set("timer_id", "t1")
                .set("position", 0)
                .set("status", "pending")
                .set("schema_version", rng.i64(0..2)),
        );
    }
    if rng.bool() {
        rows.push(
            projection(
                rng,
                "workflow_run_lineage_entries",
                run,
                &format!("{owner}l"),
            )
            .set("direction", one(rng, &["parent", "child"]))
            .set("lineage_id", "y")
            .set("position", 0)
            .set("link_type", "continue_as_new"),
        );
    }
    rows
}

fn projection(rng: &mut fastrand::Rng, table: &'static str, run: &str, id: &str) -> InsertRow {
    InsertRow::new(table)
        .set("id", id)
        .set("workflow_run_id", run)
        .set("workflow_instance_id", run)
        .set("payload", maybe(rng, &["{}", "[]"]))
        .stamps(now(), moment(rng).unwrap_or_else(now))
}

/// Workers and schedules.
pub fn surroundings(rng: &mut fastrand::Rng, seed: u64, n: u32) -> Vec<InsertRow> {
    let heard = moment(rng).unwrap_or_else(now);
    vec![
        InsertRow::new("workflow_worker_compatibility_heartbeats")
            .set("worker_id", format!("worker-{}", n / 2))
            .set("scope_key", format!("{seed}-{n}"))
            .set("namespace", maybe(rng, &["north", "south"]))
            .set("queue", maybe(rng, &["default", "10", "9"]))
            .set("supported", one(rng, &["[]", "[\"*\"]", "[\"v2\"]"]))
            .time("recorded_at", heard)
            .time("expires_at", heard + TimeDelta::seconds(30)),
        InsertRow::new("workflow_schedules")
            .set("id", format!("01sche{seed:04}{n:016}"))
            .set("schedule_id", format!("every-{seed}-{n}"))
            .set("namespace", maybe(rng, &["north", "south"]))
            .set("status", one(rng, &["active", "paused", "deleted"]))
            .set("fires_count", rng.i64(0..9))
            .set("failures_count", rng.i64(0..9))
            .time("next_fire_at", moment(rng)),
    ]
}
