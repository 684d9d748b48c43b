//! The fleet's numbers over HTTP: JSON, Prometheus, the overview; how often they are gathered,
//! and what is said while the database is away.

use std::{collections::BTreeSet, fs, path::Path, time::Duration};

use axum_test::TestServer;
use plimsoll::{
    clock::Clock,
    db::Db,
    demo::{rows::InsertRow, write::write},
    durable::{engine_config::EngineConfig, store::metrics::sweep::RUNS_PER_PASS},
    web::{
        collector::Options,
        routes,
        state::{App, Settings},
    },
};
use serde_json::{Value, json};

use crate::{
    rig::{TestDb, on_every_database},
    shop::{fill, now, server, summary},
};

/// The product over the shop's clock, gathering only when asked to.
fn still(db: &Db) -> TestServer {
    TestServer::new(routes::router(App::new(Settings {
        clock: Clock::Frozen(now()),
        db: Some(db.clone()),
        gathering: Options {
            interval: Duration::from_hours(1),
            ..Options::default()
        },
        ..Settings::default()
    })))
}

async fn json(server: &TestServer, path: &str) -> Value {
    let response = server.get(path).await;
    assert_eq!(response.status_code(), 200, "{path}: {}", response.text());
    response.json()
}

/// Statements about the numbers that hold of any database (operator-metrics.md 17).
fn invariants(stats: &Value) {
    let at = |path: &str| {
        let value = stats.pointer(path).unwrap_or_else(|| panic!("no {path}"));
        value
            .as_i64()
            .unwrap_or_else(|| panic!("{path} is {value}"))
    };
    let m = |path: &str| at(&format!("/operator_metrics{path}"));
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
    let unhealthy: i64 = [
        "dispatch_failed",
        "claim_failed",
        "dispatch_overdue",
        "lease_expired",
    ]
    .iter()
    .map(|reason| m(&format!("/tasks/{reason}")))
    .sum();
    assert_eq!(m("/tasks/unhealthy"), unhealthy, "3");
    let oldest = &stats["operator_metrics"]["tasks"]["oldest_unhealthy_at"];
    assert_eq!(oldest.is_null(), unhealthy == 0, "3");
    assert!(m("/tasks/dispatch_overdue") <= m("/tasks/ready_due"), "4");
    assert!(m("/tasks/lease_expired") <= m("/tasks/leased"), "4");
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
    for (count, oldest, age) in [
        (
            "runs/repair_needed",
            "runs/oldest_repair_needed_at",
            "runs/max_repair_needed_age_ms",
        ),
        (
            "runs/waiting",
            "runs/oldest_wait_started_at",
            "runs/max_wait_age_ms",
        ),
        (
            "tasks/ready_due",
            "tasks/oldest_ready_due_at",
            "tasks/max_ready_due_age_ms",
        ),
        (
            "tasks/lease_expired",
            "tasks/oldest_lease_expired_at",
            "tasks/max_lease_expired_age_ms",
        ),
        (
            "activities/timeout_overdue",
            "activities/oldest_timeout_overdue_at",
            "activities/max_timeout_overdue_age_ms",
        ),
        (
            "schedules/missed",
            "schedules/oldest_overdue_at",
            "schedules/max_overdue_ms",
        ),
    ] {
        let oldest = stats
            .pointer(&format!("/operator_metrics/{oldest}"))
            .unwrap();
        if m(&format!("/{count}")) == 0 {
            assert!(oldest.is_null(), "6: {count} 0 and {oldest}");
        }
        if oldest.is_null() {
            assert_eq!(m(&format!("/{age}")), 0, "6: {age}");
        }
    }
    assert_eq!(
        m("/activities/open"),
        m("/activities/pending") + m("/activities/running"),
        "7"
    );
    for kind in ["open", "pending", "running", "failed_attempts"] {
        let (local, queued) = (
            format!("/activities/local_{kind}"),
            format!("/activities/queued_{kind}"),
        );
        assert_eq!(
            m(&format!("/activities/{kind}")),
            m(&local) + m(&queued),
            "7: {kind}"
        );
    }
    assert!(m("/activities/retrying") <= m("/activities/pending"), "8");
    assert!(
        m("/activities/timeout_overdue") <= m("/activities/open"),
        "8"
    );
    for key in [
        "existing_task_candidates",
        "missing_task_candidates",
        "total_candidates",
        "selected_existing_task_candidates",
        "selected_missing_task_candidates",
        "selected_total_candidates",
    ] {
        let sum: i64 = stats["operator_metrics"]["repair"]["scopes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|scope| scope[key].as_i64().unwrap())
            .sum();
        assert_eq!(m(&format!("/repair/{key}")), sum, "9: {key}");
    }
    assert!(
        m("/repair/missing_task_candidates") <= m("/runs/repair_needed"),
        "9"
    );
    assert!(
        m("/repair/existing_task_candidates") <= m("/tasks/unhealthy"),
        "9"
    );
    let p = |path: &str| m(&format!("/projections/{path}"));
    for (section, word) in [
        ("run_waits", "waits"),
        ("run_timeline_entries", "history"),
        ("run_timer_entries", "timers"),
        ("run_lineage_entries", "lineage"),
    ] {
        assert_eq!(
            p(&format!("{section}/runs_with_{word}")),
            p(&format!("{section}/projected_runs_with_{word}"))
                + p(&format!("{section}/missing_runs_with_{word}")),
            "11: {section}"
        );
        assert_eq!(
            p(&format!("{section}/needs_rebuild")),
            p(&format!("{section}/missing_runs_with_{word}"))
                + p(&format!("{section}/stale_projected_runs"))
                + p(&format!("{section}/orphaned")),
            "11: {section}"
        );
    }
    assert_eq!(
        p("run_summaries/runs") - p("run_summaries/missing"),
        p("run_summaries/summaries") - p("run_summaries/orphaned"),
        "12"
    );
    let c = |key: &str| m(&format!("/command_contracts/{key}"));
    assert_eq!(
        c("backfill_needed_runs"),
        c("backfill_available_runs") + c("backfill_unavailable_runs"),
        "13"
    );
    assert_eq!(
        c("backfill_needed_runs"),
        c("actionable_backfill_needed_runs") + c("closed_backfill_needed_runs"),
        "13"
    );
    assert_eq!(at("/flows"), m("/runs/total"), "14");
    assert_eq!(
        at("/fleet_overview/current/running"),
        m("/runs/running"),
        "14"
    );
    assert_eq!(
        at("/fleet_overview/current/failed"),
        m("/runs/failed") + m("/runs/cancelled") + m("/runs/terminated"),
        "14"
    );
    for bucket in ["completed", "failed"] {
        let trend = |window: &str| at(&format!("/fleet_overview/trends/{window}/{bucket}"));
        assert!(
            trend("hour") <= trend("day") && trend("day") <= trend("week"),
            "15"
        );
        let series = stats["fleet_trends_series"][bucket].as_array().unwrap();
        assert_eq!(series.len(), 169, "15");
        assert_eq!(
            series.iter().map(|n| n.as_i64().unwrap()).sum::<i64>(),
            trend("week"),
            "15"
        );
    }
    let w = |key: &str| m(&format!("/workers/{key}"));
    assert!(
        w("active_workers_supporting_required") <= w("active_workers"),
        "16"
    );
    assert!(w("active_workers") <= w("active_worker_scopes"), "16");
}

on_every_database! {
    async fn the_shop_floor_in_numbers(db: TestDb) {
        fill(&db).await;
        let server = server(&db.read_only);
        let stats = json(&server, "/waterline/api/stats").await;
        invariants(&stats);
        let metrics = json(&server, "/waterline/api/operator-metrics").await;
        assert_eq!(metrics["runs"], stats["operator_metrics"]["runs"]);
        assert_eq!(metrics["generated_at"], "2026-11-15T12:00:00.000000Z");
        assert_eq!(metrics["plimsoll"]["age_ms"], 0);
        assert_eq!(metrics["plimsoll"]["swept"]["complete"], true);
        assert!(metrics["runs"]["repair_needed"].as_i64() > Some(0), "the demo has lost tasks");
        // The total is of every status; no run is counted twice or left out.
        let runs = &metrics["runs"];
        let sum: i64 = ["running", "completed", "failed", "cancelled", "terminated"].iter().map(|key| runs[key].as_i64().unwrap()).sum();
        let other = summaries_of_unknown_status(&db.read_only).await;
        assert_eq!(runs["total"].as_i64().unwrap(), sum + other);

        let health = server.get("/waterline/api/v2/health").await;
        let document: Value = health.json();
        assert_eq!(health.status_code() == 503, document["status"] == "error", "18");
        assert_eq!(document["healthy"] == json!(true), document["status"] != "error", "18");
        let counts = &document["categories"];
        assert_eq!(counts["correctness"]["check_count"].as_i64().unwrap() + counts["acceleration"]["check_count"].as_i64().unwrap(), 12);
        assert_eq!(document["checks"][0]["name"], "engine_source");
        assert_eq!(document["checks"].as_array().unwrap().len(), 13);
    }

    /// Whatever the tables hold, the numbers agree with each other.
    async fn numbers_agree_on_any_rows(db: TestDb) {
        for seed in 0..4 {
            let mut rng = fastrand::Rng::with_seed(seed);
            let rows = (0..120).flat_map(|n| random_rows(&mut rng, seed, n)).collect();
            write(&db.writable, rows, |_| ()).await.unwrap();
            invariants(&json(&still(&db.read_only), "/waterline/api/stats").await);
        }
    }

    /// Whoever asks gets the numbers of the same pass.
    async fn fifty_scrapers_cost_what_one_does(db: TestDb) {
        fill(&db).await;
        let server = std::sync::Arc::new(still(&db.read_only));
        json(&server, "/waterline/api/stats").await;
        let mut scrapers = Vec::new();
        for n in 0..50 {
            let path = ["/waterline/api/operator-metrics", "/waterline/api/stats", "/waterline/api/v2/health", "/metrics", "/waterline/"][n % 5];
            let server = std::sync::Arc::clone(&server);
            scrapers.push(async move {
                let response = server.get(path).await;
                assert_eq!(response.status_code(), 200, "{path}");
                assert_eq!(response.header("x-statements"), "0", "{path}");
            });
        }
        futures_util::future::join_all(scrapers).await;
        let passes = json(&server, "/waterline/api/stats").await["plimsoll"]["passes"].clone();
        assert_eq!(passes, 1);
        // Asked for fresh numbers, a new pass is made; those who ask together share it.
        let fresh = json(&server, "/waterline/api/stats?fresh=1").await["plimsoll"]["passes"].clone();
        assert_eq!(fresh, 2);
    }

    async fn a_pass_sends_the_same_statements_however_many_runs(db: TestDb) {
        let server = still(&db.read_only);
        let statements = async || json(&server, "/waterline/api/stats?fresh=1").await["plimsoll"]["pass_statements"].as_i64().unwrap();
        let empty = statements().await;
        fill(&db).await;
        let shop = statements().await;
        let rows = (0..1_200).flat_map(|n| [summary(n), run_of(n)]).collect();
        write(&db.writable, rows, |_| ()).await.unwrap();
        let many = statements().await;
        assert_eq!((empty, shop), (many, many));
        let swept = json(&server, "/waterline/api/stats").await["plimsoll"]["swept"].clone();
        assert_eq!(swept["complete"], true, "the last whole walk still speaks: {swept}");
        // Too many for one pass now: after some it knows all runs again.
        for _ in 0..1_400 / RUNS_PER_PASS {
            statements().await;
        }
        let stats = json(&server, "/waterline/api/stats?fresh=1").await;
        let runs = &stats["operator_metrics"]["projections"]["run_summaries"]["runs"];
        assert_eq!(&stats["plimsoll"]["swept"]["runs"], runs);
        invariants(&stats);
    }

    /// One namespace: its own runs, and no repair, as in the engine.
    async fn one_namespace_is_counted_by_itself(db: TestDb) {
        fill(&db).await;
        write(&db.writable, (0..70).map(summary).collect(), |_| ()).await.unwrap();
        let mut q = db.read_only.statement();
        q.push("select count(*) as n from {workflow_run_summaries} where namespace = 'north'");
        let n = db.read_only.fetch(q).await.unwrap().remove(0).int("n").unwrap();
        let app = App::new(Settings {
            clock: Clock::Frozen(now()),
            db: Some(db.read_only.clone()),
            gathering: Options { namespace: Some("north".into()), ..Options::default() },
            ..Settings::default()
        });
        let server = TestServer::new(routes::router(app));
        let stats = json(&server, "/waterline/api/stats").await;
        assert_eq!(stats["flows"], n);
        assert_eq!(stats["operator_metrics"]["repair"]["total_candidates"], 0);
        assert_eq!(stats["operator_scope"]["mode"], "namespace");
        let health: Value = server.get("/waterline/api/v2/health").await.json();
        assert_eq!(health["queue_visibility"]["available"], false, "no table says who polls");
    }

    /// Each item of the overview leads to a list of as many runs as it says.
    async fn what_needs_attention_is_listed(db: TestDb) {
        fill(&db).await;
        assert_eq!(listed(&server(&db.read_only)).await.len(), 5);
    }

    /// A worker that fell silent is named where the overview says so.
    async fn a_silent_worker_is_named(db: TestDb) {
        let beat = |id: &str, seconds: i64| {
            let at = now() - chrono::TimeDelta::seconds(seconds);
            InsertRow::new("workflow_worker_compatibility_heartbeats")
                .set("worker_id", id)
                .set("scope_key", id)
                .set("supported", "[]")
                .time("recorded_at", at)
                .time("expires_at", at + chrono::TimeDelta::seconds(30))
        };
        let rows = vec![beat("worker-live", 5), beat("worker-silent", 600), beat("worker-gone", 7_200)];
        write(&db.writable, rows, |_| ()).await.unwrap();
        let page = server(&db.read_only).get("/waterline/").await.text();
        assert!(page.contains("1 worker said nothing for more than five minutes"));
        let workers = page.split("id=\"workers\"").nth(1).unwrap().split("</section>").next().unwrap();
        assert!(workers.contains("worker-live") && workers.contains("worker-silent"), "{workers}");
        assert!(workers.contains("silent</") && !workers.contains("worker-gone"), "{workers}");
    }

    /// The hours of the week are those of the application's clock.
    async fn hours_begin_where_the_applications_hours_do(db: TestDb) {
        let zone = "Asia/Kolkata".parse().unwrap();
        let at = now() - chrono::TimeDelta::minutes(10);
        let mut row = summary(0).set("closed_at", (at + chrono::TimeDelta::minutes(330)).naive_utc());
        row.replace("status", "completed");
        row.replace("status_bucket", "completed");
        write(&db.writable, vec![row], |_| ()).await.unwrap();
        let there = db.open(|settings| settings.zone = zone).await;
        let series = json(&still(&there), "/waterline/api/stats").await["fleet_trends_series"].clone();
        there.close().await;
        // Closed at 11:50 UTC: in the hour from 17:00 to 18:00 there, which began at 11:30.
        let began: chrono::DateTime<chrono::Utc> = "2026-11-15T11:30:00Z".parse().unwrap();
        assert_eq!(series["timestamps"].as_array().unwrap().last(), Some(&json!(began.timestamp_millis())));
        assert_eq!(series["completed"].as_array().unwrap().last(), Some(&json!(1)));
        assert_eq!(series["completed"].as_array().unwrap().len(), 169);
    }

    /// However many open runs stand before them in the list.
    async fn what_needs_attention_is_found_behind_many_runs(db: TestDb) {
        fill(&db).await;
        let before = listed(&server(&db.read_only)).await;
        let rows = (0..6_000).map(fresh).chain([closed_but_lost()]).collect();
        write(&db.writable, rows, |_| ()).await.unwrap();
        let server = server(&db.read_only);
        assert_eq!(listed(&server).await, before);
        let page = server.get("/waterline/runs?attention=long_waits").await.text();
        let wanted = before.iter().find(|(href, _)| href.contains("long_waits")).unwrap().1;
        assert!(page.contains(&format!("{wanted} match")), "the list says how many there are");
        assert!(!page.contains("looked at"));
    }
}

/// An open run of the last hour, in front of all others.
fn fresh(n: u32) -> InsertRow {
    let mut row = summary(n);
    row.replace("status", "waiting");
    row.replace("status_bucket", "running");
    row.replace("liveness_state", "waiting_for_signal");
    let started = now() - chrono::TimeDelta::microseconds(i64::from(n));
    row.replace("started_at", started.naive_utc());
    row.replace("sort_timestamp", started.naive_utc());
    row
}

/// What the engine never writes: a state of open runs on one that closed.
fn closed_but_lost() -> InsertRow {
    let mut row = summary(7_000);
    row.replace("status", "completed");
    row.replace("status_bucket", "completed");
    row.replace("liveness_state", "repair_needed");
    row
}

/// What the overview names, and how many runs; each list holds exactly as many.
async fn listed(server: &TestServer) -> Vec<(String, usize)> {
    let page = server.get("/waterline/").await.text();
    let mut items = Vec::new();
    for item in page.split("<li data-count=\"").skip(1) {
        let count: usize = item.split('"').next().unwrap().parse().unwrap();
        let href = item
            .split("href=\"")
            .nth(1)
            .unwrap()
            .split('"')
            .next()
            .unwrap();
        let href = href.replace("&amp;", "&").replace("&#38;", "&");
        let Some(query) = href.strip_prefix("/waterline/runs") else {
            continue;
        };
        let list = json(
            server,
            &format!("/waterline/api/flows/all{query}&per_page=100"),
        )
        .await;
        assert_eq!(list["data"].as_array().unwrap().len(), count, "{href}");
        items.push((href, count));
    }
    items
}

async fn summaries_of_unknown_status(db: &Db) -> i64 {
    let mut q = db.statement();
    q.push("select count(*) as n from {workflow_run_summaries} where status_bucket <> 'running' and status not in ('completed', 'failed', 'cancelled', 'terminated')");
    db.fetch(q).await.unwrap().remove(0).int("n").unwrap()
}

/// One of these, or none.
fn maybe<'w>(rng: &mut fastrand::Rng, words: &[&'w str]) -> Option<&'w str> {
    let n = rng.usize(..=words.len());
    words.get(n).copied()
}

