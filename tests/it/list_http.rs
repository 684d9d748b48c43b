//! The run list over HTTP: its JSON and its page, every filter, every page, on every database.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use axum::http::StatusCode;
use axum_test::TestServer;
use plimsoll::{
    db::{Db, Dialect},
    demo::{rows::InsertRow, write::write},
    durable::{
        projection::{list_item::list_item, list_row::list_row, repair_gate},
        store::runs::{self, extras},
        stored::{ListedRun, Notices, RunSummary, Summary as _},
    },
};
use serde_json::Value;

use crate::{
    list_plans::script,
    rig::{self, TestDb, on_every_database},
    shop::{add_summaries, failure_of, fill, now, server, summary},
};

/// A run with what filters ask about.
struct Full {
    summary: RunSummary,
    item: Value,
    /// The words of its badges on the page.
    badges: Vec<String>,
}

/// Every run, in the list's order: newest first, those without a time last.
async fn everything(db: &Db) -> Vec<Full> {
    let mut snapshot = db.snapshot().await.unwrap();
    let mut q = snapshot.statement();
    q.push("select ")
        .push(RunSummary::COLUMNS)
        .push(" from {workflow_run_summaries}");
    let mut notices = Notices::default();
    let mut rows: Vec<RunSummary> = snapshot
        .fetch(q)
        .await
        .unwrap()
        .iter_mut()
        .map(|row| RunSummary::read(row, &mut notices).unwrap())
        .collect();
    rows.sort_by(|a, b| (b.sort_timestamp, &b.id).cmp(&(a.sort_timestamp, &a.id)));
    let mut attributes = extras::search_attributes(&mut snapshot, &rows, &mut notices)
        .await
        .unwrap();
    let mut q = snapshot.statement();
    q.push("select ")
        .push(ListedRun::COLUMNS)
        .push(" from {workflow_run_summaries}");
    let listed = snapshot.fetch(q).await.unwrap();
    let listed: Vec<ListedRun> = listed
        .into_iter()
        .map(|mut row| ListedRun::read(&mut row, &mut notices).unwrap())
        .collect();
    let mut beside = extras::beside(&mut snapshot, &listed, &mut notices)
        .await
        .unwrap();
    let mut badges: HashMap<String, Vec<String>> = HashMap::new();
    for run in &listed {
        let beside = beside.remove(&run.id).unwrap_or_default();
        let row = list_row(run, &beside.failures, beside.retrying.as_ref(), now());
        let words = row.attention.into_iter().map(|tag| tag.label.to_string());
        badges.insert(run.id.clone(), words.collect());
    }
    snapshot.end().await;
    rows.into_iter()
        .map(|summary| Full {
            item: list_item(&summary, attributes.remove(&summary.id).unwrap_or_default()),
            badges: badges.remove(&summary.id).unwrap_or_default(),
            summary,
        })
        .collect()
}

fn ids(rows: &[Full], keep: impl Fn(&Full) -> bool) -> Vec<String> {
    let kept = rows.iter().filter(|row| keep(row));
    kept.map(|row| row.summary.id.clone()).collect()
}

async fn json(server: &TestServer, path: &str) -> Value {
    let response = server.get(path).await;
    assert_eq!(response.status_code(), 200, "{path}: {}", response.text());
    response.json()
}

/// The ids of the projected runs on one page of the JSON.
fn data_ids(document: &Value) -> Vec<String> {
    let data = document["data"].as_array().expect("data");
    data.iter()
        .filter(|item| item.get("operator_visibility_degraded").is_none())
        .map(|item| item["id"].as_str().expect("an id").to_owned())
        .collect()
}

fn with(path: &str, query: &str) -> String {
    let glue = if path.contains('?') { '&' } else { '?' };
    if query.is_empty() {
        path.to_owned()
    } else {
        format!("{path}{glue}{query}")
    }
}

/// Follows the list to its end and back, and returns what the way there showed.
async fn there_and_back(server: &TestServer, path: &str) -> Vec<String> {
    let mut pages = Vec::new();
    let mut next = Some(path.to_owned());
    let mut last = Value::Null;
    while let Some(path) = next.take() {
        last = json(server, &path).await;
        let rows = last["data"].as_array().unwrap().len();
        assert!(rows as u64 <= last["per_page"].as_u64().unwrap(), "{path}");
        pages.push(data_ids(&last));
        next = last["next_page_url"].as_str().map(str::to_owned);
        assert!(pages.len() < 3_000, "{path} does not end");
    }
    let there: Vec<String> = pages.concat();
    let mut back = pages.last().cloned().unwrap_or_default();
    while let Some(path) = last["prev_page_url"].as_str().map(str::to_owned) {
        last = json(server, &path).await;
        let mut page = data_ids(&last);
        page.append(&mut back);
        back = page;
        assert!(
            back.len() <= there.len(),
            "{path}: the way back shows more than the way there"
        );
    }
    assert_eq!(back, there, "{path}: the way back");
    there
}

/// The run ids a page of the browser links to, inside the list proper.
fn page_ids(html: &str) -> Vec<String> {
    let Some((_, list)) = html.split_once("<caption class=\"sr\">Runs</caption>") else {
        return Vec::new();
    };
    let mut found: Vec<String> = Vec::new();
    for part in list.split("/runs/").skip(1) {
        let id = part
            .split(['"', '?', '#', '/'])
            .next()
            .unwrap_or_default()
            .to_owned();
        if found.last() != Some(&id) {
            found.push(id);
        }
    }
    found
}

type Keep = fn(&Full) -> bool;

fn text(row: &Full, field: &str) -> String {
    row.item[field].as_str().unwrap_or_default().to_owned()
}

