//! Work that is open: how much, in what trouble, and since when.

use std::borrow::Cow;

use super::{oldest_note, runs_href};
use crate::{
    durable::{
        collect::Gathered,
        store::{metrics::Work, runs::Attention},
    },
    web::{
        format::{Moment, number},
        layout::Layout,
    },
};

pub(super) struct Line {
    pub label: &'static str,
    pub count: String,
    pub note: String,
    pub bad: bool,
    /// The list of the runs these are of, and what to call it.
    pub runs: Option<(String, String)>,
}

pub(super) struct Oldest {
    pub label: Cow<'static, str>,
    pub moment: Moment,
    pub href: Option<String>,
}

/// The list of the runs that have such work open.
pub(super) fn runs_with(layout: &Layout, gathered: &Gathered, work: Work) -> String {
    let word = Attention::Work(work).word();
    runs_href(layout, gathered, &[("attention", word)])
}

pub(super) fn backlog(layout: &Layout, gathered: &Gathered) -> Vec<Line> {
    let metrics = &gathered.metrics;
    let (tasks, repair) = (&metrics.tasks.counts, &metrics.repair);
    let policy = &metrics.repair_policy;
    let line = |label, count: i64, note: String, bad| Line {
        label,
        count: number(count),
        note,
        bad,
        runs: None,
    };
    let (troubled, working) = (
        &gathered.counted.troubled_runs,
        &gathered.counted.activity_runs,
    );
    // How many runs the tasks in trouble are of is counted; of all others it would cost too much.
    let of = |work, runs: Option<i64>, line: Line| Line {
        runs: match (line.count.as_str(), runs) {
            ("0", _) | (_, Some(0)) => None,
            (_, runs) => {
                let text = match runs {
                    Some(1) => "in 1 run".to_owned(),
                    Some(n) => format!("in {} runs", number(n)),
                    None => "their runs".to_owned(),
                };
                Some((runs_with(layout, gathered, work), text))
            }
        },
        ..line
    };
    let oldest = |at| oldest_note(gathered, at);
    // The engine repairs all namespaces together: of one alone its numbers are 0, and no answer.
    let of_all = gathered.counted.namespace.is_none();
    let to_repair = |label, candidates, selected, bad| {
        if of_all {
            let note = format!("{selected} in the next pass, at most {}", policy.scan_limit);
            line(label, candidates, note, bad)
        } else {
            Line {
                label,
                count: "–".to_owned(),
                note: "counted for all namespaces together only".to_owned(),
                bad: false,
                runs: None,
            }
        }
    };
    let sent = format!(
        "for {} s neither dispatched nor picked up",
        policy.redispatch_after_seconds
    );
    let overdue = match oldest(tasks.oldest_dispatch_overdue_since) {
        none if none.is_empty() => sent,
        oldest => format!("{oldest} · {sent}"),
    };
    let activities = &metrics.activities.counts;
    let in_trouble = |label, count, note| line(label, count, note, count > 0);
    vec![
        of(
            Work::ReadyTask,
            None,
            line(
                "Ready and due",
                tasks.ready_due,
                oldest(tasks.oldest_ready_due_at),
                false,
            ),
        ),
        of(
            Work::DelayedTask,
            None,
            line("Delayed", tasks.delayed, String::new(), false),
        ),
        of(
            Work::LeasedTask,
            None,
            line("Leased", tasks.leased, String::new(), false),
        ),
        of(
            Work::LeaseExpired,
            Some(troubled.lease_expired),
            in_trouble(
                "Lease expired",
                tasks.lease_expired,
                oldest(tasks.oldest_lease_expired_at),
            ),
        ),
        of(
            Work::DispatchFailed,
            Some(troubled.dispatch_failed),
            in_trouble(
                "Dispatch failed",
                tasks.dispatch_failed,
                oldest(tasks.oldest_dispatch_failed_at),
            ),
        ),
        of(
            Work::DispatchOverdue,
            Some(troubled.dispatch_overdue),
            in_trouble("Dispatch overdue", tasks.dispatch_overdue, overdue),
        ),
        of(
            Work::ClaimFailed,
            Some(troubled.claim_failed),
            in_trouble(
                "Claim failed",
                tasks.claim_failed,
                oldest(tasks.oldest_claim_failed_at),
            ),
        ),
        of(
            Work::RetryingActivity,
            Some(working.retrying_runs),
            line(
                "Retrying activities",
                activities.retrying,
                oldest(activities.oldest_retrying_started_at),
                false,
            ),
        ),
        of(
            Work::OverdueActivity,
            Some(working.overdue_runs),
            in_trouble(
                "Activities past a deadline",
                activities.timeout_overdue,
                oldest(activities.oldest_timeout_overdue_at),
            ),
        ),
        to_repair(
            "Repair: tasks",
            repair.existing_task_candidates,
            repair.selected_existing_task_candidates,
            repair.existing_task_scan_limit_reached,
        ),
        to_repair(
            "Repair: runs without a task",
            repair.missing_task_candidates,
            repair.selected_missing_task_candidates,
            repair.missing_task_scan_limit_reached,
        ),
    ]
}

pub(super) fn oldest(layout: &Layout, gathered: &Gathered) -> Vec<Oldest> {
    let metrics = &gathered.metrics;
    let run = gathered.counted.longest_wait.as_ref();
    let list = |work| Some(runs_with(layout, gathered, work));
    // No list of runs has schedules: the latest are named here.
    let missed = gathered.counted.missed_schedules.iter().map(|schedule| {
        let name = schedule.schedule_id.as_deref().unwrap_or_default();
        let label = format!("Schedule past its time: {name}");
        (label.into(), schedule.next_fire_at, None)
    });
    [
        (
            "Run that waits".into(),
            metrics.runs.counts.oldest_wait_started_at,
            run.map(|run| layout.run_href(&run.workflow_instance_id, &run.id)),
        ),
        (
            "Start not begun".into(),
            metrics.starts.oldest_pending_start_at,
            Some(runs_href(layout, gathered, &[("status", "pending")])),
        ),
        (
            "Ready task".into(),
            metrics.tasks.counts.oldest_ready_due_at,
            list(Work::ReadyTask),
        ),
        (
            "Task in trouble".into(),
            metrics.tasks.oldest_unhealthy_at,
            list(Work::UnhealthyTask),
        ),
        (
            "Retrying activity".into(),
            metrics.activities.counts.oldest_retrying_started_at,
            list(Work::RetryingActivity),
        ),
    ]
    .into_iter()
    .chain(missed)
    .filter_map(|(label, at, href): (Cow<'static, str>, _, _)| {
        Some(Oldest {
            label,
            moment: layout.moment(at?.0),
            href,
        })
    })
    .collect()
}
