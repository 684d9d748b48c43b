//! Whatever the tables hold, the numbers agree with each other (operator-metrics.md 17).

use axum_test::TestServer;
use chrono::{DateTime, TimeDelta, Utc};
use plimsoll::{
    clock::Clock,
    db::Db,
    demo::{rows::InsertRow, write::write},
    web::{
        collector::Options,
        routes,
        state::{App, Settings},
    },
};
use serde_json::Value;

use crate::{
    metrics_http::json,
    random_rows::{run, surroundings},
    rig::{TestDb, on_every_database},
    shop::now,
};

on_every_database! {
    async fn numbers_agree_on_any_rows(db: TestDb) {
        for seed in 0..3 {
            let mut rng = fastrand::Rng::with_seed(seed);
            let mut rows: Vec<InsertRow> = (0..100).flat_map(|n| run(&mut rng, seed, n)).collect();
            rows.extend((0..30).flat_map(|n| surroundings(&mut rng, seed, n)));
            write(&db.writable, rows, |_| ()).await.unwrap();
            for namespace in [None, Some("north")] {
                let server = server(&db.read_only, namespace);
                let stats = json(&server, "/waterline/api/stats").await;
                assert_eq!(stats["plimsoll"]["swept"]["complete"], true);
                invariants(&stats, namespace);
                counted_by_hand(&db.read_only, &stats, namespace).await;
                health(&server, &stats, &db.read_only, namespace).await;
                if seed == 2 && namespace.is_none() {
                    is_not_empty(&stats);
                }
            }
        }
    }
}

/// A clock between two seconds, where the engine's two resolutions differ.
fn at() -> DateTime<Utc> {
    now() + TimeDelta::milliseconds(250)
}

fn server(db: &Db, namespace: Option<&str>) -> TestServer {
    TestServer::new(routes::router(App::new(Settings {
        clock: Clock::Frozen(at()),
        db: Some(db.clone()),
        gathering: Options {
            namespace: namespace.map(str::to_owned),
            ..Options::default()
        },
        ..Settings::default()
    })))
}

/// A number somewhere in the document.
fn number(document: &Value, path: &str) -> i64 {
    let value = document
        .pointer(path)
        .unwrap_or_else(|| panic!("no {path}"));
    value
        .as_i64()
        .unwrap_or_else(|| panic!("{path} is {value}"))
}

async fn count(db: &Db, sql: &'static str) -> i64 {
    let mut q = db.statement();
    q.push(sql);
    db.fetch(q).await.unwrap().remove(0).int("n").unwrap()
}

/// A count, its oldest, its age, and whether a count above 0 may have no oldest.
const OLDEST: &[(&str, &str, &str, bool)] = &[
    (
        "runs/repair_needed",
        "runs/oldest_repair_needed_at",
        "runs/max_repair_needed_age_ms",
        false,
    ),
    (
        "runs/waiting",
        "runs/oldest_wait_started_at",
        "runs/max_wait_age_ms",
        false,
    ),
    (
        "backlog/compatibility_blocked_runs",
        "backlog/oldest_compatibility_blocked_started_at",
        "backlog/max_compatibility_blocked_age_ms",
        true,
    ),
    (
        "tasks/ready_due",
        "tasks/oldest_ready_due_at",
        "tasks/max_ready_due_age_ms",
        false,
    ),
    (
        "tasks/lease_expired",
        "tasks/oldest_lease_expired_at",
        "tasks/max_lease_expired_age_ms",
        false,
    ),
    (
        "tasks/dispatch_overdue",
        "tasks/oldest_dispatch_overdue_since",
        "tasks/max_dispatch_overdue_age_ms",
        false,
    ),
    (
        "tasks/claim_failed",
        "tasks/oldest_claim_failed_at",
        "tasks/max_claim_failed_age_ms",
        false,
    ),
    (
        "tasks/dispatch_failed",
        "tasks/oldest_dispatch_failed_at",
        "tasks/max_dispatch_failed_age_ms",
        false,
    ),
    (
        "tasks/unhealthy",
        "tasks/oldest_unhealthy_at",
        "tasks/max_unhealthy_age_ms",
        false,
    ),
    (
        "activities/retrying",
        "activities/oldest_retrying_started_at",
        "activities/max_retrying_age_ms",
        true,
    ),
    (
        "activities/timeout_overdue",
        "activities/oldest_timeout_overdue_at",
        "activities/max_timeout_overdue_age_ms",
        false,
    ),
    (
        "schedules/missed",
        "schedules/oldest_overdue_at",
        "schedules/max_overdue_ms",
        false,
    ),
    (
        "repair/existing_task_candidates",
        "repair/oldest_task_candidate_created_at",
        "repair/max_task_candidate_age_ms",
        false,
    ),
    (
        "repair/missing_task_candidates",
        "repair/oldest_missing_run_started_at",
        "repair/max_missing_run_age_ms",
        false,
    ),
    (
        "projections/run_summaries/missing",
        "projections/run_summaries/oldest_missing_run_started_at",
        "projections/run_summaries/max_missing_run_age_ms",
        true,
    ),
];