/// Around now, on the second or beside it, or never.
fn moment(rng: &mut fastrand::Rng) -> Option<chrono::DateTime<chrono::Utc>> {
    let seconds = rng.i64(-7_200..=60) * i64::from(rng.bool());
    let micros = rng.i64(0..1_000_000) * i64::from(rng.bool());
    rng.u8(..4).gt(&0).then(|| {
        now() + chrono::TimeDelta::seconds(seconds) + chrono::TimeDelta::microseconds(micros)
    })
}

/// A run with or without its summary, a task and an activity, in any state.
fn random_rows(rng: &mut fastrand::Rng, seed: u64, n: u32) -> Vec<InsertRow> {
    let (status, bucket) = [
        ("pending", "running"),
        ("waiting", "running"),
        ("completed", "completed"),
        ("failed", "failed"),
        ("cancelled", "failed"),
        ("terminated", "failed"),
    ][rng.usize(..6)];
    let id = format!("01rand{seed:04}{n:016}");
    let mut rows = vec![
        InsertRow::new("workflow_tasks")
            .set("id", format!("01task{seed:04}{n:016}"))
            .set("workflow_run_id", id.clone())
            .set(
                "task_type",
                ["workflow", "activity", "timer"][rng.usize(..3)],
            )
            .set("status", ["ready", "leased", "completed"][rng.usize(..3)])
            .set("queue", maybe(rng, &["default", "", "orders"]))
            .set("connection", maybe(rng, &["redis", "default"]))
            .set("compatibility", maybe(rng, &["any", "v2"]))
            .set("last_dispatch_error", maybe(rng, &["", "refused"]))
            .set("last_claim_error", maybe(rng, &["", "refused"]))
            .set("attempt_count", rng.i64(0..5))
            .set("repair_count", rng.i64(0..5))
            .time("available_at", moment(rng))
            .time("lease_expires_at", moment(rng))
            .time("last_dispatch_attempt_at", moment(rng))
            .time("last_dispatched_at", moment(rng))
            .time("last_claim_failed_at", moment(rng))
            .time("repair_available_at", moment(rng))
            .stamps(moment(rng).unwrap_or_else(now), now()),
        InsertRow::new("activity_executions")
            .set("id", format!("01acti{seed:04}{n:016}"))
            .set("workflow_run_id", id.clone())
            .set("sequence", 1)
            .set("activity_class", "App\\A")
            .set("activity_type", "a")
            .set(
                "status",
                ["pending", "running", "completed"][rng.usize(..3)],
            )
            .set("attempt_count", rng.i64(0..3))
            .set(
                "activity_options",
                maybe(rng, &["{\"execution_mode\":\"local\"}", "[]"]),
            )
            .time("schedule_deadline_at", moment(rng))
            .time("close_deadline_at", moment(rng))
            .time("schedule_to_close_deadline_at", moment(rng))
            .time("heartbeat_deadline_at", moment(rng))
            .time("started_at", moment(rng)),
    ];
    if rng.u8(..5) > 0 {
        let mut run = run_of(0);
        run.replace("id", id.clone());
        run.replace("workflow_instance_id", id.clone());
        run.replace("status", status);
        rows.push(run);
    }
    if rng.u8(..5) > 0 {
        let liveness = [
            "repair_needed",
            "workflow_task_claim_failed",
            "activity_task_waiting_for_compatible_worker",
            "closed",
        ];
        let mut row = summary(n)
            .time("wait_started_at", moment(rng))
            .time("closed_at", moment(rng).filter(|_| bucket != "running"))
            .set("next_task_id", maybe(rng, &["x"]));
        row.replace("id", id.clone());
        row.replace("workflow_instance_id", id);
        row.replace("status", status);
        row.replace("status_bucket", bucket);
        row.replace("liveness_state", liveness[rng.usize(..4)]);
        row.replace("exception_count", rng.i64(0..20));
        rows.push(row);
    }
    rows
}

