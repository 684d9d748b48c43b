//! Runs that lost what would have resumed them.

use chrono::{DateTime, Utc};
use serde_json::json;

use super::Situation;
use crate::demo::builder::{Policy, RunBuilder, Start, Step, Thrown, hours, millis, mins, secs};

pub(super) fn situations(now: DateTime<Utc>) -> Vec<Situation> {
    vec![
        signal(now),
        update(now),
        child(now),
        timer_fired(now),
        condition_timeout(now),
        activity_task(now),
        activity_task_and_execution(now),
        retry_task(now),
        timer(now),
        signal_timeout(now),
        nothing(now),
        running_activity(now),
        activity_result(now),
        row_only_activity(now),
        row_only_closed_activity(now),
        row_only_child(now),
        stale(now),
        missing(now),
        repaired(now),
    ]
}

fn order(id: &str, at: DateTime<Utc>) -> RunBuilder {
    Start::new("order.fulfil", format!("ord-{id}"))
        .namespace("production")
        .business_key(&format!("ORD-{id}"))
        .queue("orders")
        .signals(&["picked"])
        .updates(&["change-address"])
        .args(json!([format!("ORD-{id}"), 5_900]))
        .at(at)
}

fn signal(now: DateTime<Utc>) -> Situation {
    let mut run = order("48241", now - mins(52));
    run.await_signal("picked", None);
    run.park()
        .pass(mins(30))
        .signal("picked", &json!(["picker-7"]));
    run.lose_tasks();
    Situation::of(
        "signal-task-lost",
        "The warehouse answered, but the task that would apply its signal is gone.",
        run,
        now,
    )
}

fn update(now: DateTime<Utc>) -> Situation {
    let mut run = order("48242", now - mins(48));
    run.await_signal("picked", None);
    run.park()
        .pass(mins(20))
        .update("change-address", &json!(["Hafenstr. 1"]));
    run.lose_tasks();
    Situation::of(
        "update-task-lost",
        "A new address was accepted, but the task that would apply it is gone.",
        run,
        now,
    )
}

fn child(now: DateTime<Utc>) -> Situation {
    let mut run = Start::new("order.return", "ret-5532")
        .business_key("RET-5532")
        .queue("orders")
        .at(now - hours(2));
    let (refund, mut child) = run.start_child(
        Start::new("payment.refund", "refund-5532")
            .queue("payments")
            .args(json!(["RET-5532", 4_400])),
        None,
    );
    run.park();
    child
        .run_step(Step::new("book-refund"), secs(3), &json!({"booked": true}))
        .succeed(&json!({"refund": "RF-881"}));
    run.child_closed(refund, &child).lose_tasks();
    Situation::of(
        "child-resolution-task-lost",
        "The refund is done, but the task that would tell its parent is gone.",
        run,
        now,
    )
    .and(child, now)
}

fn timer_fired(now: DateTime<Utc>) -> Situation {
    let mut run = Start::new("mailbox.poll", "mailbox-support")
        .queue("mail")
        .at(now - mins(33));
    let nap = run.sleep(600);
    run.fire(nap).lose_tasks();
    Situation::of(
        "timer-fired-task-lost",
        "The poller's timer fired, but the task that would wake it is gone.",
        run,
        now,
    )
}

fn condition_timeout(now: DateTime<Utc>) -> Situation {
    let mut run = Start::new("purchase.approve", "po-9907")
        .namespace("staging")
        .business_key("PO-9907")
        .at(now - hours(3));
    let wait = run.await_condition(Some("approval.complete"), Some(1_800));
    run.fire(wait).lose_tasks();
    Situation::of(
        "condition-timeout-task-lost",
        "The approval timed out, but the task that would apply the timeout is gone.",
        run,
        now,
    )
}

fn activity_task(now: DateTime<Utc>) -> Situation {
    let mut run = order("48251", now - mins(37));
    run.schedule(Step::new("reserve-stock").args(json!(["ORD-48251"])));
    run.lose_tasks();
    Situation::of(
        "activity-task-lost",
        "Stock should be reserved, but the activity's task row is gone.",
        run,
        now,
    )
}

fn activity_task_and_execution(now: DateTime<Utc>) -> Situation {
    let mut run = order("48252", now - mins(36));
    let step = run.schedule(Step::new("reserve-stock").args(json!(["ORD-48252"])));
    run.lose_tasks().lose_activity_row(step);
    Situation::of(
        "activity-task-and-execution-lost",
        "Task and execution row of an activity are gone; only history still knows it.",
        run,
        now,
    )
}

fn retry_task(now: DateTime<Utc>) -> Situation {
    let mut run = order("48253", now - mins(26));
    let charge = run.schedule(
        Step::new("charge-card")
            .queue("payments")
            .policy(Policy::retry(4, &[30, 600])),
    );
    run.park().pass(millis(200));
    let thrown = Thrown::new(
        r"App\Payments\GatewayTimeout",
        "Gateway did not answer within 10 s",
    )
    .code(504);
    run.begin(charge)
        .pass(secs(10))
        .fail_attempt(charge, &thrown);
    run.lose_tasks();
    Situation::of(
        "retry-task-lost",
        "A second payment attempt was promised, but its delayed task is gone.",
        run,
        now,
    )
}

