//! Who could take a task: this installation's own workers and those that lately said what they
//! support.
//!
//! The engine deletes expired heartbeats when it reads them; here they are only left out.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;

use super::context::{Context, ts};
use crate::{
    db::Json,
    durable::{
        engine_config::EngineConfig,
        php,
        stored::{HeartbeatRow, TaskRow},
    },
};

/// Any marker.
const ANY: &str = "*";

/// One worker's claim for one connection and queue.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FleetWorker {
    pub worker_id: String,
    pub namespace: Option<String>,
    pub host: Option<String>,
    pub process_id: Option<String>,
    /// None is any.
    pub connection: Option<String>,
    /// None is any.
    pub queue: Option<String>,
    pub supported: Vec<String>,
    pub supports_required: bool,
    #[serde(serialize_with = "ts")]
    pub recorded_at: Option<DateTime<Utc>>,
    #[serde(serialize_with = "ts")]
    pub expires_at: Option<DateTime<Utc>>,
    /// `database`: what older engines keep in PHP's cache cannot be seen from here.
    pub source: &'static str,
}

/// Whether a marker can be run, and if not, why.
#[derive(Clone, Debug, PartialEq)]
pub struct Support {
    /// By a process configured as this installation is.
    pub in_process: bool,
    /// By a worker with a live heartbeat.
    pub in_fleet: bool,
    pub process_reason: Option<String>,
    pub fleet_reason: Option<String>,
}

/// The fleet as the detail of a run shows it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compatibility {
    pub compatibility_namespace: Option<String>,
    pub compatibility_supported: bool,
    pub compatibility_reason: Option<String>,
    /// Of the next task where there is one, else of the run.
    pub compatibility_supported_in_fleet: bool,
    pub compatibility_fleet_reason: Option<String>,
    pub compatibility_fleet: Vec<FleetWorker>,
}

pub fn compatibility(cx: Context<'_>) -> Compatibility {
    let run = &cx.snapshot.run;
    let marker = run.compatibility.as_deref();
    let own = |task: &TaskRow| {
        task.compatibility
            .as_deref()
            .is_some_and(|own| trimmed(own).is_some())
    };
    let (connection, queue) = (run.connection.as_deref(), run.queue.as_deref());
    let of_run = supports(cx, marker, connection, queue);
    let of_next = next_task(cx).map_or_else(
        || of_run.clone(),
        |task| {
            supports(
                cx,
                task.compatibility
                    .as_deref()
                    .filter(|_| own(task))
                    .or(marker),
                task.connection.as_deref().or(connection),
                task.queue.as_deref().or(queue),
            )
        },
    );
    Compatibility {
        compatibility_namespace: cx
            .config
            .text("compatibility.namespace")
            .and_then(trimmed)
            .map(str::to_owned),
        compatibility_supported: of_run.in_process,
        compatibility_reason: of_run.process_reason,
        compatibility_supported_in_fleet: of_next.in_fleet,
        compatibility_fleet_reason: of_next.fleet_reason,
        compatibility_fleet: workers(cx, marker, connection, queue),
    }
}

fn next_task(cx: Context<'_>) -> Option<&TaskRow> {
    let id = cx.snapshot.summary.as_ref()?.next_task_id.as_deref()?;
    cx.snapshot.tasks.iter().find(|task| task.id == id)
}

/// Whether the marker can be run there. No marker asks for nothing.
pub fn supports(
    cx: Context<'_>,
    marker: Option<&str>,
    connection: Option<&str>,
    queue: Option<&str>,
) -> Support {
    let Some(marker) = marker.and_then(trimmed) else {
        return Support {
            in_process: true,
            in_fleet: true,
            process_reason: None,
            fleet_reason: None,
        };
    };
    let process = process_markers(cx.config);
    let in_process = covers(&process, Some(marker));
    let workers = workers(cx, Some(marker), connection, queue);
    let in_fleet = workers.iter().any(|worker| worker.supports_required);
    Support {
        in_process,
        in_fleet,
        process_reason: (!in_process).then(|| {
            let here = listed(process.iter().map(String::as_str));
            format!("Needs marker {marker}; this installation runs {here}.")
        }),
        fleet_reason: (!in_fleet).then(|| {
            let there = workers
                .iter()
                .flat_map(|worker| worker.supported.iter().map(String::as_str));
            let place = place(cx.config, connection, queue);
            format!(
                "No live worker{place} supports marker {marker}; those there support {}.",
                listed(there.collect::<BTreeSet<_>>())
            )
        }),
    }
}

