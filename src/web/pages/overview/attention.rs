//! What needs a look; each item leads to the list of exactly those runs, or where it is not about
//! runs to the part of the page that has it.

use super::{age, runs_href, status_tag};
use crate::{
    durable::{
        collect::Gathered,
        metrics::{
            dashboard::AlertKind,
            health::{Health, Status},
        },
        store::{
            metrics::{NearLimit, Work},
            runs::Attention,
        },
    },
    run::tag::{Mark, Tag, Tone},
    web::{format::number, layout::Layout},
};

pub(super) struct Item {
    pub tag: Tag,
    pub href: String,
    pub text: String,
    pub count: i64,
    pub note: String,
}

pub(super) fn attention(layout: &Layout, gathered: &Gathered, health: &Health) -> Vec<Item> {
    let mut items = errors(health);
    items.extend(open_runs(layout, gathered));
    items.extend(late_work(layout, gathered));
    items.extend(alerts(layout, gathered));
    items.extend(near_limits(gathered));
    items
}

/// Checks that say error: work may stand still for what no run shows.
fn errors(health: &Health) -> Vec<Item> {
    let checks = health.checks.iter();
    checks
        .filter(|check| check.status == Status::Error)
        .map(|check| Item {
            tag: status_tag(check.status),
            href: "#health".to_owned(),
            text: check.message.to_string(),
            count: 1,
            note: String::new(),
        })
        .collect()
}

/// Runs with tasks and activities past their time, and schedules, which are no runs.
fn late_work(layout: &Layout, gathered: &Gathered) -> Vec<Item> {
    let metrics = &gathered.metrics;
    let (tasks, activities) = (&metrics.tasks.counts, &metrics.activities.counts);
    let list = |work| {
        let word = Attention::Work(work).word();
        runs_href(layout, gathered, &[("attention", word)])
    };
    let item = |tag, href: String, count, text, oldest| Item {
        tag,
        href,
        text,
        count,
        note: age(gathered, oldest).unwrap_or_default(),
    };
    let late = |label| Tag::new(label, Tone::Late, Mark::Clock);
    let counted = |n: i64, one: &str, many: &str| match n {
        1 => format!("1 {one}"),
        n => format!("{} {many}", number(n)),
    };
    // By reason, because a task with two of them counts twice in the sum.
    let reasons: Vec<_> = [
        ("lease expired", tasks.lease_expired),
        ("dispatch failed", tasks.dispatch_failed),
        ("dispatch overdue", tasks.dispatch_overdue),
        ("claim failed", tasks.claim_failed),
    ]
    .into_iter()
    .filter(|(_, n)| *n > 0)
    .map(|(reason, n)| format!("{reason} {}", number(n)))
    .collect();
    let reasons = reasons.join(", ");
    let in_trouble = Tag::new("tasks", Tone::Attn, Mark::Exclamation);
    // Tasks and activities of runs that closed, or that no list has, are lines of the backlog alone.
    let tasks = match gathered.counted.troubled_runs.unhealthy {
        0 => item(
            in_trouble,
            "#backlog".to_owned(),
            metrics.tasks.unhealthy,
            format!("Tasks in trouble, of no open run: {reasons}"),
            metrics.tasks.oldest_unhealthy_at,
        ),
        runs => item(
            in_trouble,
            list(Work::UnhealthyTask),
            runs,
            counted(
                runs,
                &format!("run has a task in trouble: {reasons}"),
                &format!("runs have tasks in trouble: {reasons}"),
            ),
            metrics.tasks.oldest_unhealthy_at,
        ),
    };
    let overdue = match gathered.counted.activity_runs.overdue_runs {
        0 => item(
            late("deadline"),
            "#backlog".to_owned(),
            activities.timeout_overdue,
            counted(
                activities.timeout_overdue,
                "activity of no open run is past a deadline",
                "activities of no open run are past a deadline",
            ),
            activities.oldest_timeout_overdue_at,
        ),
        runs => item(
            late("deadline"),
            list(Work::OverdueActivity),
            runs,
            counted(
                runs,
                "run has an activity past a deadline",
                "runs have activities past a deadline",
            ),
            activities.oldest_timeout_overdue_at,
        ),
    };
    let missed = metrics.schedules.counts.missed;
    let mut items = vec![
        tasks,
        overdue,
        item(
            late("schedule"),
            "#oldest".to_owned(),
            missed,
            counted(
                missed,
                "schedule is past its time",
                "schedules are past their time",
            ),
            metrics.schedules.counts.oldest_overdue_at,
        ),
    ];
    items.retain(|item| item.count > 0);
    items
}

