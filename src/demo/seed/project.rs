//! The projections of a drafted run, and the run's own row: what the engine would have written
//! after its last change. The sentences are ours.

use serde_json::{Value as Json, json};
use sha2::{Digest as _, Sha256};

use super::draft::{Draft, Ending, Event, Identity, Relative, Subject, Time, Timer, Wait, stamp};
use crate::demo::rows::InsertRow;

/// The engine's row id for a projection: a digest of what it projects.
fn digest(parts: &[&str]) -> String {
    use std::fmt::Write as _;
    let hash = Sha256::digest(parts.join("|").as_bytes());
    hash.iter()
        .fold(String::with_capacity(64), |mut out, byte| {
            let _ = write!(out, "{byte:02x}");
            out
        })
}

fn bucket(status: &str) -> &'static str {
    match status {
        "completed" => "completed",
        "failed" | "cancelled" | "terminated" => "failed",
        _ => "running",
    }
}

/// All rows of the run: its own, those of its story, its projections.
pub fn finish(draft: Draft<'_>, ending: &Ending, current: bool, all: bool) -> Vec<InsertRow> {
    let (status, reason) = match ending {
        Ending::Closed { status, reason } => (*status, Some(*reason)),
        Ending::Open(_) => ("waiting", None),
    };
    let mut rows = Vec::with_capacity(draft.rows.len() + draft.events.len() + 8);
    rows.push(run(&draft, status, reason));
    rows.push(summary(&draft, ending, status, reason, current));
    if all {
        let mut waits: Vec<&Wait> = draft.waits.iter().collect();
        // Open first, then resolved, then cancelled.
        waits.sort_by_key(|wait| match wait.status {
            "open" => 0,
            "resolved" => 1,
            _ => 2,
        });
        let with_position = |position: usize| i64::try_from(position).unwrap_or(i64::MAX);
        for (position, row) in waits.into_iter().enumerate() {
            rows.push(wait(&draft, row, with_position(position)));
        }
        for (position, event) in draft.events.iter().enumerate() {
            rows.push(timeline(&draft, event, with_position(position) + 1));
        }
        for (position, row) in draft.timers.iter().enumerate() {
            rows.push(timer(&draft, row, with_position(position)));
        }
        for (position, relative) in draft.relatives.iter().enumerate() {
            rows.push(lineage(&draft, relative, with_position(position)));
        }
    }
    rows.extend(draft.rows);
    rows
}

pub fn instance(who: &Identity, current: &str, runs: i64, updated: Time) -> InsertRow {
    InsertRow::new("workflow_instances")
        .set("id", &who.instance)
        .set("workflow_class", who.kind.class)
        .set("workflow_type", who.kind.workflow_type)
        .set("namespace", who.namespace)
        .set("business_key", who.business_key.as_deref())
        .set("current_run_id", current)
        .set("run_count", runs)
        .time("reserved_at", who.started)
        .time("started_at", who.started)
        .stamps(who.started, updated)
}

fn run(draft: &Draft<'_>, status: &'static str, reason: Option<&'static str>) -> InsertRow {
    let who = &draft.who;
    let deadline = draft
        .run_timeout
        .map(|seconds| who.started + chrono::TimeDelta::seconds(seconds));
    InsertRow::new("workflow_runs")
        .set("id", &who.run)
        .set("workflow_instance_id", &who.instance)
        .set("run_number", who.number)
        .set("workflow_class", who.kind.class)
        .set("workflow_type", who.kind.workflow_type)
        .set("namespace", who.namespace)
        .set("business_key", who.business_key.as_deref())
        .set("status", status)
        .set("closed_reason", reason)
        .set("payload_codec", super::draft::CODEC)
        .set("arguments", draft.arguments)
        .set("output", draft.output)
        .set(
            "output_payload_codec",
            draft.output.map(|_| super::draft::CODEC),
        )
        .set("queue", who.kind.queue)
        .set("last_history_sequence", draft.sequence())
        .set("last_command_sequence", draft.commands)
        .set("fairness_key", super::MARK)
        .set("run_timeout_seconds", draft.run_timeout)
        .time("run_deadline_at", deadline)
        .time("started_at", who.started)
        .time("closed_at", reason.map(|_| draft.at))
        .time("last_progress_at", draft.at)
        .stamps(who.started, draft.at)
}

