//! Activities: scheduled, claimed, beating, failing, retried, done.

use chrono::TimeDelta;
use serde_json::{Value as Json, json};

use super::model::{Activity, Attempt, Failure, Group, Policy};
use super::{LEASE, RunBuilder, Thrown, blob, extend, iso, iso_offset, pascal, snapshots};

/// A call to an activity, as workflow code writes it.
#[derive(Clone, Debug)]
pub struct Step {
    kind: String,
    class: String,
    arguments: Json,
    queue: Option<String>,
    policy: Policy,
    group: Option<Group>,
}

impl Step {
    pub fn new(kind: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            class: format!(r"App\Activities\{}Activity", pascal(kind)),
            arguments: json!([]),
            queue: None,
            policy: Policy::ONCE,
            group: None,
        }
    }

    #[must_use]
    pub fn args(mut self, arguments: Json) -> Self {
        self.arguments = arguments;
        self
    }

    #[must_use]
    pub fn queue(mut self, queue: &str) -> Self {
        self.queue = Some(queue.to_owned());
        self
    }

    #[must_use]
    pub fn class(mut self, class: &str) -> Self {
        class.clone_into(&mut self.class);
        self
    }

    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    #[must_use]
    pub fn group(mut self, group: Group) -> Self {
        self.group = Some(group);
        self
    }
}

impl RunBuilder {
    /// Workflow code asks for an activity; returns its handle.
    pub fn schedule(&mut self, step: Step) -> usize {
        let task = self.work();
        let index = self.push_activity(step, true);
        let payload = self.activity_payload(index, json!({}), false);
        self.event("ActivityScheduled", payload, Some(&task), None);
        let id = self.activities[index].id.clone();
        self.push_activity_task(index, json!({"activity_execution_id": id}), 0);
        index
    }

    /// An execution row that history does not know, as older engines left behind.
    pub fn row_only_activity(&mut self, step: Step, status: &'static str) -> usize {
        let index = self.push_activity(step, false);
        let at = self.at;
        let activity = &mut self.activities[index];
        activity.status = status;
        activity.started_at = Some(at);
        if !activity.is_open() {
            activity.closed_at = Some(at);
        }
        index
    }

    fn push_activity(&mut self, step: Step, typed: bool) -> usize {
        let sequence = self.next_step();
        self.activities.push(Activity {
            id: self.mint.row(self.at),
            sequence,
            kind: step.kind,
            class: step.class,
            status: "pending",
            arguments: blob(&step.arguments),
            result: None,
            exception: None,
            connection: Some("redis".to_owned()),
            queue: Some(step.queue.unwrap_or_else(|| self.start.queue.clone())),
            policy: step.policy,
            group: step.group,
            attempts: Vec::new(),
            created_at: self.at,
            started_at: None,
            closed_at: None,
            last_heartbeat_at: None,
            typed,
            row: true,
        });
        self.activities.len() - 1
    }

    fn push_activity_task(&mut self, index: usize, payload: Json, backoff: u32) -> usize {
        let due = self.at + TimeDelta::seconds(backoff.into());
        let task = self.push_task("activity", payload, due);
        let activity = &self.activities[index];
        self.tasks[task].connection.clone_from(&activity.connection);
        self.tasks[task].queue.clone_from(&activity.queue);
        task
    }

    /// The keys every activity event starts with, `more`, the snapshot and the group keys.
    fn activity_payload(&self, index: usize, more: Json, attempted: bool) -> Json {
        let activity = &self.activities[index];
        let mut payload = json!({"activity_execution_id": activity.id});
        if attempted {
            payload["activity_attempt_id"] = json!(activity.attempts.last().map(|a| &a.id));
        }
        extend(
            &mut payload,
            json!({
                "activity_class": activity.class,
                "activity_type": activity.kind,
                "sequence": activity.sequence,
            }),
        );
        extend(&mut payload, more);
        payload["activity"] = snapshots::activity(activity);
        if let Some(group) = &activity.group {
            extend(&mut payload, group.keys());
            payload["parallel_group_path"] = group.path();
        }
        payload
    }