/// One per limit that runs come near.
fn near_limits(gathered: &Gathered) -> Vec<Item> {
    let limits = gathered.metrics.structural_limits.kinds();
    let item = |near: &NearLimit| {
        let (_, limit) = *limits.iter().find(|(kind, _)| *kind == near.kind)?;
        let fullest = near.runs.first()?.open.saturating_mul(100) / limit.max(1);
        let kind = near.kind.replace('_', " ");
        let text = match (near.runs.len(), near.more) {
            (1, false) => format!("1 run at {fullest} % of {kind}"),
            (n, false) => format!("{n} runs near {kind}, the fullest at {fullest} %"),
            (n, true) => format!("more than {n} runs near {kind}, the fullest at {fullest} %"),
        };
        Some(Item {
            tag: Tag::new("limit", Tone::Attn, Mark::Exclamation),
            href: "#limits".to_owned(),
            text,
            count: i64::try_from(near.runs.len()).unwrap_or(i64::MAX),
            note: String::new(),
        })
    };
    gathered
        .counted
        .near_limits
        .iter()
        .filter_map(item)
        .collect()
}

/// Open runs that cannot go on.
fn open_runs(layout: &Layout, gathered: &Gathered) -> Vec<Item> {
    let metrics = &gathered.metrics;
    // The engine writes these states of open runs only, but counts them wherever they stand.
    let open = &gathered.counted.dashboard;
    let list =
        |attention: Attention| runs_href(layout, gathered, &[("attention", attention.word())]);
    let counted = |n: i64, one: &str, many: &str| {
        if n == 1 {
            format!("1 run {one}")
        } else {
            format!("{} runs {many}", number(n))
        }
    };
    let mut items = vec![
        Item {
            tag: Tag::repair(),
            href: list(Attention::RepairNeeded),
            text: counted(
                open.open_repair_needed,
                "has nothing left that would wake it",
                "have nothing left that would wake them",
            ),
            count: open.open_repair_needed,
            note: age(gathered, open.oldest_open_repair_needed_at).unwrap_or_default(),
        },
        Item {
            tag: Tag::new("claim", Tone::Attn, Mark::Exclamation),
            href: list(Attention::ClaimFailed),
            text: counted(
                open.open_claim_failed,
                "whose task no worker could claim",
                "whose task no worker could claim",
            ),
            count: open.open_claim_failed,
            note: age(gathered, metrics.tasks.counts.oldest_claim_failed_at).unwrap_or_default(),
        },
        Item {
            tag: Tag::new("compatibility", Tone::Attn, Mark::Lock),
            href: list(Attention::CompatibilityBlocked),
            text: counted(
                open.open_compatibility_blocked,
                "waits for a worker that may take it",
                "wait for a worker that may take them",
            ),
            count: open.open_compatibility_blocked,
            note: age(gathered, open.oldest_open_compatibility_blocked_at).unwrap_or_default(),
        },
    ];
    items.retain(|item| item.count > 0);
    items
}

/// The engine's own five rules.
fn alerts(layout: &Layout, gathered: &Gathered) -> Vec<Item> {
    let list =
        |attention: Attention| runs_href(layout, gathered, &[("attention", attention.word())]);
    let mut items = Vec::new();
    for alert in &gathered.dashboard.needs_attention.alerts {
        let (label, tone, mark, href) = match alert.kind {
            AlertKind::StuckWorkers => ("workers", Tone::Attn, Mark::Clock, "#workers".to_owned()),
            AlertKind::LongRunning => (
                "long run",
                Tone::Wait,
                Mark::Clock,
                list(Attention::LongRunning),
            ),
            AlertKind::RetryStorm => (
                "retry storm",
                Tone::Fail,
                Mark::Loop,
                list(Attention::RetryStorm),
            ),
            AlertKind::HighFailureRate => (
                "failures",
                Tone::Fail,
                Mark::Cross,
                list(Attention::FailedPastHour),
            ),
            AlertKind::LongWaits => (
                "long wait",
                Tone::Wait,
                Mark::Hourglass,
                list(Attention::LongWaits),
            ),
        };
        items.push(Item {
            tag: Tag::new(label, tone, mark).titled(alert.action),
            href,
            text: alert.message.clone(),
            count: alert.count,
            note: String::new(),
        });
    }
    items
}
