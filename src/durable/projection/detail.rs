//! The engine's run detail, key for key, put together from the concepts.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{
    actions, budget, contract, failures, fleet, identity, intakes, lineage, list_item, logs,
    navigation, projected::Projected, sources, task_problem, timeline, waits::open_wait::open_wait,
};
use crate::durable::stored::Summary as _;

/// The whole document. `limit` keeps the last entries of the timeline.
pub fn detail(projected: &Projected<'_>, limit: Option<usize>) -> Value {
    let cx = projected.cx;
    let snapshot = cx.snapshot;
    let mut out = Map::new();
    put(&mut out, &identity::identity(cx));
    put(&mut out, &projected.current_run);
    put(&mut out, &fleet::compatibility(cx));
    put(&mut out, &contract::contract(cx));
    put(&mut out, &identity::standing(cx, projected.failures.len()));
    put(&mut out, &open_wait(cx, &projected.waits));
    let badge = snapshot
        .summary
        .as_ref()
        .and_then(|summary| task_problem::badge(summary.standing()));
    out.insert(
        "task_problem_badge".into(),
        json!(badge.map(list_item::task_problem_badge)),
    );
    put(&mut out, &budget::budget(cx));
    put(&mut out, &actions::actions(projected));
    out.insert(
        "run_navigation".into(),
        json!(navigation::navigation(cx, &projected.related)),
    );
    out.insert("activities".into(), json!(projected.activities));
    out.insert(
        "linked_intakes".into(),
        json!(intakes::linked_intakes(&projected.commands)),
    );
    out.insert("commands".into(), json!(projected.commands));
    out.insert("signals".into(), json!(projected.signals));
    out.insert("updates".into(), json!(projected.updates));

    let waits = list(&projected.waits);
    out.insert(
        "waits_projection_source".into(),
        json!(sources::waits(snapshot, &waits)),
    );
    out.insert("waits".into(), Value::Array(waits));
    out.insert("tasks".into(), json!(projected.tasks));

    let entries = list(&timeline::timeline(cx, &projected.failures, limit));
    out.insert(
        "timeline_projection_source".into(),
        json!(sources::timeline(snapshot, &entries, limit)),
    );
    out.insert("timeline".into(), Value::Array(entries));
    out.insert("timeline_total_count".into(), json!(snapshot.events.len()));

    let timers = list(&projected.timers);
    let (source, reasons) = sources::timers(snapshot, &timers);
    out.insert("timers_projection_source".into(), json!(source));
    out.insert("timers_projection_rebuild_reasons".into(), json!(reasons));
    out.insert("timers".into(), Value::Array(timers));

    out.insert("logs".into(), json!(logs::logs(&projected.activities)));
    out.insert(
        "chartData".into(),
        json!(logs::chart_data(cx, &projected.activities)),
    );
    out.insert(
        "exceptions".into(),
        json!(failures::exceptions(cx, &projected.failures)),
    );
    let lineage = lineage::lineage(cx, &projected.related, &projected.children);
    out.insert(
        "lineage_projection_source".into(),
        json!(sources::lineage(snapshot, &lineage)),
    );
    out.insert("parents".into(), json!(lineage.parents));
    out.insert("continuedWorkflows".into(), json!(lineage.continued));
    for part in [
        "activities",
        "linked_intakes",
        "commands",
        "signals",
        "updates",
        "waits",
        "tasks",
        "timeline",
        "lineage",
    ] {
        out.insert(format!("{part}_scope"), json!("selected_run"));
    }
    Value::Object(out)
}

/// All keys of one part.
fn put(out: &mut Map<String, Value>, part: &impl Serialize) {
    if let Ok(Value::Object(keys)) = serde_json::to_value(part) {
        out.extend(keys);
    }
}

fn list<T: Serialize>(items: &[T]) -> Vec<Value> {
    items.iter().map(|item| json!(item)).collect()
}
