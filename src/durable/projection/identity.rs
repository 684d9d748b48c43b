//! What a run is: its names, its definition, its payloads, its deadlines, and how it stands as
//! of the last projection.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;

use super::{
    context::{Context, iso, ts},
    lineage::origin,
    list_item::map_or_list,
};
use crate::{
    db::Json,
    durable::{
        payload::{self, Payload},
        stored::{
            ClosedReason, LivenessState, RunRow, RunStatus, StatusBucket, TaskStatus, TaskType,
            WaitKind,
        },
    },
};

/// The import that marks a run as brought in from an embedded engine.
const EMBEDDED_IMPORT: &str = "embedded_v2";

/// Names, definition, payloads and deadlines of the selected run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Identity {
    pub id: String,
    pub instance_id: String,
    pub selected_run_id: String,
    pub run_id: String,
    pub engine_source: &'static str,
    pub import_source: Option<String>,
    pub import_id: Option<String>,
    pub import_dedupe_key: Option<String>,
    pub import_contract_version: Option<i64>,
    #[serde(serialize_with = "whole_seconds")]
    pub imported_at: Option<DateTime<Utc>>,
    pub class: String,
    pub workflow_type: String,
    pub business_key: Option<String>,
    pub visibility_labels: Value,
    pub memo: Value,
    pub search_attributes: Value,
    #[serde(flatten)]
    pub definition: Definition,
    pub compatibility: Option<String>,
    pub arguments: Value,
    pub connection: Option<String>,
    pub queue: Option<String>,
    pub execution_timeout_seconds: Option<i64>,
    pub run_timeout_seconds: Option<i64>,
    #[serde(serialize_with = "whole_seconds")]
    pub execution_deadline_at: Option<DateTime<Utc>>,
    #[serde(serialize_with = "whole_seconds")]
    pub run_deadline_at: Option<DateTime<Utc>>,
    pub output_payload_codec: Option<String>,
    pub output: Value,
}

/// The definition the run was started with. Comparing it with today's needs the PHP classes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Definition {
    pub workflow_definition_fingerprint: Option<String>,
    pub workflow_definition_current_fingerprint: Option<String>,
    pub workflow_definition_matches_current: Option<bool>,
    pub workflow_determinism_status: &'static str,
    pub workflow_determinism_source: &'static str,
    pub workflow_determinism_findings: [Value; 0],
}

pub fn identity(cx: Context<'_>) -> Identity {
    let snapshot = cx.snapshot;
    let run = &snapshot.run;
    let instance = &snapshot.instance;
    let summary = snapshot.summary.as_ref();
    let (origin, _) = origin(snapshot);
    Identity {
        id: run.id.clone(),
        instance_id: run.workflow_instance_id.clone(),
        selected_run_id: run.id.clone(),
        run_id: run.id.clone(),
        engine_source: if run.import_source.as_deref() == Some(EMBEDDED_IMPORT) {
            "embedded_v2_import"
        } else {
            "v2"
        },
        import_source: run.import_source.clone(),
        import_id: run.import_id.clone(),
        import_dedupe_key: run.import_dedupe_key.clone(),
        import_contract_version: run.import_contract_version,
        imported_at: run.imported_at,
        class: run.workflow_class.clone(),
        workflow_type: run.workflow_type.clone(),
        business_key: summary
            .and_then(|summary| summary.business_key.clone())
            .or_else(|| run.business_key.clone())
            .or_else(|| instance.business_key.clone()),
        visibility_labels: summary
            .and_then(|summary| summary.visibility_labels.as_ref())
            .or(run.visibility_labels.as_ref())
            .or(instance.visibility_labels.as_ref())
            .map_or_else(empty, stored_map),
        memo: map_or_list(snapshot.memo.clone()),
        search_attributes: map_or_list(snapshot.search_attributes.clone()),
        definition: definition(run, origin.workflow_definition_fingerprint.0),
        compatibility: summary
            .and_then(|summary| summary.compatibility.clone())
            .or_else(|| run.compatibility.clone()),
        arguments: arguments(run).known().unwrap_or_else(empty),
        connection: run.connection.clone(),
        queue: run.queue.clone(),
        execution_timeout_seconds: instance.execution_timeout_seconds,
        run_timeout_seconds: run.run_timeout_seconds,
        execution_deadline_at: run.execution_deadline_at,
        run_deadline_at: run.run_deadline_at,
        output_payload_codec: output_codec(run),
        output: output(run).known().unwrap_or_default(),
    }
}

