//! The first lines of a run's page: what it offers, what it calls each moment, and how it names
//! what happened.

use axum::http::header::COOKIE;
use axum_test::TestServer;
use plimsoll::durable::repair::Mode;

use crate::{
    repair_http,
    rig::{TestDb, on_every_database},
    run_sections::{href, named, page, text},
    shop::{fill_short, server},
};

/// From the crumbs to the timeline.
fn head(page: &str) -> String {
    let start = page.find("<section class=\"head\"").expect("a head");
    let end = page.find("<nav class=\"tabs\"").expect("sections");
    text(&page[start..end])
}

async fn in_kathmandu(server: &TestServer, address: &str) -> String {
    let request = server.get(address);
    request
        .add_header(COOKIE, "plimsoll_zone=Asia/Kathmandu")
        .await
        .text()
}

on_every_database! {
    async fn the_head_offers_what_the_repair_page_does(db: TestDb) {
        let situations = fill_short(&db).await;
        for mode in [Mode::Direct, Mode::Nudge] {
            let server = repair_http::server(&db, mode);
            let (mut offered, mut refused) = (0, 0);
            for situation in &situations {
                let address = href(situation);
                let head = head(&page(&server, &address).await);
                let repair = page(&server, &format!("{address}/repair")).await;
                let name = situation.name;
                let is_offered = repair.contains("aria-label=\"Repair this run\"");
                assert_eq!(head.contains("Repair: called for"), is_offered, "{mode:?} {name}: {head}");
                if is_offered {
                    offered += 1;
                } else {
                    refused += 1;
                    let told = text(&repair);
                    let code = told.lines().find(|line| line.starts_with("No repair ")).unwrap();
                    assert!(head.contains(code), "{mode:?} {name}: {code} {head}");
                }
            }
            assert!(offered > 0 && refused > 0, "{mode:?}: {offered} offered, {refused} refused");
        }
    }

    async fn a_refusal_stands_where_the_control_would(db: TestDb) {
        let situations = fill_short(&db).await;
        let server = server(&db.read_only);
        for (name, says, never) in [
            (
                "repair-backoff",
                &["No repair dispatch_backoff Not before 2026-11-15 12:00:37 UTC. The engine could not publish"][..],
                &["called for"][..],
            ),
            ("workflow-task-leased", &["Lease ends 2026-11-15 12:04:39 UTC"], &["Wait ends"]),
            ("lease-expired-workflow", &["Lease ran out 2026-11-15 11:49:00 UTC"], &["Wait ends"]),
            ("condition-timeout-task-lost", &["Wait ended 2026-11-15 09:30:00 UTC"], &["Wait ends"]),
            ("timer-overdue", &["Wait was to end 2026-11-15 11:57:00 UTC"], &["Wait ended"]),
            ("waiting-signal-with-timeout", &["Wait ends 2026-11-15 12:42:00 UTC"], &["Lease"]),
            ("handled-failure", &["completed"], &[" activity"]),
            ("pending-just-started", &["History 2 events · 2"], &["0 B"]),
        ] {
            let page = page(&server, &href(named(&situations, name))).await;
            let start = page.find("<section class=\"head\"").unwrap();
            let told = text(&page[start..]);
            let told = &told[..told.find("Diagnosis").unwrap()];
            for words in says {
                assert!(told.contains(words), "{name}: {words} not in {told}");
            }
            for words in never {
                assert!(!told.contains(words), "{name}: {words} in {told}");
            }
        }
    }

    async fn every_moment_is_in_the_zone_that_was_chosen(db: TestDb) {
        let situations = fill_short(&db).await;
        let server = repair_http::server(&db, Mode::Direct);
        for (name, below, says) in [
            ("run-deadline-passed", "", "run_deadline_at 2026-11-15 17:39:00 +0545"),
            ("stale-summary", "", "next_task_at stored 2026-11-15 17:16:00.140 +0545, now nothing"),
            ("repair-backoff", "", "Not before 2026-11-15 17:45:37 +0545"),
            ("repair-backoff", "/repair", "Not before 2026-11-15 17:45:37 +0545"),
            ("timer-row-and-task-lost", "/repair", "Put back the timer's task, due at 2026-11-16 11:45:00 +0545."),
        ] {
            let address = format!("{}{below}", href(named(&situations, name)));
            let page = in_kathmandu(&server, &address).await;
            let main = text(&page[page.find("<main").unwrap()..]);
            assert!(main.contains(says), "{name}{below}: {main}");
            let prose = main.split("rows, before and after").next().unwrap();
            let raw = prose.lines().find(|line| line.contains("T1") && line.contains(":00.000000Z"));
            assert_eq!(raw, None, "{name}{below}");
        }
    }
}
