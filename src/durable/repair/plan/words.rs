//! A plan in words: what it will do, what it will not, and what must be true for the run to go on.

use chrono::{DateTime, Utc};

use super::{Kind, Made, is_polled};
use crate::durable::{
    projection::{Projected, fleet, tasks::payload_of, transport::Patience},
    repair::change::{Action, RowChange},
    stored::{AttemptRow, ExecutionRow, TaskType, TimerRow, UpdateRow},
};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    pub will: Vec<Effect>,
    pub will_not: Vec<String>,
    /// What must hold for workers to go on; the first is the most doubtful.
    pub needs: Vec<String>,
}

/// One thing a repair does, and the moment its sentence ends with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    pub words: String,
    pub at: Option<DateTime<Utc>>,
}

impl Effect {
    fn now(words: String) -> Self {
        Self { words, at: None }
    }

    /// With the moment as the reader has moments written.
    pub fn told(&self, moment: impl Fn(DateTime<Utc>) -> String) -> String {
        match self.at {
            Some(at) => format!("{} {}.", self.words, moment(at)),
            None => self.words.clone(),
        }
    }
}

pub(super) fn direct(p: &Projected<'_>, made: &Made, changes: &[RowChange]) -> Words {
    let mut will = vec![main_effect(p, made)];
    for change in changes {
        will.extend(side_effect(change).map(Effect::now));
    }
    if changes
        .iter()
        .any(|change| change.table == "workflow_commands")
    {
        let recorded = "Record the repair as a command and a RepairRequested event.";
        will.push(Effect::now(recorded.to_owned()));
    }
    Words {
        will,
        will_not: will_not(made),
        needs: needs(p, made),
    }
}

pub(super) fn nudge(p: &Projected<'_>, made: &Made) -> Words {
    let run = &p.cx.snapshot.run.id;
    Words {
        will: vec![Effect::now(format!(
            "Mark the stored summary of run {run} so that the engine's repair pass rebuilds the {} task.",
            made.task.task_type
        ))],
        will_not: vec!["Write a task, a command or history.".to_owned()],
        needs: vec![format!(
            "The engine's repair pass must run: php artisan workflow:v2:repair-pass --run-id={run}"
        )],
    }
}

fn main_effect(p: &Projected<'_>, made: &Made) -> Effect {
    let task = &made.task;
    let at = |words: &str| match task.available_at {
        Some(at) => Effect {
            words: words.to_owned(),
            at: Some(at),
        },
        None => Effect::now(format!("{words} an unknown time.")),
    };
    let words = match made.kind {
        Kind::DispatchOverdue | Kind::DispatchFailed if is_polled(p.cx.config) => format!(
            "Offer {} task {} to workers again.",
            task.task_type, task.id
        ),
        // The engine's columns for it: without them the run would need the same repair at once.
        Kind::DispatchOverdue | Kind::DispatchFailed => format!(
            "Mark {} task {} as offered now, without publishing it: the engine's repair pass counts from here.",
            task.task_type, task.id
        ),
        Kind::LeaseExpired => format!(
            "Take {} task {} back from the worker whose lease ran out, and make it ready.",
            task.task_type, task.id
        ),
        Kind::ReplayBlocked => format!(
            "Clear the replay block of workflow task {} and make it ready.",
            task.id
        ),
        Kind::MissingActivityTask => return at("Put back the activity's task, ready from"),
        Kind::MissingTimerTask => return at("Put back the timer's task, due at"),
        Kind::MissingConditionTimeout | Kind::MissingSignalTimeout => match task.task_type {
            TaskType::Timer => return at("Put back the task that ends the wait at"),
            _ => "Put back the workflow task that handles the wait's timeout.".to_owned(),
        },
        Kind::MissingUpdateTask => {
            "Put back the workflow task that applies the accepted update.".to_owned()
        }
        Kind::MissingSignalTask => {
            "Put back the workflow task that applies the received signal.".to_owned()
        }
        Kind::MissingChildTask => {
            "Put back the workflow task that brings the child's outcome to the workflow.".to_owned()
        }
        Kind::MissingWorkflowTask => {
            "Put back a workflow task: nothing else would wake this run.".to_owned()
        }
        Kind::DeadlineExpired => {
            "Add the workflow task that closes the run, whose deadline has passed.".to_owned()
        }
    };
    Effect::now(words)
}

fn side_effect(change: &RowChange) -> Option<String> {
    let id = &change.id;
    Some(match (change.table, change.action) {
        (ExecutionRow::TABLE, Action::Insert) => {
            format!("Restore activity execution {id} from history, without its timeouts.")
        }
        (TimerRow::TABLE, Action::Insert) => format!("Restore timer {id} from history."),
        (UpdateRow::TABLE, Action::Insert) => format!("Restore update {id} from history."),
        (AttemptRow::TABLE, Action::Update) => {
            format!("Close attempt {id} as expired; a late outcome of it is refused.")
        }
        (AttemptRow::TABLE, Action::Insert) => {
            format!("Record the lost attempt {id} as expired.")
        }
        _ => return None,
    })
}

fn will_not(made: &Made) -> Vec<String> {
    let mut will_not = Vec::new();
    match made.kind {
        Kind::LeaseExpired => will_not.push(
            "Stop the worker that held the lease: if it still runs, its code runs beside the next try."
                .to_owned(),
        ),
        Kind::ReplayBlocked => will_not.push(
            "Change the history or the code: the task blocks again unless code that fits is deployed."
                .to_owned(),
        ),
        Kind::MissingActivityTask => will_not.push("Spend a try: the count stays as it is.".to_owned()),
        _ => {}
    }
    will_not.push("Publish a job to a queue, or touch any other run.".to_owned());
    will_not
}

fn needs(p: &Projected<'_>, made: &Made) -> Vec<String> {
    let task = &made.task;
    let (connection, queue) = (task.connection.as_deref(), task.queue.as_deref());
    let mut needs = Vec::new();
    // Of the task as it is: what says that it is blocked is gone from the one that is made.
    let blocked = p.cx.snapshot.tasks.iter().find(|row| row.id == task.id);
    if let Some(class) = blocked.and_then(|row| payload_of(row).replay_blocked_exception_class.0) {
        needs.push(format!(
            "Exception class {class}, which history holds, must exist again or be given an alias under \
             workflows.v2.types.exception_class_aliases; until then the task blocks again."
        ));
    }
    let workers = fleet::workers(p.cx, task.compatibility.as_deref(), connection, queue);
    if !workers.iter().any(|worker| worker.supports_required) {
        needs.push(format!(
            "No live worker has reported for queue {}; one must be started.",
            queue.unwrap_or("default")
        ));
    }
    if !is_polled(p.cx.config) {
        needs.push(format!(
            "Where workers listen to a queue, the engine's repair pass must publish the task, and does so once {} s have passed if it covers {}: php artisan workflow:v2:repair-pass --run-id={}",
            Patience::of(p.cx.config).redispatch_after_seconds,
            match connection {
                Some(connection) => format!("connection {connection}"),
                None => "rows without a connection (no --connection given)".to_owned(),
            },
            p.cx.snapshot.run.id
        ));
    }
    needs
}
