//! The database goes away under load: the numbers stay, with their age, and come back by
//! themselves.

use std::{fs, time::Duration};

use axum_test::TestServer;
use plimsoll::{
    db::Db,
    web::{
        collector::Options,
        routes,
        state::{App, Settings},
    },
};
use serde_json::{Value, json};

use crate::{
    metrics_http::{json, still},
    rig::TestDb,
    shop::fill,
};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Open,
    /// What comes in stays there, as on a network that swallows packets.
    Stuck,
    Shut,
    /// Nobody listens, as when the server is stopped.
    Refused,
}

/// A door in front of the database that can be shut.
struct Door {
    port: u16,
    way: tokio::sync::watch::Sender<Way>,
}

async fn door(host: String, port: u16) -> Door {
    let mut listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let own = listener.local_addr().unwrap().port();
    let (way, mut state) = tokio::sync::watch::channel(Way::Open);
    tokio::spawn(async move {
        loop {
            if *state.borrow() == Way::Refused {
                drop(listener);
                let again = state.wait_for(|way| *way != Way::Refused);
                if again.await.is_err() {
                    return;
                }
                listener = tokio::net::TcpListener::bind(("127.0.0.1", own))
                    .await
                    .unwrap();
            }
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                changed = state.changed() => match changed {
                    Ok(()) => continue,
                    Err(_) => return,
                },
            };
            let Ok((mut client, _)) = accepted else {
                return;
            };
            if *state.borrow() == Way::Shut {
                continue;
            }
            let (host, mut state) = (host.clone(), state.clone());
            tokio::spawn(async move {
                let Ok(mut server) = tokio::net::TcpStream::connect((host.as_str(), port)).await
                else {
                    return;
                };
                tokio::select! {
                    biased;
                    _ = state.wait_for(|way| *way != Way::Open) => {}
                    _ = tokio::io::copy_bidirectional(&mut client, &mut server) => {}
                }
                let _ = state.wait_for(|way| *way != Way::Stuck).await;
            });
        }
    });
    Door { port: own, way }
}

/// The product behind a door, gathering all the time.
async fn behind(db: &TestDb, limit: Duration) -> (Door, Db, TestServer) {
    fill(db).await;
    let mut url = url::Url::parse(&db.url).unwrap();
    let door = door(url.host_str().unwrap().to_owned(), url.port().unwrap()).await;
    url.set_host(Some("127.0.0.1")).unwrap();
    url.set_port(Some(door.port)).unwrap();
    let settings = plimsoll::db::Settings::new(url.as_str());
    let behind = Db::connect(&settings).await.expect("the database opens");
    let app = App::new(Settings {
        db: Some(behind.clone()),
        gathering: Options {
            interval: Duration::from_millis(50),
            limit,
            ..Options::default()
        },
        ..Settings::default()
    });
    (door, behind, TestServer::new(routes::router(app)))
}

/// Asks until passes fail, or go well again.
async fn until(server: &TestServer, failing: bool) -> Value {
    loop {
        let response = server.get("/waterline/api/stats?fresh=1").await;
        // Where much else runs, a pass outlasts the request that waits for it.
        if response.status_code() != 200 {
            continue;
        }
        let stats: Value = response.json();
        if stats["plimsoll"]["failing_since"].is_null() != failing {
            return stats;
        }
    }
}

/// While nothing new comes health is no better than a warning, here and to whoever scrapes; the
/// numbers stay.
async fn warned(server: &TestServer, warned: bool) {
    let health = json(server, "/waterline/api/v2/health").await;
    let checks = health["checks"].as_array().unwrap().iter();
    let snapshot: Vec<&Value> = checks
        .filter(|check| check["name"] == "operator_snapshot")
        .collect();
    let alerts = health["coordination_alerts"].as_array().unwrap().iter();
    let alerted = alerts.filter(|alert| alert["key"] == "operator_snapshot");
    let scraped = server.get("/metrics").await.text();
    let told = "durable_workflow_health_status{check=\"operator_snapshot\"} 1\n";
    let page = server.get("/waterline/").await.text();
    let header = page.split("data-lost").next().unwrap();
    let header = header.split("data-known").nth(1).unwrap();
    assert!(health["operator_metrics"]["runs"]["total"].as_i64() > Some(0));
    assert_eq!(snapshot.len(), usize::from(warned), "{health}");
    assert_eq!(alerted.count(), usize::from(warned));
    assert_eq!(scraped.contains(told), warned, "{scraped}");
    assert_eq!(header.contains("as of "), warned, "{header}");
    assert_eq!(page.contains("operator snapshot"), warned);
    if warned {
        assert_eq!(health["status"], "warning");
        assert_eq!(snapshot[0]["status"], "warning");
        assert_eq!(snapshot[0]["category"], "correctness");
        assert_eq!(
            snapshot[0]["data"]["reason"],
            "operator_metrics_unavailable"
        );
        let since = &health["plimsoll"]["failing_since"];
        assert_ne!(snapshot[0]["data"]["failing_since"], json!(null));
        assert_eq!(&snapshot[0]["data"]["failing_since"], since);
        assert!(header.contains("is-attn"), "{header}");
    }
}

