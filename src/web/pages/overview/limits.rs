//! The structural limits in force, and the runs that come near one.

use super::runs_href;
use crate::{
    durable::{collect::Gathered, store::metrics::threshold},
    web::{format::number, layout::Layout},
};

pub(super) struct LimitView {
    pub kind: String,
    pub limit: String,
    pub warns: String,
    /// Link, run and how full it is.
    pub near: Vec<(String, String, String)>,
}

pub(super) fn limits(layout: &Layout, gathered: &Gathered) -> Vec<LimitView> {
    let limits = &gathered.metrics.structural_limits;
    let percent = limits.warning_threshold_percent;
    limits
        .kinds()
        .into_iter()
        .map(|(kind, limit)| {
            let near = gathered
                .counted
                .near_limits
                .iter()
                .filter(|near| near.kind == kind)
                .flat_map(|near| &near.runs)
                .map(|run| {
                    let id = run.run_id.clone().unwrap_or_default();
                    let share = run.open.saturating_mul(100) / limit.max(1);
                    let href = runs_href(layout, gathered, &[("run_id", &id)]);
                    (href, id, format!("{} · {share} %", number(run.open)))
                })
                .collect();
            LimitView {
                kind: kind.replace('_', " "),
                limit: if limit == 0 {
                    "off".to_owned()
                } else {
                    number(limit)
                },
                warns: threshold(limit, percent).map_or_else(String::new, number),
                near,
            }
        })
        .collect()
}
