//! What the statements of a metrics pass read from end to end, and why they must. SQLite alone: its
//! plans follow from the schema, where those of the servers follow from how full the tables are.

use std::collections::BTreeMap;

use plimsoll::{
    db::{Dialect, recorded},
    durable::{
        engine_config::EngineConfig,
        store::metrics::{self, Sections},
    },
};

use crate::{
    list_plans::explain,
    rig::{self, TestDb},
    shop::{fill_short, now},
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
        let mut whole: BTreeMap<String, usize> = BTreeMap::new();
        for statement in sent {
            let plan = explain(&db.read_only, &statement).await;
            for table in plan.lines().filter_map(|line| line.strip_prefix("SCAN ")) {
                if !table.contains(" USING ") && table != "CONSTANT ROW" {
                    *whole.entry(table.to_owned()).or_default() += 1;
                }
            }
        }
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