/// What the documents themselves show.
pub fn invariants(stats: &Value, namespace: Option<&str>) {
    let at = |path: &str| number(stats, path);
    let m = |path: &str| number(&stats["operator_metrics"], path);
    assert_eq!(
        m("/tasks/open"),
        m("/tasks/ready") + m("/tasks/leased"),
        "2"
    );
    assert_eq!(
        m("/tasks/ready"),
        m("/tasks/ready_due") + m("/tasks/delayed"),
        "2"
    );
    let reasons = [
        "dispatch_failed",
        "claim_failed",
        "dispatch_overdue",
        "lease_expired",
    ];
    let unhealthy: i64 = reasons
        .iter()
        .map(|reason| m(&format!("/tasks/{reason}")))
        .sum();
    assert_eq!(m("/tasks/unhealthy"), unhealthy, "3");
    assert!(m("/tasks/dispatch_overdue") <= m("/tasks/ready_due"), "4");
    assert!(m("/tasks/lease_expired") <= m("/tasks/leased"), "4");
    // Ready tasks are overdue, or one of the two failed: never both.
    let failed = m("/tasks/dispatch_failed").max(m("/tasks/claim_failed"));
    assert!(
        m("/tasks/dispatch_overdue") + failed <= m("/tasks/ready"),
        "4"
    );
    for (twin, source) in [
        ("/backlog/runnable_tasks", "/tasks/ready_due"),
        ("/backlog/delayed_tasks", "/tasks/delayed"),
        ("/backlog/leased_tasks", "/tasks/leased"),
        ("/backlog/unhealthy_tasks", "/tasks/unhealthy"),
        ("/backlog/retrying_activities", "/activities/retrying"),
        ("/backlog/repair_needed_runs", "/runs/repair_needed"),
        ("/backlog/claim_failed_runs", "/runs/claim_failed"),
        (
            "/backlog/compatibility_blocked_runs",
            "/runs/compatibility_blocked",
        ),
    ] {
        assert_eq!(m(twin), m(source), "5: {twin}");
    }
    for (counted, oldest, age, may_be_none) in OLDEST {
        let n = m(&format!("/{counted}"));
        let oldest = &stats["operator_metrics"]
            .pointer(&format!("/{oldest}"))
            .unwrap();
        if n == 0 || oldest.is_null() {
            assert_eq!(m(&format!("/{age}")), 0, "6: {age}");
        }
        assert!(
            n > 0 || oldest.is_null(),
            "6: {counted} is 0 and the oldest {oldest}"
        );
        assert!(
            n == 0 || *may_be_none || !oldest.is_null(),
            "6: {counted} is {n} without an oldest"
        );
    }
    assert_eq!(
        m("/activities/open"),
        m("/activities/pending") + m("/activities/running"),
        "7"
    );
    for kind in ["open", "pending", "running", "failed_attempts"] {
        let part = |mode: &str| m(&format!("/activities/{mode}_{kind}"));
        assert_eq!(
            m(&format!("/activities/{kind}")),
            part("local") + part("queued"),
            "7: {kind}"
        );
    }
    assert!(m("/activities/retrying") <= m("/activities/pending"), "8");
    assert!(
        m("/activities/timeout_overdue") <= m("/activities/open"),
        "8"
    );
    repair(&stats["operator_metrics"]);
    projections(&stats["operator_metrics"], namespace);
    assert_eq!(at("/flows"), m("/runs/total"), "14");
    assert_eq!(
        at("/fleet_overview/current/running"),
        m("/runs/running"),
        "14"
    );
    let ended_badly = m("/runs/failed") + m("/runs/cancelled") + m("/runs/terminated");
    assert_eq!(at("/fleet_overview/current/failed"), ended_badly, "14");
    for bucket in ["completed", "failed"] {
        let trend = |window: &str| at(&format!("/fleet_overview/trends/{window}/{bucket}"));
        assert!(
            trend("hour") <= trend("day") && trend("day") <= trend("week"),
            "15"
        );
        let series = stats["fleet_trends_series"][bucket].as_array().unwrap();
        assert_eq!(series.len(), 169, "15");
        let sum: i64 = series.iter().map(|n| n.as_i64().unwrap()).sum();
        assert_eq!(sum, trend("week"), "15");
    }
    let hours = stats["fleet_trends_series"]["timestamps"].as_array();
    assert_eq!(hours.unwrap().len(), 169, "15");
    let w = |key: &str| m(&format!("/workers/{key}"));
    assert!(
        w("active_workers_supporting_required") <= w("active_workers"),
        "16"
    );
    assert!(w("active_workers") <= w("active_worker_scopes"), "16");
    let fleet = stats["operator_metrics"]["workers"]["fleet"]
        .as_array()
        .unwrap();
    assert_eq!(
        i64::try_from(fleet.len()),
        Ok(w("active_worker_scopes")),
        "16"
    );
    let rate = |key: &str| {
        stats["operator_metrics"]["sticky_execution"][key]
            .as_f64()
            .unwrap()
    };
    let rates = rate("hit_rate_last_minute") + rate("miss_rate_last_minute");
    assert!(rates == 0.0 || (rates - 1.0).abs() < 1e-9, "17: {rates}");
    let pressed =
        m("/history/approaching_budget_runs") + m("/history/continue_as_new_recommended_runs");
    assert!(pressed <= m("/runs/total"), "21");
}

