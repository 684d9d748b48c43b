//! What the timeline of a run tells, and which addresses lead to which part of it, over HTTP.

use plimsoll::db::Dialect;

use crate::{
    rig,
    run_sections::{href, named, page, section, text},
    shop::{fill, server},
};

/// The rows of the table below the drawing, as an eye reads them.
fn table(page: &str) -> Vec<String> {
    let timeline = section(page, "timeline");
    let from = timeline
        .find("id=\"timeline-table\"")
        .expect("the timeline as a table");
    let told = text(&timeline[from..]);
    told.lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn the_table_says_what_has_not_ended() {
    rig::on(Dialect::Sqlite, async |db| {
        let situations = fill(&db).await;
        let server = server(&db.read_only);
        for (name, unit, open) in [
            ("parent-with-ten-children", "campaign-winter-it", true),
            ("parent-with-ten-children", "the run", true),
            ("completed", "the run", false),
        ] {
            let page = page(&server, &href(named(&situations, name))).await;
            let rows = table(&page);
            let row = rows.iter().find(|row| row.contains(unit)).expect(unit);
            assert_eq!(row.contains("still open"), open, "{name}: {row}");
            assert_eq!(row.contains("so far"), open, "{name}: {row}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_lost_timeout_and_a_lapsed_lease_are_drawn() {
    rig::on(Dialect::Sqlite, async |db| {
        let situations = fill(&db).await;
        let server = server(&db.read_only);
        for (name, phase, says) in [
            (
                "signal-timeout-task-lost",
                "p-gone",
                "its timeout, but the task of it is gone",
            ),
            (
                "lease-expired-timer",
                "p-lost",
                "a worker had its task when the lease ran out",
            ),
        ] {
            let page = page(&server, &href(named(&situations, name))).await;
            let rows = table(&page);
            assert!(
                rows.iter().any(|row| row.contains(says)),
                "{name}: {rows:?}"
            );
            let drawing = section(&page, "timeline");
            assert!(
                drawing.contains(&format!("<g class=\"{phase} thin\">")),
                "{name}"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn what_a_row_alone_tells_is_marked_in_the_timeline_too() {
    rig::on(Dialect::Sqlite, async |db| {
        let situations = fill(&db).await;
        let server = server(&db.read_only);
        for (name, unit) in [
            ("row-only-activity", "pull-orders"),
            ("row-only-closed-activity", "pull-orders"),
        ] {
            let situation = named(&situations, name);
            let page = page(&server, &href(situation)).await;
            let rows = table(&page);
            let row = rows.iter().find(|row| row.contains(unit)).expect(unit);
            assert!(row.contains("row only"), "{name}: {row}");
            let lane = section(&page, "timeline");
            assert!(
                lane.contains("<span class=\"n\">row only activity</span>"),
                "{name}"
            );
        }
    })
    .await;
}
