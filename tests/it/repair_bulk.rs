//! Several runs repaired together, as the pages do it.

use std::time::Duration;

use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum_test::{TestResponse, TestServer};
use plimsoll::{demo::Situation, durable::repair::Mode};

use crate::{
    repair_http::server,
    rig::{TestDb, on_every_database},
    row_diff::{self, Dump},
    shop,
};

const LIST: &str = "/waterline/runs";

pub fn find<'s>(situations: &'s [Situation], name: &str) -> &'s Situation {
    let found = situations.iter().find(|situation| situation.name == name);
    found.expect("in the catalogue")
}

/// What a form of the page would send in this hidden field.
pub fn hidden(page: &str, form: &str, name: &str) -> String {
    let form = page
        .split("<form")
        .find(|part| part.contains(form))
        .unwrap_or_else(|| panic!("no form {form:?} in {page}"));
    let mark = format!("name=\"{name}\" value=\"");
    let value = form.split(&mark).nth(1).expect("the field");
    value.split('"').next().unwrap().replace("&#38;", "&")
}

async fn post(server: &TestServer, path: &str, fields: &[(&str, &str)]) -> TestResponse {
    server.post(path).form(&fields).await
}

/// Chooses runs in the list that this query shows; the ids of some, or all that match.
async fn choose(server: &TestServer, query: &str, what: &str, ids: &[&str]) -> TestResponse {
    let page = server.get(&format!("{LIST}{query}")).await.text();
    let (filter, token) = (
        hidden(&page, "id=\"bulk\"", "filter"),
        hidden(&page, "id=\"bulk\"", "token"),
    );
    let mut fields = vec![
        ("filter", filter.as_str()),
        ("token", token.as_str()),
        ("what", what),
    ];
    fields.extend(ids.iter().map(|id| ("run", *id)));
    post(server, "/waterline/repairs", &fields).await
}

fn place(response: &TestResponse) -> String {
    assert_eq!(
        response.status_code(),
        StatusCode::SEE_OTHER,
        "{}",
        response.text()
    );
    response.header("location").to_str().unwrap().to_owned()
}

