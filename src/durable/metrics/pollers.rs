//! The workers that registered with the engine's server: who polls, who fell silent, and which
//! builds are being drained.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use crate::durable::{
    engine_config::EngineConfig,
    store::metrics::{Registration, Registrations, Rollout},
    stored::Stamp,
};

/// A poller of a queue: gone once its heartbeat is so old; without one it is taken for there.
pub fn pollers(workers: &[&Registration], now: DateTime<Utc>, config: &EngineConfig) -> Vec<Value> {
    let after = TimeDelta::seconds(config.poller_stale_after());
    let mut pollers: Vec<(bool, &str, Value)> = workers
        .iter()
        .map(|worker| {
            let expires = worker.last_heartbeat_at.map(|Stamp(at)| Stamp(at + after));
            let stale = expires.is_some_and(|Stamp(at)| at <= now);
            let document = json!({
                "worker_id": worker.worker_id,
                "runtime": worker.runtime,
                "sdk_version": worker.sdk_version,
                "build_id": worker.build_id,
                "last_heartbeat_at": worker.last_heartbeat_at,
                "heartbeat_expires_at": expires,
                "status": status(worker, stale),
                "is_stale": stale,
                "supported_workflow_types": worker.supported_workflow_types,
                "supported_activity_types": worker.supported_activity_types,
                "max_concurrent_workflow_tasks": worker.max_concurrent_workflow_tasks,
                "max_concurrent_activity_tasks": worker.max_concurrent_activity_tasks,
            });
            (stale, worker.worker_id.as_str(), document)
        })
        .collect();
    pollers.sort_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)));
    pollers
        .into_iter()
        .map(|(_, _, document)| document)
        .collect()
}

fn status(worker: &Registration, stale: bool) -> &str {
    match &worker.status {
        _ if stale => "stale",
        Some(status) => status,
        None => "active",
    }
}

/// Whether Waterline calls a registration stale: otherwise than a queue does its pollers.
fn is_stale(worker: &Registration, now: DateTime<Utc>, config: &EngineConfig) -> bool {
    let after = TimeDelta::seconds(config.registration_stale_after());
    worker
        .last_heartbeat_at
        .is_none_or(|Stamp(at)| at < now - after)
}

/// What `operator_metrics.workers` gains where workers registered.
pub fn registrations(
    all: &Registrations,
    namespace: Option<&str>,
    now: DateTime<Utc>,
    config: &EngineConfig,
) -> Option<Value> {
    if all.workers.is_empty() {
        return None;
    }
    let (stale, live): (Vec<_>, Vec<_>) = all
        .workers
        .iter()
        .partition(|worker| is_stale(worker, now, config));
    let shown = |workers: &[&Registration], stale| -> Vec<Value> {
        let document = |worker: &&Registration| {
            json!({
                "worker_id": worker.worker_id,
                "namespace": namespace,
                "task_queue": worker.task_queue,
                "runtime": worker.runtime,
                "sdk_version": worker.sdk_version,
                "build_id": worker.build_id,
                "status": status(worker, stale),
                "last_heartbeat_at": worker.last_heartbeat_at,
                "supported_workflow_types": worker.supported_workflow_types,
                "supported_activity_types": worker.supported_activity_types,
                "max_concurrent_workflow_tasks": worker.max_concurrent_workflow_tasks,
                "max_concurrent_activity_tasks": worker.max_concurrent_activity_tasks,
            })
        };
        workers.iter().map(document).collect()
    };
    Some(json!({
        "registrations": shown(&live, false),
        "stale_registrations": shown(&stale, true),
        "registration_count": all.workers.len(),
        "active_registration_count": live.len(),
        "stale_registration_count": stale.len(),
        "stale_after_seconds": config.registration_stale_after(),
        "worker_versioning": versioning(all, now, config),
    }))
}

/// One build among a queue's workers. None is workers that name no build.
#[derive(Clone, Debug, Default, PartialEq)]
struct Build<'a> {
    active: usize,
    draining: usize,
    stale: usize,
    last_heartbeat_at: Option<Stamp>,
    rollout: Option<&'a Rollout>,
}

impl Build<'_> {
    fn is_drained(&self) -> bool {
        let intent = self
            .rollout
            .and_then(|rollout| rollout.drain_intent.as_deref());
        intent == Some("draining")
    }

    /// The engine's words, and their order in a list.
    fn rollout_status(&self) -> (u8, &'static str) {
        let drains = self.is_drained() || self.draining > 0;
        match (self.active > 0, drains) {
            (true, false) => (0, "active"),
            (true, true) => (1, "active_with_draining"),
            (false, true) => (2, "draining"),
            (false, false) if self.stale > 0 => (3, "stale_only"),
            (false, false) => (4, "no_workers"),
        }
    }
}

fn build_id(text: Option<&str>) -> Option<&str> {
    text.map(str::trim).filter(|build| !build.is_empty())
}

