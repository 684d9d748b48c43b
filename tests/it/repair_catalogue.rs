//! Every situation of the catalogue, repaired where that is called for: afterwards the run can go
//! on, its summary says so, and a second repair is refused.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use plimsoll::{
    clock::Clock,
    db::Db,
    demo::write::write,
    durable::{
        engine_config::EngineConfig,
        projection::{
            Context, Projected, drift, repair_gate,
            task_problem::{self, TaskProblem},
        },
        repair::{self, Action, ApplyError, Goal, Judged, Kind, Mode, RepairPlan, Request},
        store::snapshot::{RunSnapshot, TimelineCache},
        stored::{LivenessState, RepairBlockedReason, Summary as _},
    },
};

use crate::{
    repair_conformance::by_run,
    repair_pass::in_mode,
    rig::{TestDb, on_every_database},
    row_diff,
    shop::{self, now},
};

async fn load(db: &Db, run_id: &str) -> RunSnapshot {
    let mut snapshot = db.snapshot().await.expect("a snapshot");
    let run = RunSnapshot::load(&mut snapshot, run_id, TimelineCache::Presence).await;
    snapshot.end().await;
    run.expect("readable").expect("the run is there")
}

fn projected<'a>(
    run: &'a RunSnapshot,
    now: DateTime<Utc>,
    config: &'a EngineConfig,
) -> Projected<'a> {
    Projected::of(Context {
        snapshot: run,
        now,
        config,
    })
}

/// What the engine's own summary says of a run that was repaired: its flag is of workflow tasks
/// that were, so that a repair of another task leaves no badge behind.
fn badge_after(plan: &RepairPlan) -> Option<TaskProblem> {
    match (plan.kind, plan.task_type.as_str()) {
        (_, "workflow") => Some(TaskProblem::History),
        (
            Kind::DispatchOverdue
            | Kind::LeaseExpired
            | Kind::MissingActivityTask
            | Kind::MissingTimerTask
            | Kind::MissingConditionTimeout
            | Kind::MissingSignalTimeout,
            "activity" | "timer",
        ) => None,
        other => panic!("no such repair: {other:?}"),
    }
}

