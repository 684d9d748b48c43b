//! What needs a look; each item leads to the list of exactly those runs.

use super::{age, runs_href};
use crate::{
    durable::{collect::Gathered, metrics::dashboard::AlertKind, store::runs::Attention},
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

pub(super) fn attention(layout: &Layout, gathered: &Gathered) -> Vec<Item> {
    let metrics = &gathered.metrics;
    let runs = &metrics.runs.counts;
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
            note: age(gathered, runs.oldest_repair_needed_at).unwrap_or_default(),
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
            note: age(
                gathered,
                metrics.backlog.oldest_compatibility_blocked_started_at,
            )
            .unwrap_or_default(),
        },
    ];
    items.retain(|item| item.count > 0);
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
