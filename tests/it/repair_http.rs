//! `POST …/repair` as scripts use it.

use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum_test::{TestResponse, TestServer};
use plimsoll::{
    clock::Clock,
    demo::{rows::InsertRow, write::write},
    durable::repair::Mode,
    web::{
        routes,
        state::{App, Repairs, Settings},
    },
};
use serde_json::{Value, json};

use crate::{
    rig::{TestDb, on_every_database},
    row_diff,
    shop::{self, now},
};

/// The product with the right to repair.
pub fn server(db: &TestDb, mode: Mode) -> TestServer {
    let settings = Settings {
        clock: Clock::Frozen(now()),
        db: Some(db.read_only.clone()),
        repairs: Some(Repairs {
            db: db.writable.clone(),
            mode,
        }),
        ..Settings::default()
    };
    TestServer::new(routes::router(App::new(settings)))
}

async fn post(
    server: &TestServer,
    path: &str,
    headers: &[(&'static str, &'static str)],
    body: &Value,
) -> TestResponse {
    let mut request = server.post(&format!("/waterline/api{path}")).json(body);
    for (name, value) in headers {
        request = request.add_header(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
    }
    request.await
}

const KEYS: [&str; 14] = [
    "outcome",
    "workflow_id",
    "run_id",
    "requested_run_id",
    "resolved_run_id",
    "command_id",
    "command_sequence",
    "target_scope",
    "workflow_type",
    "command_status",
    "command_source",
    "reason",
    "rejection_reason",
    "validation_errors",
];

/// A current run that is closed.
async fn closed_run(db: &TestDb) -> String {
    let dump = row_diff::dump(&db.read_only).await;
    let current = |id: &str| {
        let summary = dump["workflow_run_summaries"].get(id);
        summary.is_some_and(|row| row["is_current_run"] == 1)
    };
    let mut runs = dump["workflow_runs"].iter();
    let closed = runs.find(|(id, row)| row["status"] == "completed" && current(id));
    closed.expect("in the catalogue").0.clone()
}

on_every_database! {
    async fn a_script_repairs_a_run_and_is_told_when_there_is_nothing_to_repair(db: TestDb) {
        let situations = shop::fill(&db).await;
        let server = server(&db, Mode::Direct);
        let find = |name: &str| situations.iter().find(|s| s.name == name).expect("in the catalogue");

        let lost = find("activity-task-lost");
        let path = format!("/instances/{}/runs/{}/repair", lost.instance_id, lost.run_id);
        let headers = [("x-request-id", "req-7"), ("x-correlation-id", "corr-9")];
        let response = post(&server, &path, &headers, &json!({"reason": " paged at 3 a.m. "})).await;
        assert_eq!(response.status_code(), StatusCode::OK, "{}", response.text());
        let reply: Value = response.json();
        let keys: Vec<&str> = reply.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys[..14], KEYS);
        assert_eq!(reply["outcome"], "repair_dispatched");
        assert_eq!(reply["target_scope"], "run");
        assert_eq!(reply["requested_run_id"], lost.run_id.as_str());
        assert_eq!(reply["command_source"], "plimsoll");
        assert_eq!(reply["reason"], "paged at 3 a.m.");
        let dump = row_diff::dump_run(&db.read_only, &lost.run_id).await;
        let command = &dump["workflow_commands"][reply["command_id"].as_str().unwrap()];
        assert_eq!(command["payload"]["reason"], "paged at 3 a.m.");
        assert_eq!(command["context"]["request"]["request_id"], "req-7");
        assert_eq!(command["context"]["request"]["correlation_id"], "corr-9");
        assert_eq!(command["source"], "plimsoll");

        let again = post(&server, &path, &[], &json!({})).await;
        assert_eq!(again.status_code(), StatusCode::CONFLICT);
        let reply: Value = again.json();
        assert_eq!(reply["rejection_reason"], "repair_not_needed");
        assert_eq!(reply["command_id"], Value::Null);
        assert_eq!(row_diff::dump_run(&db.read_only, &lost.run_id).await, dump, "a refusal leaves no command");

        // By instance, and by whatever id is at hand.
        let lost = find("signal-task-lost");
        let by_instance = post(&server, &format!("/instances/{}/repair", lost.instance_id), &[], &json!({})).await;
        let reply: Value = by_instance.json();
        assert_eq!((by_instance.status_code(), &reply["target_scope"], &reply["requested_run_id"]), (StatusCode::OK, &json!("instance"), &Value::Null));
        let lost = find("timer-row-and-task-lost");
        assert_eq!(post(&server, &format!("/flows/{}/repair", lost.run_id), &[], &json!({})).await.status_code(), StatusCode::OK);

        let blocked = find("replay-blocked-failure-resolution");
        let reply: Value = post(&server, &format!("/flows/{}/repair", blocked.run_id), &[], &json!({})).await.json();
        assert!(reply["plimsoll"]["needs"][0].as_str().unwrap().contains(r"App\Legacy\OrderRejected"), "{reply}");

        let closed = closed_run(&db).await;
        let turned_away = post(&server, &format!("/flows/{closed}/repair"), &[], &json!({})).await;
        assert_eq!(turned_away.status_code(), StatusCode::CONFLICT);
        let reply: Value = turned_away.json();
        assert_eq!((&reply["outcome"], &reply["rejection_reason"]), (&json!("rejected_not_active"), &json!("run_not_active")));
        assert_eq!((&reply["resolved_run_id"], &reply["plimsoll"]["code"]), (&json!(closed), &json!("run_closed")));

        let reserved = InsertRow::new("workflow_instances").set("id", "order-held").set("workflow_type", "order.fulfil").set("workflow_class", "App\\Order").stamps(now(), now());
        write(&db.writable, vec![reserved], |_| ()).await.expect("it is written");
        for path in ["/instances/order-held/repair", "/flows/order-held/repair"] {
            let not_started = post(&server, path, &[], &json!({})).await;
            assert_eq!(not_started.status_code(), StatusCode::CONFLICT);
            let reply: Value = not_started.json();
            let keys: Vec<&str> = reply.as_object().unwrap().keys().map(String::as_str).collect();
            assert_eq!(keys[..14], KEYS);
            assert_eq!((&reply["outcome"], &reply["rejection_reason"]), (&json!("rejected_not_started"), &json!("instance_not_started")));
            assert_eq!((&reply["workflow_type"], &reply["run_id"]), (&json!("order.fulfil"), &Value::Null));
        }

        let nowhere = post(&server, "/instances/nobody/repair", &[], &json!({})).await;
        assert_eq!(nowhere.status_code(), StatusCode::NOT_FOUND);
        let strange = post(&server, &path, &[], &json!({"force": true})).await;
        assert_eq!(strange.status_code(), StatusCode::BAD_REQUEST);
        let stale = find("update-task-lost");
        let path = format!("/instances/{}/repair", stale.instance_id);
        let other = post(&server, &path, &[], &json!({"digest": "of another plan"})).await;
        assert_eq!(other.status_code(), StatusCode::CONFLICT);
        let reply: Value = other.json();
        assert_eq!((&reply["outcome"], &reply["rejection_reason"]), (&json!("repair_refused"), &json!("state_changed")));
        let waits = find("repair-backoff");
        let reply: Value = post(&server, &format!("/flows/{}/repair", waits.run_id), &[], &json!({})).await.json();
        assert_eq!((&reply["outcome"], &reply["rejection_reason"]), (&json!("repair_refused"), &json!("dispatch_backoff")));
    }

    async fn a_script_nudges_a_run_once_and_is_told_why_others_are_not(db: TestDb) {
        let situations = shop::fill_short(&db).await;
        let server = server(&db, Mode::Nudge);
        let find = |name: &str| situations.iter().find(|s| s.name == name).expect("in the catalogue");
        let stale = find("stale-summary");
        let path = format!("/instances/{}/runs/{}/repair", stale.instance_id, stale.run_id);
        let before = row_diff::dump(&db.read_only).await;
        let response = post(&server, &path, &[], &json!({"reason": "the cache was lost"})).await;
        assert_eq!(response.status_code(), StatusCode::OK, "{}", response.text());
        let reply: Value = response.json();
        let keys: Vec<&str> = reply.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys[..14], KEYS);
        assert_eq!((&reply["outcome"], &reply["reason"]), (&json!("repair_nudged"), &json!("the cache was lost")));
        for key in ["command_id", "command_sequence", "command_status", "command_source", "rejection_reason"] {
            assert_eq!(reply[key], Value::Null, "{key}: no command records it");
        }
        assert_eq!((&reply["plimsoll"]["kind"], &reply["plimsoll"]["task_id"]), (&json!("missing_activity_task"), &Value::Null));
        let after = row_diff::dump(&db.read_only).await;
        let diff = row_diff::diff(&before, &after);
        let changed = &diff["workflow_run_summaries"]["changed"][stale.run_id.as_str()];
        let columns: Vec<&String> = changed.as_object().expect("columns").keys().collect();
        assert_eq!(columns, ["liveness_state", "next_task_id"], "{diff}");
        assert_eq!(diff.as_object().unwrap().len(), 1, "{diff}");

        // Its summary says all there is to say.
        let refused = async |run_id: &str| {
            let response = post(&server, &format!("/flows/{run_id}/repair"), &[], &json!({})).await;
            assert_eq!(response.status_code(), StatusCode::CONFLICT, "{}", response.text());
            let reply: Value = response.json();
            assert_eq!((&reply["outcome"], &reply["rejection_reason"]), (&json!("repair_refused"), &json!("nothing_to_nudge")));
            reply["message"].as_str().expect("words").to_owned()
        };
        for run in [stale, find("lease-expired-workflow")] {
            let message = refused(&run.run_id).await;
            assert!(message.contains("sees this by itself"), "{message}");
        }
        let blocked = refused(&find("replay-blocked-history-shape").run_id).await;
        assert!(blocked.contains("does not clear a replay block"), "{blocked}");
        assert_eq!(row_diff::dump(&db.read_only).await, after);
        let lost = find("activity-task-lost");
        let mut tx = db.writable.write().await.unwrap();
        let mut q = tx.statement();
        q.push("delete from {workflow_run_summaries} where id = ").bind(&lost.run_id);
        tx.execute(q).await.unwrap();
        tx.commit().await.unwrap();
        let unseen = refused(&lost.run_id).await;
        assert!(unseen.contains("no stored summary"), "{unseen}");
    }

    async fn who_may_not_write_changes_nothing(db: TestDb) {
        let situations = shop::fill(&db).await;
        let lost = situations.iter().find(|s| s.name == "activity-task-lost").expect("in the catalogue");
        let path = format!("/instances/{}/runs/{}/repair", lost.instance_id, lost.run_id);
        let before = row_diff::dump_run(&db.read_only, &lost.run_id).await;
        let reading = shop::server(&db.read_only);
        let refused = post(&reading, &path, &[], &json!({})).await;
        assert_eq!(refused.status_code(), StatusCode::FORBIDDEN);
        assert!(refused.text().contains("--allow-repair"), "{}", refused.text());

        let writing = server(&db, Mode::Direct);
        for headers in [
            &[("sec-fetch-site", "cross-site")][..],
            &[("sec-fetch-site", "same-site")],
            &[("origin", "https://evil.example")],
            &[("origin", "null")],
            // A name of another's that leads to us.
            &[("host", "evil.example:7420"), ("origin", "http://evil.example:7420"), ("sec-fetch-site", "same-origin")],
        ] {
            let refused = post(&writing, &path, headers, &json!({})).await;
            assert_eq!(refused.status_code(), StatusCode::FORBIDDEN, "{headers:?}");
        }
        let form = writing.post(&format!("/waterline/api{path}")).form(&[("reason", "x")]).await;
        assert_eq!(form.status_code(), StatusCode::BAD_REQUEST);
        let plain = writing.post(&format!("/waterline/api{path}")).text("{}").await;
        assert_eq!(plain.status_code(), StatusCode::BAD_REQUEST);
        let read = writing.get(&format!("/waterline/api{path}")).await;
        assert_eq!(read.status_code(), StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(row_diff::dump_run(&db.read_only, &lost.run_id).await, before);
    }
}
