//! The counts at the top, each leading to what it counts.

use super::{backlog::runs_with, oldest_note, runs_href};
use crate::{
    durable::{
        collect::Gathered,
        store::{metrics::Work, runs::Attention},
    },
    web::{format::number, layout::Layout},
};

pub(super) struct Tile {
    pub href: String,
    pub label: &'static str,
    pub count: String,
    pub note: String,
}

pub(super) fn tiles(layout: &Layout, gathered: &Gathered) -> Vec<Tile> {
    let metrics = &gathered.metrics;
    let runs = &metrics.runs.counts;
    let trends = &gathered.dashboard.fleet_overview.trends;
    let of_bucket = |bucket| runs_href(layout, gathered, &[("status_bucket", bucket)]);
    let failed_share = {
        let closed = trends.hour.completed + trends.hour.failed;
        match closed {
            0 => "0 past hour".to_owned(),
            closed => format!(
                "{} past hour, {} % of closed",
                number(trends.hour.failed),
                trends.hour.failed * 100 / closed
            ),
        }
    };
    vec![
        Tile {
            href: of_bucket("running"),
            label: "Running",
            count: number(runs.running),
            note: format!("{} waiting", number(runs.waiting)),
        },
        Tile {
            href: of_bucket("completed"),
            label: "Completed",
            count: number(runs.completed),
            note: format!("{} past hour", number(trends.hour.completed)),
        },
        Tile {
            href: of_bucket("failed"),
            label: "Failed",
            count: number(gathered.dashboard.fleet_overview.current.failed),
            note: failed_share,
        },
        Tile {
            href: runs_href(
                layout,
                gathered,
                &[("attention", Attention::RepairNeeded.word())],
            ),
            label: "Nothing wakes them",
            count: number(gathered.counted.dashboard.open_repair_needed),
            note: oldest_note(
                gathered,
                gathered.counted.dashboard.oldest_open_repair_needed_at,
            ),
        },
        Tile {
            href: runs_with(layout, gathered, Work::ReadyTask),
            label: "Ready tasks",
            count: number(metrics.tasks.counts.ready_due),
            note: format!("{} unhealthy", number(metrics.tasks.unhealthy)),
        },
        Tile {
            href: runs_with(layout, gathered, Work::RetryingActivity),
            label: "Retrying activities",
            count: number(metrics.activities.counts.retrying),
            note: format!(
                "{} failed attempts",
                number(metrics.activities.counts.failed_attempts)
            ),
        },
        Tile {
            href: "#workers".to_owned(),
            label: "Workers",
            count: metrics.workers.active_workers.to_string(),
            note: match (
                gathered.counted.registered.live,
                &metrics.workers.required_compatibility,
            ) {
                (0, None) => "no marker asked for".to_owned(),
                (0, Some(_)) => format!(
                    "{} support the marker",
                    metrics.workers.active_workers_supporting_required
                ),
                (registered, _) => format!("and {} registered", number(registered)),
            },
        },
    ]
}
