//! What nothing will begin or fire while its task row is gone, or fires late: the worker that had
//! the task let its lease run out.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};

use crate::durable::{
    projection::{Projected, tasks::Task},
    stored::TaskType,
};

/// Steps and timeouts by id: a run may have thousands.
#[derive(Debug, Default)]
pub struct Gone<'p> {
    activities: HashSet<&'p str>,
    timers: HashSet<&'p str>,
    /// Waits whose timeout would be a timer's task.
    timeouts: HashSet<&'p str>,
    /// From when to when a worker had the task that fires a timer or a wait's timeout.
    lapsed: HashMap<&'p str, (DateTime<Utc>, DateTime<Utc>)>,
}

impl<'p> Gone<'p> {
    /// A run that has closed misses no task.
    pub fn of(p: &'p Projected<'_>) -> Self {
        let mut gone = Self::default();
        if p.cx.snapshot.run.status.is_terminal() {
            return gone;
        }
        for task in p.tasks.iter().filter(|task| task.task_missing) {
            gone.add(task);
        }
        for task in p.tasks.iter().filter(|task| task.lease_expired) {
            gone.add_lapsed(task);
        }
        gone
    }

    fn add_lapsed(&mut self, task: &'p Task) {
        let Some(until) = task.lease_expires_at else {
            return;
        };
        let from = task.leased_at.unwrap_or(until).min(until);
        if task.r#type == TaskType::Timer.as_str() {
            let fires = [
                &task.timer_id,
                &task.condition_wait_id,
                &task.signal_wait_id,
            ];
            let fires = fires.into_iter().filter_map(Option::as_deref);
            self.lapsed.extend(fires.map(|id| (id, (from, until))));
        }
    }

    fn add(&mut self, task: &'p Task) {
        match &task.r#type {
            kind if kind == TaskType::Activity.as_str() => {
                self.activities
                    .extend(task.activity_execution_id.as_deref());
            }
            kind if kind == TaskType::Timer.as_str() => {
                self.timers.extend(task.timer_id.as_deref());
                self.timeouts.extend(task.condition_wait_id.as_deref());
                self.timeouts.extend(task.signal_wait_id.as_deref());
            }
            _ => {}
        }
    }

    pub fn activity(&self, id: &str) -> bool {
        self.activities.contains(id)
    }

    pub fn timer(&self, id: &str) -> bool {
        self.timers.contains(id)
    }

    pub fn timeout(&self, wait_id: &str) -> bool {
        self.timeouts.contains(wait_id)
    }

    /// From when to when a worker had the task of a timer, or of a wait's timeout, until its lease
    /// ran out.
    pub fn lapsed(&self, id: &str) -> Option<(DateTime<Utc>, DateTime<Utc>)> {
        self.lapsed.get(id).copied()
    }
}
