//! What the statements of a metrics pass read from end to end, and why they must. On SQLite: its
//! plans follow from the schema, where those of the servers follow from how full the tables are.

use std::collections::BTreeMap;

use plimsoll::{
    db::{Db, Dialect, Statement, recorded},
    demo::write::write,
    durable::{
        engine_config::EngineConfig,
        store::metrics::{self, Scope, Sections, rows, sweep},
    },
};
use serde_json::Value;

use crate::{
    list_plans::{explain, script},
    queue_visibility,
    rig::{self, TestDb},
    shop::{fill_short, now, situation},
};

/// How often a pass reads a table whole, by the name it has in the statement, and why: no index of
/// the engine's schema knows the answer.
const READ_WHOLE: &[(&str, usize)] = &[
    // How many attempts failed.
    ("activity_attempts", 1),
    // The first thousand of them, twice: fewer attempts than the most of those are no record.
    ("activity_executions", 2),
    // `workflow_runs`: which have not begun.
    ("r", 1),
    // Whether the engine's server has a table of workers.
    ("sqlite_master", 1),
    // The largest of everything, the week and the rare states, in one.
    ("workflow_run_summaries", 1),
    // Made or dispatched in the last minute.
    ("workflow_tasks", 1),
    // A handful: those that fell silent.
    ("workflow_worker_compatibility_heartbeats", 1),
    // `activity_executions`, by status.
    ("x", 1),
];
/// Of one namespace, an index on it leads to its runs and their summaries.
const OF_A_NAMESPACE: [&str; 2] = ["r", "workflow_run_summaries"];

#[tokio::test]
async fn a_pass_reads_in_full_only_what_no_index_serves() {
    rig::on(Dialect::Sqlite, pass).await;
}

async fn pass(db: TestDb) {
    fill_short(&db).await;
    let config = EngineConfig::defaults();
    for namespace in [None, Some("production")] {
        let mut snapshot = db.read_only.snapshot().await.unwrap();
        let mut sections = Sections::default();
        let count = metrics::count(&mut snapshot, now(), &config, namespace, &mut sections);
        let (counted, sent) = Box::pin(recorded(count)).await;
        counted.expect("a pass");
        snapshot.end().await;
        let whole = read_whole(&db.read_only, sent).await;
        let whole: Vec<_> = whole
            .iter()
            .map(|(table, n)| (table.as_str(), *n))
            .collect();
        let mut expected = READ_WHOLE.to_vec();
        if namespace.is_some() {
            expected.retain(|(table, _)| !OF_A_NAMESPACE.contains(table));
        }
        assert_eq!(whole, expected, "{namespace:?}");
    }
}

/// Tables these statements read from end to end, and how often.
async fn read_whole(db: &Db, sent: Vec<Statement>) -> BTreeMap<String, usize> {
    let mut whole: BTreeMap<String, usize> = BTreeMap::new();
    for table in scanned(db, sent).await {
        if !table.contains(" USING ") {
            *whole.entry(table).or_default() += 1;
        }
    }
    whole
}

/// What they go through without a key to begin with, be it along an index.
async fn scanned(db: &Db, sent: Vec<Statement>) -> Vec<String> {
    let mut scanned = Vec::new();
    for statement in sent {
        let plan = explain(db, &statement).await;
        let lines = plan.lines().filter_map(|line| line.strip_prefix("SCAN "));
        scanned.extend(
            lines
                .filter(|table| *table != "CONSTANT ROW")
                .map(str::to_owned),
        );
    }
    scanned
}

