//! Healthy runs that wait, one for each thing a run can wait for.

use chrono::{DateTime, Utc};
use serde_json::json;

use super::Situation;
use crate::demo::builder::{Policy, Start, Step, Thrown, days, hours, millis, mins, secs};

pub(super) fn situations(now: DateTime<Utc>) -> Vec<Situation> {
    vec![
        retrying(now),
        signal(now),
        signal_timeout(now),
        timer(now),
        condition(now),
        condition_timeout(now),
        child(now),
        activity(now),
        update(now),
        signal_accepted(now),
        duplicate_start(now),
    ]
}

fn retrying(now: DateTime<Utc>) -> Situation {
    let mut run = Start::new("order.fulfil", "ord-48301")
        .namespace("production")
        .business_key("ORD-48301")
        .queue("orders")
        .args(json!(["ORD-48301", 7_700]))
        .at(now - mins(3));
    run.run_step(
        Step::new("reserve-stock"),
        millis(610),
        &json!({"reserved": 1}),
    );
    let charge = run.schedule(
        Step::new("charge-card")
            .args(json!(["ORD-48301", 7_700]))
            .queue("payments")
            .policy(Policy::retry(5, &[15, 300]).timeouts(60, 30)),
    );
    run.park().pass(millis(200));
    let thrown = Thrown::new(
        r"App\Payments\GatewayTimeout",
        "Gateway did not answer within 10 s",
    )
    .code(504)
    .at(
        "/srv/shop/app/Payments/Gateway.php",
        88,
        r"App\Activities\ChargeCardActivity",
    );
    run.begin(charge)
        .pass(secs(10))
        .fail_attempt(charge, &thrown);
    run.begin(charge)
        .pass(secs(10))
        .fail_attempt(charge, &thrown);
    Situation::of(
        "retrying-mid-backoff",
        "Two of five payment attempts failed; the third waits for its backoff to pass.",
        run,
        now,
    )
}

fn signal(now: DateTime<Utc>) -> Situation {
    let mut run = Start::new("order.fulfil", "ord-48290")
        .namespace("production")
        .business_key("ORD-48290")
        .queue("orders")
        .signals(&["picked"])
        .at(now - mins(41));
    run.run_step(
        Step::new("reserve-stock"),
        millis(520),
        &json!({"reserved": 4}),
    )
    .await_signal("picked", None);
    Situation::of(
        "waiting-signal",
        "The order waits for the warehouse to say that it was picked.",
        run,
        now,
    )
}

fn signal_timeout(now: DateTime<Utc>) -> Situation {
    let mut run = Start::new("order.payment-window", "pay-48295")
        .namespace("production")
        .business_key("ORD-48295")
        .queue("orders")
        .signals(&["payment-received"])
        .at(now - mins(18));
    run.await_signal("payment-received", Some(3_600));
    Situation::of(
        "waiting-signal-with-timeout",
        "The order waits for a payment, but not longer than an hour.",
        run,
        now,
    )
}

fn timer(now: DateTime<Utc>) -> Situation {
    let mut run = Start::new("subscription.renew", "sub-8012")
        .namespace("production")
        .business_key("SUB-8012")
        .queue("payments")
        .at(now - days(11));
    run.run_step(Step::new("charge-card"), secs(2), &json!({"amount": 2_900}))
        .sleep(2_592_000);
    Situation::of(
        "waiting-timer",
        "The subscription is paid and sleeps until the next month.",
        run,
        now,
    )
}

fn condition(now: DateTime<Utc>) -> Situation {
    let mut run = Start::new("order.consolidate", "cons-331")
        .queue("orders")
        .signals(&["parcel-arrived"])
        .at(now - hours(20));
    run.await_condition(None, None);
    Situation::of(
        "waiting-condition",
        "The shipment waits until all of its parcels have arrived.",
        run,
        now,
    )
}

fn condition_timeout(now: DateTime<Utc>) -> Situation {
    let mut run = Start::new("purchase.approve", "po-9920")
        .namespace("staging")
        .business_key("PO-9920")
        .signals(&["approved"])
        .at(now - hours(2));
    run.await_condition(Some("approval.complete"), Some(86_400));
    Situation::of(
        "waiting-condition-with-timeout",
        "A purchase order waits for two approvals, for one day at most.",
        run,
        now,
    )
}

fn child(now: DateTime<Utc>) -> Situation {
    let mut run = Start::new("order.return", "ret-5540")
        .business_key("RET-5540")
        .queue("orders")
        .at(now - mins(70));
    let (_, mut child) = run.start_child(
        Start::new("parcel.track", "track-5540")
            .queue("orders")
            .args(json!(["RR5540"])),
        None,
    );
    child.sleep(10_800);
    Situation::of(
        "waiting-child",
        "A return waits until its parcel, tracked by a child, has come back.",
        run,
        now,
    )
    .and(child, now)
}

fn activity(now: DateTime<Utc>) -> Situation {
    let mut run = Start::new("invoice.issue", "inv-2026-11-0431")
        .namespace("production")
        .business_key("INV-2026-11-0431")
        .queue("orders")
        .at(now - secs(4));
    run.schedule(Step::new("render-pdf").args(json!(["INV-2026-11-0431"])));
    run.pass_until(now - secs(1));
    run.open_task().last_dispatched_at = Some(now - secs(1));
    Situation::of(
        "waiting-activity",
        "The invoice's PDF is next in line for a worker.",
        run,
        now,
    )
}

fn update(now: DateTime<Utc>) -> Situation {
    let mut run = Start::new("cart.session", "cart-91c2")
        .queue("orders")
        .updates(&["add-item"])
        .signals(&["checkout"])
        .at(now - mins(9));
    run.await_signal("checkout", None);
    run.park().pass(mins(2));
    let first = run.update("add-item", &json!(["SKU-1", 2]));
    run.answer_update(first, &json!({"items": 2}));
    run.park().pass_until(now - secs(1));
    run.update("add-item", &json!(["SKU-9", 1]));
    Situation::of(
        "waiting-update",
        "A second item was put into the cart a moment ago and is about to be applied.",
        run,
        now,
    )
}

fn signal_accepted(now: DateTime<Utc>) -> Situation {
    let mut run = Start::new("order.fulfil", "ord-48299")
        .namespace("production")
        .business_key("ORD-48299")
        .queue("orders")
        .signals(&["picked"])
        .at(now - mins(14));
    run.await_signal("picked", None);
    run.park().pass_until(now - secs(1));
    run.signal("picked", &json!(["picker-12"]));
    Situation::of(
        "signal-accepted-task-ready",
        "The warehouse has just answered; a worker will apply the signal next.",
        run,
        now,
    )
}

fn duplicate_start(now: DateTime<Utc>) -> Situation {
    let mut run = Start::new("order.fulfil", "ord-48293")
        .namespace("production")
        .business_key("ORD-48293")
        .queue("orders")
        .signals(&["picked"])
        .at(now - mins(16));
    run.await_signal("picked", None);
    run.park().pass(mins(4)).reject_duplicate_start();
    Situation::of(
        "duplicate-start-rejected",
        "A second start of the same order was refused; the first one goes on.",
        run,
        now,
    )
}
