//! The statements behind an export: what a run is at once, and its history piece by piece.

use std::collections::BTreeSet;

use futures_util::{StreamExt as _, stream::BoxStream};

use super::{
    lot::Events,
    related::related_instances,
    run_rows::{Extent, RunRows},
    snapshot::{self, RunSnapshot, TimelineCache, related_runs},
};
use crate::{
    db::{DbError, Row, Snapshot, Statement},
    durable::stored::{HistoryEvent, Notices, TaskRow, TimelineEntry},
};

/// Where an export reads, and what it met there that could not be taken as it stands.
#[derive(Debug)]
pub struct Reading<'s> {
    pub snapshot: &'s mut Snapshot,
    pub notices: Notices,
}

impl Reading<'_> {
    async fn all<T>(&mut self, q: Statement, of_row: Read<T>) -> Result<Vec<T>, DbError> {
        snapshot::read(self.snapshot.fetch(q).await?, &mut self.notices, of_row)
    }
}

/// How a table's rows are read.
type Read<T> = fn(&mut Row, &mut Notices) -> Result<T, DbError>;

/// The run with all that does not grow with its steps: no events, no tasks, no activities, no
/// timers, and none of the engine's stored projections of them.
pub async fn head(snapshot: &mut Snapshot, run_id: &str) -> Result<Option<RunSnapshot>, DbError> {
    let timeline = TimelineCache::Presence;
    let rows = RunRows::fetch(snapshot, run_id, timeline, Extent::Head, None).await?;
    rows.map(|(rows, _)| RunSnapshot::of(rows, timeline))
        .transpose()
}

/// Adds the runs that the snapshot's own events and links name.
pub async fn add_related(snapshot: &mut Snapshot, run: &mut RunSnapshot) -> Result<(), DbError> {
    let instance = run.run.workflow_instance_id.as_str();
    let named = run.links.iter().flat_map(|link| {
        [
            link.parent_workflow_instance_id.as_str(),
            link.child_workflow_instance_id.as_str(),
        ]
    });
    let others = related_instances(instance, &Events::Known(run.events.clone()), named);
    run.related = related_runs(snapshot, instance, Some(&run.run.id), &others).await?;
    Ok(())
}

/// The next events after a sequence. Served by the unique `(workflow_run_id, sequence)`.
pub async fn events_after(
    reading: &mut Reading<'_>,
    run_id: &str,
    after: i64,
    limit: u32,
) -> Result<Vec<HistoryEvent>, DbError> {
    let mut q = reading.snapshot.statement();
    q.push("select ")
        .push(HistoryEvent::COLUMNS)
        .push(" from {workflow_history_events} where workflow_run_id = ")
        .bind(run_id)
        .push(" and sequence > ")
        .bind(after)
        .push(" order by sequence limit ")
        .bind(limit);
    reading.all(q, HistoryEvent::read).await
}

/// The events of these sequences, in their order. Served likewise.
pub async fn events_at(
    reading: &mut Reading<'_>,
    run_id: &str,
    sequences: &[i64],
) -> Result<Vec<HistoryEvent>, DbError> {
    if sequences.is_empty() {
        return Ok(Vec::new());
    }
    let mut q = reading.snapshot.statement();
    q.push("select ")
        .push(HistoryEvent::COLUMNS)
        .push(" from {workflow_history_events} where workflow_run_id = ")
        .bind(run_id)
        .push(" and sequence in ")
        .bind_list(sequences.iter().copied())
        .push(" order by sequence");
    reading.all(q, HistoryEvent::read).await
}

/// The last of these sequences, if it leads on. One that cannot be read counts as none, so that
/// a damaged row is not met for ever.
pub fn next_after(events: &[HistoryEvent], after: i64) -> Option<i64> {
    let last = events.iter().map(|event| event.sequence).max()?;
    (last > after).then_some(last)
}

/// Every task in the order they are listed, as they arrive.
pub fn tasks<'s>(
    reading: &'s mut Reading<'_>,
    run_id: &str,
) -> BoxStream<'s, Result<TaskRow, DbError>> {
    let Reading { snapshot, notices } = reading;
    let mut q = snapshot.statement();
    q.push("select ")
        .push(TaskRow::COLUMNS)
        .push(" from {workflow_tasks} where workflow_run_id = ")
        .bind(run_id)
        .push(" order by available_at, created_at, id");
    let rows = snapshot.stream(q);
    rows.map(|row| TaskRow::read(&mut row?, notices)).boxed()
}

/// The stored timeline between two sequences. Served by `(workflow_run_id, sequence)`.
pub async fn timeline_between(
    reading: &mut Reading<'_>,
    run_id: &str,
    from: i64,
    to: i64,
) -> Result<Vec<TimelineEntry>, DbError> {
    let mut q = reading.snapshot.statement();
    q.push("select ")
        .push(TimelineEntry::COLUMNS)
        .push(" from {workflow_run_timeline_entries} where workflow_run_id = ")
        .bind(run_id)
        .push(" and sequence >= ")
        .bind(from)
        .push(" and sequence <= ")
        .bind(to)
        .push(" order by sequence");
    reading.all(q, TimelineEntry::read).await
}

/// The next rows of a stored projection, by position. Served by `(workflow_run_id)`.
pub async fn entries_after<T>(
    reading: &mut Reading<'_>,
    table: &'static str,
    columns: &'static str,
    run_id: &str,
    skip: usize,
    limit: usize,
    of_row: Read<T>,
) -> Result<Vec<T>, DbError> {
    let mut q = reading.snapshot.statement();
    q.push("select ")
        .push(columns)
        .push(" from {")
        .push(table)
        .push("} where workflow_run_id = ")
        .bind(run_id)
        .push(" order by position limit ")
        .bind(i64::try_from(limit).unwrap_or(i64::MAX))
        .push(" offset ")
        .bind(i64::try_from(skip).unwrap_or(i64::MAX));
    reading.all(q, of_row).await
}

/// The rows of these ids, or of another unique or indexed column. In no order.
pub async fn rows_of<'v, T>(
    reading: &mut Reading<'_>,
    table: &'static str,
    columns: &'static str,
    column: &'static str,
    values: impl IntoIterator<Item = &'v str>,
    of_row: Read<T>,
) -> Result<Vec<T>, DbError> {
    let values: BTreeSet<&str> = values.into_iter().collect();
    if values.is_empty() {
        return Ok(Vec::new());
    }
    let mut q = reading.snapshot.statement();
    q.push("select ")
        .push(columns)
        .push(" from {")
        .push(table)
        .push("} where ")
        .push(column)
        .push(" in ")
        .bind_list(values);
    reading.all(q, of_row).await
}

/// One column of every row of the run, or of as many as an index on the run gives.
pub async fn ids(
    snapshot: &mut Snapshot,
    table: &'static str,
    run_id: &str,
) -> Result<Vec<String>, DbError> {
    let mut q = snapshot.statement();
    q.push("select id from {")
        .push(table)
        .push("} where workflow_run_id = ")
        .bind(run_id)
        .push(" order by sequence");
    let rows = snapshot.fetch(q).await?;
    Ok(rows
        .iter()
        .filter_map(|row| row.peek("id"))
        .map(str::to_owned)
        .collect())
}
