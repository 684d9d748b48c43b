//! Activities and their attempts: what each try came to, and what comes next.

use std::collections::HashMap;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;

use super::{gone::Gone, payloads, tasks::worker};
use crate::{
    durable::{
        projection::{
            Projected,
            activities::{Activity, Deadlines, UNSUPPORTED},
            attempts::{Attempt, StopReason},
            progress::Progress,
            retries::{Cut, RetryState, retry_state},
        },
        stored::{AttemptStatus, EventType, payloads::activity::ActivityEvent},
    },
    run::{
        activities as shown,
        data::PayloadRef,
        fact::anchor,
        section::Section,
        tag::{Mark, Tag, Tone},
        window::Asked,
    },
};

/// Most attempts listed of one activity: the latest ones.
const ATTEMPTS: usize = 10;

pub fn activities(p: &Projected<'_>, asked: &Asked, ahead: bool) -> shown::Activities {
    let window = asked.window("activities", p.activities.len(), |at| {
        let id = at.strip_prefix("activity-")?;
        p.activities.iter().position(|activity| activity.id == id)
    });
    Section::new(window, ahead, |stretch| {
        let rows = stretch.of(&p.activities);
        let errors = errors(p, rows);
        let gone = Gone::of(p);
        let rows = rows
            .iter()
            .map(|activity| row(p, activity, &errors, gone.activity(&activity.id)));
        rows.collect()
    })
}

/// What an attempt failed with, by its id.
type Errors = HashMap<String, (Option<String>, Option<String>)>;

/// The events that end a try badly say why: a retry's in the event that schedules it, the last
/// one's in the event that ends the activity.
fn errors(p: &Projected<'_>, rows: &[Activity<'_>]) -> Errors {
    if rows.iter().all(|activity| activity.attempts.is_empty()) {
        return Errors::new();
    }
    let mut errors = Errors::new();
    for event in &p.cx.snapshot.events {
        if !matches!(
            event.event_type,
            EventType::ActivityRetryScheduled
                | EventType::ActivityFailed
                | EventType::ActivityTimedOut
        ) {
            continue;
        }
        let told: ActivityEvent = event.as_payload();
        let attempt = told
            .retry_after_attempt_id
            .owned()
            .or_else(|| told.activity_attempt_id.owned())
            .or_else(|| told.activity_attempt.as_ref()?.id.owned());
        if let Some(attempt) = attempt {
            let error = (told.exception_class.owned(), told.message.owned());
            errors.insert(attempt, error);
        }
    }
    errors
}

