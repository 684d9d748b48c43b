//! Runs that come near a structural limit, on the overview.

use axum_test::TestServer;
use plimsoll::{
    clock::Clock,
    demo::{rows::InsertRow, write::write},
    web::{
        routes,
        state::{App, Settings},
    },
};
use serde_json::json;

use crate::{
    rig::{TestDb, on_every_database},
    shop::{engine, now, run_of, summary},
};

fn id(n: u32) -> String {
    format!("01seed{n:020}")
}

/// An open run, and what it has open of each kind; the last of each is done.
fn run(n: u32, open: u32) -> Vec<InsertRow> {
    let mut summary = summary(n);
    summary.replace("status", "waiting");
    summary.replace("status_bucket", "running");
    summary.replace("liveness_state", "waiting_for_signal");
    summary.replace("namespace", "north");
    let mut row = run_of(n);
    row.replace("status", "waiting");
    let mut rows = vec![summary, row.set("namespace", "north")];
    for nth in 0..=open {
        let done = nth == open;
        let own = |table, kind: &str| {
            InsertRow::new(table)
                .set("id", format!("01{kind}{n:010}{nth:010}"))
                .set("workflow_run_id", id(n))
        };
        let status = |open: &'static str, closed: &'static str| if done { closed } else { open };
        let mut child = run_of(10_000 + n * 100 + nth);
        child.replace("status", status("running", "completed"));
        let link = InsertRow::new("workflow_links")
            .set("id", format!("01link{n:010}{nth:010}"))
            .set("link_type", "child_workflow")
            .set("parent_workflow_instance_id", format!("seed-{}", n / 2))
            .set("parent_workflow_run_id", id(n))
            .set(
                "child_workflow_instance_id",
                child.text("workflow_instance_id").unwrap(),
            )
            .set("child_workflow_run_id", child.text("id").unwrap());
        rows.extend([
            link,
            child,
            own("activity_executions", "acti")
                .set("sequence", i64::from(nth))
                .set("activity_class", "App\\A")
                .set("activity_type", "a")
                .set(
                    "status",
                    status(if nth == 0 { "running" } else { "pending" }, "completed"),
                ),
            own("workflow_run_timers", "time")
                .set("sequence", i64::from(nth))
                .set("status", status("pending", "fired"))
                .set("delay_seconds", 5)
                .time("fire_at", now()),
            own("workflow_signal_records", "sign")
                .set("workflow_command_id", format!("01sigc{n:010}{nth:010}"))
                .set("workflow_instance_id", format!("seed-{}", n / 2))
                .set("signal_name", "go")
                .set("status", status("received", "applied")),
            own("workflow_updates", "upda")
                .set("workflow_command_id", format!("01updc{n:010}{nth:010}"))
                .set("workflow_instance_id", format!("seed-{}", n / 2))
                .set("update_name", "go")
                .set("status", status("accepted", "completed")),
        ]);
    }
    rows
}

/// The table of limits, a line each: the kind, then what its cells say.
async fn limits(db: &TestDb, limit: u32, percent: u32) -> Vec<(String, String)> {
    let engine = engine(&json!({ "structural_limits": {
        "pending_activity_count": limit, "pending_child_count": limit, "pending_timer_count": limit,
        "pending_signal_count": limit, "pending_update_count": limit,
        "warning_threshold_percent": percent,
    }}));
    let server = TestServer::new(routes::router(App::new(Settings {
        clock: Clock::Frozen(now()),
        db: Some(db.read_only.clone()),
        engine,
        ..Settings::default()
    })));
    let page = server.get("/waterline/").await.text();
    let table = page.split("id=\"limits\"").nth(1).unwrap();
    let table = table.split("</section>").next().unwrap();
    table
        .split("<tr><th scope=\"row\">")
        .skip(1)
        .map(|line| {
            let (kind, cells) = line.split_once("</th>").unwrap();
            let mut text = String::new();
            for piece in cells.split('<').skip(1) {
                let said = piece.split_once('>').unwrap().1.trim();
                if !said.is_empty() {
                    text.push_str(said);
                    text.push('|');
                }
            }
            (kind.to_owned(), text)
        })
        .collect()
}

const COUNTED: [&str; 5] = [
    "pending activity count",
    "pending child count",
    "pending timer count",
    "pending signal count",
    "pending update count",
];

on_every_database! {
    /// At four fifths of a limit a run is named, and how full it is; what is done does not count.
    async fn a_run_near_a_limit_is_named(db: TestDb) {
        let rows = [(1, 7), (2, 8), (3, 12)].into_iter().flat_map(|(n, open)| run(n, open)).collect();
        write(&db.writable, rows, |_| ()).await.unwrap();
        let limits = limits(&db, 10, 80).await;
        assert_eq!(limits.len(), 10);
        for (kind, said) in &limits {
            let told = match kind.as_str() {
                kind if COUNTED.contains(&kind) => {
                    let short = |n| said.contains(&format!("{n}|"));
                    assert!(short("12 · 120 %") && short("8 · 80 %"), "{kind}: {said}");
                    assert!(said.starts_with("10|8|") && !said.contains("70 %"), "{kind}: {said}");
                    assert!(said.find("120 %") < said.find("80 %|"), "the fullest first");
                    continue;
                }
                "memo size bytes" | "search attribute size bytes" => "|not counted|",
                _ => "|known to the engine alone|",
            };
            assert!(said.ends_with(told), "{kind}: {said}");
        }
    }

    /// What a run leaves open when it closes brings it near to nothing.
    async fn a_closed_run_is_near_no_limit(db: TestDb) {
        let mut rows = Vec::new();
        for (n, status) in [(1, "completed"), (2, "failed"), (3, "cancelled"), (4, "terminated")] {
            let mut own = run(n, 12);
            for row in &mut own[..2] {
                row.replace("status", status);
            }
            own[0].replace("status_bucket", if n == 1 { "completed" } else { "failed" });
            rows.extend(own);
        }
        rows.extend(run(5, 12));
        write(&db.writable, rows, |_| ()).await.unwrap();
        for (kind, said) in limits(&db, 10, 80).await {
            if COUNTED.contains(&kind.as_str()) {
                assert_eq!(said.matches("12 · 120 %").count(), 1, "{kind}: {said}");
            }
        }
    }

    /// A run at the limit of nothing is near none, and where many are near that is said.
    async fn limits_that_are_off_warn_nobody(db: TestDb) {
        let rows = (0..21).flat_map(|n| run(n, 2)).collect();
        write(&db.writable, rows, |_| ()).await.unwrap();
        for (limit, percent, said) in [
            (0, 80, "off|"),
            (2, 0, "2|"),
            (9, 80, "9|7|none|"),
        ] {
            for (kind, told) in limits(&db, limit, percent).await {
                if COUNTED.contains(&kind.as_str()) {
                    assert_eq!(told, said, "{kind}");
                }
            }
        }
        for (kind, told) in limits(&db, 2, 80).await {
            if COUNTED.contains(&kind.as_str()) {
                assert_eq!(told.matches("100 %").count(), 20, "{kind}: {told}");
                assert!(told.ends_with("|and others|"), "{kind}: {told}");
            }
        }
    }
}
