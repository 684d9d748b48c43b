//! States that look like one a repair heals and are not: code may be running, a task may be there,
//! or what the repair would rest on cannot be read. Each is one change away from a repair.

use chrono::{DateTime, TimeDelta, Utc};
use plimsoll::{
    clock::Clock,
    db::Statement,
    demo::{Situation, rows::InsertRow, write::write},
    durable::{
        engine_config::EngineConfig,
        repair::{self, ApplyError, Goal, Judged, Kind, Refusal, RepairPlan, RowChange, apply},
        store::schema,
        stored::Cell,
    },
};

use crate::{
    repair_conformance::by_run,
    rig::{self, TestDb, on_every_database},
    row_diff,
    shop::{self, now},
};

/// The situation, laid out in an empty database.
async fn given(db: &TestDb, name: &str) -> Situation {
    let situation = shop::situation(name, now());
    write(&db.writable, situation.rows.clone(), |_| ())
        .await
        .expect("the rows are written");
    situation
}

async fn change(db: &TestDb, what: impl FnOnce(&mut Statement)) {
    let mut tx = db.writable.write().await.expect("a transaction");
    let mut q = tx.statement();
    what(&mut q);
    assert!(
        tx.execute(q).await.expect("it is written") > 0,
        "something is changed"
    );
    tx.commit().await.expect("a commit");
}

async fn add(db: &TestDb, row: InsertRow) {
    write(&db.writable, vec![row], |_| ())
        .await
        .expect("the row is written");
}

fn attempt(situation: &Situation, execution: &str, status: &str) -> InsertRow {
    InsertRow::new("activity_attempts")
        .set("id", "01M7ATTEMPT000000000000000")
        .set("workflow_run_id", situation.run_id.as_str())
        .set("activity_execution_id", execution)
        .set("attempt_number", 3)
        .set("status", status)
        .time("started_at", Some(now() - TimeDelta::minutes(5)))
        .time("lease_expires_at", Some(now() + TimeDelta::minutes(5)))
}

/// The activity of the one repair that this situation calls for.
async fn activity_of(db: &TestDb, situation: &Situation) -> String {
    let plan = asked(db, situation)
        .await
        .expect("it is repairable as it is");
    let task = plan
        .changes
        .iter()
        .find(|change| change.table == "workflow_tasks")
        .expect("a task");
    let Some(Cell::Json(payload)) = task.cell("payload") else {
        panic!("a payload: {task:?}");
    };
    payload["activity_execution_id"]
        .as_str()
        .expect("an id")
        .to_owned()
}

async fn asked(db: &TestDb, situation: &Situation) -> Result<RepairPlan, ApplyError> {
    let (config, request) = (EngineConfig::defaults(), by_run());
    let judged = Judged {
        clock: Clock::Frozen(now()),
        config: &config,
    };
    repair::preview(
        &db.read_only,
        judged,
        &situation.run_id,
        Goal::Asked(&request),
    )
    .await
}

/// It is refused, by an operator's repair and by a pass, and nothing is written.
async fn refused(db: &TestDb, situation: &Situation) -> Refusal {
    let (config, request) = (EngineConfig::defaults(), by_run());
    let judged = Judged {
        clock: Clock::Frozen(now()),
        config: &config,
    };
    let before = row_diff::dump(&db.read_only).await;
    let done = repair::repair(
        &db.writable,
        judged,
        &situation.run_id,
        Goal::MissingTask,
        None,
    )
    .await;
    assert!(matches!(done, Err(ApplyError::Refused(_))), "{done:?}");
    let done = repair::repair(
        &db.writable,
        judged,
        &situation.run_id,
        Goal::Asked(&request),
        None,
    )
    .await;
    let Err(ApplyError::Refused(refusal)) = done else {
        panic!("{done:?}");
    };
    assert_eq!(before, row_diff::dump(&db.read_only).await);
    refusal
}

