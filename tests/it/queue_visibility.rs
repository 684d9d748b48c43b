//! The queues of one namespace in the health document: how long they are, who works on them, and
//! who registered with the engine's server to poll them.

use axum_test::TestServer;
use chrono::TimeDelta;
use plimsoll::{
    clock::Clock,
    db::Db,
    demo::{rows::InsertRow, write::write},
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
    shop::{now, run_of},
};

/// The server's own tables, as far as they are read.
pub const TABLES: &str = "create table {workflow_worker_registrations} (worker_id varchar(191) not null, \
    namespace varchar(128), task_queue varchar(191), runtime varchar(191), sdk_version varchar(191), \
    build_id varchar(191), supported_workflow_types json, supported_activity_types json, \
    max_concurrent_workflow_tasks integer, max_concurrent_activity_tasks integer, \
    last_heartbeat_at timestamp null, status varchar(32)); \
    create table {workflow_worker_build_id_rollouts} (namespace varchar(128), task_queue varchar(191), \
    build_id varchar(191), drain_intent varchar(32), drained_at timestamp null)";

const ROWS: &str = "insert into {workflow_worker_registrations} values \
    ('w-live', 'north', 'orders', 'php', '2.0', 'v2', null, '[]', 10, 20, '2026-11-15 11:59:50', 'active'), \
    ('w-late', 'north', 'orders', 'php', '2.0', 'v1', null, null, 100, 100, '2026-11-15 11:58:00', 'active'), \
    ('w-dead', 'north', 'mail', 'python', '1.0', null, null, null, 100, 100, '2026-11-15 11:00:00', 'active'), \
    ('w-else', 'south', 'orders', 'php', '2.0', null, null, null, 100, 100, '2026-11-15 11:59:50', 'active'); \
    insert into {workflow_worker_build_id_rollouts} values ('north', 'orders', 'v1', 'draining', null)";

fn server(db: &Db, namespace: Option<&str>) -> TestServer {
    let app = App::new(Settings {
        clock: Clock::Frozen(now()),
        db: Some(db.clone()),
        gathering: Options {
            namespace: namespace.map(str::to_owned),
            ..Options::default()
        },
        ..Settings::default()
    });
    TestServer::new(routes::router(app))
}

async fn health(db: &Db) -> Value {
    let server = server(db, Some("north"));
    server.get("/waterline/api/v2/health").await.json()
}

/// The samples of one family.
async fn samples(server: &TestServer, family: &str) -> Vec<String> {
    server.get("/waterline/api/stats").await.assert_status_ok();
    let text = server.get("/metrics").await.text();
    let of_family = text.lines().filter(|line| line.starts_with(family));
    of_family.map(str::to_owned).collect()
}

fn task(id: &str, queue: &str, kind: &str, status: &str) -> InsertRow {
    InsertRow::new("workflow_tasks")
        .set("id", id)
        .set("workflow_run_id", format!("01seed{:020}", 0))
        .set("namespace", "north")
        .set("queue", queue)
        .set("task_type", kind)
        .set("status", status)
        .set("lease_owner", (status == "leased").then_some("w-live"))
        .set("attempt_count", 3)
        .stamps(now() - TimeDelta::minutes(5), now())
}

/// Tasks of three queues, some being worked on.
async fn tasks(db: &TestDb) {
    let leased = |id: &str, kind: &str, seconds: i64| {
        task(id, "orders", kind, "leased")
            .time("lease_expires_at", now() + TimeDelta::seconds(seconds))
    };
    let mut run = run_of(0);
    run.replace("namespace", "north");
    let rows = vec![
        run,
        task("t-ready", "orders", "workflow", "ready"),
        task("t-mail", "mail", "activity", "ready"),
        task("t-lone", "lone", "workflow", "ready"),
        leased("t-b", "workflow", 60),
        leased("t-a", "activity", 60),
        leased("t-z", "workflow", -60),
        InsertRow::new("activity_attempts")
            .set("id", "attempt-2")
            .set("workflow_run_id", format!("01seed{:020}", 0))
            .set("activity_execution_id", "execution")
            .set("workflow_task_id", "t-a")
            .set("attempt_number", 2)
            .set("status", "running")
            .time("started_at", now()),
    ];
    write(&db.writable, rows, |_| ()).await.unwrap();
}

