//! What runs tell about themselves, and who starts them.

use chrono::{DateTime, Utc};
use serde_json::json;

use super::Situation;
use crate::demo::builder::{
    RunBuilder, ScheduleBuilder, Start, Step, days, hours, millis, mins, secs,
};

pub(super) fn situations(now: DateTime<Utc>) -> Vec<Situation> {
    vec![
        schedules(now),
        attributes(now),
        messages(now),
        archived(now),
        old(now),
    ]
}

fn schedules(now: DateTime<Utc>) -> Situation {
    let mut nightly = ScheduleBuilder::cron(
        "nightly-report",
        "0 2 * * *",
        "report.daily",
        now - days(30),
        now - hours(8),
    )
    .note("Revenue by country, for the morning meeting");
    let fired = now - hours(8);
    let lag = millis(620);
    let instance = format!("schedule:nightly-report:{}", fired.timestamp());
    let mut run = Start::new("report.daily", instance)
        .queue("reports")
        .label("trigger", "schedule")
        .at(fired);
    run.triggered_by(&nightly, lag)
        .run_step(Step::new("build-report"), mins(4), &json!({"rows": 18_112}))
        .succeed(&json!({"file": "s3://reports/daily.pdf"}));
    nightly.triggered(&run, lag, now + hours(16));
    let mut poll = ScheduleBuilder::cron(
        "poll-suppliers",
        "*/15 * * * *",
        "catalogue.import",
        now - days(12),
        now + mins(9),
    );
    poll.skipped("overlap_policy_skip", now - mins(6));
    let mut paused = ScheduleBuilder::cron(
        "reprice-hourly",
        "0 * * * *",
        "catalogue.reprice",
        now - days(40),
        now + mins(25),
    );
    paused.paused("Stopped while prices are migrated", now - days(1));
    let mut gone = ScheduleBuilder::cron(
        "old-newsletter",
        "30 7 * * 1",
        "campaign.send",
        now - days(90),
        now - days(5),
    );
    gone.deleted(now - days(7));
    Situation::of(
        "schedules",
        "A nightly report started by its schedule; three more schedules skip, rest or are gone.",
        run,
        now,
    )
    .and_rows(nightly.build())
    .and_rows(poll.build())
    .and_rows(paused.build())
    .and_rows(gone.build())
}

fn attributes(now: DateTime<Utc>) -> Situation {
    let mut run = Start::new("order.fulfil", "ord-48288")
        .namespace("production")
        .business_key("ORD-48288")
        .label("region", "eu")
        .label("tier", "gold")
        .memo("customer", json!("Nordwind GmbH"))
        .memo("items", json!(3))
        .attribute("priority", "int", json!(2))
        .attribute("total", "float", json!(249.9))
        .attribute("express", "bool", json!(true))
        .attribute("tags", "keyword_list", json!(["fragile", "gift"]))
        .attribute(
            "promised_at",
            "datetime",
            json!((now + days(2)).to_rfc3339()),
        )
        .attribute(
            "remark",
            "string",
            json!("Leave with the neighbour if nobody answers"),
        )
        .queue("orders")
        .signals(&["picked"])
        .at(now - mins(34));
    run.upsert_attributes(&[("stage", "keyword", json!("picking"))])
        .upsert_memo(&[
            ("picker", json!({"name": "Ines", "zone": "B4"})),
            ("items", json!(4)),
        ])
        .version("shipping-quote-v2", 2)
        .await_signal("picked", None);
    Situation::of(
        "search-attributes-and-memo",
        "An order with search attributes of every type, and a memo that changed on the way.",
        run,
        now,
    )
}

fn messages(now: DateTime<Utc>) -> Situation {
    let mut run = Start::new("chat.assist", "chat-20771")
        .queue("mail")
        .signals(&["close"])
        .at(now - mins(19));
    run.message_in("chat", "widget-20771", "payload:hello", true);
    run.pass(secs(2));
    run.message_out("chat.replies", "widget-20771", "payload:hello-back");
    run.await_signal("close", None);
    run.park().pass(mins(3));
    run.message_in("chat", "widget-20771", "payload:where-is-my-order", false);
    Situation::of(
        "messages",
        "A support chat: one message read, one answered, one still unread.",
        run,
        now,
    )
}

fn closed_order(id: &str, at: DateTime<Utc>) -> RunBuilder {
    let mut run = Start::new("order.fulfil", format!("ord-{id}"))
        .namespace("production")
        .business_key(&format!("ORD-{id}"))
        .queue("orders")
        .at(at);
    run.run_step(
        Step::new("reserve-stock"),
        millis(450),
        &json!({"reserved": 1}),
    )
    .run_step(
        Step::new("charge-card").queue("payments"),
        secs(2),
        &json!({"amount": 1_200}),
    )
    .succeed(&json!({"tracking": "1Z000"}));
    run
}

fn archived(now: DateTime<Utc>) -> Situation {
    let mut run = closed_order("47120", now - days(6));
    run.pass(days(1)).archive("Kept for the auditors");
    Situation::of(
        "archived",
        "A finished order that an operator put away for the auditors.",
        run,
        now,
    )
}

fn old(now: DateTime<Utc>) -> Situation {
    let run = closed_order("39004", now - days(47));
    Situation::of(
        "older-than-thirty-days",
        "An order from last month, still within reach of a search.",
        run,
        now,
    )
}
