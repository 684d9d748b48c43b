//! Rows of unusual shape: long, large, foreign, hostile, from the future.

use chrono::{DateTime, Utc};
use serde_json::json;

use super::Situation;
use crate::demo::builder::{
    Policy, RunBuilder, ScheduleBuilder, Start, Step, Thrown, days, digest, hours, millis, mins,
    secs,
};
use crate::demo::rows::InsertRow;

/// Markup, quotes, a right-to-left override, control characters other than NUL, a line break.
pub const HOSTILE: &str =
    "<script>alert(1)</script>\"'>&amp;{{7*7}}\u{202e}txt.exe\u{202c}\u{1}\u{7}\u{1b}[31m\u{7f}\n";

pub(super) fn situations(now: DateTime<Utc>) -> Vec<Situation> {
    vec![
        long_history(now),
        unicode(now),
        huge_payload(now),
        hostile(now),
        unknown_values(now),
    ]
}

fn long_history(now: DateTime<Utc>) -> Situation {
    const EVENTS: usize = 5_000;
    let mut run = Start::new("mailbox.poll", "mailbox-newsletter")
        .queue("mail")
        .args(json!([{"cursor": 0}]))
        .at(now - days(4));
    // Nine events a round: fetch, note each of four mails, sleep.
    while run.history_len() + 10 <= EVENTS {
        run.run_step(
            Step::new("fetch-mail"),
            millis(300),
            &json!({"messages": 4}),
        );
        for mail in 0..4 {
            run.side_effect(&json!(format!("mail-{mail}")));
        }
        let nap = run.sleep(600);
        run.fire(nap);
    }
    while run.history_len() + 1 < EVENTS {
        run.side_effect(&json!("mail"));
    }
    run.sleep(86_400);
    Situation::of(
        "five-thousand-events",
        "A poller that has looked into its mailbox for days without a fresh start.",
        run,
        now,
    )
}

fn unicode(now: DateTime<Utc>) -> Situation {
    let mut run = Start::new("order.fulfil", "ord-48277")
        .class(r"App\Arbeitsabläufe\BestellungAusführen")
        .business_key("Bestellung №48277 · 注文")
        .label("città", "Forlì-Cesena")
        .label("emoji", "🧾📦🇩🇪👩‍👩‍👧")
        .memo("客户", json!("株式会社ひまわり"))
        .memo("нотатка", json!("Доставити до п’ятниці"))
        .queue("orders")
        .args(json!([
            "ORD-48277",
            "Ångström & Søn",
            "e\u{301}a\u{308}",
            "שלום",
            "مرحبا"
        ]))
        .signals(&["упаковано"])
        .at(now - mins(23));
    run.run_step(
        Step::new("reservér-lager"),
        millis(700),
        &json!({"resultat": "✓ færdig"}),
    )
    .await_signal("упаковано", None);
    Situation::of(
        "unicode",
        "An order with names in many scripts, from type to memo.",
        run,
        now,
    )
}

fn huge_payload(now: DateTime<Utc>) -> Situation {
    let line = "SKU-000000;Blue running shoe, size 42;EUR;89.90\n";
    let mut run = Start::new("catalogue.import", "import-supplier-ganymede")
        .namespace("staging")
        .queue("imports")
        .args(json!([line.repeat(10_000)]))
        .at(now - hours(2));
    run.run_step(Step::new("split-file"), secs(5), &json!({"parts": 40}))
        .succeed(&json!({"imported": 10_000}));
    Situation::of(
        "huge-payload",
        "An import that was handed half a megabyte of CSV as its argument.",
        run,
        now,
    )
}

fn hostile_start(instance: &str) -> Start {
    let text = |what: &str| format!("{HOSTILE}{what}");
    Start::new(&text("type"), instance)
        .class(&text("class"))
        .namespace(&text("ns"))
        .business_key(&text("key"))
        .label(&text("label"), &text("value"))
        .memo(&text("memo"), json!({text("k"): text("v")}))
        .attribute(&text("attribute"), "keyword", json!(text("keyword")))
        .attribute(&text("attribute-text"), "string", json!(text("string")))
        .queue(&text("queue"))
        .connection(&text("conn"))
        .compatibility(&text("build"))
        .signals(&[&text("signal")])
        .args(json!([text("argument"), {text("key"): text("value")}]))
}

