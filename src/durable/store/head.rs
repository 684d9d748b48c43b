//! The facts of one run that its page opens with.

use chrono::{DateTime, Utc};

use crate::{
    db::{DbError, Json, Snapshot},
    durable::stored::{ClosedReason, RunStatus, RunSummary},
};

/// `workflow_runs`, as far as the head needs it.
#[derive(Clone, Debug)]
pub struct RunHead {
    pub id: String,
    pub instance_id: String,
    pub run_number: i64,
    pub workflow_type: String,
    pub namespace: Option<String>,
    pub business_key: Option<String>,
    pub status: RunStatus,
    pub closed_reason: Option<ClosedReason>,
    pub compatibility: Option<String>,
    pub connection: Option<String>,
    pub queue: Option<String>,
    pub started_at: Option<DateTime<Utc>>,
    pub closed_at: Option<DateTime<Utc>>,
    pub created_at: Option<DateTime<Utc>>,
    pub execution_deadline_at: Option<DateTime<Utc>>,
    pub run_deadline_at: Option<DateTime<Utc>>,
    pub last_history_sequence: i64,
    /// The engine's projection; none when it has not been made or was pruned.
    pub summary: Option<RunSummary>,
    /// The line a demo situation tells about itself.
    pub story: Option<String>,
}

const COLUMNS: &str = "id, workflow_instance_id, run_number, workflow_type, namespace, business_key, status, \
    closed_reason, compatibility, connection, queue, started_at, closed_at, created_at, \
    execution_deadline_at, run_deadline_at, last_history_sequence";

/// One run of an instance; without a run id, the one with the highest number.
pub async fn run_head(
    snapshot: &mut Snapshot,
    instance_id: &str,
    run_id: Option<&str>,
) -> Result<Option<RunHead>, DbError> {
    let mut q = snapshot.statement();
    q.push("select ")
        .push(COLUMNS)
        .push(" from {workflow_runs} where workflow_instance_id = ")
        .bind(instance_id);
    if let Some(run_id) = run_id {
        q.push(" and id = ").bind(run_id);
    }
    q.push(" order by run_number desc limit 1");
    let Some(mut row) = snapshot.fetch_one(q).await? else {
        return Ok(None);
    };
    let mut head = RunHead {
        id: row.text("id")?,
        instance_id: row.text("workflow_instance_id")?,
        run_number: row.int("run_number")?,
        workflow_type: row.text("workflow_type")?,
        namespace: row.opt_text("namespace")?,
        business_key: row.opt_text("business_key")?,
        status: row.text("status")?.into(),
        closed_reason: row.opt_text("closed_reason")?.map(Into::into),
        compatibility: row.opt_text("compatibility")?,
        connection: row.opt_text("connection")?,
        queue: row.opt_text("queue")?,
        started_at: row.opt_time("started_at")?,
        closed_at: row.opt_time("closed_at")?,
        created_at: row.opt_time("created_at")?,
        execution_deadline_at: row.opt_time("execution_deadline_at")?,
        run_deadline_at: row.opt_time("run_deadline_at")?,
        last_history_sequence: row.opt_int("last_history_sequence")?.unwrap_or(0),
        summary: None,
        story: None,
    };
    let mut q = snapshot.statement();
    q.push("select ")
        .push(RunSummary::COLUMNS)
        .push(" from {workflow_run_summaries} where id = ")
        .bind(&head.id);
    head.summary = snapshot
        .fetch_one(q)
        .await?
        .as_mut()
        .map(RunSummary::read)
        .transpose()?;
    head.story = story(snapshot, &head.id).await?;
    Ok(Some(head))
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
