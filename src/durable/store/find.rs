//! Finds the run an id belongs to, whatever kind of id it is.

use crate::db::{DbError, Snapshot, Statement};

/// What an id turned out to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The kind of row that has this id.
    pub kind: String,
    pub instance_id: String,
    pub run_id: Option<String>,
}

/// Each arm is one lookup in a primary key or a single-column index.
const ARMS: &[&str] = &[
    "select 'run' as kind, workflow_instance_id as instance_id, id as run_id from {workflow_runs} where id in ",
    "select 'instance', id, null from {workflow_instances} where id in ",
    "select 'task', r.workflow_instance_id, r.id from {workflow_tasks} x \
      join {workflow_runs} r on r.id = x.workflow_run_id where x.id in ",
    "select 'activity execution', r.workflow_instance_id, r.id from {activity_executions} x \
      join {workflow_runs} r on r.id = x.workflow_run_id where x.id in ",
    "select 'activity attempt', r.workflow_instance_id, r.id from {activity_attempts} x \
      join {workflow_runs} r on r.id = x.workflow_run_id where x.id in ",
    "select 'failure', r.workflow_instance_id, r.id from {workflow_failures} x \
      join {workflow_runs} r on r.id = x.workflow_run_id where x.id in ",
    "select 'timer', r.workflow_instance_id, r.id from {workflow_run_timers} x \
      join {workflow_runs} r on r.id = x.workflow_run_id where x.id in ",
    "select 'command', r.workflow_instance_id, r.id from {workflow_commands} x \
      join {workflow_runs} r on r.id = x.workflow_run_id where x.id in ",
    "select 'signal', r.workflow_instance_id, r.id from {workflow_signal_records} x \
      join {workflow_runs} r on r.id = x.workflow_run_id where x.id in ",
    "select 'update', r.workflow_instance_id, r.id from {workflow_updates} x \
      join {workflow_runs} r on r.id = x.workflow_run_id where x.id in ",
    "select 'event', r.workflow_instance_id, r.id from {workflow_history_events} x \
      join {workflow_runs} r on r.id = x.workflow_run_id where x.id in ",
];

/// Everything that has this id, most direct first. The engine makes some ids in upper case and
/// people paste them in either: each spelling is looked up, none is altered in the answer.
pub async fn by_id(snapshot: &mut Snapshot, id: &str) -> Result<Vec<Found>, DbError> {
    let mut spellings = vec![
        id.to_owned(),
        id.to_ascii_lowercase(),
        id.to_ascii_uppercase(),
    ];
    spellings.dedup();
    let mut q = snapshot.statement();
    for (n, arm) in ARMS.iter().enumerate() {
        if n > 0 {
            q.push(" union all ");
        }
        q.push(arm).bind_list(&spellings);
    }
    q.push(" limit 20");
    read(snapshot, q).await
}

/// One or two of the runs that carry this business key. Served by `(business_key)`.
pub async fn by_business_key(snapshot: &mut Snapshot, key: &str) -> Result<Vec<Found>, DbError> {
    let mut q = snapshot.statement();
    q.push(
        "select 'business key' as kind, workflow_instance_id as instance_id, id as run_id \
         from {workflow_runs} where business_key = ",
    )
    .bind(key)
    .push(" limit 2");
    read(snapshot, q).await
}

async fn read(snapshot: &mut Snapshot, q: Statement) -> Result<Vec<Found>, DbError> {
    snapshot
        .fetch(q)
        .await?
        .iter_mut()
        .map(|row| {
            Ok(Found {
                kind: row.text("kind")?,
                instance_id: row.text("instance_id")?,
                run_id: row.opt_text("run_id")?,
            })
        })
        .collect()
}