/// The run behind the `n`th summary.
fn run_of(n: u32) -> InsertRow {
    InsertRow::new("workflow_runs")
        .set("id", format!("01seed{n:020}"))
        .set("workflow_instance_id", format!("seed-{}", n / 2))
        .set("run_number", i64::from(n % 2 + 1))
        .set("workflow_class", "App\\Seed")
        .set("workflow_type", "seed")
        .set("status", "completed")
}

#[tokio::test]
async fn nonsense_in_the_engines_settings_is_told_and_the_default_used() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("engine.json");
    fs::write(
        &file,
        r#"{"task_repair": {"scan_limit": "many", "redispatch_after_seconds": "7"}}"#,
    )
    .unwrap();
    let engine = EngineConfig::load(Some(&file)).unwrap();
    let found = engine.nonsense();
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].path, &found[0].used),
        ("task_repair.scan_limit", &json!(25))
    );
    assert_eq!(engine.int("task_repair.redispatch_after_seconds"), 7);
}

/// Every name the shipped dashboard and rules use is one we serve.
#[tokio::test]
async fn shipped_dashboards_and_alerts_use_metrics_that_exist() {
    crate::rig::on(plimsoll::db::Dialect::Sqlite, |db| async move {
        fill(&db).await;
        let server = server(&db.read_only);
        json(&server, "/waterline/api/stats").await;
        // The request's own histogram is there from the second scrape on.
        server.get("/metrics").await;
        let text = server.get("/metrics").await.text();
        // For `promtool check metrics`.
        fs::write(
            Path::new(env!("CARGO_TARGET_TMPDIR")).join("metrics.txt"),
            &text,
        )
        .unwrap();
        let served: BTreeSet<&str> = text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| line.split(['{', ' ']).next())
            .collect();
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("contrib");
        let mut used = BTreeSet::new();
        for file in ["grafana-dashboard.json", "prometheus-alerts.yml"] {
            let text = fs::read_to_string(root.join(file)).unwrap();
            let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            used.extend(
                words
                    .filter(|word| {
                        word.starts_with("durable_workflow_") || word.starts_with("plimsoll_")
                    })
                    .map(str::to_owned),
            );
        }
        assert!(used.len() >= 15, "{used:?}");
        for name in used {
            assert!(served.contains(name.as_str()), "{name} is not served");
        }
        // Names stay as they are once dashboards use them.
        let names: BTreeSet<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("# TYPE "))
            .collect();
        insta::assert_snapshot!(
            "metric_names",
            names.into_iter().collect::<Vec<_>>().join("\n")
        );
    })
    .await;
}

