//! One pass over all that could be repaired without an operator, as the engine's own pass does it:
//! tasks that are there and in trouble, runs whose task is gone, runs past their deadline. Every
//! scope in turn, so that a long queue does not starve a short one.
//!
//! The engine's scan limit does not starve anyone, because its pass changes every row it takes up.
//! Ours leaves some as they are: what only the engine can help is not taken up at all, and what
//! turns out not to be repairable does not count towards the limit.

use std::collections::HashSet;

use serde::Serialize;

use super::{
    apply::{self, ApplyError, Goal, Judged},
    plan::is_polled,
    refusal::Refusal,
};
use crate::{
    db::{Db, DbError, Snapshot},
    durable::{
        metrics::repair::turns,
        store::metrics::{
            Scope,
            repair::{self as candidates, RepairGroup, Trouble, Wanted},
        },
        stored::TaskType,
    },
};

/// How many candidates are looked at for each that may be repaired, at most: so many that those
/// which stay refused do not stand before what comes after them.
const LOOKS: i64 = 80;
/// How many that may be, whatever the limit: each is read as a page reads it.
const MOST_LOOKS: i64 = 2_000;

/// What the lock of a pass is called.
pub const LOCK: &str = "repair-pass";

/// What a pass is asked for.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// Empty is every run.
    pub run_ids: Vec<String>,
    pub instance_id: Option<String>,
    pub respect_throttle: bool,
    /// Says what would be done, and does nothing.
    pub dry_run: bool,
}

