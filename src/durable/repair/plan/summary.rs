//! The stored summary after a repair: what the engine's own projection of the new rows would say.
//! Its other projections are left to the engine, which rebuilds them when it next looks.

use super::{Made, draft::Draft};
use crate::durable::{
    projection::{Context, Projected, budget, liveness::Standing, repair_gate},
    stored::{RunSummary, WaitKind},
};

/// Writes the summary, where there is one, and gives how the run will stand.
pub(super) fn project(draft: &mut Draft<'_>, made: &Made) -> Standing {
    let before = draft.p.cx;
    let rows = std::mem::take(&mut draft.written).onto(before.snapshot);
    let after = Projected::of(Context {
        snapshot: &rows,
        ..before
    });
    let standing = after.standing.clone();
    let blocked = repair_gate::now(&after).err();
    let budget = budget::of_history(&rows.events, before.config);
    let Some(summary) = &before.snapshot.summary else {
        return standing;
    };
    let words = format!(
        "{} task {} was made ready by a repair.",
        capitalised(made.task.task_type.as_str()),
        made.task.id
    );
    let projected = RunSummary {
        wait_reason: match standing.wait_kind {
            Some(WaitKind::WorkflowTask) => Some(words.clone()),
            _ => summary.wait_reason.clone(),
        },
        wait_kind: standing.wait_kind.clone(),
        wait_started_at: standing.wait_started_at,
        wait_deadline_at: standing.wait_deadline_at,
        open_wait_id: standing.open_wait_id.clone(),
        resume_source_kind: standing.resume_source_kind.clone(),
        resume_source_id: standing.resume_source_id.clone(),
        next_task_id: standing.next_task_id.clone(),
        next_task_type: standing.next_task_type.clone(),
        next_task_status: standing.next_task_status.clone(),
        next_task_at: standing.next_task_at,
        next_task_lease_expires_at: standing.next_task_lease_expires_at,
        liveness_state: Some(standing.liveness_state.clone()),
        liveness_reason: Some(words),
        repair_attention: blocked
            .as_ref()
            .and_then(repair_gate::shown)
            .is_some_and(|shown| shown.badge_visible),
        repair_blocked_reason: blocked,
        task_problem: standing.task_problem,
        history_event_count: budget.history_event_count,
        history_size_bytes: budget.history_size_bytes,
        history_fan_out: budget.history_fan_out,
        continue_as_new_recommended: budget.continue_as_new_recommended,
        history_budget_pressure: Some(budget.history_budget_pressure.as_str().to_owned()),
        // The engine's word for when the run last moved, not for when the row was written.
        updated_at: rows.run.last_progress_at.or(summary.updated_at),
        ..summary.clone()
    };
    let id = summary.id.clone();
    let cells = summary.cells();
    draft.update(RunSummary::TABLE, &id, cells, projected.cells(), Vec::new());
    standing
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().collect::<String>() + letters.as_str())
        .unwrap_or_default()
}
