//! A run's history, a window at a time: what is shown, what a filter finds, how far it looks, and
//! that every statement walks the index on run and sequence.

use chrono::{DateTime, TimeDelta, Utc};
use plimsoll::{
    db::{Db, recorded},
    demo::{rows::InsertRow, write::write},
    durable::{
        projection::timeline::Kind,
        store::history::{EventFilter, EventWindow, Place, WINDOW, event, sequence_at, window},
    },
};
use serde_json::json;

use crate::{
    list_plans::{explain, script},
    rig::{TestDb, on_every_database},
    shop::now,
};

const RUN: &str = "01history0000000000000long";
const EVENTS: i64 = 12_000;

/// A long history: one failure near its beginning, one long payload, a marker now and then.
async fn write_history(db: &TestDb) {
    let mut rows = Vec::new();
    for sequence in 1..=EVENTS {
        let (event_type, payload) = match sequence {
            40 => (
                "ActivityFailed",
                json!({"failure_id": "f", "message": "the gateway \u{fc}ber/limit"}),
            ),
            90 => ("SideEffectRecorded", json!({"result": "x".repeat(100_000)})),
            7_000 => ("NewerEngineDidThis", json!({"what": "unknown"})),
            _ if sequence % 100 == 0 => ("TimerFired", json!({"timer_id": format!("t{sequence}")})),
            _ => ("SideEffectRecorded", json!({"sequence": sequence})),
        };
        rows.push(event_row(RUN, sequence, event_type, &payload.to_string()));
    }
    // Another run of many events must not be looked at.
    for sequence in 1..=2_000 {
        rows.push(event_row(
            "01history000000000000other",
            sequence,
            "ActivityFailed",
            "{}",
        ));
    }
    write(&db.writable, rows, |_| ()).await.unwrap();
}

fn event_row(run: &str, sequence: i64, event_type: &str, payload: &str) -> InsertRow {
    InsertRow::new("workflow_history_events")
        .set("id", format!("01event{:0>11}{sequence:08}", &run[21..]))
        .set("workflow_run_id", run)
        .set("sequence", sequence)
        .set("event_type", event_type)
        .set("payload", payload)
        .time("recorded_at", at(sequence))
        .time("created_at", at(sequence))
        .time("updated_at", at(sequence))
}

fn at(sequence: i64) -> DateTime<Utc> {
    now() - TimeDelta::days(1) + TimeDelta::seconds(sequence)
}

async fn read(db: &Db, filter: &EventFilter, place: Place) -> EventWindow {
    let mut snapshot = db.snapshot().await.unwrap();
    let found = window(&mut snapshot, RUN, filter, place, WINDOW, None)
        .await
        .unwrap();
    snapshot.end().await;
    found
}

fn sequences(window: &EventWindow) -> Vec<i64> {
    window.events.iter().map(|of| of.event.sequence).collect()
}

on_every_database! {
    async fn a_long_history_is_read_by_windows(db: TestDb) {
        write_history(&db).await;
        a_window_lies_where_it_is_asked_for(&db).await;
        a_filter_looks_a_bounded_way_and_says_how_far(&db).await;
        text_is_found_as_it_is_typed(&db).await;
        a_long_payload_is_left_out_of_the_list_and_read_on_demand(&db).await;
        a_moment_leads_to_its_event_in_few_lookups(&db).await;
        every_statement_walks_the_index_on_run_and_sequence(&db).await;
    }
}

async fn a_window_lies_where_it_is_asked_for(db: &TestDb) {
    let all = EventFilter::default();
    for (place, first, last, below, above) in [
        (Place::Latest, 11_801, 12_000, true, false),
        (Place::Oldest, 1, 200, false, true),
        (Place::Before(201), 1, 200, false, true),
        (Place::Before(500), 300, 499, true, true),
        (Place::After(500), 501, 700, true, true),
        (Place::After(11_900), 11_901, 12_000, true, false),
        (Place::Around(6_000), 5_901, 6_100, true, true),
        (Place::Around(12_000), 11_801, 12_000, true, false),
        (Place::Around(1), 1, 101, false, true),
    ] {
        let found = read(&db.read_only, &all, place).await;
        let got = sequences(&found);
        assert_eq!(
            (got.first(), got.last()),
            (Some(&first), Some(&last)),
            "{place:?}"
        );
        assert_eq!(
            got.len(),
            usize::try_from(last - first + 1).unwrap(),
            "{place:?}"
        );
        assert_eq!(
            (found.more_below, found.more_above),
            (below, above),
            "{place:?}"
        );
        assert_eq!(found.looked, None, "{place:?}");
    }
    assert!(sequences(&read(&db.read_only, &all, Place::After(EVENTS)).await).is_empty());
}

