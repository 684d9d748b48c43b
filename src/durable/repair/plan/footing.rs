//! What a plan stands on must be sure: a row that could not be taken as it stands may say the
//! opposite of what was made of it, and a try that is not over may still be running.

use chrono::{DateTime, TimeDelta, Utc};

use crate::durable::{
    projection::{Projected, notices::unreadable},
    repair::refusal::{LEASE_MARGIN_SECONDS, Refusal},
    stored::{
        AttemptRow, AttemptStatus, ExecutionRow, HistoryEvent, Notice, Problem, RunRow, SignalRow,
        TaskRow, TaskType, TimerRow, UpdateRow,
    },
};

/// A task is missing only if everything that could account for it can be read.
pub(super) fn of_a_missing_task(p: &Projected<'_>) -> Result<(), Refusal> {
    const TABLES: [&str; 7] = [
        TaskRow::TABLE,
        ExecutionRow::TABLE,
        AttemptRow::TABLE,
        TimerRow::TABLE,
        SignalRow::TABLE,
        UpdateRow::TABLE,
        HistoryEvent::TABLE,
    ];
    legible(p, |notice| TABLES.contains(&notice.table))
}

/// The task that closes a run past its deadline stands on the run itself and on there being no
/// other: what the workflow waits for does not matter any more.
pub(super) fn of_a_deadline_task(p: &Projected<'_>) -> Result<(), Refusal> {
    legible(p, |notice| notice.table == TaskRow::TABLE)
}

/// A task that is there is judged by its own row, and by those of the activity it is for.
pub(super) fn of_a_task(p: &Projected<'_>, task: &TaskRow, execution: &str) -> Result<(), Refusal> {
    let attempts = &p.cx.snapshot.attempts;
    let of_activity = |id: &str| {
        let mut attempts = attempts.iter();
        attempts.any(|row| row.id == id && row.activity_execution_id == execution)
    };
    legible(p, |notice| match notice.table {
        TaskRow::TABLE => notice.id == task.id,
        ExecutionRow::TABLE => notice.id == execution,
        AttemptRow::TABLE => of_activity(&notice.id),
        _ => false,
    })
}

fn legible(p: &Projected<'_>, counts: impl Fn(&Notice) -> bool) -> Result<(), Refusal> {
    let notices = unreadable(p.cx.snapshot);
    let run = &p.cx.snapshot.run;
    // Every plan stands on the run being open, in a word we know, and counts on from its numbers.
    let of_run = |notice: &Notice| {
        notice.table == RunRow::TABLE
            && notice.id == run.id
            && ["status", "last_history_sequence", "last_command_sequence"].contains(&notice.column)
    };
    // A far time is strange, but it is what is stored.
    let broken = |notice: &&Notice| {
        notice.problem != Problem::ImplausibleTime && (of_run(notice) || counts(notice))
    };
    if let Some(notice) = notices.list().iter().find(broken) {
        return Err(Refusal::Unreadable {
            table: notice.table,
            column: notice.column,
            id: notice.id.clone(),
        });
    }
    if notices.left_out() > 0 {
        return Err(Refusal::TooMuchUnreadable);
    }
    Ok(())
}

/// Tasks that are open, and those of which it is not known that they are not.
pub(super) fn not_over<'p>(p: &'p Projected<'_>) -> impl Iterator<Item = &'p TaskRow> {
    let tasks = p.cx.snapshot.tasks.iter();
    tasks.filter(|task| !task.status.is_over())
}

/// The task with which the workflow itself goes on. Tasks of steps do not do that; one of a kind
/// we do not know might.
pub(super) fn task_of_the_workflow<'p>(p: &'p Projected<'_>) -> Option<&'p TaskRow> {
    let of_a_step = |task: &TaskRow| matches!(task.task_type, TaskType::Activity | TaskType::Timer);
    not_over(p).find(|task| !of_a_step(task))
}

/// The tries of an activity, whatever its own row says.
pub(super) fn attempts<'p>(
    p: &'p Projected<'_>,
    execution: &'p str,
) -> impl Iterator<Item = &'p AttemptRow> {
    let attempts = p.cx.snapshot.attempts.iter();
    attempts.filter(move |row| row.activity_execution_id == execution)
}

/// The last number a try of the activity has had, all of them having come to nothing. Where one
/// has not, its code may be running, or may have run.
pub(super) fn spent_attempts(p: &Projected<'_>, execution: &str) -> Result<i64, Refusal> {
    let mut last = 0;
    for row in attempts(p, execution) {
        if !matches!(row.status, AttemptStatus::Failed | AttemptStatus::Expired) {
            return Err(Refusal::AttemptNotOver { id: row.id.clone() });
        }
        last = last.max(row.attempt_number);
    }
    Ok(last)
}

/// A lease that ended by then has run out for everyone, whose clock may be behind ours too.
pub(super) fn surely_over(p: &Projected<'_>) -> DateTime<Utc> {
    p.cx.now - TimeDelta::seconds(LEASE_MARGIN_SECONDS)
}

/// Whoever holds a try under a lease that has not run out, or only just, is at work, whatever the
/// task says; and a try that neither failed nor expired may have come to something.
pub(super) fn no_attempt_may_count(p: &Projected<'_>, execution: &str) -> Result<(), Refusal> {
    let surely_over = surely_over(p);
    let may_count = |row: &&AttemptRow| match row.status {
        AttemptStatus::Failed | AttemptStatus::Expired => false,
        AttemptStatus::Running => row
            .lease_expires_at
            .is_some_and(|until| until > surely_over),
        _ => true,
    };
    attempts(p, execution)
        .find(may_count)
        .map_or(Ok(()), |row| {
            Err(Refusal::AttemptNotOver { id: row.id.clone() })
        })
}
