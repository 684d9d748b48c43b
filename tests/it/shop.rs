//! The demo's shop floor in a test's database, and the real router over it.

use std::sync::LazyLock;

use axum_test::TestServer;
use chrono::{DateTime, TimeDelta, Utc};
use plimsoll::{
    clock::Clock,
    db::Db,
    demo::{Situation, catalogue, rows::InsertRow, write::write},
    durable::engine_config::EngineConfig,
    web::{
        routes,
        state::{App, Settings},
    },
};

use crate::rig::TestDb;

pub fn now() -> DateTime<Utc> {
    "2026-11-15T12:00:00Z".parse().unwrap()
}

/// The catalogue at a moment; that of [`now`] is made once.
pub fn at(moment: DateTime<Utc>) -> Vec<Situation> {
    static NOW: LazyLock<Vec<Situation>> = LazyLock::new(|| catalogue(now()).collect());
    if moment == now() {
        return NOW.clone();
    }
    catalogue(moment).collect()
}

/// One situation of it.
pub fn situation(name: &str, moment: DateTime<Utc>) -> Situation {
    let found = catalogue(moment).find(|situation| situation.name == name);
    found.expect("in the catalogue")
}

/// Writes every situation and tells what there is.
pub async fn fill(db: &TestDb) -> Vec<Situation> {
    lay_out(db, at(now())).await
}

/// The same without the few whose history is long, for tests that read every row again and again.
pub async fn fill_short(db: &TestDb) -> Vec<Situation> {
    let mut situations = at(now());
    situations.retain(|situation| situation.rows.len() < 500);
    lay_out(db, situations).await
}

async fn lay_out(db: &TestDb, situations: Vec<Situation>) -> Vec<Situation> {
    let rows = situations.iter().flat_map(|s| s.rows.clone()).collect();
    write(&db.writable, rows, |_| ()).await.unwrap();
    situations
}

/// The product as `serve` runs it, its clock standing still.
pub fn server(db: &Db) -> TestServer {
    let settings = Settings {
        clock: Clock::Frozen(now()),
        db: Some(db.clone()),
        ..Settings::default()
    };
    TestServer::new(routes::router(App::new(settings)))
}

/// The engine as this `workflows` configuration has it.
pub fn engine(workflows: &serde_json::Value) -> EngineConfig {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), workflows.to_string()).unwrap();
    EngineConfig::load(Some(file.path())).unwrap()
}

/// A summary row and nothing else, the `n`th of many: namespaces, types, buckets and queues
/// vary with `n`; several rows share a moment, and some have none.
pub fn summary(n: u32) -> InsertRow {
    let (status, bucket) = [
        ("completed", "completed"),
        ("completed", "completed"),
        ("waiting", "running"),
        ("running", "running"),
        ("failed", "failed"),
        ("cancelled", "failed"),
        ("terminated", "failed"),
    ][n as usize % 7];
    let started =
        (!n.is_multiple_of(97)).then(|| now() - TimeDelta::seconds(i64::from(n / 3) * 20));
    let open = bucket == "running";
    InsertRow::new("workflow_run_summaries")
        .set("id", format!("01seed{n:020}"))
        .set("workflow_instance_id", format!("seed-{}", n / 2))
        .set("run_number", i64::from(n % 2 + 1))
        .set("is_current_run", n % 2 == 1)
        .set("class", "App\\Seed")
        .set(
            "workflow_type",
            ["seed.one", "seed.two", "seed.three"][n as usize % 3],
        )
        .set(
            "namespace",
            [None, Some("north"), Some("south"), Some("north")][n as usize % 4],
        )
        .set(
            "business_key",
            n.is_multiple_of(5).then(|| format!("SEED-{}", n / 50)),
        )
        .set("queue", ["fast", "slow"][n as usize % 2])
        .set("status", status)
        .set("status_bucket", bucket)
        .set("wait_kind", (status == "waiting").then_some("signal"))
        .set(
            "liveness_state",
            if open { "waiting_for_signal" } else { "closed" },
        )
        .set("repair_attention", false)
        .set("task_problem", n % 50 == 3)
        .set("exception_count", 0)
        .set("history_event_count", 3)
        .set("history_size_bytes", 300)
        .set("continue_as_new_recommended", n % 41 == 5)
        .time("started_at", started)
        .time("sort_timestamp", started)
        .stamps(now(), now())
}

pub async fn add_summaries(db: &TestDb, numbers: std::ops::Range<u32>) {
    let rows = numbers.map(summary).collect();
    write(&db.writable, rows, |_| ()).await.unwrap();
}

/// One of two unhandled failures of the `n`th run: of an activity, then of the run itself, each with
/// a message of its own.
pub fn failure_of(n: u32, nth: u32, category: Option<&str>) -> InsertRow {
    InsertRow::new("workflow_failures")
        .set("id", format!("01fail{:020}", n * 2 + nth))
        .set("workflow_run_id", format!("01seed{n:020}"))
        .set(
            "source_kind",
            ["activity_execution", "workflow_run"][nth as usize],
        )
        .set("source_id", format!("{n}"))
        .set("propagation_kind", "terminal")
        .set("failure_category", category)
        .set("non_retryable", n.is_multiple_of(3))
        .set("handled", false)
        .set("exception_class", "App\\Failure")
        .set("message", format!("failure {nth}"))
        .set("file", "app/Seed.php")
        .stamps(now(), now())
}

/// The run behind the `n`th summary.
pub fn run_of(n: u32) -> InsertRow {
    InsertRow::new("workflow_runs")
        .set("id", format!("01seed{n:020}"))
        .set("workflow_instance_id", format!("seed-{}", n / 2))
        .set("run_number", i64::from(n % 2 + 1))
        .set("workflow_class", "App\\Seed")
        .set("workflow_type", "seed")
        .set("status", "completed")
}
