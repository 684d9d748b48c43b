//! What happens to a run, from its start to its end or to the clock: one arm per outcome.

use chrono::TimeDelta;
use fastrand::Rng;
use serde_json::{Value as Json, json};

use super::{
    Plan, Projections, Shape,
    activity::{Activity, Snapped},
    draft::{Draft, Ending, Identity, NextTask, OpenState, Relative, Subject},
    endings::{complete, fail, stop, time_out},
    ids::Ids,
    mix::{self, Open, Outcome},
    project::{finish, instance},
};
use crate::demo::rows::InsertRow;

/// The rows of a story and how many runs it took.
#[derive(Debug)]
pub struct Told {
    pub rows: Vec<InsertRow>,
    pub runs: u64,
}

pub fn tell(ids: &mut Ids, rng: &mut Rng, plan: &Plan, who: Identity, outcome: Outcome) -> Told {
    let all = plan.projections == Projections::All;
    let mut draft = Draft::new(ids, rng, plan.clock, who);
    let budget = match plan.shape {
        Shape::Busy => budget(&mut draft, plan),
        Shape::Long { payload_bytes } => {
            draft.snapped = Some(Snapped::new(payload_bytes));
            // Two events open a run; one closes it, or three lead up to the retry it waits for.
            let ends = if outcome == Outcome::Completed { 1 } else { 3 };
            plan.events_per_run.saturating_sub(2 + ends)
        }
    };
    set_pace(&mut draft, budget);
    if outcome == Outcome::TimedOut {
        draft.run_timeout = Some((draft.pace * 3).num_seconds().max(1));
    }
    begin(&mut draft, None, None);
    let mut rows = Vec::new();
    let ending = match outcome {
        Outcome::Completed => {
            steps(&mut draft, budget);
            complete(&mut draft)
        }
        Outcome::CompletedWithChild => {
            rows = with_child(&mut draft, all, true);
            draft.workflow_task("completed", &json!([]));
            complete(&mut draft)
        }
        Outcome::Continued => return continued(draft, budget, all),
        Outcome::Failed(failure) => fail(&mut draft, budget, failure),
        Outcome::TimedOut => time_out(&mut draft),
        Outcome::Cancelled => stop(&mut draft, "cancel", "cancelled"),
        Outcome::Terminated => stop(&mut draft, "terminate", "terminated"),
        Outcome::Open(Open::Child) => {
            rows = with_child(&mut draft, all, false);
            waiting(&draft, "waiting_for_child", None)
        }
        Outcome::Open(open) => wait_for(&mut draft, budget, open),
    };
    let runs = if rows.is_empty() { 1 } else { 2 };
    rows.insert(0, instance(&draft.who, &draft.who.run, 1, draft.at));
    rows.extend(finish(draft, &ending, true, all));
    Told { rows, runs }
}

/// How many events this run may have between its start and its end.
fn budget(draft: &mut Draft<'_>, plan: &Plan) -> u32 {
    // Two events open a run and one closes it.
    let mean = plan.events_per_run.saturating_sub(3);
    if mean < 3 {
        // Too few for an activity in every run: some have a whole one, the others none.
        return if draft.rng.u32(..3) < mean { 3 } else { 0 };
    }
    let spread = (mean / 2).min(2);
    draft.rng.u32(mean - spread..=mean + spread)
}

/// A pace that gives the kind's usual duration and ends well before the clock.
fn set_pace(draft: &mut Draft<'_>, budget: u32) {
    let wanted = mix::duration(draft.rng, draft.who.kind);
    let room = draft.clock - draft.at;
    let happenings = i32::try_from(budget).unwrap_or(i32::MAX - 4) + 4;
    draft.pace = (wanted / happenings).min(room / 3 / happenings);
}

