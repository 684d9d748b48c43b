//! One run by its address: found or not, whatever the id is made of, in a bounded answer and a
//! constant number of statements, and no number in it loses a digit.

use plimsoll::{
    db::{Val, recorded},
    demo::{rows::InsertRow, write::write},
    durable::{
        payload::avro,
        store::snapshot::{RunSnapshot, TimelineCache},
    },
};
use serde_json::{Value, json};

use crate::{
    rig::{TestDb, on, on_every_database},
    shop::{fill, now, server, situation},
};

/// A run that was started and went its way.
const PLAIN: &str = "search-attributes-and-memo";

/// What reading everything about one run may cost.
const STATEMENTS: usize = 20;

on_every_database! {
    async fn an_id_that_nothing_has_is_not_found_whatever_it_is_made_of(db: TestDb) {
        fill(&db).await;
        let server = server(&db.read_only);
        let long = "x".repeat(7_000);
        for id in ["nobody", "a%00b", "%00", "a%2Fb", "%F0%9F%92%A9", "%27%20or%201%3D1", "%25", long.as_str()] {
            for path in [
                format!("/waterline/api/instances/{id}"),
                format!("/waterline/api/instances/{id}/runs/{id}"),
                format!("/waterline/api/instances/ord-48288/runs/{id}"),
                format!("/waterline/api/flows/{id}"),
                format!("/waterline/api/flows/{id}/history-export"),
            ] {
                let response = server.get(&path).await;
                assert_eq!(response.status_code(), 404, "{path}: {}", response.text());
                assert_eq!(response.json::<Value>()["error"], "not_found", "{path}");
            }
            for path in [
                format!("/waterline/instances/{id}"),
                format!("/waterline/instances/ord-48288/runs/{id}"),
                format!("/waterline/instances/{id}/runs/{id}/history"),
            ] {
                assert_eq!(server.get(&path).await.status_code(), 404, "{path}");
            }
        }
    }

    async fn a_run_is_read_in_at_most_twenty_statements_whatever_its_size(db: TestDb) {
        let situations = fill(&db).await;
        let mut snapshot = db.read_only.snapshot().await.unwrap();
        for situation in &situations {
            for timeline in [TimelineCache::Presence, TimelineCache::Whole] {
                let read = RunSnapshot::load(&mut snapshot, &situation.run_id, timeline);
                let (run, sent) = recorded(read).await;
                assert!(run.unwrap().is_some(), "{}", situation.name);
                assert!(sent.len() <= STATEMENTS, "{}: {} statements", situation.name, sent.len());
            }
        }
        snapshot.end().await;
    }

    async fn no_number_loses_a_digit(db: TestDb) {
        let mut plain = situation(PLAIN, now());
        let large = json!([i64::MAX, i64::MIN, 9_007_199_254_740_993_i64, 0.1, 1e22]);
        for row in plain.rows.iter_mut().filter(|row| row.table == "workflow_runs") {
            row.replace("arguments", avro::encode(&(&large).into()));
        }
        let address = format!("/waterline/api/flows/{}", plain.run_id);
        write(&db.writable, plain.rows, |_| ()).await.unwrap();
        let document: Value = server(&db.read_only).get(&address).await.json();
        assert_eq!(document["arguments"], large);
    }
}

/// When two runs were linked is the one thing the engine does not compare before it hands out its
/// stored lineage.
#[tokio::test]
async fn a_stored_lineage_that_is_up_to_date_says_when_runs_were_linked() {
    let moment = "2026-01-02T03:04:05.000006Z";
    for (linked_at, told) in [
        (Val::Null, Value::Null),
        ("2026-01-02 03:04:05.000006".into(), json!(moment)),
    ] {
        on(plimsoll::db::Dialect::Sqlite, async move |db| {
            let mut parent = situation("parent-with-ten-children", now());
            for row in &mut parent.rows {
                if row.table == "workflow_run_lineage_entries" {
                    row.replace("linked_at", linked_at.clone());
                }
            }
            let address = format!("/waterline/api/flows/{}", parent.run_id);
            write(&db.writable, parent.rows, |_| ()).await.unwrap();
            let server = server(&db.read_only);
            let detail: Value = server.get(&address).await.json();
            let source = &detail["lineage_projection_source"];
            assert_eq!(source, "workflow_run_lineage_entries");
            assert_eq!(detail["continuedWorkflows"][0]["created_at"], told);
            let export = format!("{address}/history-export");
            let bundle: Value = server.get(&export).await.json();
            assert_eq!(bundle["links"]["children"][0]["created_at"], told);
        })
        .await;
    }
}

