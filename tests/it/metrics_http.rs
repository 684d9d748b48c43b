//! The fleet's numbers over HTTP: JSON, Prometheus, the overview; how often they are gathered,
//! and what is said while the database is away.

use std::{collections::BTreeSet, fs, path::Path, time::Duration};

use axum_test::TestServer;
use plimsoll::{
    clock::Clock,
    db::{Db, Dialect},
    demo::{rows::InsertRow, write::write},
    durable::{
        collect::{Walk, gather},
        engine_config::EngineConfig,
        store::{
            metrics::{self, Sections, sweep},
            runs::{ATTENTION_WINDOW, WINDOW},
        },
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
    metrics_invariants::invariants,
    rig::{TestDb, on_every_database},
    shop::{engine, fill, fill_short, now, run_of, server, summary},
};

/// The product over the shop's clock, gathering only when asked to.
pub fn still(db: &Db) -> TestServer {
    TestServer::new(routes::router(App::new(Settings {
        clock: Clock::Frozen(now()),
        db: Some(db.clone()),
        gathering: Options {
            interval: Duration::from_hours(1),
            ..Options::default()
        },
        ..Settings::default()
    })))
}

pub async fn json(server: &TestServer, path: &str) -> Value {
    let response = server.get(path).await;
    assert_eq!(response.status_code(), 200, "{path}: {}", response.text());
    response.json()
}

on_every_database! {
    async fn the_shop_floor_in_numbers(db: TestDb) {
        fill(&db).await;
        let server = server(&db.read_only);
        let stats = json(&server, "/waterline/api/stats").await;
        invariants(&stats, None);
        let metrics = json(&server, "/waterline/api/operator-metrics").await;
        assert_eq!(metrics["runs"], stats["operator_metrics"]["runs"]);
        assert_eq!(stats["time_windows"]["generated_at"], "2026-11-15T12:00:00.000000Z");
        assert_eq!(stats["time_windows"]["week"], json!({"from": "2026-11-08T12:00:00.000000Z", "to": "2026-11-15T12:00:00.000000Z"}));
        assert_eq!(stats["classification_scope"]["workflow_types"], json!(null));
        assert_eq!(stats["hybrid_migration_view"]["reason"], "disabled");
        // No class of runs is counted apart, and whoever asks for one is not given all.
        let of_class = server.get("/waterline/api/stats?classification=batch").await;
        assert_eq!(of_class.status_code(), 422, "{}", of_class.text());
        assert_eq!(metrics["generated_at"], "2026-11-15T12:00:00.000000Z");
        assert_eq!(metrics["plimsoll"]["age_ms"], 0);
        assert_eq!(metrics["plimsoll"]["swept"]["complete"], true);
        assert!(metrics["runs"]["repair_needed"].as_i64() > Some(0), "the demo has lost tasks");
        // The total is of every status; no run is counted twice or left out.
        let runs = &metrics["runs"];
        let sum: i64 = ["running", "completed", "failed", "cancelled", "terminated"].iter().map(|key| runs[key].as_i64().unwrap()).sum();
        let other = summaries_of_unknown_status(&db.read_only).await;
        assert_eq!(runs["total"].as_i64().unwrap(), sum + other);

        let health = server.get("/waterline/api/v2/health").await;
        let document: Value = health.json();
        assert_eq!(health.status_code() == 503, document["status"] == "error", "18");
        assert_eq!(document["healthy"] == json!(true), document["status"] != "error", "18");
        let counts = &document["categories"];
        assert_eq!(counts["correctness"]["check_count"].as_i64().unwrap() + counts["acceleration"]["check_count"].as_i64().unwrap(), 12);
        assert_eq!(document["checks"][0]["name"], "engine_source");
        assert_eq!(document["checks"].as_array().unwrap().len(), 13);
        assert_eq!(document["readiness_issues"], json!([]));
        assert_eq!(document["hybrid_migration_view"]["active"], false);
    }

    /// Whoever asks gets the numbers of the same pass.
    async fn fifty_scrapers_cost_what_one_does(db: TestDb) {
        fill(&db).await;
        let server = std::sync::Arc::new(still(&db.read_only));
        json(&server, "/waterline/api/stats").await;
        let mut scrapers = Vec::new();
        for n in 0..50 {
            let path = ["/waterline/api/operator-metrics", "/waterline/api/stats", "/waterline/api/v2/health", "/metrics", "/waterline/"][n % 5];
            let server = std::sync::Arc::clone(&server);
            scrapers.push(async move {
                let response = server.get(path).await;
                assert_eq!(response.status_code(), 200, "{path}");
                assert_eq!(response.header("x-statements"), "0", "{path}");
            });
        }
        futures_util::future::join_all(scrapers).await;
        let passes = json(&server, "/waterline/api/stats").await["plimsoll"]["passes"].clone();
        assert_eq!(passes, 1);
        // Asked for fresh numbers, a new pass is made; those who ask together share it.
        let fresh = json(&server, "/waterline/api/stats?fresh=1").await["plimsoll"]["passes"].clone();
        assert_eq!(fresh, 2);
    }

    async fn a_pass_sends_the_same_statements_however_many_runs(db: TestDb) {
        let server = still(&db.read_only);
        let statements = async || {
            let told = json(&server, "/waterline/api/stats?fresh=1").await["plimsoll"].clone();
            assert_eq!(told["failing_because"], json!(null));
            told["pass_statements"].as_i64().unwrap()
        };
        let empty = statements().await;
        fill_short(&db).await;
        let shop = statements().await;
        let rows = (0..1_200).flat_map(|n| [summary(n), run_of(n)]).collect();
        write(&db.writable, rows, |_| ()).await.unwrap();
        let many = statements().await;
        assert_eq!((empty, shop), (many, many));
        let swept = json(&server, "/waterline/api/stats").await["plimsoll"]["swept"].clone();
        assert_eq!(swept["complete"], true, "the last whole walk still speaks: {swept}");
        // Too many for one pass now: after some it knows all runs again.
        for _ in 0..1_400 / sweep::BOUNDS.runs {
            statements().await;
        }
        let stats = json(&server, "/waterline/api/stats?fresh=1").await;
        let runs = &stats["operator_metrics"]["projections"]["run_summaries"]["runs"];
        assert_eq!(&stats["plimsoll"]["swept"]["runs"], runs);
        invariants(&stats, None);
    }

    /// What SQL alone can count is known long before every history is read.
    async fn rows_are_counted_ahead_of_histories(db: TestDb) {
        let rows = (0..1_200).flat_map(|n| if n < 7 { vec![run_of(n)] } else { vec![summary(n), run_of(n)] }).collect();
        write(&db.writable, rows, |_| ()).await.unwrap();
        let server = still(&db.read_only);
        let health: Value = server.get("/waterline/api/v2/health").await.json();
        let walked = |name: &str| (health["plimsoll"][name]["complete"].clone(), health["plimsoll"][name]["runs"].clone());
        assert_eq!(walked("rows_swept"), (json!(true), json!(1_200)));
        assert_eq!(walked("swept"), (json!(false), json!(sweep::BOUNDS.runs)));
        assert_eq!(health["operator_metrics"]["projections"]["run_summaries"]["missing"], 7);
        let message = |n: usize| health["checks"][n]["message"].as_str().unwrap().to_owned();
        assert!(message(3).ends_with("Of 1200 runs 250 were looked at so far."), "{}", message(3));
        assert!(!message(2).contains("so far"), "{}", message(2));

        // How long that takes is said: five passes an hour apart, and one for what goes faster.
        let lap = |name: &str| {
            let walk = &health["plimsoll"][name];
            (walk["passes"].clone(), walk["passes_per_lap"].clone(), walk["lap_seconds"].as_i64().unwrap() / 3_600)
        };
        assert_eq!(lap("swept"), (json!(1), json!(5), 5));
        assert_eq!(lap("rows_swept"), (json!(1), json!(1), 1));
        let page = server.get("/waterline/").await.text();
        assert!(page.contains("stored projections compared for 250 of 1,200 runs so far; a lap takes up to 5 h"));
    }

    /// The first of them may have been read long before the last.
    async fn a_walk_tells_how_old_its_oldest_part_is(db: TestDb) {
        let rows = (0..1_200).flat_map(|n| [summary(n), run_of(n)]).collect();
        write(&db.writable, rows, |_| ()).await.unwrap();
        let config = EngineConfig::defaults();
        let mut walk = Walk::default();
        let mut last = None;
        for pass in 0..5 {
            let at = now() + chrono::TimeDelta::minutes(pass);
            let limit = Duration::from_mins(2);
            last = Some(gather(&db.read_only, at, &config, None, &mut walk, limit).await.unwrap());
        }
        let gathered = last.unwrap();
        let lap = gathered.lap_time(sweep::BOUNDS, Duration::from_mins(1));
        assert_eq!((lap.passes, lap.takes), (5, Duration::from_mins(5)));
        let now = now() + chrono::TimeDelta::minutes(7);
        let told = gathered.histories.document(now, sweep::BOUNDS, lap);
        assert_eq!((&told["complete"], &told["runs"], &told["passes"]), (&json!(true), &json!(1_200), &json!(5)));
        assert_eq!(told["oldest_age_ms"], 7 * 60_000);
        assert_eq!(told["read_until"], "2026-11-15T12:04:00.000000Z");
    }

    /// One namespace: its own runs, and no repair, as in the engine.
    async fn one_namespace_is_counted_by_itself(db: TestDb) {
        fill(&db).await;
        write(&db.writable, (0..70).map(summary).collect(), |_| ()).await.unwrap();
        let mut q = db.read_only.statement();
        q.push("select count(*) as n from {workflow_run_summaries} where namespace = 'north'");
        let n = db.read_only.fetch(q).await.unwrap().remove(0).int("n").unwrap();
        let app = App::new(Settings {
            clock: Clock::Frozen(now()),
            db: Some(db.read_only.clone()),
            gathering: Options { namespace: Some("north".into()), ..Options::default() },
            ..Settings::default()
        });
        let server = TestServer::new(routes::router(app));
        let stats = json(&server, "/waterline/api/stats").await;
        assert_eq!(stats["flows"], n);
        assert_eq!(stats["operator_metrics"]["repair"]["total_candidates"], 0);
        assert_eq!(stats["operator_scope"]["mode"], "namespace");
        // A 0 there means that nobody counted, and is shown to nobody as a count.
        let page = server.get("/waterline/").await.text();
        assert_eq!(page.matches("counted for all namespaces together only").count(), 2);
        let scraped = server.get("/metrics").await.text();
        assert!(scraped.contains("durable_workflow_runs_repair_needed{namespace=\"north\"}"));
        assert!(!scraped.contains("durable_workflow_repair_"), "no candidates of one namespace");
        let health: Value = server.get("/waterline/api/v2/health").await.json();
        assert_eq!(health["queue_visibility"]["available"], false, "no table says who polls");
        let alerts = health["coordination_alerts"].as_array().unwrap();
        assert!(alerts.iter().any(|alert| alert["key"] == "queue_visibility_unavailable"));
    }

    /// A busy week is longer than the texts a database hands out without being asked to.
    async fn a_long_week_is_counted_whole(db: TestDb) {
        const RUNS: u32 = 2_100;
        write(&db.writable, (0..RUNS).map(summary).collect(), |_| ()).await.unwrap();
        let mut snapshot = db.read_only.snapshot().await.unwrap();
        if db.dialect() == Dialect::MySql {
            // Its own default.
            let mut q = snapshot.statement();
            q.push("set session group_concat_max_len = 1024");
            snapshot.fetch(q).await.unwrap();
        }
        let (config, mut sections) = (EngineConfig::defaults(), Sections::default());
        let count = metrics::count(&mut snapshot, now(), &config, None, &mut sections);
        let counted = Box::pin(count).await.unwrap();
        snapshot.end().await;
        let runs: Vec<_> = counted.types.iter().map(|of_type| of_type.total_runs).collect();
        assert_eq!(runs, [i64::from(RUNS / 3); 3]);
    }

    /// Each item of the overview leads to a list of as many runs as it says.
    async fn what_needs_attention_is_listed(db: TestDb) {
        fill(&db).await;
        assert_eq!(listed(&server(&db.read_only)).await.len(), 6);
    }

    /// Tasks and activities are no runs: a line of the backlog says of how many runs they are.
    async fn open_work_leads_to_the_runs_it_is_of(db: TestDb) {
        fill(&db).await;
        for namespace in [None, Some("production")] {
            let app = App::new(Settings {
                clock: Clock::Frozen(now()),
                db: Some(db.read_only.clone()),
                gathering: Options { namespace: namespace.map(str::to_owned), ..Options::default() },
                ..Settings::default()
            });
            let server = TestServer::new(routes::router(app));
            let page = server.get("/waterline/").await.text();
            let lines = page.split("id=\"backlog\"").nth(1).unwrap().split("</section>").next().unwrap();
            let mut counted = 0;
            for link in lines.split("<a href=\"").skip(1) {
                let (href, text) = link.split_once("\">").unwrap();
                let text = text.split('<').next().unwrap();
                let query = href.strip_prefix("/waterline/runs").unwrap().replace("&amp;", "&").replace("&#38;", "&");
                let list = json(&server, &format!("/waterline/api/flows/all{query}&per_page=200")).await;
                let rows = list["data"].as_array().unwrap().len();
                assert!(rows > 0, "{href}");
                assert_eq!(list["total"], rows, "{href}");
                if let Some(n) = text.strip_prefix("in ") {
                    assert_eq!(n.split(' ').next().unwrap().parse::<usize>().unwrap(), rows, "{href}");
                    counted += 1;
                }
            }
            assert!(counted >= 4, "{counted} in {namespace:?}");
        }
    }

    /// So do those that nothing of the shop is in: a storm of retries, and many failures in an hour.
    async fn trouble_of_the_last_hour_is_listed(db: TestDb) {
        let minutes = |n: i64| now() - chrono::TimeDelta::minutes(n);
        let ended = |n: u32, status: &str, at| {
            let mut row = summary(n).time("closed_at", at);
            row.replace("status", status);
            row.replace("status_bucket", if status == "completed" { "completed" } else { "failed" });
            row.replace("liveness_state", "closed");
            row
        };
        let retried = |n: u32, exceptions: i64, at: chrono::DateTime<chrono::Utc>| {
            let mut row = fresh(n);
            row.replace("exception_count", exceptions);
            row.replace("updated_at", at.naive_utc());
            row
        };
        let rows = vec![
            ended(0, "completed", minutes(5)),
            // At the hour's very end, and a moment before it.
            ended(1, "failed", minutes(60)),
            ended(2, "failed", minutes(60) - chrono::TimeDelta::microseconds(1)),
            ended(3, "cancelled", minutes(5)),
            retried(20, 10, minutes(59)),
            retried(21, 12, minutes(61)),
            retried(22, 9, minutes(1)),
            retried(23, 99, minutes(1)),
        ];
        write(&db.writable, rows, |_| ()).await.unwrap();
        let items = listed(&server(&db.read_only)).await;
        assert_eq!(items, [("/waterline/runs?attention=retry_storm".to_owned(), 2)], "nine closed are too few");
        let rows = (4..12).map(|n| ended(n, "failed", minutes(30))).collect();
        write(&db.writable, rows, |_| ()).await.unwrap();
        let items = listed(&server(&db.read_only)).await;
        assert_eq!(items[1..], [("/waterline/runs?attention=failed_past_hour".to_owned(), 9)]);
    }

    /// A worker that fell silent is named where the overview says so.
    async fn a_silent_worker_is_named(db: TestDb) {
        let beat = |id: &str, seconds: i64| {
            let at = now() - chrono::TimeDelta::seconds(seconds);
            InsertRow::new("workflow_worker_compatibility_heartbeats")
                .set("worker_id", id)
                .set("scope_key", id)
                .set("supported", "[]")
                .time("recorded_at", at)
                .time("expires_at", at + chrono::TimeDelta::seconds(30))
        };
        let rows = vec![beat("worker-live", 5), beat("worker-silent", 600), beat("worker-gone", 7_200)];
        write(&db.writable, rows, |_| ()).await.unwrap();
        let page = server(&db.read_only).get("/waterline/").await.text();
        assert!(page.contains("1 worker said nothing for more than five minutes"));
        let workers = page.split("id=\"workers\"").nth(1).unwrap().split("</section>").next().unwrap();
        assert!(workers.contains("worker-live") && workers.contains("worker-silent"), "{workers}");
        assert!(workers.contains("silent</") && !workers.contains("worker-gone"), "{workers}");
    }

    /// 503 exactly when a check says error; a warning is none.
    async fn health_is_503_on_an_error_alone(db: TestDb) {
        for (mode, code, status) in [("warn", 200, "warning"), ("fail", 503, "error")] {
            let engine = engine(&json!({
                "compatibility": { "current": "v7" },
                "fleet": { "validation_mode": mode },
            }));
            let app = App::new(Settings {
                clock: Clock::Frozen(now()),
                db: Some(db.read_only.clone()),
                engine,
                ..Settings::default()
            });
            let response = TestServer::new(routes::router(app)).get("/waterline/api/v2/health").await;
            assert_eq!(response.status_code(), code, "{mode}");
            let document: Value = response.json();
            assert_eq!((&document["status"], &document["healthy"]), (&json!(status), &json!(code == 200)));
            assert_eq!(document["categories"]["correctness"]["status"], status);
            assert_eq!(document["coordination_alerts"][0]["key"], "worker_compatibility");
        }
    }

    /// What is late or full is named too, and leads to the part of the page that has it.
    async fn what_is_late_or_near_a_limit_is_named(db: TestDb) {
        let quiet = server(&db.read_only).get("/waterline/").await.text();
        assert!(quiet.contains("Nothing needs a look"));
        let ago = now() - chrono::TimeDelta::minutes(9);
        let own = |table, id: &str| {
            InsertRow::new(table).set("id", format!("01{id}")).set("workflow_run_id", fresh(1).text("id").unwrap())
        };
        let mut run = run_of(1);
        run.replace("status", "waiting");
        let task = own("workflow_tasks", "leased").set("task_type", "workflow").set("status", "leased").set("payload", "{}");
        let activity = own("activity_executions", "late").set("sequence", 1).set("activity_class", "A").set("activity_type", "a");
        let signal = own("workflow_signal_records", "sign").set("workflow_command_id", "01c").set("workflow_instance_id", "seed-0");
        let schedule = InsertRow::new("workflow_schedules")
            .set("id", "01schedule")
            .set("schedule_id", "nightly")
            .set("status", "active");
        let rows = vec![
            fresh(1),
            run,
            task.time("lease_expires_at", ago).stamps(ago, ago),
            activity.set("status", "running").time("close_deadline_at", ago),
            signal.set("signal_name", "go").set("status", "received"),
            schedule.time("next_fire_at", ago),
        ];
        write(&db.writable, rows, |_| ()).await.unwrap();
        let engine = engine(&json!({ "structural_limits": { "pending_signal_count": 1 } }));
        let app = App::new(Settings { clock: Clock::Frozen(now()), db: Some(db.read_only.clone()), engine, ..Settings::default() });
        let server = TestServer::new(routes::router(app));
        let page = server.get("/waterline/").await.text();
        for (href, text) in [
            ("/waterline/runs?attention=unhealthy_task", "1 run has a task in trouble: lease expired 1"),
            ("/waterline/runs?attention=overdue_activity", "1 run has an activity past a deadline"),
            ("#oldest", "1 schedule is past its time"),
            ("#limits", "1 run at 100 % of pending signal count"),
        ] {
            assert!(page.contains(&format!("<a href=\"{href}\">{text}</a>")), "{text}");
        }
        assert!(page.contains("Schedule past its time: nightly"));
        assert_eq!(listed(&server).await.len(), 4);
        // Of a run that closed no list of open ones tells; the backlog still has the task.
        script(&db, "update {workflow_run_summaries} set status_bucket = 'completed', status = 'completed'").await;
        let page = json(&server, "/waterline/api/stats?fresh=1").await;
        assert_eq!(page["operator_metrics"]["tasks"]["unhealthy"], 1);
        let page = server.get("/waterline/").await.text();
        assert!(page.contains("<a href=\"#backlog\">Tasks in trouble, of no open run: lease expired 1</a>"));
        listed(&server).await;
    }

    /// Where a check is not ok nobody is told that nothing needs a look.
    async fn a_check_that_is_not_ok_is_not_passed_over(db: TestDb) {
        write(&db.writable, vec![run_of(1)], |_| ()).await.unwrap();
        let page = server(&db.read_only).get("/waterline/").await.text();
        assert!(page.contains("listed with old facts") && page.contains("No run needs a look"), "{page}");
        assert!(!page.contains("Nothing needs a look"));
        let engine = engine(&json!({ "compatibility": { "current": "v7" }, "fleet": { "validation_mode": "fail" } }));
        let app = App::new(Settings { clock: Clock::Frozen(now()), db: Some(db.read_only.clone()), engine, ..Settings::default() });
        let page = TestServer::new(routes::router(app)).get("/waterline/").await.text();
        assert!(page.contains("<a href=\"#health\">No live worker supports the marker new runs get.</a>"));
    }

    /// An attempt is of the namespace of the run it names itself.
    async fn local_attempts_are_those_of_their_own_runs(db: TestDb) {
        let run = |n: u32, namespace: &str| run_of(n).set("namespace", namespace);
        let attempt = |n: u32, of: u32| {
            InsertRow::new("activity_attempts")
                .set("id", format!("01attempt{n}"))
                .set("workflow_run_id", run_of(of).text("id").unwrap())
                .set("activity_execution_id", "01local")
                .set("attempt_number", i64::from(n))
                .set("status", "failed")
                .time("started_at", now())
        };
        let local = InsertRow::new("activity_executions")
            .set("id", "01local")
            .set("workflow_run_id", run_of(0).text("id").unwrap())
            .set("sequence", 1)
            .set("activity_class", "A")
            .set("activity_type", "a")
            .set("activity_options", "{\"execution_mode\":\"local\"}")
            .set("status", "pending");
        let rows = vec![run(0, "north"), run(2, "south"), local, attempt(1, 0), attempt(2, 0), attempt(3, 2)];
        write(&db.writable, rows, |_| ()).await.unwrap();
        for (namespace, attempts) in [(None, 3), (Some("north"), 2), (Some("south"), 0)] {
            let app = App::new(Settings {
                clock: Clock::Frozen(now()),
                db: Some(db.read_only.clone()),
                gathering: Options { namespace: namespace.map(str::to_owned), ..Options::default() },
                ..Settings::default()
            });
            let server = TestServer::new(routes::router(app));
            let activities = json(&server, "/waterline/api/operator-metrics").await["activities"].clone();
            assert_eq!(activities["local_attempts"], attempts, "{namespace:?}");
            assert_eq!(activities["local_failed_attempts"], attempts, "{namespace:?}");
        }
    }

    /// The hours of the week are those of the application's clock.
    async fn hours_begin_where_the_applications_hours_do(db: TestDb) {
        let zone = "Asia/Kolkata".parse().unwrap();
        let at = now() - chrono::TimeDelta::minutes(10);
        let mut row = summary(0).set("closed_at", (at + chrono::TimeDelta::minutes(330)).naive_utc());
        row.replace("status", "completed");
        row.replace("status_bucket", "completed");
        write(&db.writable, vec![row], |_| ()).await.unwrap();
        let there = db.open(|settings| settings.zone = zone).await;
        let series = json(&still(&there), "/waterline/api/stats").await["fleet_trends_series"].clone();
        there.close().await;
        // Closed at 11:50 UTC: in the hour from 17:00 to 18:00 there, which began at 11:30.
        let began: chrono::DateTime<chrono::Utc> = "2026-11-15T11:30:00Z".parse().unwrap();
        assert_eq!(series["timestamps"].as_array().unwrap().last(), Some(&json!(began.timestamp_millis())));
        assert_eq!(series["completed"].as_array().unwrap().last(), Some(&json!(1)));
        assert_eq!(series["completed"].as_array().unwrap().len(), 169);
    }

    /// However many open runs stand before them in the list.
    async fn what_needs_attention_is_found_behind_many_runs(db: TestDb) {
        fill(&db).await;
        let before = listed(&server(&db.read_only)).await;
        let rows = (0..6_000).map(fresh).chain([closed_but_lost()]).collect();
        write(&db.writable, rows, |_| ()).await.unwrap();
        let server = server(&db.read_only);
        assert_eq!(listed(&server).await, before);
        let page = server.get("/waterline/runs?attention=long_waits").await.text();
        let wanted = before.iter().find(|(href, _)| href.contains("long_waits")).unwrap().1;
        assert!(page.contains(&format!("{wanted} match")), "the list says how many there are");
        assert!(!page.contains("looked at"));
        let list = json(&server, "/waterline/api/flows/all?attention=long_waits&per_page=100").await;
        assert_eq!((&list["looked"]["rows"], &list["looked"]["complete"]), (&json!(null), &json!(true)));
        // With a filter more, a page looks no further than any other.
        let list = json(&server, "/waterline/api/flows/all?attention=long_waits&queue=nobody").await;
        assert_eq!((&list["looked"]["rows"], &list["total"]), (&json!(WINDOW), &json!(null)));
    }
}

/// Even what the overview counts is not looked for without end.
#[tokio::test]
async fn what_needs_attention_is_looked_for_as_far_as_it_says() {
    async fn body(db: TestDb) {
        let mut old = fresh(0);
        let begun = now() - chrono::TimeDelta::hours(2);
        for column in ["started_at", "sort_timestamp"] {
            old.replace(column, begun.naive_utc());
        }
        let old = old.time("wait_started_at", begun);
        write(&db.writable, vec![old], |_| ()).await.unwrap();
        script(
            &db,
            "insert into {workflow_run_summaries} (id, workflow_instance_id, run_number, class, \
             workflow_type, status, status_bucket, liveness_state, started_at, sort_timestamp) \
             with recursive n(i) as (select 1 union all select i + 1 from n where i < 50100) \
             select printf('01many%020d', i), 'many', i, 'App', 'many', 'waiting', 'running', \
             'waiting_for_signal', '2026-11-15 11:59:00.000000', '2026-11-15 11:59:00.000000' from n",
        )
        .await;
        let server = server(&db.read_only);
        let list = json(&server, "/waterline/api/flows/all?attention=long_waits").await;
        assert_eq!(list["data"], json!([]));
        assert_eq!(list["looked"]["rows"], ATTENTION_WINDOW);
        assert_eq!(list["total"], json!(null));
        let page = server
            .get("/waterline/runs?attention=long_waits")
            .await
            .text();
        for told in [
            "looked at 50,000 open runs",
            "Look further back",
            "total not counted",
        ] {
            assert!(page.contains(told), "{told}");
        }
        let list = json(&server, list["next_page_url"].as_str().unwrap()).await;
        assert_eq!(list["data"].as_array().unwrap().len(), 1);
        assert_eq!(list["looked"]["complete"], true);
    }
    crate::rig::on(plimsoll::db::Dialect::Sqlite, body).await;
}

/// An open run of the last hour, in front of all others.
fn fresh(n: u32) -> InsertRow {
    let mut row = summary(n);
    row.replace("status", "waiting");
    row.replace("status_bucket", "running");
    row.replace("liveness_state", "waiting_for_signal");
    let started = now() - chrono::TimeDelta::microseconds(i64::from(n));
    row.replace("started_at", started.naive_utc());
    row.replace("sort_timestamp", started.naive_utc());
    row
}

/// What the engine never writes: a state of open runs on one that closed.
fn closed_but_lost() -> InsertRow {
    let mut row = summary(7_000);
    row.replace("status", "completed");
    row.replace("status_bucket", "completed");
    row.replace("liveness_state", "repair_needed");
    row
}

/// SQLite keeps any text in any column: what cannot be read is named, and all else is told.
#[tokio::test]
async fn a_value_that_cannot_be_read_takes_no_number_away() {
    async fn body(db: TestDb) {
        fill_short(&db).await;
        for (damage, column) in [
            (
                "update {workflow_run_summaries} set updated_at = '0000-00-00 00:00:00' where is_current_run",
                "workflow_run_summaries.updated_at",
            ),
            (
                "update {workflow_run_summaries} set duration_ms = 'x'",
                "workflow_run_summaries.duration_ms",
            ),
            (
                "update {workflow_tasks} set attempt_count = 'abc', status = 'ready'",
                "workflow_tasks.attempt_count",
            ),
            (
                "update {workflow_tasks} set available_at = '+', status = 'ready'",
                "workflow_tasks.available_at or created_at",
            ),
        ] {
            script(&db, damage).await;
            let server = server(&db.read_only);
            let metrics = json(&server, "/waterline/api/operator-metrics").await;
            assert!(metrics["runs"]["total"].as_i64() > Some(0));
            let named = metrics["plimsoll"]["not_read"].as_array().unwrap();
            assert!(named.contains(&json!(column)), "{column}: {named:?}");
            let health: Value = server.get("/waterline/api/v2/health").await.json();
            let checks = health["checks"].as_array().unwrap();
            let told = checks
                .iter()
                .find(|check| check["name"] == "operator_snapshot")
                .unwrap();
            assert_eq!(
                (&told["status"], &told["data"]["reason"]),
                (&json!("warning"), &json!("values_not_read"))
            );
            let page = server.get("/waterline/").await;
            assert_eq!(page.status_code(), 200);
            assert!(
                page.text().contains(column),
                "{column} is named on the overview"
            );
            assert!(
                server
                    .get("/metrics")
                    .await
                    .text()
                    .contains("check=\"operator_snapshot\"} 1\n")
            );
        }
    }
    crate::rig::on(Dialect::Sqlite, body).await;
}

/// Before any pass went well health is a warning too, and no error that would take the engine away.
#[tokio::test]
async fn health_without_numbers_is_a_warning() {
    async fn body(db: TestDb) {
        script(&db, "drop table {workflow_tasks}").await;
        let server = server(&db.read_only);
        let health = json(&server, "/waterline/api/v2/health").await;
        assert_eq!(
            (&health["status"], &health["healthy"]),
            (&json!("warning"), &json!(true))
        );
        assert_eq!(health["checks"].as_array().unwrap().len(), 1);
        assert_eq!(health["checks"][0]["name"], "operator_snapshot");
        assert_eq!(health["operator_metrics"], json!([]));
        assert_eq!(health["categories"]["correctness"]["check_count"], 1);
        assert_eq!(health["categories"]["acceleration"]["check_count"], 0);
        assert_ne!(server.get("/waterline/api/stats").await.status_code(), 200);
    }
    crate::rig::on(Dialect::Sqlite, body).await;
}

/// What the overview names, and how many; each list, or part of the page, holds exactly as many.
async fn listed(server: &TestServer) -> Vec<(String, usize)> {
    let page = server.get("/waterline/").await.text();
    let mut items = Vec::new();
    for item in page.split("<li data-count=\"").skip(1) {
        let count: usize = item.split('"').next().unwrap().parse().unwrap();
        let href = item
            .split("href=\"")
            .nth(1)
            .unwrap()
            .split('"')
            .next()
            .unwrap();
        let href = href.replace("&amp;", "&").replace("&#38;", "&");
        let Some(query) = href.strip_prefix("/waterline/runs") else {
            let part = page.split(&format!("<h2 id=\"{}\">", &href[1..])).nth(1);
            let part = part.expect("a part of the page").split("</section>").next();
            let named = match href.as_str() {
                "#oldest" => "Schedule past its time",
                "#limits" => "<a class=\"mono\"",
                "#workers" => ">silent<",
                // A line for each, with its number.
                "#backlog" | "#health" => {
                    items.push((href, count));
                    continue;
                }
                other => panic!("{other} leads nowhere"),
            };
            assert_eq!(
                part.unwrap_or_default().matches(named).count(),
                count,
                "{href}"
            );
            items.push((href, count));
            continue;
        };
        let list = json(
            server,
            &format!("/waterline/api/flows/all{query}&per_page=100"),
        )
        .await;
        assert_eq!(list["data"].as_array().unwrap().len(), count, "{href}");
        items.push((href, count));
    }
    items
}

async fn summaries_of_unknown_status(db: &Db) -> i64 {
    let mut q = db.statement();
    q.push("select count(*) as n from {workflow_run_summaries} where status_bucket <> 'running' and status not in ('completed', 'failed', 'cancelled', 'terminated')");
    db.fetch(q).await.unwrap().remove(0).int("n").unwrap()
}

#[tokio::test]
async fn nonsense_in_the_engines_settings_is_told_and_the_default_used() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("engine.json");
    fs::write(
        &file,
        r#"{"task_repair": {"scan_limit": "many", "redispatch_after_seconds": "7"}}"#,
    )
    .unwrap();
    let engine = EngineConfig::load(Some(&file)).unwrap();
    let found = engine.nonsense();
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].path, &found[0].used),
        ("task_repair.scan_limit", &json!(25))
    );
    assert_eq!(engine.int("task_repair.redispatch_after_seconds"), 7);
    // And whoever reads the numbers is told.
    crate::rig::on(Dialect::Sqlite, |db| async move {
        let server = TestServer::new(routes::router(App::new(Settings {
            db: Some(db.read_only.clone()),
            engine,
            ..Settings::default()
        })));
        let metrics = json(&server, "/waterline/api/operator-metrics").await;
        assert_eq!(metrics["repair_policy"]["scan_limit"], 25);
        assert_eq!(metrics["repair_policy"]["redispatch_after_seconds"], 7);
        assert_eq!(
            metrics["plimsoll"]["settings_not_understood"],
            json!([{ "setting": "task_repair.scan_limit", "given": "many", "used": 25 }])
        );
    })
    .await;
}