/// Every filter with a value the shop floor knows, and the same in Rust.
const FILTERS: &[(&str, Keep)] = &[
    ("status=waiting", |r| text(r, "status") == "waiting"),
    ("status=failed", |r| text(r, "status") == "failed"),
    ("status=completed", |r| text(r, "status") == "completed"),
    ("status_bucket=running", |r| {
        text(r, "status_bucket") == "running"
    }),
    ("status_bucket=failed", |r| {
        text(r, "status_bucket") == "failed"
    }),
    ("closed_reason=completed", |r| {
        text(r, "closed_reason") == "completed"
    }),
    ("workflow_type=order.fulfil", |r| {
        text(r, "workflow_type") == "order.fulfil"
    }),
    ("workflow_type_prefix=order.", |r| {
        text(r, "workflow_type").starts_with("order.")
    }),
    ("workflow_type_contains=fulf", |r| {
        text(r, "workflow_type").contains("fulf")
    }),
    ("contains[workflow_type]=fulf", |r| {
        text(r, "workflow_type").contains("fulf")
    }),
    ("instance_id=ord-48288", |r| {
        text(r, "instance_id") == "ord-48288"
    }),
    ("instance_id_contains=48288", |r| {
        text(r, "instance_id").contains("48288")
    }),
    ("business_key=ORD-48288", |r| {
        text(r, "business_key") == "ORD-48288"
    }),
    ("business_key_contains=48288", |r| {
        text(r, "business_key").contains("48288")
    }),
    ("namespace=production", |r| {
        text(r, "namespace") == "production"
    }),
    ("namespace=(none)", |r| r.item["namespace"].is_null()),
    ("namespace=production&workflow_type=order.fulfil", |r| {
        text(r, "namespace") == "production" && text(r, "workflow_type") == "order.fulfil"
    }),
    ("namespace=production&status_bucket=running", |r| {
        text(r, "namespace") == "production" && text(r, "status_bucket") == "running"
    }),
    ("namespace=north&status=failed&queue=slow", |r| {
        text(r, "namespace") == "north"
            && text(r, "status") == "failed"
            && text(r, "queue") == "slow"
    }),
    ("queue=reports", |r| text(r, "queue") == "reports"),
    ("failure_category=activity", |r| has_badge(r, "activity")),
    ("failure_category=application", |r| {
        has_badge(r, "application")
    }),
    ("failure_category=timeout", |r| has_badge(r, "timeout")),
    ("failure_category=unclassified", |r| {
        has_badge(r, "unclassified")
    }),
    // The status says it already.
    ("failure_category=cancelled", |r| {
        text(r, "status") == "cancelled" && r.summary.exception_count > 0
    }),
    ("non_retryable=1", |r| has_badge(r, "non-retryable")),
    ("non_retryable=0", |r| !has_badge(r, "non-retryable")),
    ("failure_category=activity&non_retryable=1", |r| {
        has_badge(r, "activity") && has_badge(r, "non-retryable")
    }),
    ("wait_kind=activity", |r| text(r, "wait_kind") == "activity"),
    ("wait_kind=signal", |r| text(r, "wait_kind") == "signal"),
    ("liveness_state=closed", |r| {
        text(r, "liveness_state") == "closed"
    }),
    ("liveness_state=repair_needed", |r| {
        text(r, "liveness_state") == "repair_needed"
    }),
    ("task_problem_code=replay_blocked", |r| {
        r.item["task_problem_badge"]["code"] == "replay_blocked"
    }),
    ("task_problem_code=active", |r| {
        r.item["task_problem_badge"]["code"] == "active"
    }),
    ("task_problem_code=history", |r| {
        r.item["task_problem_badge"]["code"] == "history"
    }),
    ("task_problem_code=any", |r| r.item["task_problem"] == true),
    ("task_problem_code=none", |r| {
        r.item["task_problem"] == false
    }),
    ("task_problem=yes", |r| r.item["task_problem"] == true),
    ("needs_repair=1", |r| {
        repair_gate::of_summary(r.summary.standing()).is_ok()
    }),
    ("repair_blocked_reason=repair_not_needed", |r| {
        text(r, "repair_blocked_reason") == "repair_not_needed"
    }),
    ("repair_attention=1", |r| r.item["repair_attention"] == true),
    ("repair_attention=0", |r| {
        r.item["repair_attention"] == false
    }),
    ("is_current_run=0", |r| r.item["is_current_run"] == false),
    ("is_current_run=1", |r| r.item["is_current_run"] == true),
    ("is_terminal=true", |r| r.item["is_terminal"] == true),
    ("is_terminal=false", |r| r.item["is_terminal"] == false),
    ("archived=1", |r| !r.item["archived_at"].is_null()),
    ("archived=0", |r| r.item["archived_at"].is_null()),
    ("continue_as_new_recommended=1", |r| {
        r.item["continue_as_new_recommended"] == true
    }),
    ("declared_entry_mode=canonical", |r| {
        text(r, "declared_entry_mode") == "canonical"
    }),
    ("declared_contract_source=durable_history", |r| {
        text(r, "declared_contract_source") == "durable_history"
    }),
    ("started=24h", |r| {
        r.summary
            .sort_timestamp
            .is_some_and(|at| at >= now() - chrono::TimeDelta::hours(24))
    }),
    ("from=2026-11-15T11:00:00Z", |r| {
        r.summary
            .sort_timestamp
            .is_some_and(|at| at >= now() - chrono::TimeDelta::hours(1))
    }),
    ("to=2026-11-15T11:00:00Z", |r| {
        r.summary
            .sort_timestamp
            .is_some_and(|at| at < now() - chrono::TimeDelta::hours(1))
    }),
    (
        "from=2026-11-15T10:00&to=2026-11-15T11:30&status_bucket=running",
        |r| {
            let range = now() - chrono::TimeDelta::hours(2)..now() - chrono::TimeDelta::minutes(30);
            r.summary
                .sort_timestamp
                .is_some_and(|at| range.contains(&at))
                && text(r, "status_bucket") == "running"
        },
    ),
];

