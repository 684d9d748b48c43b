//! Rows that are gone are put back from typed history, under their own ids.

use serde_json::{Value, json};

use super::draft::Draft;
use crate::{
    db::Json,
    durable::{
        payload,
        projection::{activities::Activity, authority},
        repair::{php_json, refusal::Refusal},
        stored::{
            ActivityStatus, AsCell as _, EventType, ExecutionRow, HistoryEvent, TimerRow,
            UpdateRow, UpdateStatus, loose::Raw, payloads::update::UpdateEvent,
        },
    },
};

/// The execution of an activity that history knows to be pending. Its deadlines are not in
/// history: it comes back without.
pub(super) fn execution(
    draft: &mut Draft<'_>,
    known: &Activity,
    spent_attempts: i64,
) -> Result<ExecutionRow, Refusal> {
    let run = &draft.p.cx.snapshot.run;
    let refused = || Refusal::NotRestorable {
        what: format!("activity {}", known.id),
    };
    let (Some(sequence), Some(class), Some(kind)) =
        (known.sequence, known.class.clone(), known.r#type.clone())
    else {
        return Err(refused());
    };
    if known.history_authority != authority::TYPED || known.status != ActivityStatus::Pending {
        return Err(refused());
    }
    let there = draft.p.cx.snapshot.executions.iter();
    free(
        there.map(|row| (row.sequence, row.id.as_str())),
        &sequence,
        || format!("activity {}", known.id),
    )?;
    let path = &known.group.parallel_group_path;
    let row = ExecutionRow {
        id: known.id.clone(),
        workflow_run_id: run.id.clone(),
        sequence,
        activity_class: class,
        activity_type: kind,
        status: ActivityStatus::Pending,
        payload_codec: known
            .stored
            .payload_codec
            .clone()
            .or_else(|| run.payload_codec.clone()),
        arguments: known.stored.arguments.stored().as_ref().and_then(column),
        result: None,
        exception: None,
        connection: known.connection.clone().or_else(|| run.connection.clone()),
        queue: known.queue.clone().or_else(|| run.queue.clone()),
        attempt_count: known.attempt_count.max(spent_attempts),
        current_attempt_id: None,
        retry_policy: Raw(known
            .retry_policy
            .as_ref()
            .map(|policy| php_json::text(policy).into_boxed_str())),
        parallel_group_path: (!path.is_empty()).then(|| Json::Value(json!(path))),
        activity_options: Raw(None),
        schedule_deadline_at: None,
        close_deadline_at: None,
        schedule_to_close_deadline_at: None,
        heartbeat_deadline_at: None,
        started_at: None,
        closed_at: None,
        last_heartbeat_at: None,
        created_at: known.created_at,
        updated_at: Some(draft.p.cx.now),
    };
    draft.insert(ExecutionRow::TABLE, &row.id, row.cells());
    draft.written.executions.push(row.clone());
    Ok(row)
}

/// Refuses where another row has what only one may have.
fn free<'a, K: PartialEq>(
    mut rows: impl Iterator<Item = (K, &'a str)>,
    key: &K,
    what: impl FnOnce() -> String,
) -> Result<(), Refusal> {
    let taken = rows.find(|(taken, _)| taken == key);
    taken.map_or(Ok(()), |(_, by)| {
        Err(Refusal::PlaceTaken {
            what: what(),
            by: by.to_owned(),
        })
    })
}

/// A payload of an event as a column holds it.
fn column(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Object(map) => match map.get("blob").and_then(Value::as_str) {
            Some(blob) => Some(blob.to_owned()),
            None => map
                .contains_key("external_storage")
                .then(|| payload::reference(&php_json::text(value))),
        },
        _ => None,
    }
}

