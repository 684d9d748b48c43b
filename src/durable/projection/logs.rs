//! The two short forms of the activities the engine's JSON still carries: a log line each, and
//! a bar each on a chart.

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::{
    activities::{Activity, known_or_null},
    context::{Context, millis, ts},
};
use crate::durable::{payload::Payload, stored::ActivityStatus};

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LogLine {
    pub id: String,
    /// From zero.
    pub index: i64,
    #[serde(serialize_with = "ts")]
    pub now: Option<DateTime<Utc>>,
    pub class: Option<String>,
    pub r#type: Option<String>,
    pub status: ActivityStatus,
    pub source_status: ActivityStatus,
    pub history_authority: &'static str,
    pub history_unsupported_reason: Option<&'static str>,
    pub diagnostic_only: bool,
    #[serde(serialize_with = "known_or_null")]
    pub result: Payload,
    #[serde(serialize_with = "ts")]
    pub created_at: Option<DateTime<Utc>>,
}

/// A bar: `x` is what ran, `y` its start and end in milliseconds since the epoch, 0 unknown.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type")]
pub enum ChartBar {
    Workflow {
        x: String,
        y: [i64; 2],
        diagnostic_only: bool,
    },
    Activity {
        id: String,
        x: Option<String>,
        y: [i64; 2],
        status: ActivityStatus,
        source_status: ActivityStatus,
        history_authority: &'static str,
        history_unsupported_reason: Option<&'static str>,
        diagnostic_only: bool,
    },
}

pub fn logs(activities: &[Activity]) -> Vec<LogLine> {
    activities
        .iter()
        .map(|activity| LogLine {
            id: activity.id.clone(),
            index: activity.sequence.unwrap_or(1).saturating_sub(1).max(0),
            now: activity.started_at.or(activity.created_at),
            class: activity.class.clone(),
            r#type: activity.r#type.clone(),
            status: activity.status.clone(),
            source_status: source_status(activity),
            history_authority: activity.history_authority,
            history_unsupported_reason: activity.history_unsupported_reason,
            diagnostic_only: activity.diagnostic_only,
            result: activity.result.clone(),
            created_at: activity.last_seen_at(),
        })
        .collect()
}

/// The run's own bar first.
pub fn chart_data(cx: Context<'_>, activities: &[Activity]) -> Vec<ChartBar> {
    let run = &cx.snapshot.run;
    let own = ChartBar::Workflow {
        x: run.workflow_class.clone(),
        y: [
            edge(run.started_at.or(run.created_at)),
            edge(run.closed_at.or(run.last_progress_at).or(run.updated_at)),
        ],
        diagnostic_only: false,
    };
    let bars = activities.iter().map(|activity| ChartBar::Activity {
        id: activity.id.clone(),
        x: activity.class.clone(),
        y: [
            edge(activity.started_at.or(activity.created_at)),
            edge(activity.last_seen_at()),
        ],
        status: activity.status.clone(),
        source_status: source_status(activity),
        history_authority: activity.history_authority,
        history_unsupported_reason: activity.history_unsupported_reason,
        diagnostic_only: activity.diagnostic_only,
    });
    std::iter::once(own).chain(bars).collect()
}

fn source_status(activity: &Activity) -> ActivityStatus {
    activity
        .row_status
        .as_ref()
        .unwrap_or(&activity.status)
        .clone()
}

fn edge(at: Option<DateTime<Utc>>) -> i64 {
    at.map_or(0, millis)
}
