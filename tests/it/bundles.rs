//! Bundles opened: whatever a file holds, there is a verdict, and nothing panics.

use std::{
    collections::HashSet,
    io::{BufRead as _, BufReader, Cursor, Read as _, Write as _},
    net::TcpStream,
    process::{Command, Stdio},
    time::Duration,
};

use axum_test::TestServer;
use plimsoll::{
    clock::Clock,
    demo::Situation,
    durable::{
        engine_config::EngineConfig,
        export::{SigningKey, stream, verify::Seal},
        page,
        projection::{Context, Projected},
        repair::Mode,
    },
    run::{timeline::draw::Range, window::Asked},
    web::{
        bundles::{Kept, read},
        routes,
        state::{App, ExportSettings, Settings},
    },
};
use serde_json::{Value, json};

use crate::{
    export::exported,
    rig::{self, TestDb},
    shop::{fill, now, server},
};

async fn bundle_of(db: &TestDb, run: &str, key: Option<&SigningKey>) -> Vec<u8> {
    let config = EngineConfig::defaults();
    let options = stream::Options {
        now: now(),
        config: &config,
        policy: None,
        key,
        batch: 100,
    };
    exported(&db.read_only, run, options)
        .await
        .expect("an export")
        .0
}

/// Reads and shows a file; what is no bundle has nothing to show.
fn shown(text: &[u8]) -> Option<Kept> {
    let kept = read(Cursor::new(text), text.len() as u64, None).ok()?;
    let config = EngineConfig::defaults();
    let projected = Projected::of(Context {
        snapshot: &kept.opened.run,
        now: now(),
        config: &config,
    });
    let page = page::page(
        &projected,
        Mode::Direct,
        &page::story(&projected),
        &Asked::default(),
        Range::default(),
    );
    assert_eq!(page.head.run_id, kept.opened.run.run.id);
    let _ = page::steps::steps(&projected);
    Some(kept)
}

/// Every place of a document, each kind of place once: lists count by their first two entries.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let key = key.replace('~', "~0").replace('/', "~1");
                places(value, &format!("{at}/{key}"), found);
            }
        }
        Value::Array(list) => {
            for (n, value) in list.iter().enumerate().take(2) {
                places(value, &format!("{at}/{n}"), found);
            }
        }
        _ => {}
    }
}

/// The situations that between them hold every kind of row.
const TELLING: [&str; 6] = ["signal", "child", "update", "retry", "timer", "continue"];

fn telling(situations: &[Situation]) -> Vec<&Situation> {
    let mut chosen: Vec<&Situation> = TELLING
        .iter()
        .filter_map(|word| situations.iter().find(|one| one.name.contains(word)))
        .collect();
    chosen.dedup_by_key(|one| &one.run_id);
    assert!(chosen.len() > 3, "the demo has situations of these names");
    chosen
}

#[tokio::test]
async fn a_wrong_value_in_any_field_is_shown_around_sqlite() {
    rig::on(plimsoll::db::Dialect::Sqlite, |db| async move {
        let situations = fill(&db).await;
        let wrong = [
            json!(null),
            json!(true),
            json!(-1.5e300),
            json!("word"),
            json!([[1], {"a": 1}]),
            json!({"": {"": []}}),
        ];
        let (mut cases, mut seen) = (0, HashSet::new());
        for situation in telling(&situations) {
            let text = bundle_of(&db, &situation.run_id, None).await;
            let whole: Value = serde_json::from_slice(&text).unwrap();
            assert!(shown(&text).is_some(), "{}", situation.name);
            let mut all = Vec::new();
            // What is derived from other sections is not read.
            for section in whole.as_object().unwrap().keys() {
                if ![
                    "timeline",
                    "payload_manifest",
                    "codec_schemas",
                    "waits",
                    "linked_intakes",
                ]
                .contains(&section.as_str())
                {
                    places(&whole[section], &format!("/{section}"), &mut all);
                }
            }
            // A place of a kind is damaged once, whichever situation has it.
            all.retain(|place| seen.insert(place.replace(|c: char| c.is_ascii_digit(), "")));
            for (n, place) in all.iter().enumerate() {
                let mut bundle = whole.clone();
                *bundle.pointer_mut(place).expect("a place") = wrong[n % wrong.len()].clone();
                let text = serde_json::to_vec(&bundle).unwrap();
                if let Some(kept) = shown(&text) {
                    let seal = kept.report.seal();
                    let same = bundle == whole;
                    assert!(same || matches!(seal, Seal::Altered), "{place}: {seal:?}");
                }
                cases += 1;
            }
        }
        assert!(cases > 300, "{cases} places");
    })
    .await;
}

