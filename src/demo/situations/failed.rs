//! Runs that ended badly, one for each way to end.

use chrono::{DateTime, Utc};
use serde_json::json;

use super::Situation;
use crate::demo::builder::{Policy, Start, Step, Thrown, days, hours, millis, mins, secs};

pub(super) fn situations(now: DateTime<Utc>) -> Vec<Situation> {
    vec![
        application(now),
        activity_after_retries(now),
        non_retryable(now),
        child(now),
        unclassified_child(now),
        execution_timeout(now),
        run_timeout(now),
        activity_timeout(now),
        cancelled(now),
        terminated(now),
        task_failure(now),
        internal(now),
        unclassified(now),
        handled(now),
    ]
}

fn gateway_timeout(order: &str) -> Thrown {
    Thrown::new(
        r"App\Payments\GatewayTimeout",
        format!("Gateway did not answer within 10 s for {order}"),
    )
    .code(504)
    .at(
        "/srv/shop/app/Payments/Gateway.php",
        88,
        r"App\Activities\ChargeCardActivity",
    )
}

fn application(now: DateTime<Utc>) -> Situation {
    let mut run = Start::new("invoice.issue", "inv-2026-11-0417")
        .namespace("production")
        .business_key("INV-2026-11-0417")
        .queue("orders")
        .args(json!(["cust-991", "2026-11"]))
        .at(now - hours(2));
    run.run_step(
        Step::new("collect-lines"),
        millis(700),
        &json!({"lines": 0}),
    );
    let thrown = Thrown::new(
        "DomainException",
        "Invoice INV-2026-11-0417 has no lines to bill",
    )
    .code(17)
    .at(
        "/srv/shop/app/Workflows/InvoiceIssueWorkflow.php",
        52,
        r"App\Workflows\InvoiceIssueWorkflow",
    );
    run.fail("application", &thrown, json!({}));
    Situation::of(
        "failed-application",
        "Workflow code refused an invoice that has no lines.",
        run,
        now,
    )
}

fn activity_after_retries(now: DateTime<Utc>) -> Situation {
    let mut run = Start::new("order.fulfil", "ord-48190")
        .namespace("production")
        .business_key("ORD-48190")
        .queue("orders")
        .args(json!(["ORD-48190", 31_000]))
        .at(now - hours(5));
    run.run_step(
        Step::new("reserve-stock"),
        millis(500),
        &json!({"reserved": 1}),
    );
    let charge = run.schedule(
        Step::new("charge-card")
            .args(json!(["ORD-48190", 31_000]))
            .queue("payments")
            .policy(Policy::retry(3, &[5, 30])),
    );
    run.park().pass(millis(200));
    for _ in 0..3 {
        run.begin(charge).pass(secs(10));
        run.fail_attempt(charge, &gateway_timeout("ORD-48190"));
    }
    run.fail("application", &gateway_timeout("ORD-48190"), json!({}));
    Situation::of(
        "failed-activity-after-retries",
        "The card gateway timed out three times; the policy allows no fourth try.",
        run,
        now,
    )
}

fn non_retryable(now: DateTime<Utc>) -> Situation {
    let mut run = Start::new("subscription.renew", "sub-7720")
        .namespace("production")
        .business_key("SUB-7720")
        .queue("payments")
        .args(json!(["sub-7720"]))
        .at(now - hours(7));
    let charge = run.schedule(
        Step::new("charge-card")
            .policy(Policy::retry(5, &[10]).never_retry(&[r"App\Payments\CardDeclined"])),
    );
    run.park().pass(millis(200));
    run.begin(charge).pass(secs(1));
    let declined = Thrown::new(
        r"App\Payments\CardDeclined",
        "Card ending 4242 was declined: stolen card",
    )
    .code(402)
    .at(
        "/srv/shop/app/Payments/Gateway.php",
        61,
        r"App\Activities\ChargeCardActivity",
    )
    .permanent();
    run.fail_attempt(charge, &declined)
        .fail("application", &declined, json!({}));
    Situation::of(
        "failed-non-retryable",
        "A declined card ends the renewal at once, although the policy allows five attempts.",
        run,
        now,
    )
}

