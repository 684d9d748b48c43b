//! A policy with `pages = true` holds for every page and every JSON of a run: what it hides is
//! read nowhere, and what it does not hide is told as before.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use axum::http::StatusCode;
use axum_test::TestServer;
use base64::Engine as _;
use plimsoll::{
    clock::Clock,
    db::Dialect,
    demo::write::write,
    durable::{
        engine_config::EngineConfig,
        export::{Policy, stream},
        repair::Mode,
    },
    web::{
        routes,
        state::{App, ExportSettings, Repairs, Settings},
    },
};
use serde_json::Value;

use crate::{
    export::exported,
    redaction::{HIDES, blocked, plant, runs},
    repair_bulk::{find, hidden},
    rig::{self, TestDb},
    shop::{self, now},
};

/// What rows hold and no page and no JSON ever shows.
const NEVER_SHOWN: [&str; 1] = ["S-task"];

fn secrets() -> &'static [&'static str] {
    HIDES[HIDES.len() - 1].1
}

fn server(db: &TestDb, policy: Option<&str>) -> TestServer {
    let policy: Option<Policy> = policy.map(|text| toml::from_str(text).unwrap());
    let settings = Settings {
        clock: Clock::Frozen(now()),
        db: Some(db.read_only.clone()),
        repairs: Some(Repairs {
            db: db.writable.clone(),
            mode: Mode::Direct,
        }),
        export: ExportSettings { policy, key: None },
        ..Settings::default()
    };
    TestServer::new(routes::router(App::new(settings)))
}

fn hiding(rule: &str) -> String {
    format!("policy = 'support'\npages = true\nrules = [{rule}]")
}

/// The two runs of the redaction tests, with what only pages show of them; their ids.
async fn lay_out(db: &TestDb) -> Vec<(String, String)> {
    let runs = runs();
    let ids = |run: &plimsoll::demo::builder::RunBuilder| {
        (run.instance_id().to_owned(), run.run_id().to_owned())
    };
    let ids = runs.iter().map(ids).collect();
    let rows = runs.into_iter().flat_map(|run| run.build(now())).collect();
    write(&db.writable, rows, |_| ()).await.unwrap();
    plant(db).await;
    let mut tx = db.writable.write().await.unwrap();
    tx.script(
        "update {workflow_tasks} set last_error = 'S-message';
        update {workflow_run_summaries} set liveness_reason = 'S-message';
        update {workflow_updates} set failure_message = 'S-message';
        update {workflow_history_events} set payload = json_set(payload,
          '$.card', json_object('number', 'S-card', 'kind', 'visa')) where event_type = 'WorkflowStarted';",
    )
    .await
    .unwrap();
    tx.commit().await.unwrap();
    ids
}

/// Where runs are told of as a whole, and each event by itself.
fn at_hand(runs: &[(String, String)]) -> VecDeque<String> {
    const SECTIONS: &str = "activities=0&exceptions=0&tasks=0&waits=0&signals=0&updates=0&commands=0&children=0&data=0";
    let mut next: VecDeque<String> = ["/waterline/runs", "/waterline/", "/waterline/api/flows/all"]
        .map(str::to_owned)
        .into();
    for (instance, run) in runs {
        let page = format!("/waterline/instances/{instance}/runs/{run}");
        next.extend([
            format!("/waterline/instances/{instance}"),
            format!("{page}?{SECTIONS}"),
            format!("{page}/history"),
            format!("{page}/repair"),
            format!("{page}/card"),
            format!("/waterline/api/instances/{instance}/runs/{run}?history_limit=all"),
            format!("/waterline/api/instances/{instance}"),
            format!("/waterline/api/flows/{run}"),
            format!("/waterline/compare?a={run}&b={run}&all=1"),
        ]);
        for sequence in 1..40 {
            next.push_back(format!(
                "{page}/payload?of=event&id={sequence}&part=payload"
            ));
        }
    }
    if let [one, other, ..] = runs {
        next.push_back(format!("/waterline/compare?a={}&b={}", one.1, other.1));
    }
    next
}