fn begin(
    draft: &mut Draft<'_>,
    parent: Option<(&Identity, &str, i64)>,
    continued: Option<(&Identity, &str)>,
) {
    let who = draft.who.clone();
    let command = draft.command("start", "started_new");
    let common = json!({
        "workflow_class": who.kind.class, "workflow_type": who.kind.workflow_type,
        "workflow_instance_id": who.instance, "workflow_run_id": who.run,
        "workflow_command_id": command.0, "business_key": who.business_key,
    });
    let mut accepted = common.clone();
    accepted["outcome"] = json!("started_new");
    let on = (command.0.as_str(), command.1);
    draft.command_event(
        "StartAccepted",
        Subject::Command(command.0.clone()),
        &accepted,
        on,
        None,
    );
    let mut started = common;
    for (key, value) in [
        ("declared_queries", json!([])),
        ("declared_signals", json!(["approved"])),
        ("declared_updates", json!([])),
        ("declared_entry_method", json!("handle")),
        ("declared_entry_mode", json!("canonical")),
        ("run_timeout_seconds", json!(draft.run_timeout)),
    ] {
        started[key] = value;
    }
    if let Some((parent, call, step)) = parent {
        started["parent_workflow_instance_id"] = json!(parent.instance);
        started["parent_workflow_run_id"] = json!(parent.run);
        started["parent_sequence"] = json!(step);
        started["workflow_link_id"] = json!(call);
        started["child_call_id"] = json!(call);
    }
    if let Some((from, link)) = continued {
        started["continued_from_run_id"] = json!(from.run);
        started["workflow_link_id"] = json!(link);
    }
    draft.command_event("WorkflowStarted", Subject::Run, &started, on, None);
    draft.workflow_task("completed", &json!([]));
}

/// Activities mostly, timers now and then, side effects for what is left of the budget.
pub fn steps(draft: &mut Draft<'_>, budget: u32) {
    let mut left = budget;
    while left > 0 {
        // A timer counts whole seconds; a run that is in a hurry has none.
        let timers = draft.pace >= TimeDelta::seconds(1) && draft.snapped.is_none();
        left -= match left {
            2.. if timers && draft.rng.u32(..8) == 0 => {
                draft.timer();
                2
            }
            3.. => {
                let roomy = draft.clock - draft.at > TimeDelta::minutes(5);
                let retried = left >= 5
                    && roomy
                    && match draft.snapped {
                        Some(_) => draft.waits.len().is_multiple_of(2),
                        None => draft.rng.u32(..12) == 0,
                    };
                draft.activity(&Activity::Completed, i64::from(retried));
                draft.resume_after_activity("completed");
                if retried { 5 } else { 3 }
            }
            _ => {
                draft.side_effect();
                1
            }
        };
    }
}

/// The last wait is what the run is open for.
fn waiting(draft: &Draft<'_>, liveness: &'static str, next_task: Option<NextTask>) -> Ending {
    Ending::Open(OpenState {
        wait: draft.waits.len().checked_sub(1),
        liveness,
        next_task,
    })
}

fn wait_for(draft: &mut Draft<'_>, budget: u32, open: Open) -> Ending {
    let quick = TimeDelta::milliseconds(10);
    match open {
        Open::Timer => {
            let next = draft.open_timer();
            waiting(draft, "timer_scheduled", Some(next))
        }
        Open::Signal => {
            steps(draft, budget);
            draft.open_wait("signal");
            waiting(draft, "waiting_for_signal", None)
        }
        Open::Condition => {
            steps(draft, budget);
            draft.open_wait("condition");
            waiting(draft, "waiting_for_condition", None)
        }
        Open::ActivityLeased | Open::ActivityReady | Open::ActivityBackoff => {
            let (end, liveness, retries, within) = match open {
                Open::ActivityLeased => (Activity::Leased, "activity_task_leased", 0, 240),
                Open::ActivityReady => (Activity::Ready, "activity_task_ready", 0, 2),
                _ => (Activity::Backoff, "activity_task_ready", 1, 20),
            };
            if draft.snapped.is_some() {
                steps(draft, budget);
            }
            draft.pace = quick;
            draft.catch_up(TimeDelta::seconds(within));
            draft.at -= TimeDelta::seconds(1);
            draft.at = draft.at.max(draft.who.started);
            let next = draft.activity(&end, retries);
            waiting(draft, liveness, next)
        }
        Open::WorkflowTask | Open::Nothing => {
            draft.pace = quick;
            draft.catch_up(TimeDelta::seconds(2));
            draft.at -= TimeDelta::seconds(1);
            draft.at = draft.at.max(draft.who.started);
            draft.activity(&Activity::Completed, 0);
            if open == Open::Nothing {
                return Ending::Open(OpenState {
                    wait: None,
                    liveness: "repair_needed",
                    next_task: None,
                });
            }
            let id = draft.ids.at(draft.at);
            draft.task(&id, "workflow", "ready", &json!([]), draft.at, None);
            let next = NextTask {
                id,
                task_type: "workflow",
                status: "ready",
                available: draft.at,
                lease_expires: None,
            };
            Ending::Open(OpenState {
                wait: None,
                liveness: "workflow_task_ready",
                next_task: Some(next),
            })
        }
        Open::Child => unreachable!("told by with_child"),
    }
}

