//! Queues for Prometheus: how long each is and who works on it, the longest by name and the rest
//! together.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    exposition::{Exposition, Kind},
    prometheus::{OTHER, seconds},
};
use crate::durable::{collect::Gathered, stored::Stamp};

/// Queues named by themselves.
const QUEUES: usize = 50;

const TYPES: [&str; 2] = ["workflow", "activity"];

#[derive(Clone, Debug, Default, PartialEq)]
struct Queue {
    /// By type: tasks that are ready and due, and the oldest of them.
    ready: [(i64, Option<Stamp>); 2],
    /// Pollers that are live, and those that fell silent.
    active: i64,
    stale: i64,
}

impl Queue {
    fn backlog(&self) -> i64 {
        self.ready.iter().map(|(ready, _)| ready).sum()
    }

    fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.ready.iter_mut().zip(other.ready) {
            mine.0 += theirs.0;
            Stamp::earliest(&mut mine.1, theirs.1);
        }
        self.active += other.active;
        self.stale += other.stale;
    }
}

pub fn write(out: &mut Exposition, gathered: &Gathered) {
    let queues = longest(all(gathered), QUEUES);
    out.family(
        "durable_workflow_queue_backlog",
        Kind::Gauge,
        "Tasks ready and due, by queue and type; the longest queues by name.",
    );
    for (queue, of_queue) in &queues {
        for (kind, (ready, _)) in TYPES.iter().zip(of_queue.ready) {
            out.sample(&[("queue", queue), ("type", kind)], ready);
        }
    }
    out.family(
        "durable_workflow_queue_oldest_ready_age_seconds",
        Kind::Gauge,
        "Age of the oldest task that is ready and due, by queue and type.",
    );
    for (queue, of_queue) in &queues {
        for (kind, (_, oldest)) in TYPES.iter().zip(of_queue.ready) {
            let ms = oldest.map_or(0, |at| at.age(gathered.counted.now).num_milliseconds());
            out.sample(&[("queue", queue), ("type", kind)], seconds(ms));
        }
    }
    out.family(
        "durable_workflow_queue_pollers",
        Kind::Gauge,
        "Workers that poll this queue, by whether they are still heard: those registered with the \
         engine's server, where there are none those whose heartbeat names it.",
    );
    for (queue, of_queue) in &queues {
        for (state, workers) in [("active", of_queue.active), ("stale", of_queue.stale)] {
            out.sample(&[("queue", queue), ("state", state)], workers);
        }
    }
}

fn named(queue: Option<&str>) -> Option<&str> {
    queue.filter(|queue| !queue.is_empty())
}

fn all(gathered: &Gathered) -> BTreeMap<&str, Queue> {
    let mut queues: BTreeMap<&str, Queue> = BTreeMap::new();
    for group in &gathered.counted.tasks {
        let kind = TYPES.iter().position(|kind| *kind == group.task_type);
        if let (Some(queue), Some(kind)) = (named(group.queue.as_deref()), kind) {
            let entry = &mut queues.entry(queue).or_default().ready[kind];
            entry.0 += group.counts.ready_due;
            Stamp::earliest(&mut entry.1, group.counts.oldest_ready_due_at);
        }
    }
    let live: BTreeSet<(&str, &str)> = gathered
        .metrics
        .workers
        .fleet
        .iter()
        .filter_map(|worker| Some((named(worker.queue.as_deref())?, worker.worker_id.as_str())))
        .collect();
    let namespace = gathered.metrics.workers.compatibility_namespace.as_deref();
    let heard: BTreeSet<(&str, &str)> = gathered
        .counted
        .workers
        .heartbeats
        .iter()
        .filter(|row| namespace.is_none() || row.namespace.as_deref() == namespace)
        .filter_map(|row| Some((named(row.queue.as_deref())?, row.worker_id.as_str())))
        .collect();
    for (queue, _) in &live {
        queues.entry(queue).or_default().active += 1;
    }
    for (queue, _) in heard.difference(&live) {
        queues.entry(queue).or_default().stale += 1;
    }
    // Who registered is whom queue visibility names.
    for registered in &gathered.counted.registered.by_queue {
        if let Some(queue) = named(registered.task_queue.as_deref()) {
            let queue = queues.entry(queue).or_default();
            queue.active = registered.polling;
            queue.stale = registered.workers - registered.polling;
        }
    }
    queues
}

/// The longest by name, then the rest as one. A queue may itself be called so; then the two are
/// one.
fn longest(queues: BTreeMap<&str, Queue>, most: usize) -> Vec<(&str, Queue)> {
    let mut queues: Vec<_> = queues.into_iter().collect();
    queues.sort_by_key(|(_, queue)| std::cmp::Reverse(queue.backlog()));
    let rest = queues.split_off(most.min(queues.len()));
    for (_, queue) in &rest {
        match queues.iter_mut().find(|(name, _)| *name == OTHER) {
            Some((_, other)) => other.add(queue),
            None => queues.push((OTHER, queue.clone())),
        }
    }
    queues
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(ready: i64, active: i64) -> Queue {
        Queue {
            ready: [(ready, None), (0, None)],
            active,
            stale: 0,
        }
    }

    #[test]
    fn the_rest_is_one() {
        let queues =
            || BTreeMap::from([("a", queue(1, 1)), ("b", queue(9, 0)), ("c", queue(2, 3))]);
        assert_eq!(longest(queues(), 3).len(), 3);
        assert_eq!(
            longest(queues(), 1),
            [("b", queue(9, 0)), ("other", queue(3, 4))]
        );
        let mut named_so = queues();
        named_so.insert("other", queue(20, 0));
        assert_eq!(
            longest(named_so, 2),
            [("other", queue(23, 4)), ("b", queue(9, 0))]
        );
        assert_eq!(longest(BTreeMap::new(), 2), []);
    }
}