/// What a pass did, under the engine's keys.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// A pass of ours covers every connection and queue.
    pub connection: Option<String>,
    pub queue: Option<String>,
    pub run_ids: Vec<String>,
    pub instance_id: Option<String>,
    pub respect_throttle: bool,
    pub throttled: bool,
    pub selected_existing_task_candidates: usize,
    pub selected_missing_task_candidates: usize,
    pub selected_total_candidates: usize,
    pub repaired_existing_tasks: usize,
    pub repaired_missing_tasks: usize,
    pub dispatched_tasks: usize,
    pub existing_task_failures: Vec<TaskFailure>,
    pub missing_run_failures: Vec<RunFailure>,
    pub deadline_expired_candidates: usize,
    pub deadline_expired_tasks_created: usize,
    pub deadline_expired_failures: Vec<RunFailure>,
    pub activity_timeout_candidates: usize,
    /// Always none: ending an activity writes history, which is the engine's to write.
    pub activity_timeouts_enforced: usize,
    pub activity_timeout_failures: Vec<RunFailure>,
    /// What the engine has no key for.
    pub plimsoll: Ours,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Ours {
    /// Nothing was written: what is told to be repaired would be.
    pub dry_run: bool,
    /// Tasks in trouble that only the engine's pass can help.
    pub left_to_the_engine: usize,
    /// Candidates that a pass does not get to, because so many stand before them that it leaves as
    /// they are.
    pub not_looked_at: usize,
    /// What was looked at and needs no repair, or none yet, whatever the engine's pass would do.
    pub refused: Vec<Refused>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refused {
    pub run_id: String,
    pub code: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TaskFailure {
    pub candidate_id: String,
    pub message: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RunFailure {
    pub run_id: String,
    pub message: String,
}

impl Report {
    fn of(asked: &Asked) -> Self {
        Self {
            run_ids: asked.run_ids.clone(),
            instance_id: asked.instance_id.clone(),
            respect_throttle: asked.respect_throttle,
            plimsoll: Ours {
                dry_run: asked.dry_run,
                ..Ours::default()
            },
            ..Self::default()
        }
    }

    /// A pass that did not happen, because another is under way.
    pub fn throttled(asked: &Asked) -> Self {
        Self {
            throttled: true,
            ..Self::of(asked)
        }
    }

    /// Whether something that was selected could not be repaired.
    pub fn failed(&self) -> bool {
        !self.existing_task_failures.is_empty() || !self.missing_run_failures.is_empty()
    }
}

/// What the pass looks at, and how much of it the engine's would select.
struct Candidates {
    limit: usize,
    selected_tasks: usize,
    selected_runs: usize,
    left_to_the_engine: usize,
    /// Tasks, each with its run.
    tasks: Vec<(String, String)>,
    tasks_beyond: usize,
    runs: Vec<String>,
    runs_beyond: usize,
}

/// One pass. What no longer needs repair when its turn comes is passed over; what fails does not
/// stop the others.
pub async fn pass(db: &Db, judged: Judged<'_>, asked: &Asked) -> Result<Report, DbError> {
    let mut snapshot = db.snapshot().await?;
    let found = select(&mut snapshot, judged, asked).await?;
    snapshot.end().await;
    let mut report = Report {
        selected_existing_task_candidates: found.selected_tasks,
        selected_missing_task_candidates: found.selected_runs,
        selected_total_candidates: found.selected_tasks + found.selected_runs,
        ..Report::of(asked)
    };
    report.plimsoll.left_to_the_engine = found.left_to_the_engine;
    let turn = Turn {
        db,
        judged,
        dry_run: asked.dry_run,
    };
    for (task_id, run_id) in found.tasks {
        if report.repaired_existing_tasks == found.limit {
            break;
        }
        match turn.repair(&run_id, Goal::Task(&task_id)).await {
            Ok(done) => report.repaired_existing_tasks += report.plimsoll.took(done),
            Err(message) => report.existing_task_failures.push(TaskFailure {
                candidate_id: task_id,
                message,
            }),
        }
    }
    if report.repaired_existing_tasks < found.limit {
        report.plimsoll.not_looked_at += found.tasks_beyond;
    }
    let mut to_go_on = HashSet::new();
    for run_id in found.runs {
        if report.repaired_missing_tasks == found.limit {
            break;
        }
        match turn.repair(&run_id, Goal::MissingTask).await {
            Ok(done) => {
                if done.gave(&TaskType::Workflow) {
                    to_go_on.insert(run_id);
                }
                report.repaired_missing_tasks += report.plimsoll.took(done);
            }
            Err(message) => report
                .missing_run_failures
                .push(RunFailure { run_id, message }),
        }
    }
    if report.repaired_missing_tasks < found.limit {
        report.plimsoll.not_looked_at += found.runs_beyond;
    }
    let mut overdue = overdue(db, judged, asked).await?;
    // A dry run has not given them the task that will close them.
    overdue.runs.retain(|run_id| !to_go_on.contains(run_id));
    report.deadline_expired_candidates = overdue.runs.len().min(found.limit);
    report.activity_timeout_candidates = overdue.activities;
    for run_id in overdue.runs {
        if report.deadline_expired_tasks_created == found.limit {
            break;
        }
        match turn.repair(&run_id, Goal::Deadline).await {
            Ok(done) => report.deadline_expired_tasks_created += report.plimsoll.took(done),
            Err(message) => report
                .deadline_expired_failures
                .push(RunFailure { run_id, message }),
        }
    }
    report.dispatched_tasks = report.repaired_existing_tasks
        + report.repaired_missing_tasks
        + report.deadline_expired_tasks_created;
    Ok(report)
}

#[derive(Clone, Copy)]
struct Turn<'a> {
    db: &'a Db,
    judged: Judged<'a>,
    dry_run: bool,
}

/// What became of a candidate.
enum Turned {
    /// With a task of this type.
    Repaired(String),
    /// Nothing is wrong with it any more.
    NotNeeded,
    /// Nothing is wrong with it that a repair now would put right.
    Refused(Refused),
}

impl Turned {
    fn gave(&self, wanted: &TaskType) -> bool {
        matches!(self, Self::Repaired(task_type) if task_type == wanted.as_str())
    }
}

impl Ours {
    /// How many repairs that was.
    fn took(&mut self, turned: Turned) -> usize {
        match turned {
            Turned::Repaired(_) => return 1,
            Turned::NotNeeded => {}
            Turned::Refused(refused) => self.refused.push(refused),
        }
        0
    }
}

impl Turn<'_> {
    async fn repair(self, run_id: &str, goal: Goal<'_>) -> Result<Turned, String> {
        let done = if self.dry_run {
            apply::preview(self.db, self.judged, run_id, goal).await
        } else {
            apply::repair(self.db, self.judged, run_id, goal, None).await
        };
        match done {
            Ok(plan) => Ok(Turned::Repaired(plan.task_type)),
            Err(ApplyError::Refused(refusal)) => match refusal {
                // It went on since it was selected.
                Refusal::Blocked(_) | Refusal::NotNeeded { .. } => Ok(Turned::NotNeeded),
                // Its time comes, or it is as it should be.
                Refusal::DispatchBackoff { .. }
                | Refusal::LeaseJustExpired { .. }
                | Refusal::NoProgress
                | Refusal::OpenTask { .. }
                | Refusal::ToBePublished { .. }
                | Refusal::ClaimFailed { .. }
                | Refusal::NothingToNudge
                | Refusal::NoNudgeUnblocks
                | Refusal::NoSummaryToNudge => Ok(Turned::Refused(Refused {
                    run_id: run_id.to_owned(),
                    code: refusal.code().to_owned(),
                })),
                // It is stuck, and stays so.
                Refusal::NotRestorable { .. }
                | Refusal::PlaceTaken { .. }
                | Refusal::LocalActivity
                | Refusal::UnsupportedCodec { .. }
                | Refusal::AttemptNotOver { .. }
                | Refusal::Unreadable { .. }
                | Refusal::TooMuchUnreadable => {
                    Err(format!("{}: {}", refusal.code(), refusal.told()))
                }
            },
            Err(ApplyError::NoSuchRun(_)) => Ok(Turned::NotNeeded),
            Err(error @ (ApplyError::StateChanged | ApplyError::LostRaces | ApplyError::Db(_))) => {
                Err(error.to_string())
            }
        }
    }
}

async fn select(
    snapshot: &mut Snapshot,
    judged: Judged<'_>,
    asked: &Asked,
) -> Result<Candidates, DbError> {
    let (limit, looks) = limits(judged);
    let scope = Scope::new(judged.clock.now(), judged.config, None);
    let wanted = wanted(asked);
    let ours = if is_polled(judged.config) {
        Trouble::Polled
    } else {
        Trouble::Queued
    };
    let in_trouble = candidates::task_groups(snapshot, &scope, wanted, Trouble::Any).await?;
    let to_repair = candidates::task_groups(snapshot, &scope, wanted, ours).await?;
    let mut tasks = Vec::new();
    for (triple, most) in turns(&to_repair, looks) {
        let asked = (&triple, most);
        tasks.push(candidates::task_ids(snapshot, &scope, wanted, ours, asked).await?);
    }
    let without_task = candidates::run_groups(snapshot, &scope, wanted).await?;
    let mut runs = Vec::new();
    for (triple, most) in turns(&without_task, looks) {
        runs.push(candidates::run_ids(snapshot, &scope, wanted, (&triple, most)).await?);
    }
    let (tasks, runs) = (in_turn(tasks), in_turn(runs));
    Ok(Candidates {
        limit: usize::try_from(limit).unwrap_or_default(),
        selected_tasks: selected(&in_trouble, limit),
        selected_runs: selected(&without_task, limit),
        left_to_the_engine: counted(&in_trouble).saturating_sub(counted(&to_repair)),
        tasks_beyond: counted(&to_repair).saturating_sub(tasks.len()),
        tasks,
        runs_beyond: counted(&without_task).saturating_sub(runs.len()),
        runs,
    })
}

/// What is past a deadline.
struct Overdue {
    runs: Vec<String>,
    activities: usize,
}

/// As it stands once tasks were brought back: a run that was given a workflow task is closed by it.
async fn overdue(db: &Db, judged: Judged<'_>, asked: &Asked) -> Result<Overdue, DbError> {
    let (limit, looks) = limits(judged);
    let scope = Scope::new(judged.clock.now(), judged.config, None);
    let mut snapshot = db.snapshot().await?;
    let overdue = Overdue {
        runs: candidates::overdue_runs(&mut snapshot, &scope, wanted(asked), looks).await?,
        activities: candidates::overdue_activities(&mut snapshot, &scope, limit).await?,
    };
    snapshot.end().await;
    Ok(overdue)
}

/// How many of each kind are repaired at most, and how many are looked at for that.
fn limits(judged: Judged<'_>) -> (i64, i64) {
    let limit = judged.config.int("task_repair.scan_limit");
    let looks = limit.saturating_mul(LOOKS).min(MOST_LOOKS).max(limit);
    (limit, looks)
}

fn wanted(asked: &Asked) -> Wanted<'_> {
    Wanted {
        run_ids: &asked.run_ids,
        instance_id: asked.instance_id.as_deref(),
    }
}

fn counted(groups: &[RepairGroup]) -> usize {
    let all = groups.iter().map(|group| group.candidates).sum::<i64>();
    usize::try_from(all).unwrap_or_default()
}

/// How many of these the engine's pass would take.
fn selected(groups: &[RepairGroup], limit: i64) -> usize {
    let all = turns(groups, limit)
        .iter()
        .map(|(_, most)| most)
        .sum::<i64>();
    usize::try_from(all).unwrap_or_default()
}

/// The first of each, then the second of each, and so on.
fn in_turn<T>(lists: Vec<Vec<T>>) -> Vec<T> {
    let mut lists: Vec<_> = lists.into_iter().map(Vec::into_iter).collect();
    let mut out = Vec::new();
    loop {
        let round: Vec<T> = lists.iter_mut().filter_map(Iterator::next).collect();
        if round.is_empty() {
            return out;
        }
        out.extend(round);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_take_turns() {
        let lists = vec![vec![1, 2, 3], vec![4], vec![5, 6]];
        assert_eq!(in_turn(lists), [1, 4, 5, 2, 6, 3]);
    }
}