async fn a_filter_looks_a_bounded_way_and_says_how_far(db: &TestDb) {
    let failures = EventFilter {
        failures: true,
        ..EventFilter::default()
    };
    let latest = read(&db.read_only, &failures, Place::Latest).await;
    assert!(sequences(&latest).is_empty());
    let until = latest.looked.unwrap().until;
    assert_eq!(until, Some(7_001));
    let on = read(&db.read_only, &failures, Place::Before(7_001)).await;
    assert_eq!(on.looked.unwrap().until, Some(2_001));
    let on = read(&db.read_only, &failures, Place::Before(2_001)).await;
    assert_eq!(sequences(&on), [40]);
    assert_eq!(on.looked.unwrap().until, None);

    let kind = |kind| EventFilter {
        kind: Some(kind),
        ..EventFilter::default()
    };
    let timers = read(&db.read_only, &kind(Kind::Timer), Place::Latest).await;
    assert_eq!(timers.events.len(), 50);
    // What this version does not know is the workflow's own.
    let own = read(&db.read_only, &kind(Kind::Workflow), Place::Around(7_000)).await;
    assert_eq!(sequences(&own), [7_000]);
    let one = EventFilter {
        event_type: Some("NewerEngineDidThis".into()),
        ..EventFilter::default()
    };
    assert!(sequences(&read(&db.read_only, &one, Place::Oldest).await).is_empty());
    assert_eq!(
        sequences(&read(&db.read_only, &one, Place::After(5_000)).await),
        [7_000]
    );
    // A filter that everything matches still fills no more than a window.
    let many = EventFilter {
        event_type: Some("SideEffectRecorded".into()),
        ..EventFilter::default()
    };
    let found = read(&db.read_only, &many, Place::Latest).await;
    assert_eq!(found.events.len(), WINDOW);
    assert!(found.more_below);
}

async fn text_is_found_as_it_is_typed(db: &TestDb) {
    let text = |text: &str| EventFilter {
        text: Some(text.into()),
        ..EventFilter::default()
    };
    for typed in ["GATEWAY", "\u{fc}ber/limit", "activityfailed"] {
        let found = read(&db.read_only, &text(typed), Place::Oldest).await;
        assert_eq!(sequences(&found), [40], "{typed}");
        assert_eq!(found.looked.unwrap().until, Some(2_000), "{typed}");
    }
    let found = read(&db.read_only, &text("unknown"), Place::Latest).await;
    assert!(sequences(&found).is_empty());
    assert_eq!(found.looked.unwrap().until, Some(10_001));
    let both = EventFilter {
        kind: Some(Kind::Timer),
        ..text("t1100")
    };
    assert_eq!(
        sequences(&read(&db.read_only, &both, Place::Oldest).await),
        [1_100]
    );
}

async fn a_long_payload_is_left_out_of_the_list_and_read_on_demand(db: &TestDb) {
    let found = read(&db.read_only, &EventFilter::default(), Place::Around(90)).await;
    let long = found
        .events
        .iter()
        .find(|of| of.event.sequence == 90)
        .unwrap();
    assert!(!long.is_read() && long.bytes > 100_000);
    assert_eq!(long.event.payload, None);
    let short = found
        .events
        .iter()
        .find(|of| of.event.sequence == 91)
        .unwrap();
    assert!(short.is_read() && short.event.payload.is_some());
    let mut snapshot = db.read_only.snapshot().await.unwrap();
    let whole = event(&mut snapshot, RUN, 90).await.unwrap().unwrap();
    assert!(whole.payload.unwrap().len() > 100_000);
    assert_eq!(event(&mut snapshot, RUN, EVENTS + 1).await.unwrap(), None);
    snapshot.end().await;
}

async fn a_moment_leads_to_its_event_in_few_lookups(db: &TestDb) {
    let mut snapshot = db.read_only.snapshot().await.unwrap();
    for (asked, want) in [
        (at(1) - TimeDelta::days(9), 1),
        (at(1), 1),
        (at(5_000), 5_000),
        (at(5_000) - TimeDelta::milliseconds(500), 5_000),
        (at(EVENTS) + TimeDelta::days(1), EVENTS),
    ] {
        let (found, sent) = recorded(sequence_at(&mut snapshot, RUN, asked)).await;
        assert_eq!(found.unwrap(), Some(want), "{asked}");
        assert!(sent.len() <= 16, "{} statements", sent.len());
    }
    let nowhere = sequence_at(&mut snapshot, "nobody", now()).await.unwrap();
    assert_eq!(nowhere, None);
    snapshot.end().await;
}

async fn every_statement_walks_the_index_on_run_and_sequence(db: &TestDb) {
    let analyze = db.dialect().pick(
        "analyze",
        "analyze",
        "analyze table {workflow_history_events}",
    );
    script(db, analyze).await;
    let mut snapshot = db.read_only.snapshot().await.unwrap();
    let filters = [
        EventFilter::default(),
        EventFilter {
            failures: true,
            ..EventFilter::default()
        },
        EventFilter {
            text: Some("unknown".into()),
            ..EventFilter::default()
        },
    ];
    let mut all = Vec::new();
    for filter in &filters {
        for place in [
            Place::Latest,
            Place::Oldest,
            Place::Before(6_000),
            Place::After(6_000),
            Place::Around(6_000),
        ] {
            let (found, sent) =
                recorded(window(&mut snapshot, RUN, filter, place, WINDOW, None)).await;
            found.unwrap();
            assert!(sent.len() <= 11, "{filter:?}: {} statements", sent.len());
            all.extend(sent);
        }
    }
    snapshot.end().await;
    for statement in all {
        let plan = explain(&db.read_only, &statement).await;
        let sql = statement.sql();
        assert!(plan.contains("run_id_sequence_unique"), "{sql}\n{plan}");
        assert!(!plan.contains("Seq Scan"), "{sql}\n{plan}");
    }
}