fn has_badge(row: &Full, word: &str) -> bool {
    row.badges.iter().any(|badge| badge == word)
}

/// What a filter's key may be; the shop floor also has hostile ones.
fn is_plain(key: &str) -> bool {
    key.chars()
        .all(|c| c.is_ascii_alphanumeric() || "_.:-".contains(c))
}

/// Filters on what only the data can name: a value of some run, and the same in Rust.
fn filters_from_data(rows: &[Full]) -> Vec<(String, BTreeSet<String>)> {
    let mut found = Vec::new();
    let mut add = |query: String, keep: &dyn Fn(&Full) -> bool| {
        found.push((query, ids(rows, keep).into_iter().collect()));
    };
    for field in ["queue", "connection", "compatibility"] {
        let value = rows
            .iter()
            .map(|row| text(row, field))
            .find(|value| !value.is_empty());
        let value = value.unwrap_or_else(|| panic!("some run has a {field}"));
        add(format!("{field}={value}"), &|row| text(row, field) == value);
    }
    let run = text(&rows[rows.len() / 2], "id");
    add(format!("run_id={run}"), &|row| row.summary.id == run);
    add(format!("run_id_contains={}", &run[8..20]), &|row| {
        row.summary.id.contains(&run[8..20])
    });
    for (field, param) in [
        ("visibility_labels", "label"),
        ("search_attributes", "search_attribute"),
    ] {
        let mut pairs: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
        for row in rows {
            for (key, value) in row.item[field].as_object().into_iter().flatten() {
                let values = match value {
                    Value::Array(list) => list.clone(),
                    other => vec![other.clone()],
                };
                for value in values {
                    let value = value
                        .as_str()
                        .map_or_else(|| value.to_string(), str::to_owned);
                    pairs
                        .entry((key.clone(), value))
                        .or_default()
                        .insert(row.summary.id.clone());
                }
            }
        }
        assert!(!pairs.is_empty(), "some run has {field}");
        for ((key, value), ids) in pairs {
            if value.len() <= 191 && value.trim() == value && !value.is_empty() && is_plain(&key) {
                let value: String =
                    url::form_urlencoded::byte_serialize(value.as_bytes()).collect();
                found.push((format!("{param}[{key}]={value}"), ids));
            }
        }
    }
    found
}

/// A run of `workflow_runs` alone.
fn forgotten() -> InsertRow {
    InsertRow::new("workflow_runs")
        .set("id", "01zzzzzzzzzzzzzzzzzzzzzzzz")
        .set("workflow_instance_id", "forgotten")
        .set("run_number", 1)
        .set("workflow_class", "App\\Forgotten")
        .set("workflow_type", "forgotten.run")
        .set("status", "waiting")
        .time("started_at", now() - chrono::TimeDelta::hours(1))
        .stamps(now(), now())
}

/// How many such runs are on a page.
fn unprojected(document: &Value) -> usize {
    document["data"].as_array().unwrap().len() - data_ids(document).len()
}

