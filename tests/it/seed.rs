//! The load generator on every database: the rows arrive whole, and never among real ones by
//! accident.

use plimsoll::{
    db::{Db, Dialect, Settings},
    demo::seed::{self, Plan, Projections, SeedError, Shape},
    durable::{
        engine_config::EngineConfig,
        projection::{Context, Projected, drift, retries},
        store::{
            schema,
            snapshot::{RunSnapshot, TimelineCache},
        },
    },
};

use crate::rig::{TestDb, on_every_database};

fn plan(seed: u64) -> Plan {
    Plan {
        runs: 200,
        events_per_run: 8,
        shape: Shape::Busy,
        seed,
        clock: "2026-06-01T12:00:00Z".parse().unwrap(),
        projections: Projections::All,
    }
}

async fn number(db: &Db, sql: &'static str) -> i64 {
    let mut q = db.statement();
    q.push(sql);
    db.fetch(q).await.unwrap()[0].int("n").unwrap()
}

on_every_database! {
    async fn two_hundred_runs_arrive_whole(db: TestDb) {
        let mut heard = 0;
        let loaded = seed::load(&db.writable, plan(42), |runs| heard = runs).await.unwrap();
        assert_eq!((loaded.runs, heard), (200, 200));
        let mut rows = 0;
        for table in schema::tables() {
            let mut q = db.read_only.statement();
            q.push("select count(*) as n from {").push(table.name).push("}");
            rows += db.read_only.fetch(q).await.unwrap()[0].int("n").unwrap();
        }
        assert_eq!(u64::try_from(rows).unwrap(), loaded.rows);
        for (what, sql) in [
            ("events without a run", "select count(*) as n from {workflow_history_events} e left join {workflow_runs} r on r.id = e.workflow_run_id where r.id is null"),
            ("runs without a summary", "select count(*) as n from {workflow_runs} r left join {workflow_run_summaries} s on s.id = r.id where s.id is null"),
            ("histories with gaps", "select count(*) as n from (select workflow_run_id from {workflow_history_events} group by workflow_run_id having max(sequence) <> count(*)) as gaps"),
            ("summaries that miscount", "select count(*) as n from {workflow_run_summaries} s where s.history_event_count <> (select count(*) from {workflow_history_events} e where e.workflow_run_id = s.id)"),
            ("instances with a foreign current run", "select count(*) as n from {workflow_instances} i join {workflow_runs} r on r.id = i.current_run_id where r.workflow_instance_id <> i.id"),
        ] {
            assert_eq!(number(&db.read_only, sql).await, 0, "{what}");
        }
    }

    async fn seeding_again_is_allowed_and_real_runs_are_left_alone(db: TestDb) {
        seed::load(&db.writable, plan(1), |_| ()).await.unwrap();
        seed::refuse_foreign_runs(&db.writable).await.unwrap();
        seed::load(&db.writable, plan(2), |_| ()).await.unwrap();
        assert_eq!(number(&db.read_only, "select count(*) as n from {workflow_runs}").await, 400);

        let mut tx = db.writable.write().await.unwrap();
        tx.script("insert into {workflow_runs} (id, workflow_instance_id, run_number, workflow_class, workflow_type, status) values ('real', 'i', 1, 'c', 't', 'waiting')")
            .await
            .unwrap();
        tx.commit().await.unwrap();
        let refused = seed::refuse_foreign_runs(&db.writable).await;
        assert!(matches!(refused, Err(SeedError::Refused(_))), "{refused:?}");
    }

    async fn a_long_run_shows_every_activity_with_its_tries_and_what_it_waits_for(db: TestDb) {
        let plan = Plan {
            runs: 1,
            events_per_run: 500,
            shape: Shape::Long {
                payload_bytes: 1_800,
            },
            ..plan(42)
        };
        let now = plan.clock;
        seed::load(&db.writable, plan, |_| ()).await.unwrap();
        let mut q = db.read_only.statement();
        q.push("select id from {workflow_runs}");
        let run = db.read_only.fetch(q).await.unwrap()[0].text("id").unwrap();

        let mut snapshot = db.read_only.snapshot().await.unwrap();
        let run = RunSnapshot::load(&mut snapshot, &run, TimelineCache::Whole)
            .await
            .unwrap()
            .unwrap();
        let config = EngineConfig::defaults();
        let projected = Projected::of(Context {
            snapshot: &run,
            now,
            config: &config,
        });
        assert_eq!(drift::drift(&projected), []);
        assert_eq!(run.events.len(), 500);
        let (last, done) = projected.activities.split_last().unwrap();
        assert!(done.iter().all(|activity| activity.status == "completed".into()));
        let twice = done.iter().filter(|activity| activity.attempts.len() == 2);
        assert_eq!(twice.count(), done.len().div_ceil(2));
        assert_eq!((last.status.as_str(), last.attempts.len()), ("pending", 1));
        let retry = retries::retry_state(projected.cx, last).unwrap();
        assert!(retry.waiting && retry.ahead[0].at > Some(now), "{retry:?}");
        let open: Vec<_> = projected.waits.iter().filter(|wait| wait.is_open()).collect();
        assert_eq!(open.len(), 1);
        assert!(projected.tasks.iter().all(|task| !task.synthetic));
        assert!(projected.failures.is_empty());
    }
}

#[tokio::test]
async fn the_command_makes_a_file_of_its_own_and_explains_what_it_will_not_do() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("new.sqlite").display());
    let args = plimsoll::cli::seed::SeedArgs {
        database_url: url.clone(),
        table_prefix: String::new(),
        runs: 20,
        events_per_run: 5,
        shape: plimsoll::cli::seed::ShapeArg::Busy,
        payload_bytes: 1_800,
        seed: 42,
        create: true,
        clock: Some("2026-06-01T12:00:00Z".parse().unwrap()),
        projections: plimsoll::cli::seed::ProjectionsArg::All,
        yes: false,
    };
    plimsoll::cli::seed::run(args.clone()).await.unwrap();
    let db = Db::connect(&Settings::new(&url)).await.unwrap();
    assert_eq!(
        number(&db, "select count(*) as n from {workflow_runs}").await,
        20
    );
    let indexes =
        "select count(*) as n from sqlite_master where type = 'index' and sql is not null";
    let wanted = schema::scripts(Dialect::Sqlite).concat();
    let wanted = wanted
        .lines()
        .filter(|line| line.contains(" index if not exists "));
    assert_eq!(
        usize::try_from(number(&db, indexes).await),
        Ok(wanted.count())
    );
    db.close().await;

    let again = plimsoll::cli::seed::run(args.clone()).await.unwrap_err();
    assert!(
        again
            .to_string()
            .starts_with("These very runs are here already")
    );

    let elsewhere = plimsoll::cli::seed::SeedArgs {
        table_prefix: "app_".into(),
        create: false,
        ..args
    };
    let refused = plimsoll::cli::seed::run(elsewhere)
        .await
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("not a Durable Workflow v2 database"),
        "{refused}"
    );
    assert!(refused.ends_with("Say --create to make them."), "{refused}");
}