    fn activity_task(&self, index: usize) -> usize {
        let id = self.activities[index].id.as_str();
        self.tasks
            .iter()
            .position(|task| task.is_open() && task.payload["activity_execution_id"] == id)
            .expect("an activity attempt runs on an open activity task")
    }

    /// A worker claims the activity and starts the next attempt.
    pub fn begin(&mut self, index: usize) -> &mut Self {
        self.begin_on(index, None)
    }

    /// The same, by a named worker outside the application.
    pub fn begin_on(&mut self, index: usize, worker: Option<&str>) -> &mut Self {
        self.park();
        let task = self.activity_task(index);
        let due = self.tasks[task].available_at;
        self.pass_until(due);
        self.lease(task, worker);
        let (task_id, owner) = {
            let task = &self.tasks[task];
            let owner = task
                .lease_owner
                .clone()
                .expect("a leased task has an owner");
            (task.id.clone(), owner)
        };
        let at = self.at;
        let attempt = Attempt {
            id: self.mint.code(at),
            task_id: task_id.clone(),
            number: u32::try_from(self.activities[index].attempts.len() + 1).expect("few attempts"),
            status: "running",
            lease_owner: owner,
            started_at: at,
            last_heartbeat_at: None,
            lease_expires_at: Some(at + LEASE),
            closed_at: None,
        };
        let number = attempt.number;
        let activity = &mut self.activities[index];
        activity.status = "running";
        activity.started_at = Some(at);
        activity.last_heartbeat_at = None;
        activity.attempts.push(attempt);
        let payload = self.activity_payload(index, json!({"attempt_number": number}), true);
        self.event("ActivityStarted", payload, Some(&task_id), None);
        self
    }

    /// The running attempt says it is alive; the lease moves on.
    pub fn beat(&mut self, index: usize, progress: Json) -> &mut Self {
        let (at, expires) = (self.at, self.at + LEASE);
        let task = self.activity_task(index);
        self.tasks[task].lease_expires_at = Some(expires);
        let activity = &mut self.activities[index];
        activity.last_heartbeat_at = Some(at);
        let attempt = activity.attempts.last_mut().expect("a running attempt");
        attempt.last_heartbeat_at = Some(at);
        attempt.lease_expires_at = Some(expires);
        let more = json!({
            "attempt_number": attempt.number,
            "heartbeat_at": iso(at),
            "lease_expires_at": iso(expires),
        });
        let attempt = snapshots::attempt(attempt);
        let mut payload = self.activity_payload(index, more, true);
        payload["activity_attempt"] = attempt;
        payload["progress"] = progress;
        let task = self.tasks[task].id.clone();
        self.event("ActivityHeartbeatRecorded", payload, Some(&task), None);
        self
    }

    pub fn complete(&mut self, index: usize, result: &Json) -> &mut Self {
        let task = self.activity_task(index);
        let encoded = blob(result);
        self.close_attempt(index, "completed", "completed");
        self.activities[index].result = Some(encoded.clone());
        let more = json!({
            "attempt_number": self.activities[index].attempts.len(),
            "result": encoded,
            "payload_codec": "avro",
        });
        self.append_outcome(index, task, "ActivityCompleted", more);
        self
    }

    /// One whole activity that simply works: scheduled, claimed after a moment, done.
    pub fn run_step(&mut self, step: Step, took: TimeDelta, result: &Json) -> &mut Self {
        let index = self.schedule(step);
        self.park().pass(super::millis(180));
        self.begin(index).pass(took);
        self.complete(index, result)
    }

    /// The attempt throws. The policy decides: another try later, or the activity has failed.
    pub fn fail_attempt(&mut self, index: usize, thrown: &Thrown) -> &mut Self {
        let policy = self.activities[index].policy;
        let made = u32::try_from(self.activities[index].attempts.len()).expect("few attempts");
        let permanent =
            thrown.non_retryable || policy.non_retryable.contains(&thrown.class.as_str());
        let more_tries = policy.max_attempts.is_none_or(|max| made < max);
        self.activities[index].exception = Some(thrown.encoded());
        if more_tries && !permanent {
            self.retry_later(
                index,
                json!({
                    "exception_type": null,
                    "exception_class": thrown.class,
                    "message": thrown.message,
                    "code": thrown.code,
                    "exception": thrown.json(),
                }),
                None,
            );
        } else {
            let thrown = Thrown {
                non_retryable: permanent,
                ..thrown.clone()
            };
            self.fail_activity(index, &thrown, "activity", json!({}));
        }
        self
    }