fn repair(metrics: &Value) {
    let m = |path: &str| number(metrics, path);
    let scopes = metrics["repair"]["scopes"].as_array().unwrap();
    for kind in ["", "selected_"] {
        let of = |what: &str| m(&format!("/repair/{kind}{what}_candidates"));
        assert_eq!(of("total"), of("existing_task") + of("missing_task"), "9");
        for what in ["total", "existing_task", "missing_task"] {
            let key = format!("{kind}{what}_candidates");
            let sum: i64 = scopes
                .iter()
                .map(|scope| scope[&key].as_i64().unwrap())
                .sum();
            assert_eq!(of(what), sum, "9: {key}");
        }
    }
    assert!(
        m("/repair/missing_task_candidates") <= m("/runs/repair_needed"),
        "9"
    );
    assert!(
        m("/repair/existing_task_candidates") <= m("/tasks/unhealthy"),
        "9"
    );
}

fn projections(metrics: &Value, namespace: Option<&str>) {
    let p = |path: &str| number(metrics, &format!("/projections/{path}"));
    for (section, word) in [
        ("run_waits", "waits"),
        ("run_timeline_entries", "history"),
        ("run_timer_entries", "timers"),
        ("run_lineage_entries", "lineage"),
    ] {
        let of = |key: &str| p(&format!("{section}/{key}"));
        let missing = of(&format!("missing_runs_with_{word}"));
        let projected = of(&format!("projected_runs_with_{word}"));
        assert_eq!(
            of(&format!("runs_with_{word}")),
            projected + missing,
            "11: {section}"
        );
        let rebuild = missing + of("stale_projected_runs") + of("orphaned");
        assert_eq!(of("needs_rebuild"), rebuild, "11: {section}");
    }
    let s = |key: &str| p(&format!("run_summaries/{key}"));
    let rebuild = s("missing") + s("orphaned") + s("stale") + s("schema_outdated");
    assert_eq!(s("needs_rebuild"), rebuild, "11");
    if namespace.is_none() {
        assert_eq!(
            s("runs") - s("missing"),
            s("summaries") - s("orphaned"),
            "12"
        );
    }
    let c = |key: &str| number(metrics, &format!("/command_contracts/{key}"));
    let needed = c("backfill_needed_runs");
    assert_eq!(
        needed,
        c("backfill_available_runs") + c("backfill_unavailable_runs"),
        "13"
    );
    assert_eq!(
        needed,
        c("actionable_backfill_needed_runs") + c("closed_backfill_needed_runs"),
        "13"
    );
}

