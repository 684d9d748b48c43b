//! The statements behind an export: what a run is at once, and its history piece by piece.

use futures_util::{StreamExt as _, stream::BoxStream};

use super::{
    lot::Events,
    related::related_to,
    run_rows::{Extent, RunRows},
    snapshot::{self, RunSnapshot, TimelineCache, related_runs},
};
use crate::{
    db::{DbError, Row, Snapshot, Statement},
    durable::stored::{HistoryEvent, Notices, Stored, TaskRow, TimelineEntry},
};

/// Where an export reads, and what it met there that could not be taken as it stands.
#[derive(Debug)]
pub struct Reading<'s> {
    pub snapshot: &'s mut Snapshot,
    pub notices: Notices,
}

impl Reading<'_> {
    async fn all<T: Stored>(&mut self, q: Statement) -> Result<Vec<T>, DbError> {
        snapshot::read(self.snapshot.fetch(q).await?, &mut self.notices, T::read)
    }

    fn stream<'s, T: Stored + 's>(
        &'s mut self,
        run_id: &str,
        order: &'static str,
    ) -> BoxStream<'s, Result<T, DbError>> {
        let Reading { snapshot, notices } = self;
        let rows = rows::<T>(snapshot, run_id, order);
        rows.map(|row| T::read(&mut row?, notices)).boxed()
    }
}

/// Every row of a run, as the database gives it.
pub fn rows<'s, T: Stored>(
    snapshot: &'s mut Snapshot,
    run_id: &str,
    order: &'static str,
) -> BoxStream<'s, Result<Row, DbError>> {
    let mut q = snapshot.statement();
    q.push("select ")
        .push(T::COLUMNS)
        .push(" from {")
        .push(T::TABLE)
        .push("} where workflow_run_id = ")
        .bind(run_id)
        .push(order);
    snapshot.stream(q)
}

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
    let others = related_to(instance, &Events::Known(run.events.clone()), named);
    run.related = related_runs(snapshot, instance, Some(&run.run.id), &others).await?;
    Ok(())
}

/// Every event in its order, as they arrive. Served by the unique `(workflow_run_id, sequence)`.
pub fn events<'s>(
    reading: &'s mut Reading<'_>,
    run_id: &str,
) -> BoxStream<'s, Result<HistoryEvent, DbError>> {
    reading.stream(run_id, " order by sequence")
}

/// Every task in the order they are listed, as they arrive.
pub fn tasks<'s>(
    reading: &'s mut Reading<'_>,
    run_id: &str,
) -> BoxStream<'s, Result<TaskRow, DbError>> {
    reading.stream(run_id, " order by available_at, created_at, id")
}

/// The stored timeline at these sequences, which count up. Served by `(workflow_run_id, sequence)`.
pub async fn timeline_at(
    reading: &mut Reading<'_>,
    run_id: &str,
    sequences: impl IntoIterator<Item = i64>,
) -> Result<Vec<TimelineEntry>, DbError> {
    let mut entries = Vec::new();
    for some in lists(sequences.into_iter().collect()) {
        let mut q = reading.snapshot.statement();
        q.push("select ")
            .push(TimelineEntry::COLUMNS)
            .push(" from {workflow_run_timeline_entries} where workflow_run_id = ")
            .bind(run_id)
            .push(" and sequence in ")
            .bind_list(some)
            .push(" order by sequence");
        entries.append(&mut reading.all(q).await?);
    }
    Ok(entries)
}

/// How many rows of a table the run has. Served by an index on `workflow_run_id`.
pub async fn count<T: Stored>(snapshot: &mut Snapshot, run_id: &str) -> Result<usize, DbError> {
    let mut q = snapshot.statement();
    q.push("select count(*) as many from {")
        .push(T::TABLE)
        .push("} where workflow_run_id = ")
        .bind(run_id);
    let row = snapshot.fetch_one(q).await?;
    let many = row.map_or(Ok(0), |mut row| row.int("many"))?;
    Ok(usize::try_from(many).unwrap_or(0))
}

/// The rows of a stored projection by position, as they arrive. Served by `(workflow_run_id)`.
pub fn entries<'s, T: Stored + 's>(
    reading: &'s mut Reading<'_>,
    run_id: &str,
) -> BoxStream<'s, Result<T, DbError>> {
    reading.stream(run_id, " order by position")
}

/// Values in lists that every database takes, each filled up with its last: of as many lengths
/// only few statements are prepared.
fn lists<T: Copy>(values: Vec<T>) -> impl Iterator<Item = Vec<T>> {
    const MOST: usize = 1_000;
    const STEP: usize = 100;
    let mut rest = values;
    std::iter::from_fn(move || {
        let mut list: Vec<T> = rest.drain(..rest.len().min(MOST)).collect();
        let last = *list.last()?;
        list.resize(list.len().next_multiple_of(STEP), last);
        Some(list)
    })
}
