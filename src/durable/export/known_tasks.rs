//! Every task of the run, as much of each as folding and telling ask for: they are read once, and
//! each batch finds here those it names.

use std::io;

use serde_json::json;

use super::{
    plan::{Kind, Step},
    spool::Spool,
};
use crate::{
    db::packed::{pack_bytes, pack_int, pack_time, unpack_int, unpack_text, unpack_time},
    durable::stored::{TaskRow, loose::Raw},
};

/// By id; beside it the activity or timer it resumes, by its place in the plan. There is one for
/// nearly every event, so that only this much is held in memory.
#[derive(Debug, Default)]
pub struct KnownTasks(Spool<(Box<str>, Option<u32>)>);

impl KnownTasks {
    /// A list that grows as tasks come would be copied again and again.
    pub fn with_room(tasks: usize) -> Self {
        Self(Spool::with_room(tasks))
    }

    pub fn take(&mut self, task: &TaskRow, step: Option<usize>) -> io::Result<()> {
        let step = step.and_then(|at| at.try_into().ok());
        self.0
            .push_with((task.id.as_str().into(), step), |out| pack(out, task))
    }

    /// Tells each step which tasks resume it.
    pub fn assign(&mut self, steps: &mut [Step]) {
        for (at, (_, step)) in (0..).zip(self.0.keys()) {
            let step = step.and_then(|step| steps.get_mut(step as usize));
            if let Some(step) = step {
                step.tasks.push(at);
            }
        }
    }

    /// Those that resume some steps, and those of some ids.
    pub fn of<'i>(
        &mut self,
        run_id: &str,
        steps: &[Step],
        ids: impl Iterator<Item = &'i str>,
    ) -> io::Result<Vec<TaskRow>> {
        let of_steps = steps
            .iter()
            .flat_map(|step| step.tasks.iter().map(move |at| (*at as usize, Some(step))));
        let mut found: Vec<(usize, Option<&Step>)> = of_steps.collect();
        found.extend(ids.filter_map(|id| Some((self.0.find(|(of, _)| (**of).cmp(id))?, None))));
        // Of a task that is named twice, what names its step comes first.
        found.sort_by_key(|(at, step)| (*at, step.is_none()));
        found.dedup_by_key(|(at, _)| *at);
        let mut rows = Vec::with_capacity(found.len());
        for (at, step) in found {
            let id = self.0.key(at).map(|(id, _)| id.to_string());
            if let (Some(id), Some(packed)) = (id, &mut self.0.text(at)?) {
                rows.push(TaskRow {
                    id,
                    workflow_run_id: run_id.to_owned(),
                    payload: step.map(naming).unwrap_or_default(),
                    ..unpack(packed)?
                });
            }
        }
        Ok(rows)
    }
}

/// Of a task's payload only what says which step it resumes.
fn naming(step: &Step) -> Raw {
    Raw::of_value(&match step.kind {
        Kind::Activity => json!({"activity_execution_id": step.id}),
        Kind::Timer => json!({"timer_id": step.id}),
    })
}

fn pack(out: &mut Vec<u8>, task: &TaskRow) {
    for word in [task.task_type.as_str(), task.status.as_str()] {
        pack_bytes(out, Some(word.as_bytes()));
    }
    pack_int(out, task.attempt_count);
    for at in [
        task.available_at,
        task.leased_at,
        task.lease_expires_at,
        task.created_at,
        task.updated_at,
    ] {
        pack_time(out, at.map(|at| at.naive_utc()));
    }
}

fn unpack(packed: &mut &[u8]) -> io::Result<TaskRow> {
    let task_type = unpack_text(packed)?.unwrap_or_default().into();
    let status = unpack_text(packed)?.unwrap_or_default().into();
    let attempt_count = unpack_int(packed)?;
    let mut time = || io::Result::Ok(unpack_time(packed)?.map(|at| at.and_utc()));
    Ok(TaskRow {
        id: String::new(),
        workflow_run_id: String::new(),
        task_type,
        status,
        payload: Raw::default(),
        attempt_count,
        available_at: time()?,
        leased_at: time()?,
        lease_expires_at: time()?,
        created_at: time()?,
        updated_at: time()?,
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
    })
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
            tasks.take(&task, step).unwrap();
        }
        let mut steps = [Step {
            kind: Kind::Timer,
            id: "t".into(),
            events: Vec::new(),
            row: None,
            attempts: Vec::new(),
            tasks: Vec::new(),
            timeout: false,
        }];
        tasks.assign(&mut steps);
        let found = tasks.of("run", &steps, ["d", "c", "unknown"].into_iter());
        let found = found.unwrap();
        let found: Vec<_> = found
            .iter()
            .map(|row| (row.id.as_str(), row.payload.0.as_deref()))
            .collect();
        let named = Some(r#"{"timer_id":"t"}"#);
        assert_eq!(found, [("b", named), ("c", named), ("d", None)]);
    }
}
