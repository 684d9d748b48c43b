//! The facts of one run that its page opens with.

use crate::{
    db::{DbError, Json, Snapshot},
    durable::stored::{RunRow, RunSummary},
};

#[derive(Clone, Debug)]
pub struct RunHead {
    pub run: RunRow,
    /// The engine's projection; none when it has not been made or was pruned.
    pub summary: Option<RunSummary>,
    /// The line a demo situation tells about itself.
    pub story: Option<String>,
}

/// One run of an instance; without a run id, the one with the highest number.
pub async fn run_head(
    snapshot: &mut Snapshot,
    instance_id: &str,
    run_id: Option<&str>,
) -> Result<Option<RunHead>, DbError> {
    let mut q = snapshot.statement();
    q.push("select ")
        .columns("workflow_runs", RunRow::COLUMNS)
        .push(" from {workflow_runs} where workflow_instance_id = ")
        .bind(instance_id);
    if let Some(run_id) = run_id {
        q.push(" and id = ").bind(run_id);
    }
    q.push(" order by run_number desc limit 1");
    let Some(mut row) = snapshot.fetch_one(q).await? else {
        return Ok(None);
    };
    let run = RunRow::read(&mut row)?;
    let mut q = snapshot.statement();
    q.push("select ")
        .columns("workflow_run_summaries", RunSummary::COLUMNS)
        .push(" from {workflow_run_summaries} where id = ")
        .bind(&run.id);
    let summary = snapshot
        .fetch_one(q)
        .await?
        .as_mut()
        .map(RunSummary::read)
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