fn summary(
    draft: &Draft<'_>,
    ending: &Ending,
    status: &'static str,
    reason: Option<&'static str>,
    current: bool,
) -> InsertRow {
    let who = &draft.who;
    let closed = reason.map(|_| draft.at);
    // The engine's defaults for events and bytes.
    let pressure = match (draft.sequence(), draft.history_bytes) {
        (10_000.., _) | (_, 5_242_880..) => "continue_as_new_recommended",
        (8_000.., _) | (_, 4_194_304..) => "approaching",
        _ => "ok",
    };
    let row = InsertRow::new("workflow_run_summaries")
        .set("id", &who.run)
        .set("workflow_instance_id", &who.instance)
        .set("run_number", who.number)
        .set("is_current_run", current)
        .set("engine_source", "v2")
        .set("projection_schema_version", 2)
        .set("class", who.kind.class)
        .set("workflow_type", who.kind.workflow_type)
        .set("namespace", who.namespace)
        .set("declared_entry_mode", "canonical")
        .set("declared_contract_source", "durable_history")
        .set("business_key", who.business_key.as_deref())
        .set("status", status)
        .set("status_bucket", bucket(status))
        .set("closed_reason", reason)
        .set("queue", who.kind.queue)
        .time("started_at", who.started)
        .time("sort_timestamp", who.started)
        .set("sort_key", format!("{}#{}", stamp(who.started), who.run))
        .time("closed_at", closed)
        .set(
            "duration_ms",
            closed.map(|at| (at - who.started).num_milliseconds()),
        )
        .set("exception_count", draft.failures)
        .set("history_event_count", draft.sequence())
        .set("history_size_bytes", draft.history_bytes)
        .set("history_fan_out", 0)
        .set("history_budget_pressure", pressure)
        .set(
            "continue_as_new_recommended",
            pressure == "continue_as_new_recommended",
        )
        .stamps(who.started, draft.at);
    let Ending::Open(open) = ending else {
        let blocked = if current {
            "run_closed"
        } else {
            "selected_run_not_current"
        };
        return row
            .set("liveness_state", "closed")
            .set(
                "liveness_reason",
                format!("Closed: {}.", reason.unwrap_or_default()),
            )
            .set("repair_blocked_reason", blocked);
    };
    let lost = open.liveness == "repair_needed";
    let mut row = row
        .set("liveness_state", open.liveness)
        .set("liveness_reason", open.liveness.replace('_', " "))
        .set(
            "repair_blocked_reason",
            (!lost).then_some("repair_not_needed"),
        )
        .set("task_problem", lost);
    if let Some(wait) = open.wait.map(|at| &draft.waits[at]) {
        row = row
            .set("wait_kind", wait.kind)
            .set("wait_reason", sentence(wait))
            .time("wait_started_at", wait.opened)
            .time("wait_deadline_at", wait.deadline)
            .set("open_wait_id", &wait.id)
            .set("resume_source_kind", wait.resume.0)
            .set("resume_source_id", wait.resume.1.as_deref());
    }
    if let Some(task) = &open.next_task {
        if open.wait.is_none() {
            row = row
                .set("wait_kind", "workflow-task")
                .set("wait_reason", "A workflow task is next")
                .time("wait_started_at", task.available)
                .set("open_wait_id", format!("workflow-task:{}", task.id))
                .set("resume_source_kind", "workflow_task")
                .set("resume_source_id", &task.id);
        }
        row = row
            .time("next_task_at", task.available)
            .set("next_task_id", &task.id)
            .set("next_task_type", task.task_type)
            .set("next_task_status", task.status)
            .time("next_task_lease_expires_at", task.lease_expires);
    }
    row
}

fn sentence(wait: &Wait) -> String {
    let what = wait.target_name.as_deref().or(wait.target_type.as_deref());
    match wait.status {
        "open" => format!("Until {} {}", wait.kind, what.unwrap_or_default()),
        status => format!("{} {} {status}", wait.kind, what.unwrap_or_default()),
    }
}

fn wait(draft: &Draft<'_>, wait: &Wait, position: i64) -> InsertRow {
    let external = matches!(wait.kind, "signal" | "condition");
    let open = wait.status == "open";
    let payload = json!({
        "id": wait.id, "kind": wait.kind, "sequence": wait.step, "status": wait.status,
        "source_status": wait.source_status, "opened_at": stamp(wait.opened),
        "resolved_at": wait.resolved.map(stamp), "diagnostic_only": false,
    });
    InsertRow::new("workflow_run_waits")
        .set("id", digest(&[&draft.who.run, &wait.id]))
        .set("workflow_run_id", &draft.who.run)
        .set("workflow_instance_id", &draft.who.instance)
        .set("wait_id", &wait.id)
        .set("position", position)
        .set("kind", wait.kind)
        .set("sequence", wait.step)
        .set("status", wait.status)
        .set("source_status", wait.source_status)
        .set("summary", sentence(wait))
        .time("opened_at", wait.opened)
        .time("deadline_at", wait.deadline)
        .time("resolved_at", wait.resolved)
        .set("target_name", wait.target_name.as_deref())
        .set("target_type", wait.target_type.as_deref())
        .set("task_backed", open && wait.task.is_some())
        .set("external_only", external)
        .set("resume_source_kind", wait.resume.0)
        .set("resume_source_id", wait.resume.1.as_deref())
        .set("task_id", wait.task.as_ref().map(|task| task.0.as_str()))
        .set("task_type", wait.task.as_ref().map(|task| task.1))
        .set("task_status", wait.task.as_ref().map(|task| task.2))
        .set("history_authority", (!external).then_some("typed_history"))
        .json("payload", Some(&payload))
        .stamps(wait.opened, wait.resolved.unwrap_or(wait.opened))
}