/// The database goes away under load: the numbers stay, with their age, and come back by
/// themselves.
mod outage {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Way {
        Open,
        /// What comes in stays there, as on a network that swallows packets.
        Stuck,
        Shut,
    }

    /// A door in front of the database that can be shut.
    struct Door {
        port: u16,
        way: tokio::sync::watch::Sender<Way>,
    }

    async fn door(host: String, port: u16) -> Door {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let own = listener.local_addr().unwrap().port();
        let (way, state) = tokio::sync::watch::channel(Way::Open);
        tokio::spawn(async move {
            loop {
                let Ok((mut client, _)) = listener.accept().await else {
                    return;
                };
                if *state.borrow() == Way::Shut {
                    continue;
                }
                let (host, mut state) = (host.clone(), state.clone());
                tokio::spawn(async move {
                    let Ok(mut server) =
                        tokio::net::TcpStream::connect((host.as_str(), port)).await
                    else {
                        return;
                    };
                    tokio::select! {
                        biased;
                        _ = state.wait_for(|way| *way != Way::Open) => {}
                        _ = tokio::io::copy_bidirectional(&mut client, &mut server) => {}
                    }
                    let _ = state.wait_for(|way| *way != Way::Stuck).await;
                });
            }
        });
        Door { port: own, way }
    }

