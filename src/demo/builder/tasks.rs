//! Workflow tasks and transport: who may run, who claimed, what got lost on the way.

use chrono::TimeDelta;
use serde_json::{Value as Json, json};

use super::model::{Task, Time};
use super::{LEASE, RunBuilder, millis};

impl RunBuilder {
    /// A new task, published at once; returns its index.
    pub(super) fn push_task(&mut self, kind: &'static str, payload: Json, due: Time) -> usize {
        self.tasks.push(Task {
            id: self.mint.row(self.at),
            kind,
            status: "ready",
            compatibility: self.start.compatibility.clone(),
            payload,
            connection: self.start.connection.clone(),
            queue: Some(self.start.queue.clone()),
            available_at: due,
            leased_at: None,
            lease_owner: None,
            lease_expires_at: None,
            attempt_count: 0,
            last_dispatch_attempt_at: Some(self.at),
            last_dispatched_at: Some(self.at),
            last_dispatch_error: None,
            last_claim_failed_at: None,
            last_claim_error: None,
            repair_count: 0,
            repair_available_at: None,
            last_error: None,
            created_at: self.at,
            updated_at: self.at,
        });
        self.tasks.len() - 1
    }

    pub(super) fn lease(&mut self, index: usize, worker: Option<&str>) {
        let at = self.at;
        let task = &mut self.tasks[index];
        task.status = "leased";
        task.leased_at = Some(at);
        task.lease_owner = Some(worker.map_or_else(|| task.id.clone(), str::to_owned));
        task.lease_expires_at = Some(at + LEASE);
        task.attempt_count += 1;
        task.updated_at = at;
    }

    /// Ends a task: the lease expiry goes, the owner stays, as the engine leaves it.
    pub(super) fn close_task(&mut self, index: usize, status: &'static str) {
        let at = self.at;
        let task = &mut self.tasks[index];
        task.status = status;
        task.lease_expires_at = None;
        task.updated_at = at;
    }

    /// From the end, where the task in hand is: a long story has thousands behind it.
    fn task_index(&self, id: &str) -> usize {
        self.tasks
            .iter()
            .rposition(|task| task.id == id)
            .expect("a task in hand is in the list")
    }

    /// The id of the workflow task whose code runs now; claims the ready one if none does.
    pub fn work(&mut self) -> String {
        if let Some(id) = &self.working {
            return id.clone();
        }
        let index = self
            .tasks
            .iter()
            .position(|task| task.status == "ready" && task.kind == "workflow")
            .expect("workflow code only runs on a ready workflow task");
        let due = self.tasks[index].available_at;
        self.pass_until(due).pass(millis(140));
        self.lease(index, None);
        let id = self.tasks[index].id.clone();
        self.working = Some(id.clone());
        id
    }

    /// Workflow code reached a point where it can only wait.
    pub fn park(&mut self) -> &mut Self {
        if let Some(id) = self.working.take() {
            let index = self.task_index(&id);
            self.pass(millis(35));
            self.close_task(index, "completed");
            self.status = "waiting";
        }
        self
    }

    /// Ends the running workflow task in a closing run.
    pub(super) fn finish_work(&mut self, status: &'static str) {
        if let Some(id) = self.working.take() {
            let index = self.task_index(&id);
            self.close_task(index, status);
        }
    }

    /// The worker dies here: its lease stays behind.
    pub fn leave_leased(&mut self) -> &mut Self {
        self.working = None;
        self
    }

    /// The task that wakes workflow code up. One open workflow task is enough for any number of
    /// reasons, so a second one is not written.
    pub(super) fn resume(&mut self, payload: Json) {
        let open = |task: &Task| task.is_open() && task.kind == "workflow";
        if !self.tasks.iter().any(open) {
            self.push_task("workflow", payload, self.at);
        }
    }

    /// The open task, for situations that damage it. Panics without one: the story is wrong then.
    pub fn open_task(&mut self) -> &mut Task {
        self.park();
        self.tasks
            .iter_mut()
            .rev()
            .find(|task| task.is_open())
            .expect("the story says a task is open")
    }

    /// Somebody deleted every open task row.
    pub fn lose_tasks(&mut self) -> &mut Self {
        self.park();
        self.tasks.retain(|task| !task.is_open());
        self
    }

    /// Somebody deleted the task of this activity.
    pub fn lose_task_of(&mut self, activity: usize) -> &mut Self {
        let id = self.activities[activity].id.clone();
        self.tasks
            .retain(|task| !(task.is_open() && task.payload["activity_execution_id"] == id));
        self
    }

    /// The publish failed with `error`; nothing reached the queue.
    pub fn dispatch_fails(&mut self, error: &str) -> &mut Self {
        let at = self.at;
        let task = self.open_task();
        task.last_dispatch_attempt_at = Some(at);
        task.last_dispatched_at = None;
        task.last_dispatch_error = Some(error.to_owned());
        task.repair_available_at = Some(at);
        task.updated_at = at;
        self
    }

    /// The process died between commit and publish.
    pub fn never_dispatched(&mut self) -> &mut Self {
        let task = self.open_task();
        task.last_dispatch_attempt_at = None;
        task.last_dispatched_at = None;
        self
    }

    /// The watchdog tried `count` times to publish and now waits until `until`.
    pub fn backs_off(&mut self, count: u32, until: Time) -> &mut Self {
        let task = self.open_task();
        task.repair_count = count;
        task.repair_available_at = Some(until);
        self
    }

    /// A worker refused the task.
    pub fn claim_fails(&mut self, error: &str, retry_in: TimeDelta) -> &mut Self {
        let at = self.at;
        let task = self.open_task();
        task.last_claim_failed_at = Some(at);
        task.last_claim_error = Some(error.to_owned());
        task.repair_available_at = Some(at + retry_in);
        task.updated_at = at;
        self
    }

    /// Replay stopped: the code no longer fits what history recorded.
    pub fn replay_blocks(&mut self, reason: &str, details: Json, error: &str) -> &mut Self {
        let id = self.work();
        self.pass(millis(60));
        let index = self.task_index(&id);
        self.finish_work("failed");
        let task = &mut self.tasks[index];
        let mut payload = match task.payload.take() {
            Json::Object(map) => Json::Object(map),
            _ => json!({}),
        };
        super::extend(
            &mut payload,
            json!({"replay_blocked": true, "replay_blocked_reason": reason}),
        );
        super::extend(&mut payload, details);
        task.payload = payload;
        task.last_error = Some(error.to_owned());
        self
    }
}
