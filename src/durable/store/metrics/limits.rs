//! Runs that come near a structural limit: how much of each countable thing they have open.

use super::{
    counted,
    sql::{self, Scope},
};
use crate::{
    db::{DbError, Snapshot, Val},
    durable::engine_config::EngineConfig,
};

/// Runs named per limit.
const NAMED: usize = 20;

counted! {
    /// One run with this many open.
    OpenCount {
        run_id: text,
        open: int,
    }
}

/// One limit with the runs that have reached its soft threshold, the fullest first.
#[derive(Clone, Debug, PartialEq)]
pub struct NearLimit {
    pub kind: &'static str,
    pub runs: Vec<OpenCount>,
    /// Whether there are others than those named.
    pub more: bool,
}

/// Along `(status, …)`. What a run leaves open when it closes nobody waits for: who holds enough of
/// it is looked up, and must be open.
macro_rules! open {
    ($table:literal, $status:literal) => {
        concat!(
            "select x.workflow_run_id as run_id, count(*) as \"open\" from {",
            $table,
            "} x where x.status in (",
            $status,
            "):and_ns_x group by x.workflow_run_id having count(*) >= :threshold \
             and exists (select 1 from {workflow_runs} o where o.id = x.workflow_run_id \
             and o.status in ('pending', 'running', 'waiting'))"
        )
    };
}

/// Where no index knows what is open: by the open runs, along `(status_bucket)`.
macro_rules! of_open_runs {
    ($from:literal) => {
        concat!(
            "select run_id, \"open\" from (select s.id as run_id, (select count(*) from ",
            $from,
            ") as \"open\" from {workflow_run_summaries} s \
             where s.status_bucket = 'running':and_ns) counted where \"open\" >= :threshold"
        )
    };
}

const KINDS: [(&str, &str, &str); 5] = [
    (
        "pending_activity_count",
        "structural_limits.pending_activity_count",
        of_open_runs!(
            "{activity_executions} x where x.workflow_run_id = s.id and x.status in ('pending', 'running')"
        ),
    ),
    (
        "pending_child_count",
        "structural_limits.pending_child_count",
        of_open_runs!(
            "{workflow_links} l join {workflow_runs} c on c.id = l.child_workflow_run_id \
             where l.parent_workflow_run_id = s.id and l.link_type = 'child_workflow' \
             and c.status not in ('completed', 'failed', 'cancelled', 'terminated')"
        ),
    ),
    (
        "pending_timer_count",
        "structural_limits.pending_timer_count",
        open!("workflow_run_timers", "'pending'"),
    ),
    (
        "pending_signal_count",
        "structural_limits.pending_signal_count",
        open!("workflow_signal_records", "'received'"),
    ),
    (
        "pending_update_count",
        "structural_limits.pending_update_count",
        open!("workflow_updates", "'accepted'"),
    ),
];

/// The engine's rule: at or above this many, a run approaches the limit; none where it is off.
pub fn threshold(limit: i64, percent: i64) -> Option<i64> {
    (limit > 0 && percent > 0).then(|| (limit.saturating_mul(percent) / 100).max(1))
}

pub(super) async fn near(
    snapshot: &mut Snapshot,
    scope: &Scope<'_>,
    config: &EngineConfig,
) -> Result<Vec<NearLimit>, DbError> {
    let percent = config.int("structural_limits.warning_threshold_percent");
    let mut near = Vec::new();
    for (kind, path, template) in KINDS {
        // A limit that is off is asked for all the same: a pass always sends as many.
        let least = threshold(config.int(path), percent).unwrap_or(i64::MAX);
        let values = [("threshold", Val::from(least))];
        let mut q = sql::statement_with(snapshot, scope, template, &values);
        q.push(" order by 2 desc, 1 limit ")
            .bind(i64::try_from(NAMED + 1).unwrap_or(i64::MAX));
        let mut runs = sql::rows(snapshot, scope, template, q, OpenCount::read).await?;
        let more = runs.len() > NAMED;
        runs.truncate(NAMED);
        near.push(NearLimit { kind, runs, more });
    }
    Ok(near)
}