/// The page once nothing moves on it any more.
async fn settled(server: &TestServer, place: &str) -> String {
    loop {
        let page = server.get(place).await;
        assert_eq!(page.status_code(), StatusCode::OK, "{}", page.text());
        let page = page.text();
        if !page.contains("hx-trigger=\"every 1s\"") {
            return page;
        }
        // Requests that never wait would leave no turn to what they wait for.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn start(
    server: &TestServer,
    place: &str,
    page: &str,
    reason: &str,
    count: &str,
) -> TestResponse {
    let (digest, token) = (
        hidden(page, "/start", "digest"),
        hidden(page, "/start", "token"),
    );
    let fields = [
        ("digest", digest.as_str()),
        ("token", token.as_str()),
        ("reason", reason),
        ("count", count),
    ];
    let request = server.post(&format!("{place}/start")).form(&fields);
    let id = HeaderValue::from_static("req-bulk");
    request
        .add_header(HeaderName::from_static("x-request-id"), id)
        .await
}

/// As if something happened to the run: a signal is recorded, say.
async fn touch(db: &TestDb, run_id: &str) {
    let mut tx = db.writable.write().await.unwrap();
    let mut q = tx.statement();
    q.push(
        "update {workflow_runs} set last_command_sequence = last_command_sequence + 1 where id = ",
    )
    .bind(run_id);
    tx.execute(q).await.unwrap();
    tx.commit().await.unwrap();
}

/// Which runs have a repair on record, and with what reason.
fn repaired(dump: &Dump) -> Vec<(String, String)> {
    let commands = dump["workflow_commands"].values();
    let ours = commands.filter(|row| row["source"] == "plimsoll");
    ours.map(|row| {
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        assert_eq!(row["context"]["request"]["request_id"], "req-bulk");
        (
            text(&row["workflow_run_id"]),
            text(&row["payload"]["reason"]),
        )
    })
    .collect()
}

on_every_database! {
    async fn a_set_is_repaired_but_for_the_run_that_changed(db: TestDb) {
        let situations = shop::fill_short(&db).await;
        let server = server(&db, Mode::Direct);
        let [one, other, changed] = ["activity-task-lost", "signal-task-lost", "update-task-lost"].map(|name| find(&situations, name));
        let closed = find(&situations, "completed");
        let ids = [&one.run_id, &other.run_id, &changed.run_id, &closed.run_id].map(String::as_str);
        let place = place(&choose(&server, "?needs_repair=1", "selected", &ids).await);
        let page = settled(&server, &place).await;
        for told in ["4 runs", "To be repaired: 3", "missing_activity_task", "missing_signal_task", "missing_update_task", "run_closed"] {
            assert!(page.contains(told), "{told}: {page}");
        }

        let before = row_diff::dump(&db.read_only).await;
        for (reason, count) in [("  ", "3"), ("the queue was flushed", "4"), ("the queue was flushed", "")] {
            let refused = start(&server, &place, &page, reason, count).await;
            assert_eq!(refused.status_code(), StatusCode::UNPROCESSABLE_ENTITY, "{reason} {count}");
        }
        assert_eq!(row_diff::dump(&db.read_only).await, before, "nothing is written until it is asked for");

        touch(&db, &changed.run_id).await;
        let untouched = row_diff::dump_run(&db.read_only, &changed.run_id).await;
        let begun = start(&server, &place, &page, " the queue was flushed ", "3").await;
        assert_eq!(begun.status_code(), StatusCode::SEE_OTHER, "{}", begun.text());
        let report = settled(&server, &place).await;
        assert!(report.contains("2 repaired, 1 skipped") && report.contains("state_changed"), "{report}");
        let after = row_diff::dump(&db.read_only).await;
        let mut done = repaired(&after);
        done.sort();
        let mut want = [one, other].map(|run| (run.run_id.clone(), "the queue was flushed".to_owned()));
        want.sort();
        assert_eq!(done, want, "those and no others");
        assert_eq!(row_diff::dump_run(&db.read_only, &changed.run_id).await, untouched);

        // Neither a reload nor a second press does anything.
        assert_eq!(settled(&server, &place).await, report);
        assert_eq!(start(&server, &place, &page, "again", "3").await.status_code(), StatusCode::SEE_OTHER);
        assert_eq!(settled(&server, &place).await, report);
        assert_eq!(row_diff::dump(&db.read_only).await, after);
    }

    async fn runs_that_are_nudged_together_are_told_as_nudged(db: TestDb) {
        let situations = shop::fill_short(&db).await;
        let server = server(&db, Mode::Nudge);
        let (stale, blocked) = (find(&situations, "stale-summary"), find(&situations, "replay-blocked-history-shape"));
        let place = place(&choose(&server, "?needs_repair=1", "selected", &[&stale.run_id, &blocked.run_id]).await);
        let page = settled(&server, &place).await;
        for told in ["To be nudged: 1", "Nudge 1 run", "A nudge leaves no record", "nothing_to_nudge", "does not clear a replay block"] {
            assert!(page.contains(told), "{told}: {page}");
        }
        let before = row_diff::dump(&db.read_only).await;
        assert_eq!(start(&server, &place, &page, "the cache was lost", "1").await.status_code(), StatusCode::SEE_OTHER);
        let report = settled(&server, &place).await;
        assert!(report.contains("<b>1 nudged</b>") && !report.contains("1 repaired"), "{report}");
        let diff = row_diff::diff(&before, &row_diff::dump(&db.read_only).await);
        let tables: Vec<&String> = diff.as_object().expect("tables").keys().collect();
        assert_eq!(tables, ["workflow_run_summaries"], "{diff}");
    }

    async fn what_is_stopped_leaves_the_rest_alone(db: TestDb) {
        let _situations = shop::fill_short(&db).await;
        let server = server(&db, Mode::Direct);
        let place = place(&choose(&server, "?needs_repair=1", "matching", &[]).await);
        let page = settled(&server, &place).await;
        let all = page.split("To be repaired: ").nth(1).and_then(|rest| rest.split('<').next()).expect("a number");
        let planned: usize = all.parse().expect("a number");
        assert!(planned >= 10, "{planned}");
        assert_eq!(start(&server, &place, &page, "stop me", all).await.status_code(), StatusCode::SEE_OTHER);
        let running = server.get(&place).await.text();
        let token = hidden(&running, "/stop", "token");
        let stopped = post(&server, &format!("{place}/stop"), &[("token", &token)]).await;
        assert_eq!(stopped.status_code(), StatusCode::SEE_OTHER);
        let report = settled(&server, &place).await;
        let done = repaired(&row_diff::dump(&db.read_only).await).len();
        assert!(done < planned, "{done} of {planned}");
        assert!(report.contains(&format!("{done} repaired, {} skipped", planned - done)), "{report}");
        assert_eq!(report.matches("<bdi>stopped</bdi>").count(), planned - done);
        assert!(server.get("/waterline/repairs").await.text().contains("stop me"));
    }

    async fn a_set_is_what_was_chosen_and_never_more(db: TestDb) {
        shop::fill_short(&db).await;
        let server = server(&db, Mode::Direct);
        // Without a filter there is no "all", and a form that asks for it gets nothing.
        let page = server.get(LIST).await.text();
        assert!(page.contains("id=\"bulk\"") && !page.contains("all that match"));
        for (what, says) in [("matching", "Filter the list first"), ("selected", "Select at least one run"), ("", "Choose runs")] {
            let refused = choose(&server, "", what, &[]).await;
            assert_eq!(refused.status_code(), StatusCode::UNPROCESSABLE_ENTITY, "{what}");
            assert!(refused.text().contains(says), "{what}: {}", refused.text());
        }
        // A filter that was lost or changed on the way is not the one the form was made for.
        let page = server.get(&format!("{LIST}?needs_repair=1")).await.text();
        let token = hidden(&page, "id=\"bulk\"", "token");
        for filter in ["", "?", "?needs_repair=0", "?needs_repair=1&x=1"] {
            let fields = [("filter", filter), ("token", &token), ("what", "matching")];
            let refused = post(&server, "/waterline/repairs", &fields).await;
            assert_eq!(refused.status_code(), StatusCode::FORBIDDEN, "{filter}");
        }
        let many: Vec<String> = (0..201).map(|n| format!("run-{n}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let refused = choose(&server, "", "selected", &many).await;
        assert!(refused.text().contains("At most 200 runs"), "{}", refused.text());
        assert!(server.get("/waterline/repairs").await.text().contains("No bulk repair"));

        // More than fit are not taken silently.
        shop::add_summaries(&db, 0..300).await;
        let query = "?from=2020-01-01T00:00:00Z&sort_direction=asc&per_page=200";
        let place = place(&choose(&server, query, "matching", &[]).await);
        let page = settled(&server, &place).await;
        assert!(page.contains("200 runs") && page.contains("More runs match than the 200"), "{page}");
    }

    async fn who_may_not_write_begins_nothing(db: TestDb) {
        let situations = shop::fill_short(&db).await;
        let lost = find(&situations, "activity-task-lost");
        let before = row_diff::dump(&db.read_only).await;
        let ids = [lost.run_id.as_str()];
        // A copy that only reads shows what it would do, and says why it does not.
        let reading = shop::server(&db.read_only);
        let there = place(&choose(&reading, "?needs_repair=1", "selected", &ids).await);
        let page = settled(&reading, &there).await;
        assert!(page.contains("--allow-repair") && !page.contains("/start"), "{page}");
        let refused = post(&reading, &format!("{there}/start"), &[("reason", "x")]).await;
        assert_eq!(refused.status_code(), StatusCode::FORBIDDEN);
        assert!(refused.text().contains("--allow-repair"));

        let writing = server(&db, Mode::Direct);
        let there = place(&choose(&writing, "?needs_repair=1", "selected", &ids).await);
        settled(&writing, &there).await;
        for below in ["/start", "/stop"] {
            let made_up = post(&writing, &format!("{there}{below}"), &[("reason", "x"), ("count", "1"), ("token", "made up")]).await;
            assert_eq!(made_up.status_code(), StatusCode::FORBIDDEN, "{below}");
        }
        for path in ["/waterline/repairs", &format!("{there}/start"), &format!("{there}/stop")] {
            let request = writing.post(path).form(&[("token", "x")]);
            let site = HeaderValue::from_static("cross-site");
            let refused = request.add_header(HeaderName::from_static("sec-fetch-site"), site).await;
            assert!(refused.text().contains("another site"), "{path}");
        }
        assert_eq!(row_diff::dump(&db.read_only).await, before);

        // Unknown: expired, another copy's, or of before a restart.
        let unknown = writing.get("/waterline/repairs/01unknown").await;
        assert_eq!(unknown.status_code(), StatusCode::NOT_FOUND);
        assert!(unknown.text().contains("not over a restart"), "{}", unknown.text());
        let part = writing.get("/waterline/repairs/01unknown");
        let part = part.add_header(HeaderName::from_static("hx-request"), HeaderValue::from_static("true")).await;
        assert_eq!(part.header("hx-refresh"), "true");
    }
}