on_every_database! {
    // One test, because laying the shop floor out takes longer than all it asks.
    async fn the_shop_floor_is_listed_filtered_and_found(db: TestDb) {
        fill(&db).await;
        add_summaries(&db, 0..60).await;
        write(&db.writable, vec![forgotten()], |_| ()).await.unwrap();
        let rows = everything(&db.read_only).await;
        let server = server(&db.read_only);
        every_filter_keeps_what_it_says_and_nothing_else(&server, &rows).await;
        each_list_holds_its_status(&server, &rows).await;
        the_answer_has_the_shape_scripts_know(&server).await;
        what_cannot_be_meant_is_refused_by_name(&server).await;
        the_page_and_the_json_show_the_same_runs(&server).await;
        a_run_without_a_summary_is_listed_all_the_same(&server).await;
        any_id_leads_to_its_run(&server, &db.read_only).await;
    }

    async fn pages_show_every_run_once_both_ways(db: TestDb) {
        add_summaries(&db, 0..200).await;
        let rows = everything(&db.read_only).await;
        assert!(rows.iter().filter(|row| row.summary.sort_timestamp.is_none()).count() > 2);
        let server = server(&db.read_only);
        let filters: &[(&str, Keep)] = &[
            ("", |_| true),
            ("namespace=north", |r| text(r, "namespace") == "north"),
            ("namespace=(none)", |r| r.item["namespace"].is_null()),
            ("namespace=north&workflow_type=seed.one", |r| text(r, "namespace") == "north" && text(r, "workflow_type") == "seed.one"),
            ("status_bucket=failed", |r| text(r, "status_bucket") == "failed"),
            ("namespace=south&status_bucket=completed", |r| text(r, "namespace") == "south" && text(r, "status_bucket") == "completed"),
            ("queue=slow", |r| text(r, "queue") == "slow"),
            ("status=cancelled", |r| text(r, "status") == "cancelled"),
            ("business_key=SEED-1", |r| text(r, "business_key") == "SEED-1"),
            ("task_problem_code=history", |r| r.item["task_problem_badge"]["code"] == "history"),
        ];
        for (query, keep) in filters {
            let newest_first = ids(&rows, keep);
            assert!(newest_first.len() > 2, "{query}");
            // Those without a time stay last, the last id first or last as the list goes.
            let mut oldest_first: Vec<_> = rows.iter().filter(|row| keep(row)).collect();
            oldest_first.sort_by_key(|row| (row.summary.sort_timestamp.is_none(), row.summary.sort_timestamp, row.summary.id.clone()));
            let oldest_first: Vec<_> = oldest_first.iter().map(|row| row.summary.id.clone()).collect();
            for size in [7, 50] {
                let path = with(&format!("/waterline/api/flows/all?per_page={size}"), query);
                assert_eq!(there_and_back(&server, &path).await, newest_first, "{path}");
                let path = with(&path, "sort_direction=asc");
                assert_eq!(there_and_back(&server, &path).await, oldest_first, "{path}");
            }
            // The same by page numbers.
            let mut counted = Vec::new();
            for page in 1.. {
                let path = with(&format!("/waterline/api/flows/all?per_page=40&page={page}"), query);
                let document = json(&server, &path).await;
                assert_eq!(document["current_page"], page, "{path}");
                let found = data_ids(&document);
                if found.is_empty() {
                    break;
                }
                counted.extend(found);
            }
            assert_eq!(counted, newest_first, "{query} by page numbers");
        }
    }

    async fn statements_do_not_grow_with_the_data(db: TestDb) {
        add_summaries(&db, 0..400).await;
        let before = server(&db.read_only);
        let deep = json(&before, "/waterline/api/flows/all?page=5").await["next_page_url"].as_str().unwrap().to_owned();
        let paths = [
            "/waterline/api/flows/all".to_owned(),
            deep.clone(),
            "/waterline/api/flows/all?namespace=north".to_owned(),
            "/waterline/api/flows/running".to_owned(),
            "/waterline/runs".to_owned(),
            deep.replace("/api/flows/all", "/runs"),
            "/waterline/runs?namespace=north".to_owned(),
            "/waterline/runs?status_bucket=failed".to_owned(),
            // Two more: the window's end, and the rows in it.
            "/waterline/api/flows/all?queue=slow".to_owned(),
            "/waterline/runs?queue=slow".to_owned(),
        ];
        let mut counts = Vec::new();
        for path in &paths {
            counts.push(statements(&before, path).await);
        }
        assert_eq!(counts[0..8], [2; 8], "first, deep and filtered pages of {paths:?}");
        assert!(counts.iter().all(|n| *n <= 6), "{counts:?}");
        add_summaries(&db, 400..6_400).await;
        let after = server(&db.read_only);
        for (path, before) in paths.iter().zip(counts) {
            assert!(statements(&after, path).await <= before, "{path}");
        }
    }

    // However many runs have a failure of the category that is not the one they are known by.
    async fn a_failure_filter_sends_the_same_statements_whatever_it_finds(db: TestDb) {
        let paths = ["/waterline/runs?failure_category=activity", "/waterline/api/flows/all?failure_category=activity"];
        write(&db.writable, (0..400).flat_map(failed).collect(), |_| ()).await.unwrap();
        let mut counts = Vec::new();
        for path in paths {
            counts.push(statements(&server(&db.read_only), path).await);
        }
        // Rows with a time and rows without: the window's end, the rows in it, their failures.
        assert!(counts.iter().all(|n| *n <= 8), "{counts:?}");
        write(&db.writable, (400..6_400).flat_map(failed).collect(), |_| ()).await.unwrap();
        let server = server(&db.read_only);
        for (path, before) in paths.into_iter().zip(counts) {
            assert!(statements(&server, path).await <= before, "{path}");
        }
        assert_eq!(there_and_back(&server, "/waterline/api/flows/all?failure_category=application&per_page=200").await.len(), 6_400);
    }

    // A status that no run has is counted, so there is nothing to go on looking for.
    async fn a_list_known_to_be_empty_offers_no_further_search(db: TestDb) {
        let rows = (0..runs::WINDOW + 200).map(|n| { let [row, ..] = failed(n); row }).collect();
        write(&db.writable, rows, |_| ()).await.unwrap();
        let server = server(&db.read_only);
        let page = server.get("/waterline/runs?status=terminated").await.text();
        assert!(page.contains("none match") && page.contains("No run matches this filter."), "{page}");
        assert!(!page.contains("Look further") && !page.contains("looked at"));
    }

    // JSON can say what PostgreSQL's text cannot hold; one such row must not hide the others.
    async fn a_label_or_attribute_of_any_text_leaves_the_filter_working(db: TestDb) {
        let texts = [
            r#""blue","a\u0000b""#,
            r#""blue","\ud83d""#,
            r#""blue","\ude00\ud83d""#,
            r#""blue","\\u0000 \\\u0000""#,
            r#""\ud83d\ude00","\\\ud83d\ude00""#,
            r#""a\u0000b","plain""#,
            r#""grün","\u0067r\u00fcn""#,
        ];
        let mut rows = Vec::new();
        // MariaDB stores no half of a pair.
        let stored = |n: &u32| db.dialect() != Dialect::MySql || ![1, 2].contains(n);
        for (n, text) in (0..).zip(texts).filter(|(n, _)| stored(n)) {
            let labels = text.replacen(',', ",\"odd\":", 1);
            let mut run = forgotten();
            run.replace("id", format!("01seed{n:020}"));
            run.replace("workflow_instance_id", format!("odd-{n}"));
            rows.push(run);
            rows.push(summary(n).set("visibility_labels", format!("{{\"team\":{labels}}}")));
            rows.push(
                InsertRow::new("workflow_search_attributes")
                    .set("workflow_run_id", format!("01seed{n:020}"))
                    .set("workflow_instance_id", format!("seed-{}", n / 2))
                    .set("key", "team")
                    .set("type", "keyword_list")
                    .set("value_keyword_list", format!("[{text}]"))
                    .set("upserted_at_sequence", 1)
                    .stamps(now(), now()),
            );
        }
        write(&db.writable, rows, |_| ()).await.unwrap();
        let server = server(&db.read_only);
        let found = async |query: &str| -> BTreeSet<u32> {
            let ids = there_and_back(&server, &with("/waterline/api/flows/all", query)).await;
            ids.iter().map(|id| id[6..].parse().unwrap()).collect()
        };
        for (value, label, attribute) in [
            ("blue", [0, 1, 2, 3].as_slice(), [0, 1, 2, 3].as_slice()),
            ("%F0%9F%98%80", &[4], &[4]),
            ("ab", &[], &[]),
            ("plain", &[], &[5]),
            ("gr%C3%BCn", &[6], &[6]),
        ] {
            let [label, attribute] = [label, attribute].map(|all| all.iter().copied().filter(stored));
            assert_eq!(found(&format!("label[team]={value}")).await, label.collect(), "label {value}");
            assert_eq!(found(&format!("search_attribute[team]={value}")).await, attribute.collect(), "attribute {value}");
        }
        assert_eq!(found("label[odd]=gr%C3%BCn").await, BTreeSet::from([6]));
        assert_eq!(found("label[odd]=plain").await, BTreeSet::from([5]));
    }

    // The columns hold 191 characters, however many bytes those are.
    async fn a_key_is_as_long_as_its_column(db: TestDb) {
        let key = "ü".repeat(191);
        let mut summary = summary(1);
        summary.replace("business_key", key.as_str());
        let mut run = forgotten().set("business_key", key.as_str());
        run.replace("id", summary.text("id").unwrap());
        write(&db.writable, vec![run, summary], |_| ()).await.unwrap();
        let server = server(&db.read_only);
        let encoded: String = url::form_urlencoded::byte_serialize(key.as_bytes()).collect();
        let found = server.get(&format!("/waterline/find?q={encoded}")).await;
        assert_eq!(found.status_code(), StatusCode::SEE_OTHER, "{}", found.text());
        let listed = json(&server, &format!("/waterline/api/flows/all?business_key={encoded}")).await;
        assert_eq!(data_ids(&listed).len(), 1);
        let too_long = server.get(&format!("/waterline/find?q={encoded}x")).await;
        assert_eq!(too_long.status_code(), 422);
        assert!(too_long.text().contains("too long"));
        let too_long = server.get(&format!("/waterline/runs?business_key={encoded}x")).await;
        assert_eq!(too_long.status_code(), 422);
        assert!(too_long.text().contains("too long"));
    }

    async fn a_window_that_ends_is_followed_both_ways(db: TestDb) {
        add_summaries(&db, 0..runs::WINDOW * 2 + 500).await;
        let rows = everything(&db.read_only).await;
        let server = server(&db.read_only);
        let queries: &[(&str, Keep)] = &[
            ("task_problem=1", |r| r.item["task_problem"] == true),
            ("instance_id_contains=-100", |r| text(r, "instance_id").contains("-100")),
            ("wait_kind=signal&task_problem=1", |r| text(r, "wait_kind") == "signal" && r.item["task_problem"] == true),
        ];
        for (query, keep) in queries {
            let want = ids(&rows, keep);
            let path = with("/waterline/api/flows/all?per_page=37", query);
            assert_eq!(there_and_back(&server, &path).await, want, "{query}");
        }
        // How many rows were looked at is told where that ended the search.
        let end = rows.last().unwrap().summary.sort_timestamp;
        assert!(end.is_none(), "the list ends with runs without a time");
        for (query, looked, complete) in [
            ("task_problem=1&per_page=10", None, false),
            ("instance_id_contains=nobody", Some(runs::WINDOW), false),
            ("instance_id_contains=nobody&from=2026-11-15T10:00:00Z", None, true),
        ] {
            let document = json(&server, &format!("/waterline/api/flows/all?{query}")).await;
            assert_eq!(document["looked"]["rows"], Value::from(looked), "{query}");
            assert_eq!(document["looked"]["complete"], complete, "{query}");
            let page = server.get(&format!("/waterline/runs?{query}")).await.text();
            assert_eq!(page.contains("looked at 5,000"), looked.is_some(), "{query}");
            assert_eq!(page.contains("No run matches"), complete, "{query}");
        }
        // Counting pages ends with the window, aloud.
        let response = server.get("/waterline/api/flows/all?task_problem=1&per_page=37&page=5").await;
        assert_eq!(response.status_code(), 422);
        assert!(response.text().contains("next_page_url"));
    }
}