    /// The product behind a door, gathering all the time.
    async fn behind(db: &TestDb, limit: Duration) -> (Door, Db, TestServer) {
        fill(db).await;
        let mut url = url::Url::parse(&db.url).unwrap();
        let door = door(url.host_str().unwrap().to_owned(), url.port().unwrap()).await;
        url.set_host(Some("127.0.0.1")).unwrap();
        url.set_port(Some(door.port)).unwrap();
        let settings = plimsoll::db::Settings::new(url.as_str());
        let behind = Db::connect(&settings).await.expect("the database opens");
        let app = App::new(Settings {
            db: Some(behind.clone()),
            gathering: Options {
                interval: Duration::from_millis(50),
                limit,
                ..Options::default()
            },
            ..Settings::default()
        });
        (door, behind, TestServer::new(routes::router(app)))
    }

    /// Asks until passes fail, or go well again.
    async fn until(server: &TestServer, failing: bool) -> Value {
        loop {
            let stats = json(server, "/waterline/api/stats?fresh=1").await;
            if stats["plimsoll"]["failing_since"].is_null() != failing {
                return stats;
            }
        }
    }

    /// Everybody scrapes all the time, and nobody ever goes without numbers.
    async fn scraped(server: &TestServer, what: impl Future<Output = ()>) {
        let scrapers = (0..20).map(|n| async move {
            let path = [
                "/waterline/api/operator-metrics",
                "/waterline/api/stats",
                "/waterline/api/v2/health",
                "/metrics",
                "/waterline/",
                "/livez",
            ][n % 6];
            loop {
                let response = server.get(path).await;
                assert_eq!(response.status_code(), 200, "{path}: {}", response.text());
                tokio::task::yield_now().await;
            }
        });
        let scrapers = futures_util::future::join_all(scrapers);
        tokio::select! {
            _ = scrapers => unreachable!("they go on"),
            () = what => {}
        }
    }