/// Live heartbeats that would be heard there, in the engine's order.
pub fn workers(
    cx: Context<'_>,
    marker: Option<&str>,
    connection: Option<&str>,
    queue: Option<&str>,
) -> Vec<FleetWorker> {
    let namespace = cx.config.text("compatibility.namespace");
    let mut workers = live(
        &cx.snapshot.heartbeats,
        cx.now,
        cx.config,
        namespace,
        marker,
    );
    workers.retain(|worker| {
        meets(connection, worker.connection.as_deref()) && meets(queue, worker.queue.as_deref())
    });
    workers
}

/// Every live heartbeat of the namespace, or of all of them, in the engine's order.
pub fn live(
    heartbeats: &[HeartbeatRow],
    now: DateTime<Utc>,
    config: &EngineConfig,
    namespace: Option<&str>,
    marker: Option<&str>,
) -> Vec<FleetWorker> {
    // Such an installation keeps its heartbeats where they cannot be seen from here.
    if config.flag("compatibility.disable_heartbeat_table") {
        return Vec::new();
    }
    let namespace = namespace.and_then(trimmed);
    let marker = marker.and_then(trimmed);
    let workers = heartbeats
        .iter()
        .filter(|row| {
            // The engine asks the database with whole seconds.
            row.expires_at
                .is_some_and(|expires| expires.timestamp() >= now.timestamp())
        })
        .map(|row| FleetWorker::of(row, marker))
        .filter(|worker| {
            namespace.is_none_or(|namespace| worker.namespace.as_deref() == Some(namespace))
        })
        .collect();
    in_order(workers)
}

/// By scope as PHP compares texts, which is no order a sort may rely on: each is put in its place
/// among those before it.
fn in_order(workers: Vec<FleetWorker>) -> Vec<FleetWorker> {
    let mut sorted: Vec<FleetWorker> = Vec::with_capacity(workers.len());
    for worker in workers {
        let scope = worker.scope();
        let at = sorted.partition_point(|before| {
            let pairs = before.scope().into_iter().zip(scope);
            let differ = pairs.into_iter().find(|(a, b)| a != b);
            differ.is_none_or(|(a, b)| php::order(a, b).is_le())
        });
        sorted.insert(at, worker);
    }
    sorted
}

/// What processes configured as this installation is say they support.
fn process_markers(config: &EngineConfig) -> Vec<String> {
    let supported = markers(config.value("compatibility.supported"));
    if supported.is_empty() {
        config
            .text("compatibility.current")
            .and_then(trimmed)
            .map(|current| vec![current.to_owned()])
            .unwrap_or_default()
    } else {
        supported
    }
}

impl FleetWorker {
    /// What one heartbeat says, live or not.
    pub fn of(row: &HeartbeatRow, marker: Option<&str>) -> Self {
        let own = |text: &Option<String>| text.as_deref().and_then(trimmed).map(str::to_owned);
        let supported = match &row.supported {
            Some(Json::Value(value)) => markers(value),
            _ => Vec::new(),
        };
        Self {
            worker_id: row.worker_id.clone(),
            namespace: own(&row.namespace),
            host: own(&row.host),
            process_id: own(&row.process_id),
            connection: own(&row.connection),
            queue: own(&row.queue),
            supports_required: covers(&supported, marker),
            supported,
            recorded_at: row.recorded_at,
            expires_at: row.expires_at,
            source: "database",
        }
    }

    fn scope(&self) -> [&str; 4] {
        [
            self.namespace.as_deref().unwrap_or_default(),
            self.connection.as_deref().unwrap_or_default(),
            self.queue.as_deref().unwrap_or_default(),
            &self.worker_id,
        ]
    }
}

