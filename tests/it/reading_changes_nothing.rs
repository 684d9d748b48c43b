//! Whatever is opened, nothing is written: a digest of all tables before and after.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use axum_test::TestServer;
use plimsoll::{
    db::{Db, Val},
    durable::store::{
        runs::{FIELDS, Field, Kind, categories, task_problems},
        schema::{Table, tables},
    },
};

use crate::{
    rig::{TestDb, on_every_database},
    shop::{fill, server},
};

/// Rows and a sum of their hashes, which does not depend on their order.
async fn digest(db: &Db) -> BTreeMap<&'static str, (usize, u64)> {
    let mut found = BTreeMap::new();
    for table in tables() {
        found.insert(table.name, table_digest(db, table).await);
    }
    assert_eq!(found.len(), 29);
    found
}

async fn table_digest(db: &Db, table: &'static Table) -> (usize, u64) {
    let mut q = db.statement();
    for (n, column) in table.columns.iter().enumerate() {
        q.push(if n == 0 { "select \"" } else { ", \"" })
            .push(column.name)
            .push("\"");
    }
    q.push(" from {").push(table.name).push("}");
    let rows = db.fetch(q).await.unwrap();
    let count = rows.len();
    let mut sum = 0_u64;
    for mut row in rows {
        let mut hasher = DefaultHasher::new();
        for column in &table.columns {
            let value: Val = row.take(column.name).unwrap();
            format!("{value:?}").hash(&mut hasher);
        }
        sum = sum.wrapping_add(hasher.finish());
    }
    (count, sum)
}

/// A value each filter takes.
fn example(field: &Field) -> String {
    let value = match field.kind {
        Kind::Exact(_) | Kind::Prefix(_) | Kind::Contains(_) => "o".to_owned(),
        Kind::Choice(_, words) | Kind::Word(_, words) => words[0].to_owned(),
        Kind::Flag(_)
        | Kind::Presence(_)
        | Kind::IsTerminal
        | Kind::NonRetryable
        | Kind::NeedsRepair => "1".to_owned(),
        Kind::FailureCategory => categories()[0].to_owned(),
        Kind::TaskProblem => task_problems()[0].to_owned(),
        Kind::RepairState => "repairable".to_owned(),
        Kind::Attention => "long_waits".to_owned(),
        Kind::Label | Kind::SearchAttribute => {
            return format!("{}[team]=blue", field.name);
        }
        Kind::Within => "24h".to_owned(),
        Kind::From | Kind::To => "2026-11-15".to_owned(),
    };
    format!("{}={value}", field.name)
}

async fn open(server: &TestServer, path: &str) {
    let response = server.get(path).await;
    let status = response.status_code().as_u16();
    assert!(status < 500, "{path}: {status} {}", response.text());
}

/// The addresses the route table answers a GET at.
fn routes() -> Vec<String> {
    let table = include_str!("../../src/web/routes.rs");
    let found: Vec<String> = table
        .split(".route(")
        .skip(1)
        .filter(|route| route.contains("get("))
        .map(|route| {
            let below = route.split('"').nth(1).expect("an address");
            let base = route.trim_start().starts_with("&at(");
            format!("{}{below}", if base { "/waterline" } else { "" })
        })
        .collect();
    assert!(found.len() > 30, "{found:?}");
    found
}

/// Whether the route is the one that answers at this path: a name in braces is any segment.
fn answers(route: &str, path: &str) -> bool {
    let path = path.split('?').next().unwrap_or_default();
    if let Some((before, _)) = route.split_once("{*") {
        return path.starts_with(before);
    }
    let (route, path): (Vec<_>, Vec<_>) = (route.split('/').collect(), path.split('/').collect());
    route.len() == path.len()
        && route
            .iter()
            .zip(path)
            .all(|(route, path)| route.starts_with('{') || *route == path)
}

/// Opens the run as a bundle and returns the bundle's address.
async fn opened_as_bundle(server: &TestServer, instance: &str, run: &str) -> String {
    let bundle = server
        .get(&format!(
            "/waterline/api/instances/{instance}/runs/{run}/history-export"
        ))
        .await;
    assert_eq!(bundle.status_code(), 200, "{}", bundle.text());
    let response = server
        .post("/waterline/bundles")
        .content_type("multipart/form-data; boundary=b")
        .bytes(crate::bundles::form(&bundle.into_bytes()).into())
        .await;
    assert_eq!(response.status_code(), 303, "{}", response.text());
    response.header("location").to_str().unwrap().to_owned()
}

