//! The parts of a bundle that are one of a kind: the run, its payloads, its stored summary.

use serde_json::{Map, Value, json};

use crate::{
    db::Json,
    durable::{
        payload,
        projection::{
            Context,
            context::stamp,
            current_run::CurrentRun,
            identity,
            list_item::{map_or_list, task_problem_badge},
            task_problem,
        },
        stored::{RunRow, RunStatus, RunSummary, StatusBucket, Summary as _},
    },
};

/// The codec everything is written with that names no other.
pub const AVRO: &str = "avro";

/// Who made the bundle: not the application, and not the engine's server.
const SOURCE_RUNTIME: &str = "plimsoll";
const SOURCE_PROCESS: &str = "dashboard";

/// What identifies one state of a run's history.
pub fn dedupe_key(run: &RunRow) -> String {
    let at = run.last_progress_at.or(run.updated_at);
    format!(
        "{}:{}:{}",
        run.id,
        run.last_history_sequence,
        at.map_or_else(|| "unknown".into(), stamp)
    )
}

/// Nothing more will be written: true of closed runs, whatever gaps the history has.
pub fn history_complete(run: &RunRow) -> bool {
    matches!(
        run.status,
        RunStatus::Completed | RunStatus::Failed | RunStatus::Cancelled | RunStatus::Terminated
    )
}

pub fn run_codec(run: &RunRow) -> &str {
    run.payload_codec
        .as_deref()
        .filter(|codec| !codec.is_empty())
        .unwrap_or(AVRO)
}

pub fn workflow(cx: Context<'_>, current: &CurrentRun) -> Value {
    let snapshot = cx.snapshot;
    let run = &snapshot.run;
    let summary = snapshot.summary.as_ref();
    let names = identity::identity(cx);
    let standing = identity::standing(cx, 0);
    let bucket = run.status.bucket().unwrap_or(StatusBucket::Running);
    json!({
        "instance_id": run.workflow_instance_id,
        "run_id": run.id,
        "run_number": run.run_number,
        // Live, unlike the detail's, which is the stored summary's.
        "is_current_run": current.current_run_id.as_ref() == Some(&run.id),
        "current_run_id": current.current_run_id,
        "current_run_source": current.current_run_source,
        "workflow_type": run.workflow_type,
        "workflow_class": run.workflow_class,
        "source_runtime": SOURCE_RUNTIME,
        "source_process_class": SOURCE_PROCESS,
        "business_key": names.business_key,
        "visibility_labels": names.visibility_labels,
        "memo": names.memo,
        "search_attributes": names.search_attributes,
        "status": run.status,
        "status_bucket": bucket,
        "closed_reason": standing.closed_reason,
        "archived_at": standing.archived_at.map(stamp),
        "archive_command_id": standing.archive_command_id,
        "archive_reason": standing.archive_reason,
        "compatibility": run.compatibility,
        "connection": run.connection,
        "queue": run.queue,
        "last_history_sequence": run.last_history_sequence,
        "started_at": summary.and_then(|s| s.started_at).or(run.started_at).map(stamp),
        "closed_at": standing.closed_at.map(stamp),
        "last_progress_at": run.last_progress_at.map(stamp),
    })
}

pub fn payloads(run: &RunRow) -> Value {
    json!({
        "codec": run_codec(run),
        "arguments": {
            "available": run.arguments.is_some(),
            "data": payload::stored(run.arguments.as_deref()),
        },
        "output": {
            "available": run.output.is_some(),
            "codec": identity::output_codec(run),
            "data": payload::stored(run.output.as_deref()),
        },
    })
}

/// The stored row as it is, even where history knows better.
pub fn summary(summary: &RunSummary, search_attributes: &Map<String, Value>) -> Value {
    let badge = task_problem::badge(summary.standing()).map(task_problem_badge);
    json!({
        "status": summary.status,
        "status_bucket": summary.status_bucket,
        "closed_reason": summary.closed_reason,
        "archived_at": summary.archived_at.map(stamp),
        "archive_command_id": summary.archive_command_id,
        "archive_reason": summary.archive_reason,
        "business_key": summary.business_key,
        "visibility_labels": match &summary.visibility_labels {
            Some(Json::Value(labels)) => labels.clone(),
            Some(Json::Malformed(text)) => text.as_str().into(),
            None => Value::Array(Vec::new()),
        },
        "search_attributes": map_or_list(search_attributes.clone()),
        "is_current_run": summary.is_current_run,
        "started_at": summary.started_at.map(stamp),
        "closed_at": summary.closed_at.map(stamp),
        "duration_ms": summary.duration_ms,
        "wait_kind": summary.wait_kind,
        "wait_reason": summary.wait_reason,
        "wait_started_at": summary.wait_started_at.map(stamp),
        "wait_deadline_at": summary.wait_deadline_at.map(stamp),
        "open_wait_id": summary.open_wait_id,
        "resume_source_kind": summary.resume_source_kind,
        "resume_source_id": summary.resume_source_id,
        "next_task_at": summary.next_task_at.map(stamp),
        "next_task_id": summary.next_task_id,
        "next_task_type": summary.next_task_type,
        "next_task_status": summary.next_task_status,
        "next_task_lease_expires_at": summary.next_task_lease_expires_at.map(stamp),
        "liveness_state": summary.liveness_state,
        "liveness_reason": summary.liveness_reason,
        "repair_attention": summary.repair_attention,
        "task_problem": summary.task_problem,
        "task_problem_badge": badge,
        "exception_count": summary.exception_count,
        "history_event_count": summary.history_event_count,
        "history_size_bytes": summary.history_size_bytes,
        "history_fan_out": summary.history_fan_out,
        "continue_as_new_recommended": summary.continue_as_new_recommended,
        "history_budget_pressure": summary.history_budget_pressure.as_deref().unwrap_or("ok"),
        "sort_timestamp": summary.sort_timestamp.map(stamp),
        "sort_key": summary.sort_key,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::durable::{
        projection::{
            current_run,
            example::told,
            related::{self, Related},
        },
        store::snapshot::RunSnapshot,
    };

    #[test]
    fn which_run_is_current_is_no_matter_of_the_stored_summary() {
        let runs = [
            related::tests::run("a", "one", 1, None),
            related::tests::run("b", "one", 2, Some("a")),
        ];
        for (n, is_current) in [(0, false), (1, true)] {
            let snapshot = RunSnapshot {
                run: runs[n].run.clone(),
                related: runs.to_vec(),
                summary: Some(RunSummary {
                    is_current_run: !is_current,
                    ..RunSummary::default()
                }),
                ..RunSnapshot::default()
            };
            let workflow = told(&snapshot, |cx| {
                let current = current_run::of_selected(cx, &Related::of(&snapshot));
                workflow(cx, &current)
            });
            assert_eq!(workflow["is_current_run"], is_current);
            assert_eq!(workflow["current_run_id"], "b");
        }
    }
}