/// The timer's row: as it is, or put back.
pub(super) fn timer(draft: &mut Draft<'_>, id: Option<&str>) -> Result<TimerRow, Refusal> {
    let p = draft.p;
    let refused = || Refusal::NotRestorable {
        what: format!("timer {}", id.unwrap_or("without an id")),
    };
    let there =
        p.cx.snapshot
            .timers
            .iter()
            .find(|row| Some(row.id.as_str()) == id);
    if let Some(row) = there {
        return Ok(row.clone());
    }
    let known = p
        .timers
        .iter()
        .find(|known| Some(known.id.as_str()) == id && known.history_authority == authority::TYPED)
        .ok_or_else(refused)?;
    let (Some(sequence), Some(delay_seconds)) = (known.sequence, known.delay_seconds) else {
        return Err(refused());
    };
    let there = p.cx.snapshot.timers.iter();
    free(
        there.map(|row| (row.sequence, row.id.as_str())),
        &sequence,
        || format!("timer {}", known.id),
    )?;
    let row = TimerRow {
        id: known.id.clone(),
        workflow_run_id: p.cx.snapshot.run.id.clone(),
        sequence,
        status: known.status.clone(),
        delay_seconds,
        fire_at: Some(known.fire_at.ok_or_else(refused)?),
        fired_at: known.fired_at,
        created_at: known.created_at,
    };
    let mut cells = row.cells();
    let updated_at = row.fired_at.or(row.created_at).unwrap_or(p.cx.now);
    cells.push(("updated_at", updated_at.cell()));
    draft.insert(TimerRow::TABLE, &row.id, cells);
    draft.written.timers.push(row.clone());
    Ok(row)
}

/// The update's lifecycle row: as it is, or put back from the event that accepted it. Gives the
/// id of its command.
pub(super) fn update(draft: &mut Draft<'_>, id: &str) -> Result<String, Refusal> {
    let p = draft.p;
    let snapshot = p.cx.snapshot;
    if let Some(row) = snapshot.updates.iter().find(|row| row.id == id) {
        return Ok(row.workflow_command_id.clone());
    }
    let refused = || Refusal::NotRestorable {
        what: format!("update {id}"),
    };
    let known = p
        .updates
        .iter()
        .find(|known| known.id.as_deref() == Some(id));
    let known = known.ok_or_else(refused)?;
    let accepted: UpdateEvent = snapshot
        .events
        .iter()
        .filter(|event| event.event_type == EventType::UpdateAccepted)
        .map(HistoryEvent::as_payload::<UpdateEvent>)
        .find(|event| event.update_id.as_deref() == Some(id))
        .ok_or_else(refused)?;
    let (Some(command_id), Some(name)) = (known.command_id.clone(), known.name.clone()) else {
        return Err(refused());
    };
    let there = snapshot.updates.iter();
    free(
        there.map(|row| (row.workflow_command_id.as_str(), row.id.as_str())),
        &command_id.as_str(),
        || format!("update {id}"),
    )?;
    let run = &snapshot.run;
    let row = UpdateRow {
        id: id.to_owned(),
        workflow_command_id: command_id.clone(),
        workflow_instance_id: Some(run.workflow_instance_id.clone()),
        workflow_run_id: Some(run.id.clone()),
        target_scope: known
            .target_scope
            .clone()
            .unwrap_or_else(|| "instance".to_owned()),
        requested_workflow_run_id: known.requested_run_id.clone(),
        resolved_workflow_run_id: known
            .resolved_run_id
            .clone()
            .or_else(|| Some(run.id.clone())),
        update_name: name,
        status: UpdateStatus::Accepted,
        outcome: None,
        command_sequence: known.command_sequence,
        workflow_sequence: None,
        payload_codec: known
            .payload_codec
            .clone()
            .or_else(|| run.payload_codec.clone()),
        arguments: accepted.arguments.as_ref().and_then(column),
        result: None,
        validation_errors: None,
        rejection_reason: None,
        failure_id: None,
        failure_message: None,
        accepted_at: known.accepted_at,
        applied_at: None,
        rejected_at: None,
        closed_at: None,
        created_at: known.accepted_at,
    };
    let mut cells = row.cells();
    cells.push(("updated_at", p.cx.now.cell()));
    draft.insert(UpdateRow::TABLE, id, cells);
    draft.written.updates.push(row);
    Ok(command_id)
}