/// The builds of one queue's workers, those that work first.
pub fn build_ids(
    all: &Registrations,
    queue: &str,
    now: DateTime<Utc>,
    config: &EngineConfig,
) -> Vec<Value> {
    let mut builds: BTreeMap<Option<&str>, Build<'_>> = BTreeMap::new();
    let of_queue = |worker: &&Registration| worker.task_queue.as_deref() == Some(queue);
    let silent_since = now - TimeDelta::seconds(config.poller_stale_after());
    for worker in all.workers.iter().filter(of_queue) {
        let build = builds
            .entry(build_id(worker.build_id.as_deref()))
            .or_default();
        let stale = worker
            .last_heartbeat_at
            .is_some_and(|Stamp(at)| at < silent_since);
        match status(worker, stale) {
            "stale" => build.stale += 1,
            "draining" => build.draining += 1,
            _ => build.active += 1,
        }
        build.last_heartbeat_at = build.last_heartbeat_at.max(worker.last_heartbeat_at);
    }
    for rollout in all
        .rollouts
        .iter()
        .filter(|rollout| rollout.task_queue == queue)
    {
        let build = builds
            .entry(build_id(rollout.build_id.as_deref()))
            .or_default();
        build.rollout = Some(rollout);
    }
    let mut builds: Vec<_> = builds.into_iter().collect();
    builds.sort_by_key(|(id, build)| {
        let newest = std::cmp::Reverse(build.last_heartbeat_at);
        (build.rollout_status().0, id.is_none(), newest)
    });
    let document = |(id, build): &(Option<&str>, Build<'_>)| {
        json!({
            "build_id": id,
            "rollout_status": build.rollout_status().1,
            "drain_intent": if build.is_drained() { "draining" } else { "active" },
            "drained_at": build.rollout.and_then(|rollout| rollout.drained_at),
            "active_worker_count": build.active,
            "draining_worker_count": build.draining,
            "stale_worker_count": build.stale,
            "total_worker_count": build.active + build.draining + build.stale,
            "last_heartbeat_at": build.last_heartbeat_at,
        })
    };
    builds.iter().map(document).collect()
}

/// Every queue that workers registered for or a decision was made about, with its builds.
pub fn versioning(all: &Registrations, now: DateTime<Utc>, config: &EngineConfig) -> Vec<Value> {
    let registered = all
        .workers
        .iter()
        .filter_map(|worker| worker.task_queue.as_deref());
    let decided = all
        .rollouts
        .iter()
        .map(|rollout| rollout.task_queue.as_str());
    let queues: std::collections::BTreeSet<&str> = registered.chain(decided).collect();
    let document = |queue: &str| json!({ "task_queue": queue, "build_ids": build_ids(all, queue, now, config) });
    queues.into_iter().map(document).collect()
}

/// The builds that take no new work.
pub fn drains(all: &Registrations) -> Vec<Value> {
    let draining = |rollout: &&Rollout| rollout.drain_intent.as_deref() == Some("draining");
    let document = |rollout: &Rollout| {
        json!({
            "task_queue": rollout.task_queue,
            "build_id": build_id(rollout.build_id.as_deref()),
            "drain_intent": rollout.drain_intent,
            "drained_at": rollout.drained_at,
        })
    };
    all.rollouts.iter().filter(draining).map(document).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> DateTime<Utc> {
        "2026-11-15T12:00:00Z".parse().unwrap()
    }

    fn worker(id: &str, seconds_ago: Option<i64>) -> Registration {
        Registration {
            worker_id: id.to_owned(),
            task_queue: Some("orders".to_owned()),
            last_heartbeat_at: seconds_ago.map(|ago| Stamp(now() - TimeDelta::seconds(ago))),
            ..Registration::default()
        }
    }

    /// Seconds since the heartbeat: gone as a poller, gone as a registration.
    #[test]
    fn a_queue_and_waterline_call_different_workers_stale() {
        let config = EngineConfig::defaults();
        for (ago, poller, registered) in [
            (None, false, true),
            (Some(59), false, false),
            (Some(60), true, false),
            (Some(300), true, false),
            (Some(301), true, true),
        ] {
            let worker = worker("w", ago);
            assert_eq!(
                pollers(&[&worker], now(), &config)[0]["is_stale"],
                poller,
                "{ago:?}"
            );
            assert_eq!(is_stale(&worker, now(), &config), registered, "{ago:?}");
        }
    }

    #[test]
    fn pollers_that_are_there_come_first() {
        let all = [
            worker("b", Some(1)),
            worker("a", Some(90)),
            worker("B", None),
        ];
        let shown = pollers(
            &all.iter().collect::<Vec<_>>(),
            now(),
            &EngineConfig::defaults(),
        );
        let ids: Vec<_> = shown.iter().map(|poller| &poller["worker_id"]).collect();
        assert_eq!(ids, ["B", "b", "a"]);
        assert_eq!(shown[2]["status"], "stale");
        assert_eq!(
            shown[1]["heartbeat_expires_at"],
            "2026-11-15T12:00:59.000000Z"
        );
    }

    #[test]
    fn a_build_is_what_its_workers_and_the_decision_about_it_say() {
        let (active, draining) = (Some("active"), Some("draining"));
        for (workers, intent, want) in [
            (vec![(active, 1)], None, "active"),
            (vec![(active, 1)], draining, "active_with_draining"),
            (
                vec![(active, 1), (draining, 1)],
                None,
                "active_with_draining",
            ),
            (vec![(draining, 1)], None, "draining"),
            (vec![(active, 90)], draining, "draining"),
            (vec![(active, 90)], active, "stale_only"),
            (vec![], active, "no_workers"),
        ] {
            let all = Registrations {
                workers: workers
                    .iter()
                    .map(|(status, ago)| Registration {
                        status: status.map(str::to_owned),
                        build_id: Some(" v2 ".to_owned()),
                        ..worker("w", Some(*ago))
                    })
                    .collect(),
                rollouts: intent
                    .map(|intent| Rollout {
                        task_queue: "orders".to_owned(),
                        build_id: Some("v2".to_owned()),
                        drain_intent: Some(intent.to_owned()),
                        drained_at: None,
                    })
                    .into_iter()
                    .collect(),
            };
            let builds = build_ids(&all, "orders", now(), &EngineConfig::defaults());
            assert_eq!(builds.len(), 1);
            assert_eq!(builds[0]["rollout_status"], want, "{workers:?} {intent:?}");
        }
    }
}
