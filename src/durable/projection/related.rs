//! The runs around a run, found by id and by instance without looking at each.

use std::collections::HashMap;

use crate::durable::store::snapshot::{RelatedRun, RunSnapshot};

/// An index over `snapshot.related`, made once per projection.
#[derive(Debug)]
pub struct Related<'a> {
    by_id: HashMap<&'a str, &'a RelatedRun>,
    by_instance: HashMap<&'a str, Vec<&'a RelatedRun>>,
}

impl<'a> Related<'a> {
    pub fn of(snapshot: &'a RunSnapshot) -> Self {
        Self::of_runs(&snapshot.related)
    }

    pub fn of_runs(runs: &'a [RelatedRun]) -> Self {
        let mut by_instance: HashMap<&str, Vec<&RelatedRun>> = HashMap::new();
        for other in runs {
            by_instance
                .entry(&other.run.workflow_instance_id)
                .or_default()
                .push(other);
        }
        Self {
            by_id: runs
                .iter()
                .map(|other| (other.run.id.as_str(), other))
                .collect(),
            by_instance,
        }
    }

    pub fn run(&self, id: &str) -> Option<&'a RelatedRun> {
        self.by_id.get(id).copied()
    }

    /// The runs of one instance, by run number.
    pub fn of_instance(&self, instance_id: &str) -> &[&'a RelatedRun] {
        self.by_instance.get(instance_id).map_or(&[], Vec::as_slice)
    }
}
