//! Structural limits: one run for each kind the engine stores.

use chrono::{DateTime, Utc};
use serde_json::json;

use super::Situation;
use crate::demo::builder::{RunBuilder, Start, Step, Thrown, hours, limit_keys, millis, mins};

pub(super) fn situations(now: DateTime<Utc>) -> Vec<Situation> {
    let begin = |kind: &str, instance: &str, ago: i64| {
        Start::new(kind, instance)
            .namespace("production")
            .queue("imports")
            .at(now - hours(ago))
    };
    let mut all = vec![oversized_result(now), rejected_signal(now)];
    for case in CASES {
        let mut run = begin(case.workflow, case.instance, case.hours_ago);
        run.run_step(
            Step::new("plan-work"),
            millis(800),
            &json!({"planned": case.value}),
        );
        run.exceed(case.limit, case.value, case.configured, case.message);
        all.push(Situation::of(case.name, case.story, run, now));
    }
    all
}

struct Case {
    name: &'static str,
    story: &'static str,
    limit: &'static str,
    value: i64,
    configured: i64,
    message: &'static str,
    workflow: &'static str,
    instance: &'static str,
    hours_ago: i64,
}

const CASES: [Case; 9] = [
    Case {
        name: "limit-history-transaction-size",
        story: "One workflow task tried to write more events than a transaction may hold.",
        limit: "history_transaction_size",
        value: 5_120,
        configured: 5_000,
        message: "Structural limit exceeded: history transaction contains 5120 events (limit 5000).",
        workflow: "catalogue.reprice",
        instance: "reprice-all-2026-11",
        hours_ago: 13,
    },
    Case {
        name: "limit-search-attribute-size",
        story: "Search attributes grew past what one run may carry.",
        limit: "search_attribute_size",
        value: 52_014,
        configured: 40_960,
        message: "Structural limit exceeded: search attributes are 52014 bytes (limit 40960).",
        workflow: "order.fulfil",
        instance: "ord-47811",
        hours_ago: 15,
    },
    Case {
        name: "limit-memo-size",
        story: "A memo was used as a file store.",
        limit: "memo_size",
        value: 301_877,
        configured: 262_144,
        message: "Structural limit exceeded: memo is 301877 bytes (limit 262144).",
        workflow: "report.daily",
        instance: "report-2026-11-12",
        hours_ago: 17,
    },
    Case {
        name: "limit-pending-activity-count",
        story: "The import fanned out more activities than may be pending at once.",
        limit: "pending_activity_count",
        value: 2_000,
        configured: 2_000,
        message: "Structural limit exceeded: 2000 activities are pending (limit 2000).",
        workflow: "catalogue.import",
        instance: "import-supplier-cassini",
        hours_ago: 19,
    },
    Case {
        name: "limit-pending-child-count",
        story: "A campaign started more children than may be open at once.",
        limit: "pending_child_count",
        value: 1_000,
        configured: 1_000,
        message: "Structural limit exceeded: 1000 children are pending (limit 1000).",
        workflow: "campaign.send",
        instance: "campaign-black-friday",
        hours_ago: 21,
    },
    Case {
        name: "limit-pending-timer-count",
        story: "Reminders set one timer for each customer, and there are too many customers.",
        limit: "pending_timer_count",
        value: 2_000,
        configured: 2_000,
        message: "Structural limit exceeded: 2000 timers are pending (limit 2000).",
        workflow: "invoice.remind",
        instance: "rem-2026-11-all",
        hours_ago: 23,
    },
    Case {
        name: "limit-pending-signal-count",
        story: "Workflow code kept signalling a run that did not keep up.",
        limit: "pending_signal_count",
        value: 5_000,
        configured: 5_000,
        message: "Structural limit exceeded: 5000 signals are pending (limit 5000).",
        workflow: "stock.mirror",
        instance: "stock-mirror-berlin",
        hours_ago: 25,
    },
    Case {
        name: "limit-pending-update-count",
        story: "Too many unanswered updates piled up on one cart.",
        limit: "pending_update_count",
        value: 500,
        configured: 500,
        message: "Structural limit exceeded: 500 updates are pending (limit 500).",
        workflow: "cart.session",
        instance: "cart-7f3a",
        hours_ago: 27,
    },
    Case {
        name: "limit-command-batch-size",
        story: "One step asked for more commands than a batch may hold.",
        limit: "command_batch_size",
        value: 1_240,
        configured: 1_000,
        message: "Structural limit exceeded: command batch contains 1240 items (limit 1000).",
        workflow: "catalogue.reprice",
        instance: "reprice-shoes",
        hours_ago: 29,
    },
];

/// The tenth kind is met by an activity: its result is refused, and the run ends by it.
fn oversized_result(now: DateTime<Utc>) -> Situation {
    let mut run = Start::new("report.monthly", "report-2026-09-raw")
        .namespace("production")
        .queue("reports")
        .at(now - hours(10));
    let step = run.schedule(Step::new("export-rows"));
    run.park().pass(millis(250));
    run.begin(step).pass(mins(2));
    let message = "Structural limit exceeded: payload is 3145728 bytes (limit 2097152).";
    let thrown = Thrown::new(
        r"Workflow\V2\Exceptions\StructuralLimitExceededException",
        message,
    )
    .permanent();
    let keys = limit_keys("payload_size", 3_145_728, 2_097_152);
    run.fail_activity(step, &thrown, "structural_limit", keys);
    run.exceed("payload_size", 3_145_728, 2_097_152, message);
    Situation::of(
        "limit-payload-size",
        "An activity returned the whole export instead of a reference to it.",
        run,
        now,
    )
}

/// Pending signals are limited at intake: the run lives, the command is refused.
fn rejected_signal(now: DateTime<Utc>) -> Situation {
    let mut run: RunBuilder = Start::new("stock.mirror", "stock-mirror-lisbon")
        .namespace("production")
        .queue("imports")
        .signals(&["stock-changed"])
        .at(now - mins(50));
    run.await_signal("stock-changed", None);
    run.park().pass(mins(31));
    run.reject_signal("stock-changed", "structural_limit_exceeded", None);
    Situation::of(
        "signal-rejected-by-limit",
        "A signal was refused because too many were pending; the run itself is fine.",
        run,
        now,
    )
}
