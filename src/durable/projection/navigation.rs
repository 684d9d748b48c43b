//! The runs of the instance, for stepping from one to the next.

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::{
    context::{Context, ts},
    current_run::current_run,
    related::Related,
};
use crate::durable::stored::{ClosedReason, RunStatus, StatusBucket};

/// One run of the instance.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NavigationRun {
    pub instance_id: String,
    pub run_id: String,
    pub run_number: i64,
    pub status: RunStatus,
    /// Its summary's; none when it has no summary.
    pub status_bucket: Option<StatusBucket>,
    pub closed_reason: Option<ClosedReason>,
    #[serde(serialize_with = "ts")]
    pub started_at: Option<DateTime<Utc>>,
    #[serde(serialize_with = "ts")]
    pub closed_at: Option<DateTime<Utc>>,
    pub is_current_run: bool,
    pub is_selected_run: bool,
}

/// By run number.
pub fn navigation(cx: Context<'_>, related: &Related<'_>) -> Vec<NavigationRun> {
    if cx.snapshot.instance.missing {
        return Vec::new();
    }
    let selected = &cx.snapshot.run;
    let current = current_run(related, &selected.workflow_instance_id);
    related
        .of_instance(&selected.workflow_instance_id)
        .iter()
        .map(|other| {
            let run = &other.run;
            NavigationRun {
                instance_id: run.workflow_instance_id.clone(),
                run_id: run.id.clone(),
                run_number: run.run_number,
                status: run.status.clone(),
                status_bucket: other.status_bucket.clone(),
                closed_reason: other
                    .closed_reason
                    .clone()
                    .or_else(|| run.closed_reason.clone()),
                started_at: other
                    .summary_started_at
                    .or(run.started_at)
                    .or(run.created_at),
                closed_at: other.summary_closed_at.or(run.closed_at),
                is_current_run: current.is_some_and(|(current, _)| current.run.id == run.id),
                is_selected_run: run.id == selected.id,
            }
        })
        .collect()
}
