//! Activities: their tries, the pauses between them, and the tries that may come.

use chrono::{DateTime, TimeDelta, Utc};

use super::{LEFT, Time, gone, row_only, stretch};
use crate::{
    durable::{
        page::gone::Gone,
        projection::{
            Projected,
            activities::{Activity, UNSUPPORTED},
            attempts::Attempt,
            retries,
        },
        stored::{ActivityStatus, AttemptStatus},
    },
    run::{
        fact::Facts,
        timeline::{Kind, Phase, Span, Unit},
    },
};

/// Tries ahead that are drawn; the section of activities tells of the rest.
const AHEAD: usize = 4;

/// What is said of a stretch in which a worker would be awaited if there were a task.
const NO_TASK: &str = "waits, but its task is gone: no worker can take it";

pub(super) fn of_activity(
    p: &Projected<'_>,
    time: Time,
    lost: &Gone<'_>,
    activity: &Activity,
) -> Unit {
    let retry = retries::retry_state(p.cx, activity);
    let max = retry.as_ref().and_then(|retry| retry.max_attempts);
    let is_open = activity.is_open() && time.is_open;
    let is_gone = lost.activity(&activity.id);
    let mut spans = if is_gone {
        abandoned(time, activity)
    } else {
        tries(time, activity)
    };
    if let Some(retry) = retry.as_ref().filter(|_| !is_gone) {
        if retry.waiting
            && let Some(from) = spans.last().map(|span| span.to)
            && let Some(due) = retry.scheduled.as_ref().and_then(|s| s.retry_available_at)
        {
            let pause = pause(from, due.max(time.until), Some(due));
            spans.extend(pause.into_iter().flatten());
        }
        let coming = retry.coming().take(AHEAD).enumerate();
        spans.extend(coming.filter_map(|(nth, ahead)| {
            let at = ahead.at?.max(time.now);
            // The first of them comes anyway, once the try before has failed.
            let says = match (nth, retry.waiting || activity.attempt_count == 0) {
                (0, true) => "ahead, not before then",
                _ => "ahead, not before then and only if the try before fails",
            };
            Some(Span {
                attempt: Some(ahead.attempt),
                ..stretch(Phase::Ahead, at, at, says)
            })
        }));
    }
    if is_open {
        spans.extend(deadline(time, activity));
    }
    let cut = retry
        .as_ref()
        .filter(|retry| retry.coming().next().is_none())
        .and_then(retries::RetryState::cut);
    Unit {
        id: format!("activity-{}", activity.id),
        kind: Kind::Activity,
        name: activity.name().unwrap_or("activity").to_owned(),
        family: activity.name().unwrap_or("activity").to_owned(),
        note: match (activity.attempt_count, max) {
            (made, Some(max)) if max > 1 || made > 1 => Some(format!("{made}/{max}")),
            (made, None) if made > 1 => Some(format!("try {made}")),
            _ => None,
        },
        status: said(activity).to_string(),
        mark: row_only(activity.diagnostic_only, activity.history_authority),
        is_open,
        failed: *said(activity) == ActivityStatus::Failed,
        spans,
        facts: Facts::default()
            .id("Activity execution id", Some(&activity.id))
            .code("Queue", activity.queue.as_ref())
            .text("No further try", cut.map(cut_words))
            .list(),
        row: Some(format!("activity-{}", activity.id)),
        leads_to: None,
    }
}

fn cut_words(cut: retries::Cut) -> &'static str {
    match cut {
        retries::Cut::MaxAttempts => "the policy allows no more tries",
        retries::Cut::NonRetryable => "the exception is non-retryable",
        retries::Cut::ScheduleToClose => "the activity's own deadline comes first",
        retries::Cut::RunDeadline => "the run's deadline comes first",
        retries::Cut::ExecutionDeadline => "the execution's deadline comes first",
        retries::Cut::RunClosed => "the run has ended",
        retries::Cut::Untold => "it failed for good and no event says why",
    }
}

/// The deadline that comes first: it ends the try, or the activity.
fn deadline(time: Time, activity: &Activity) -> Option<Span> {
    let is_running = activity.status == ActivityStatus::Running;
    let deadlines = &activity.deadlines;
    let (at, what) = [
        (
            deadlines.schedule.filter(|_| !is_running),
            "must start by its deadline",
        ),
        (
            deadlines.close.filter(|_| is_running),
            "the try must end by its deadline",
        ),
        (
            deadlines.heartbeat.filter(|_| is_running),
            "the next heartbeat is due",
        ),
        (deadlines.schedule_to_close, "must end by its deadline"),
    ]
    .into_iter()
    .filter_map(|(at, what)| Some((at?, what)))
    .min()?;
    time.due(Some(at), what)
}

