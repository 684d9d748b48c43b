//! The workers that lately said they are there.

use crate::{
    durable::{collect::Gathered, projection::fleet::FleetWorker},
    run::tag::{Mark, Tag, Tone},
    web::{format::Moment, layout::Layout},
};

/// Workers shown; more are counted.
const WORKERS: usize = 20;

pub(super) struct WorkerView {
    pub id: String,
    pub place: String,
    pub supported: String,
    pub tag: Tag,
    pub heard: Option<Moment>,
}

pub(super) fn workers(layout: &Layout, gathered: &Gathered) -> Vec<WorkerView> {
    let workers = gathered.metrics.workers.fleet.iter().take(WORKERS);
    workers.map(|worker| worker_view(layout, worker)).collect()
}

fn worker_view(layout: &Layout, worker: &FleetWorker) -> WorkerView {
    let place = [&worker.namespace, &worker.connection, &worker.queue]
        .into_iter()
        .flatten()
        .cloned()
        .collect::<Vec<_>>()
        .join(" · ");
    WorkerView {
        id: worker.worker_id.clone(),
        place: if place.is_empty() {
            "any queue".to_owned()
        } else {
            place
        },
        supported: if worker.supported.is_empty() {
            "no marker".to_owned()
        } else {
            worker.supported.join(", ")
        },
        tag: if worker.supports_required {
            Tag::new("compatible", Tone::Ok, Mark::Tick)
        } else {
            Tag::new("incompatible", Tone::Attn, Mark::Lock)
        },
        heard: worker.recorded_at.map(|at| layout.moment(at)),
    }
}

/// How many are not shown, and which marker new runs ask for.
pub(super) fn workers_line(gathered: &Gathered) -> String {
    let workers = &gathered.metrics.workers;
    let shown = workers.fleet.len().min(WORKERS);
    let asked = match &workers.required_compatibility {
        Some(marker) => format!("marker {marker} asked for"),
        None => "no marker asked for".to_owned(),
    };
    if shown < workers.fleet.len() {
        format!("{shown} of {} shown · {asked}", workers.fleet.len())
    } else {
        asked
    }
}