fn covers(supported: &[String], marker: Option<&str>) -> bool {
    marker.is_none_or(|marker| supported.iter().any(|have| have == ANY || have == marker))
}

/// Where one of both says nothing, they meet.
fn meets(asked: Option<&str>, offered: Option<&str>) -> bool {
    match (asked.and_then(trimmed), offered) {
        (Some(asked), Some(offered)) => asked == offered,
        _ => true,
    }
}

/// A list, or one text with commas.
fn markers(value: &Value) -> Vec<String> {
    let mut markers: Vec<String> = Vec::new();
    let mut take = |text: &str| {
        if let Some(marker) = trimmed(text)
            && !markers.iter().any(|have| have == marker)
        {
            markers.push(marker.to_owned());
        }
    };
    match value {
        Value::String(text) => text.split(',').for_each(&mut take),
        Value::Array(values) => values.iter().filter_map(Value::as_str).for_each(&mut take),
        _ => {}
    }
    markers
}

pub(crate) fn trimmed(text: &str) -> Option<&str> {
    Some(text.trim()).filter(|text| !text.is_empty())
}

fn listed<'a>(markers: impl IntoIterator<Item = &'a str>) -> String {
    let markers: Vec<&str> = markers.into_iter().collect();
    if markers.is_empty() {
        "none".to_owned()
    } else {
        markers.join(", ")
    }
}

fn place(config: &EngineConfig, connection: Option<&str>, queue: Option<&str>) -> String {
    [
        ("namespace", config.text("compatibility.namespace")),
        ("connection", connection),
        ("queue", queue),
    ]
    .into_iter()
    .filter_map(|(what, name)| Some(format!(" on {what} {}", name.and_then(trimmed)?)))
    .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn markers_are_a_list_or_one_text_with_commas() {
        let table = [
            (json!(null), vec![]),
            (json!(""), vec![]),
            (json!("a, b ,,a"), vec!["a", "b"]),
            (json!(["a", " b ", 7, null, "a"]), vec!["a", "b"]),
            (json!({"a": 1}), vec![]),
        ];
        for (value, expected) in table {
            assert_eq!(markers(&value), expected, "{value}");
        }
    }

    #[test]
    fn numbers_in_the_fleets_order_are_numbers() {
        let worker = |queue: Option<&str>, id: &str| FleetWorker {
            worker_id: id.to_owned(),
            queue: queue.map(str::to_owned),
            namespace: None,
            host: None,
            process_id: None,
            connection: None,
            supported: Vec::new(),
            supports_required: true,
            recorded_at: None,
            expires_at: None,
            source: "database",
        };
        let sorted = in_order(vec![
            worker(Some("10"), "a"),
            worker(Some("9"), "b"),
            worker(Some("9"), "10"),
            worker(Some("9"), "9.5"),
            worker(None, "inf"),
            worker(None, "9"),
            // Equal as numbers: each stays where it was.
            worker(Some("9.0"), "c"),
        ]);
        let ids: Vec<_> = sorted
            .iter()
            .map(|worker| worker.worker_id.as_str())
            .collect();
        assert_eq!(ids, ["9", "inf", "9.5", "10", "b", "c", "a"]);
    }

    #[test]
    fn a_worker_without_a_queue_is_heard_on_every_queue() {
        assert!(meets(Some("orders"), Some("orders")));
        assert!(meets(Some("orders"), None));
        assert!(meets(None, Some("orders")));
        assert!(!meets(Some("orders"), Some("mail")));
        assert!(meets(Some(" "), Some("mail")));
    }

    #[test]
    fn no_marker_asks_for_nothing_and_a_star_runs_all() {
        let have = |marker: &str| vec![marker.to_owned()];
        assert!(covers(&[], None));
        assert!(!covers(&[], Some("v2")));
        assert!(covers(&have("v2"), Some("v2")));
        assert!(!covers(&have("v1"), Some("v2")));
        assert!(covers(&have(ANY), Some("v2")));
    }
}
