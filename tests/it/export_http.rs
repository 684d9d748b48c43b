//! Exports over HTTP and on the command line, on every database.

use std::{
    process::Command,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    body::{Body, to_bytes},
    extract::{Request, State},
    middleware::{Next, from_fn_with_state},
    response::Response,
};
use axum_test::TestServer;
use plimsoll::{
    clock::Clock,
    db::Db,
    durable::export::SigningKey,
    web::{
        api::export::Turns,
        routes,
        state::{App, ExportSettings, Settings},
    },
};
use serde_json::Value;

use crate::{
    checker,
    rig::{TestDb, on_every_database},
    shop::{fill, now, server},
};

/// Instance and run of the longest history below so many events.
async fn longest(db: &TestDb, below: i64) -> (String, String) {
    let mut q = db.read_only.statement();
    q.push("select workflow_instance_id, id from {workflow_runs} where last_history_sequence < ")
        .bind(below)
        .push(" order by last_history_sequence desc, id limit 1");
    let mut row = db.read_only.fetch(q).await.unwrap().remove(0);
    (
        row.text("workflow_instance_id").unwrap(),
        row.text("id").unwrap(),
    )
}

on_every_database! {
    async fn a_run_is_downloaded_as_a_sealed_file(db: TestDb) {
        fill(&db).await;
        let (instance, run) = longest(&db, 300).await;
        let server = server(&db.read_only);
        let paths = [
            format!("/waterline/api/instances/{instance}/runs/{run}/history-export"),
            format!("/waterline/api/flows/{run}/history-export"),
            format!("/waterline/api/instances/{instance}/history-export"),
        ];
        for path in &paths {
            let response = server.get(path).await;
            assert_eq!(response.status_code(), 200, "{path}: {}", response.text());
            checker::check(response.as_bytes(), None).expect("an intact bundle");
            let bundle: Value = response.json();
            assert_eq!(bundle["workflow"]["instance_id"], instance.as_str());
            assert_eq!(bundle.get("actionability_contract"), None);
            assert_eq!(response.header("content-type"), "application/json");
            assert_eq!(response.header("cache-control"), "no-store");
        }
        let response = server.get(&paths[0]).await;
        assert_eq!(
            response.header("content-disposition"),
            format!("attachment; filename=\"workflow-history-{run}.json\"").as_str()
        );
        let etag = response.header("etag");
        let again = server.get(&paths[0]).add_header("if-none-match", &etag).await;
        assert_eq!(again.status_code(), 304);
        let head = server.method(axum::http::Method::HEAD, &paths[0]).await;
        assert_eq!((head.status_code().as_u16(), head.header("etag")), (200, etag));
        assert!(head.as_bytes().is_empty());
        assert_eq!(head.maybe_header("content-length"), None, "nobody knows it yet");
        let packed = server.get(&paths[0]).add_header("accept-encoding", "gzip").await;
        assert_eq!(packed.header("content-encoding"), "gzip");
        assert!(packed.as_bytes().len() * 4 < response.as_bytes().len());

        for path in [
            "/waterline/api/instances/nobody/history-export".to_owned(),
            format!("/waterline/api/instances/nobody/runs/{run}/history-export"),
            "/waterline/api/flows/nobody/history-export".to_owned(),
        ] {
            assert_eq!(server.get(&path).await.status_code(), 404, "{path}");
        }
    }

    async fn a_policy_and_a_key_of_the_configuration_govern_every_download(db: TestDb) {
        fill(&db).await;
        let (_, run) = longest(&db, 300).await;
        let policy = "policy = 'no-events'\nrules = [{category = 'history_event', action = 'drop'}]";
        let settings = Settings {
            clock: Clock::Frozen(now()),
            db: Some(db.read_only.clone()),
            export: ExportSettings {
                policy: Some(toml::from_str(policy).unwrap()),
                key: SigningKey::new("k3y", Some("k1")),
            },
            ..Settings::default()
        };
        let server = TestServer::new(routes::router(App::new(settings)));
        let response = server.get(&format!("/waterline/api/flows/{run}/history-export")).await;
        checker::check(response.as_bytes(), Some("k3y")).expect("signed");
        let other = Settings {
            clock: Clock::Frozen(now()),
            db: Some(db.read_only.clone()),
            export: ExportSettings {
                policy: Some(toml::from_str(policy).unwrap()),
                key: SigningKey::new("an0ther", Some("k1")),
            },
            ..Settings::default()
        };
        let other = TestServer::new(routes::router(App::new(other)));
        let other = other.get(&format!("/waterline/api/flows/{run}/history-export")).await;
        assert_ne!(other.header("etag"), response.header("etag"), "another secret, another seal");
        let bundle: Value = response.json();
        assert_eq!(bundle["redaction"]["policy"], "no-events, with every copy");
        assert_eq!(bundle["integrity"]["key_id"], "k1");
        let events = bundle["history_events"].as_array().unwrap();
        assert!(events.iter().all(|event| event["payload"].is_null()));
        assert!(bundle["timeline"].as_array().unwrap().iter().all(|entry| entry["message"].is_null()));
    }

    async fn what_breaks_half_way_is_no_well_formed_file(db: TestDb) {
        fill(&db).await;
        let (_, run) = longest(&db, i64::MAX).await;
        let path = format!("/waterline/api/flows/{run}/history-export");
        let server = server(&db.read_only);
        let whole = server.get(&path).await.as_bytes().len();
        assert!(whole > 1_000_000, "{whole} bytes are too few to break off");
        // A table that is read late is no more what it was.
        let mut tx = db.writable.write().await.unwrap();
        tx.script("alter table {workflow_run_waits} rename column kind to kindness").await.unwrap();
        tx.commit().await.unwrap();
        let broken = std::panic::AssertUnwindSafe(async { server.get(&path).await });
        let outcome = futures_util::FutureExt::catch_unwind(broken).await;
        assert!(outcome.is_err(), "the transfer must break off");
    }

    async fn the_command_line_exports_and_verifies(db: TestDb) {
        fill(&db).await;
        let (instance, run) = longest(&db, 300).await;
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        std::fs::write(at("key"), "s3cret\n").unwrap();
        let (file, key) = (at("bundle.json"), at("key"));
        let plimsoll = |args: &[&str]| {
            let output = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
                .args(args)
                .env_clear()
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
            assert!(!said.contains("s3cret"), "{said}");
            (output.status.code(), said)
        };
        let (code, said) = plimsoll(&[
            "export", "--run", &run, "--database-url", &db.url, "-o", &file, "--signing-key-file", &key,
            "--signing-key-id", "k1",
        ]);
        assert_eq!(code, Some(0), "{said}");
        checker::check(&std::fs::read(&file).unwrap(), Some("s3cret")).expect("signed");
        let (code, said) = plimsoll(&["export", "--instance", &instance, "--database-url", &db.url]);
        assert!(code == Some(0) && said.contains("\"integrity\""), "{code:?}");
        let nowhere = at("none.json");
        let (code, said) = plimsoll(&["export", "--run", "nobody", "--database-url", &db.url, "-o", &nowhere]);
        assert!(code == Some(1) && said.contains("nobody"), "{said}");
        assert!(!folder.path().join("none.json").exists());

        let other = at("other-key");
        std::fs::write(&other, "another\n").unwrap();
        let altered = at("altered.json");
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&altered, text.replacen("\"sequence\":1,", "\"sequence\":0,", 1)).unwrap();
        let short = at("short.json");
        std::fs::write(&short, &text[..text.len() / 2]).unwrap();
        for (args, want, says) in [
            (vec!["verify", &file], 0, "give --signing-key-file"),
            (vec!["verify", &file, "--signing-key-file", &key], 0, "signed with this key"),
            (vec!["verify", &file, "--signing-key-file", &key, "--signing-key-id", "k2"], 1, "another name"),
            (vec!["verify", &file, "--signing-key-file", &other], 1, "integrity.signature_mismatch"),
            (vec!["verify", &altered], 1, "integrity.checksum_mismatch"),
            (vec!["verify", &short], 2, "not a bundle"),
            (vec!["verify", &key], 2, "not a bundle"),
            (vec!["verify", &nowhere], 3, "cannot read"),
            (vec!["verify", &nowhere, &file], 3, "sealed and intact"),
            (vec!["verify", &file, &altered, &short], 2, "integrity.checksum_mismatch"),
            (vec!["verify", "--json", &altered], 1, "\"checksum_matches\":false"),
        ] {
            let (code, said) = plimsoll(&args);
            assert_eq!(code, Some(want), "{args:?}: {said}");
            assert!(said.contains(says), "{args:?}: {said}");
        }
    }
}