/// A run that failed because an activity did, but with an exception of its own.
fn failed(n: u32) -> [InsertRow; 3] {
    let mut row = summary(n);
    row.replace("status", "failed");
    row.replace("status_bucket", "failed");
    row.replace("liveness_state", "closed");
    row.replace("exception_count", 2);
    [
        row,
        failure_of(n, 0, Some("activity")),
        failure_of(n, 1, Some("application")),
    ]
}

/// SQLite keeps times as text, in which a whole second may lack its fraction.
#[tokio::test]
async fn times_without_a_fraction_are_paged_and_cut_like_others() {
    async fn body(db: TestDb) {
        add_summaries(&db, 0..120).await;
        every_run_is_shown_once(&db, "all with a fraction").await;
        script(
            &db,
            "update {workflow_run_summaries} set sort_timestamp = substr(sort_timestamp, 1, 19), \
             started_at = substr(started_at, 1, 19) where cast(substr(id, -3) as integer) % 5 < 3",
        )
        .await;
        every_run_is_shown_once(&db, "some without").await;
        script(
            &db,
            "update {workflow_run_summaries} set sort_timestamp = substr(sort_timestamp, 1, 19), \
             started_at = substr(started_at, 1, 19)",
        )
        .await;
        every_run_is_shown_once(&db, "all without").await;
    }
    rig::on(Dialect::Sqlite, body).await;
}

