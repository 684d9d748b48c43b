//! A stored summary as a row of the page's list.

use chrono::{DateTime, TimeDelta, Utc};

use super::{headline::Headline, repair_gate, task_problem, wait_end::WaitEnd};
use crate::{
    durable::stored::{
        ClosedReason, FailureCategory, FailureRow, ListedRun, RetryingActivity, RunRow, RunStatus,
        Summary as _,
    },
    run::{
        list::ListRow,
        tag::{Mark, Tag, Tone},
    },
};

pub fn list_row(
    summary: &ListedRun,
    failures: &[FailureRow],
    retrying: Option<&RetryingActivity>,
    now: DateTime<Utc>,
) -> ListRow {
    let s = summary;
    let closed_reason = s.closed_reason.as_ref().map(ClosedReason::as_str);
    let mut status = Tag::status(s.status.as_str(), closed_reason);
    if let Some(problem) = task_problem::badge(s.standing()) {
        status = status.with_task_problem(problem.code());
    }
    let terminal = s.status.is_terminal();
    let failure = Headline::of(&s.status, failures);
    ListRow {
        run_id: s.id.clone(),
        instance_id: s.workflow_instance_id.clone(),
        run_number: s.run_number,
        type_name: s.workflow_type.clone(),
        namespace: s.namespace.clone(),
        queue: s.queue.clone(),
        status,
        started: s.started_at,
        duration: match (s.duration_ms, terminal) {
            (Some(ms), _) => Some(TimeDelta::milliseconds(ms)),
            (None, false) => s
                .started_at
                .map(|started| (now - started).max(TimeDelta::zero())),
            (None, true) => None,
        },
        note: note(s, failure.as_ref(), retrying),
        until: s.wait_deadline_at.filter(|_| !terminal).map(|at| {
            let end = WaitEnd::of_stored(s.wait_kind.as_ref(), at, now);
            (end.name(), at)
        }),
        attention: attention(s, failure.as_ref(), retrying),
        repairable: repair_gate::of_summary(s.standing()).is_ok(),
    }
}

/// A run without a summary: what its own row says, marked as such.
pub fn unprojected_row(run: &RunRow, now: DateTime<Utc>) -> ListRow {
    let closed_reason = run.closed_reason.as_ref().map(ClosedReason::as_str);
    let end = run.closed_at.or((!run.status.is_terminal()).then_some(now));
    ListRow {
        run_id: run.id.clone(),
        instance_id: run.workflow_instance_id.clone(),
        run_number: run.run_number,
        type_name: run.workflow_type.clone(),
        namespace: run.namespace.clone(),
        queue: run.queue.clone(),
        status: Tag::status(run.status.as_str(), closed_reason),
        started: run.started_at.or(run.created_at),
        duration: run
            .started_at
            .zip(end)
            .map(|(start, end)| (end - start).max(TimeDelta::zero())),
        note: None,
        until: None,
        attention: vec![
            Tag::new("no summary", Tone::Attn, Mark::Question)
                .titled("the engine has not written a workflow_run_summaries row for this run"),
        ],
        // Its own page knows.
        repairable: false,
    }
}

fn note(
    s: &ListedRun,
    failure: Option<&Headline<'_>>,
    retrying: Option<&RetryingActivity>,
) -> Option<String> {
    if let Some(headline) = failure {
        return Some(first_line(&headline.failure.message));
    }
    if let Some(activity) = retrying {
        let of = activity
            .max_attempts
            .map_or_else(String::new, |max| format!(" of {max}"));
        return Some(format!(
            "activity {}, attempt {}{of}",
            activity.activity_type, activity.attempt_count
        ));
    }
    match s.status {
        RunStatus::Completed => None,
        _ => s.wait_reason.as_deref().map(first_line),
    }
}

/// A list has one line; the page has the rest.
fn first_line(text: &str) -> String {
    const LONGEST: usize = 160;
    let line = text
        .lines()
        .find(|line| !line.trim().is_empty())
        .unwrap_or_default();
    match line.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line.to_owned(),
    }
}