#[tokio::test]
async fn a_file_that_is_cut_or_stuffed_has_a_verdict_sqlite() {
    rig::on(plimsoll::db::Dialect::Sqlite, |db| async move {
        let situations = fill(&db).await;
        let text = bundle_of(&db, &situations[0].run_id, None).await;
        for cut in (0..text.len()).step_by(97) {
            assert!(shown(&text[..cut]).is_none(), "cut at {cut}");
        }
        let refused = |text: &[u8]| {
            let report = read(Cursor::new(text), 0, None).expect_err("no bundle");
            assert_eq!(report.seal(), Seal::NotABundle);
            report.findings[0].message.clone()
        };
        let deep = [b"[".repeat(1_000_000), b"]".repeat(1_000_000)].concat();
        for odd in [
            &b""[..],
            b"null",
            b"7",
            b"[]",
            b"{}",
            b"{\"schema\":",
            b"\xff\xfe",
            b"<html>",
            &deep,
        ] {
            assert!(!refused(odd).is_empty());
        }
        let edited = |from: &str, to: &str| {
            let text = String::from_utf8(text.clone()).unwrap();
            assert!(text.contains(from), "{from}");
            text.replacen(from, to, 1).into_bytes()
        };
        assert!(
            refused(&edited("\"schema_version\":1", "\"schema_version\":2")).contains("version")
        );
        let twice = edited(
            "\"schema_version\":1",
            "\"schema_version\":1,\"schema_version\":1",
        );
        assert!(refused(&twice).contains("twice"));
        let twice = edited("\"run_number\":", "\"run_number\":7,\"run_number\":");
        assert!(refused(&twice).contains("twice"));
        // Deep inside a bundle, or far more than there was: told, one way or the other.
        let nested = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let long = format!("[{}]", vec!["{\"id\":\"x\"}"; 50_000].join(","));
        for tasks in [&nested, &long] {
            let text = edited("\"tasks\":[", &format!("\"tasks\":{tasks},\"more\":["));
            if let Some(kept) = shown(&text) {
                assert_eq!(kept.report.seal(), Seal::Altered);
            }
        }
    })
    .await;
}

/// A short text can name more rows than memory holds.
#[tokio::test]
async fn more_entries_than_a_file_can_have_are_refused_sqlite() {
    rig::on(plimsoll::db::Dialect::Sqlite, |db| async move {
        let situations = fill(&db).await;
        let text = bundle_of(&db, &situations[0].run_id, None).await;
        let text = String::from_utf8(text).unwrap();
        let many = |of: &str| format!("[{}]", vec![of; 1_000_000 / (of.len() + 1)].join(","));
        let numbers = many("0");
        let activity = |list: &str| format!("\"activities\":[{{\"attempts\":{list}}}]");
        let command = |value: &str| format!("\"commands\":[{{\"context\":{{\"x\":{value}}}}}]");
        for stuffed in [
            format!("\"tasks\":{}", many("{}")),
            format!("\"tasks\":{numbers}"),
            format!("\"history_events\":{}", many("{}")),
            format!("\"links\":{{\"parents\":[],\"children\":{}}}", many("{}")),
            format!("\"links\":{{\"parents\":{numbers}}}"),
            format!("\"links\":{numbers}"),
            format!("\"summary\":{{\"x\":{numbers}}}"),
            activity(&many("{}")),
            activity(&numbers),
            command(&numbers),
        ] {
            let (section, _) = stuffed[1..].split_once('"').unwrap();
            let own = format!("\"{section}\":");
            assert!(text.contains(&own), "{own}");
            let text = text.replacen(&own, &format!("{stuffed},\"was_{section}\":"), 1);
            let report = read(Cursor::new(&text), text.len() as u64, None);
            let report = report.expect_err("too much");
            let message = &report.findings.last().unwrap().message;
            assert!(
                message.contains("more entries than"),
                "{section}: {message}"
            );
        }
    })
    .await;
}

