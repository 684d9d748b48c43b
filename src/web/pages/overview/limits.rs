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
    /// That there are none, more than named, or that nobody counts them.
    pub note: &'static str,
}

pub(super) fn limits(layout: &Layout, gathered: &Gathered) -> Vec<LimitView> {
    let limits = &gathered.metrics.structural_limits;
    let percent = limits.warning_threshold_percent;
    limits
        .kinds()
        .into_iter()
        .map(|(kind, limit)| {
            let warns = threshold(limit, percent);
            let mut counted = gathered.counted.near_limits.iter();
            let counted = counted.find(|near| near.kind == kind);
            let runs = counted.map_or(&[][..], |near| &near.runs);
            LimitView {
                kind: kind.replace('_', " "),
                limit: if limit == 0 {
                    "off".to_owned()
                } else {
                    number(limit)
                },
                warns: warns.map_or_else(String::new, number),
                near: runs
                    .iter()
                    .map(|run| {
                        let id = run.run_id.clone().unwrap_or_default();
                        let share = run.open.saturating_mul(100) / limit.max(1);
                        let href = runs_href(layout, gathered, &[("run_id", &id)]);
                        (href, id, format!("{} · {share} %", number(run.open)))
                    })
                    .collect(),
                note: match (kind, warns, counted) {
                    // Nothing to be near to.
                    (_, None, _) => "",
                    // Over as soon as the engine has looked: no row keeps it.
                    (
                        "command_batch_size" | "payload_size_bytes" | "history_transaction_size",
                        ..,
                    ) => "known to the engine alone",
                    (_, _, None) => "not counted",
                    (_, _, Some(near)) if near.runs.is_empty() => "none",
                    (_, _, Some(near)) if near.more => "and others",
                    _ => "",
                },
            }
        })
        .collect()
}
