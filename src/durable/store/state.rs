//! Whether a run is still as it was when it was last looked at, without reading it again.

use crate::db::{DbError, Snapshot, Statement};

/// What changes whenever one of a run's rows does, as text; none when there is no such run.
/// History is only ever added to, so its index tells; other rows say when they were written.
pub async fn state(snapshot: &mut Snapshot, run_id: &str) -> Result<Option<String>, DbError> {
    let mut q = snapshot.statement();
    q.push(
        "select last_history_sequence, last_command_sequence, status, updated_at\
         , (select count(*) from {workflow_history_events} t where t.workflow_run_id = r.id) as events\
         , (select max(t.sequence) from {workflow_history_events} t where t.workflow_run_id = r.id) as last\
         , (select t.updated_at from {workflow_run_summaries} t where t.id = r.id) as summary",
    );
    for (name, table) in [
        ("tasks", "workflow_tasks"),
        ("executions", "activity_executions"),
        ("attempts", "activity_attempts"),
        ("timers", "workflow_run_timers"),
        ("commands", "workflow_commands"),
        ("signals", "workflow_signal_records"),
        ("updates", "workflow_updates"),
        ("failures", "workflow_failures"),
        ("messages", "workflow_messages"),
        ("waits", "workflow_run_waits"),
        ("memos", "workflow_memos"),
        ("attributes", "workflow_search_attributes"),
        ("timer_entries", "workflow_run_timer_entries"),
        ("lineage_entries", "workflow_run_lineage_entries"),
    ] {
        push_table(&mut q, name, table, "t.workflow_run_id = r.id");
    }
    // The run is told together with its instance and the runs it is linked to.
    for (name, table, of) in [
        (
            "instance",
            "workflow_instances",
            "t.id = r.workflow_instance_id",
        ),
        (
            "parent_links",
            "workflow_links",
            "t.child_workflow_run_id = r.id",
        ),
        (
            "child_links",
            "workflow_links",
            "t.parent_workflow_run_id = r.id",
        ),
        (
            "parents",
            "workflow_runs",
            "t.id in (select l.parent_workflow_run_id from {workflow_links} l \
             where l.child_workflow_run_id = r.id)",
        ),
        (
            "children",
            "workflow_runs",
            "t.id in (select l.child_workflow_run_id from {workflow_links} l \
             where l.parent_workflow_run_id = r.id)",
        ),
    ] {
        push_table(&mut q, name, table, of);
    }
    q.push(" from {workflow_runs} r where id = ").bind(run_id);
    told(snapshot, q, run_id).await
}

/// How far a run has come, as text: it changes with every step the engine takes, and costs the same
/// however long the run is. A heartbeat and a task that is claimed do not show.
pub async fn progress(snapshot: &mut Snapshot, run_id: &str) -> Result<Option<String>, DbError> {
    let mut q = snapshot.statement();
    q.push(
        "select last_history_sequence, last_command_sequence, status, updated_at\
         , (select max(t.sequence) from {workflow_history_events} t where t.workflow_run_id = r.id) as last\
         , (select t.updated_at from {workflow_run_summaries} t where t.id = r.id) as summary\
         , (select t.updated_at from {workflow_instances} t where t.id = r.workflow_instance_id) as instance \
         from {workflow_runs} r where id = ",
    )
    .bind(run_id);
    told(snapshot, q, run_id).await
}

async fn told(
    snapshot: &mut Snapshot,
    q: Statement,
    run_id: &str,
) -> Result<Option<String>, DbError> {
    let row = snapshot.fetch_one(q).await?;
    Ok(row.map(|row| {
        let cells: Vec<String> = row
            .cells()
            .map(|(name, value)| format!("{name}={value:?}"))
            .collect();
        format!("{run_id} {}", cells.join(" "))
    }))
}

/// How many rows of a table the run has, and when one was last written. Each is found by an index.
fn push_table(q: &mut Statement, name: &'static str, table: &'static str, of: &'static str) {
    for (what, suffix) in [("count(*)", ""), ("max(t.updated_at)", "_at")] {
        q.push(", (select ")
            .push(what)
            .push(" from {")
            .push(table)
            .push("} t where ")
            .push(of)
            .push(") as ")
            .push(name)
            .push(suffix);
    }
}
