//! A run exported and opened offline is shown as it was: the same page, but for its controls.

use std::{collections::HashSet, fs, path::Path};

use axum_test::TestServer;
use chrono::{DateTime, Utc};
use plimsoll::{
    clock::Clock,
    db::{Db, Settings as DbSettings},
    durable::engine_config::EngineConfig,
    web::{
        layout::segment,
        routes,
        state::{App, Settings},
    },
};

use crate::{compare, conformance::folders, rig};

/// What the contract of a bundle has no place for (history-export.md §1, §3 to §5), each with the
/// reason. It is taken out of the database first, so that all the rest must come back.
const NOT_CARRIED: &[&str] = &[
    // `workflow` has no namespace; Waterline adds one after sealing, which breaks the seal.
    "update {workflow_runs} set namespace = null",
    "update {workflow_instances} set namespace = null",
    // No section holds messages: of them only the cursor's events are in the history.
    "delete from {workflow_messages}",
    // Workers belong to the fleet, not to the run.
    "delete from {workflow_worker_compatibility_heartbeats}",
    // The keys of `tasks` are listed, and this is none of them.
    "update {workflow_tasks} set last_error = null",
    // What becomes of a child is told by the event that made it; `links` does not say.
    "update {workflow_links} set parent_close_policy = '' where not exists (select 1 from \
     {workflow_history_events} e where e.workflow_run_id = parent_workflow_run_id \
     and e.event_type = 'ChildWorkflowScheduled')",
    // Nor are these keys of `activities`: events carry the policy, not when it runs out.
    "update {activity_executions} set schedule_deadline_at = null, close_deadline_at = null, \
     schedule_to_close_deadline_at = null, heartbeat_deadline_at = null, activity_options = null",
];

/// The page from the run's head on, without what leads elsewhere.
fn body(page: &str, here: &str) -> Vec<String> {
    let start = page.find("<section class=\"head\"").expect("a run's page");
    let end = page.find("</main>").expect("a whole page");
    let page = page[start..end].replace(here, "HERE");
    let page = match (
        page.find("<div class=\"controls\">"),
        page.find("<dl class=\"facts\">"),
    ) {
        (Some(from), Some(to)) => format!("{}{}", &page[..from], &page[to..]),
        _ => page,
    };
    let lines = page.lines().map(str::trim).filter(|line| !line.is_empty());
    // What to do instead of a control is no part of what was exported either.
    let lines = lines.filter(|line| !line.starts_with("<p class=\"small\">This copy only reads."));
    // Nor is what its children have come to by themselves.
    let lines = lines.filter(|line| !line.contains("aria-label=\"Children by status\""));
    lines.map(as_linked).collect()
}

/// How another run stands, and when it ran, is told by its own rows, which a bundle does not hold:
/// of a relative the link counts.
fn as_linked(line: &str) -> String {
    let mut parts = line.split("<div class=\"kin\">");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let mut part = part.to_owned();
        if let (Some(relation), Some(run)) = (part.find("</span>"), part.find("<a ")) {
            part.replace_range(relation..run, "");
        }
        if let Some(from) = part.find(" <span class=\"muted small nowrap\">started")
            && let Some(length) = part[from..].find("</span>")
        {
            part.replace_range(from..from + length + "</span>".len(), "");
        }
        out.push_str(&part);
    }
    // The same in the evidence: `child ID waiting`.
    let mut parts = out.split("\">child ");
    let mut told = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (child, rest) = part.split_once("</a>").unwrap_or((part, ""));
        let name = child.rsplit_once(' ').map_or(child, |(name, _)| name);
        told.extend(["\">child ", name, "</a>", rest]);
    }
    told
}

/// A line of the box that lists what is wrong with the rows.
fn is_notice(line: &str) -> bool {
    let line = line.strip_prefix("<div class=\"notices\">").unwrap_or(line);
    line.starts_with("<div class=\"notice slim is-attn\"")
        || line.starts_with("<ul><li><code><bdi>")
}

/// With the end of the box around them.
fn drop_notices(lines: &mut Vec<String>) {
    let mut inside = false;
    lines.retain(|line| {
        let ends = inside && line == "</div>";
        inside = is_notice(line);
        !inside && !ends
    });
}