fn timeline(draft: &Draft<'_>, event: &Event, sequence: i64) -> InsertRow {
    let run = draft.who.run.as_str();
    let (kind, source, source_id) = match &event.subject {
        Subject::Run => ("workflow", "workflow_run", run),
        Subject::SideEffect => ("side_effect", "workflow_run", run),
        Subject::Command(id) => ("command", "workflow_command", id.as_str()),
        Subject::Activity(id) => ("activity", "activity_execution", id.as_str()),
        Subject::Timer(id) => ("timer", "timer", id.as_str()),
        Subject::Child(id) => ("child", "child_workflow_run", id.as_str()),
        Subject::Wait("signal", id) => ("signal", "signal_wait", id.as_str()),
        Subject::Wait(_, id) => ("condition", "condition_wait", id.as_str()),
    };
    let only = |wanted: &str| (kind == wanted).then_some(source_id);
    let payload = json!({
        "id": event.id, "sequence": sequence, "type": event.name, "kind": kind,
        "source_kind": source, "source_id": source_id, "recorded_at": stamp(event.at),
    });
    InsertRow::new("workflow_run_timeline_entries")
        .set("id", digest(&[run, &event.id]))
        .set("workflow_run_id", run)
        .set("workflow_instance_id", &draft.who.instance)
        .set("history_event_id", &event.id)
        .set("sequence", sequence)
        .set("type", event.name)
        .set("kind", kind)
        .set("entry_kind", "point")
        .set("source_kind", source)
        .set("source_id", source_id)
        .set("summary", event.name)
        .time("recorded_at", event.at)
        .set(
            "command_id",
            event.command.as_ref().map(|command| command.0.as_str()),
        )
        .set(
            "command_sequence",
            event.command.as_ref().map(|command| command.1),
        )
        .set("task_id", event.task.as_deref())
        .set("activity_execution_id", only("activity"))
        .set("timer_id", only("timer"))
        .set("failure_id", event.failure.as_deref())
        .json("payload", Some(&payload))
        .stamps(event.at, event.at)
}

fn timer(draft: &Draft<'_>, timer: &Timer, position: i64) -> InsertRow {
    let payload = json!({
        "id": timer.id, "sequence": timer.step, "status": timer.status,
        "fire_at": stamp(timer.fire_at), "diagnostic_only": false,
    });
    InsertRow::new("workflow_run_timer_entries")
        .set("id", digest(&[&draft.who.run, &timer.id]))
        .set("workflow_run_id", &draft.who.run)
        .set("workflow_instance_id", &draft.who.instance)
        .set("timer_id", &timer.id)
        .set("schema_version", 1)
        .set("position", position)
        .set("sequence", timer.step)
        .set("status", timer.status)
        .set("source_status", timer.status)
        .set("delay_seconds", timer.delay)
        .time("fire_at", timer.fire_at)
        .time("fired_at", timer.fired_at)
        .time("cancelled_at", timer.cancelled_at)
        .set("history_authority", "typed_history")
        .json("payload", Some(&payload))
        .stamps(draft.at, draft.at)
}

fn lineage(draft: &Draft<'_>, relative: &Relative, position: i64) -> InsertRow {
    let payload: Json = json!({
        "id": relative.link, "link_type": relative.link_type, "sequence": relative.step,
        "workflow_run_id": relative.who.run, "history_authority": "typed_history",
        "diagnostic_only": false,
    });
    let who = &relative.who;
    InsertRow::new("workflow_run_lineage_entries")
        .set(
            "id",
            digest(&[&draft.who.run, relative.direction, &relative.link]),
        )
        .set("workflow_run_id", &draft.who.run)
        .set("workflow_instance_id", &draft.who.instance)
        .set("direction", relative.direction)
        .set("lineage_id", &relative.link)
        .set("position", position)
        .set("link_type", relative.link_type)
        .set(
            "child_call_id",
            relative.child_call.then_some(relative.link.as_str()),
        )
        .set("sequence", relative.step)
        .set("is_primary_parent", true)
        .set("related_workflow_instance_id", &who.instance)
        .set("related_workflow_run_id", &who.run)
        .set("related_run_number", who.number)
        .set("related_workflow_type", who.kind.workflow_type)
        .set("related_workflow_class", who.kind.class)
        .set("status", relative.status)
        .set("status_bucket", bucket(relative.status))
        .set("closed_reason", relative.closed_reason)
        .time("linked_at", relative.at)
        .json("payload", Some(&payload))
        .stamps(relative.at, relative.at)
}
