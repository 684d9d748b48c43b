//! What a run is and how it stands.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;

use super::gone::Gone;
use crate::{
    durable::{
        projection::{
            self, Projected, authority, budget,
            children::CHILD_LINK,
            drift,
            ending::{Ending, ending},
            lineage, navigation, retries, task_problem,
            wait_end::WaitEnd,
        },
        repair::{self, Explained},
        stored::{ClosedReason, EventType, FailureCategory, RunStatus, RunSummary, Summary as _},
    },
    run::{
        self,
        fact::Said,
        head::{Chain, Deadline, Differs, Head, Neighbour, Notice, Repair},
        tag::{Mark, Tag, Tone},
    },
};

pub fn head(p: &Projected<'_>, explained: &Explained) -> Head {
    let snapshot = p.cx.snapshot;
    let run = &snapshot.run;
    let is_open = !run.status.is_terminal();
    let started = run.started_at.or(run.created_at);
    let end = run.closed_at.or(is_open.then_some(p.cx.now));
    let budget = budget::current(p.cx);
    let repair = control(p, explained);
    Head {
        type_name: run.workflow_type.clone(),
        instance_id: run.workflow_instance_id.clone(),
        run_id: run.id.clone(),
        run_number: run.run_number,
        status: status(p),
        attention: attention(p, &budget, &repair),
        closed_reason: run.closed_reason.as_ref().map(ToString::to_string),
        business_key: run
            .business_key
            .clone()
            .or_else(|| snapshot.instance.business_key.clone()),
        queue: run.queue.clone(),
        connection: run.connection.clone(),
        namespace: run
            .namespace
            .clone()
            .or_else(|| snapshot.instance.namespace.clone()),
        compatibility: run.compatibility.clone(),
        started,
        closed: run.closed_at,
        is_open,
        duration: started
            .zip(end)
            .map(|(start, end)| (end - start).max(TimeDelta::zero())),
        deadlines: deadlines(p, is_open),
        events: i64::try_from(snapshot.events.len()).unwrap_or(i64::MAX),
        bytes: u64::try_from(budget.history_size_bytes).ok(),
        chain: chain(p),
        parents: lineage::lineage(p.cx, &p.related, &p.children)
            .parents
            .iter()
            // The run before of a chain stands among the runs of the instance.
            .filter(|parent| parent.link_type == CHILD_LINK)
            .map(|parent| Neighbour {
                label: parent
                    .workflow_type
                    .clone()
                    .unwrap_or_else(|| parent.workflow_instance_id.clone()),
                instance_id: parent.workflow_instance_id.clone(),
                run_id: parent.workflow_run_id.clone(),
            })
            .collect(),
        repair,
        notices: notices(p),
        unreadable: unreadable(p),
        story: snapshot.story.clone(),
    }
}

fn status(p: &Projected<'_>) -> Tag {
    let run = &p.cx.snapshot.run;
    let reason = run.closed_reason.as_ref().map(ClosedReason::as_str);
    let status = Tag::status(run.status.as_str(), reason);
    let summary = p.cx.snapshot.summary.as_ref();
    match summary.and_then(|summary| task_problem::badge(summary.standing())) {
        Some(problem) => status.with_task_problem(problem.code()),
        None => status,
    }
}