fn attention(
    s: &ListedRun,
    failure: Option<&Headline<'_>>,
    retrying: Option<&RetryingActivity>,
) -> Vec<Tag> {
    let mut tags = Vec::new();
    match repair_gate::of_summary(s.standing()) {
        Ok(()) => tags.push(Tag::repair().titled("by its stored summary; its page asks the rows")),
        Err(reason) => {
            if let Some(shown) = repair_gate::shown(&reason).filter(|shown| shown.badge_visible) {
                let (tone, mark) = match shown.tone {
                    "dark" => (Tone::Halt, Mark::Lock),
                    _ => (Tone::Attn, Mark::Hourglass),
                };
                tags.push(
                    Tag::new(shown.label.to_lowercase(), tone, mark).titled(shown.description),
                );
            }
        }
    }
    if let Some(activity) = retrying {
        let max = activity
            .max_attempts
            .and_then(|max| u64::try_from(max).ok());
        tags.push(Tag::retrying(activity.attempt_count.unsigned_abs(), max));
    }
    if let Some(headline) = failure {
        let Headline { failure, cause } = headline;
        let category = headline.category().map(FailureCategory::as_str);
        // "cancelled" beside "cancelled" says nothing new.
        if category != Some(s.status.as_str()) {
            let mut tag = Tag::failure_category(category);
            if cause.is_some_and(|cause| cause.category != failure.category) {
                let own = failure
                    .category
                    .as_ref()
                    .map_or("unclassified", |category| category.as_str());
                tag = tag.titled(format!(
                    "failure_category {} of the {} with the same exception; the run's own is {own}",
                    category.unwrap_or("unclassified"),
                    headline.shown().source_kind.replace('_', " "),
                ));
            }
            tags.push(tag);
        }
        if headline.is_non_retryable() {
            tags.push(Tag::non_retryable());
        }
    }
    match s.history_budget_pressure.as_deref() {
        Some("continue_as_new_recommended") => tags.push(
            Tag::new("history over budget", Tone::Attn, Mark::Exclamation)
                .titled("the run should continue as new: history_budget_pressure continue_as_new_recommended"),
        ),
        Some("approaching") => tags.push(
            Tag::new("history near budget", Tone::Wait, Mark::Exclamation)
                .titled("history_budget_pressure approaching"),
        ),
        _ => {}
    }
    if s.archived_at.is_some() {
        tags.push(Tag::archived());
    }
    tags
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(source: &str, category: Option<&str>, non_retryable: bool) -> FailureRow {
        FailureRow {
            source_kind: source.into(),
            category: category.map(Into::into),
            non_retryable,
            exception_class: "CardDeclined".into(),
            message: "card declined by issuer\nat ChargeCard.php:58".into(),
        }
    }

    fn failed() -> ListedRun {
        ListedRun {
            status: RunStatus::Failed,
            ..ListedRun::example()
        }
    }

    fn labels(row: &ListRow) -> Vec<&str> {
        row.attention.iter().map(|tag| tag.label.as_ref()).collect()
    }

    fn row(summary: &ListedRun, failures: &[FailureRow]) -> ListRow {
        list_row(
            summary,
            failures,
            None,
            summary.started_at.unwrap() + TimeDelta::seconds(63),
        )
    }

    #[test]
    fn a_run_that_an_activity_failed_shows_the_activity_as_category() {
        let failures = [
            failure("activity_execution", Some("activity"), true),
            failure("workflow_run", Some("application"), true),
        ];
        let row = row(&failed(), &failures);
        assert_eq!(labels(&row), ["activity", "non-retryable"]);
        assert_eq!(row.note.as_deref(), Some("card declined by issuer"));
    }

    #[test]
    fn a_failure_without_a_category_is_shown_as_unclassified() {
        assert_eq!(
            labels(&row(&failed(), &[failure("workflow_run", None, false)])),
            ["unclassified"]
        );
    }

    #[test]
    fn a_cancelled_run_does_not_say_so_twice() {
        let summary = ListedRun {
            status: RunStatus::Cancelled,
            ..ListedRun::example()
        };
        assert!(
            row(
                &summary,
                &[failure("workflow_run", Some("cancelled"), false)]
            )
            .attention
            .is_empty()
        );
    }

    #[test]
    fn an_open_run_shows_its_wait_how_long_it_is_open_and_that_repair_is_due() {
        let summary = ListedRun {
            liveness_state: Some("repair_needed".into()),
            wait_kind: Some("activity".into()),
            wait_reason: Some("Waiting for activity charge-card".into()),
            ..ListedRun::example()
        };
        let row = row(&summary, &[]);
        assert_eq!(
            row.note.as_deref(),
            Some("Waiting for activity charge-card")
        );
        assert_eq!(row.duration, Some(TimeDelta::seconds(63)));
        assert_eq!(labels(&row), ["repair"]);
    }

    #[test]
    fn a_retry_shows_which_attempt_of_how_many() {
        let summary = ListedRun {
            wait_kind: Some("activity".into()),
            ..ListedRun::example()
        };
        let activity = RetryingActivity {
            activity_type: "charge-card".into(),
            attempt_count: 2,
            max_attempts: Some(3),
        };
        let row = list_row(&summary, &[], Some(&activity), summary.started_at.unwrap());
        assert_eq!(
            row.note.as_deref(),
            Some("activity charge-card, attempt 2 of 3")
        );
        assert_eq!(labels(&row), ["retrying 2/3"]);
    }
}