/// One Prometheus scrapes many installations; what is summed or compared is of one.
fn keep_installations_apart(contrib: &Path) {
    let read = |file: &str| fs::read_to_string(contrib.join(file)).unwrap();
    let dashboard: Value = serde_json::from_str(&read("grafana-dashboard.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let mut asked: Vec<String> = panels
        .flat_map(|panel| panel["targets"].as_array().unwrap())
        .map(|target| target["expr"].as_str().unwrap().to_owned())
        .collect();
    let rules = read("prometheus-alerts.yml");
    for rule in rules.split("- alert: ").skip(1) {
        let expr = rule.split("expr:").nth(1).unwrap();
        asked.push(expr.split("for:").next().unwrap().to_owned());
    }
    for asked in asked {
        let by = asked.split(" by (").skip(1);
        let by: Vec<&str> = by.map(|labels| labels.split(')').next().unwrap()).collect();
        let counted = asked.matches("durable_workflow_").count();
        assert_eq!(
            by.len(),
            counted + asked.matches("plimsoll_").count(),
            "{asked}"
        );
        assert!(
            by.iter().all(|labels| labels.contains("instance")),
            "{asked}"
        );
        let named = by.iter().filter(|labels| labels.contains("namespace"));
        assert_eq!(named.count(), counted, "{asked}");
    }
}

/// Every alert has a test in which it fires, and the fleet that works, in which it does not.
fn alerts_are_tested(contrib: &Path) {
    let read = |file: &str| fs::read_to_string(contrib.join(file)).unwrap();
    let (rules, tests) = (
        read("prometheus-alerts.yml"),
        read("prometheus-alerts.test.yml"),
    );
    for rule in rules.split("- alert: ").skip(1) {
        let name = rule.lines().next().unwrap();
        let named = format!("alertname: {name}\n");
        let expected = tests.split(&named).skip(1);
        let (quiet, fires): (Vec<_>, Vec<_>) =
            expected.partition(|test| test.trim_start().starts_with("exp_alerts: []"));
        assert!(quiet.len() > 1 && !fires.is_empty(), "{name} is not tested");
    }
}

/// Every name the shipped dashboard and rules use is one we serve.
#[tokio::test]
async fn shipped_dashboards_and_alerts_use_metrics_that_exist() {
    crate::rig::on(plimsoll::db::Dialect::Sqlite, |db| async move {
        fill(&db).await;
        let server = server(&db.read_only);
        json(&server, "/waterline/api/stats").await;
        // The request's own histogram is there from the second scrape on.
        server.get("/metrics").await;
        let text = server.get("/metrics").await.text();
        // For `promtool check metrics`.
        fs::write(
            Path::new(env!("CARGO_TARGET_TMPDIR")).join("metrics.txt"),
            &text,
        )
        .unwrap();
        let served: BTreeSet<&str> = text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| line.split(['{', ' ']).next())
            .collect();
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("contrib");
        let mut used = BTreeSet::new();
        for file in ["grafana-dashboard.json", "prometheus-alerts.yml"] {
            let text = fs::read_to_string(root.join(file)).unwrap();
            let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            used.extend(
                words
                    .filter(|word| {
                        word.starts_with("durable_workflow_") || word.starts_with("plimsoll_")
                    })
                    .map(str::to_owned),
            );
        }
        assert!(used.len() >= 15, "{used:?}");
        keep_installations_apart(&root);
        alerts_are_tested(&root);
        for name in used {
            assert!(served.contains(name.as_str()), "{name} is not served");
        }
        // Names stay as they are once dashboards use them.
        let names: BTreeSet<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("# TYPE "))
            .collect();
        insta::assert_snapshot!(
            "metric_names",
            names.into_iter().collect::<Vec<_>>().join("\n")
        );
    })
    .await;
}