fn attention(p: &Projected<'_>, budget: &budget::HistoryBudget, repair: &Repair) -> Vec<Tag> {
    let snapshot = p.cx.snapshot;
    let mut tags = Vec::new();
    if snapshot.summary.is_none() {
        tags.push(
            Tag::new("no summary", Tone::Attn, Mark::Question)
                .titled("the engine has not written a workflow_run_summaries row for this run"),
        );
    } else if !drift::drift(p).is_empty() {
        tags.push(Tag::stale());
    }
    if repair.called_for {
        tags.push(Tag::repair());
    }
    let retrying = p.activities.iter().rfind(|activity| {
        activity.is_open() && (activity.attempt_count > 1 || activity.retry.is_some())
    });
    if let Some(activity) = retrying
        && !snapshot.run.status.is_terminal()
    {
        let max = retries::retry_state(p.cx, activity)
            .and_then(|state| state.max_attempts)
            .and_then(|max| u64::try_from(max).ok());
        tags.push(Tag::retrying(activity.attempt_count.unsigned_abs(), max));
    }
    if ended_badly(&snapshot.run.status)
        && let Some(Ending { failure, cause }) = ending(&p.failures)
    {
        let shown = cause.unwrap_or(failure);
        let category = shown.failure_category.as_ref().map(FailureCategory::as_str);
        // "cancelled" beside "cancelled" says nothing new.
        if category != Some(snapshot.run.status.as_str()) {
            tags.push(Tag::failure_category(category));
        }
        if failure.non_retryable || shown.non_retryable {
            tags.push(Tag::non_retryable());
        }
    }
    match budget.history_budget_pressure {
        budget::Pressure::ContinueAsNewRecommended => tags.push(
            Tag::new("history over budget", Tone::Attn, Mark::Exclamation)
                .titled("the run should continue as new"),
        ),
        budget::Pressure::Approaching => tags.push(
            Tag::new("history near budget", Tone::Wait, Mark::Exclamation)
                .titled("the run should soon continue as new"),
        ),
        budget::Pressure::Ok => {}
    }
    if snapshot.run.archived_at.is_some() {
        tags.push(Tag::archived());
    }
    tags
}

/// A run that completed has dealt with whatever failed in it.
fn ended_badly(status: &RunStatus) -> bool {
    status.is_terminal() && *status != RunStatus::Completed
}