async fn every_run_is_shown_once(db: &TestDb, forms: &str) {
    const AT: &str = "2026-11-15T11:50:00Z";
    let rows = everything(&db.read_only).await;
    let moment = |row: &Full| row.summary.sort_timestamp;
    let times: HashMap<_, _> = rows
        .iter()
        .map(|row| (row.summary.id.clone(), moment(row)))
        .collect();
    let at = AT.parse().unwrap();
    assert!(rows.iter().filter(|row| moment(row) == Some(at)).count() > 1);
    let server = server(&db.read_only);
    let key = |r: &Full| text(r, "business_key") == "SEED-1";
    let lists: [(String, Vec<String>); 9] = [
        (String::new(), ids(&rows, |_| true)),
        (
            "namespace=north".into(),
            ids(&rows, |r| text(r, "namespace") == "north"),
        ),
        (
            "status_bucket=failed".into(),
            ids(&rows, |r| text(r, "status_bucket") == "failed"),
        ),
        (
            "queue=slow".into(),
            ids(&rows, |r| text(r, "queue") == "slow"),
        ),
        ("business_key=SEED-1".into(), ids(&rows, key)),
        (format!("from={AT}"), ids(&rows, |r| moment(r) >= Some(at))),
        (
            format!("to={AT}"),
            ids(&rows, |r| moment(r).is_some_and(|time| time < at)),
        ),
        (
            format!("business_key=SEED-1&from={AT}"),
            ids(&rows, |r| key(r) && moment(r) >= Some(at)),
        ),
        (
            format!("status_bucket=failed&from={AT}"),
            ids(&rows, |r| {
                text(r, "status_bucket") == "failed" && moment(r) >= Some(at)
            }),
        ),
    ];
    for (query, want) in lists {
        assert!(!want.is_empty(), "{query}");
        let want: BTreeSet<_> = want.into_iter().collect();
        for direction in ["desc", "asc"] {
            let path = with(
                &format!("/waterline/api/flows/all?per_page=2&sort_direction={direction}"),
                &query,
            );
            let found = there_and_back(&server, &path).await;
            let shown: BTreeSet<_> = found.iter().cloned().collect();
            assert_eq!(
                (found.len(), &shown),
                (want.len(), &want),
                "{forms}: {path}"
            );
            let timed: Vec<_> = found.iter().filter_map(|id| times[id]).collect();
            let in_order = match direction {
                "desc" => timed.is_sorted_by(|a, b| a >= b),
                _ => timed.is_sorted(),
            };
            assert!(in_order, "{forms}: {path}");
        }
    }
}

