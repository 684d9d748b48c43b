//! The waits for an activity and for a timer.

use std::{collections::HashSet, hash::BuildHasher};

use super::{OfKind, Wait, tasks};
use crate::durable::{
    projection::{activities::Activity, context::Context, timers::Timer},
    stored::{ActivityStatus, TaskType, TimerStatus},
};

/// One wait per activity.
pub fn activity_waits(cx: Context<'_>, activities: &[Activity<'_>]) -> Vec<Wait> {
    let backing = tasks::preferred_tasks(
        &cx.snapshot.tasks,
        |named| named.activity_execution_id,
        Some(&TaskType::Activity),
    );
    activities
        .iter()
        .map(|activity| activity_wait(activity).with_task(backing.get(&*activity.id).copied()))
        .collect()
}

/// One wait per plain timer: a timeout belongs to the wait it ends.
pub fn timer_waits<S: BuildHasher>(
    cx: Context<'_>,
    timers: &[Timer],
    condition_timer_ids: &HashSet<String, S>,
) -> Vec<Wait> {
    let backing = tasks::preferred_tasks(
        &cx.snapshot.tasks,
        |named| named.timer_id,
        Some(&TaskType::Timer),
    );
    timers
        .iter()
        .filter(|timer| !timer.is_timeout() && !condition_timer_ids.contains(&timer.id))
        .map(|timer| timer_wait(timer).with_task(backing.get(&*timer.id).copied()))
        .collect()
}

fn activity_wait(activity: &Activity) -> Wait {
    let name = activity.name().unwrap_or("activity");
    let unsupported = activity.history_unsupported_reason.is_some();
    let source = activity
        .row_status
        .as_ref()
        .filter(|_| unsupported)
        .unwrap_or(&activity.status);
    let (status, summary) = match source {
        _ if unsupported => (
            "unsupported",
            format!("Activity {name} ended by its row alone; no event tells of it."),
        ),
        ActivityStatus::Pending | ActivityStatus::Running if activity.diagnostic_only => (
            "open",
            format!("Activity {name} is open by its row alone; no event tells of it."),
        ),
        ActivityStatus::Pending | ActivityStatus::Running => {
            ("open", format!("Waiting for activity {name}."))
        }
        ActivityStatus::Cancelled => ("cancelled", format!("Activity {name} was cancelled.")),
        ActivityStatus::Failed => ("resolved", format!("Activity {name} failed.")),
        _ => ("resolved", format!("Activity {name} completed.")),
    };
    let resumes = !activity.diagnostic_only;
    Wait {
        id: format!("activity:{}", activity.id),
        kind: "activity",
        sequence: activity.sequence,
        status,
        source_status: Some(source.to_string()),
        summary,
        opened_at: activity.started_at.or(activity.created_at),
        resolved_at: activity.closed_at,
        target_type: Some(name.to_owned()),
        resume_source_kind: resumes.then(|| "activity_execution".to_owned()),
        resume_source_id: resumes.then(|| activity.id.clone()),
        history_authority: Some(activity.history_authority),
        history_unsupported_reason: activity.history_unsupported_reason,
        of_kind: OfKind::Step {
            diagnostic_only: activity.diagnostic_only,
            row_status: activity.row_status.as_ref().map(ToString::to_string),
            group: activity.group.clone(),
        },
        ..Wait::default()
    }
}

fn timer_wait(timer: &Timer) -> Wait {
    let (status, summary) = match timer.status {
        _ if timer.history_unsupported_reason.is_some() => (
            "unsupported",
            "The timer ended by its row alone; no event tells of it.",
        ),
        TimerStatus::Pending if timer.diagnostic_only => (
            "open",
            "The timer is open by its row alone; no event tells of it.",
        ),
        TimerStatus::Pending => ("open", "Waiting for a timer."),
        TimerStatus::Cancelled => ("cancelled", "The timer was cancelled."),
        _ => ("resolved", "The timer fired."),
    };
    let resumes = !timer.diagnostic_only;
    Wait {
        id: format!("timer:{}", timer.id),
        kind: "timer",
        sequence: timer.sequence,
        status,
        source_status: Some(timer.source_status.to_string()),
        summary: summary.to_owned(),
        opened_at: timer.created_at,
        deadline_at: timer.fire_at,
        resolved_at: timer.fired_at.or(timer.cancelled_at),
        target_type: Some("timer".to_owned()),
        resume_source_kind: resumes.then(|| "timer".to_owned()),
        resume_source_id: resumes.then(|| timer.id.clone()),
        history_authority: Some(timer.history_authority),
        history_unsupported_reason: timer.history_unsupported_reason,
        of_kind: OfKind::Step {
            diagnostic_only: timer.diagnostic_only,
            row_status: timer.row_status.as_ref().map(ToString::to_string),
            group: timer.group.clone(),
        },
        ..Wait::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::durable::projection::authority;

    #[test]
    fn an_activity_is_waited_for_by_its_status() {
        let by_row = |row: &str, open: bool| Activity {
            status: if open { row } else { "unsupported" }.into(),
            row_status: Some(row.into()),
            diagnostic_only: true,
            history_authority: authority::OPEN_FALLBACK,
            history_unsupported_reason: (!open).then_some(authority::ACTIVITY_UNSUPPORTED),
            ..Activity::example()
        };
        let by_history = |status: &str| Activity {
            status: status.into(),
            ..Activity::example()
        };
        for (activity, status, source, resumes) in [
            (by_history("pending"), "open", "pending", true),
            (by_history("running"), "open", "running", true),
            (by_history("completed"), "resolved", "completed", true),
            (by_history("failed"), "resolved", "failed", true),
            (by_history("cancelled"), "cancelled", "cancelled", true),
            (by_history("hibernating"), "resolved", "hibernating", true),
            (by_row("running", true), "open", "running", false),
            (
                by_row("completed", false),
                "unsupported",
                "completed",
                false,
            ),
        ] {
            let wait = activity_wait(&activity);
            assert_eq!(
                (
                    wait.status,
                    wait.source_status.as_deref(),
                    wait.resume_source_id.is_some()
                ),
                (status, Some(source), resumes),
                "{source}"
            );
            assert_eq!(wait.is_diagnostic(), !resumes, "{source}");
        }
    }
}
