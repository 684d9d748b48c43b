//! The engine's run detail, key for key, put together from the concepts.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{
    actions, budget, contract, failures, fleet, identity, intakes, lineage, list_item, logs,
    navigation, projected::Projected, sources, task_problem, timeline, waits,
};

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
    put(&mut out, &resume(projected));
    let badge = snapshot.summary.as_ref().and_then(task_problem::badge);
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
    out.insert(
        "open_wait_count".into(),
        json!(waits::open_wait_count(&projected.waits)),
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

/// What the run would resume from: the summary's word, else each part from the first that has it.
#[derive(Debug, Default, Serialize)]
struct Resume {
    open_wait_id: Option<String>,
    resume_source_kind: Option<String>,
    resume_source_id: Option<String>,
}

fn resume(projected: &Projected<'_>) -> Resume {
    let summary = projected.cx.snapshot.summary.as_ref();
    if let Some(summary) = summary.filter(|summary| summary.open_wait_id.is_some()) {
        return Resume {
            open_wait_id: summary.open_wait_id.clone(),
            resume_source_kind: summary.resume_source_kind.clone(),
            resume_source_id: summary.resume_source_id.clone(),
        };
    }
    let wait = projected
        .waits
        .iter()
        .find(|wait| wait.is_open() && !wait.is_diagnostic());
    let next = summary.and_then(|summary| summary.next_task_id.as_deref());
    let task = projected.cx.snapshot.tasks.iter().find(|task| {
        task.task_type.as_str() == "workflow"
            && task.status.is_open()
            && next.is_none_or(|next| next == task.id)
    });
    Resume {
        open_wait_id: wait
            .map(|wait| wait.id.clone())
            .or_else(|| task.map(|task| format!("workflow-task:{}", task.id))),
        resume_source_kind: wait
            .and_then(|wait| wait.resume_source_kind.clone())
            .or_else(|| task.map(|_| "workflow_task".to_owned())),
        resume_source_id: wait
            .and_then(|wait| wait.resume_source_id.clone())
            .or_else(|| task.map(|task| task.id.clone())),
    }
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