/// Every page and JSON that tells of the runs: those at hand, and all that these lead to.
async fn walk(server: &TestServer, runs: &[(String, String)]) -> BTreeMap<String, String> {
    let told = read(server, at_hand(runs), true).await;
    assert!(told.len() > 60, "{} pages", told.len());
    told
}

async fn read(
    server: &TestServer,
    mut next: VecDeque<String>,
    follow: bool,
) -> BTreeMap<String, String> {
    let mut told = BTreeMap::new();
    let mut asked = BTreeSet::new();
    while let Some(path) = next.pop_front() {
        let path = path.split('#').next().unwrap_or_default().to_owned();
        if !asked.insert(path.clone()) {
            continue;
        }
        let mut request = server.get(&path);
        if path.ends_with("/card") {
            request = request.add_header("hx-request", "true");
        }
        let answer = request.await;
        if answer.status_code() == StatusCode::NOT_FOUND {
            continue;
        }
        assert!(!answer.status_code().is_server_error(), "{path}");
        let body = answer.text();
        for href in body.split("href=\"").skip(1) {
            let href = href.split('"').next().unwrap_or_default();
            let href = href.replace("&amp;", "&").replace("&#38;", "&");
            let is_told = href.starts_with("/waterline/instances/") || href.contains("/payload?");
            // The same rows, from elsewhere or in another order.
            let again = ["at=", "from=", "order=", "jump=", "before=", "after="];
            if follow && is_told && !again.iter().any(|asks| href.contains(asks)) {
                next.push_back(href);
            }
        }
        told.insert(path, body);
    }
    told
}

/// Whether the word can be read in a text, encoded or not.
fn tells(body: &str, word: &str) -> bool {
    let encoded = |c: char| c.is_ascii_alphanumeric() || "+/=".contains(c);
    body.contains(word)
        || body
            .split(|c| !encoded(c))
            .filter(|token| token.len() >= 12)
            .filter_map(|token| base64::engine::general_purpose::STANDARD.decode(token).ok())
            .any(|bytes| String::from_utf8_lossy(&bytes).contains(word))
}

#[tokio::test]
async fn what_a_policy_hides_is_read_on_no_page_sqlite() {
    rig::on(Dialect::Sqlite, |db| async move {
        let runs = lay_out(&db).await;
        let plain = walk(&server(&db, None), &runs).await;
        for secret in secrets().iter().chain(&["S-card"]) {
            let seen = plain.values().any(|body| tells(body, secret));
            assert!(seen != NEVER_SHOWN.contains(secret), "{secret} as stored");
        }
        for action in ["drop", "mask", "hash"] {
            let rule = hiding(&format!("{{category = '*', action = '{action}'}}"));
            let hidden = walk(&server(&db, Some(&rule)), &runs).await;
            for (path, body) in &hidden {
                for secret in secrets().iter().chain(&["S-card"]) {
                    assert!(!tells(body, secret), "{action}: {secret} at {path}");
                }
            }
            let page = &hidden[&format!("/waterline/instances/{}", runs[0].0)];
            assert!(page.contains("hidden by the policy <bdi>support</bdi>"));
        }
    })
    .await;
}

#[tokio::test]
async fn each_category_is_read_on_no_page_sqlite() {
    rig::on(Dialect::Sqlite, |db| async move {
        let runs = lay_out(&db).await;
        for (n, (category, secrets)) in HIDES.into_iter().enumerate() {
            let action = ["drop", "mask", "hash"][n % 3];
            let rule = format!("{{category = '{category}', action = '{action}'}}");
            let server = server(&db, Some(&hiding(&rule)));
            for (path, body) in read(&server, at_hand(&runs), false).await {
                for secret in secrets {
                    let told = tells(&body, secret);
                    assert!(!told, "{category}, {action}: {secret} at {path}");
                }
            }
        }
    })
    .await;
}