/// Bodies nobody reads.
type Held = Arc<Mutex<Vec<Body>>>;

async fn hold(State(held): State<Held>, request: Request, next: Next) -> Response {
    let holds = request.headers().contains_key("x-hold");
    let response = next.run(request).await;
    if !holds {
        return response;
    }
    let (parts, body) = response.into_parts();
    held.lock().unwrap().push(body);
    Response::from_parts(parts, Body::empty())
}

fn holding(db: &Db, exports: Turns, held: &Held) -> TestServer {
    let app = App::new(Settings {
        clock: Clock::Frozen(now()),
        db: Some(db.clone()),
        exports,
        request_timeout: Duration::from_mins(10),
        ..Settings::default()
    });
    let router = routes::router(app).layer(from_fn_with_state(Arc::clone(held), hold));
    TestServer::new(router)
}

on_every_database! {
    async fn readers_that_do_not_read_leave_room_for_others(db: TestDb) {
        fill(&db).await;
        let (_, run) = longest(&db, i64::MAX).await;
        let path = format!("/waterline/api/flows/{run}/history-export");
        let narrow = db.open(|settings| settings.pool_size = 4).await;
        let held = Held::default();
        let mut impatient = Turns::default();
        impatient.wait = Duration::ZERO;
        let server = holding(&narrow, impatient, &held);
        for (n, want) in [200, 200, 503].into_iter().enumerate() {
            let response = server.get(&path).add_header("x-hold", "1").await;
            assert_eq!(response.status_code(), want, "{n}");
            assert_eq!(response.maybe_header("retry-after").is_some(), want == 503);
        }
        for page in ["/waterline/runs", "/readyz"] {
            assert_eq!(server.get(page).await.status_code(), 200, "{page}");
        }
        // What needs no turn is not told to wait for one.
        let head = server.method(axum::http::Method::HEAD, &path).await;
        assert_eq!(head.status_code(), 200);
        let etag = head.header("etag");
        let known = server.get(&path).add_header("if-none-match", &etag).await;
        assert_eq!(known.status_code(), 304);
        held.lock().unwrap().clear();

        // Who takes nothing for long is given up, and whoever waited has a turn.
        let mut strict = Turns::default();
        strict.wait = Duration::from_mins(5);
        strict.stall = Duration::from_millis(50);
        let server = holding(&narrow, strict, &held);
        for _ in 0..3 {
            let response = server.get(&path).add_header("x-hold", "1").await;
            assert_eq!(response.status_code(), 200);
        }
        let first = held.lock().unwrap().remove(0);
        assert!(to_bytes(first, usize::MAX).await.is_err(), "broken off");
        narrow.close().await;
    }

    async fn a_reader_who_leaves_gives_turn_and_connection_back(db: TestDb) {
        fill(&db).await;
        let (_, run) = longest(&db, i64::MAX).await;
        let path = format!("/waterline/api/flows/{run}/history-export");
        let narrow = db.open(|settings| settings.pool_size = 1).await;
        let held = Held::default();
        let mut patient = Turns::default();
        patient.wait = Duration::from_mins(5);
        let server = holding(&narrow, patient, &held);
        for _ in 0..3 {
            let response = server.get(&path).add_header("x-hold", "1").await;
            assert_eq!(response.status_code(), 200);
            held.lock().unwrap().clear();
        }
        narrow.close().await;
    }
}
