//! Several at once: operators, and a transaction that dies in the middle.

use plimsoll::{
    clock::Clock,
    db::DbError,
    demo::{Situation, catalogue, write::write},
    durable::{
        engine_config::EngineConfig,
        repair::{self, ApplyError, Goal, Judged, Kind, apply},
        store::schema,
    },
};

use crate::{
    repair_conformance::by_run,
    rig::{self, TestDb, on_every_database},
    row_diff,
    shop::now,
};

async fn lay_out(db: &TestDb, situation: &Situation) {
    let tables: Vec<_> = schema::tables().iter().map(|table| table.name).collect();
    rig::empty(db, &tables).await;
    write(&db.writable, situation.rows.clone(), |_| ())
        .await
        .expect("the rows are written");
}

/// One situation of each kind of repair, found by asking.
async fn one_of_each_kind(db: &TestDb) -> Vec<(Kind, String, Situation)> {
    let config = EngineConfig::defaults();
    let request = by_run();
    let mut found: Vec<(Kind, String, Situation)> = Vec::new();
    // A long history is no other kind.
    let small = |situation: &Situation| situation.rows.len() < 500;
    for situation in catalogue(now()).into_iter().filter(small) {
        lay_out(db, &situation).await;
        let judged = judged(&config);
        let goal = Goal::Asked(&request);
        if let Ok(plan) = repair::preview(&db.read_only, judged, &situation.run_id, goal).await
            && !found
                .iter()
                .any(|(kind, task_type, _)| (*kind, task_type) == (plan.kind, &plan.task_type))
        {
            found.push((plan.kind, plan.task_type, situation));
        }
    }
    assert!(found.len() >= 10, "{}", found.len());
    found
}

fn judged(config: &EngineConfig) -> Judged<'_> {
    Judged {
        clock: Clock::Frozen(now()),
        config,
    }
}

on_every_database! {
    async fn sixteen_repairers_have_one_effect(db: TestDb) {
        for (kind, _, situation) in one_of_each_kind(&db).await {
            lay_out(&db, &situation).await;
            let before = row_diff::dump(&db.read_only).await;
            let repairers = (0..16).map(|_| {
                let (db, run_id) = (db.writable.clone(), situation.run_id.clone());
                tokio::spawn(async move {
                    let (config, request) = (EngineConfig::defaults(), by_run());
                    repair::repair(&db, judged(&config), &run_id, Goal::Asked(&request), None).await
                })
            });
            let mut done = Vec::new();
            for repairer in repairers.collect::<Vec<_>>() {
                match repairer.await.expect("no panic") {
                    Ok(plan) => done.push(plan),
                    Err(ApplyError::Refused(refusal)) => assert_eq!(refusal.code(), "repair_not_needed", "{kind:?}"),
                    Err(ApplyError::StateChanged | ApplyError::Db(DbError::Busy(_))) => {}
                    Err(error) => panic!("{kind:?}: {error}"),
                }
            }
            assert_eq!(done.len(), 1, "{kind:?}");
            let after = row_diff::dump(&db.read_only).await;
            assert_eq!(row_diff::promised(&done[0].changes), row_diff::diff(&before, &after), "{kind:?}");
        }
    }

    async fn a_process_that_dies_leaves_all_or_nothing(db: TestDb) {
        let (config, request) = (EngineConfig::defaults(), by_run());
        let goal = Goal::Asked(&request);
        for (kind, _, situation) in one_of_each_kind(&db).await {
            lay_out(&db, &situation).await;
            let before = row_diff::dump(&db.read_only).await;
            let plan = repair::preview(&db.read_only, judged(&config), &situation.run_id, goal).await.expect("a plan");
            // After each statement but before the commit.
            for statements in 0..=plan.changes.len() {
                let mut tx = db.writable.write().await.expect("a transaction");
                for change in &plan.changes[..statements] {
                    let q = apply::statement(tx.statement(), change);
                    assert_eq!(tx.execute(q).await.expect("it is written"), 1);
                }
                drop(tx);
                assert_eq!(row_diff::dump(&db.read_only).await, before, "{kind:?} after {statements}");
            }
        }
    }
}