fn child(now: DateTime<Utc>) -> Situation {
    let mut run = Start::new("order.return", "ret-5511")
        .business_key("RET-5511")
        .queue("orders")
        .args(json!(["RET-5511"]))
        .at(now - mins(95));
    let (refund, mut child) = run.start_child(
        Start::new("payment.refund", "refund-5511")
            .queue("payments")
            .args(json!(["RET-5511", 8_900])),
        None,
    );
    run.park();
    let thrown = Thrown::new(
        r"App\Payments\AccountClosed",
        "The customer's account is closed",
    )
    .at(
        "/srv/shop/app/Payments/Refunds.php",
        33,
        r"App\Workflows\PaymentRefundWorkflow",
    );
    child.fail("application", &thrown, json!({}));
    run.pass(millis(400)).child_closed(refund, &child);
    run.fail("application", &thrown, json!({}));
    Situation::of(
        "failed-child",
        "A return failed because its refund, a child workflow, failed.",
        run,
        now,
    )
    .and(child, now)
}

/// The category `child_workflow` itself: the child's failure has none of its own.
fn unclassified_child(now: DateTime<Utc>) -> Situation {
    let mut run = Start::new("month.close", "close-2026-10")
        .queue("reports")
        .at(now - hours(31));
    let (ledger, mut child) = run.start_child(
        Start::new("legacy.ledger", "ledger-2026-10").queue("reports"),
        None,
    );
    run.park();
    let thrown = Thrown::new(r"App\Legacy\LedgerLocked", "Ledger 2026-10 is locked");
    child.pass(secs(9)).lose_tasks();
    child
        .unclassified_failure(&thrown)
        .close_row("failed", "failed");
    run.child_closed(ledger, &child);
    run.fail("application", &thrown, json!({}));
    Situation::of(
        "failed-child-unclassified",
        "The books could not be closed: a child failed, and nobody recorded what kind of failure.",
        run,
        now,
    )
    .and(child, now)
}

fn execution_timeout(now: DateTime<Utc>) -> Situation {
    let mut run = Start::new("order.payment-window", "pay-48102")
        .namespace("production")
        .business_key("ORD-48102")
        .queue("orders")
        .execution_timeout(3_600)
        .signals(&["payment-received"])
        .at(now - hours(9));
    run.await_signal("payment-received", None);
    run.time_out("execution_timeout");
    Situation::of(
        "failed-execution-timeout",
        "Nobody paid within the hour the whole execution was given.",
        run,
        now,
    )
}

fn run_timeout(now: DateTime<Utc>) -> Situation {
    let mut run = Start::new("mailbox.poll", "mailbox-returns")
        .queue("mail")
        .run_timeout(900)
        .at(now - hours(11));
    run.sleep(3_600);
    run.time_out("run_timeout");
    Situation::of(
        "failed-run-timeout",
        "A poller slept longer than one run may last.",
        run,
        now,
    )
}

fn activity_timeout(now: DateTime<Utc>) -> Situation {
    let mut run = Start::new("report.daily", "report-2026-11-14")
        .queue("reports")
        .at(now - days(2));
    let build = run.schedule(Step::new("build-report").policy(Policy::ONCE.timeouts(600, 120)));
    run.park().pass(millis(200));
    run.begin(build).pass(secs(601));
    run.time_out_activity(
        build,
        "start_to_close",
        "Activity build-report timed out: start_to_close deadline passed.",
    );
    let thrown = Thrown::new(
        r"Workflow\V2\Exceptions\ActivityTimeoutException",
        "Activity build-report timed out: start_to_close deadline passed.",
    );
    run.fail("timeout", &thrown, json!({}));
    Situation::of(
        "failed-activity-timeout",
        "Building the report took longer than its ten minutes.",
        run,
        now,
    )
}

fn cancelled(now: DateTime<Utc>) -> Situation {
    let mut run = Start::new("order.fulfil", "ord-48166")
        .namespace("production")
        .business_key("ORD-48166")
        .queue("orders")
        .at(now - hours(6));
    run.run_step(
        Step::new("reserve-stock"),
        millis(480),
        &json!({"reserved": 2}),
    )
    .sleep(7_200);
    run.park()
        .pass(mins(25))
        .cancel(Some("Customer changed their mind"));
    Situation::of(
        "cancelled",
        "An operator cancelled the order while it waited for its delivery slot.",
        run,
        now,
    )
}