/// What holds of rows as the engine writes them, and needs a look at the rows.
async fn counted_by_hand(db: &Db, stats: &Value, namespace: Option<&str>) {
    let m = |path: &str| number(&stats["operator_metrics"], path);
    let ended = ["completed", "failed", "cancelled", "terminated"];
    let ended: i64 = ended
        .iter()
        .map(|status| m(&format!("/runs/{status}")))
        .sum();
    assert_eq!(m("/runs/total"), m("/runs/running") + ended, "1");
    let with_task = "select count(*) as n from {workflow_run_summaries} \
        where liveness_state = 'repair_needed' and next_task_id is not null";
    let unhealthy =
        "select count(*) as n from {workflow_tasks} where status in ('ready', 'leased')";
    if namespace.is_none() {
        let with_task = count(db, with_task).await;
        assert_eq!(
            m("/runs/repair_needed"),
            m("/repair/missing_task_candidates") + with_task,
            "10"
        );
        assert!(
            m("/repair/existing_task_candidates") <= count(db, unhealthy).await,
            "9"
        );
    } else {
        assert_eq!(m("/repair/total_candidates"), 0, "3");
        assert_eq!(m("/history/history_orphan_total"), 0, "2.6");
    }
}

async fn health(server: &TestServer, stats: &Value, db: &Db, namespace: Option<&str>) {
    let response = server.get("/waterline/api/v2/health").await;
    let document: Value = response.json();
    let fine = document["status"] != "error";
    assert_eq!(document["healthy"], fine, "18");
    assert_eq!(response.status_code() == 200, fine, "18");
    let checks = |category: &str| number(&document, &format!("/categories/{category}/check_count"));
    assert_eq!(checks("correctness") + checks("acceleration"), 12, "18");
    let queues = document["queue_visibility"]["task_queues"]
        .as_array()
        .unwrap();
    assert_eq!(queues.is_empty(), namespace.is_none());
    let (mut ready, mut leased) = (0, 0);
    for queue in queues {
        let q = |path: &str| number(queue, path);
        let both = |key: &str| {
            q(&format!("/stats/workflow_tasks/{key}")) + q(&format!("/stats/activity_tasks/{key}"))
        };
        assert_eq!(
            q("/stats/approximate_backlog_count"),
            both("ready_count"),
            "19"
        );
        assert_eq!(
            q("/stats/tasks_added_last_minute"),
            both("added_last_minute"),
            "19"
        );
        assert_eq!(
            q("/stats/tasks_dispatched_last_minute"),
            both("dispatched_last_minute"),
            "19"
        );
        let parts = q("/repair/dispatch_failed")
            + q("/repair/expired_leases")
            + q("/repair/dispatch_overdue");
        assert_eq!(q("/repair/candidates"), parts, "19");
        let pollers = queue["pollers"].as_array().unwrap().len();
        let known = q("/stats/pollers/active_count") + q("/stats/pollers/stale_count");
        assert_eq!(i64::try_from(pollers), Ok(known), "19");
        let shown = queue["current_leases"].as_array().unwrap().len();
        assert_eq!(i64::try_from(shown), Ok(both("leased_count").min(50)), "7");
        ready += both("ready_count");
        leased += both("leased_count");
    }
    // Due within the clock's own second: to a queue, and not yet to the fleet.
    let this_second = count(
        db,
        "select count(*) as n from {workflow_tasks} where status = 'ready' \
         and available_at >= '2026-11-15 12:00:00' and available_at < '2026-11-15 12:00:01'",
    )
    .await;
    let m = |path: &str| number(&stats["operator_metrics"], path);
    assert!(ready <= m("/tasks/ready_due") + this_second, "20");
    assert!(leased <= m("/tasks/leased"), "20");
}

/// Numbers that are all 0 agree too: there must be something behind most of them.
fn is_not_empty(stats: &Value) {
    for path in [
        "/history/events",
        "/history/history_orphan_total",
        "/history/approaching_budget_runs",
        "/history/continue_as_new_recommended_runs",
        "/command_contracts/backfill_needed_runs",
        "/starts/pending_commands",
        "/activities/failed_attempts",
        "/activities/local_failed_attempts",
        "/schedules/missed",
        "/workers/active_workers",
        "/sticky_execution/hit_expected_last_minute",
        "/repair/existing_task_candidates",
        "/repair/missing_task_candidates",
        "/projections/run_summaries/missing",
        "/projections/run_summaries/orphaned",
        "/projections/run_summaries/stale",
        "/projections/run_waits/orphaned",
        "/projections/run_waits/stale_projected_runs",
        "/projections/run_timeline_entries/missing_history_events",
        "/projections/run_timeline_entries/stale_projected_runs",
        "/projections/run_timer_entries/rows",
        "/projections/run_lineage_entries/rows",
    ] {
        assert!(number(&stats["operator_metrics"], path) > 0, "{path} is 0");
    }
}
