//! The engine's run detail, key for key, put together from the concepts.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{budget, context::Context, failures, timeline};
use super::{
    commands::commands, context::Context, contract::contract, intakes::linked_intakes,
    signals::signals, task_links::TaskLinks, updates::updates,
use super::{
    children, context::Context, current_run, fleet, identity, lineage, navigation,
    related::Related, sources,
};

/// The whole document. `limit` keeps the last entries of the timeline.
pub fn detail(cx: Context<'_>, limit: Option<usize>) -> Value {
    let mut out = Map::new();
    out.insert("id".into(), json!(cx.snapshot.run.id));

    let failures = failures::failures(cx);
    let summary = cx.snapshot.summary.as_ref();
    let count = summary.map_or_else(|| json!(failures.len()), |s| json!(s.exception_count));
    out.insert("exception_count".into(), count.clone());
    out.insert("exceptions_count".into(), count);
    let exceptions = failures::exceptions(cx, &failures);
    out.insert("exceptions".into(), json!(exceptions));
    if let Value::Object(budget) = json!(budget::budget(cx)) {
        out.extend(budget);
    }
    let entries = timeline::timeline(cx, &failures, limit);
    out.insert("timeline".into(), json!(entries));
    let total = cx.snapshot.events.len();
    out.insert("timeline_total_count".into(), json!(total));

    put(&mut out, &contract(cx));

    let mut signals = signals(cx);
    let mut updates = updates(cx, &provisional::failures(cx));
    let mut commands = commands(cx, &signals, &updates);
    out.insert("linked_intakes".into(), json!(linked_intakes(&commands)));
    TaskLinks::new(cx, provisional::tasks(cx)).fill(&mut commands, &mut signals, &mut updates);
    out.insert("commands".into(), json!(commands));
    out.insert("signals".into(), json!(signals));
    out.insert("updates".into(), json!(updates));
    Value::Object(out)
}

/// The keys of a value beside those already there.
fn put(out: &mut Map<String, Value>, value: &impl Serialize) {
    if let Value::Object(map) = json!(value) {
        out.extend(map);
    }
}

/// Stand-ins until tasks and failures have rooms of their own.
mod provisional {
    use std::collections::HashMap;

    use crate::{
        db::Json,
        durable::projection::{
            Context,
            task_links::LinkedTask,
            updates::{UpdateException, UpdateFailure},
        },
    };

    pub(super) fn tasks(cx: Context<'_>) -> Vec<LinkedTask> {
        cx.snapshot
            .tasks
            .iter()
            .map(|task| {
                let text = |key: &str| match task.payload.as_ref() {
                    Some(Json::Value(value)) => value.get(key)?.as_str().map(str::to_owned),
                    _ => None,
                };
                LinkedTask {
                    id: task.id.clone(),
                    synthetic: false,
                    is_open: task.status.is_open(),
                    status: task.status.as_str().to_owned(),
                    transport_state: task.status.as_str().to_owned(),
                    workflow_command_id: text("workflow_command_id"),
                    workflow_signal_id: text("workflow_signal_id"),
                    workflow_update_id: text("workflow_update_id"),
                }
            })
            .collect()
    }

    pub(super) fn failures(cx: Context<'_>) -> HashMap<String, UpdateFailure> {
        cx.snapshot
            .failures
            .iter()
            .map(|row| {
                (
                    row.id.clone(),
                    UpdateFailure {
                        message: Some(row.message.clone()),
                        exception: UpdateException {
                            exception_class: Some(row.exception_class.clone()),
                            exception_resolved_class: Some(row.exception_class.clone()),
                            exception_resolution_source: Some("recorded_class".into()),
                            ..UpdateException::default()
                        },
                    },
                )
            })
            .collect()
    let _ = limit;
    let related = Related::of(cx.snapshot);
    let children = children::children(cx, &related);
    put(&mut out, &identity::identity(cx));
    put(&mut out, &identity::standing(cx, 0));
    put(&mut out, &current_run::of_selected(cx, &related));
    put(&mut out, &fleet::compatibility(cx));
    out.insert(
        "run_navigation".into(),
        json!(navigation::navigation(cx, &related)),
    );
    let lineage = lineage::lineage(cx, &related, &children);
    out.insert(
        "lineage_projection_source".into(),
        json!(sources::lineage(cx.snapshot, &lineage)),
    );
    out.insert("parents".into(), json!(lineage.parents));
    out.insert("continuedWorkflows".into(), json!(lineage.continued));
    Value::Object(out)
}

/// All keys of one part.
fn put(out: &mut Map<String, Value>, part: &impl Serialize) {
    if let Ok(Value::Object(keys)) = serde_json::to_value(part) {
        out.extend(keys);
    }
}