fn row(
    p: &Projected<'_>,
    activity: &Activity,
    errors: &Errors,
    without_task: bool,
) -> shown::Activity {
    let state = retry_state(p.cx, activity);
    let max = state.as_ref().and_then(|state| state.max_attempts);
    let left_out = activity.attempts.len().saturating_sub(ATTEMPTS);
    let payload = |part| PayloadRef {
        of: "activity",
        id: activity.id.clone(),
        part,
    };
    shown::Activity {
        anchor: anchor("activity", &activity.id),
        name: activity.name().unwrap_or("without a name").to_owned(),
        class: activity
            .class
            .clone()
            .filter(|class| activity.r#type.as_ref() != Some(class)),
        sequence: activity.sequence,
        status: status(activity),
        marks: marks(activity),
        attempts: match max {
            Some(max) => format!("{}/{max}", activity.attempt_count),
            None => activity.attempt_count.to_string(),
        },
        tries: state.as_ref().map(|state| match state.max_attempts {
            Some(1) => "one try".to_owned(),
            Some(max) => format!("{max} tries"),
            None => "any number of tries".to_owned(),
        }),
        // A wait that never comes explains nothing.
        backoff: if max == Some(1) {
            Vec::new()
        } else {
            backoff(activity)
        },
        queue: activity.queue.clone(),
        scheduled: activity.created_at,
        closed: activity.closed_at,
        took: length(activity.started_at, activity.closed_at),
        retry: state.as_ref().and_then(retry),
        notes: without_task
            .then(no_task)
            .into_iter()
            .chain(notes(p.cx.now, activity, state.as_ref()))
            .collect(),
        list: activity
            .attempts
            .iter()
            .skip(left_out)
            .map(|attempt| attempt_row(p.cx.now, attempt, errors))
            .collect(),
        left_out,
        execution_id: activity.idempotency_key.clone(),
        attempt_id: activity.attempt_id.clone(),
        arguments: payloads::in_row(payload("arguments"), &activity.arguments),
        result: payloads::in_row(payload("result"), &activity.result),
    }
}

fn status(activity: &Activity) -> Tag {
    match (activity.status.as_str(), &activity.row_status) {
        (UNSUPPORTED, row) => {
            let stored = row.as_ref().map_or("(empty)", |row| row.as_str());
            Tag::step(stored).outlined()
        }
        ("pending", _) if activity.retry.is_some() => {
            Tag::new("waits for retry", Tone::Attn, Mark::Loop).titled("status pending")
        }
        (status, _) => Tag::step(status),
    }
}

fn marks(activity: &Activity) -> Vec<Tag> {
    let mut marks = Vec::new();
    if activity
        .ended
        .as_ref()
        .is_some_and(|ended| ended.non_retryable)
    {
        marks.push(Tag::non_retryable());
    }
    if let Some(kind) = activity
        .ended
        .as_ref()
        .and_then(|ended| ended.timeout_kind.as_deref())
    {
        let words = format!("{} timeout", kind.replace('_', " "));
        marks.push(Tag::new(words, Tone::Late, Mark::Clock).titled(format!("timeout_kind {kind}")));
    }
    if activity.local_activity {
        marks.push(
            Tag::new("local", Tone::Wait, Mark::Dot)
                .outlined()
                .titled("runs inside its workflow's worker"),
        );
    }
    if activity.diagnostic_only {
        marks.push(Tag::row_only(activity.history_authority));
    }
    marks
}

fn backoff(activity: &Activity) -> Vec<TimeDelta> {
    let policy = activity
        .retry_policy
        .as_ref()
        .or_else(|| activity.retry.as_ref()?.retry_policy.as_ref());
    policy
        .and_then(|policy| policy.get("backoff_seconds")?.as_array())
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let seconds = entry
                .as_i64()
                .or_else(|| entry.as_str()?.trim().parse().ok())?;
            TimeDelta::try_seconds(seconds.max(0))
        })
        .take(8)
        .collect()
}

fn retry(state: &RetryState) -> Option<shown::Retry> {
    let scheduled = state.scheduled.as_ref().filter(|_| state.waiting)?;
    let after = scheduled.retry_after_attempt.unwrap_or(state.attempts_made);
    let next = after.saturating_add(1);
    let which = match state.max_attempts {
        Some(max) => format!("attempt {next} of {max}"),
        None => format!("attempt {next}"),
    };
    let why = match (&scheduled.timeout_kind, &scheduled.message) {
        (Some(kind), _) => format!("timed out ({})", kind.replace('_', " ")),
        _ => "failed".to_owned(),
    };
    Some(shown::Retry {
        words: format!("Retry: {which}, after attempt {after} {why}"),
        waits: scheduled
            .retry_backoff_seconds
            .and_then(TimeDelta::try_seconds),
        due: scheduled.retry_available_at,
    })
}

fn no_task() -> shown::Note {
    shown::Note {
        words: "Its task is gone: no worker can take it before a repair puts it back.".into(),
        at: None,
    }
}

