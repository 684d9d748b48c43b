//! Runs the engine has not projected: no summary row, so no list of summaries shows them.

use crate::{
    db::{DbError, Snapshot},
    durable::stored::{Notices, RunRow, RunStatus},
};

/// How many of the newest runs are checked: ids are ULIDs, so the primary key is in time order.
pub const CHECKED: u32 = 1_000;

/// Most that are shown.
const SHOWN: u32 = 50;

/// The newest runs without a summary, newest first. A closed run without history is one the
/// engine's retention pruned, and not listed.
pub async fn unprojected(
    snapshot: &mut Snapshot,
    notices: &mut Notices,
) -> Result<Vec<RunRow>, DbError> {
    let mut q = snapshot.statement();
    q.push("select r.* from (select ")
        .push(RunRow::COLUMNS)
        .push(" from {workflow_runs} order by id desc limit ")
        .bind(CHECKED)
        .push(") as r left join {workflow_run_summaries} s on s.id = r.id where s.id is null and (r.status not in ")
        .bind_list(RunStatus::TERMINAL)
        .push(" or exists (select 1 from {workflow_history_events} e where e.workflow_run_id = r.id)) order by r.id desc limit ")
        .bind(SHOWN);
    snapshot
        .fetch(q)
        .await?
        .iter_mut()
        .map(|row| RunRow::read(row, notices))
        .collect()
}
