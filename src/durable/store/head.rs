//! Which run is meant.

use super::{related::Others, snapshot::related_runs};
use crate::{
    db::{DbError, Snapshot},
    durable::projection::{current_run, related::Related},
};

/// No database keeps an id with a NUL in it, and PostgreSQL refuses to be asked for one.
fn may_be(id: &str) -> bool {
    !id.contains('\0')
}

/// Whether there is a run of this id.
pub async fn exists(snapshot: &mut Snapshot, run_id: &str) -> Result<bool, DbError> {
    if !may_be(run_id) {
        return Ok(false);
    }
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
    if !may_be(instance_id) || !may_be(run_id) {
        return Ok(false);
    }
    let mut q = snapshot.statement();
    q.push("select id from {workflow_runs} where id = ")
        .bind(run_id)
        .push(" and workflow_instance_id = ")
        .bind(instance_id);
    Ok(snapshot.fetch_one(q).await?.is_some())
}

/// The run's instance and type.
pub async fn named(
    snapshot: &mut Snapshot,
    run_id: &str,
) -> Result<Option<(String, String)>, DbError> {
    let mut q = snapshot.statement();
    q.push("select workflow_instance_id, workflow_type from {workflow_runs} where id = ")
        .bind(run_id);
    match snapshot.fetch_one(q).await? {
        Some(mut row) => Ok(Some((
            row.text("workflow_instance_id")?,
            row.text("workflow_type")?,
        ))),
        None => Ok(None),
    }
}

/// The type of an instance, which may have no run yet.
pub async fn reserved(
    snapshot: &mut Snapshot,
    instance_id: &str,
) -> Result<Option<String>, DbError> {
    if !may_be(instance_id) {
        return Ok(None);
    }
    let mut q = snapshot.statement();
    q.push("select workflow_type from {workflow_instances} where id = ")
        .bind(instance_id);
    let found = snapshot.fetch_one(q).await?;
    found.map(|mut row| row.text("workflow_type")).transpose()
}

/// The runs that are there, each with its instance and type; the newest first.
pub async fn named_all(
    snapshot: &mut Snapshot,
    run_ids: &[String],
) -> Result<Vec<(String, String, String)>, DbError> {
    let mut q = snapshot.statement();
    q.push("select id, workflow_instance_id, workflow_type from {workflow_runs} where id in ")
        .bind_list(run_ids.iter().filter(|id| may_be(id)))
        .push(" order by started_at desc, id desc");
    let rows = snapshot.fetch(q).await?;
    rows.into_iter()
        .map(|mut row| {
            Ok((
                row.text("id")?,
                row.text("workflow_instance_id")?,
                row.text("workflow_type")?,
            ))
        })
        .collect()
}

/// The codec a run's payloads are in unless one says otherwise.
pub async fn payload_codec(
    snapshot: &mut Snapshot,
    run_id: &str,
) -> Result<Option<String>, DbError> {
    let mut q = snapshot.statement();
    q.push("select ")
        .push("payload_codec")
        .push(" from {workflow_runs} where id = ")
        .bind(run_id);
    match snapshot.fetch_one(q).await? {
        Some(mut row) => row.opt_text("payload_codec"),
        None => Ok(None),
    }
}

/// The instance's current run: the end of its continue-as-new chain, else its newest. The
/// pointer the engine keeps on the instance is a convenience it does not trust itself.
pub async fn current_run_id(
    snapshot: &mut Snapshot,
    instance_id: &str,
) -> Result<Option<String>, DbError> {
    if !may_be(instance_id) {
        return Ok(None);
    }
    let runs = related_runs(snapshot, instance_id, None, &Others::default()).await?;
    let related = Related::over(&runs);
    Ok(current_run::current_run(&related, instance_id).map(|(run, _)| run.run.id.clone()))
}

/// How many of the newest runs of a type are looked at for one that completed.
const NEWEST: u32 = 1_000;

/// The newest run of the same type and namespace that completed, other than this one. Served by
/// `(namespace, workflow_type, sort_timestamp, id)`, from its end.
pub async fn last_completed(
    snapshot: &mut Snapshot,
    run_id: &str,
) -> Result<Option<String>, DbError> {
    let mut q = snapshot.statement();
    q.push("select workflow_type, namespace from {workflow_run_summaries} where id = ")
        .bind(run_id);
    let Some(mut row) = snapshot.fetch_one(q).await? else {
        return Ok(None);
    };
    let (workflow_type, namespace) = (row.text("workflow_type")?, row.opt_text("namespace")?);
    let mut q = snapshot.statement();
    // The inner limit is a fence: a type whose runs all fail is not walked to its beginning.
    q.push(
        "select id from (select id, status, sort_timestamp from {workflow_run_summaries} where ",
    );
    match namespace {
        Some(namespace) => q.push("namespace = ").bind(namespace),
        None => q.push("namespace is null"),
    };
    q.push(" and workflow_type = ")
        .bind(workflow_type)
        .push(" order by sort_timestamp desc, id desc limit ")
        .bind(NEWEST)
        .push(") as w where status = 'completed' and id <> ")
        .bind(run_id)
        .push(" order by sort_timestamp desc, id desc limit 1");
    match snapshot.fetch_one(q).await? {
        Some(mut row) => row.opt_text("id"),
        None => Ok(None),
    }
}