/// However many runs there are, a step of a walk is as long as its bounds say: so is the last, which
/// has no end to look up to. Of heartbeats it reads the newest, up to a limit.
#[tokio::test]
async fn a_step_of_a_walk_reads_its_own_runs_alone() {
    rig::on(Dialect::Sqlite, |db| async move {
        fill_short(&db).await;
        let config = EngineConfig::defaults();
        for namespace in [None, Some("production")] {
            let scope = Scope::new(now(), &config, namespace);
            let mut snapshot = db.read_only.snapshot().await.unwrap();
            let step = rows::row_stretch(&mut snapshot, &scope, Some("01"));
            let (counted, mut sent) = Box::pin(recorded(step)).await;
            counted.expect("rows");
            let step = sweep::stretch(&mut snapshot, &scope, Some("01"));
            let (read, histories) = Box::pin(recorded(step)).await;
            assert!(read.expect("histories").runs.len() > 10);
            snapshot.end().await;
            sent.extend(histories);
            assert!(sent.len() > 20, "{}", sent.len());
            let scanned = scanned(&db.read_only, sent).await;
            let heartbeats = "workflow_worker_compatibility_heartbeats USING INDEX \
                              workflow_worker_compatibility_heartbeats_expires_at_index";
            assert_eq!(scanned, [heartbeats], "{namespace:?}");
        }
    })
    .await;
}

/// Before PostgreSQL has statistics, any index is as good to it as another: the one on the run leads
/// to a whole history, for each of its events.
mod an_event_is_looked_up_by_its_id {
    use super::*;

    #[tokio::test]
    async fn postgres() {
        rig::on(Dialect::Postgres, |db| async move {
            let run = situation("completed", now());
            write(&db.writable, run.rows, |_| ()).await.unwrap();
            let config = EngineConfig::defaults();
            let scope = Scope::new(now(), &config, None);
            let mut snapshot = db.read_only.snapshot().await.unwrap();
            let step = rows::row_stretch(&mut snapshot, &scope, None);
            let (counted, sent) = Box::pin(recorded(step)).await;
            let counted = counted.expect("rows");
            assert!(counted.events.events > 0 && counted.timeline.rows > 0);
            snapshot.end().await;
            let mut by = Vec::new();
            for statement in sent {
                let plan = explain(&db.read_only, &statement).await;
                looked_up(&serde_json::from_str(&plan).unwrap(), &mut by);
            }
            by.sort();
            assert_eq!(
                by,
                [
                    (
                        "e".into(),
                        "((id)::text = (p.history_event_id)::text)".into()
                    ),
                    (
                        "t".into(),
                        "((history_event_id)::text = (p.id)::text)".into()
                    ),
                ]
            );
        })
        .await;
    }

    /// The names that events and entries have in subqueries, with what they are looked up by.
    fn looked_up(plan: &Value, by: &mut Vec<(String, String)>) {
        match plan {
            Value::Array(nodes) => nodes.iter().for_each(|node| looked_up(node, by)),
            Value::Object(node) => {
                if let Some(name @ ("e" | "t")) = plan["Alias"].as_str() {
                    let condition = plan["Index Cond"].as_str().unwrap_or_default();
                    by.push((name.to_owned(), condition.to_owned()));
                }
                node.values().for_each(|node| looked_up(node, by));
            }
            _ => {}
        }
    }
}

/// Queues are counted along the index on their namespace.
#[tokio::test]
async fn queues_are_counted_along_their_namespace() {
    rig::on(Dialect::Sqlite, |db| async move {
        fill_short(&db).await;
        script(&db, queue_visibility::TABLES).await;
        let config = EngineConfig::defaults();
        let scope = Scope::new(now(), &config, Some("production"));
        let mut snapshot = db.read_only.snapshot().await.unwrap();
        let queues = metrics::queues(&mut snapshot, &scope);
        let (counted, sent) = Box::pin(recorded(queues)).await;
        assert!(counted.expect("queues").registered.is_some());
        snapshot.end().await;
        assert_eq!(sent.len(), 8);
        let mut scanned = scanned(&db.read_only, sent).await;
        // What a subquery found.
        scanned.retain(|table| table != "ranked" && !table.starts_with("(subquery"));
        assert_eq!(
            scanned,
            [
                // Which tables there are.
                "sqlite_master",
                // A row per worker and per decision, in tables whose indexes are the server's own.
                "workflow_worker_registrations",
                "workflow_worker_build_id_rollouts",
            ]
        );
    })
    .await;
}