fn tries(time: Time, activity: &Activity) -> Vec<Span> {
    let made = made(time, activity);
    if made.is_empty() {
        return untried(time, activity);
    }
    made
}

/// The tries of an activity and the pauses between them.
fn made(time: Time, activity: &Activity) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    // When the try before ended, and when the next one was to start.
    let mut before = activity.created_at.map(|at| (at, None));
    for attempt in &activity.attempts {
        let Some(from) = attempt.started_at else {
            continue;
        };
        if let Some((since, due)) = before {
            spans.extend(pause(since, from, due).into_iter().flatten());
        }
        let (phase, to, says) = ended(time, activity, attempt);
        let to = to.max(from);
        let tries = spans.iter().filter(|span| span.attempt.is_some()).count();
        spans.push(Span {
            attempt: attempt
                .attempt_number
                .or_else(|| i64::try_from(tries + 1).ok()),
            ..stretch(phase, from, to, &says)
        });
        // Nothing makes a try wait whose predecessor was lost with its worker.
        let backs_off = phase == Phase::Failed;
        before = Some((to, due_after(activity, attempt, to).filter(|_| backs_off)));
    }
    spans
}

/// The tries of an activity whose task is gone. From when the next was due nobody can make it;
/// one due later than now is not drawn ahead.
fn abandoned(time: Time, activity: &Activity) -> Vec<Span> {
    let mut spans = made(time, activity);
    let last = spans.last().map(|span| span.to);
    let Some(from) = last.or(activity.created_at) else {
        return spans;
    };
    let due = activity
        .retry
        .as_ref()
        .filter(|_| last.is_some())
        .and_then(|retry| retry.retry_available_at);
    let since = due.unwrap_or(from).min(time.until).max(from);
    spans.extend(pause(from, since, Some(since)).into_iter().flatten());
    spans.push(gone(time, since, NO_TASK));
    spans
}

/// When the next try was to start: as its event says, or by the policy.
fn due_after(
    activity: &Activity,
    attempt: &Attempt,
    ended: DateTime<Utc>,
) -> Option<DateTime<Utc>> {
    let told = activity
        .retry
        .as_ref()
        .filter(|retry| retry.retry_after_attempt_id.as_deref() == Some(&attempt.id));
    told.and_then(|retry| retry.retry_available_at).or_else(|| {
        let seconds = retries::backoff_after(activity, attempt.attempt_number?);
        ended.checked_add_signed(TimeDelta::try_seconds(seconds)?)
    })
}

/// The time between two tries: the backoff until the next is due, and the wait for a worker.
fn pause(from: DateTime<Utc>, to: DateTime<Utc>, due: Option<DateTime<Utc>>) -> [Option<Span>; 2] {
    let due = due.unwrap_or(from).clamp(from, to.max(from));
    let part = |phase, from, to, says| (to > from).then(|| stretch(phase, from, to, says));
    [
        part(Phase::Backoff, from, due, "backoff before the next try"),
        part(Phase::Queued, due, to, "waits for a worker"),
    ]
}

/// How a try ended, when, and in words.
fn ended(time: Time, activity: &Activity, attempt: &Attempt) -> (Phase, DateTime<Utc>, String) {
    let lease = attempt.lease_expires_at.filter(|lease| *lease <= time.now);
    let to = attempt.closed_at.or(lease).unwrap_or(time.until);
    let (phase, says) = match (&attempt.status, attempt.closed_at) {
        (Some(AttemptStatus::Expired | AttemptStatus::Failed), _)
            if let Some(kind) = timeout_of(activity, attempt) =>
        {
            let says = format!("timed out ({})", kind.replace('_', " "));
            return (Phase::Failed, to, says);
        }
        // Told by a row alone: no event tells of a lease that ran out.
        (Some(AttemptStatus::Expired), _) => (Phase::Lost, "its lease ran out"),
        (Some(AttemptStatus::Failed), _) => (Phase::Failed, "failed"),
        (Some(AttemptStatus::Cancelled), _) => (Phase::Cancelled, "cancelled"),
        (Some(AttemptStatus::Completed), _) | (_, Some(_)) => (Phase::Done, "completed"),
        (_, None) if lease.is_some() => (Phase::Lost, "its lease ran out"),
        (_, None) if time.is_open => (Phase::Open, "a worker has it"),
        (_, None) => (Phase::Cancelled, LEFT),
    };
    (phase, to, says.to_owned())
}

/// Which of its timeouts ended a try: the event that retries it or that fails the activity says.
fn timeout_of<'a>(activity: &'a Activity, attempt: &Attempt) -> Option<&'a str> {
    let retried = activity
        .retry
        .as_ref()
        .filter(|retry| retry.retry_after_attempt_id.as_deref() == Some(&attempt.id))
        .and_then(|retry| retry.timeout_kind.as_deref());
    let is_last = activity
        .attempts
        .last()
        .is_some_and(|last| last.id == attempt.id);
    let ended = activity.ended.as_ref().filter(|_| is_last);
    retried.or_else(|| ended?.timeout_kind.as_deref())
}

