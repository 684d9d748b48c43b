//! What nothing will begin or fire while its task row is gone.

use std::collections::HashSet;

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
        gone
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
}
