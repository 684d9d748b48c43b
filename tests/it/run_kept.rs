//! A long run's page is kept for the next viewer, and only while the run takes no step.

use axum_test::TestServer;
use chrono::TimeDelta;
use plimsoll::demo::{catalogue, write::write};

use crate::{
    rig::{TestDb, on_every_database},
    shop::{self, now, server},
};

/// Which run is meant, and how far it is.
const SEEN_AGAIN: u32 = 2;

async fn view(server: &TestServer, address: &str) -> (String, u32) {
    let response = server.get(address).await;
    assert_eq!(response.status_code(), 200, "{}", response.text());
    let sent = response.header("x-statements");
    let sent = sent.to_str().unwrap().parse().unwrap();
    (response.text(), sent)
}

on_every_database! {
    async fn a_long_run_is_read_again_only_when_it_changed(db: TestDb) {
        let situations = catalogue(now());
        let long = situations
            .into_iter()
            .find(|situation| situation.name == "five-thousand-events")
            .expect("a run of thousands of events");
        let address = format!("/waterline/instances/{}/runs/{}", long.instance_id, long.run_id);
        write(&db.writable, long.rows, |_| ()).await.unwrap();
        let server = server(&db.read_only);

        let (first, read) = view(&server, &address).await;
        let (second, again) = view(&server, &address).await;
        assert_eq!(first, second);
        assert!(read > SEEN_AGAIN, "{read} statements");
        assert_eq!(again, SEEN_AGAIN);

        // Another part of its timeline, and rows near those shown, come from what was read, as if
        // it were read again.
        let rows: Vec<&str> = first
            .split(" id=\"lane-")
            .skip(1)
            .filter_map(|rest| Some(rest.split_once('"')?.0))
            .collect();
        let unit = rows.iter().find(|id| !id.starts_with("group-") && **id != "run");
        let group = rows.iter().find_map(|id| id.strip_prefix("group-"));
        let middle = now() - TimeDelta::hours(30);
        for query in [
            format!("unit={}", unit.expect("a unit")),
            format!("group={}&units=50", group.expect("a group")),
            format!("from={}", middle.format("%Y-%m-%dT%H:%M:%SZ")),
            "open=tasks".to_owned(),
            "tasks=200&waits=50".to_owned(),
            format!("activities=100&unit={}", unit.expect("a unit")),
        ] {
            let address = format!("{address}?{query}");
            let (kept, sent) = view(&server, &address).await;
            assert_eq!(sent, SEEN_AGAIN, "{query}");
            let (anew, _) = view(&shop::server(&db.read_only), &address).await;
            assert_eq!(kept, anew, "{query}");
            assert_ne!(kept, first, "{query}");
        }

        // Further off they are read, and their neighbours with them.
        let (far, read) = view(&server, &format!("{address}?tasks=1000")).await;
        assert!(read > SEEN_AGAIN, "{read} statements");
        let row = far.split(" id=\"task-").nth(1).and_then(|rest| rest.split_once('"'));
        for query in ["tasks=1050".to_owned(), format!("at=task-{}", row.expect("a task").0)] {
            let address = format!("{address}?{query}");
            let (kept, sent) = view(&server, &address).await;
            assert_eq!(sent, SEEN_AGAIN, "{query}");
            let (anew, _) = view(&shop::server(&db.read_only), &address).await;
            assert_eq!(kept, anew, "{query}");
        }

        let mut tx = db.writable.write().await.unwrap();
        let mut q = tx.statement();
        q.push("update {workflow_runs} set business_key = ")
            .bind("changed-since")
            .push(", updated_at = ")
            .bind(now().naive_utc())
            .push(" where id = ")
            .bind(long.run_id.as_str());
        assert_eq!(tx.execute(q).await.unwrap(), 1);
        tx.commit().await.unwrap();
        let (changed, read) = view(&server, &address).await;
        assert!(changed.contains("changed-since"));
        assert!(read > SEEN_AGAIN, "{read} statements");
    }
}
