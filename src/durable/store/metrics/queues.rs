//! The queues of one namespace, as the engine's queue visibility counts them.

use std::collections::BTreeMap;

use super::{
    counted,
    lenient::Lenient,
    registrations::{Registrations, registrations},
    sql::{self, Scope},
    tasks::{dispatch_failed, due, late, lease_expired},
};
use crate::{
    db::{DbError, Snapshot},
    durable::stored::Stamp,
};

counted! {
    /// Open tasks of one queue and type.
    QueueCounts {
        ready_count: int,
        leased_count: int,
        expired_lease_count: int,
        dispatch_failed: int,
        oldest_dispatch_failed_at: time,
        oldest_lease_expired_at: time,
        dispatch_overdue: int,
        oldest_dispatch_overdue_since: time,
    }

    /// The task that is next in its queue.
    ReadyTask {
        task_id: text,
        task_type: text,
        workflow_id: text,
        run_id: text,
        available_at: time,
    }

    RecentCounts {
        added_last_minute: int,
        dispatched_last_minute: int,
    }

    /// A task somebody works on.
    Lease {
        task_id: text,
        task_type: text,
        workflow_id: text,
        run_id: text,
        lease_owner: text,
        lease_expires_at: time,
        attempt_count: opt_int,
        activity_attempt_id: text,
        attempt_number: opt_int,
    }
}

/// One queue: counts by task type, and its next task.
#[derive(Clone, Debug, Default)]
pub struct QueueRows {
    pub counts: BTreeMap<String, QueueCounts>,
    pub recent: BTreeMap<String, RecentCounts>,
    pub oldest: Option<ReadyTask>,
    /// At most fifty of each type, those that end first.
    pub leases: Vec<Lease>,
}

/// The queues of one namespace, and who registered to poll them.
#[derive(Clone, Debug, Default)]
pub struct Queues {
    pub by_name: BTreeMap<String, QueueRows>,
    /// None where the engine's server and its table are not there.
    pub registered: Option<Registrations>,
}

/// Index only, along `(namespace, queue, status)`.
const NAMES: &str = "select distinct queue from {workflow_tasks} \
    where namespace = :namespace and queue is not null and queue <> ''";

macro_rules! overdue {
    () => {
        concat!(
            "(status = 'ready' and ",
            due!(),
            " and ",
            late!(),
            " and (last_dispatch_error is null or last_dispatch_error = ''))"
        )
    };
}

macro_rules! of_namespace {
    () => {
        "from {workflow_tasks} where namespace = :namespace and queue is not null and queue <> '' \
         and task_type in ('workflow', 'activity')"
    };
}

const COUNTS: &str = concat!(
    "select queue, task_type, \
     count(case when status = 'ready' and (available_at is null or available_at <= :now_us) then 1 end) as ready_count, \
     count(case when status = 'leased' then 1 end) as leased_count, \
     count(case when ",
    lease_expired!(),
    " then 1 end) as expired_lease_count, \
     count(case when ",
    dispatch_failed!(),
    " then 1 end) as dispatch_failed, \
     min(case when ",
    dispatch_failed!(),
    " then last_dispatch_attempt_at end) as oldest_dispatch_failed_at, \
     min(case when ",
    lease_expired!(),
    " then lease_expires_at end) as oldest_lease_expired_at, \
     count(case when ",
    overdue!(),
    " then 1 end) as dispatch_overdue, \
     min(case when ",
    overdue!(),
    " then coalesce(last_dispatched_at, created_at) end) as oldest_dispatch_overdue_since ",
    of_namespace!(),
    " and status in ('ready', 'leased') group by queue, task_type"
);

const RECENT: &str = concat!(
    "select queue, task_type, \
     count(case when created_at >= :minute_us then 1 end) as added_last_minute, \
     count(case when last_dispatched_at >= :minute_us then 1 end) as dispatched_last_minute ",
    of_namespace!(),
    " and (created_at >= :minute_us or last_dispatched_at >= :minute_us) group by queue, task_type"
);

const OLDEST: &str = "select queue, task_id, task_type, workflow_id, run_id, available_at from (\
    select t.queue, t.id as task_id, t.task_type, r.workflow_instance_id as workflow_id, r.id as run_id, \
    coalesce(t.available_at, t.created_at) as available_at, \
    row_number() over (partition by t.queue order by \
      case when t.available_at is null then 0 else 1 end, t.available_at, t.created_at, t.id) as place \
    from {workflow_tasks} t join {workflow_runs} r on r.id = t.workflow_run_id \
    where t.namespace = :namespace and t.status = 'ready' and t.queue is not null and t.queue <> '' \
    and t.task_type in ('workflow', 'activity') \
    and (t.available_at is null or t.available_at <= :now_us)) ranked where place = 1";

/// Where nulls stand is the database's own choice, as in the engine.
const LEASES: &str = "select queue, task_id, task_type, workflow_id, run_id, lease_owner, \
    lease_expires_at, attempt_count, activity_attempt_id, attempt_number from (\
    select t.queue, t.id as task_id, t.task_type, r.workflow_instance_id as workflow_id, r.id as run_id, \
    t.lease_owner, t.lease_expires_at, t.attempt_count, a.id as activity_attempt_id, a.attempt_number, \
    row_number() over (partition by t.queue, t.task_type order by t.lease_expires_at, t.id) as place \
    from {workflow_tasks} t join {workflow_runs} r on r.id = t.workflow_run_id \
    left join {activity_attempts} a on a.workflow_task_id = t.id and a.status = 'running' \
      and t.task_type = 'activity' \
    where t.namespace = :namespace and t.status = 'leased' and t.queue is not null and t.queue <> '' \
    and t.task_type in ('workflow', 'activity')) ranked where place <= 50";

/// Every queue of the namespace, in the order of their names.
pub async fn queues(snapshot: &mut Snapshot, scope: &Scope<'_>) -> Result<Queues, DbError> {
    let mut queues: BTreeMap<String, QueueRows> = BTreeMap::new();
    for queue in sql::all(snapshot, scope, NAMES, |row| row.text("queue")).await? {
        queues.entry(queue).or_default();
    }
    let of_type = |row: &mut Lenient<'_>| Ok((row.text("queue")?, row.text("task_type")?));
    let counts = |row: &mut Lenient<'_>| Ok((of_type(row)?, QueueCounts::read(row)?));
    for ((queue, kind), counts) in sql::all(snapshot, scope, COUNTS, counts).await? {
        queues.entry(queue).or_default().counts.insert(kind, counts);
    }
    let recent = |row: &mut Lenient<'_>| Ok((of_type(row)?, RecentCounts::read(row)?));
    for ((queue, kind), recent) in sql::all(snapshot, scope, RECENT, recent).await? {
        queues.entry(queue).or_default().recent.insert(kind, recent);
    }
    let oldest = |row: &mut Lenient<'_>| Ok((row.text("queue")?, ReadyTask::read(row)?));
    for (queue, task) in sql::all(snapshot, scope, OLDEST, oldest).await? {
        queues.entry(queue).or_default().oldest = Some(task);
    }
    let lease = |row: &mut Lenient<'_>| Ok((row.text("queue")?, Lease::read(row)?));
    for (queue, lease) in sql::all(snapshot, scope, LEASES, lease).await? {
        queues.entry(queue).or_default().leases.push(lease);
    }
    let registered = registrations(snapshot, scope).await?;
    for worker in registered.iter().flat_map(|registered| &registered.workers) {
        if let Some(queue) = &worker.task_queue {
            queues.entry(queue.clone()).or_default();
        }
    }
    Ok(Queues {
        by_name: queues,
        registered,
    })
}
