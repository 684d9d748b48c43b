//! How large pages are: a long run's no larger than another's, and every first load small.

use std::collections::HashMap;

use axum_test::TestServer;
use plimsoll::{
    clock::Clock,
    db::Dialect,
    demo::seed::{self, Plan, Projections, Shape},
    web::{
        routes,
        state::{App, Settings},
    },
};

use crate::{
    rig::{self, TestDb},
    shop::{fill, now, server},
};

/// What a page weighs.
#[derive(Debug)]
struct Size {
    bytes: usize,
    packed: usize,
    elements: usize,
}

async fn packed(server: &TestServer, address: &str) -> usize {
    let response = server
        .get(address)
        .add_header("accept-encoding", "gzip")
        .await;
    let encoding = response.maybe_header("content-encoding");
    let short = response.as_bytes().len() < 1_024;
    assert!(
        short || encoding.is_some_and(|encoding| encoding == "gzip"),
        "{address}"
    );
    response.as_bytes().len()
}

async fn size(server: &TestServer, address: &str) -> Size {
    let response = server.get(address).await;
    assert_eq!(response.status_code(), 200, "{}", response.text());
    let text = response.text();
    let begins = |rest: &&str| rest.starts_with(|c: char| c.is_ascii_alphabetic());
    Size {
        bytes: text.len(),
        packed: packed(server, address).await,
        elements: text.split('<').filter(begins).count(),
    }
}

/// The first view of a run of so many events that waits for a retry.
async fn of_a_run(db: &TestDb, events: u32) -> Size {
    let plan = Plan {
        runs: 1,
        events_per_run: events,
        shape: Shape::Long { payload_bytes: 900 },
        seed: u64::from(events),
        clock: now(),
        projections: Projections::Summaries,
    };
    seed::load(&db.writable, plan, |_| ()).await.unwrap();
    let mut q = db.read_only.statement();
    q.push("select id, workflow_instance_id from {workflow_runs} where last_history_sequence = ")
        .bind(i64::from(events));
    let run = &mut db.read_only.fetch(q).await.unwrap()[0];
    let (id, instance) = (
        run.text("id").unwrap(),
        run.text("workflow_instance_id").unwrap(),
    );
    let address = format!("/waterline/instances/{instance}/runs/{id}");
    size(&server(&db.read_only), &address).await
}

#[tokio::test]
async fn a_long_run_has_no_larger_page_than_a_shorter_one_sqlite() {
    rig::on(Dialect::Sqlite, async |db| {
        let shorter = of_a_run(&db, 2_000).await;
        let long = of_a_run(&db, 16_000).await;
        assert!(long.bytes * 5 <= shorter.bytes * 6, "{long:?}, {shorter:?}");
        assert!(long.packed < 150_000, "{long:?}");
        assert!(long.elements < 5_000, "{long:?}");
    })
    .await;
}

/// What a page makes a browser load with it.
fn loaded_with(page: &str) -> Vec<String> {
    let named = |before: &'static str| {
        page.split(before)
            .skip(1)
            .filter_map(|rest| Some(rest.split_once('"')?.0.to_owned()))
    };
    let links = page.split("<link ").skip(1).filter_map(|rest| {
        let tag = rest.split_once('>')?.0;
        Some(tag.split_once("href=\"")?.1.split_once('"')?.0.to_owned())
    });
    links.chain(named(" src=\"")).collect()
}

#[tokio::test]
async fn the_first_load_of_any_page_is_small_sqlite() {
    rig::on(Dialect::Sqlite, async |db| {
        let situations = fill(&db).await;
        let settings = Settings {
            clock: Clock::Frozen(now()),
            db: Some(db.read_only.clone()),
            demo: true,
            ..Settings::default()
        };
        let server = TestServer::new(routes::router(App::new(settings)));
        let runs: Vec<String> = situations
            .iter()
            .map(|s| format!("/waterline/instances/{}/runs/{}", s.instance_id, s.run_id))
            .collect();
        let first = &runs[0];
        let ids = (&situations[0].run_id, &situations[1].run_id);
        let mut pages = vec![
            "/waterline/".to_owned(),
            "/waterline/runs".to_owned(),
            "/waterline/bundles".to_owned(),
            "/waterline/repairs".to_owned(),
            "/waterline/styleguide".to_owned(),
            "/waterline/nothing-here".to_owned(),
            format!("/waterline/compare?a={}&b={}", ids.0, ids.1),
            format!("{first}/history"),
            format!("{first}/payload?of=run&id=&part=arguments"),
        ];
        pages.extend(runs);
        let mut assets: HashMap<String, usize> = HashMap::new();
        for address in pages {
            let html = server.get(&address).await.text();
            let with = loaded_with(&html);
            assert!(with.len() >= 3, "{address}: {with:?}");
            let mut sum = packed(&server, &address).await;
            for asset in with {
                if !assets.contains_key(&asset) {
                    assets.insert(asset.clone(), packed(&server, &asset).await);
                }
                sum += assets[&asset];
            }
            assert!(sum < 100_000, "{address} takes {sum} bytes");
        }
    })
    .await;
}