on_every_database! {
    async fn opening_everything_writes_nothing(db: TestDb) {
        let situations = fill(&db).await;
        // The account may write; what we open it with must not.
        let before = digest(&db.writable).await;
        let server = server(&db.read_only);
        let mut paths: Vec<String> = [
            "/", "/livez", "/up", "/readyz", "/favicon.ico", "/waterline", "/waterline/", "/waterline/runs", "/waterline/runs/", "/waterline/styleguide",
            "/waterline/find", "/waterline/find?q=nothing", "/waterline/nowhere", "/waterline/instances/nobody",
            "/waterline/instances/nobody/runs/none", "/waterline/api/instances/nobody", "/waterline/api/instances/nobody/runs/none",
            "/waterline/api/flows/nobody", "/waterline/api/instances/nobody?history_limit=7", "/waterline/api/nowhere", "/waterline/runs?status=bogus",
            "/waterline/", "/metrics", "/waterline/api/operator-metrics?fresh=1", "/waterline/api/stats", "/waterline/api/v2/health",
            "/waterline/runs?cursor=prev~~x", "/waterline/runs?sort_direction=asc&per_page=100",
            "/waterline/repairs", "/waterline/repairs/none", "/waterline/bundles", "/waterline/bundles/none", "/waterline/compare",
            "/waterline/assets/nothing.css",
        ]
        .map(str::to_owned)
        .into();
        for bucket in ["all", "running", "completed", "failed", "cancelled", "terminated", "nothing"] {
            paths.push(format!("/waterline/api/flows/{bucket}"));
            paths.push(format!("/waterline/api/flows/{bucket}?page=2&per_page=10"));
        }
        for field in FIELDS {
            paths.push(format!("/waterline/runs?{}", example(field)));
            paths.push(format!("/waterline/api/flows/all?{}", example(field)));
        }
        for situation in &situations {
            let encoded = |text: &str| url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>().replace('+', "%20");
            let (instance, run) = (encoded(&situation.instance_id), encoded(&situation.run_id));
            paths.push(format!("/waterline/instances/{instance}"));
            paths.push(format!("/waterline/instances/{instance}/runs/{run}"));
            paths.push(format!("/waterline/find?q={run}"));
            paths.push(format!("/waterline/api/instances/{instance}"));
            paths.push(format!("/waterline/api/instances/{instance}?history_limit=50"));
            paths.push(format!("/waterline/api/instances/{instance}/runs/{run}"));
            paths.push(format!("/waterline/api/flows/{run}?history_limit=all"));
            paths.push(format!("/waterline/api/flows/{instance}"));
            for part in ["history", "history?order=oldest&failed=1", "payload?of=event&id=1&part=payload", "payload?of=run&id=&part=arguments", "card", "repair"] {
                paths.push(format!("/waterline/instances/{instance}/runs/{run}/{part}"));
            }
            paths.push(format!("/waterline/compare?a={run}"));
            paths.push(format!("/waterline/api/instances/{instance}/runs/{run}/history-export"));
            paths.push(format!("/waterline/api/instances/{instance}/history-export"));
            paths.push(format!("/waterline/api/flows/{run}/history-export"));
        }
        let plain = situations.iter().find(|one| one.instance_id == "ord-48288").expect("a plain run");
        let bundle = opened_as_bundle(&server, &plain.instance_id, &plain.run_id).await;
        for part in ["", "/history", "/payload?of=event&id=1&part=payload"] {
            paths.push(format!("{bundle}{part}"));
        }
        paths.push(format!("/waterline/compare?a={}&b=bundle:{}", plain.run_id, bundle.rsplit('/').next().unwrap()));
        for route in routes() {
            assert!(paths.iter().any(|path| answers(&route, path)), "{route} is not opened");
        }
        for path in &paths {
            open(&server, path).await;
        }
        // What changes something is asked for with another method, which pages refuse.
        for path in ["/waterline/runs", "/waterline/api/flows/all", "/waterline/api/instances/nobody", "/waterline/api/instances/nobody/runs/none"] {
            assert_eq!(server.post(path).await.status_code(), 405, "{path}");
            assert_eq!(server.delete(path).await.status_code(), 405, "{path}");
        }
        let after = digest(&db.writable).await;
        for (table, digest) in before {
            assert_eq!(after[table], digest, "{table} changed");
        }
        eprintln!("OPENED: {} addresses on {}", paths.len(), db.dialect().name());
    }
}