    fn retry_later(&mut self, index: usize, why: Json, timeout: Option<&str>) {
        let old = self.activity_task(index);
        self.close_attempt(index, "failed", "pending");
        let activity = &mut self.activities[index];
        activity.closed_at = None;
        let made = u32::try_from(activity.attempts.len()).expect("few attempts");
        let backoff = activity.policy.backoff_after(made);
        let attempt = activity.attempts.last().expect("it ran").id.clone();
        let (id, policy) = (activity.id.clone(), activity.policy);
        self.close_task(old, "completed");
        let old_id = self.tasks[old].id.clone();
        let mut task_payload = json!({
            "activity_execution_id": id,
            "retry_of_task_id": old_id,
            "retry_after_attempt_id": attempt,
            "retry_after_attempt": made,
            "retry_backoff_seconds": backoff,
            "max_attempts": policy.max_attempts,
            "retry_policy": policy.json(),
        });
        if let Some(kind) = timeout {
            task_payload["timeout_kind"] = json!(kind);
        }
        let retry = self.push_activity_task(index, task_payload, backoff);
        // A retry task starts where the last attempt left off.
        self.tasks[retry].attempt_count = made;
        let mut more = json!({
            "retry_task_id": self.tasks[retry].id,
            "retry_of_task_id": old_id,
            "retry_available_at": iso(self.tasks[retry].available_at),
            "retry_backoff_seconds": backoff,
            "retry_after_attempt_id": attempt,
            "retry_after_attempt": made,
            "max_attempts": policy.max_attempts,
            "retry_policy": policy.json(),
        });
        if let Some(kind) = timeout {
            more["timeout_kind"] = json!(kind);
        }
        extend(&mut more, why);
        let payload = self.activity_payload(index, more, true);
        self.event("ActivityRetryScheduled", payload, Some(&old_id), None);
    }

    /// The activity has failed for good; `limit` carries the structural-limit keys, if any.
    pub fn fail_activity(
        &mut self,
        index: usize,
        thrown: &Thrown,
        category: &'static str,
        limit: Json,
    ) -> String {
        let task = self.activity_task(index);
        self.close_attempt(index, "failed", "failed");
        self.activities[index].exception = Some(thrown.encoded());
        let source = self.activities[index].id.clone();
        let failure = self.push_failure("activity_execution", source, "activity", category, thrown);
        let mut more = json!({
            "attempt_number": self.activities[index].attempts.len(),
            "failure_id": failure,
            "failure_category": category,
            "non_retryable": thrown.non_retryable,
            "exception_type": null,
            "exception_class": thrown.class,
            "message": thrown.message,
            "code": thrown.code,
            "exception": thrown.json(),
        });
        extend(&mut more, limit);
        self.append_outcome(index, task, "ActivityFailed", more);
        failure
    }

    /// The activity missed a deadline for the last time.
    pub fn time_out_activity(&mut self, index: usize, kind: &str, message: &str) -> &mut Self {
        let task = self.activity_task(index);
        // Nobody will finish the attempt any more, so its task ends before the event is written.
        self.close_task(task, "cancelled");
        self.close_attempt(index, "expired", "failed");
        let thrown = Thrown::new(
            r"Workflow\V2\Exceptions\ActivityTimeoutException",
            message.to_owned(),
        )
        .at("", 0, "");
        let source = self.activities[index].id.clone();
        let failure =
            self.push_failure("activity_execution", source, "timeout", "timeout", &thrown);
        let activity = &self.activities[index];
        let close = activity.policy.start_to_close.zip(activity.started_at);
        let more = json!({
            "attempt_number": activity.attempts.len(),
            "failure_id": failure,
            "failure_category": "timeout",
            "timeout_kind": kind,
            "message": message,
            "exception_class": thrown.class,
            "schedule_deadline_at": null,
            "close_deadline_at": close.map(|(s, from)| iso_offset(from + TimeDelta::seconds(s.into()))),
            "schedule_to_close_deadline_at": null,
            "heartbeat_deadline_at": null,
        });
        self.append_outcome(index, task, "ActivityTimedOut", more);
        self
    }