#[tokio::test]
async fn the_error_that_blocks_a_replay_is_read_on_no_page_sqlite() {
    rig::on(Dialect::Sqlite, |db| async move {
        let run = blocked();
        let ids = [(run.instance_id().to_owned(), run.run_id().to_owned())];
        write(&db.writable, run.build(now()), |_| ()).await.unwrap();
        let plain = read(&server(&db, None), at_hand(&ids), false).await;
        assert!(plain.values().any(|body| tells(body, "S-message")));
        let rule = hiding("{category = 'failure_diagnostic'}");
        for (path, body) in read(&server(&db, Some(&rule)), at_hand(&ids), false).await {
            assert!(!tells(&body, "S-message"), "{path}");
        }
    })
    .await;
}

#[tokio::test]
async fn where_a_value_stood_there_is_a_mark_sqlite() {
    rig::on(Dialect::Sqlite, |db| async move {
        let runs = lay_out(&db).await;
        let (instance, run) = &runs[1];
        let at = format!("/waterline/api/instances/{instance}/runs/{run}");
        let told = |server: TestServer| {
            let at = at.clone();
            async move { server.get(&at).await.json::<Value>() }
        };
        let rule =
            "{category = 'failure_diagnostic'}, {category = 'workflow_payload', action = 'hash'}";
        let json = told(server(&db, Some(&hiding(rule)))).await;
        assert_eq!(json["plimsoll"]["redacted_by"], "support");
        let exceptions = json["exceptions"].as_array().unwrap();
        assert!(!exceptions.is_empty());
        for exception in exceptions {
            assert_eq!(exception["exception"]["message"], "[hidden]");
        }
        assert_eq!(json["arguments"]["redacted"], true, "{}", json["arguments"]);
        assert_eq!(json["arguments"]["sha256"].as_str().unwrap().len(), 64);
        let page = server(&db, Some(&hiding(rule)));
        let page = page.get(&format!(
            "/waterline/instances/{instance}?exceptions=0&data=0"
        ));
        let page = page.await.text();
        assert!(page.contains("[hidden]"));
        assert!(page.contains("a redaction policy hides this value"));
        assert!(!page.contains("undecodable"), "{page}");

        let json = told(server(&db, None)).await;
        assert_eq!(json["plimsoll"]["redacted_by"], Value::Null);
    })
    .await;
}

#[tokio::test]
async fn a_redacted_bundle_is_opened_with_the_same_marks_sqlite() {
    rig::on(Dialect::Sqlite, |db| async move {
        let runs = lay_out(&db).await;
        let rules = "rules = [{category = 'failure_diagnostic'}, {category = 'workflow_payload'}]";
        let policy: Policy = toml::from_str(rules).unwrap();
        let config = EngineConfig::defaults();
        let options = stream::Options {
            now: now(),
            config: &config,
            policy: Some(&policy),
            key: None,
            batch: stream::Options::BATCH,
        };
        let (text, _) = exported(&db.read_only, &runs[1].1, options).await.unwrap();
        let server = server(&db, None);
        let sent = server.post("/waterline/bundles").bytes(text.into()).await;
        let at = sent.header("location").to_str().unwrap().to_owned();
        let page = server
            .get(&format!("{at}?exceptions=0&data=0"))
            .await
            .text();
        assert!(page.contains("Redacted by the policy"), "{page}");
        assert!(page.contains("[hidden]"));
        assert!(page.contains("a redaction policy hides this value"));
        assert!(!page.contains("undecodable"));
    })
    .await;
}

#[tokio::test]
async fn no_text_is_found_in_what_is_hidden_sqlite() {
    rig::on(Dialect::Sqlite, |db| async move {
        let runs = lay_out(&db).await;
        let (plain, hides) = (
            server(&db, None),
            server(&db, Some(&hiding("{category = '*'}"))),
        );
        let (instance, run) = &runs[0];
        for word in ["S-message", "S-result", "S-card", "s-arguments", "visa"] {
            let at =
                |word: &str| format!("/waterline/instances/{instance}/runs/{run}/history?q={word}");
            let found = hides.get(&at(word)).await.text();
            let nonsense = hides.get(&at("nonsense")).await.text();
            assert_eq!(found.replace(word, "nonsense"), nonsense, "{word}");
        }
        // It is looked for where it is not hidden.
        let at = format!("/waterline/instances/{instance}/runs/{run}/history?q=S-card");
        assert!(plain.get(&at).await.text().contains("1 event;"));
        let at = format!("/waterline/instances/{instance}/runs/{run}/history?q=WorkflowStarted");
        assert!(hides.get(&at).await.text().contains("1 event;"));
    })
    .await;
}