async fn every_filter_keeps_what_it_says_and_nothing_else(server: &TestServer, rows: &[Full]) {
    let mut wrong = Vec::new();
    let mut check = |query: &str, got: BTreeSet<String>, want: BTreeSet<String>| {
        if got != want {
            let (more, less) = (got.difference(&want).count(), want.difference(&got).count());
            wrong.push(format!(
                "{query}: {more} too many, {less} missing of {}",
                want.len()
            ));
        }
    };
    for (query, keep) in FILTERS {
        let want: BTreeSet<_> = ids(rows, keep).into_iter().collect();
        assert!(!want.is_empty(), "{query} matches nothing here");
        assert!(want.len() < rows.len(), "{query} matches everything here");
        let got = there_and_back(
            server,
            &with("/waterline/api/flows/all?per_page=200", query),
        )
        .await;
        check(query, got.into_iter().collect(), want);
    }
    // A prefix is meant as written: `like` would take another case for the same on two of three.
    let query = "workflow_type_prefix=ORDER.";
    let got = there_and_back(server, &with("/waterline/api/flows/all", query)).await;
    check(query, got.into_iter().collect(), BTreeSet::new());
    for (query, want) in filters_from_data(rows) {
        assert!(want.len() < rows.len(), "{query} matches everything here");
        let got = there_and_back(
            server,
            &with("/waterline/api/flows/all?per_page=200", &query),
        )
        .await;
        check(&query, got.into_iter().collect(), want);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

async fn each_list_holds_its_status(server: &TestServer, rows: &[Full]) {
    for bucket in [
        "all",
        "running",
        "completed",
        "failed",
        "cancelled",
        "terminated",
    ] {
        let want = ids(rows, |row| match bucket {
            "all" => true,
            "running" => text(row, "status_bucket") == "running",
            status => text(row, "status") == status,
        });
        assert!(!want.is_empty(), "{bucket}");
        let path = format!("/waterline/api/flows/{bucket}?per_page=30");
        let (mut counted, mut beside) = (Vec::new(), 0);
        for page in 1.. {
            let document = json(server, &format!("{path}&page={page}")).await;
            let found = data_ids(&document);
            if found.is_empty() {
                break;
            }
            beside += unprojected(&document);
            counted.extend(found);
        }
        assert_eq!(there_and_back(server, &path).await, want, "{bucket}");
        assert_eq!(counted, want, "{bucket} by page numbers");
        let first = json(server, &path).await;
        let open = matches!(bucket, "all" | "running");
        assert_eq!(
            beside > 0,
            open,
            "{bucket}: the runs without a summary are open"
        );
        let all = want.len() + beside;
        assert_eq!(first["total"], all, "{bucket}");
        assert_eq!(first["last_page"], all.div_ceil(30), "{bucket}");
    }
    let response = server.get("/waterline/api/flows/sleeping").await;
    assert_eq!(response.status_code(), StatusCode::NOT_FOUND);
    assert_eq!(response.json::<Value>()["error"], "not_found");
    let response = server
        .get("/waterline/api/flows/failed?status=waiting")
        .await;
    assert_eq!(response.status_code(), StatusCode::UNPROCESSABLE_ENTITY);
}

async fn the_answer_has_the_shape_scripts_know(server: &TestServer) {
    let document = json(server, "/waterline/api/flows/running").await;
    assert_eq!(
        (
            &document["current_page"],
            &document["per_page"],
            &document["from"]
        ),
        (&1.into(), &50.into(), &1.into())
    );
    for key in [
        "data",
        "last_page",
        "total",
        "to",
        "path",
        "first_page_url",
        "next_page_url",
        "prev_page_url",
        "visibility_filters",
    ] {
        assert!(document.get(key).is_some(), "{key}");
    }
    let filters = &document["visibility_filters"];
    assert_eq!(
        (&filters["version"], &filters["bucket"]),
        (&6.into(), &"running".into())
    );
    let document = json(server, "/waterline/api/flows/running?queue=slow").await;
    assert_eq!(
        document["visibility_filters"]["applied"],
        serde_json::json!({"queue": "slow"})
    );
    let item = data_ids(&document).len();
    assert!(item > 0);
    let keys = document["data"][0].as_object().unwrap().len();
    assert_eq!(keys, 46, "the engine's item has 46 keys");
}

async fn what_cannot_be_meant_is_refused_by_name(server: &TestServer) {
    for (param, value) in [
        ("status", "bogus"),
        ("status", "%ff"),
        ("status_bucket", "x"),
        ("closed_reason", "x"),
        ("wait_kind", "x"),
        ("liveness_state", "Stuck!"),
        ("repair_blocked_reason", "Why?"),
        ("repair_state", "x"),
        ("declared_entry_mode", "x"),
        ("failure_category", "x"),
        ("task_problem_code", "x"),
        ("archived", "maybe"),
        ("is_terminal", "2"),
        ("needs_repair", "0"),
        ("started", "soon"),
        ("started", "%F0%9F%98%80"),
        ("from", "yesterday"),
        ("to", "2026-13-01"),
        ("from", "-0001-01-01"),
        ("from", "0000-01-01T00:00:00%2B01:00"),
        ("from", "%2B262142-12-31"),
        ("to", "9999-12-31T23:59:59-01:00"),
        ("cursor", "next~0000-01-01T00:00:00%2B01:00~x"),
        ("queue", "a%00b"),
        ("label", "x"),
        ("label[a b]", "x"),
        ("search_attribute[]", "x"),
        ("queue[x]", "y"),
        ("statuss", "failed"),
        ("cursor", "nowhere"),
        ("cursor", "next~tomorrow~x"),
        ("per_page", "0"),
        ("per_page", "1000"),
        ("per_page", "x"),
        ("page", "0"),
        ("page", "-1"),
        ("sort", "queue"),
        ("sort_direction", "sideways"),
    ] {
        let query: String = url::form_urlencoded::byte_serialize(param.as_bytes()).collect();
        let response = server
            .get(&format!("/waterline/api/flows/all?{query}={value}"))
            .await;
        assert_eq!(response.status_code(), 422, "{param}={value}");
        let errors = &response.json::<Value>()["errors"][param];
        assert!(
            errors[0]
                .as_str()
                .is_some_and(|message| !message.is_empty()),
            "{param}={value}: {errors}"
        );
        let response = server
            // As a form sends it, blank fields and all.
            .get(&format!("/waterline/runs?{query}={value}&connection="))
            .await;
        assert_eq!(response.status_code(), 422, "{param}={value}");
        let html = response.text();
        let what = match param {
            "cursor" | "per_page" | "page" | "sort" | "sort_direction" => "part of the address",
            _ => "filter",
        };
        assert!(
            html.contains(&format!("This {what} was not understood")),
            "{param}={value}"
        );
        let request = response.header("x-request-id");
        assert!(html.contains(request.to_str().unwrap()), "{param}={value}");
        assert!(!html.contains("/instances/"), "{param}={value} shows rows");
    }
    let long = "x".repeat(192);
    let response = server
        .get(&format!("/waterline/api/flows/all?queue={long}"))
        .await;
    assert_eq!(response.status_code(), 422);
    // The earliest and the latest moment that can be meant, and a range with nothing in it.
    for bucket in ["all", "running", "failed"] {
        let query = "from=0001-01-01&to=9999-12-31T23:59:59Z";
        let document = json(server, &format!("/waterline/api/flows/{bucket}?{query}")).await;
        assert!(!data_ids(&document).is_empty(), "{bucket}");
    }
    let response = server
        .get("/waterline/runs?from=2026-11-15&to=2026-11-14")
        .await;
    assert_eq!(response.status_code(), 422);
    assert!(response.text().contains("is not before to"));
    // A page number too deep to count to, and both ways of saying where.
    for query in ["page=400", "page=2&cursor=next~~x"] {
        let response = server
            .get(&format!("/waterline/api/flows/all?{query}"))
            .await;
        assert_eq!(response.status_code(), 422, "{query}");
        assert!(
            response.json::<Value>()["errors"]["page"].is_array(),
            "{query}"
        );
    }
}

async fn the_page_and_the_json_show_the_same_runs(server: &TestServer) {
    for query in [
        "",
        "per_page=25&sort_direction=asc",
        "status_bucket=running",
        "needs_repair=1",
        "queue=slow&per_page=25",
        "namespace=(none)",
        "instance_id=ord-48288",
        "task_problem_code=active",
    ] {
        let (mut page, mut api) = (
            with("/waterline/runs", query),
            with("/waterline/api/flows/all", query),
        );
        for _ in 0..5 {
            let response = server.get(&page).await;
            assert_eq!(response.status_code(), 200, "{page}: {}", response.text());
            let document = json(server, &api).await;
            // A run without a summary has a table of its own on the page, and takes a row here.
            let mut shown = page_ids(&response.text());
            let listed = data_ids(&document);
            assert!(
                shown.len() - listed.len() <= unprojected(&document),
                "{page}"
            );
            shown.truncate(listed.len());
            assert_eq!(shown, listed, "{page}");
            let Some(next) = document["next_page_url"].as_str() else {
                break;
            };
            next.clone_into(&mut api);
            page = next.replace("/api/flows/all", "/runs");
        }
    }
}

async fn a_run_without_a_summary_is_listed_all_the_same(server: &TestServer) {
    for bucket in ["all", "running"] {
        let document = json(
            server,
            &format!("/waterline/api/flows/{bucket}?per_page=200"),
        )
        .await;
        let item = document["data"]
            .as_array()
            .unwrap()
            .iter()
            .find(|item| item["instance_id"] == "forgotten");
        assert_eq!(item.expect(bucket)["operator_visibility_degraded"], true);
    }
    let document = json(server, "/waterline/api/flows/completed").await;
    assert!(!document.to_string().contains("forgotten"));
    // Once, where the order puts it, whichever way the list is walked.
    for (sort, by_number) in [
        ("desc", false),
        ("asc", false),
        ("desc", true),
        ("asc", true),
    ] {
        let path = format!("/waterline/api/flows/running?sort={sort}&per_page=3");
        let mut items = Vec::new();
        let mut at = Some(path.clone());
        for page in 2.. {
            let Some(document) = at else { break };
            let document = json(server, &document).await;
            let rows = document["data"].as_array().unwrap();
            if by_number && !rows.is_empty() {
                assert_eq!(document["from"], items.len() + 1, "{document}");
                assert_eq!(document["to"], items.len() + rows.len(), "{document}");
                assert!(document["to"].as_u64() <= document["total"].as_u64());
            }
            items.extend(rows.iter().cloned());
            at = if by_number {
                (!rows.is_empty()).then(|| format!("{path}&page={page}"))
            } else {
                document["next_page_url"].as_str().map(str::to_owned)
            };
        }
        let at = |item: &Value| item["started_at"].as_str().map(str::to_owned);
        let place = items
            .iter()
            .position(|item| item["instance_id"] == "forgotten");
        let place =
            place.unwrap_or_else(|| panic!("{sort} {by_number}: not among {}", items.len()));
        assert_eq!(
            items
                .iter()
                .filter(|item| item["instance_id"] == "forgotten")
                .count(),
            1
        );
        let (before, after) = (at(&items[place - 1]), at(&items[place + 1]));
        let (newer, older) = if sort == "desc" {
            (before, after)
        } else {
            (after, before)
        };
        let own = at(&items[place]);
        assert!(
            newer >= own && own >= older,
            "{sort}: {newer:?} {own:?} {older:?}"
        );
    }
    assert!(
        server
            .get("/waterline/runs")
            .await
            .text()
            .contains("forgotten.run")
    );
    let page = server
        .get("/waterline/instances/forgotten/runs/01zzzzzzzzzzzzzzzzzzzzzzzz")
        .await;
    assert_eq!(page.status_code(), 200);
}

async fn any_id_leads_to_its_run(server: &TestServer, db: &Db) {
    let location = |response: &axum_test::TestResponse| {
        response.header("location").to_str().unwrap().to_owned()
    };
    for table in [
        "workflow_tasks",
        "activity_executions",
        "activity_attempts",
        "workflow_failures",
        "workflow_run_timers",
        "workflow_commands",
        "workflow_signal_records",
        "workflow_updates",
        "workflow_history_events",
    ] {
        let mut q = db.statement();
        q.push("select min(x.id) as id, min(x.workflow_run_id) as run from {")
            .push(table)
            .push("} x join {workflow_runs} r on r.id = x.workflow_run_id group by x.id limit 3");
        let found = db.fetch(q).await.unwrap();
        assert!(!found.is_empty(), "{table}");
        for mut row in found {
            let (id, run) = (row.text("id").unwrap(), row.text("run").unwrap());
            for spelling in [id.clone(), id.to_uppercase(), format!(" {id} ")] {
                let q: String = url::form_urlencoded::byte_serialize(spelling.as_bytes()).collect();
                let response = server.get(&format!("/waterline/find?q={q}")).await;
                assert_eq!(
                    response.status_code(),
                    StatusCode::SEE_OTHER,
                    "{table} {spelling}: {}",
                    response.text()
                );
                assert!(
                    location(&response).ends_with(&format!("/runs/{run}")),
                    "{table} {spelling}"
                );
            }
        }
    }
    let response = server.get("/waterline/find?q=ord-48288").await;
    assert_eq!(location(&response), "/waterline/instances/ord-48288");
    let response = server.get("/waterline/find?q=ORD-48288").await;
    assert_eq!(response.status_code(), StatusCode::SEE_OTHER);
    for (nothing, status) in [
        ("", 404),
        ("no-such-thing", 404),
        ("%27%20or%201%3D1", 404),
        ("a%00b", 422),
        (&"x".repeat(500), 422),
    ] {
        let response = server.get(&format!("/waterline/find?q={nothing}")).await;
        assert_eq!(response.status_code(), status, "{nothing}");
    }
}

/// What one request sends once the counts are there; the least of three, should they expire.
async fn statements(server: &TestServer, path: &str) -> u32 {
    let mut least = u32::MAX;
    for _ in 0..3 {
        let response = server.get(path).await;
        assert_eq!(response.status_code(), 200, "{path}: {}", response.text());
        let sent = response.header("x-statements");
        least = least.min(sent.to_str().unwrap().parse().unwrap());
    }
    least
}