fn hostile(now: DateTime<Utc>) -> Situation {
    let text = |what: &str| format!("{HOSTILE}{what}");
    let mut run = hostile_start("hostile-1").at(now - hours(12));
    run.run_step(
        Step::new(&text("activity"))
            .class(&text("activity-class"))
            .queue(&text("q")),
        millis(400),
        &json!(text("result")),
    );
    let step = run.schedule(Step::new(&text("activity-2")).policy(Policy::retry(2, &[1])));
    run.park().pass(millis(200));
    let thrown =
        Thrown::new(text("Exception"), text("message")).at(&text("file.php"), 1, &text("thrower"));
    for _ in 0..2 {
        run.begin_on(step, Some(&text("worker"))).pass(secs(1));
        run.fail_attempt(step, &thrown);
    }
    run.fail("application", &thrown, json!({}))
        .pass(mins(2))
        .archive(&text("archive reason"));

    let mut open = hostile_start("hostile-2").at(now - mins(11));
    open.await_condition(Some(&text("condition")), Some(7_200));
    open.await_signal(&text("signal"), None);
    open.park().pass(secs(5));
    open.signal(&text("other-signal"), &json!([text("argument")]));
    open.dispatch_fails(&text("dispatch error"))
        .claim_fails(&text("claim error"), secs(3));
    open.open_task().last_error = Some(text("last error"));

    let mut busy = hostile_start("hostile-3")
        .attribute(
            &text("attribute-list"),
            "keyword_list",
            json!([text("one"), text("two")]),
        )
        .at(now - mins(9));
    let (_, child) = busy.start_child(hostile_start("hostile-4"), None);
    busy.park().pass(secs(2));
    busy.message_in(&text("stream"), &text("sender"), &text("reference"), false);
    busy.message_out(&text("stream-out"), &text("receiver"), &text("reference"));
    busy.update(&text("update"), &json!([text("argument")]));
    let schedule = ScheduleBuilder::cron(
        &text("schedule"),
        &text("cron"),
        &text("type"),
        now - days(3),
        now + days(1),
    )
    .note(&text("note"));

    let mut situation = Situation::of(
        "hostile-text",
        "Markup, control characters and direction marks in every text an outsider can write.",
        run,
        now,
    )
    .and(open, now)
    .and(busy, now)
    .and(child, now)
    .and_rows(schedule.build())
    .and_rows(vec![hostile_worker(now)]);
    for row in &mut situation.rows {
        foul(row);
    }
    situation
}

/// A worker that says whatever it likes of itself, for a queue nobody else uses.
fn hostile_worker(now: DateTime<Utc>) -> InsertRow {
    let text = |what: &str| format!("{HOSTILE}{what}");
    InsertRow::new("workflow_worker_compatibility_heartbeats")
        .set("worker_id", text("worker"))
        .set("scope_key", digest(HOSTILE))
        .set("namespace", text("ns"))
        .set("host", text("host"))
        .set("process_id", text("pid"))
        .set("connection", text("conn"))
        .set("queue", text("queue"))
        .json("supported", Some(&json!([text("build")])))
        .time("recorded_at", now - secs(2))
        .time("expires_at", now + days(1))
        .stamps(now - hours(5), now - secs(2))
}

/// Puts hostile text into what no verb takes: the builder's own sentences, and what an
/// integrator may write about the caller of a command.
fn foul(row: &mut InsertRow) {
    let mut columns = vec!["summary", "wait_reason", "liveness_reason", "trace_preview"];
    if row.table == "workflow_commands" {
        columns.push("source");
        let label = format!("{HOSTILE}caller");
        let context = json!({
            "caller": {"type": "webhook", "label": label},
            "auth": {"status": label, "method": label},
            "request": {"method": "POST", "path": label, "user_agent": label},
            "principal": {"type": label, "id": label, "label": label},
        });
        row.replace("context", context.to_string());
    }
    if row.table == "activity_executions" {
        columns.push("connection");
    }
    if row.table.starts_with("workflow_schedule") {
        columns.extend(["namespace", "connection", "queue"]);
    }
    for column in columns {
        let clean = row.text(column).filter(|text| !text.contains(HOSTILE));
        if let Some(text) = clean.map(|text| format!("{HOSTILE}{text}")) {
            row.replace(column, text);
        }
    }
}

/// What a newer engine may write one day: shown as it is, never an error.
fn unknown_values(now: DateTime<Utc>) -> Situation {
    let mut run = Start::new("order.fulfil", "ord-48310")
        .namespace("production")
        .business_key("ORD-48310")
        .queue("orders")
        .at(now - mins(31));
    let step = run.schedule(Step::new("reserve-stock"));
    run.park().pass(millis(200));
    run.begin(step)
        .pass(secs(1))
        .complete(step, &json!({"reserved": 1}));
    run.sleep(7_200);
    Situation::told_by(
        "unknown-future-values",
        "A newer engine wrote a status, an event and a liveness this version does not know.",
        run,
        |run: RunBuilder| {
            let mut rows = run.build(now);
            for row in &mut rows {
                from_the_future(row);
            }
            rows
        },
    )
}

fn from_the_future(row: &mut InsertRow) {
    match row.table {
        "workflow_runs" => row.replace("status", "hibernating"),
        "workflow_run_summaries" => {
            row.replace("status", "hibernating");
            row.replace("liveness_state", "waiting_for_quorum");
            row.replace("wait_kind", "quorum");
            row.replace("repair_blocked_reason", "quorum_pending");
        }
        "workflow_tasks" if row.text("task_type") == Some("timer") => {
            row.replace("status", "parked");
        }
        "workflow_history_events" if row.text("event_type") == Some("TimerScheduled") => {
            row.replace("event_type", "QuorumProposed");
        }
        "workflow_run_timeline_entries" if row.text("type") == Some("TimerScheduled") => {
            row.replace("type", "QuorumProposed");
            row.replace("kind", "quorum");
        }
        _ => {}
    }
}
