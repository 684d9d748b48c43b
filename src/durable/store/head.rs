//! The facts of one run that its page opens with.

use std::collections::BTreeSet;

use super::snapshot::related_runs;
use crate::{
    db::{DbError, Json, Snapshot},
    durable::{
        projection::{current_run, related::Related},
        stored::{ListedRun, RunRow},
    },
};

#[derive(Clone, Debug)]
pub struct RunHead {
    pub run: RunRow,
    /// The engine's projection; none when it has not been made or was pruned.
    pub summary: Option<ListedRun>,
    /// The line a demo situation tells about itself.
    pub story: Option<String>,
}

/// Whether there is a run of this id.
pub async fn exists(snapshot: &mut Snapshot, run_id: &str) -> Result<bool, DbError> {
    let mut q = snapshot.statement();
    q.push("select id from {workflow_runs} where id = ")
        .bind(run_id);
    Ok(snapshot.fetch_one(q).await?.is_some())
}

/// Whether the run is one of this instance.
pub async fn belongs(
    snapshot: &mut Snapshot,
    instance_id: &str,
    run_id: &str,
) -> Result<bool, DbError> {
    let mut q = snapshot.statement();
    q.push("select id from {workflow_runs} where id = ")
        .bind(run_id)
        .push(" and workflow_instance_id = ")
        .bind(instance_id);
    Ok(snapshot.fetch_one(q).await?.is_some())
}

/// The instance's current run: the end of its continue-as-new chain, else its newest. The
/// pointer the engine keeps on the instance is a convenience it does not trust itself.
pub async fn current_run_id(
    snapshot: &mut Snapshot,
    instance_id: &str,
) -> Result<Option<String>, DbError> {
    let runs = related_runs(snapshot, &BTreeSet::from([instance_id.to_owned()])).await?;
    let related = Related::over(&runs);
    Ok(current_run::current_run(&related, instance_id).map(|(run, _)| run.run.id.clone()))
}

/// One run of an instance.
pub async fn run_head(
    snapshot: &mut Snapshot,
    instance_id: &str,
    run_id: &str,
) -> Result<Option<RunHead>, DbError> {
    let mut q = snapshot.statement();
    q.push("select ")
        .columns("workflow_runs", RunRow::COLUMNS)
        .push(" from {workflow_runs} where workflow_instance_id = ")
        .bind(instance_id)
        .push(" and id = ")
        .bind(run_id);
    let Some(mut row) = snapshot.fetch_one(q).await? else {
        return Ok(None);
    };
    let run = RunRow::read(&mut row)?;
    let mut q = snapshot.statement();
    q.push("select ")
        .columns("workflow_run_summaries", ListedRun::COLUMNS)
        .push(" from {workflow_run_summaries} where id = ")
        .bind(&run.id);
    let summary = snapshot
        .fetch_one(q)
        .await?
        .as_mut()
        .map(ListedRun::read)
        .transpose()?;
    let story = story(snapshot, &run.id).await?;
    Ok(Some(RunHead {
        run,
        summary,
        story,
    }))
}

/// The memo the demo's catalogue writes on a situation's run.
async fn story(snapshot: &mut Snapshot, run_id: &str) -> Result<Option<String>, DbError> {
    let mut q = snapshot.statement();
    q.push("select value from {workflow_memos} where workflow_run_id = ")
        .bind(run_id)
        .push(" and \"key\" = ")
        .bind(crate::demo::STORY_MEMO);
    let Some(mut row) = snapshot.fetch_one(q).await? else {
        return Ok(None);
    };
    Ok(match row.opt_json("value")? {
        Some(Json::Value(serde_json::Value::String(story))) => Some(story),
        _ => None,
    })
}
