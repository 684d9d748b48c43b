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
async fn an_address_means_the_same_time_to_every_reader() {
    rig::on(Dialect::Sqlite, async |db| {
        let situations = fill(&db).await;
        let server = server(&db.read_only);
        let run = href(named(&situations, "retrying-mid-backoff"));
        let range = "from=2026-11-15T12:30:00&to=2026-11-15T13:30&unit=run";
        for (address, zone, leads_to) in [
            (
                format!("{run}?{range}"),
                "UTC",
                format!("{run}?unit=run&from=2026-11-15T12%3A30%3A00Z&to=2026-11-15T13%3A30%3A00Z"),
            ),
            (
                format!("{run}?{range}"),
                "Asia/Kolkata",
                format!("{run}?unit=run&from=2026-11-15T07%3A00%3A00Z&to=2026-11-15T08%3A00%3A00Z"),
            ),
            (
                "/waterline/runs?queue=orders&from=2026-11-15T12:30".to_owned(),
                "Asia/Kolkata",
                "/waterline/runs?queue=orders&from=2026-11-15T07%3A00%3A00Z".to_owned(),
            ),
        ] {
            let response = server
                .get(&address)
                .add_header("cookie", format!("plimsoll_zone={zone}"))
                .await;
            assert_eq!(response.status_code(), 303, "{address}");
            assert_eq!(response.header("location"), leads_to, "{address} in {zone}");
            // There it stays.
            page(&server, &leads_to).await;
        }
    })
    .await;
}

#[tokio::test]
async fn what_an_address_names_and_is_not_there_takes_nothing_away() {
    rig::on(Dialect::Sqlite, async |db| {
        let situations = fill(&db).await;
        let server = server(&db.read_only);
        let here = href(named(&situations, "retrying-mid-backoff"));
        let whole = table(&page(&server, &here).await);
        for (query, says) in [
            ("from=garbage", "\"garbage\" is not a time"),
            (
                "from=2026-11-15T12:00:00Z&to=2026-11-15T11:00:00Z",
                "All of the run is shown: the range asked for ends before it begins.",
            ),
            (
                "from=2030-01-01T00:00:00Z",
                "Nothing of this run lies in the range asked for",
            ),
            (
                "group=bogus",
                "The timeline has no units bogus: all of them are shown.",
            ),
            ("unit=nonsense", "No unit nonsense is among those shown."),
            ("at=99999999", "Nothing on this page is called 99999999."),
            (
                "at=task-nobody",
                "Nothing on this page is called task-nobody.",
            ),
        ] {
            let page = page(&server, &format!("{here}?{query}")).await;
            let told = text(section(&page, "timeline"));
            assert!(told.contains(says), "{query}: {told}");
            assert_eq!(table(&page), whole, "{query}");
        }
        for query in [
            "unit=run",
            "at=1",
            "at=event-1",
            "group=activity:charge-card",
        ] {
            let page = page(&server, &format!("{here}?{query}")).await;
            let told = text(section(&page, "timeline"));
            assert!(
                !told.contains("is called") && !told.contains("shown."),
                "{query}: {told}"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn the_list_is_found_with_a_slash_behind_it_too() {
    rig::on(Dialect::Sqlite, async |db| {
        let response = server(&db.read_only).get("/waterline/runs/?queue=x").await;
        assert_eq!(response.status_code(), 308);
        assert_eq!(response.header("location"), "/waterline/runs?queue=x");
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
