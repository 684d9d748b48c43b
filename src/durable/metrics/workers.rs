//! Who lately said they are there.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::durable::{
    engine_config::EngineConfig,
    projection::fleet::{self, FleetWorker},
    store::metrics::Counted,
};

#[derive(Clone, Debug, Serialize)]
pub struct Workers {
    pub compatibility_namespace: Option<String>,
    pub required_compatibility: Option<String>,
    pub active_workers: usize,
    pub active_worker_scopes: usize,
    pub active_workers_supporting_required: usize,
    pub fleet: Vec<FleetWorker>,
}

impl Workers {
    pub fn of(counted: &Counted, config: &EngineConfig) -> Self {
        let own = |text: Option<&str>| text.and_then(fleet::trimmed).map(str::to_owned);
        let namespace = own(counted.namespace.as_deref())
            .or_else(|| own(config.text("compatibility.namespace")));
        let required = own(config.text("compatibility.current"));
        let workers = fleet::live(
            &counted.workers.heartbeats,
            counted.now,
            config,
            namespace.as_deref(),
            required.as_deref(),
        );
        let distinct = |supporting: bool| {
            workers
                .iter()
                .filter(|worker| worker.supports_required || !supporting)
                .map(|worker| worker.worker_id.as_str())
                .collect::<BTreeSet<_>>()
                .len()
        };
        Self {
            active_workers: distinct(false),
            active_worker_scopes: workers.len(),
            active_workers_supporting_required: distinct(true),
            compatibility_namespace: namespace,
            required_compatibility: required,
            fleet: workers,
        }
    }
}