fn deadlines(p: &Projected<'_>, is_open: bool) -> Vec<Deadline> {
    let run = &p.cx.snapshot.run;
    // A timeout whose task is gone will end nothing.
    let wait = p.standing.wait_deadline_at;
    let wait = wait.filter(|at| is_open && !(*at > p.cx.now && is_timeout_gone(p)));
    let deadline = |name, at: Option<DateTime<Utc>>| {
        at.map(|at| Deadline {
            name,
            at,
            counts: is_open,
        })
    };
    [
        deadline("Run deadline", run.run_deadline_at),
        deadline("Execution deadline", run.execution_deadline_at),
        wait.and_then(|at| deadline(WaitEnd::of(p, at).name(), Some(at))),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn is_timeout_gone(p: &Projected<'_>) -> bool {
    let standing = &p.standing;
    let gone = Gone::of(p);
    let wait = standing.open_wait_id.as_deref();
    let source = standing.resume_source_id.as_deref();
    wait.is_some_and(|id| gone.timeout(id)) || source.is_some_and(|id| gone.timer(id))
}

fn chain(p: &Projected<'_>) -> Chain {
    let runs = navigation::navigation(p.cx, &p.related);
    let neighbour = |run: &navigation::NavigationRun| Neighbour {
        label: format!("run {}", run.run_number),
        instance_id: run.instance_id.clone(),
        run_id: run.run_id.clone(),
    };
    let here = runs.iter().position(|run| run.is_selected_run);
    let at = |place: Option<usize>| place.and_then(|place| runs.get(place)).map(neighbour);
    Chain {
        runs: runs.len(),
        previous: at(here.and_then(|here| here.checked_sub(1))),
        next: at(here.and_then(|here| here.checked_add(1))),
        current: runs
            .iter()
            .find(|run| run.is_current_run && !run.is_selected_run)
            .map(neighbour),
    }
}

/// What the repair page would answer, asked the same way.
fn control(p: &Projected<'_>, explained: &Explained) -> Repair {
    let verdict = explained.verdict();
    Repair {
        called_for: verdict.offered,
        code: verdict.code,
        words: match &explained.repair {
            Ok(()) => "The durable state calls for repair.".to_owned(),
            Err(refusal) => refusal.words(),
        },
        not_before: verdict.not_before,
        elsewhere: repair::explain::engine_command(p).filter(|_| verdict.offered),
    }
}

/// A summary that is not there has a notice of its own.
fn unreadable(p: &Projected<'_>) -> Vec<run::notice::Notice> {
    let mut shown = projection::notices::shown(&projection::notices::notices(p));
    let summary = format!("{}.id", RunSummary::TABLE);
    shown.retain(|notice| notice.place != summary);
    shown
}

fn notices(p: &Projected<'_>) -> Vec<Notice> {
    let snapshot = p.cx.snapshot;
    let mut notices = Vec::new();
    let mut tell = |tone, title: &str, text: String| {
        notices.push(Notice {
            tone,
            title: title.to_owned(),
            text,
            facts: Vec::new(),
        });
    };
    if snapshot.summary.is_none() {
        tell(
            Tone::Attn,
            "No summary row",
            "The engine has not projected this run, or its retention pruned it. What is shown comes from history and the run's own rows.".to_owned(),
        );
    }
    if let RunStatus::Other(status) = &snapshot.run.status {
        tell(
            Tone::Attn,
            "Unknown status",
            format!(
                "The run's status is {status}, which this version does not know. It is shown as it is stored."
            ),
        );
    }
    let unknown: Vec<&str> = {
        let mut words: Vec<&str> = snapshot
            .events
            .iter()
            .filter_map(|event| match &event.event_type {
                EventType::Other(word) => Some(word.as_str()),
                _ => None,
            })
            .collect();
        words.sort_unstable();
        words.dedup();
        words
    };
    if !unknown.is_empty() {
        tell(
            Tone::Wait,
            "Unknown events",
            format!(
                "Its history holds {}, which this version does not know. Such events are listed, and nothing is concluded from them.",
                listed(&unknown)
            ),
        );
    }
    let mutable: Vec<String> = [
        (
            p.activities
                .iter()
                .filter(|row| row.history_authority != authority::TYPED)
                .count(),
            "activity",
            "activities",
        ),
        (
            p.timers
                .iter()
                .filter(|row| row.history_authority != authority::TYPED)
                .count(),
            "timer",
            "timers",
        ),
        (
            p.children
                .iter()
                .filter(|row| row.history_authority != authority::TYPED)
                .count(),
            "child",
            "children",
        ),
        (
            p.failures
                .iter()
                .filter(|row| row.history_authority != authority::TYPED)
                .count(),
            "failure",
            "failures",
        ),
    ]
    .into_iter()
    .filter(|(count, ..)| *count > 0)
    .map(|(count, one, many)| format!("{count} {}", if count == 1 { one } else { many }))
    .collect();
    if !mutable.is_empty() {
        let mutable: Vec<&str> = mutable.iter().map(String::as_str).collect();
        tell(
            Tone::Attn,
            "Rows without typed history",
            format!(
                "Only mutable rows tell of {}. What they tell is shown and marked; history does not vouch for it.",
                listed(&mutable)
            ),
        );
    }
    let drift = drift::drift(p);
    if !drift.is_empty() {
        notices.push(Notice {
            tone: Tone::Attn,
            title: "The stored summary is stale".to_owned(),
            text: "This page shows what history and rows say now; lists and filters still read the summary.".to_owned(),
            facts: drift
                .iter()
                .map(|drift| Differs {
                    name: drift.field,
                    stored: said(drift.field, &drift.stored),
                    now: said(drift.field, &drift.now),
                })
                .collect(),
        });
    }
    notices
}

/// `a, b and c`.
fn listed(words: &[&str]) -> String {
    const MOST: usize = 8;
    match words {
        [] => String::new(),
        [one] => (*one).to_owned(),
        many if many.len() > MOST => {
            format!("{} and {} more", many[..MOST].join(", "), many.len() - MOST)
        }
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

/// A moment as one, so that the page shows it in its own zone.
fn said(column: &str, value: &Value) -> Said {
    match value {
        Value::Null => Said::Text("nothing".to_owned()),
        Value::String(text) => column
            .ends_with("_at")
            .then(|| DateTime::parse_from_rfc3339(text).ok())
            .flatten()
            .map_or_else(|| Said::Text(text.clone()), |at| Said::At(at.to_utc())),
        other => Said::Text(other.to_string()),
    }
}