on_every_database! {
    async fn a_repaired_run_goes_on_and_is_not_repaired_again(db: TestDb) {
        shop::fill(&db).await;
        let config = EngineConfig::defaults();
        let judged = Judged { clock: Clock::Frozen(now()), config: &config };
        let request = by_run();
        let mut kinds = BTreeSet::new();
        for run_id in row_diff::dump(&db.read_only).await["workflow_runs"].keys() {
            let run = load(&db.read_only, run_id).await;
            let name = &format!("{} {run_id}", run.run.workflow_instance_id);
            let gate = repair_gate::now(&projected(&run, now(), &config));
            let before = row_diff::dump_run(&db.read_only, run_id).await;
            let done = repair::repair(&db.writable, judged, run_id, Goal::Asked(&request), None).await;
            let after = row_diff::dump_run(&db.read_only, run_id).await;
            let plan = match done {
                Ok(plan) => plan,
                Err(ApplyError::Refused(refusal)) => {
                    assert_eq!(before, after, "{name}: a refusal writes nothing");
                    match gate {
                        Err(reason) => assert_eq!(refusal.code(), reason.as_str(), "{name}"),
                        Ok(()) => assert!(
                            ["dispatch_backoff", "no_progress", "lease_just_expired", "claim_failed"].contains(&refusal.code()),
                            "{name}: {}", refusal.code()
                        ),
                    }
                    continue;
                }
                Err(error) => panic!("{name}: {error}"),
            };
            assert_eq!(gate, Ok(()), "{name}: the gate and the repair agree");
            assert_eq!(row_diff::promised(&plan.changes), row_diff::diff(&before, &after), "{name}");
            kinds.insert(plan.kind);

            let run = load(&db.read_only, run_id).await;
            let p = projected(&run, now(), &config);
            assert_eq!(repair_gate::now(&p), Err(RepairBlockedReason::RepairNotNeeded), "{name}");
            assert_ne!(p.standing.liveness_state, LivenessState::RepairNeeded, "{name}");
            assert_eq!(p.standing, plan.after, "{name}: as promised");
            assert_eq!(drift::drift(&p), [], "{name}: the summary says what is so");
            let summary = run.summary.as_ref().expect("a summary");
            assert!(repair_gate::of_summary(summary.standing()).is_err(), "{name}: the list agrees");
            let badge = task_problem::badge(summary.standing());
            assert_eq!(badge, badge_after(&plan), "{name}");

            let again = repair::repair(&db.writable, judged, run_id, Goal::Asked(&request), None).await;
            assert!(matches!(&again, Err(ApplyError::Refused(refusal)) if refusal.code() == "repair_not_needed"), "{name}: {again:?}");
            assert_eq!(row_diff::dump_run(&db.read_only, run_id).await, after, "{name}: again");
        }
        assert!(kinds.len() >= 10, "the catalogue shows most kinds of repair: {kinds:?}");
    }

    async fn a_preview_promises_nothing_that_only_the_engine_does(db: TestDb) {
        let situation = shop::situation("dispatch-overdue", now());
        write(&db.writable, situation.rows.clone(), |_| ()).await.expect("the rows are written");
        let request = by_run();
        for (mode, promise, publishing) in [("poll", "Offer workflow task", false), ("queue", "without publishing it", true)] {
            let config = in_mode(&serde_json::json!({}), mode);
            let judged = Judged { clock: Clock::Frozen(now()), config: &config };
            let plan = repair::preview(&db.read_only, judged, &situation.run_id, Goal::Asked(&request)).await.expect("a plan");
            assert!(plan.words.will[0].words.contains(promise), "{mode}: {:?}", plan.words);
            let needs = plan.words.needs.iter().any(|need| need.contains("must publish the task"));
            assert_eq!(needs, publishing, "{mode}: {:?}", plan.words);
        }
    }

    async fn a_nudge_writes_two_columns_and_no_more(db: TestDb) {
        let situations = shop::fill(&db).await;
        let config = EngineConfig::defaults();
        let judged = Judged { clock: Clock::Frozen(now()), config: &config };
        let request = Request { mode: Mode::Nudge, ..by_run() };
        let mut nudged = 0;
        for situation in &situations {
            let goal = Goal::Asked(&request);
            let before = row_diff::dump_run(&db.read_only, &situation.run_id).await;
            match repair::repair(&db.writable, judged, &situation.run_id, goal, None).await {
                Ok(plan) => {
                    nudged += 1;
                    assert!(plan.kind >= Kind::MissingActivityTask, "{}", situation.name);
                    let change = &plan.changes[..];
                    assert_eq!(change.len(), 1, "{}", situation.name);
                    assert_eq!((change[0].table, change[0].action), ("workflow_run_summaries", Action::Update));
                    let columns = change[0].cells.iter();
                    assert!(columns.clone().all(|cell| ["liveness_state", "next_task_id"].contains(&cell.column)));
                    let after = row_diff::dump_run(&db.read_only, &situation.run_id).await;
                    assert_eq!(row_diff::promised(change), row_diff::diff(&before, &after));
                }
                Err(ApplyError::Refused(_)) => {
                    assert_eq!(before, row_diff::dump_run(&db.read_only, &situation.run_id).await, "{}", situation.name);
                }
                Err(error) => panic!("{}: {error}", situation.name),
            }
        }
        assert!(nudged > 0, "some summary is stale");
    }

    async fn what_was_not_shown_is_not_done(db: TestDb) {
        let situations = shop::fill(&db).await;
        let config = EngineConfig::defaults();
        let judged = Judged { clock: Clock::Frozen(now()), config: &config };
        for mode in [Mode::Direct, Mode::Nudge] {
            let request = Request { mode, ..by_run() };
            let goal = Goal::Asked(&request);
            let mut digests = BTreeSet::new();
            for situation in &situations {
                let (name, run_id) = (situation.name, &situation.run_id);
                let Ok(shown) = repair::preview(&db.read_only, judged, run_id, goal).await else {
                    continue;
                };
                assert!(digests.insert(shown.digest.clone()), "{name} {mode:?}: no two runs have one plan");
                // Something else happens in between: a signal is recorded, say.
                let mut tx = db.writable.write().await.unwrap();
                let mut q = tx.statement();
                q.push("update {workflow_runs} set last_command_sequence = last_command_sequence + 1 where id = ").bind(run_id);
                tx.execute(q).await.unwrap();
                tx.commit().await.unwrap();
                let before = row_diff::dump_run(&db.read_only, &situation.run_id).await;
                let done = repair::repair(&db.writable, judged, run_id, goal, Some(&shown.digest)).await;
                assert!(matches!(done, Err(ApplyError::StateChanged)), "{name} {mode:?}: {done:?}");
                assert_eq!(before, row_diff::dump_run(&db.read_only, &situation.run_id).await, "{name} {mode:?}");
                // The same state again later is the same plan.
                let later = Judged { clock: Clock::Frozen(now() + chrono::TimeDelta::milliseconds(700)), ..judged };
                let one = repair::preview(&db.read_only, judged, run_id, goal).await.unwrap();
                let two = repair::preview(&db.read_only, later, run_id, goal).await.unwrap();
                assert_eq!(one.digest, two.digest, "{name} {mode:?}");
            }
            assert!(!digests.is_empty(), "{mode:?}");
        }
    }
}