/// The same of the one task that a worker holds.
async fn refused_of_task(db: &TestDb, situation: &Situation) -> Refusal {
    let config = EngineConfig::defaults();
    let judged = Judged {
        clock: Clock::Frozen(now()),
        config: &config,
    };
    let dump = row_diff::dump_run(&db.read_only, &situation.run_id).await;
    let mut tasks = dump["workflow_tasks"].iter();
    let (task, _) = tasks
        .find(|(_, row)| row["status"] == "leased")
        .expect("a task that is leased");
    let run = &situation.run_id;
    let done = repair::repair(&db.writable, judged, run, Goal::Task(task), None).await;
    let Err(ApplyError::Refused(by_pass)) = done else {
        panic!("{done:?}");
    };
    let refusal = refused(db, situation).await;
    assert_eq!(by_pass, refusal);
    refusal
}

on_every_database! {
    async fn a_task_whose_status_we_do_not_know_may_be_at_work(db: TestDb) {
        let situation = given(&db, "signal-task-lost").await;
        asked(&db, &situation).await.expect("it is repairable as it is");
        change(&db, |q| {
            q.push("update {workflow_tasks} set status = 'suspended' where workflow_run_id = ").bind(&situation.run_id);
        }).await;
        assert_eq!(refused(&db, &situation).await.code(), "open_task");
    }

    async fn no_task_is_made_beside_one_of_another_kind(db: TestDb) {
        let situation = given(&db, "update-task-lost").await;
        asked(&db, &situation).await.expect("it is repairable as it is");
        let timer = InsertRow::new("workflow_tasks")
            .set("id", "01m7timertask0000000000000")
            .set("workflow_run_id", situation.run_id.as_str())
            .set("task_type", "timer")
            .set("status", "ready")
            .set("payload", "[]")
            .time("available_at", Some(now() + TimeDelta::hours(1)))
            .stamps(now(), now());
        add(&db, timer).await;
        assert_eq!(refused(&db, &situation).await.code(), "open_task");
    }

    async fn an_activity_with_a_try_that_is_not_over_is_left_alone(db: TestDb) {
        let situation = given(&db, "activity-task-and-execution-lost").await;
        let activity = activity_of(&db, &situation).await;
        add(&db, attempt(&situation, &activity, "running")).await;
        for status in ["running", "completed", "cancelled", "suspended"] {
            change(&db, |q| {
                q.push("update {activity_attempts} set status = ").bind(status);
            }).await;
            let refusal = refused(&db, &situation).await;
            // A word we do not know is unreadable before it is anything else.
            assert!(["attempt_not_over", "unreadable_rows"].contains(&refusal.code()), "{status}: {refusal:?}");
        }
        change(&db, |q| {
            q.push("update {activity_attempts} set status = 'failed'");
        }).await;
        let plan = asked(&db, &situation).await.expect("a try that failed stands in no way");
        let count = |table| {
            let row = plan.changes.iter().find(|change| change.table == table);
            row.and_then(|row| row.cell("attempt_count").cloned())
        };
        assert_eq!(count("workflow_tasks"), Some(Cell::Int(3)), "its number is spent");
        assert_eq!(count("activity_executions"), Some(Cell::Int(3)));
    }

    async fn a_live_try_outweighs_the_expired_lease_of_its_task(db: TestDb) {
        let situation = given(&db, "lease-expired-activity").await;
        asked(&db, &situation).await.expect("it is repairable as it is");
        change(&db, |q| {
            q.push("update {activity_attempts} set lease_expires_at = ").bind_time(now() + TimeDelta::seconds(30));
        }).await;
        assert_eq!(refused(&db, &situation).await.code(), "attempt_not_over");
    }

    async fn a_try_whose_lease_ran_out_only_just_now_may_be_at_work(db: TestDb) {
        let situation = given(&db, "lease-expired-activity").await;
        change(&db, |q| {
            q.push("update {activity_attempts} set lease_expires_at = ").bind_time(now() - TimeDelta::seconds(1));
        }).await;
        assert_eq!(refused(&db, &situation).await.code(), "attempt_not_over");
        change(&db, |q| {
            q.push("update {activity_attempts} set lease_expires_at = ").bind_time(now() - TimeDelta::seconds(3));
        }).await;
        asked(&db, &situation).await.expect("it is over");
    }

    async fn the_try_of_another_activity_is_not_closed(db: TestDb) {
        let situation = given(&db, "lease-expired-activity").await;
        add(&db, attempt(&situation, "01m7anotheractivity0000000", "running")).await;
        asked(&db, &situation).await.expect("it is repairable as it is");
        change(&db, |q| {
            q.push("update {activity_executions} set current_attempt_id = '01M7ATTEMPT000000000000000'");
        }).await;
        let refusal = refused(&db, &situation).await;
        assert!(refusal.words().contains("current_attempt_id"), "{}", refusal.words());
    }

    async fn a_live_try_outweighs_a_row_of_the_activity_that_is_gone_or_knows_of_none(db: TestDb) {
        let situation = given(&db, "lease-expired-activity").await;
        change(&db, |q| {
            q.push("update {activity_attempts} set lease_expires_at = ").bind_time(now() + TimeDelta::seconds(30));
        }).await;
        for row in [
            "update {activity_executions} set status = 'pending', attempt_count = 0, current_attempt_id = null, started_at = null",
            "delete from {activity_executions}",
        ] {
            change(&db, |q| {
                q.push(row);
            }).await;
            assert_eq!(refused_of_task(&db, &situation).await.code(), "attempt_not_over", "{row}");
        }
    }

    async fn an_activity_whose_row_is_gone_is_not_offered_again(db: TestDb) {
        let situation = given(&db, "lease-expired-activity").await;
        change(&db, |q| {
            q.push("delete from {activity_executions}");
        }).await;
        let refusal = refused_of_task(&db, &situation).await;
        assert_eq!(refusal.code(), "not_restorable");
        assert!(refusal.words().contains("the activity of task"), "{}", refusal.words());
    }

    async fn a_try_that_came_to_something_is_not_made_again(db: TestDb) {
        let situation = given(&db, "lease-expired-activity").await;
        for status in ["completed", "cancelled"] {
            change(&db, |q| {
                q.push("update {activity_attempts} set status = ").bind(status);
            }).await;
            assert_eq!(refused_of_task(&db, &situation).await.code(), "attempt_not_over", "{status}");
        }
        for status in ["failed", "expired", "running"] {
            change(&db, |q| {
                q.push("update {activity_attempts} set status = ").bind(status);
            }).await;
            asked(&db, &situation).await.expect(status);
        }
        // Nor where the row of the activity knows of no try.
        change(&db, |q| {
            q.push("update {activity_executions} set status = 'pending', attempt_count = 0, current_attempt_id = null, started_at = null");
        }).await;
        assert_eq!(refused_of_task(&db, &situation).await.code(), "attempt_not_over");
    }

    /// The worker's heartbeat comes after the rows were read and before they are written.
    async fn a_try_whose_lease_is_renewed_meanwhile_is_not_closed(db: TestDb) {
        let situation = given(&db, "lease-expired-activity").await;
        let of_attempt = async || {
            let plan = asked(&db, &situation).await.expect("it is repairable");
            let mut changes = plan.changes.into_iter();
            changes.find(|change| change.table == "activity_attempts").expect("a try is closed")
        };
        let closes = async |change: &RowChange| {
            let mut tx = db.writable.write().await.expect("a transaction");
            let q = apply::statement(tx.statement(), change);
            tx.execute(q).await.expect("an answer")
        };
        let leased_until = async |at: Option<DateTime<Utc>>| {
            change(&db, |q| {
                q.push("update {activity_attempts} set lease_expires_at = ");
                match at {
                    Some(at) => q.bind_time(at),
                    None => q.push("null"),
                };
            }).await;
        };
        for seen in [Some(now() - TimeDelta::minutes(1)), None] {
            leased_until(seen).await;
            let attempt = of_attempt().await;
            assert_eq!(closes(&attempt).await, 1, "{seen:?}: as it was seen");
            leased_until(Some(now() + TimeDelta::minutes(5))).await;
            assert_eq!(closes(&attempt).await, 0, "{seen:?}: its worker is at work");
        }
    }

    async fn a_run_in_a_status_we_do_not_know_may_be_closed(db: TestDb) {
        for name in ["signal-task-lost", "dispatch-overdue", "lease-expired-activity"] {
            let tables: Vec<_> = schema::tables().iter().map(|table| table.name).collect();
            rig::empty(&db, &tables).await;
            let situation = given(&db, name).await;
            asked(&db, &situation).await.expect("it is repairable as it is");
            change(&db, |q| {
                q.push("update {workflow_runs} set status = 'hibernating' where id = ").bind(&situation.run_id);
            }).await;
            let refusal = refused(&db, &situation).await;
            assert_eq!(refusal.code(), "unreadable_rows", "{name}");
            assert!(refusal.words().contains("status"), "{}", refusal.words());
        }
    }

    async fn a_timeout_whose_timer_is_over_gets_no_task(db: TestDb) {
        for name in ["signal-timeout-task-lost", "waiting-condition-with-timeout"] {
            let tables: Vec<_> = schema::tables().iter().map(|table| table.name).collect();
            rig::empty(&db, &tables).await;
            let situation = given(&db, name).await;
            change(&db, |q| {
                q.push("delete from {workflow_tasks}");
            }).await;
            let plan = asked(&db, &situation).await.expect("it is repairable as it is");
            assert!([Kind::MissingSignalTimeout, Kind::MissingConditionTimeout].contains(&plan.kind), "{name}: {plan:?}");
            for status in ["fired", "cancelled"] {
                change(&db, |q| {
                    q.push("update {workflow_run_timers} set status = ").bind(status);
                }).await;
                assert_eq!(refused(&db, &situation).await.code(), "not_restorable", "{name} {status}");
            }
        }
    }

    async fn a_run_past_its_deadline_is_not_closed_by_what_cannot_be_read(db: TestDb) {
        let situation = given(&db, "run-deadline-passed").await;
        let config = EngineConfig::defaults();
        let judged = Judged { clock: Clock::Frozen(now()), config: &config };
        let past_deadline = async || repair::preview(&db.read_only, judged, &situation.run_id, Goal::Deadline).await;
        past_deadline().await.expect("it is repairable as it is");
        for unreadable in [
            "update {workflow_tasks} set status = 'suspended', task_type = 'timer'",
            "update {workflow_runs} set status = 'hibernating'",
        ] {
            change(&db, |q| {
                q.push(unreadable);
            }).await;
            let planned = past_deadline().await;
            let Err(ApplyError::Refused(refusal)) = planned else {
                panic!("{unreadable}: {planned:?}");
            };
            assert_eq!(refusal.code(), "unreadable_rows", "{unreadable}");
            change(&db, |q| {
                q.push("update {workflow_tasks} set status = 'completed'");
            }).await;
        }
    }

    async fn nothing_is_put_back_from_a_history_that_cannot_be_read(db: TestDb) {
        let situation = given(&db, "activity-task-lost").await;
        let activity = activity_of(&db, &situation).await;
        add(&db, attempt(&situation, &activity, "failed")).await;
        asked(&db, &situation).await.expect("it is repairable as it is");
        change(&db, |q| {
            q.push("update {workflow_history_events} set event_type = 'ActivityResumed' where sequence = 2 and workflow_run_id = ")
                .bind(&situation.run_id);
        }).await;
        let refusal = refused(&db, &situation).await;
        assert_eq!(refusal.code(), "unreadable_rows");
        assert!(refusal.words().contains("event_type"), "{}", refusal.words());
    }

    async fn a_gap_in_the_history_may_hold_what_is_missing(db: TestDb) {
        let situation = given(&db, "activity-task-lost").await;
        asked(&db, &situation).await.expect("it is repairable as it is");
        change(&db, |q| {
            q.push("update {workflow_runs} set last_history_sequence = last_history_sequence + 1 where id = ")
                .bind(&situation.run_id);
        }).await;
        assert_eq!(refused(&db, &situation).await.code(), "unreadable_rows");
    }

    async fn a_task_a_worker_was_refused_is_left_to_the_engine(db: TestDb) {
        let situation = given(&db, "dispatch-failed").await;
        asked(&db, &situation).await.expect("it is repairable as it is");
        change(&db, |q| {
            q.push("update {workflow_tasks} set last_claim_error = 'no such backend', last_claim_failed_at = ")
                .bind_time(now() - TimeDelta::minutes(1))
                .push(" where status = 'ready'");
        }).await;
        assert_eq!(refused(&db, &situation).await.code(), "claim_failed");
    }

    async fn a_replay_block_is_not_cleared_beside_a_task_the_workflow_goes_on_with(db: TestDb) {
        let situation = given(&db, "replay-blocked-history-shape").await;
        let plan = asked(&db, &situation).await.expect("it is repairable as it is");
        assert_eq!(plan.kind, Kind::ReplayBlocked);
        let other = InsertRow::new("workflow_tasks")
            .set("id", "01m7anothertask00000000000")
            .set("workflow_run_id", situation.run_id.as_str())
            .set("task_type", "workflow")
            .set("status", "leased")
            .set("payload", "{}")
            .set("lease_owner", "a-worker")
            .time("lease_expires_at", Some(now() + TimeDelta::minutes(5)))
            .time("available_at", Some(now() - TimeDelta::seconds(1)))
            .time("last_dispatched_at", Some(now()))
            .stamps(now(), now());
        add(&db, other).await;
        let is = |task_type: &'static str, status: &'static str, lease: TimeDelta| {
            change(&db, move |q| {
                q.push("update {workflow_tasks} set task_type = ").bind(task_type)
                    .push(", status = ").bind(status)
                    .push(", lease_expires_at = ").bind_time(now() + lease)
                    .push(" where id = '01m7anothertask00000000000'");
            })
        };
        let (held, over) = (TimeDelta::minutes(5), TimeDelta::minutes(-5));
        for (task_type, status) in [("workflow", "leased"), ("workflow", "ready"), ("workflow", "suspended"), ("query", "ready")] {
            is(task_type, status, held).await;
            assert_eq!(refused(&db, &situation).await.code(), "open_task", "{task_type} {status}");
        }
        for (task_type, status, lease, kind) in [
            // A step's task is no second one for the workflow.
            ("timer", "leased", held, Kind::ReplayBlocked),
            ("workflow", "completed", held, Kind::ReplayBlocked),
            // The workflow goes on with the one whose worker is gone.
            ("workflow", "leased", over, Kind::LeaseExpired),
        ] {
            is(task_type, status, lease).await;
            let plan = asked(&db, &situation).await.expect("a plan");
            assert_eq!(plan.kind, kind, "{task_type} {status}");
        }
    }

    async fn no_row_is_put_back_where_another_stands(db: TestDb) {
        for (name, table) in [
            ("activity-task-and-execution-lost", "activity_executions"),
            ("timer-row-and-task-lost", "workflow_run_timers"),
        ] {
            let situation = given(&db, name).await;
            let plan = asked(&db, &situation).await.expect("it is repairable as it is");
            let restored = plan.changes.iter().find(|change| change.table == table).expect("it is put back");
            let Some(Cell::Int(sequence)) = restored.cell("sequence") else {
                panic!("a sequence: {restored:?}");
            };
            let stranger = match table {
                "activity_executions" => InsertRow::new(table).set("activity_class", "App\\Other").set("activity_type", "other"),
                _ => InsertRow::new(table).set("delay_seconds", 5).time("fire_at", Some(now())),
            };
            let stranger = stranger
                .set("id", "01m7stranger00000000000000")
                .set("workflow_run_id", situation.run_id.as_str())
                .set("sequence", *sequence)
                .set("status", "cancelled")
                .stamps(now(), now());
            add(&db, stranger).await;
            let refusal = refused(&db, &situation).await;
            assert_eq!(refusal.code(), "not_restorable", "{name}");
            assert!(refusal.words().contains("01m7stranger"), "{}", refusal.words());
        }
    }

    /// Of a run that is not looked at: only the database knows of it.
    async fn a_key_taken_elsewhere_is_a_lost_race(db: TestDb) {
        let situation = given(&db, "timer-row-and-task-lost").await;
        let plan = asked(&db, &situation).await.expect("it is repairable as it is");
        let restored = plan.changes.iter().find(|change| change.table == "workflow_run_timers").expect("it is put back");
        let elsewhere = InsertRow::new("workflow_run_timers")
            .set("id", restored.id.as_str())
            .set("workflow_run_id", "01m7anotherrun000000000000")
            .set("sequence", 1)
            .set("status", "fired")
            .set("delay_seconds", 5)
            .time("fire_at", Some(now()))
            .stamps(now(), now());
        add(&db, elsewhere).await;
        let before = row_diff::dump(&db.read_only).await;
        let (config, request) = (EngineConfig::defaults(), by_run());
        let judged = Judged { clock: Clock::Frozen(now()), config: &config };
        let done = repair::repair(&db.writable, judged, &situation.run_id, Goal::Asked(&request), None).await;
        assert!(matches!(done, Err(ApplyError::LostRaces)), "{done:?}");
        assert_eq!(before, row_diff::dump(&db.read_only).await);
    }
}
