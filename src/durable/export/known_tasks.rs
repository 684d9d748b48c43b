//! Every task of the run, as much of each as folding and telling ask for: they are read once, and
//! each batch finds here those it names.

use chrono::{DateTime, Utc};
use serde_json::json;

use super::plan::{Kind, Step};
use crate::durable::stored::{TaskRow, TaskStatus, TaskType, loose::Raw};

/// By id, once they were assigned.
#[derive(Debug, Default)]
pub struct KnownTasks(Vec<KnownTask>);

/// Small: there is one for nearly every event.
#[derive(Debug)]
struct KnownTask {
    id: Box<str>,
    task_type: TaskType,
    status: TaskStatus,
    /// The activity or timer it resumes, by its place in the plan.
    step: Option<u32>,
    attempt_count: i64,
    available_at: Option<DateTime<Utc>>,
    leased_at: Option<DateTime<Utc>>,
    lease_expires_at: Option<DateTime<Utc>>,
    created_at: Option<DateTime<Utc>>,
    updated_at: Option<DateTime<Utc>>,
}

impl KnownTasks {
    pub fn take(&mut self, task: &TaskRow, step: Option<usize>) {
        self.0.push(KnownTask {
            id: task.id.as_str().into(),
            task_type: task.task_type.clone(),
            status: task.status.clone(),
            step: step.and_then(|at| at.try_into().ok()),
            attempt_count: task.attempt_count,
            available_at: task.available_at,
            leased_at: task.leased_at,
            lease_expires_at: task.lease_expires_at,
            created_at: task.created_at,
            updated_at: task.updated_at,
        });
    }

    /// Tells each step which tasks resume it.
    pub fn assign(&mut self, steps: &mut [Step]) {
        self.0.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        for (at, task) in (0..).zip(&self.0) {
            let step = task.step.and_then(|step| steps.get_mut(step as usize));
            if let Some(step) = step {
                step.tasks.push(at);
            }
        }
    }

    /// Those that resume some steps, and those of some ids.
    pub fn of<'i>(
        &self,
        run_id: &str,
        steps: &[Step],
        ids: impl Iterator<Item = &'i str>,
    ) -> Vec<TaskRow> {
        let of_steps = steps
            .iter()
            .flat_map(|step| step.tasks.iter().map(move |at| (*at as usize, Some(step))));
        let mut found: Vec<(usize, Option<&Step>)> = of_steps.collect();
        found.extend(ids.filter_map(|id| Some((self.find(id)?, None))));
        // Of a task that is named twice, what names its step comes first.
        found.sort_by_key(|(at, step)| (*at, step.is_none()));
        found.dedup_by_key(|(at, _)| *at);
        let rows = found.into_iter();
        rows.filter_map(|(at, step)| Some(self.0.get(at)?.row(run_id, step)))
            .collect()
    }

    fn find(&self, id: &str) -> Option<usize> {
        self.0.binary_search_by(|task| (*task.id).cmp(id)).ok()
    }
}

impl KnownTask {
    /// Of its payload only what says which step it resumes.
    fn row(&self, run_id: &str, step: Option<&Step>) -> TaskRow {
        let payload = step.map(|step| match step.kind {
            Kind::Activity => json!({"activity_execution_id": step.id}),
            Kind::Timer => json!({"timer_id": step.id}),
        });
        TaskRow {
            id: self.id.to_string(),
            workflow_run_id: run_id.to_owned(),
            task_type: self.task_type.clone(),
            status: self.status.clone(),
            payload: payload.map_or_else(Raw::default, |payload| Raw::of_value(&payload)),
            attempt_count: self.attempt_count,
            available_at: self.available_at,
            leased_at: self.leased_at,
            lease_expires_at: self.lease_expires_at,
            created_at: self.created_at,
            updated_at: self.updated_at,
            namespace: None,
            compatibility: None,
            connection: None,
            queue: None,
            lease_owner: None,
            last_dispatch_attempt_at: None,
            last_dispatched_at: None,
            last_dispatch_error: None,
            last_claim_failed_at: None,
            last_claim_error: None,
            repair_count: 0,
            repair_available_at: None,
            last_error: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_found_by_the_step_they_resume_and_by_id() {
        let mut tasks = KnownTasks::default();
        for (id, step) in [("c", Some(0)), ("a", None), ("b", Some(0)), ("d", None)] {
            let task = TaskRow {
                id: id.into(),
                attempt_count: 3,
                ..TaskRow::default()
            };
            tasks.take(&task, step);
        }
        let mut steps = [Step {
            kind: Kind::Timer,
            id: "t".into(),
            events: Vec::new(),
            tasks: Vec::new(),
            timeout: false,
        }];
        tasks.assign(&mut steps);
        let found = tasks.of("run", &steps, ["d", "c", "unknown"].into_iter());
        let found: Vec<_> = found
            .iter()
            .map(|row| (row.id.as_str(), row.payload.0.as_deref()))
            .collect();
        let named = Some(r#"{"timer_id":"t"}"#);
        assert_eq!(found, [("b", named), ("c", named), ("d", None)]);
    }
}
