//! The runs a run comes from and those that come from it, with how they stand.

use crate::{
    durable::projection::{
        Projected,
        children::CHILD_LINK,
        lineage::{Relative, lineage},
    },
    run::{
        children as shown,
        fact::{Facts, RunRef, anchor},
        tag::{Mark, Tag, Tone},
        window::Asked,
    },
};

pub fn children(p: &Projected<'_>, asked: &Asked) -> shown::Children {
    let lineage = lineage(p.cx, &p.related, &p.children);
    let relatives: Vec<(&Relative, bool)> = lineage
        .parents
        .iter()
        .map(|parent| (parent, true))
        .chain(lineage.continued.iter().map(|child| (child, false)))
        .collect();
    let window = asked.window("children", relatives.len(), |at| {
        let id = at.strip_prefix("child-")?;
        relatives
            .iter()
            .position(|(relative, _)| relative.workflow_run_id == id)
    });
    let (parents, children): (Vec<_>, Vec<_>) = window
        .of(&relatives)
        .iter()
        .partition(|(_, parent)| *parent);
    shown::Children {
        parents: parents
            .into_iter()
            .map(|(of, _)| row(p, of, true))
            .collect(),
        this: format!(
            "{} run {}",
            p.cx.snapshot.run.workflow_type, p.cx.snapshot.run.run_number
        ),
        roll_up: roll_up(p, &lineage.continued),
        rows: children
            .into_iter()
            .map(|(of, _)| row(p, of, false))
            .collect(),
        window,
    }
}

/// An open child's own word for how it stands, where its row is read: its parent's events only
/// tell that it began.
fn status(p: &Projected<'_>, of: &Relative) -> Option<Tag> {
    let own = p
        .related
        .run(&of.workflow_run_id)
        .filter(|_| is_open_child(of));
    let own = own
        .map(|own| own.run.status.as_str())
        .filter(|own| !own.is_empty());
    let status = own.or(of.status.as_deref())?;
    Some(Tag::status(status, of.closed_reason.as_deref()))
}

fn is_open_child(of: &Relative) -> bool {
    of.link_type == CHILD_LINK && of.status_bucket.as_deref() == Some("running")
}

/// Failed first, then what is open, then what ended well.
fn roll_up(p: &Projected<'_>, children: &[Relative]) -> Vec<(usize, Tag)> {
    let mut counts: Vec<(u8, usize, Tag)> = Vec::new();
    for child in children
        .iter()
        .filter(|child| child.link_type == CHILD_LINK)
    {
        let Some(tag) = status(p, child) else {
            continue;
        };
        let known = counts
            .iter_mut()
            .find(|(_, _, known)| known.label == tag.label);
        if let Some((_, count, _)) = known {
            *count += 1;
            continue;
        }
        let rank = match child.status_bucket.as_deref() {
            Some("failed") => 0,
            Some("running") => 1,
            Some("completed") => 2,
            _ => 3,
        };
        counts.push((rank, 1, tag));
    }
    counts.sort_by_key(|(rank, count, _)| (*rank, std::cmp::Reverse(*count)));
    counts
        .into_iter()
        .map(|(_, count, tag)| (count, tag))
        .collect()
}

fn row(p: &Projected<'_>, of: &Relative, parent: bool) -> shown::Relative {
    let relation = match (of.link_type.as_str(), parent) {
        ("child_workflow", true) => "parent".to_owned(),
        ("child_workflow", false) => "child".to_owned(),
        ("continue_as_new", true) => "continued from".to_owned(),
        ("continue_as_new", false) => "continued as".to_owned(),
        (other, _) => other.replace('_', " "),
    };
    let close = &of.close;
    let close_policy = close.parent_close_policy.as_ref().map(|policy| {
        let mut words = format!("when this run closes: {}", policy.replace('_', " "));
        if let Some(outcome) = close.parent_close_policy_outcome {
            words.push_str(", ");
            words.push_str(outcome);
        }
        words
    });
    let own = p.related.run(&of.workflow_run_id);
    let stuck = own
        .filter(|_| is_open_child(of))
        .and_then(|own| own.summary_liveness.as_ref())
        .filter(|stored| stored.needs_somebody())
        .map(|stored| {
            Tag::new("stuck", Tone::Attn, Mark::Exclamation)
                .titled(format!("its stored summary says {stored}"))
        });
    // A link is made when the run it leads to begins; of the run before it says nothing.
    let linked = of.created_at.filter(|_| !parent);
    let started = own.and_then(|own| own.run.started_at).or(linked);
    let ended = own.and_then(|own| own.run.closed_at);
    shown::Relative {
        anchor: anchor("child", &of.workflow_run_id),
        run: RunRef {
            instance_id: of.workflow_instance_id.clone(),
            run_id: Some(of.workflow_run_id.clone()),
            text: match of.run_number {
                Some(number) => format!("{} run {number}", of.workflow_instance_id),
                None => of.workflow_instance_id.clone(),
            },
        },
        type_name: of
            .workflow_type
            .clone()
            .or_else(|| of.class.clone())
            .unwrap_or_else(|| "of unknown type".into()),
        relation,
        status: status(p, of),
        marks: of
            .diagnostic_only
            .then(|| Tag::row_only(of.history_authority))
            .into_iter()
            .chain(stuck)
            .collect(),
        started,
        ended,
        close_policy,
        facts: Facts::default()
            .id("Run", Some(&of.workflow_run_id))
            .code("Class", of.class.as_deref())
            .code("Call id", of.child_call_id.as_deref())
            .count("Sequence", of.sequence)
            .code("Closed reason", of.closed_reason.as_deref())
            .text(
                "Close policy reason",
                close.parent_close_policy_reason.as_deref(),
            )
            .text(
                "Close policy error",
                close.parent_close_policy_error.as_deref(),
            )
            .code("Known by", Some(of.history_authority))
            .list(),
    }
}
