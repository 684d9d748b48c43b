//! The first lines of a run's page: what it offers, what it calls each moment, and how it names
//! what happened.

use axum::http::header::COOKIE;
use axum_test::TestServer;
use plimsoll::durable::repair::Mode;

use crate::{
    repair_http,
    rig::{self, TestDb, on_every_database},
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
            ("signal-timeout-task-lost", &["waiting"], &["Wait ends"]),
            ("activity-running-without-task", &["No repair repair_not_needed Putting the task back could run the activity twice"], &["Nothing of the run is lost"]),
            ("claim-failed", &["No repair repair_not_needed The task is there and was refused"], &["Nothing of the run is lost"]),
            ("parallel-branch-lost", &["No repair repair_not_needed The engine judges the run by another step"], &["sees nothing"]),
            ("waiting-signal", &["No repair repair_not_needed The engine sees nothing to repair."], &["lost"]),
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

#[tokio::test]
async fn a_copy_that_only_reads_names_the_engines_own_command_sqlite() {
    rig::on(plimsoll::db::Dialect::Sqlite, async |db| {
        let situations = fill_short(&db).await;
        let server = server(&db.read_only);
        for (name, is_named) in [
            ("activity-task-lost", true),
            ("dispatch-failed", true),
            // The engine's pass never clears a block.
            ("replay-blocked-condition-mismatch", false),
            ("waiting-signal", false),
            ("repair-backoff", false),
        ] {
            let situation = named(&situations, name);
            let address = href(situation);
            let command = format!(
                "php artisan workflow:v2:repair-pass --run-id={}",
                situation.run_id
            );
            let told = page(&server, &address).await;
            let diagnosis = &told[told.find("id=\"diagnosis\"").unwrap()..];
            let diagnosis = &diagnosis[..diagnosis.find("</section>").unwrap()];
            assert_eq!(diagnosis.contains(&command), is_named, "{name}");
        }
    })
    .await;
}

#[tokio::test]
async fn an_open_child_is_shown_as_it_stands_itself_sqlite() {
    rig::on(plimsoll::db::Dialect::Sqlite, async |db| {
        let situations = fill_short(&db).await;
        let mut tx = db.writable.write().await.unwrap();
        tx.script(
            "update {workflow_runs} set status = 'running' where workflow_instance_id = 'track-5540';
            update {workflow_run_summaries} set liveness_state = 'repair_needed' where workflow_instance_id = 'track-5540';",
        )
        .await
        .unwrap();
        tx.commit().await.unwrap();
        let server = server(&db.read_only);
        let told = text(&page(&server, &href(named(&situations, "waiting-child"))).await);
        assert!(told.contains("But child track-5540 does not go on by itself: its stored summary says repair_needed."), "{told}");
        assert!(told.contains("child running stuck track-5540"), "{told}");
    })
    .await;
}