async fn differences(server: &TestServer, instance: &str, run: &str) -> Vec<String> {
    let (instance, id) = (segment(instance), segment(run));
    let live = format!("/waterline/instances/{instance}/runs/{id}");
    let api = format!("/waterline/api/instances/{instance}/runs/{id}/history-export");
    let bundle = server.get(&api).await;
    let sent = server
        .post("/waterline/bundles")
        .bytes(bundle.into_bytes())
        .await;
    assert_eq!(sent.status_code(), 303, "{run}: {}", sent.text());
    let offline = sent.header("location").to_str().unwrap().to_owned();
    // Every section asked for, so that nothing is folded away.
    let query = "?activities=0&exceptions=0&tasks=0&waits=0&signals=0&updates=0&commands=0&children=0&data=0";
    let ours = server.get(&format!("{offline}{query}")).await.text();
    assert!(
        ours.contains("id=\"verdict\"") && ours.contains("<b>Unsigned</b>"),
        "{run}"
    );
    assert!(!ours.contains("class=\"controls\""), "{run}");
    let theirs = server.get(&format!("{live}{query}")).await.text();
    let (mut ours, mut theirs) = (body(&ours, &offline), body(&theirs, &live));
    // An activity of a bundle is told alike whether it had a row or history alone told of it.
    if theirs
        .iter()
        .any(|line| line.contains("<bdi>activity_executions.id</bdi>"))
    {
        drop_notices(&mut ours);
        drop_notices(&mut theirs);
    }
    // One line more or less moves all that follow: only those that are nowhere else count.
    let only = |these: &[String], those: &[String]| -> Vec<String> {
        let those: HashSet<&String> = those.iter().collect();
        these
            .iter()
            .filter(|line| !those.contains(line))
            .cloned()
            .collect()
    };
    let (here, there) = (only(&ours, &theirs), only(&theirs, &ours));
    let mut found = Vec::new();
    for n in 0..here.len().max(there.len()) {
        let (ours, theirs) = (here.get(n), there.get(n));
        let same = ours.zip(theirs).map_or(0, |(ours, theirs)| {
            ours.chars()
                .zip(theirs.chars())
                .take_while(|(a, b)| a == b)
                .count()
        });
        let around = |line: Option<&String>| -> String {
            let line = line.map_or("", String::as_str);
            line.chars()
                .skip(same.saturating_sub(60))
                .take(200)
                .collect()
        };
        found.push(format!(
            "offline {}\n        live    {}",
            around(ours),
            around(theirs)
        ));
    }
    if found.is_empty() && ours != theirs {
        found.push("the same lines in another order".to_owned());
    }
    found
}

async fn each_run(db: &Db, now: DateTime<Utc>, engine: EngineConfig) -> (usize, Vec<String>) {
    let mut tx = db.write().await.unwrap();
    for statement in NOT_CARRIED {
        tx.script(statement).await.unwrap();
    }
    tx.commit().await.unwrap();
    let server = TestServer::new(routes::router(App::new(Settings {
        clock: Clock::Frozen(now),
        db: Some(db.clone()),
        engine,
        ..Settings::default()
    })));
    let mut q = db.statement();
    q.push("select workflow_instance_id, id from {workflow_runs} order by id");
    let (mut wrong, mut count) = (Vec::new(), 0);
    for mut row in db.fetch(q).await.unwrap() {
        count += 1;
        let (instance, run) = (
            row.text("workflow_instance_id").unwrap(),
            row.text("id").unwrap(),
        );
        for difference in differences(&server, &instance, &run).await {
            wrong.push(format!("{run}: {difference}"));
        }
    }
    (count, wrong)
}

async fn opened(scratch: &Path, database: &Path) -> Db {
    let copy = scratch.join("db.sqlite");
    fs::copy(database, &copy).expect("a copy of the database");
    let url = format!("sqlite:{}", copy.display());
    Db::connect(&DbSettings::new(&url).writable())
        .await
        .expect("it opens")
}

#[tokio::test]
async fn every_scenario_comes_back_as_its_page_sqlite() {
    let Some(root) = rig::corpus_unpacked() else {
        return;
    };
    let only = std::env::var("PLIMSOLL_CONFORM").ok();
    let (mut wrong, mut runs) = (Vec::new(), 0);
    for folder in folders(&root.join("scenarios")) {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        if only.as_ref().is_some_and(|only| !name.contains(only)) {
            continue;
        }
        let now = fs::read_to_string(folder.join("now.txt")).expect("now.txt");
        let engine = EngineConfig::load(Some(&folder.join("engine-config.json"))).unwrap();
        let scratch = tempfile::tempdir().unwrap();
        let db = opened(scratch.path(), &folder.join("db.sqlite")).await;
        let (count, found) = each_run(&db, now.trim().parse().unwrap(), engine).await;
        db.close().await;
        wrong.extend(found.into_iter().map(|line| format!("{name} {line}")));
        runs += count;
    }
    compare::report(&format!(
        "round trip: {runs} runs, {} differences",
        wrong.len()
    ));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