    pub(super) fn push_failure(
        &mut self,
        source_kind: &'static str,
        source_id: String,
        propagation: &'static str,
        category: &'static str,
        thrown: &Thrown,
    ) -> String {
        let id = self.mint.row(self.at);
        self.failures.push(Failure {
            id: id.clone(),
            source_kind,
            source_id,
            propagation,
            category: Some(category),
            non_retryable: thrown.non_retryable,
            handled: false,
            class: thrown.class.clone(),
            message: thrown.message.clone(),
            file: thrown.file.clone(),
            line: thrown.line,
            trace: if thrown.thrower.is_empty() {
                String::new()
            } else {
                thrown.trace_preview()
            },
            exception: thrown.json(),
            at: self.at,
        });
        id
    }

    fn close_attempt(&mut self, index: usize, attempt: &'static str, status: &'static str) {
        let at = self.at;
        let activity = &mut self.activities[index];
        activity.status = status;
        activity.closed_at = Some(at);
        if let Some(last) = activity.attempts.last_mut() {
            last.status = attempt;
            last.closed_at = Some(at);
            last.lease_expires_at = None;
        }
    }

    /// Appends the terminal event, ends the task, wakes the workflow unless a parallel group
    /// still has members at work.
    fn append_outcome(&mut self, index: usize, task: usize, kind: &'static str, more: Json) {
        let payload = self.activity_payload(index, more, true);
        let task_id = self.tasks[task].id.clone();
        self.event(kind, payload, Some(&task_id), None);
        if self.tasks[task].is_open() {
            self.close_task(task, "completed");
        }
        let activity = &self.activities[index];
        let group = activity.group.as_ref().map(|group| group.id.clone());
        let barrier = kind == "ActivityCompleted"
            && group.is_some_and(|id| {
                let same = |g: &Option<Group>| g.as_ref().is_some_and(|g| g.id == id);
                self.activities
                    .iter()
                    .any(|a| a.is_open() && same(&a.group))
                    || self
                        .children
                        .iter()
                        .any(|c| c.resolved_at.is_none() && same(&c.group))
            });
        if barrier {
            return;
        }
        let resume = json!({
            "workflow_wait_kind": "activity",
            "open_wait_id": format!("activity:{}", activity.id),
            "resume_source_kind": "activity_execution",
            "resume_source_id": activity.id,
            "activity_execution_id": activity.id,
            "activity_attempt_id": activity.attempts.last().map(|a| &a.id),
            "activity_type": activity.kind,
            "workflow_sequence": activity.sequence,
            "workflow_event_type": kind,
        });
        self.resume(resume);
    }

    /// Workflow code caught the failure of `index` and goes on.
    pub fn handle_failure(&mut self, index: usize) -> &mut Self {
        let task = self.work();
        let activity = &self.activities[index];
        let (source, sequence) = (activity.id.clone(), activity.sequence);
        let failure = self
            .failures
            .iter_mut()
            .find(|failure| failure.source_id == source)
            .expect("a handled failure was recorded");
        failure.handled = true;
        let payload = json!({
            "failure_id": failure.id,
            "sequence": sequence,
            "failure_category": failure.category,
            "source_kind": failure.source_kind,
            "source_id": source,
            "propagation_kind": failure.propagation,
            "exception_class": failure.class,
            "message": failure.message,
            "handled": true,
        });
        self.event("FailureHandled", payload, Some(&task), None);
        self
    }

    /// The execution row is gone too; only history still knows the activity.
    pub fn lose_activity_row(&mut self, index: usize) -> &mut Self {
        self.activities[index].row = false;
        self
    }
}