    async fn body(db: TestDb) {
        let (door, behind, server) = behind(&db, Options::default().limit).await;
        let before = json(&server, "/waterline/api/stats").await;
        let scene = async {
            door.way.send(Way::Shut).unwrap();
            let away = until(&server, true).await;
            assert_eq!(away["flows"], before["flows"]);
            assert!(away["plimsoll"]["age_ms"].as_i64() > Some(0));
            assert_eq!(server.get("/readyz").await.status_code(), 503);
            let text = server.get("/metrics").await.text();
            assert!(text.contains("\nplimsoll_collector_up 0\n"), "{text}");
            assert!(
                text.contains("\ndurable_workflow_runs_waiting "),
                "the last numbers stay"
            );
            let page = server.get("/waterline/").await.text();
            assert!(page.contains("The database does not answer"));

            door.way.send(Way::Open).unwrap();
            until(&server, false).await;
            assert_eq!(server.get("/readyz").await.status_code(), 200);
        };
        scraped(&server, scene).await;
        drop(server);
        behind.close().await;
    }

    /// Nothing is refused and nothing comes: the pass is given up, and the next is well again.
    async fn silence(db: TestDb) {
        let (door, behind, server) = behind(&db, Duration::from_secs(3)).await;
        // The first pass may be slow where much else runs.
        let before: Value = loop {
            let response = server.get("/waterline/api/stats?fresh=1").await;
            if response.status_code() == 200 {
                break response.json();
            }
        };
        door.way.send(Way::Stuck).unwrap();
        let away = until(&server, true).await;
        assert_eq!(away["flows"], before["flows"]);
        let because = away["plimsoll"]["failing_because"].as_str().unwrap();
        assert!(
            because.starts_with("The database does not answer."),
            "{because}"
        );
        door.way.send(Way::Open).unwrap();
        until(&server, false).await;
        drop(server);
        behind.close().await;
    }