/// The engine's own workflow, of every child that `async()` starts: no application brings it.
const ASYNC_WORKFLOW: &str = r"Workflow\V2\AsyncWorkflow";
/// Of the engine this was checked against.
const ASYNC_FINGERPRINT: &str =
    "sha256:8737dbc7de075ac16d5f5e9ba1c0cb071236fbf59ac90756e6670be0c5e9fb59";

/// Whether the engine knows the definition without the application's classes.
pub fn is_of_the_engine(run: &RunRow) -> bool {
    run.workflow_class.trim_start_matches('\\') == ASYNC_WORKFLOW
}

fn definition(run: &RunRow, recorded: Option<String>) -> Definition {
    let known = is_of_the_engine(run);
    let (status, source) = if known {
        ("clean", "live_definition")
    } else {
        ("unavailable", "unavailable")
    };
    Definition {
        workflow_definition_current_fingerprint: known.then(|| ASYNC_FINGERPRINT.to_owned()),
        workflow_definition_matches_current: recorded
            .as_deref()
            .filter(|_| known)
            .map(|recorded| recorded == ASYNC_FINGERPRINT),
        workflow_definition_fingerprint: recorded,
        workflow_determinism_status: status,
        workflow_determinism_source: source,
        workflow_determinism_findings: [],
    }
}

/// What the run was started with.
pub fn arguments(run: &RunRow) -> Payload {
    match payload::decode(run.payload_codec.as_deref(), run.arguments.as_deref()) {
        // A workflow takes a list of arguments; the engine's reader takes nothing else.
        Payload::Value(value) if !value.is_array() && !value.is_object() => Payload::Raw {
            reason: "not a list of arguments".into(),
            text: run.arguments.clone().unwrap_or_default(),
        },
        other => other,
    }
}

/// What the run returned. Its codec is its own: the engine never guesses it from the arguments'.
pub fn output(run: &RunRow) -> Payload {
    let codec = output_codec(run);
    match payload::decode(codec.as_deref(), run.output.as_deref()) {
        Payload::Value(_) if codec.is_none() => Payload::Raw {
            reason: "no codec is stored".into(),
            text: run.output.clone().unwrap_or_default(),
        },
        other => other,
    }
}

/// The stored codec, else the one a reference carries.
pub fn output_codec(run: &RunRow) -> Option<String> {
    let stored = run.output.as_deref()?;
    let own = run.output_payload_codec.as_deref().map(str::trim);
    if let Some(codec) = own.filter(|codec| !codec.is_empty()) {
        return Some(codec.to_owned());
    }
    match payload::decode(None, Some(stored)) {
        Payload::Reference(envelope) => envelope.get("codec")?.as_str().map(str::to_owned),
        _ => None,
    }
}

/// How the run stands: its own row, and what only the last projection knows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Standing {
    pub status: RunStatus,
    pub is_terminal: bool,
    /// None without a projection; so is all that follows up to the exceptions.
    pub status_bucket: Option<StatusBucket>,
    pub closed_reason: Option<ClosedReason>,
    #[serde(serialize_with = "ts")]
    pub closed_at: Option<DateTime<Utc>>,
    #[serde(serialize_with = "ts")]
    pub archived_at: Option<DateTime<Utc>>,
    pub archive_command_id: Option<String>,
    pub archive_reason: Option<String>,
    pub duration_ms: Option<i64>,
    pub wait_kind: Option<WaitKind>,
    pub wait_reason: Option<String>,
    #[serde(serialize_with = "ts")]
    pub wait_started_at: Option<DateTime<Utc>>,
    #[serde(serialize_with = "ts")]
    pub wait_deadline_at: Option<DateTime<Utc>>,
    #[serde(serialize_with = "ts")]
    pub next_task_at: Option<DateTime<Utc>>,
    pub next_task_id: Option<String>,
    pub next_task_type: Option<TaskType>,
    pub next_task_status: Option<TaskStatus>,
    #[serde(serialize_with = "ts")]
    pub next_task_lease_expires_at: Option<DateTime<Utc>>,
    pub liveness_state: Option<LivenessState>,
    pub liveness_reason: Option<String>,
    pub task_problem: bool,
    pub exception_count: i64,
    pub exceptions_count: i64,
    /// When the run started, unlike the list item's.
    #[serde(serialize_with = "ts")]
    pub created_at: Option<DateTime<Utc>>,
    #[serde(serialize_with = "ts")]
    pub updated_at: Option<DateTime<Utc>>,
}