/// The line on top of every page, and the key beside every JSON, that name the policy.
fn but_for_the_name(body: &str) -> String {
    let out = match body.split_once("<p id=\"hides\"") {
        Some((before, line)) => format!("{before}{}", line.split_once("</p>").unwrap().1),
        None => body.to_owned(),
    };
    let out = out.replace("\"redacted_by\":\"support\"", "\"redacted_by\":null");
    out.replace(
        " Hidden values are compared only where the policy leaves their digest.",
        "",
    )
}

#[tokio::test]
async fn a_rule_for_one_key_hides_that_key_alone_sqlite() {
    rig::on(Dialect::Sqlite, |db| async move {
        let runs = lay_out(&db).await;
        let plain = walk(&server(&db, None), &runs).await;
        let rule = hiding("{path = 'history_events.*.payload.card.number'}");
        let hidden = walk(&server(&db, Some(&rule)), &runs).await;
        let mut showed = 0;
        for (path, body) in &plain {
            if tells(body, "S-card") {
                showed += 1;
                assert!(!tells(&hidden[path], "S-card"), "{path}");
                assert!(hidden[path].contains("visa"), "{path}");
            } else if !path.ends_with("/repair") {
                assert!(but_for_the_name(&hidden[path]) == *body, "{path}");
            }
        }
        assert!(showed > 0);
    })
    .await;
}

#[tokio::test]
async fn a_policy_for_exports_alone_changes_no_page_sqlite() {
    rig::on(Dialect::Sqlite, |db| async move {
        let runs = lay_out(&db).await;
        let plain = walk(&server(&db, None), &runs).await;
        let policy = "policy = 'support'\nrules = [{category = '*'}]";
        let exports = walk(&server(&db, Some(policy)), &runs).await;
        for (path, body) in plain.iter().filter(|(path, _)| !path.ends_with("/repair")) {
            assert!(exports[path] == *body, "{path}");
        }
    })
    .await;
}

