//! Tasks that do not reach a worker, or never come back from one.

use chrono::{DateTime, Utc};
use serde_json::json;

use super::Situation;
use crate::demo::builder::{RunBuilder, Start, Step, millis, mins, secs};

pub(super) fn situations(now: DateTime<Utc>) -> Vec<Situation> {
    vec![
        lease_workflow(now),
        lease_activity(now),
        lease_timer(now),
        dispatch_failed(now),
        dispatch_overdue(now),
        never_dispatched(now),
        repair_backoff(now),
        claim_failed(now),
        incompatible(now),
        timer_overdue(now),
        deadline_passed(now),
    ]
}

fn invoice(id: &str, at: DateTime<Utc>) -> RunBuilder {
    Start::new("invoice.issue", format!("inv-2026-11-{id}"))
        .namespace("production")
        .business_key(&format!("INV-2026-11-{id}"))
        .queue("orders")
        .args(json!(["cust-118", "2026-11"]))
        .at(at)
}

fn lease_workflow(now: DateTime<Utc>) -> Situation {
    let mut run = invoice("0451", now - mins(16));
    run.work();
    run.leave_leased();
    Situation::of(
        "lease-expired-workflow",
        "A worker took the invoice and died; its lease ran out minutes ago.",
        run,
        now,
    )
}

fn lease_activity(now: DateTime<Utc>) -> Situation {
    let mut run = invoice("0452", now - mins(15));
    let render = run.schedule(Step::new("render-pdf"));
    run.park()
        .pass(millis(300))
        .begin_on(render, Some("pdf-worker-2"));
    Situation::of(
        "lease-expired-activity",
        "A worker started to render a PDF and was never heard of again.",
        run,
        now,
    )
}

fn lease_timer(now: DateTime<Utc>) -> Situation {
    let mut run = Start::new("mailbox.poll", "mailbox-sales")
        .queue("mail")
        .at(now - mins(40));
    let nap = run.sleep(1_200);
    run.lease_timer(nap);
    Situation::of(
        "lease-expired-timer",
        "A worker was about to fire the poller's timer when it died.",
        run,
        now,
    )
}

fn dispatch_failed(now: DateTime<Utc>) -> Situation {
    let mut run = invoice("0453", now - mins(6));
    run.dispatch_fails("Connection refused [tcp://redis.shop.internal:6379]");
    Situation::of(
        "dispatch-failed",
        "The queue refused the task: Redis was not reachable.",
        run,
        now,
    )
}

fn dispatch_overdue(now: DateTime<Utc>) -> Situation {
    let run = invoice("0454", now - mins(5));
    Situation::of(
        "dispatch-overdue",
        "The task was published five minutes ago and no worker has taken it.",
        run,
        now,
    )
}

fn never_dispatched(now: DateTime<Utc>) -> Situation {
    let mut run = invoice("0455", now - mins(7));
    run.never_dispatched();
    Situation::of(
        "dispatch-never",
        "The process died between commit and publish; the task was never sent.",
        run,
        now,
    )
}

fn repair_backoff(now: DateTime<Utc>) -> Situation {
    let mut run = invoice("0456", now - mins(4));
    run.pass_until(now - secs(11));
    run.dispatch_fails("Connection refused [tcp://redis.shop.internal:6379]")
        .backs_off(5, now + secs(37));
    Situation::of(
        "repair-backoff",
        "Five automatic repairs failed; the sixth waits for its backoff.",
        run,
        now,
    )
}

fn claim_failed(now: DateTime<Utc>) -> Situation {
    let mut run = Start::new("report.daily", "report-2026-11-15")
        .queue("reports")
        .connection("sync")
        .at(now - mins(3));
    run.pass(secs(2)).claim_fails(
        "The sync queue connection runs jobs inline and cannot hold a lease.",
        secs(3),
    );
    Situation::of(
        "claim-failed",
        "A worker refused the task: its queue connection cannot hold a lease.",
        run,
        now,
    )
}

fn incompatible(now: DateTime<Utc>) -> Situation {
    let run = Start::new("subscription.renew", "sub-7791")
        .namespace("production")
        .business_key("SUB-7791")
        .queue("payments")
        .compatibility("build-2026.03")
        .at(now - mins(47));
    Situation::of(
        "waiting-compatible-worker",
        "The run is pinned to a build that no live worker supports any more.",
        run,
        now,
    )
}

fn timer_overdue(now: DateTime<Utc>) -> Situation {
    let mut run = Start::new("mailbox.poll", "mailbox-press")
        .queue("mail")
        .at(now - mins(28));
    run.sleep(1_500);
    Situation::of(
        "timer-overdue",
        "The poller's timer was due minutes ago, but no worker has taken its task.",
        run,
        now,
    )
}

fn deadline_passed(now: DateTime<Utc>) -> Situation {
    let mut run = Start::new("order.payment-window", "pay-48281")
        .namespace("production")
        .business_key("ORD-48281")
        .queue("orders")
        .run_timeout(1_800)
        .at(now - mins(36));
    run.await_signal("payment-received", None);
    Situation::of(
        "run-deadline-passed",
        "The run's deadline has passed, and nothing has enforced it yet.",
        run,
        now,
    )
}
