//! The statements behind an export: what a run is at once, and its history piece by piece.

use std::collections::BTreeSet;

use super::snapshot::{Reader, RunSnapshot, TimelineCache, related_instances, related_runs};
use crate::{
    db::{DbError, Row, Snapshot},
    durable::stored::{HistoryEvent, TimelineEntry},
};

/// The run with all that does not grow with its steps: no events, no tasks, no activities, no
/// timers, and none of the engine's stored projections of them.
pub async fn head(snapshot: &mut Snapshot, run_id: &str) -> Result<Option<RunSnapshot>, DbError> {
    Reader { snapshot, run_id }
        .load(TimelineCache::Presence, false)
        .await
}

/// Adds the runs that the snapshot's own events and links name.
pub async fn add_related(snapshot: &mut Snapshot, run: &mut RunSnapshot) -> Result<(), DbError> {
    let instances = related_instances(&run.run, &run.events, &run.links);
    run.related = related_runs(snapshot, &instances).await?;
    Ok(())
}

/// The next events after a sequence. Served by the unique `(workflow_run_id, sequence)`.
pub async fn events_after(
    snapshot: &mut Snapshot,
    run_id: &str,
    after: i64,
    limit: u32,
) -> Result<Vec<HistoryEvent>, DbError> {
    let mut q = snapshot.statement();
    q.push("select ")
        .columns(HistoryEvent::TABLE, HistoryEvent::COLUMNS)
        .push(" from {workflow_history_events} where workflow_run_id = ")
        .bind(run_id)
        .push(" and sequence > ")
        .bind(after)
        .push(" order by sequence limit ")
        .bind(limit);
    read(snapshot.fetch(q).await?, HistoryEvent::read)
}

/// The events of these sequences, in their order. Served likewise.
pub async fn events_at(
    snapshot: &mut Snapshot,
    run_id: &str,
    sequences: &[i64],
) -> Result<Vec<HistoryEvent>, DbError> {
    if sequences.is_empty() {
        return Ok(Vec::new());
    }
    let mut q = snapshot.statement();
    q.push("select ")
        .columns(HistoryEvent::TABLE, HistoryEvent::COLUMNS)
        .push(" from {workflow_history_events} where workflow_run_id = ")
        .bind(run_id)
        .push(" and sequence in ")
        .bind_list(sequences.iter().copied())
        .push(" order by sequence");
    read(snapshot.fetch(q).await?, HistoryEvent::read)
}

/// The stored timeline between two sequences. Served by `(workflow_run_id, sequence)`.
pub async fn timeline_between(
    snapshot: &mut Snapshot,
    run_id: &str,
    from: i64,
    to: i64,
) -> Result<Vec<TimelineEntry>, DbError> {
    let mut q = snapshot.statement();
    if !q.has_table(TimelineEntry::TABLE) {
        return Ok(Vec::new());
    }
    q.push("select ")
        .columns(TimelineEntry::TABLE, TimelineEntry::COLUMNS)
        .push(" from {workflow_run_timeline_entries} where workflow_run_id = ")
        .bind(run_id)
        .push(" and sequence >= ")
        .bind(from)
        .push(" and sequence <= ")
        .bind(to)
        .push(" order by sequence");
    read(snapshot.fetch(q).await?, TimelineEntry::read)
}

/// The next rows of a stored projection, by position. Served by `(workflow_run_id)`.
pub async fn entries_after<T>(
    snapshot: &mut Snapshot,
    table: &'static str,
    columns: &'static str,
    run_id: &str,
    skip: usize,
    limit: usize,
    of_row: fn(&mut Row) -> Result<T, DbError>,
) -> Result<Vec<T>, DbError> {
    let mut q = snapshot.statement();
    if !q.has_table(table) {
        return Ok(Vec::new());
    }
    q.push("select ")
        .columns(table, columns)
        .push(" from {")
        .push(table)
        .push("} where workflow_run_id = ")
        .bind(run_id)
        .push(" order by position limit ")
        .bind(i64::try_from(limit).unwrap_or(i64::MAX))
        .push(" offset ")
        .bind(i64::try_from(skip).unwrap_or(i64::MAX));
    read(snapshot.fetch(q).await?, of_row)
}

/// The rows of these ids, or of another unique or indexed column. In no order.
pub async fn rows_of<'v, T>(
    snapshot: &mut Snapshot,
    table: &'static str,
    columns: &'static str,
    column: &'static str,
    values: impl IntoIterator<Item = &'v str>,
    of_row: fn(&mut Row) -> Result<T, DbError>,
) -> Result<Vec<T>, DbError> {
    let values: BTreeSet<&str> = values.into_iter().collect();
    let mut q = snapshot.statement();
    if values.is_empty() || !q.has_table(table) {
        return Ok(Vec::new());
    }
    q.push("select ")
        .columns(table, columns)
        .push(" from {")
        .push(table)
        .push("} where ")
        .push(column)
        .push(" in ")
        .bind_list(values);
    read(snapshot.fetch(q).await?, of_row)
}

/// One column of every row of the run, or of as many as an index on the run gives.
pub async fn ids(
    snapshot: &mut Snapshot,
    table: &'static str,
    run_id: &str,
) -> Result<Vec<String>, DbError> {
    let mut q = snapshot.statement();
    if !q.has_table(table) {
        return Ok(Vec::new());
    }
    q.push("select id from {")
        .push(table)
        .push("} where workflow_run_id = ")
        .bind(run_id)
        .push(" order by sequence");
    read(snapshot.fetch(q).await?, |row| row.text("id"))
}

fn read<T>(
    mut rows: Vec<Row>,
    of_row: fn(&mut Row) -> Result<T, DbError>,
) -> Result<Vec<T>, DbError> {
    rows.iter_mut().map(of_row).collect()
}

/// What changes whenever the rows behind a bundle do, as text; none when there is no such run.
pub async fn state(snapshot: &mut Snapshot, run_id: &str) -> Result<Option<String>, DbError> {
    let mut q = snapshot.statement();
    q.push("select last_history_sequence, last_command_sequence, status, updated_at")
        .push(", (select max(t.updated_at) from {workflow_tasks} t where t.workflow_run_id = r.id) as task_at")
        .push(", (select count(*) from {workflow_tasks} t where t.workflow_run_id = r.id) as tasks")
        .push(", (select s.updated_at from {workflow_run_summaries} s where s.id = r.id) as summary_at")
        .push(", (select max(e.recorded_at) from {workflow_history_events} e where e.workflow_run_id = r.id) as event_at")
        .push(" from {workflow_runs} r where id = ")
        .bind(run_id);
    let row = snapshot.fetch_one(q).await?;
    Ok(row.map(|row| {
        let cells: Vec<String> = row
            .cells()
            .map(|(name, value)| format!("{name}={value:?}"))
            .collect();
        format!("{run_id} {}", cells.join(" "))
    }))
}
