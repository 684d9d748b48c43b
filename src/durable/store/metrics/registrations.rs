//! Who registered with the engine's server to poll the queues of one namespace. Its tables are
//! the server's own: an application that runs the engine by itself has none.

use super::{
    counted,
    lenient::Lenient,
    sql::{self, Scope},
};
use crate::{
    db::{DbError, Json, Snapshot},
    durable::stored::Stamp,
};

/// One worker's registration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Registration {
    pub worker_id: String,
    pub task_queue: Option<String>,
    pub runtime: Option<String>,
    pub sdk_version: Option<String>,
    pub build_id: Option<String>,
    pub supported_workflow_types: Vec<String>,
    pub supported_activity_types: Vec<String>,
    pub max_concurrent_workflow_tasks: i64,
    pub max_concurrent_activity_tasks: i64,
    pub last_heartbeat_at: Option<Stamp>,
    pub status: Option<String>,
}

/// What was decided about one build of one queue's workers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rollout {
    pub task_queue: String,
    pub build_id: Option<String>,
    pub drain_intent: Option<String>,
    pub drained_at: Option<Stamp>,
}

/// What the server's tables say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Registrations {
    pub workers: Vec<Registration>,
    pub rollouts: Vec<Rollout>,
}

/// How many workers the server's table names; none where the table is not there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Registered {
    pub workers: i64,
    pub live: i64,
    pub by_queue: Vec<RegisteredQueue>,
}

counted! {
    RegisteredQueue {
        task_queue: text,
        workers: int,
        live: int,
        polling: int,
    }
}

const WORKERS: &str = "workflow_worker_registrations";
const ROLLOUTS: &str = "workflow_worker_build_id_rollouts";

macro_rules! present {
    ($from:literal, $name:literal) => {
        concat!(
            "select ",
            $name,
            " as name from ",
            $from,
            " and ",
            $name,
            " in ('{workflow_worker_registrations}', '{workflow_worker_build_id_rollouts}')"
        )
    };
}

/// A worker is one row, so there are few; the limit only keeps a table gone wild in its place.
const REGISTERED: &str = "select worker_id, task_queue, runtime, sdk_version, build_id, \
    supported_workflow_types, supported_activity_types, max_concurrent_workflow_tasks, \
    max_concurrent_activity_tasks, last_heartbeat_at, status \
    from {workflow_worker_registrations} where namespace = :namespace \
    order by task_queue, last_heartbeat_at desc, worker_id limit 10000";

const DECIDED: &str = "select task_queue, build_id, drain_intent, drained_at \
    from {workflow_worker_build_id_rollouts} where namespace = :namespace \
    order by task_queue, build_id limit 10000";

/// One row per worker, in a table whose indexes are the server's own. Who polls a queue is another
/// question than who is still heard: [`crate::durable::metrics::pollers::pollers`].
const COUNTED: &str = "select task_queue, count(*) as workers, \
    count(case when last_heartbeat_at >= :heard then 1 end) as live, \
    count(case when last_heartbeat_at is null or last_heartbeat_at > :polled then 1 end) as polling \
    from {workflow_worker_registrations} where 1 = 1:and_ns group by task_queue";

/// How many registered, in one namespace or in all, and how many of them are still heard.
pub(super) async fn registered(
    snapshot: &mut Snapshot,
    scope: &Scope<'_>,
) -> Result<Registered, DbError> {
    if tables(snapshot)
        .await?
        .iter()
        .any(|table| table.ends_with(WORKERS))
    {
        let by_queue = sql::all(snapshot, scope, COUNTED, RegisteredQueue::read).await?;
        Ok(Registered {
            workers: by_queue.iter().map(|queue| queue.workers).sum(),
            live: by_queue.iter().map(|queue| queue.live).sum(),
            by_queue,
        })
    } else {
        Ok(Registered::default())
    }
}

/// None where the server's table of workers is not there.
pub(super) async fn registrations(
    snapshot: &mut Snapshot,
    scope: &Scope<'_>,
) -> Result<Option<Registrations>, DbError> {
    let names = tables(snapshot).await?;
    let has = |table: &str| names.iter().any(|name| name.ends_with(table));
    if !has(WORKERS) {
        return Ok(None);
    }
    let workers = sql::all(snapshot, scope, REGISTERED, registration).await?;
    let rollouts = if has(ROLLOUTS) {
        sql::all(snapshot, scope, DECIDED, rollout).await?
    } else {
        Vec::new()
    };
    Ok(Some(Registrations { workers, rollouts }))
}

/// Which of the server's tables are there.
async fn tables(snapshot: &mut Snapshot) -> Result<Vec<String>, DbError> {
    let mut q = snapshot.statement();
    q.push(snapshot.dialect().pick(
        present!("sqlite_master where type in ('table', 'view')", "name"),
        present!(
            "information_schema.tables where table_schema = any (current_schemas(false))",
            "table_name"
        ),
        present!(
            "information_schema.tables where table_schema = database()",
            "table_name"
        ),
    ));
    snapshot.fetch_as(q, |row| row.text("name")).await
}

fn registration(row: &mut Lenient<'_>) -> Result<Registration, DbError> {
    Ok(Registration {
        worker_id: row.text("worker_id")?,
        task_queue: row
            .opt_text("task_queue")?
            .filter(|queue| !queue.is_empty()),
        runtime: row.opt_text("runtime")?,
        sdk_version: row.opt_text("sdk_version")?,
        build_id: row.opt_text("build_id")?,
        supported_workflow_types: texts(row.opt_json("supported_workflow_types")?),
        supported_activity_types: texts(row.opt_json("supported_activity_types")?),
        max_concurrent_workflow_tasks: at_least_none(row, "max_concurrent_workflow_tasks")?,
        max_concurrent_activity_tasks: at_least_none(row, "max_concurrent_activity_tasks")?,
        last_heartbeat_at: row.time("last_heartbeat_at")?,
        status: row.opt_text("status")?.filter(|status| !status.is_empty()),
    })
}

fn rollout(row: &mut Lenient<'_>) -> Result<Rollout, DbError> {
    Ok(Rollout {
        task_queue: row.text("task_queue")?,
        build_id: row.opt_text("build_id")?,
        drain_intent: row.opt_text("drain_intent")?,
        drained_at: row.time("drained_at")?,
    })
}

fn at_least_none(row: &mut Lenient<'_>, column: &'static str) -> Result<i64, DbError> {
    Ok(row.int(column)?.max(0))
}

fn texts(list: Option<Json>) -> Vec<String> {
    let Some(Json::Value(serde_json::Value::Array(list))) = list else {
        return Vec::new();
    };
    let texts = list.iter().filter_map(serde_json::Value::as_str);
    texts.map(str::to_owned).collect()
}
