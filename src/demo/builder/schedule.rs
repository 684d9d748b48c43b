//! Schedules and their own small history.

use chrono::TimeDelta;
use serde_json::{Value as Json, json};

use super::model::Time;
use super::{IdMint, RunBuilder, compact, iso_offset};
use crate::demo::rows::InsertRow;

/// One schedule that starts workflows.
#[derive(Clone, Debug)]
pub struct ScheduleBuilder {
    mint: IdMint,
    id: String,
    key: String,
    namespace: String,
    spec: Json,
    action: Json,
    overlap: &'static str,
    note: Option<String>,
    status: &'static str,
    created_at: Time,
    updated_at: Time,
    next_fire_at: Option<Time>,
    last_fired_at: Option<Time>,
    paused_at: Option<Time>,
    deleted_at: Option<Time>,
    skipped: Option<(&'static str, Time)>,
    latest: Option<String>,
    recent: Vec<Json>,
    fires: u32,
    events: Vec<InsertRow>,
}

impl ScheduleBuilder {
    pub fn cron(key: &str, cron: &str, kind: &str, at: Time, next: Time) -> Self {
        let mut mint = IdMint::new(format!("schedule:{key}"));
        let mut schedule = Self {
            id: mint.row(at),
            mint,
            key: key.to_owned(),
            namespace: "default".to_owned(),
            spec: json!({"cron_expressions": [cron], "timezone": "Europe/Berlin"}),
            action: json!({
                "workflow_type": kind,
                "workflow_class": format!(r"App\Workflows\{}Workflow", super::pascal(kind)),
                "input": [],
            }),
            overlap: "skip",
            note: None,
            status: "active",
            created_at: at,
            updated_at: at,
            next_fire_at: Some(next),
            last_fired_at: None,
            paused_at: None,
            deleted_at: None,
            skipped: None,
            latest: None,
            recent: Vec::new(),
            fires: 0,
            events: Vec::new(),
        };
        let payload = json!({
            "spec": schedule.spec,
            "action": schedule.action,
            "overlap_policy": schedule.overlap,
            "next_fire_at": iso_offset(next),
        });
        schedule.event("ScheduleCreated", payload, None, at);
        schedule
    }

    #[must_use]
    pub fn note(mut self, note: &str) -> Self {
        self.note = Some(note.to_owned());
        self
    }

    /// The schedule started `run`, `lag` after the occurrence was due.
    pub fn triggered(&mut self, run: &RunBuilder, lag: TimeDelta, next: Time) -> &mut Self {
        let at = run.started_at;
        let occurrence = occurrence(at - lag);
        let payload = json!({
            "workflow_instance_id": run.instance_id(),
            "workflow_run_id": run.run_id(),
            "outcome": "scheduled",
            "effective_overlap_policy": self.overlap,
            "trigger_number": self.fires + 1,
            "occurrence_time": occurrence,
        });
        // The snapshot in the event is the schedule as it was before it fired.
        self.event("ScheduleTriggered", payload, Some(run), at);
        self.fires += 1;
        self.last_fired_at = Some(at);
        self.next_fire_at = Some(next);
        self.latest = Some(run.instance_id().to_owned());
        self.recent.push(json!({
            "workflow_id": run.instance_id(),
            "run_id": run.run_id(),
            "outcome": "scheduled",
            "fired_at": iso_offset(at),
            "occurrence_time": occurrence,
            "fire_lag_ms": lag.num_milliseconds(),
        }));
        self
    }

    pub fn skipped(&mut self, reason: &'static str, at: Time) -> &mut Self {
        self.skipped = Some((reason, at));
        let payload = json!({
            "reason": reason,
            "skipped_trigger_count": 1,
            "last_skipped_at": iso_offset(at),
        });
        self.event("ScheduleTriggerSkipped", payload, None, at);
        self
    }

    pub fn paused(&mut self, reason: &str, at: Time) -> &mut Self {
        self.status = "paused";
        self.paused_at = Some(at);
        self.note = Some(reason.to_owned());
        let payload = json!({"reason": reason, "paused_at": iso_offset(at)});
        self.event("SchedulePaused", payload, None, at);
        self
    }