/// A probe is told in its own words.
async fn not_ready(server: &TestServer) {
    let ready = server.get("/readyz").await;
    assert_eq!(ready.status_code(), 503);
    assert_eq!(ready.text(), "database unavailable\n");
    assert_eq!(ready.header("retry-after"), "5");
    let kind = ready.header("content-type");
    assert!(kind.to_str().unwrap().starts_with("text/plain"));
}

/// Everybody scrapes all the time, and nobody ever goes without numbers.
async fn scraped(server: &TestServer, what: impl Future<Output = ()>) {
    let scrapers = (0..20).map(|n| async move {
        let path = [
            "/waterline/api/operator-metrics",
            "/waterline/api/stats",
            "/waterline/api/v2/health",
            "/metrics",
            "/waterline/",
            "/livez",
        ][n % 6];
        loop {
            let response = server.get(path).await;
            assert_eq!(response.status_code(), 200, "{path}: {}", response.text());
            tokio::task::yield_now().await;
        }
    });
    let scrapers = futures_util::future::join_all(scrapers);
    tokio::select! {
        _ = scrapers => unreachable!("they go on"),
        () = what => {}
    }
}

async fn body(db: TestDb) {
    away(&db, Way::Shut).await;
}

/// Nobody answers at the address: no connection can be made, which is another thing than none
/// being free.
async fn refused(db: TestDb) {
    away(&db, Way::Refused).await;
}

async fn away(db: &TestDb, way: Way) {
    let (door, behind, server) = behind(db, Options::default().limit).await;
    let before = json(&server, "/waterline/api/stats").await;
    let scene = async {
        door.way.send(way).unwrap();
        let away = until(&server, true).await;
        assert_eq!(away["flows"], before["flows"]);
        assert!(away["plimsoll"]["age_ms"].as_i64() > Some(0));
        not_ready(&server).await;
        warned(&server, true).await;
        let text = server.get("/metrics").await.text();
        assert!(text.contains("\nplimsoll_collector_up 0\n"), "{text}");
        assert!(
            text.contains("\ndurable_workflow_runs_waiting "),
            "the last numbers stay"
        );
        let page = server.get("/waterline/").await.text();
        assert!(page.contains("The database does not answer"));

        door.way.send(Way::Open).unwrap();
        until(&server, false).await;
        warned(&server, false).await;
        assert_eq!(server.get("/readyz").await.status_code(), 200);
    };
    scraped(&server, scene).await;
    drop(server);
    behind.close().await;
}

/// Nothing is refused and nothing comes: the pass is given up, and the next is well again.
async fn silence(db: TestDb) {
    let (door, behind, server) = behind(&db, Duration::from_secs(3)).await;
    // The first pass may be slow where much else runs.
    let before: Value = loop {
        let response = server.get("/waterline/api/stats?fresh=1").await;
        if response.status_code() == 200 {
            break response.json();
        }
    };
    door.way.send(Way::Stuck).unwrap();
    let away = until(&server, true).await;
    assert_eq!(away["flows"], before["flows"]);
    let because = away["plimsoll"]["failing_because"].as_str().unwrap();
    assert!(
        because.starts_with("The database does not answer."),
        "{because}"
    );
    door.way.send(Way::Open).unwrap();
    until(&server, false).await;
    drop(server);
    behind.close().await;
}

/// A file cannot go away under its reader, but it can be written over.
async fn spoilt(db: TestDb) {
    fill(&db).await;
    db.writable.close().await;
    let server = still(&db.read_only);
    assert_eq!(server.get("/readyz").await.status_code(), 200);
    json(&server, "/waterline/api/stats").await;
    warned(&server, false).await;
    let file = db.url.strip_prefix("sqlite:").unwrap();
    let size = fs::metadata(file).unwrap().len();
    fs::write(file, vec![7; usize::try_from(size).unwrap()]).unwrap();
    not_ready(&server).await;
    until(&server, true).await;
    warned(&server, true).await;
    assert_eq!(server.get("/livez").await.status_code(), 200);
}

#[tokio::test]
async fn sqlite() {
    crate::rig::on(plimsoll::db::Dialect::Sqlite, spoilt).await;
}

#[tokio::test]
async fn postgres() {
    crate::rig::on(plimsoll::db::Dialect::Postgres, body).await;
}

#[tokio::test]
async fn mysql() {
    crate::rig::on(plimsoll::db::Dialect::MySql, body).await;
}

mod refused {
    #[tokio::test]
    async fn postgres() {
        crate::rig::on(plimsoll::db::Dialect::Postgres, super::refused).await;
    }

    #[tokio::test]
    async fn mysql() {
        crate::rig::on(plimsoll::db::Dialect::MySql, super::refused).await;
    }
}

mod silence {
    #[tokio::test]
    async fn postgres() {
        crate::rig::on(plimsoll::db::Dialect::Postgres, super::silence).await;
    }

    #[tokio::test]
    async fn mysql() {
        crate::rig::on(plimsoll::db::Dialect::MySql, super::silence).await;
    }
}