/// `failures` is how many failures the run's history and rows show: it counts for a run without
/// a projection.
pub fn standing(cx: Context<'_>, failures: usize) -> Standing {
    let run = &cx.snapshot.run;
    let summary = cx.snapshot.summary.as_ref();
    let exceptions = summary.map_or_else(
        || i64::try_from(failures).unwrap_or(i64::MAX),
        |summary| summary.exception_count,
    );
    Standing {
        status: run.status.clone(),
        is_terminal: run.status.is_terminal(),
        status_bucket: summary.map(|s| s.status_bucket.clone()),
        closed_reason: summary
            .and_then(|s| s.closed_reason.clone())
            .or_else(|| run.closed_reason.clone()),
        closed_at: summary.and_then(|s| s.closed_at).or(run.closed_at),
        archived_at: summary.and_then(|s| s.archived_at).or(run.archived_at),
        archive_command_id: summary
            .and_then(|s| s.archive_command_id.clone())
            .or_else(|| run.archive_command_id.clone()),
        archive_reason: summary
            .and_then(|s| s.archive_reason.clone())
            .or_else(|| run.archive_reason.clone()),
        duration_ms: summary.and_then(|s| s.duration_ms),
        wait_kind: summary.and_then(|s| s.wait_kind.clone()),
        wait_reason: summary.and_then(|s| s.wait_reason.clone()),
        wait_started_at: summary.and_then(|s| s.wait_started_at),
        wait_deadline_at: summary.and_then(|s| s.wait_deadline_at),
        next_task_at: summary.and_then(|s| s.next_task_at),
        next_task_id: summary.and_then(|s| s.next_task_id.clone()),
        next_task_type: summary.and_then(|s| s.next_task_type.clone()),
        next_task_status: summary.and_then(|s| s.next_task_status.clone()),
        next_task_lease_expires_at: summary.and_then(|s| s.next_task_lease_expires_at),
        liveness_state: summary.and_then(|s| s.liveness_state.clone()),
        liveness_reason: summary.and_then(|s| s.liveness_reason.clone()),
        task_problem: summary.is_some_and(|s| s.task_problem),
        exception_count: exceptions,
        exceptions_count: exceptions,
        created_at: summary
            .and_then(|s| s.started_at)
            .or(run.started_at)
            .or(run.created_at),
        updated_at: summary
            .and_then(|s| s.closed_at)
            .or(run.last_progress_at)
            .or(run.updated_at),
    }
}

fn empty() -> Value {
    Value::Array(Vec::new())
}

fn stored_map(stored: &Json) -> Value {
    match stored {
        Json::Value(Value::Object(map)) => map_or_list(map.clone()),
        _ => empty(),
    }
}

/// The few times of the detail that carry no fraction.
#[expect(clippy::ref_option, reason = "serde hands a field over by reference")]
fn whole_seconds<S: serde::Serializer>(
    at: &Option<DateTime<Utc>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match at {
        Some(at) => serializer.serialize_str(&iso(*at)),
        None => serializer.serialize_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engines_own_workflow_is_known_without_the_application() {
        for (class, recorded, matches, status) in [
            (ASYNC_WORKFLOW, Some(ASYNC_FINGERPRINT), Some(true), "clean"),
            (
                r"\Workflow\V2\AsyncWorkflow",
                Some("sha256:of another engine"),
                Some(false),
                "clean",
            ),
            (ASYNC_WORKFLOW, None, None, "clean"),
            (
                r"App\OrderWorkflow",
                Some(ASYNC_FINGERPRINT),
                None,
                "unavailable",
            ),
        ] {
            let run = RunRow {
                workflow_class: class.into(),
                ..RunRow::default()
            };
            let found = definition(&run, recorded.map(str::to_owned));
            assert_eq!(found.workflow_definition_matches_current, matches);
            assert_eq!(found.workflow_determinism_status, status, "{class}");
        }
    }
}