#[tokio::test]
async fn a_window_of_the_timeline_is_given_as_asked() {
    on(plimsoll::db::Dialect::Sqlite, async |db| {
        let long = situation("five-thousand-events", now());
        let address = format!("/waterline/api/flows/{}", long.run_id);
        write(&db.writable, long.rows, |_| ()).await.unwrap();
        let server = server(&db.read_only);
        let all = {
            let document: Value = server.get(&address).await.json();
            usize::try_from(document["timeline_total_count"].as_u64().unwrap()).unwrap()
        };
        assert!(all > 1_000);
        for (asked, shown) in [
            ("", 200),
            ("?history_limit=50", 50),
            ("?history_limit=1000", 1_000),
            ("?history_limit=all", all),
        ] {
            let document: Value = server.get(&format!("{address}{asked}")).await.json();
            let timeline = document["timeline"].as_array().unwrap();
            assert_eq!(timeline.len(), shown, "{asked}");
            assert_eq!(timeline.last().unwrap()["sequence"], all, "{asked}");
            assert_eq!(document["timeline_total_count"], all, "{asked}");
        }
        for refused in ["49", "1001", "0", "-1", "", "everything", "50.5", "ALL"] {
            let path = format!("{address}?history_limit={refused}");
            let response = server.get(&path).await;
            assert_eq!(response.status_code(), 422, "{path}");
            let told = &response.json::<Value>()["errors"]["history_limit"];
            assert!(told.is_array(), "{path}");
        }
    })
    .await;
}

/// A statement takes so many values: 32,766 with SQLite, twice as many elsewhere.
const MORE_THAN_A_STATEMENT_TAKES: usize = 33_000;

#[tokio::test]
async fn a_run_of_very_many_children_is_read() {
    on(plimsoll::db::Dialect::Sqlite, async |db| {
        let mut plain = situation(PLAIN, now());
        let first = plain
            .rows
            .iter()
            .find(|row| row.table == EVENTS)
            .unwrap()
            .clone();
        let last = plain.rows.iter().filter(|row| row.table == EVENTS).count();
        let called = (1..=MORE_THAN_A_STATEMENT_TAKES).map(|n| called(&first, n, last));
        plain.rows.extend(called);
        write(&db.writable, plain.rows, |_| ()).await.unwrap();
        let mut snapshot = db.read_only.snapshot().await.unwrap();
        let run = RunSnapshot::load(&mut snapshot, &plain.run_id, TimelineCache::Presence).await;
        snapshot.end().await;
        let events = run.unwrap().expect("the run").events.len();
        assert!(events > MORE_THAN_A_STATEMENT_TAKES);
    })
    .await;
}

const EVENTS: &str = "workflow_history_events";

/// The event that calls the `n`th child.
fn called(event: &InsertRow, n: usize, after: usize) -> InsertRow {
    let mut event = event.clone();
    let child = json!({
        "sequence": 100 + n,
        "child_call_id": format!("call-{n}"),
        "child_workflow_instance_id": format!("child-{n}"),
        "child_workflow_run_id": format!("child-run-{n}"),
    });
    event.replace("id", format!("event-of-child-{n}"));
    event.replace("sequence", i64::try_from(after + n).unwrap());
    event.replace("event_type", "ChildWorkflowScheduled");
    event.replace("payload", child.to_string());
    event
}

#[tokio::test]
async fn a_script_learns_whether_a_repair_would_be_done() {
    on(plimsoll::db::Dialect::Sqlite, async |db| {
        let server = server(&db.read_only);
        for (name, offered, code, not_before) in [
            ("signal-task-lost", true, "repair_needed", None),
            (
                "repair-backoff",
                false,
                "dispatch_backoff",
                Some("2026-11-15T12:00:37Z"),
            ),
            ("waiting-signal", false, "repair_not_needed", None),
            ("completed", false, "run_closed", None),
        ] {
            let situation = situation(name, now());
            let address = format!("/waterline/api/flows/{}", situation.run_id);
            write(&db.writable, situation.rows, |_| ()).await.unwrap();
            let detail: Value = server.get(&address).await.json();
            let repair = &detail["plimsoll"]["repair"];
            assert_eq!(repair["offered"], offered, "{name}");
            assert_eq!(repair["code"], code, "{name}");
            assert_eq!(repair["not_before"].as_str(), not_before, "{name}");
        }
    })
    .await;
}