fn with_key(db: &TestDb, key: &str) -> TestServer {
    TestServer::new(routes::router(App::new(Settings {
        clock: Clock::Frozen(now()),
        db: Some(db.read_only.clone()),
        export: ExportSettings {
            policy: None,
            key: SigningKey::new(key, Some("k1")),
        },
        ..Settings::default()
    })))
}

pub fn form(text: &[u8]) -> Vec<u8> {
    let head = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"x.json\"\r\n\r\n";
    [head.as_bytes(), text, b"\r\n--b--\r\n"].concat()
}

#[tokio::test]
async fn the_verdict_stands_on_top_and_nothing_can_be_pressed_sqlite() {
    rig::on(plimsoll::db::Dialect::Sqlite, |db| async move {
        let situations = fill(&db).await;
        let run = &situations[0].run_id;
        let (plain, keyed) = (server(&db.read_only), with_key(&db, "s3cret"));
        let key = SigningKey::new("s3cret", Some("k1")).unwrap();
        let unsigned = bundle_of(&db, run, None).await;
        let signed = bundle_of(&db, run, Some(&key)).await;
        let altered = String::from_utf8(unsigned.clone()).unwrap().replacen(
            "\"run_number\":1",
            "\"run_number\":2",
            1,
        );
        for (server, text, title) in [
            (&plain, unsigned.as_slice(), "Unsigned"),
            (&keyed, &unsigned, "Unsigned"),
            (&plain, &signed, "Unknown key"),
            (&keyed, &signed, "Sealed and intact"),
            (&plain, altered.as_bytes(), "Altered"),
            (&with_key(&db, "another"), &signed, "Altered"),
        ] {
            let sent = server
                .post("/waterline/bundles")
                .content_type("multipart/form-data; boundary=b")
                .bytes(form(text).into())
                .await;
            assert_eq!(sent.status_code(), 303, "{title}: {}", sent.text());
            let address = sent.header("location").to_str().unwrap().to_owned();
            assert!(address.rsplit('/').next().unwrap().len() >= 32, "{address}");
            let page = server.get(&address).await.text();
            let verdict = page.find("id=\"verdict\"").expect("a verdict");
            assert!(
                page[verdict..]
                    .split("</b>")
                    .next()
                    .unwrap()
                    .ends_with(title),
                "{title}"
            );
            assert!(verdict < page.find("class=\"head\"").unwrap());
            assert!(!page.contains("class=\"controls\"") && !page.contains("s3cret"));
        }
        let refused = plain
            .post("/waterline/bundles")
            .bytes("{\"schema\":1}".into())
            .await;
        assert_eq!(refused.status_code(), 422);
        assert!(refused.text().contains("Not a bundle"));
        assert_eq!(plain.post("/waterline/bundles").await.status_code(), 422);
        let huge = vec![b' '; 64 * 1024 * 1024 + 1];
        assert_eq!(
            plain
                .post("/waterline/bundles")
                .bytes(huge.into())
                .await
                .status_code(),
            413
        );
        assert_eq!(
            plain.get("/waterline/bundles/unheard").await.status_code(),
            404
        );
        assert!(
            plain
                .get("/waterline/bundles")
                .await
                .text()
                .contains("type=\"file\"")
        );
    })
    .await;
}