    pub fn deleted(&mut self, at: Time) -> &mut Self {
        self.status = "deleted";
        self.deleted_at = Some(at);
        self.next_fire_at = None;
        let payload = json!({"reason": "deleted", "deleted_at": iso_offset(at)});
        self.event("ScheduleDeleted", payload, None, at);
        self
    }

    fn event(&mut self, kind: &'static str, mut payload: Json, run: Option<&RunBuilder>, at: Time) {
        self.updated_at = at;
        payload["schedule"] = compact(json!({
            "id": self.id,
            "schedule_id": self.key,
            "namespace": self.namespace,
            "status": self.status,
            "overlap_policy": self.overlap,
            "next_fire_at": self.next_fire_at.map(iso_offset),
            "last_fired_at": self.last_fired_at.map(iso_offset),
            "paused_at": self.paused_at.map(iso_offset),
            "deleted_at": self.deleted_at.map(iso_offset),
            "fires_count": self.fires,
            "skipped_trigger_count": u32::from(self.skipped.is_some()),
            "latest_workflow_instance_id": self.latest,
            "note": self.note,
        }));
        let sequence = u32::try_from(self.events.len() + 1).expect("few events");
        self.events.push(
            InsertRow::new("workflow_schedule_history_events")
                .set("id", self.mint.row(at))
                .set("workflow_schedule_id", &self.id)
                .set("schedule_id", &self.key)
                .set("namespace", &self.namespace)
                .set("sequence", sequence)
                .set("event_type", kind)
                .json("payload", Some(&payload))
                .set("workflow_instance_id", run.map(RunBuilder::instance_id))
                .set("workflow_run_id", run.map(RunBuilder::run_id))
                .time("recorded_at", at)
                .stamps(at, at),
        );
    }

    pub fn build(mut self) -> Vec<InsertRow> {
        let recent = (!self.recent.is_empty()).then(|| Json::Array(self.recent.clone()));
        let row = InsertRow::new("workflow_schedules")
            .set("id", &self.id)
            .set("schedule_id", &self.key)
            .set("namespace", &self.namespace)
            .json("spec", Some(&self.spec))
            .json("action", Some(&self.action))
            .set("status", self.status)
            .set("overlap_policy", self.overlap)
            .set("note", self.note.clone())
            .set("jitter_seconds", 0)
            .set("fires_count", self.fires)
            .set("failures_count", 0)
            .json("recent_actions", recent.as_ref())
            .time("last_fired_at", self.last_fired_at)
            .time("next_fire_at", self.next_fire_at)
            .set("latest_workflow_instance_id", self.latest.clone())
            .set("connection", "redis")
            .set("queue", "reports")
            .time("paused_at", self.paused_at)
            .time("deleted_at", self.deleted_at)
            .set("last_skip_reason", self.skipped.map(|(reason, _)| reason))
            .time("last_skipped_at", self.skipped.map(|(_, at)| at))
            .set("skipped_trigger_count", i64::from(self.skipped.is_some()))
            .stamps(self.created_at, self.updated_at);
        self.events.insert(0, row);
        self.events
    }
}

impl RunBuilder {
    /// The run knows which schedule started it, and for which occurrence.
    pub fn triggered_by(&mut self, schedule: &ScheduleBuilder, lag: TimeDelta) -> &mut Self {
        let payload = json!({
            "schedule_id": schedule.key,
            "schedule_ulid": schedule.id,
            "cron_expression": schedule.spec["cron_expressions"][0],
            "timezone": schedule.spec["timezone"],
            "overlap_policy": schedule.overlap,
            "trigger_number": schedule.fires + 1,
            "occurrence_time": occurrence(self.at - lag),
        });
        self.event("ScheduleTriggered", payload, None, None);
        self
    }
}

/// Occurrences keep their microseconds and an offset, unlike every other time in JSON.
fn occurrence(at: Time) -> String {
    at.format("%Y-%m-%dT%H:%M:%S%.6f+00:00").to_string()
}
