//! `workflow_runs`: identity, status and deadlines, as the engine itself keeps them.

use chrono::{DateTime, Utc};

use super::{ClosedReason, RunStatus};
use crate::db::{DbError, Row};

#[derive(Clone, Debug, PartialEq)]
pub struct RunRow {
    pub id: String,
    pub workflow_instance_id: String,
    pub run_number: i64,
    pub workflow_class: String,
    pub workflow_type: String,
    pub namespace: Option<String>,
    pub business_key: Option<String>,
    pub status: RunStatus,
    pub closed_reason: Option<ClosedReason>,
    pub compatibility: Option<String>,
    pub connection: Option<String>,
    pub queue: Option<String>,
    pub last_history_sequence: i64,
    pub execution_deadline_at: Option<DateTime<Utc>>,
    pub run_deadline_at: Option<DateTime<Utc>>,
    pub started_at: Option<DateTime<Utc>>,
    pub closed_at: Option<DateTime<Utc>>,
    pub created_at: Option<DateTime<Utc>>,
}

impl RunRow {
    /// The columns [`RunRow::read`] expects, in its order.
    pub const COLUMNS: &'static str = "id, workflow_instance_id, run_number, workflow_class, \
        workflow_type, namespace, business_key, status, closed_reason, compatibility, connection, \
        queue, last_history_sequence, execution_deadline_at, run_deadline_at, started_at, \
        closed_at, created_at";

    pub fn read(row: &mut Row) -> Result<Self, DbError> {
        Ok(Self {
            id: row.text("id")?,
            workflow_instance_id: row.text("workflow_instance_id")?,
            run_number: row.int("run_number")?,
            workflow_class: row.text("workflow_class")?,
            workflow_type: row.text("workflow_type")?,
            namespace: row.opt_text("namespace")?,
            business_key: row.opt_text("business_key")?,
            status: row.text("status")?.into(),
            closed_reason: row.opt_text("closed_reason")?.map(Into::into),
            compatibility: row.opt_text("compatibility")?,
            connection: row.opt_text("connection")?,
            queue: row.opt_text("queue")?,
            last_history_sequence: row.opt_int("last_history_sequence")?.unwrap_or(0),
            execution_deadline_at: row.opt_time("execution_deadline_at")?,
            run_deadline_at: row.opt_time("run_deadline_at")?,
            started_at: row.opt_time("started_at")?,
            closed_at: row.opt_time("closed_at")?,
            created_at: row.opt_time("created_at")?,
        })
    }
}