fn queue<'d>(health: &'d Value, name: &str) -> &'d Value {
    let queues = health["queue_visibility"]["task_queues"]
        .as_array()
        .unwrap();
    queues.iter().find(|queue| queue["name"] == name).unwrap()
}

fn alert<'d>(health: &'d Value, key: &str) -> Option<&'d Value> {
    let alerts = health["coordination_alerts"].as_array().unwrap();
    alerts.iter().find(|alert| alert["key"] == key)
}

on_every_database! {
    async fn leases_are_shown_without_the_server(db: TestDb) {
        tasks(&db).await;
        let health = health(&db.read_only).await;
        assert_eq!(health["queue_visibility"]["available"], false);
        assert_eq!(alert(&health, "queue_visibility_unavailable").unwrap()["status"], "warning");
        assert!(alert(&health, "queue_backlog_without_pollers").is_none(), "nobody can know");
        let leases = queue(&health, "orders")["current_leases"].as_array().unwrap();
        let ids: Vec<_> = leases.iter().map(|lease| &lease["task_id"]).collect();
        assert_eq!(ids, ["t-z", "t-a", "t-b"], "those past their end first");
        assert_eq!(leases[0], json!({
            "task_id": "t-z",
            "task_type": "workflow",
            "workflow_id": "seed-0",
            "run_id": format!("01seed{:020}", 0),
            "lease_owner": "w-live",
            "lease_expires_at": "2026-11-15T11:59:00.000000Z",
            "is_expired": true,
            "workflow_task_attempt": 3,
        }));
        assert_eq!((&leases[1]["activity_attempt_id"], &leases[1]["attempt_number"]), (&json!("attempt-2"), &json!(2)));
        assert_eq!(health["routing_drains"], json!([]));
        assert_eq!(health["worker_versioning"], json!([]));
        assert!(health["operator_metrics"]["workers"].get("registrations").is_none());
    }

    async fn registered_pollers_are_counted_by_queue(db: TestDb) {
        tasks(&db).await;
        script(&db, TABLES).await;
        script(&db, ROWS).await;
        let mut tx = db.writable.write().await.unwrap();
        let mut q = tx.statement();
        q.push("update {workflow_worker_registrations} set supported_workflow_types = ")
            .bind("[\"a\", \"b\"]")
            .push(db.dialect().pick("", "::json", ""))
            .push(" where worker_id = 'w-live'");
        tx.execute(q).await.unwrap();
        tx.commit().await.unwrap();
        let health = health(&db.read_only).await;
        assert_eq!(health["queue_visibility"]["available"], true);
        let pollers = |name| queue(&health, name)["stats"]["pollers"].clone();
        assert_eq!(pollers("orders"), json!({"active_count": 1, "stale_count": 1, "stale_after_seconds": 60}));
        assert_eq!(pollers("mail"), json!({"active_count": 0, "stale_count": 1, "stale_after_seconds": 60}));
        assert_eq!(pollers("lone"), json!({"active_count": 0, "stale_count": 0, "stale_after_seconds": 60}));
        let orders = queue(&health, "orders");
        assert_eq!(orders["pollers"][0], json!({
            "worker_id": "w-live",
            "runtime": "php",
            "sdk_version": "2.0",
            "build_id": "v2",
            "last_heartbeat_at": "2026-11-15T11:59:50.000000Z",
            "heartbeat_expires_at": "2026-11-15T12:00:50.000000Z",
            "status": "active",
            "is_stale": false,
            "supported_workflow_types": ["a", "b"],
            "supported_activity_types": [],
            "max_concurrent_workflow_tasks": 10,
            "max_concurrent_activity_tasks": 20,
        }));
        assert_eq!(orders["pollers"][1]["status"], "stale");
        let builds: Vec<_> = orders["build_ids"].as_array().unwrap().iter().map(|build| (&build["build_id"], &build["rollout_status"])).collect();
        assert_eq!(builds, [(&json!("v2"), &json!("active")), (&json!("v1"), &json!("draining"))]);
        assert_eq!(health["routing_drains"][0]["build_id"], "v1");

        // Each queue by itself: one has a poller, two have none.
        let alone = alert(&health, "queue_backlog_without_pollers").unwrap();
        assert_eq!((&alone["queues"], &alone["backlog_count"], &alone["status"]), (&json!(["lone", "mail"]), &json!(2), &json!("error")));
        assert_eq!(alone["max_age_ms"], 300_000);
        let repair = alert(&health, "queue_repair_candidates").unwrap();
        assert_eq!((&repair["candidate_count"], &repair["max_age_ms"]), (&json!(4), &json!(300_000)));
        let stale = alert(&health, "queue_stale_pollers").unwrap();
        assert_eq!(stale.get("max_age_ms"), None);
        assert_eq!((&stale["queues"], &stale["stale_poller_count"]), (&json!(["mail", "orders"]), &json!(2)));
        assert!(alert(&health, "queue_visibility_unavailable").is_none());

        let workers = &health["operator_metrics"]["workers"];
        assert_eq!((&workers["registration_count"], &workers["stale_registration_count"]), (&json!(3), &json!(1)));
        assert_eq!(workers["stale_registrations"][0]["worker_id"], "w-dead");
        assert_eq!(workers["stale_after_seconds"], 300);
        assert_eq!(workers["registrations"][0]["namespace"], "north");
    }

    /// Who polls a queue is told to Prometheus as it is in the document.
    async fn registered_pollers_are_those_of_queue_visibility(db: TestDb) {
        const FAMILY: &str = "durable_workflow_queue_pollers";
        script(&db, TABLES).await;
        script(&db, ROWS).await;
        let pollers = async |namespace| {
            let samples = samples(&server(&db.read_only, namespace), FAMILY).await;
            let value = |sample: &String| sample.rsplit(' ').next().unwrap().to_owned();
            samples.iter().map(value).collect::<Vec<_>>().join(" ")
        };
        // By queue: active and stale.
        assert_eq!(pollers(None).await, "0 1 2 1", "mail, orders");
        assert_eq!(pollers(Some("north")).await, "0 1 1 1");
        let queues = health(&db.read_only).await["queue_visibility"]["task_queues"].clone();
        for (n, [active, stale]) in [[0, 1], [1, 1]].into_iter().enumerate() {
            let pollers = &queues[n]["stats"]["pollers"];
            assert_eq!((&pollers["active_count"], &pollers["stale_count"]), (&json!(active), &json!(stale)));
        }
    }

    /// Workers that only register are workers too, whichever namespace the numbers are of.
    async fn registered_workers_are_counted_for_prometheus(db: TestDb) {
        const FAMILY: &str = "durable_workflow_workers_registered";
        let none = samples(&server(&db.read_only, None), FAMILY).await;
        assert_eq!(none, [format!("{FAMILY}{{state=\"active\"}} 0"), format!("{FAMILY}{{state=\"stale\"}} 0")]);
        script(&db, TABLES).await;
        script(&db, ROWS).await;
        let all = samples(&server(&db.read_only, None), FAMILY).await;
        assert_eq!(all, [format!("{FAMILY}{{state=\"active\"}} 3"), format!("{FAMILY}{{state=\"stale\"}} 1")]);
        let north = samples(&server(&db.read_only, Some("north")), FAMILY).await;
        assert_eq!(north.len(), 2, "{north:?}");
        assert!(north[0].ends_with(" 2") && north[1].ends_with(" 1"), "{north:?}");
        let overview = server(&db.read_only, None).get("/waterline/").await.text();
        assert!(overview.contains("3 registered with the engine"), "{overview}");
    }
}
