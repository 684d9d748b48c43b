//! The two short forms of the activities the engine's JSON still carries: a log line each, and
//! a bar each on a chart. Made while they are written.

use chrono::{DateTime, Utc};
use serde::{Serialize, Serializer};

use super::{
    activities::{Activity, known_or_null},
    context::{Context, millis, ts},
};
use crate::durable::{payload::Payload, stored::ActivityStatus};

#[derive(Debug, Serialize)]
struct LogLine<'a> {
    id: &'a str,
    /// From zero.
    index: i64,
    #[serde(serialize_with = "ts")]
    now: Option<DateTime<Utc>>,
    class: Option<&'a str>,
    r#type: Option<&'a str>,
    status: &'a ActivityStatus,
    source_status: &'a ActivityStatus,
    history_authority: &'static str,
    history_unsupported_reason: Option<&'static str>,
    diagnostic_only: bool,
    #[serde(serialize_with = "known_or_null")]
    result: &'a Payload,
    #[serde(serialize_with = "ts")]
    created_at: Option<DateTime<Utc>>,
}

/// A bar: `x` is what ran, `y` its start and end in milliseconds since the epoch, 0 unknown.
#[derive(Debug, Serialize)]
#[serde(tag = "type")]
enum ChartBar<'a> {
    Workflow {
        x: &'a str,
        y: [i64; 2],
        diagnostic_only: bool,
    },
    Activity {
        id: &'a str,
        x: Option<&'a str>,
        y: [i64; 2],
        status: &'a ActivityStatus,
        source_status: &'a ActivityStatus,
        history_authority: &'static str,
        history_unsupported_reason: Option<&'static str>,
        diagnostic_only: bool,
    },
}

/// `logs`.
#[derive(Debug)]
pub struct Logs<'a>(pub &'a [Activity<'a>]);

impl Serialize for Logs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|activity| LogLine {
            id: &activity.id,
            index: activity.sequence.unwrap_or(1).saturating_sub(1).max(0),
            now: activity.started_at.or(activity.created_at),
            class: activity.class.as_deref(),
            r#type: activity.r#type.as_deref(),
            status: &activity.status,
            source_status: source_status(activity),
            history_authority: activity.history_authority,
            history_unsupported_reason: activity.history_unsupported_reason,
            diagnostic_only: activity.diagnostic_only,
            result: &activity.result,
            created_at: activity.last_seen_at(),
        }))
    }
}

/// `chartData`: the run's own bar first.
#[derive(Debug)]
pub struct ChartData<'a>(pub Context<'a>, pub &'a [Activity<'a>]);

impl Serialize for ChartData<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let run = &self.0.snapshot.run;
        let own = ChartBar::Workflow {
            x: &run.workflow_class,
            y: [
                edge(run.started_at.or(run.created_at)),
                edge(run.closed_at.or(run.last_progress_at).or(run.updated_at)),
            ],
            diagnostic_only: false,
        };
        let bars = self.1.iter().map(|activity| ChartBar::Activity {
            id: &activity.id,
            x: activity.class.as_deref(),
            y: [
                edge(activity.started_at.or(activity.created_at)),
                edge(activity.last_seen_at()),
            ],
            status: &activity.status,
            source_status: source_status(activity),
            history_authority: activity.history_authority,
            history_unsupported_reason: activity.history_unsupported_reason,
            diagnostic_only: activity.diagnostic_only,
        });
        serializer.collect_seq(std::iter::once(own).chain(bars))
    }
}

fn source_status<'s>(activity: &'s Activity<'_>) -> &'s ActivityStatus {
    activity.row_status.as_ref().unwrap_or(&activity.status)
}

fn edge(at: Option<DateTime<Utc>>) -> i64 {
    at.map_or(0, millis)
}
