//! The workers that lately said they are there, and those that fell silent.

use crate::{
    durable::{collect::Gathered, projection::fleet::FleetWorker},
    run::tag::{Mark, Tag, Tone},
    web::{
        format::{Moment, number},
        layout::Layout,
    },
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

/// Those that fell silent first: what needs attention names them.
pub(super) fn workers(layout: &Layout, gathered: &Gathered) -> Vec<WorkerView> {
    let silent = silent(gathered);
    let live = gathered.metrics.workers.fleet.iter();
    let views = silent
        .iter()
        .map(|worker| WorkerView {
            tag: Tag::new("silent", Tone::Attn, Mark::Clock),
            ..worker_view(layout, worker)
        })
        .chain(
            live.filter(|worker| !silent.contains(worker))
                .map(|worker| worker_view(layout, worker)),
        );
    views.take(WORKERS).collect()
}

fn silent(gathered: &Gathered) -> Vec<FleetWorker> {
    let required = gathered.metrics.workers.required_compatibility.as_deref();
    let rows = gathered.counted.workers.stuck.iter();
    rows.map(|row| FleetWorker::of(row, required)).collect()
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
    let silent = silent(gathered);
    let all = silent.len()
        + workers
            .fleet
            .iter()
            .filter(|worker| !silent.contains(worker))
            .count();
    let asked = match &workers.required_compatibility {
        Some(marker) => format!("marker {marker} asked for"),
        None => "no marker asked for".to_owned(),
    };
    // Those say what they poll with the engine's server, and nothing of markers.
    let registered = match gathered.counted.registered.live {
        0 => None,
        n => Some(format!("{} registered with the engine's server", number(n))),
    };
    let shown = (all > WORKERS).then(|| format!("{WORKERS} of {all} shown"));
    let parts = [shown, registered, Some(asked)];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}