fn terminated(now: DateTime<Utc>) -> Situation {
    let mut run = Start::new("catalogue.import", "import-supplier-borealis")
        .namespace("staging")
        .queue("imports")
        .at(now - hours(8));
    let load = run.schedule(Step::new("load-products").policy(Policy::retry(4, &[60])));
    run.park().pass(millis(300)).begin(load).pass(mins(3));
    run.terminate(Some("Wrong supplier file"));
    Situation::of(
        "terminated",
        "An operator terminated an import that was loading the wrong file.",
        run,
        now,
    )
}

fn task_failure(now: DateTime<Utc>) -> Situation {
    let mut run = Start::new("invoice.remind", "rem-2026-0098")
        .queue("mail")
        .at(now - days(1));
    let thrown = Thrown::new(
        r"Workflow\V2\Exceptions\StraightLineWorkflowRequiredException",
        r"Workflow [App\Workflows\InvoiceRemindWorkflow] must not yield.",
    )
    .at(
        "/srv/shop/app/Workflows/InvoiceRemindWorkflow.php",
        13,
        r"Workflow\V2\Support\WorkflowExecution",
    );
    run.fail("task_failure", &thrown, json!({}));
    Situation::of(
        "failed-task-failure",
        "The workflow class is written in a style the engine cannot run.",
        run,
        now,
    )
}

fn internal(now: DateTime<Utc>) -> Situation {
    let mut run = Start::new("subscription.renew", "sub-6643")
        .namespace("production")
        .queue("payments")
        .at(now - days(1) - hours(4));
    run.run_step(
        Step::new("load-plan"),
        millis(300),
        &json!({"plan": "gold"}),
    );
    let thrown = Thrown::new(
        r"Illuminate\Database\QueryException",
        "SQLSTATE[40001]: Serialization failure: 1213 Deadlock found when trying to get lock",
    )
    .at(
        "/srv/shop/vendor/laravel/framework/src/Illuminate/Database/Connection.php",
        829,
        r"Illuminate\Database\Connection",
    );
    run.fail("internal", &thrown, json!({}));
    Situation::of(
        "failed-internal",
        "The engine's own database gave up on a deadlock.",
        run,
        now,
    )
}

fn unclassified(now: DateTime<Utc>) -> Situation {
    let mut run = Start::new("legacy.sync", "legacy-sync-2024-31")
        .queue("default")
        .without_history()
        .at(now - days(9));
    run.pass(mins(2));
    let thrown = Thrown::new(r"App\Legacy\SyncBroken", "Remote ERP closed the connection").at(
        "/srv/shop/app/Legacy/Sync.php",
        240,
        r"App\Legacy\Sync",
    );
    run.unclassified_failure(&thrown)
        .close_row("failed", "failed");
    Situation::of(
        "failed-unclassified",
        "An old failure came over from an earlier engine, which did not classify it.",
        run,
        now,
    )
}

fn handled(now: DateTime<Utc>) -> Situation {
    let mut run = Start::new("order.fulfil", "ord-48155")
        .namespace("production")
        .business_key("ORD-48155")
        .queue("orders")
        .at(now - hours(4));
    let label = run.schedule(Step::new("print-label"));
    run.park().pass(millis(200));
    run.begin(label).pass(secs(1));
    let thrown = Thrown::new(r"App\Shipping\CarrierDown", "Carrier API is in maintenance")
        .code(503)
        .at(
            "/srv/shop/app/Shipping/Carrier.php",
            71,
            r"App\Activities\PrintLabelActivity",
        );
    run.fail_attempt(label, &thrown)
        .handle_failure(label)
        .run_step(
            Step::new("print-label-by-post"),
            millis(900),
            &json!("RR123456785DE"),
        )
        .succeed(&json!({"tracking": "RR123456785DE"}));
    Situation::of(
        "handled-failure",
        "The carrier was down; workflow code caught it and used the post instead.",
        run,
        now,
    )
}