fn timer(now: DateTime<Utc>) -> Situation {
    let mut run = Start::new("invoice.remind", "rem-2026-0141")
        .queue("mail")
        .business_key("INV-2026-10-0141")
        .at(now - hours(30));
    let nap = run.sleep(172_800);
    run.lose_tasks().lose_timer_row(nap);
    Situation::of(
        "timer-row-and-task-lost",
        "A reminder is set in history, but neither its timer row nor its task exists.",
        run,
        now,
    )
}

fn signal_timeout(now: DateTime<Utc>) -> Situation {
    let mut run = Start::new("order.payment-window", "pay-48260")
        .namespace("production")
        .business_key("ORD-48260")
        .queue("orders")
        .at(now - mins(44));
    run.await_signal("payment-received", Some(7_200));
    run.lose_tasks();
    Situation::of(
        "signal-timeout-task-lost",
        "The payment window will never close: the task of its timeout is gone.",
        run,
        now,
    )
}

fn nothing(now: DateTime<Utc>) -> Situation {
    let mut run = order("48263", now - mins(58));
    run.lose_tasks();
    Situation::of(
        "no-resume-source",
        "The order was accepted, but nothing durable will ever start it.",
        run,
        now,
    )
}

fn running_activity(now: DateTime<Utc>) -> Situation {
    let mut run = Start::new("catalogue.import", "import-supplier-delta")
        .namespace("staging")
        .queue("imports")
        .at(now - mins(22));
    let load = run.schedule(Step::new("load-products").policy(Policy::retry(2, &[10])));
    run.park()
        .pass(millis(400))
        .begin_on(load, Some("import-worker-1"));
    run.lose_tasks();
    Situation::of(
        "activity-running-without-task",
        "A worker says it is loading products, but the task it holds does not exist.",
        run,
        now,
    )
}

fn activity_result(now: DateTime<Utc>) -> Situation {
    let mut run = order("48254", now - mins(25));
    run.run_step(
        Step::new("reserve-stock"),
        millis(540),
        &json!({"reserved": 1}),
    )
    .lose_tasks();
    Situation::of(
        "activity-result-task-lost",
        "Stock is reserved, but the task that would go on with the order is gone.",
        run,
        now,
    )
}

fn row_only_closed_activity(now: DateTime<Utc>) -> Situation {
    let mut run = Start::new("legacy.sync", "legacy-sync-2025-03")
        .without_history()
        .at(now - hours(51));
    run.pass(secs(30));
    run.row_only_activity(Step::new("pull-orders").args(json!(["erp"])), "completed");
    Situation::of(
        "row-only-closed-activity",
        "A finished activity has no history behind it, so replay cannot pass it.",
        run,
        now,
    )
}

fn row_only_activity(now: DateTime<Utc>) -> Situation {
    let mut run = Start::new("legacy.sync", "legacy-sync-2025-02")
        .without_history()
        .at(now - hours(50));
    run.pass(secs(40));
    run.row_only_activity(Step::new("pull-orders").args(json!(["erp"])), "running");
    Situation::of(
        "row-only-activity",
        "An activity is visible in a mutable row only; history does not know it.",
        run,
        now,
    )
}

fn row_only_child(now: DateTime<Utc>) -> Situation {
    let mut run = Start::new("legacy.close-month", "legacy-close-2025-02")
        .without_history()
        .at(now - hours(49));
    let child = Start::new("legacy.export", "legacy-export-2025-02")
        .without_history()
        .at(now - hours(49) + secs(5));
    run.pass(secs(5));
    run.row_only_child(&child);
    Situation::of(
        "row-only-child",
        "A child is visible in a link row only; the parent's history does not know it.",
        run,
        now,
    )
    .and(child, now)
}

fn stale(now: DateTime<Utc>) -> Situation {
    let mut run = order("48270", now - mins(29));
    run.schedule(Step::new("reserve-stock").args(json!(["ORD-48270"])));
    run.park();
    let before = run.clone();
    let then = run.clock();
    run.lose_tasks();
    Situation::told_by(
        "stale-summary",
        "The list says a task is ready; the task was deleted after the list was written.",
        run,
        |run| run.build_stale(&before, then),
    )
}

fn missing(now: DateTime<Utc>) -> Situation {
    let mut run = order("48271", now - mins(27));
    run.await_signal("picked", None);
    Situation::told_by(
        "missing-summary",
        "The run is there, but no list knows it: its summary row is missing.",
        run,
        RunBuilder::build_unprojected,
    )
}

fn repaired(now: DateTime<Utc>) -> Situation {
    let mut run = order("48233", now - hours(4));
    run.await_signal("picked", None);
    run.park().pass(mins(10));
    let picked = run.signal("picked", &json!(["picker-3"]));
    run.lose_tasks().pass(mins(6));
    let resume = run.signal_resume();
    run.repair("signal", resume);
    run.apply_signal(picked).sleep(28_800);
    Situation::of(
        "repaired-in-the-past",
        "A lost task was repaired hours ago; the run is healthy and waits for its timer.",
        run,
        now,
    )
}
