//! Work that is open: how much, in what trouble, and since when.

use super::{oldest_note, runs_href};
use crate::{
    durable::collect::Gathered,
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
}

pub(super) struct Oldest {
    pub label: &'static str,
    pub moment: Moment,
    pub href: Option<String>,
}

pub(super) fn backlog(gathered: &Gathered) -> Vec<Line> {
    let metrics = &gathered.metrics;
    let (tasks, repair) = (&metrics.tasks.counts, &metrics.repair);
    let policy = &metrics.repair_policy;
    let line = |label, count: i64, note: String, bad| Line {
        label,
        count: number(count),
        note,
        bad,
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
            }
        }
    };
    vec![
        line(
            "Ready and due",
            tasks.ready_due,
            oldest(tasks.oldest_ready_due_at),
            false,
        ),
        line("Delayed", tasks.delayed, String::new(), false),
        line("Leased", tasks.leased, String::new(), false),
        line(
            "Lease expired",
            tasks.lease_expired,
            oldest(tasks.oldest_lease_expired_at),
            tasks.lease_expired > 0,
        ),
        line(
            "Dispatch failed",
            tasks.dispatch_failed,
            oldest(tasks.oldest_dispatch_failed_at),
            tasks.dispatch_failed > 0,
        ),
        line(
            "Dispatch overdue",
            tasks.dispatch_overdue,
            format!(
                "not picked up {} s after it was due",
                policy.redispatch_after_seconds
            ),
            tasks.dispatch_overdue > 0,
        ),
        line(
            "Claim failed",
            tasks.claim_failed,
            oldest(tasks.oldest_claim_failed_at),
            tasks.claim_failed > 0,
        ),
        line(
            "Retrying activities",
            metrics.activities.counts.retrying,
            oldest(metrics.activities.counts.oldest_retrying_started_at),
            false,
        ),
        line(
            "Activities past a deadline",
            metrics.activities.counts.timeout_overdue,
            oldest(metrics.activities.counts.oldest_timeout_overdue_at),
            metrics.activities.counts.timeout_overdue > 0,
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
    [
        (
            "Run that waits",
            metrics.runs.counts.oldest_wait_started_at,
            run.map(|run| layout.run_href(&run.workflow_instance_id, &run.id)),
        ),
        (
            "Start not begun",
            metrics.starts.oldest_pending_start_at,
            Some(runs_href(layout, gathered, &[("status", "pending")])),
        ),
        ("Ready task", metrics.tasks.counts.oldest_ready_due_at, None),
        ("Task in trouble", metrics.tasks.oldest_unhealthy_at, None),
        (
            "Retrying activity",
            metrics.activities.counts.oldest_retrying_started_at,
            None,
        ),
        (
            "Schedule past its time",
            metrics.schedules.counts.oldest_overdue_at,
            None,
        ),
    ]
    .into_iter()
    .filter_map(|(label, at, href)| {
        Some(Oldest {
            label,
            moment: layout.moment(at?.0),
            href,
        })
    })
    .collect()
}
