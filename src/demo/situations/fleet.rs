//! A healthy floor: runs that work, and the workers that make them.

use chrono::{DateTime, Utc};
use serde_json::json;

use super::Situation;
use crate::demo::builder::{FLEET, Policy, Start, Step, days, digest, hours, millis, mins, secs};
use crate::demo::rows::InsertRow;

pub(super) fn situations(now: DateTime<Utc>) -> Vec<Situation> {
    vec![
        completed(now),
        just_started(now),
        activity_running(now),
        worker_leased(now),
    ]
}

fn completed(now: DateTime<Utc>) -> Situation {
    let mut run = Start::new("order.fulfil", "ord-48211")
        .namespace("production")
        .business_key("ORD-48211")
        .label("channel", "web")
        .queue("orders")
        .compatibility(FLEET[1])
        .args(json!(["ORD-48211", 12_900]))
        .at(now - hours(3));
    run.run_step(
        Step::new("reserve-stock").args(json!(["ORD-48211"])),
        millis(640),
        &json!({"reserved": 3}),
    )
    .side_effect(&json!("pick-slip-88120"))
    .run_step(
        Step::new("charge-card")
            .queue("payments")
            .policy(Policy::retry(3, &[5, 30])),
        secs(2),
        &json!({"authorisation": "A-77120", "amount": 12_900}),
    )
    .run_step(
        Step::new("print-label"),
        millis(900),
        &json!("1Z999AA10123456784"),
    )
    .succeed(&json!({"tracking": "1Z999AA10123456784"}));
    let situation = Situation::of(
        "completed",
        "An order went through every step and was handed to the carrier.",
        run,
        now,
    );
    situation.and_rows(heartbeats(now))
}

fn just_started(now: DateTime<Utc>) -> Situation {
    let run = Start::new("order.fulfil", "ord-48307")
        .namespace("production")
        .business_key("ORD-48307")
        .queue("orders")
        .compatibility(FLEET[1])
        .args(json!(["ORD-48307", 4_500]))
        .at(now - secs(1));
    Situation::of(
        "pending-just-started",
        "An order was accepted a second ago; its first task is on the queue.",
        run,
        now,
    )
}

fn activity_running(now: DateTime<Utc>) -> Situation {
    let mut run = Start::new("catalogue.import", "import-supplier-aurora")
        .namespace("staging")
        .queue("imports")
        .args(json!(["s3://supplier-drops/aurora/2026-11.csv"]))
        .at(now - mins(12));
    let load = run.schedule(
        Step::new("load-products")
            .args(json!(["aurora"]))
            .policy(Policy::retry(2, &[10]).timeouts(1_800, 60)),
    );
    run.park()
        .pass(secs(1))
        .begin_on(load, Some("import-worker-3"));
    for (done, wait) in [(2_000, 180), (6_500, 300), (9_100, 200)] {
        run.pass(secs(wait)).beat(
            load,
            json!({"message": "Loading products", "current": done, "total": 14_200, "unit": "rows", "details": {"phase": "upsert"}}),
        );
    }
    run.pass_until(now - secs(9)).beat(
        load,
        json!({"message": "Loading products", "current": 11_850, "total": 14_200, "unit": "rows", "details": {"phase": "upsert"}}),
    );
    Situation::of(
        "activity-running-heartbeat",
        "An import is two thirds done and reports its progress every few minutes.",
        run,
        now,
    )
}

fn worker_leased(now: DateTime<Utc>) -> Situation {
    let mut run = Start::new("report.monthly", "report-2026-10-revenue")
        .queue("reports")
        .args(json!(["2026-10"]))
        .at(now - secs(21));
    run.work();
    run.leave_leased();
    Situation::of(
        "workflow-task-leased",
        "A worker is thinking about this report right now.",
        run,
        now,
    )
}

/// Live workers on every queue of the shop, one of them outside any namespace.
fn heartbeats(now: DateTime<Utc>) -> Vec<InsertRow> {
    let queues = [
        None,
        Some("default"),
        Some("orders"),
        Some("payments"),
        Some("imports"),
        Some("reports"),
        Some("mail"),
    ];
    let rows = queues.into_iter().enumerate().map(|(i, queue)| {
        let host = format!("worker-{}.shop.internal", i + 1);
        let pid = (4_100 + i * 37).to_string();
        let scope =
            json!({"namespace": null, "connection": queue.map(|_| "redis"), "queue": queue});
        let recorded = now - secs(2);
        InsertRow::new("workflow_worker_compatibility_heartbeats")
            .set(
                "worker_id",
                format!("{host}:{pid}:{}", &digest(&host)[..26].to_ascii_uppercase()),
            )
            .set("scope_key", digest(&scope.to_string()))
            .set("namespace", None::<&str>)
            .set("host", host)
            .set("process_id", pid)
            .set("connection", queue.map(|_| "redis"))
            .set("queue", queue)
            .json("supported", Some(&json!(FLEET)))
            .time("recorded_at", recorded)
            // The engine's TTL is 30 s; a demo is looked at for longer than that.
            .time("expires_at", recorded + days(1))
            .stamps(now - hours(5), recorded)
    });
    rows.collect()
}