/// Its status, or that of its row where no event tells how it ended.
fn said<'a>(activity: &'a Activity) -> &'a ActivityStatus {
    match &activity.row_status {
        Some(row) if activity.status.as_str() == UNSUPPORTED => row,
        _ => &activity.status,
    }
}

/// An activity of which no try is known.
fn untried(time: Time, activity: &Activity) -> Vec<Span> {
    let Some(from) = activity.created_at.or(activity.started_at) else {
        return Vec::new();
    };
    let end = activity.closed_at.or(activity.last_heartbeat_at);
    let queued = |to| stretch(Phase::Queued, from, to, "scheduled, waits for a worker");
    match (said(activity), activity.started_at) {
        (ActivityStatus::Pending, _) => vec![queued(time.until.max(from))],
        (status, started) => {
            let started = started.unwrap_or(from).max(from);
            let (phase, says) = match status {
                ActivityStatus::Completed => (Phase::Done, status.as_str()),
                ActivityStatus::Cancelled => (Phase::Cancelled, status.as_str()),
                ActivityStatus::Running if time.is_open => (Phase::Open, status.as_str()),
                ActivityStatus::Running => (Phase::Cancelled, LEFT),
                _ => (Phase::Failed, status.as_str()),
            };
            let to = match status {
                ActivityStatus::Running => time.until,
                _ => end.unwrap_or(started),
            };
            let mut spans = Vec::new();
            if started > from {
                spans.push(queued(started));
            }
            spans.push(stretch(phase, started, to.max(started), says));
            spans
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::durable::{
        projection::{
            activities::Ended,
            example::{at, told},
            retries::Scheduled,
        },
        store::snapshot::RunSnapshot,
        stored::RunRow,
    };

    /// An hour into the test, in a run that began with it.
    fn time(closed: Option<i64>) -> Time {
        Time {
            now: at(3_600),
            is_open: closed.is_none(),
            from: at(0),
            until: at(closed.unwrap_or(3_600)),
        }
    }

    fn attempt(number: i64, status: &str, started: i64, closed: Option<i64>) -> Attempt {
        Attempt {
            id: format!("t{number}"),
            attempt_number: Some(number),
            status: Some(status.into()),
            task_id: None,
            lease_owner: None,
            lease_expires_at: None,
            started_at: Some(at(started)),
            last_heartbeat_at: None,
            last_heartbeat_progress: None,
            closed_at: closed.map(at),
            can_continue: false,
            cancel_requested: false,
            stop_reason: None,
            leased_until: None,
        }
    }

    fn activity(status: &str, attempts: Vec<Attempt>) -> Activity<'static> {
        Activity {
            status: status.into(),
            attempt_count: attempts
                .last()
                .and_then(|last| last.attempt_number)
                .unwrap_or(0),
            attempts,
            retry_policy: Some(json!({"max_attempts": 3, "backoff_seconds": [10]}).into()),
            created_at: Some(at(0)),
            ..Activity::example()
        }
    }

    #[test]
    fn an_end_that_no_event_tells_is_drawn_as_the_row_says() {
        for (row, want) in [
            ("completed", "done 0-9 completed"),
            ("cancelled", "cancelled 0-9 cancelled"),
            ("failed", "failed 0-9 failed"),
        ] {
            let activity = Activity {
                row_status: Some(row.into()),
                closed_at: Some(at(9)),
                ..activity(UNSUPPORTED, Vec::new())
            };
            assert_eq!(written(&tries(time(None), &activity)), [want]);
        }
    }

    /// `failed#1 5-15 failed`.
    fn written(spans: &[Span]) -> Vec<String> {
        spans
            .iter()
            .map(|span| {
                let number = span.attempt.map_or_else(String::new, |n| format!("#{n}"));
                let second = |of: DateTime<Utc>| (of - at(0)).num_seconds();
                let (from, to) = (second(span.from), second(span.to));
                format!("{}{number} {from}-{to} {}", span.phase.name(), span.says)
            })
            .collect()
    }

    #[test]
    fn each_try_is_drawn_as_it_ended_and_each_pause_as_what_it_was() {
        let leased = |attempt: Attempt, until| Attempt {
            lease_expires_at: Some(at(until)),
            ..attempt
        };
        let timed_out = Activity {
            ended: Some(Ended {
                timeout_kind: Some("start_to_close".into()),
                ..Ended::default()
            }),
            ..activity("failed", vec![attempt(1, "expired", 5, Some(65))])
        };
        for (what, closed, activity, want) in [
            (
                "a worker came late after the backoff",
                None,
                activity(
                    "completed",
                    vec![
                        attempt(1, "failed", 5, Some(15)),
                        attempt(2, "completed", 60, Some(70)),
                    ],
                ),
                vec![
                    "queued 0-5 waits for a worker",
                    "failed#1 5-15 failed",
                    "backoff 15-25 backoff before the next try",
                    "queued 25-60 waits for a worker",
                    "done#2 60-70 completed",
                ],
            ),
            (
                "a lost lease makes nobody wait",
                None,
                activity(
                    "running",
                    vec![
                        leased(attempt(1, "running", 5, None), 300),
                        leased(attempt(2, "running", 400, None), 4_000),
                    ],
                ),
                vec![
                    "queued 0-5 waits for a worker",
                    "lost#1 5-300 its lease ran out",
                    "queued 300-400 waits for a worker",
                    "open#2 400-3600 a worker has it",
                ],
            ),
            (
                "a timeout is no lost lease",
                None,
                timed_out,
                vec![
                    "queued 0-5 waits for a worker",
                    "failed#1 5-65 timed out (start to close)",
                ],
            ),
            (
                "the run closed over it",
                Some(100),
                activity("running", vec![attempt(1, "running", 5, None)]),
                vec![
                    "queued 0-5 waits for a worker",
                    "cancelled#1 5-100 still open when the run closed",
                ],
            ),
        ] {
            assert_eq!(written(&tries(time(closed), &activity)), want, "{what}");
        }
    }

    #[test]
    fn a_try_whose_task_is_gone_is_neither_awaited_nor_drawn_ahead() {
        for (what, due, want) in [
            (
                "it was due",
                3_000,
                [
                    "queued 0-5 waits for a worker",
                    "failed#1 5-15 failed",
                    "backoff 15-3000 backoff before the next try",
                    "gone 3000-3600 waits, but its task is gone: no worker can take it",
                ],
            ),
            (
                "it would be due later",
                5_000,
                [
                    "queued 0-5 waits for a worker",
                    "failed#1 5-15 failed",
                    "backoff 15-3600 backoff before the next try",
                    "gone 3600-3600 waits, but its task is gone: no worker can take it",
                ],
            ),
        ] {
            let activity = Activity {
                retry: Some(Scheduled {
                    retry_after_attempt: Some(1),
                    retry_available_at: Some(at(due)),
                    ..Scheduled::default()
                }),
                ..activity("pending", vec![attempt(1, "failed", 5, Some(15))])
            };
            assert_eq!(written(&abandoned(time(None), &activity)), want, "{what}");
        }
    }

    fn drawn(activity: &Activity<'_>) -> Unit {
        let snapshot = RunSnapshot {
            run: RunRow {
                status: "waiting".into(),
                ..RunRow::default()
            },
            ..RunSnapshot::default()
        };
        told(&snapshot, |cx| {
            let p = Projected::of(cx);
            of_activity(&p, time(None), &Gone::of(&p), activity)
        })
    }

    #[test]
    fn the_next_try_comes_and_those_after_it_only_if_it_fails() {
        let unit = drawn(&Activity {
            retry: Some(Scheduled {
                retry_after_attempt: Some(1),
                retry_after_attempt_id: Some("t1".into()),
                retry_available_at: Some(at(3_700)),
                ..Scheduled::default()
            }),
            ..activity("pending", vec![attempt(1, "failed", 5, Some(15))])
        });
        assert_eq!(
            written(&unit.spans),
            [
                "queued 0-5 waits for a worker",
                "failed#1 5-15 failed",
                "backoff 15-3700 backoff before the next try",
                "ahead#2 3700-3700 ahead, not before then",
                "ahead#3 3710-3710 ahead, not before then and only if the try before fails",
            ]
        );
        assert!(unit.facts.iter().all(|fact| fact.name != "No further try"));

        let used_up = drawn(&activity("failed", vec![attempt(3, "failed", 5, Some(15))]));
        assert!(
            used_up
                .facts
                .iter()
                .any(|fact| fact.name == "No further try")
        );
    }

    #[test]
    fn the_deadline_that_comes_first_is_drawn() {
        let mut running = activity("running", vec![attempt(1, "running", 5, None)]);
        running.deadlines.close = Some(at(4_000));
        running.deadlines.heartbeat = Some(at(3_650));
        let last = |unit: &Unit| written(&unit.spans).pop();
        assert_eq!(
            last(&drawn(&running)).as_deref(),
            Some("ahead 3650-3650 the next heartbeat is due")
        );
        running.deadlines.heartbeat = Some(at(3_500));
        assert_eq!(
            last(&drawn(&running)).as_deref(),
            Some("due 3500-3500 the next heartbeat is due, which has passed")
        );
    }
}