    /// A file cannot go away under its reader, but it can be written over.
    async fn spoilt(db: TestDb) {
        fill(&db).await;
        db.writable.close().await;
        let server = still(&db.read_only);
        assert_eq!(server.get("/readyz").await.status_code(), 200);
        let file = db.url.strip_prefix("sqlite:").unwrap();
        let size = fs::metadata(file).unwrap().len();
        fs::write(file, vec![7; usize::try_from(size).unwrap()]).unwrap();
        assert_eq!(server.get("/readyz").await.status_code(), 503);
        assert_eq!(server.get("/livez").await.status_code(), 200);
    }

    #[tokio::test]
    async fn sqlite() {
        crate::rig::on(plimsoll::db::Dialect::Sqlite, spoilt).await;
    }

    #[tokio::test]
    async fn postgres() {
        crate::rig::on(plimsoll::db::Dialect::Postgres, body).await;
    }

    #[tokio::test]
    async fn mysql() {
        crate::rig::on(plimsoll::db::Dialect::MySql, body).await;
    }

    mod silence {
        #[tokio::test]
        async fn postgres() {
            crate::rig::on(plimsoll::db::Dialect::Postgres, super::silence).await;
        }

        #[tokio::test]
        async fn mysql() {
            crate::rig::on(plimsoll::db::Dialect::MySql, super::silence).await;
        }
    }
}