/// Starts a child and tells its story too; returns the child's rows.
fn with_child(draft: &mut Draft<'_>, all: bool, completes: bool) -> Vec<InsertRow> {
    let opened = draft.at;
    let kind = mix::kind(draft.rng);
    let child = Identity {
        run: draft.ids.at(opened),
        instance: draft.ids.at(opened),
        number: 1,
        kind,
        namespace: draft.who.namespace,
        business_key: None,
        started: opened,
    };
    let (call, step) = draft.start_child(&child);
    let mut inner = Draft::new(draft.ids, draft.rng, draft.clock, child.clone());
    set_pace(&mut inner, 4);
    begin(&mut inner, Some((&draft.who, &call, step)), None);
    inner.relatives.push(Relative {
        direction: "parent",
        link: call.clone(),
        link_type: "child_workflow",
        child_call: true,
        step: Some(step),
        who: draft.who.clone(),
        status: if completes { "completed" } else { "waiting" },
        closed_reason: completes.then_some("completed"),
        at: opened,
    });
    let ending = if completes {
        inner.side_effect();
        complete(&mut inner)
    } else {
        let next = inner.open_timer();
        waiting(&inner, "timer_scheduled", Some(next))
    };
    let closed = completes.then_some(inner.at);
    let mut rows = vec![instance(&child, &child.run, 1, inner.at)];
    rows.extend(finish(inner, &ending, true, all));
    if let Some(closed) = closed {
        draft.at = draft.at.max(closed);
        draft.child_completed(&child, &call, step);
    }
    draft.keep_child(&child, &call, step, opened, closed);
    rows
}

/// A run that continues as new, and the run it becomes.
fn continued(mut draft: Draft<'_>, budget: u32, all: bool) -> Told {
    steps(&mut draft, budget);
    let first = draft.who.clone();
    let step = draft.next_step();
    let at = draft.at;
    let link = draft.ids.at(at);
    let second = Identity {
        run: draft.ids.at(at),
        number: 2,
        started: at,
        ..first.clone()
    };
    let payload: Json = json!({
        "sequence": step, "continued_to_run_id": second.run, "continued_to_run_number": 2,
        "workflow_link_id": link, "closed_reason": "continued",
    });
    draft.event("WorkflowContinuedAsNew", Subject::Run, &payload);
    draft.rows.push(
        InsertRow::new("workflow_links")
            .set("id", &link)
            .set("link_type", "continue_as_new")
            .set("sequence", step)
            .set("parent_workflow_instance_id", &first.instance)
            .set("parent_workflow_run_id", &first.run)
            .set("child_workflow_instance_id", &first.instance)
            .set("child_workflow_run_id", &second.run)
            .set("is_primary_parent", true)
            .set("parent_close_policy", "abandon")
            .stamps(at, at),
    );
    let relative = |direction, step, who: &Identity, reason| Relative {
        direction,
        link: link.clone(),
        link_type: "continue_as_new",
        child_call: false,
        step,
        who: who.clone(),
        status: "completed",
        closed_reason: Some(reason),
        at,
    };
    draft
        .relatives
        .push(relative("child", Some(step), &second, "completed"));
    let clock = draft.clock;
    let mut next = Draft::new(draft.ids, draft.rng, clock, second.clone());
    set_pace(&mut next, budget);
    begin(&mut next, None, Some((&first, &link)));
    next.relatives
        .push(relative("parent", None, &first, "continued"));
    steps(&mut next, budget);
    let ending = complete(&mut next);
    let closed = next.at;
    let next = finish(next, &ending, true, all);
    let mut rows = vec![instance(&first, &second.run, 2, closed)];
    let ending = Ending::Closed {
        status: "completed",
        reason: "continued",
    };
    rows.extend(finish(draft, &ending, false, all));
    rows.extend(next);
    Told { rows, runs: 2 }
}