#[tokio::test]
async fn a_long_history_is_paged_and_its_payloads_open_sqlite() {
    rig::on(plimsoll::db::Dialect::Sqlite, |db| async move {
        let situations = fill(&db).await;
        let long = situations
            .iter()
            .find(|one| one.name == "five-thousand-events")
            .expect("a long one");
        // Five thousand events take a build without optimisation its time.
        let server = TestServer::new(routes::router(App::new(Settings {
            clock: Clock::Frozen(now()),
            db: Some(db.read_only.clone()),
            request_timeout: Duration::from_mins(10),
            ..Settings::default()
        })));
        let live = format!(
            "/waterline/instances/{}/runs/{}",
            long.instance_id, long.run_id
        );
        let sent = server
            .post("/waterline/bundles")
            .bytes(bundle_of(&db, &long.run_id, None).await.into())
            .await;
        let offline = sent.header("location").to_str().unwrap().to_owned();
        let main = |page: String, here: &str| {
            let from = page.find("<h1>").expect("a page");
            page[from..page.find("</main>").unwrap()].replace(here, "HERE")
        };
        for query in [
            "",
            "?order=oldest",
            "?at=5",
            "?before=9",
            "?after=2",
            "?at=2&kind=workflow",
        ] {
            let of = |here: &str| format!("{here}/history{query}");
            let ours = main(server.get(&of(&offline)).await.text(), &offline);
            let theirs = main(server.get(&of(&live)).await.text(), &live);
            let plain = |page: &str| page.split("looked at").next().unwrap().to_owned();
            assert_eq!(plain(&ours), plain(&theirs), "{query}");
        }
        let payload = "/payload?of=run&id=&part=arguments";
        let ours = server.get(&format!("{offline}{payload}")).await.text();
        let theirs = server.get(&format!("{live}{payload}")).await.text();
        assert_eq!(main(ours, &offline), main(theirs, &live));
        let event = server
            .get(&format!("{offline}/payload?of=event&id=1&part=payload"))
            .await;
        assert_eq!(event.status_code(), 200);
        assert_eq!(
            server
                .get(&format!("{offline}/payload?of=event&id=x"))
                .await
                .status_code(),
            422
        );
    })
    .await;
}

#[tokio::test]
async fn a_run_and_its_bundle_do_not_differ_sqlite() {
    rig::on(plimsoll::db::Dialect::Sqlite, |db| async move {
        let situations = fill(&db).await;
        let server = server(&db.read_only);
        for one in &situations {
            if one.name.contains("hostile") {
                continue;
            }
            let sent = server
                .post("/waterline/bundles")
                .bytes(bundle_of(&db, &one.run_id, None).await.into())
                .await;
            let bundle = sent
                .header("location")
                .to_str()
                .unwrap()
                .rsplit('/')
                .next()
                .unwrap()
                .to_owned();
            for other in [one.run_id.clone(), format!("bundle:{bundle}")] {
                let page = server
                    .get(&format!("/waterline/compare?a={}&b={other}", one.run_id))
                    .await
                    .text();
                assert!(page.contains("No difference in"), "{}: {page}", one.name);
            }
        }
        // Without a partner: the last run of its type that completed.
        let failed = situations
            .iter()
            .find(|one| one.name.contains("fail"))
            .unwrap();
        let offered = server
            .get(&format!("/waterline/compare?a={}", failed.run_id))
            .await;
        assert!([200, 303].contains(&offered.status_code().as_u16()));
        assert_eq!(server.get("/waterline/compare").await.status_code(), 200);
        assert_eq!(
            server
                .get("/waterline/compare?a=nobody&b=nobody")
                .await
                .status_code(),
            404
        );
        assert_eq!(
            server
                .get("/waterline/compare?a=bundle:no&b=bundle:no")
                .await
                .status_code(),
            404
        );
    })
    .await;
}

/// One request over a socket, as text.
fn get(address: &str) -> String {
    let (host, path) = address
        .strip_prefix("http://")
        .unwrap()
        .split_once('/')
        .unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(
        stream,
        "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[tokio::test]
async fn a_bundle_is_opened_without_any_database_sqlite() {
    rig::on(plimsoll::db::Dialect::Sqlite, |db| async move {
        let situations = fill(&db).await;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("bundle.json");
        std::fs::write(&file, bundle_of(&db, &situations[0].run_id, None).await).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
            .arg("open")
            .arg(&file)
            .env_clear()
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let address = line
            .trim()
            .strip_prefix("Plimsoll: ")
            .expect("an address")
            .to_owned();
        let page = get(&address);
        let below = address.split("/bundles").next().unwrap();
        let runs = get(&format!("{below}/runs"));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(
            page.starts_with("HTTP/1.1 200") && page.contains("id=\"verdict\""),
            "{page}"
        );
        assert!(
            !page.contains("href=\"/waterline/runs\""),
            "no way to what is not there"
        );
        assert!(runs.starts_with("HTTP/1.1 503"), "{runs}");

        std::fs::write(&file, "{}").unwrap();
        let refused = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
            .arg("open")
            .arg(&file)
            .env_clear()
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(
            refused.status.code() == Some(1) && said.contains("not a bundle"),
            "{said}"
        );
    })
    .await;
}
