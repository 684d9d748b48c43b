//! Timers: fired, still to fire, or cancelled by what ends the run.

use chrono::TimeDelta;
use serde_json::json;

use super::draft::{Draft, NextTask, Subject, Time, Timer, Wait, stamp};
use crate::demo::rows::InsertRow;

impl Draft<'_> {
    /// A timer that fires, and the task that carries the run on.
    pub fn timer(&mut self) {
        let delay = self.pace.num_seconds().max(1);
        let (id, step, task, scheduled) = self.schedule_timer(delay, None);
        let fire_at = scheduled + TimeDelta::seconds(delay);
        self.at = fire_at.min(self.clock);
        let fired = self.at;
        let payload = json!({"timer_id": id});
        self.task(
            &task,
            "timer",
            "completed",
            &payload,
            fire_at,
            Some((fired, None)),
        );
        let workflow_task = self.task.replace(task.clone());
        self.event(
            "TimerFired",
            Subject::Timer(id.clone()),
            &json!({
                "timer_id": id, "sequence": step, "delay_seconds": delay,
                "fire_at": stamp(fire_at), "fired_at": stamp(fired),
            }),
        );
        self.task = workflow_task;
        self.close_timer(&id, step, delay, scheduled, fire_at, "fired", &task);
        self.workflow_task(
            "completed",
            &json!({
                "workflow_wait_kind": "timer", "open_wait_id": format!("timer:{id}"),
                "resume_source_kind": "timer", "resume_source_id": id, "timer_id": id,
                "workflow_sequence": step, "workflow_event_type": "TimerFired",
            }),
        );
    }

    /// A timer that is still to fire.
    pub fn open_timer(&mut self) -> NextTask {
        let ahead = TimeDelta::seconds(self.rng.i64(60..5 * 86_400));
        let fire_at = self.clock + ahead;
        let delay = (fire_at - self.at).num_seconds();
        let (id, step, task, scheduled) = self.schedule_timer(delay, Some(fire_at));
        self.task(
            &task,
            "timer",
            "ready",
            &json!({"timer_id": id}),
            fire_at,
            None,
        );
        self.close_timer(&id, step, delay, scheduled, fire_at, "pending", &task);
        NextTask {
            id: task,
            task_type: "timer",
            status: "ready",
            available: fire_at,
            lease_expires: None,
        }
    }

    /// A timer that something else ends; `end` writes what comes before its cancellation.
    pub fn cancelled_timer(
        &mut self,
        end: impl FnOnce(&mut Self) -> Option<(String, i64)>,
    ) -> Option<(String, i64)> {
        let delay = 86_400;
        let (id, step, task, scheduled) = self.schedule_timer(delay, None);
        let fire_at = scheduled + TimeDelta::seconds(delay);
        self.task(
            &task,
            "timer",
            "cancelled",
            &json!({"timer_id": id}),
            fire_at,
            None,
        );
        self.pass();
        let command = end(self);
        let payload = json!({
            "timer_id": id, "sequence": step, "delay_seconds": delay,
            "fire_at": stamp(fire_at), "cancelled_at": stamp(self.at),
        });
        let subject = Subject::Timer(id.clone());
        match &command {
            Some((id, sequence)) => {
                self.command_event("TimerCancelled", subject, &payload, (id, *sequence), None);
            }
            None => self.event("TimerCancelled", subject, &payload),
        }
        self.close_timer(&id, step, delay, scheduled, fire_at, "cancelled", &task);
        command
    }

    fn schedule_timer(&mut self, delay: i64, fire_at: Option<Time>) -> (String, i64, String, Time) {
        let id = self.ids.at(self.at);
        let task = self.ids.at(self.at);
        let step = self.next_step();
        let fire_at = fire_at.unwrap_or(self.at + TimeDelta::seconds(delay));
        self.event(
            "TimerScheduled",
            Subject::Timer(id.clone()),
            &json!({
                "timer_id": id, "sequence": step, "delay_seconds": delay, "fire_at": stamp(fire_at),
            }),
        );
        (id, step, task, self.at)
    }

    #[expect(clippy::too_many_arguments, reason = "the columns of one row")]
    fn close_timer(
        &mut self,
        id: &str,
        step: i64,
        delay: i64,
        scheduled: Time,
        fire_at: Time,
        status: &'static str,
        task: &str,
    ) {
        let fired_at = (status == "fired").then_some(self.at);
        let cancelled_at = (status == "cancelled").then_some(self.at);
        self.rows.push(
            InsertRow::new("workflow_run_timers")
                .set("id", id)
                .set("workflow_run_id", &self.who.run)
                .set("sequence", step)
                .set("status", status)
                .set("delay_seconds", delay)
                .time("fire_at", fire_at)
                .time("fired_at", fired_at)
                .stamps(scheduled, self.at),
        );
        self.timers.push(Timer {
            id: id.to_owned(),
            step,
            status,
            delay,
            fire_at,
            fired_at,
            cancelled_at,
        });
        let (wait, task_status) = match status {
            "fired" => ("resolved", "completed"),
            "cancelled" => ("cancelled", "cancelled"),
            _ => ("open", "ready"),
        };
        self.waits.push(Wait {
            id: format!("timer:{id}"),
            kind: "timer",
            step,
            status: wait,
            source_status: status,
            opened: scheduled,
            deadline: Some(fire_at),
            resolved: fired_at.or(cancelled_at),
            target_name: None,
            target_type: Some("timer".into()),
            task: Some((task.to_owned(), "timer", task_status)),
            resume: ("timer", Some(id.to_owned())),
        });
    }
}