/// Where both differ, and how the second is there.
fn changes(plain: &Value, hidden: &Value, path: &str, out: &mut Vec<(String, String)>) {
    match (plain, hidden) {
        (Value::Object(a), Value::Object(b)) if hidden["redacted"] != true => {
            for key in a.keys().chain(b.keys().filter(|key| !a.contains_key(*key))) {
                let null = Value::Null;
                let (a, b) = (a.get(key).unwrap_or(&null), b.get(key).unwrap_or(&null));
                changes(a, b, &format!("{path}.{key}"), out);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (n, (a, b)) in a.iter().zip(b).enumerate() {
                changes(a, b, &format!("{path}.{n}"), out);
            }
        }
        (a, b) if a == b => {}
        (_, b) => out.push((path.to_owned(), b.to_string())),
    }
}

/// Hiding everything must not make another run of it: what is due, stuck, tried and waited for is
/// told as before.
#[tokio::test]
async fn what_is_not_hidden_is_told_as_before_sqlite() {
    rig::on(Dialect::Sqlite, |db| async move {
        let situations = shop::fill_short(&db).await;
        let (plain, hides) = (
            server(&db, None),
            server(&db, Some(&hiding("{category = '*'}"))),
        );
        let mut wrong = Vec::new();
        for situation in &situations {
            let at = format!(
                "/waterline/api/instances/{}/runs/{}?history_limit=all",
                situation.instance_id, situation.run_id
            );
            let (plain, hidden) = (plain.get(&at).await, hides.get(&at).await);
            let (plain, hidden): (Value, Value) = (plain.json(), hidden.json());
            let mut changed = Vec::new();
            changes(&plain, &hidden, "", &mut changed);
            changed.retain(|(path, now)| {
                let marked = now.contains("[hidden]") || now.contains("\"redacted\":true");
                // What is a list of texts or of frames is left out as a whole.
                let gone = ["null", "[]", "{}", "\"\""].contains(&now.as_str());
                let of_keys = ["\"Search attributes updated\"", "\"Memo updated\""];
                let part =
                    path.contains(".last_heartbeat_progress.") || of_keys.contains(&now.as_str());
                let key = path.rsplit('.').next().unwrap_or_default();
                let may_go = [
                    "reason",
                    "trace",
                    "properties",
                    "validation_errors",
                    "code",
                    "details",
                    "attributes",
                    "entries",
                ];
                let named = path == ".plimsoll.redacted_by";
                !(named || marked || part || (gone && may_go.contains(&key)))
            });
            for (path, now) in changed {
                wrong.push(format!("{}{path} is {now}", situation.name));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    })
    .await;
}

#[tokio::test]
async fn a_repair_is_planned_from_what_is_stored_and_shown_without_what_is_hidden_sqlite() {
    rig::on(Dialect::Sqlite, |db| async move {
        let situations = shop::fill_short(&db).await;
        let lost = find(&situations, "activity-task-and-execution-lost");
        let mut tx = db.writable.write().await.unwrap();
        tx.script(
            "update {workflow_history_events} set payload =
              json_set(payload, '$.activity.arguments', 'S-given') where event_type = 'ActivityScheduled';",
        )
        .await
        .unwrap();
        tx.commit().await.unwrap();
        let at = format!(
            "/waterline/instances/{}/runs/{}/repair",
            lost.instance_id, lost.run_id
        );
        let plain = server(&db, None).get(&at).await.text();
        assert!(plain.contains("S-given"), "{plain}");
        let hides = server(&db, Some(&hiding("{category = '*'}")));
        let page = hides.get(&at).await.text();
        assert!(!tells(&page, "S-given"));
        let of_form = |page: &str, name| hidden(page, "repair-form", name);
        let digest = of_form(&page, "digest");
        assert_eq!(digest, of_form(&plain, "digest"));

        let sent = [
            ("digest", digest.as_str()),
            ("token", &of_form(&page, "token")),
            ("name", &lost.instance_id),
            ("reason", "the queue was flushed"),
        ];
        let done = hides.post(&at).form(&sent).await;
        done.assert_status_ok();
        assert!(!tells(&done.text(), "S-given"));
        let mut q = db.read_only.statement();
        q.push("select arguments from {activity_executions} where workflow_run_id = ")
            .bind(lost.run_id.as_str());
        let mut snapshot = db.read_only.snapshot().await.unwrap();
        let mut rows = snapshot.fetch(q).await.unwrap();
        snapshot.end().await;
        let restored = rows.iter_mut().any(|row| row.opt_text("arguments").unwrap().as_deref() == Some("S-given"));
        assert!(restored, "what was written is what is stored");
    })
    .await;
}

#[tokio::test]
async fn why_a_try_failed_is_hidden_in_the_diagnosis_too_sqlite() {
    rig::on(Dialect::Sqlite, |db| async move {
        let told = "Gateway did not answer";
        for name in ["retrying-mid-backoff", "retry-task-lost"] {
            let situation = shop::situation(name, now());
            let ids = [(situation.instance_id, situation.run_id)];
            write(&db.writable, situation.rows, |_| ()).await.unwrap();
            let plain = read(&server(&db, None), at_hand(&ids), false).await;
            assert!(plain.values().any(|body| body.contains(told)), "{name}");
            let rule = hiding("{category = 'failure_diagnostic'}");
            for (path, body) in read(&server(&db, Some(&rule)), at_hand(&ids), false).await {
                assert!(!tells(&body, told), "{name}: {path}");
            }
        }
    })
    .await;
}
