//! The busiest workflow types of the week: how many pass, and how long they take.

use chrono::TimeDelta;

use super::{WEEK, runs_href};
use crate::{
    durable::{collect::Gathered, metrics::dashboard::TypeHealth},
    run::tag::{Mark, Tag, Tone},
    web::{format::number, layout::Layout},
};

pub(super) struct TypeView {
    pub name: String,
    pub href: String,
    pub runs: String,
    pub tag: Tag,
    pub median: Option<TimeDelta>,
    pub errors: String,
    pub errors_href: String,
}

pub(super) fn types(layout: &Layout, gathered: &Gathered) -> Vec<TypeView> {
    let types = gathered.dashboard.workflow_type_health.iter();
    types
        .map(|health| type_view(layout, gathered, health))
        .collect()
}

fn type_view(layout: &Layout, gathered: &Gathered, health: &TypeHealth) -> TypeView {
    let closed = health.status_breakdown.completed + health.error_count;
    let (tone, mark) = match health.pass_rate {
        _ if closed == 0 => (Tone::Wait, Mark::Ring),
        rate if rate >= 95.0 => (Tone::Ok, Mark::Tick),
        rate if rate >= 80.0 => (Tone::Attn, Mark::Exclamation),
        _ => (Tone::Fail, Mark::Cross),
    };
    let rate = if closed == 0 {
        "none closed".to_owned()
    } else {
        format!("{} %", health.pass_rate)
    };
    let of_type = ("workflow_type", health.workflow_type.as_str());
    TypeView {
        href: runs_href(layout, gathered, &[of_type, WEEK]),
        errors_href: runs_href(
            layout,
            gathered,
            &[of_type, ("status_bucket", "failed"), WEEK],
        ),
        name: health.workflow_type.clone(),
        runs: number(health.total_runs),
        tag: Tag::new(rate, tone, mark),
        median: health.median_duration_ms.map(TimeDelta::milliseconds),
        errors: number(health.error_count),
    }
}
