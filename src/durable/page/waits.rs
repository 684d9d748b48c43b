//! Waits: what resumes the run, and until when.

use super::{gone::Gone, places::Places};
use crate::{
    durable::projection::{
        Projected,
        activities::UNSUPPORTED,
        waits::{OfKind, Wait},
    },
    run::{
        fact::{Facts, RowRef, anchor},
        section::Section,
        tag::{Mark, Tag, Tone},
        waits as shown,
        window::Asked,
    },
};

pub fn waits(p: &Projected<'_>, asked: &Asked, ahead: bool, places: &Places<'_>) -> shown::Waits {
    let window = asked.window("waits", p.waits.len(), |at| {
        let id = at.strip_prefix("wait-")?;
        p.waits.iter().position(|wait| wait.id == id)
    });
    Section::new(window, ahead, |stretch| {
        let rows = stretch.of(&p.waits).iter();
        let gone = Gone::of(p);
        rows.map(|wait| row(p, wait, places, &gone)).collect()
    })
}

fn row(p: &Projected<'_>, wait: &Wait, places: &Places<'_>, gone: &Gone<'_>) -> shown::Wait {
    let left = wait.is_open() && p.cx.snapshot.run.status.is_terminal();
    let overdue = wait.is_open() && wait.deadline_at.is_some_and(|at| at < p.cx.now);
    let mut marks = Vec::new();
    let timer = wait.resume_source_kind.as_deref() == Some("timer");
    let by = wait.resume_source_id.as_deref().filter(|_| timer);
    if wait.is_open() && by.is_some_and(|id| gone.timer(id)) {
        marks.push(
            Tag::new("task gone", Tone::Attn, Mark::Cross)
                .titled("nothing ends it at its deadline before a repair puts the task back"),
        );
    }
    if wait.external_only && wait.is_open() && !left {
        marks.push(
            Tag::new("from outside", Tone::Wait, Mark::Arrow)
                .outlined()
                .titled("nothing inside the engine will end it"),
        );
    }
    // The status says the same of one that ended.
    if wait.is_diagnostic() && wait.status != UNSUPPORTED {
        marks.push(Tag::row_only(
            wait.history_authority.unwrap_or("a row alone"),
        ));
    }
    let (timeout, key, group) = match &wait.of_kind {
        OfKind::Condition {
            timeout_seconds,
            condition_key,
            ..
        } => (*timeout_seconds, condition_key.clone(), None),
        OfKind::Signal {
            timeout_seconds, ..
        } => (*timeout_seconds, None, None),
        OfKind::Step { group, .. } | OfKind::Child { group, .. } => (None, None, Some(group)),
        OfKind::None | OfKind::Update { .. } => (None, None, None),
    };
    let group = group.and_then(|group| {
        Some(format!(
            "{} of {}, {}",
            group.parallel_group_index?.saturating_add(1),
            group.parallel_group_size?,
            group.parallel_group_kind.as_deref().unwrap_or("parallel"),
        ))
    });
    shown::Wait {
        anchor: anchor("wait", &wait.id),
        kind: wait.kind,
        status: if left {
            Tag::left_open()
        } else {
            Tag::wait(wait.status, overdue)
        },
        marks,
        summary: if left {
            format!("Still open when the run closed. {}", wait.summary)
        } else {
            wait.summary.clone()
        },
        resumes: resumes(wait, places),
        opened: wait.opened_at,
        deadline: wait.deadline_at,
        resolved: wait.resolved_at,
        facts: Facts::default()
            .code("Wait id", Some(&wait.id))
            .count("Sequence", wait.sequence)
            .code("Source status", wait.source_status.as_deref())
            .code("Target", wait.target_name.as_deref())
            .code("Target type", wait.target_type.as_deref())
            .code("Condition", key)
            .seconds("Timeout", timeout)
            .at("Timeout fired", wait.timeout_fired_at)
            .row(
                "Task",
                wait.task_id.as_ref().map(|id| {
                    let words = format!(
                        "{} task, {}",
                        wait.task_type.as_deref().unwrap_or("a"),
                        wait.task_status.as_deref().unwrap_or("of unknown status"),
                    );
                    places.task(id, words)
                }),
            )
            .row(
                "Command",
                wait.command_id.as_ref().map(|id| {
                    let number = wait.command_sequence.map(|sequence| sequence.to_string());
                    let words = format!("command {}", number.as_deref().unwrap_or("?"));
                    places.command(id, words)
                }),
            )
            .text("Parallel group", group)
            .code("Known by", wait.history_authority)
            .code("Not supported", wait.history_unsupported_reason)
            .list(),
    }
}

fn resumes(wait: &Wait, places: &Places<'_>) -> Option<RowRef> {
    let kind = wait.resume_source_kind.as_deref()?;
    let words = kind.replace('_', " ");
    Some(match (kind, wait.resume_source_id.as_deref()) {
        ("activity_execution", Some(id)) => places.activity(id, words),
        ("workflow_task" | "task", Some(id)) => places.task(id, words),
        ("workflow_command", Some(id)) => places.command(id, words),
        // Its own name: ten children of a type are told apart by nothing else.
        ("child_workflow_run", Some(id)) => {
            places.child(id, wait.target_name.clone().unwrap_or(words))
        }
        ("signal", _) => places.signals(words),
        _ => Places::always("timeline", words),
    })
}
