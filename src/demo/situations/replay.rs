//! Runs whose code no longer fits their history.

use chrono::{DateTime, Utc};
use serde_json::json;

use super::Situation;
use crate::demo::builder::{Start, Step, Thrown, digest, hours, millis, secs};

pub(super) fn situations(now: DateTime<Utc>) -> Vec<Situation> {
    vec![
        failure_resolution(now),
        condition_mismatch(now),
        history_shape(now),
    ]
}

fn failure_resolution(now: DateTime<Utc>) -> Situation {
    let mut run = Start::new("order.fulfil", "ord-48071")
        .namespace("production")
        .business_key("ORD-48071")
        .queue("orders")
        .at(now - hours(3));
    let step = run.schedule(Step::new("reserve-stock"));
    run.park().pass(millis(200));
    run.begin(step).pass(secs(1));
    let thrown = Thrown::new(r"App\Legacy\OrderRejected", "Warehouse rejected ORD-48071").at(
        "/srv/shop/app/Legacy/Warehouse.php",
        120,
        r"App\Activities\ReserveStockActivity",
    );
    run.fail_attempt(step, &thrown).replay_blocks(
        "failure_resolution",
        json!({
            "replay_blocked_exception_class": r"App\Legacy\OrderRejected",
            "replay_blocked_exception_type": null,
            "replay_blocked_resolution_source": "unresolved",
            "replay_blocked_resolution_error": null,
        }),
        r"The recorded failure App\Legacy\OrderRejected cannot be restored: no such class any more.",
    );
    Situation::of(
        "replay-blocked-failure-resolution",
        "History holds an exception class that the deployed code no longer has.",
        run,
        now,
    )
}

fn condition_mismatch(now: DateTime<Utc>) -> Situation {
    let mut run = Start::new("purchase.approve", "po-9884")
        .namespace("staging")
        .business_key("PO-9884")
        .signals(&["approved"])
        .at(now - hours(6));
    run.await_condition(Some("approval.manager"), None);
    run.park().pass(hours(2));
    run.signal("approved", &json!(["finance"]));
    let wait = run.condition_id(0);
    let recorded = format!(
        "sha256:{}",
        digest(r"App\Workflows\PurchaseApproveWorkflow::approval.manager")
    );
    let current = format!(
        "sha256:{}",
        digest(r"App\Workflows\PurchaseApproveWorkflow::approval.director")
    );
    run.replay_blocks(
        "condition_wait_definition_mismatch",
        json!({
            "replay_blocked_workflow_sequence": 1,
            "replay_blocked_condition_wait_id": wait,
            "replay_blocked_recorded_condition_key": "approval.manager",
            "replay_blocked_current_condition_key": "approval.director",
            "replay_blocked_recorded_condition_definition_fingerprint": recorded,
            "replay_blocked_current_condition_definition_fingerprint": current,
        }),
        "Step 1 recorded condition approval.manager, but the code now waits for approval.director.",
    );
    Situation::of(
        "replay-blocked-condition-mismatch",
        "The condition this run waits for was renamed by a deployment.",
        run,
        now,
    )
}

fn history_shape(now: DateTime<Utc>) -> Situation {
    let mut run = Start::new("invoice.issue", "inv-2026-11-0402")
        .namespace("production")
        .business_key("INV-2026-11-0402")
        .queue("orders")
        .at(now - hours(5));
    run.run_step(
        Step::new("collect-lines"),
        millis(650),
        &json!({"lines": 4}),
    );
    run.replay_blocks(
        "history_shape_mismatch",
        json!({
            "replay_blocked_workflow_sequence": 1,
            "replay_blocked_expected_history_shape": "child workflow",
            "replay_blocked_recorded_event_types": ["ActivityScheduled", "ActivityStarted", "ActivityCompleted"],
        }),
        "Step 1 recorded an activity, but the code now starts a child workflow there.",
    );
    Situation::of(
        "replay-blocked-history-shape",
        "A deployment changed the order of steps under a running invoice.",
        run,
        now,
    )
}
