//! Numbers of tables that are not there prove nothing, and nobody is told that all is well.

use axum_test::TestServer;
use plimsoll::{
    clock::Clock,
    durable::{
        metrics::ground::{Lacks, REQUIRED},
        store::schema,
    },
    web::{
        collector::Options,
        routes,
        state::{App, Settings},
    },
};
use serde_json::{Value, json};

use crate::{
    list_plans::script,
    rig::{TestDb, on_every_database},
    shop::{fill_short, now},
};

/// The product over a database that lacks these, as it is after its start. A table that stands in
/// hides the one that is there.
async fn lacking(db: &TestDb, tables: &[&'static str]) -> TestServer {
    let mut report = schema::check(&db.read_only).await.unwrap();
    report.missing_tables = tables.to_vec();
    let stand_ins = schema::stand_ins(&report, db.dialect());
    TestServer::new(routes::router(App::new(Settings {
        clock: Clock::Frozen(now()),
        db: Some(db.read_only.clone().with_stand_ins(stand_ins)),
        gathering: Options {
            lacks: Lacks::of(&report),
            ..Options::default()
        },
        ..Settings::default()
    })))
}

async fn answer(server: &TestServer, path: &str) -> (u16, Value) {
    let response = server.get(path).await;
    (response.status_code().as_u16(), response.json())
}

fn check<'a>(health: &'a Value, name: &str) -> Option<&'a Value> {
    let checks = health["checks"].as_array().unwrap();
    checks.iter().find(|check| check["name"] == name)
}

on_every_database! {
    async fn without_a_required_table_there_are_no_numbers(db: TestDb) {
        fill_short(&db).await;
        // Without the first three nothing is served at all.
        for table in &REQUIRED[3..] {
            let server = lacking(&db, &[table]).await;
            let (status, health) = answer(&server, "/waterline/api/v2/health").await;
            assert_eq!(status, 503, "{table}");
            assert_eq!((&health["status"], &health["healthy"]), (&json!("error"), &json!(false)));
            let checks = health["checks"].as_array().unwrap();
            assert_eq!((checks.len(), &checks[0]["name"], &checks[0]["status"]), (1, &json!("engine_source"), &json!("error")));
            assert_eq!(checks[0]["meta"]["uses_v2"], false);
            assert!(health["operator_metrics"].is_null() && health["categories"].is_null());
            assert_eq!(health["coordination_alerts"][0]["key"], "engine_source");
            for path in ["/waterline/api/stats", "/waterline/api/operator-metrics"] {
                let (status, document) = answer(&server, path).await;
                assert_eq!(status, 503, "{table}: {path}");
                let source = &document["engine_source"];
                assert_eq!(source["status"], "v2_pinned_unavailable");
                assert_eq!(source["v2_operator_surface_available"], false);
                assert_eq!(source["issues"], json!([{ "table": table, "reason": "missing_table" }]));
                assert_eq!(source["required_tables"].as_array().unwrap().len(), 18);
                assert!(document["message"].as_str().unwrap().contains(table));
                assert!(document["flows"].is_null() && document["runs"].is_null());
            }
            let scraped = server.get("/metrics").await.text();
            assert!(scraped.contains("durable_workflow_health_status{check=\"engine_source\"} 2\n"), "{scraped}");
            assert!(!scraped.contains("durable_workflow_runs"));
            let page = server.get("/waterline/").await.text();
            assert!(page.contains("The engine's tables are not all here"), "{table}");
            assert!(page.contains(&format!("The database lacks {table}.")), "{table}");
            assert!(!page.contains("is fine") && !page.contains("Nothing needs a look"));
        }
    }

    async fn a_check_whose_rows_cannot_be_there_is_not_ok(db: TestDb) {
        // What no check rests on changes nothing.
        let server = lacking(&db, &["workflow_messages"]).await;
        let (_, health) = answer(&server, "/waterline/api/v2/health").await;
        assert_eq!(health["status"], "ok");
        for (tables, dropped, open, missing) in [
            (&["workflow_schedules"][..], "", "scheduler_role", "workflow_schedules"),
            (
                &[],
                "alter table {workflow_tasks} drop column lease_expires_at",
                "task_transport",
                "workflow_tasks.lease_expires_at",
            ),
            (
                &[],
                "alter table {workflow_run_summaries} drop column liveness_state",
                "durable_resume_paths",
                "workflow_run_summaries.liveness_state",
            ),
        ] {
            if !dropped.is_empty() {
                script(&db, dropped).await;
            }
            let server = lacking(&db, tables).await;
            let (status, health) = answer(&server, "/waterline/api/v2/health").await;
            assert_eq!((status, &health["status"]), (200, &json!("warning")), "{missing}");
            assert_eq!(check(&health, open), None);
            let snapshot = check(&health, "operator_snapshot").unwrap();
            assert_eq!(snapshot["category"], "correctness");
            assert_eq!(snapshot["data"]["reason"], "operator_metrics_unavailable");
            let told = snapshot["data"]["missing"].as_array().unwrap();
            assert!(told.contains(&json!(missing)), "{told:?}");
            assert_eq!(health["coordination_alerts"][0]["key"], "operator_snapshot");
            // Nobody counted schedules, which is not none.
            let known = tables.is_empty();
            for metrics in [
                answer(&server, "/waterline/api/operator-metrics").await.1,
                answer(&server, "/waterline/api/stats").await.1["operator_metrics"].clone(),
                health["operator_metrics"].clone(),
            ] {
                assert_eq!(metrics["schedules"].is_object(), known);
            }
            let scraped = server.get("/metrics").await.text();
            assert_eq!(scraped.contains("durable_workflow_schedules"), known);
            let page = server.get("/waterline/").await.text();
            assert!(page.contains("The database lacks ") && page.contains(missing), "{page}");
            assert!(!page.contains("Nothing needs a look"));
        }
    }
}