fn notes(now: DateTime<Utc>, activity: &Activity, state: Option<&RetryState>) -> Vec<shown::Note> {
    let mut notes = Vec::new();
    let mut say = |words: String, at| notes.push(shown::Note { words, at });
    if let Some(state) = state {
        let left = state
            .max_attempts
            .map_or(0, |max| max.saturating_sub(state.attempts_made));
        match (activity.is_open(), state.cut()) {
            // It ended, and why no further try was made is told.
            (false, Some(Cut::NonRetryable)) if left > 0 => say(
                format!(
                    "The exception is non-retryable, so the {} the policy still allowed {} not made.",
                    counted(left, "try", "tries"),
                    if left == 1 { "was" } else { "were" },
                ),
                None,
            ),
            (false, Some(Cut::NonRetryable)) => {
                say("The exception is non-retryable.".into(), None);
            }
            (false, Some(Cut::MaxAttempts)) if state.attempts_made == 1 => {
                say("Its only try was used.".into(), None);
            }
            (false, Some(Cut::MaxAttempts)) => say(
                format!(
                    "All {} were used.",
                    counted(state.attempts_made, "try", "tries")
                ),
                None,
            ),
            (false, Some(Cut::ScheduleToClose)) => {
                say("Its time as a whole was over.".into(), None);
            }
            // It is open, and something ends it before its tries are used up.
            (true, Some(Cut::ScheduleToClose)) => say(
                "Its time as a whole ends before all tries are used.".into(),
                activity.deadlines.schedule_to_close,
            ),
            (true, Some(Cut::RunDeadline)) => {
                say(
                    "The run's deadline comes before all tries are used.".into(),
                    None,
                );
            }
            (true, Some(Cut::ExecutionDeadline)) => say(
                "The execution deadline comes before all tries are used.".into(),
                None,
            ),
            (true, Some(Cut::RunClosed)) => {
                say("The run is closed: no further try is made.".into(), None);
            }
            _ => {}
        }
    }
    if activity.is_open() {
        let Deadlines {
            schedule,
            close,
            heartbeat,
            ..
        } = activity.deadlines;
        for (at, words) in [
            (schedule, "It must start"),
            (close, "The attempt must end"),
            (heartbeat, "The next heartbeat is due"),
        ] {
            if let Some(at) = at {
                let passed = if at < now { ", which has passed" } else { "" };
                say(format!("{words} by its deadline{passed}"), Some(at));
            }
        }
    }
    if let Some(reason) = activity.history_unsupported_reason {
        say(
            format!("Only its row says so ({reason}); replay will not see it."),
            None,
        );
    }
    notes
}

fn attempt_row(now: DateTime<Utc>, attempt: &Attempt, errors: &Errors) -> shown::Attempt {
    let (error_class, error) = errors.get(&attempt.id).cloned().unwrap_or_default();
    let running = attempt.status == Some(AttemptStatus::Running);
    shown::Attempt {
        number: attempt
            .attempt_number
            .map_or_else(|| "?".into(), |number| number.to_string()),
        id: attempt.id.clone(),
        outcome: match (&attempt.status, attempt.stop_reason) {
            // No event tells of a lease that ran out.
            (Some(AttemptStatus::Running), _)
                if attempt.lease_expires_at.is_some_and(|at| at <= now) =>
            {
                Tag::lease_ran_out()
            }
            (Some(status), _) => Tag::step(status.as_str()),
            (None, _) => Tag::unknown(""),
        },
        worker: worker(attempt.lease_owner.as_deref(), attempt.task_id.as_deref()),
        started: attempt.started_at,
        ended: attempt.closed_at,
        took: length(attempt.started_at, attempt.closed_at),
        lease: attempt.leased_until.map(|until| {
            if running {
                shown::Lease::Held(until)
            } else {
                shown::Lease::Over(until)
            }
        }),
        heartbeat: attempt.last_heartbeat_at,
        progress: attempt.last_heartbeat_progress.as_ref().map(progress),
        stop: attempt.stop_reason.filter(|_| running).map(stop),
        error,
        error_class,
    }
}

/// `half way · 3 of 10 rows · file: a.csv`.
fn progress(progress: &Progress) -> String {
    let unit = progress
        .unit
        .as_ref()
        .map_or_else(String::new, |unit| format!(" {unit}"));
    let amount = match (&progress.current, &progress.total) {
        (Some(current), Some(total)) => Some(format!("{current} of {total}{unit}")),
        (Some(current), None) => Some(format!("{current}{unit}")),
        (None, Some(total)) => Some(format!("of {total}{unit}")),
        (None, None) => None,
    };
    let details = progress.details.iter().map(|(key, value)| match value {
        Value::String(text) => format!("{key}: {text}"),
        other => format!("{key}: {other}"),
    });
    progress
        .message
        .clone()
        .into_iter()
        .chain(amount)
        .chain(details)
        .collect::<Vec<_>>()
        .join(" · ")
}

fn stop(reason: StopReason) -> &'static str {
    match reason {
        StopReason::AttemptCancelled => "the attempt was cancelled",
        StopReason::ActivityCancelled => "the activity was cancelled",
        StopReason::AttemptExpired => "the attempt expired",
        StopReason::AttemptClosed => "the attempt is closed",
        StopReason::ActivityClosed => "the activity is closed",
        StopReason::StaleAttempt => "the activity went on with another attempt",
    }
}

fn length(from: Option<DateTime<Utc>>, to: Option<DateTime<Utc>>) -> Option<TimeDelta> {
    Some(to? - from?)
}

fn counted(n: i64, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}
