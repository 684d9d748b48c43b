//! How an activity is retried: the retry the engine scheduled last, and the tries its policy
//! still allows, with the earliest time of each and what will stop them.

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;
use serde_json::Value;

use super::{
    activities::Activity,
    context::{Context, ts},
    policies::RetryPolicy,
};
use crate::durable::stored::{
    ActivityStatus, HistoryEvent, RunRow, payloads::activity::ActivityEvent,
};

/// Most tries listed ahead: a policy may allow a million, or any number.
const LISTED: usize = 10;

/// The latest `ActivityRetryScheduled`, by the engine's names.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Scheduled {
    #[serde(skip)]
    pub event_id: String,
    #[serde(skip)]
    pub event_sequence: i64,
    /// The task that carries the next try.
    pub retry_task_id: Option<String>,
    pub retry_of_task_id: Option<String>,
    pub retry_after_attempt_id: Option<String>,
    pub retry_after_attempt: Option<i64>,
    pub retry_backoff_seconds: Option<i64>,
    #[serde(serialize_with = "ts")]
    pub retry_available_at: Option<DateTime<Utc>>,
    /// None is unlimited.
    pub max_attempts: Option<i64>,
    /// As snapped when the activity was scheduled.
    pub retry_policy: Option<RetryPolicy>,
    pub retry_reason: Option<String>,
    pub timeout_kind: Option<String>,
    pub exception_class: Option<String>,
    pub message: Option<String>,
    #[serde(serialize_with = "ts")]
    pub recorded_at: Option<DateTime<Utc>>,
}

impl Scheduled {
    /// All but the policy, which is read once, from the last event that has it.
    pub(super) fn of(event: &HistoryEvent, payload: &ActivityEvent<'_>) -> Self {
        Self {
            event_id: event.id.clone(),
            event_sequence: event.sequence,
            retry_task_id: payload.retry_task_id.owned(),
            retry_of_task_id: payload.retry_of_task_id.owned(),
            retry_after_attempt_id: payload.retry_after_attempt_id.owned(),
            retry_after_attempt: payload.retry_after_attempt.get(),
            retry_backoff_seconds: payload.retry_backoff_seconds.get(),
            retry_available_at: *payload.retry_available_at,
            max_attempts: payload.max_attempts.get(),
            retry_policy: None,
            retry_reason: payload.retry_reason.owned(),
            timeout_kind: payload.timeout_kind.owned(),
            exception_class: payload.exception_class.owned(),
            message: payload.message.owned(),
            recorded_at: event.time(),
        }
    }
}

/// Where an activity stands between its tries.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RetryState {
    pub scheduled: Option<Scheduled>,
    /// Between two tries: the scheduled one has not started.
    pub waiting: bool,
    pub attempts_made: i64,
    /// None is unlimited.
    pub max_attempts: Option<i64>,
    /// Tries not yet started, the first ones; a last entry with a `reason_cut` is the first try
    /// that will not be.
    pub ahead: Vec<TryAhead>,
}

/// A try not yet started.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TryAhead {
    pub attempt: i64,
    /// Not before this: every try before it is taken to fail at once.
    #[serde(serialize_with = "ts")]
    pub at: Option<DateTime<Utc>>,
    /// Between the end of the try before and this one.
    pub backoff_seconds: i64,
    /// Why it will not be; none when it may.
    pub reason_cut: Option<Cut>,
}

/// What ends the tries of an activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cut {
    MaxAttempts,
    NonRetryable,
    /// The activity as a whole must be over by then.
    ScheduleToClose,
    RunDeadline,
    ExecutionDeadline,
    RunClosed,
    /// It failed for good and no event says why.
    Untold,
}

impl RetryState {
    /// The tries that may come.
    pub fn coming(&self) -> impl Iterator<Item = &TryAhead> {
        self.ahead.iter().filter(|next| next.reason_cut.is_none())
    }

    /// What ends the tries; none when they end nowhere in what is listed.
    pub fn cut(&self) -> Option<Cut> {
        self.ahead.last().and_then(|next| next.reason_cut)
    }
}

/// None when the activity was never retried and has no policy to tell of.
pub fn retry_state(cx: Context<'_>, activity: &Activity) -> Option<RetryState> {
    if activity.retry.is_none() && activity.retry_policy.is_none() {
        return None;
    }
    let policy = Policy::of(activity);
    Some(RetryState {
        scheduled: activity.retry.clone(),
        waiting: waits_for_retry(activity),
        attempts_made: activity.attempt_count,
        max_attempts: policy.max_attempts,
        ahead: ahead(RunEnd::of(&cx.snapshot.run), cx.now, activity, &policy),
    })
}

/// What of the run ends all its activities.
#[derive(Clone, Copy, Debug, Default)]
struct RunEnd {
    closed: bool,
    run_deadline_at: Option<DateTime<Utc>>,
    execution_deadline_at: Option<DateTime<Utc>>,
}

impl RunEnd {
    fn of(run: &RunRow) -> Self {
        Self {
            closed: run.status.is_terminal(),
            run_deadline_at: run.run_deadline_at,
            execution_deadline_at: run.execution_deadline_at,
        }
    }
}

/// The part of a policy that decides about further tries.
#[derive(Clone, Debug, PartialEq)]
struct Policy {
    /// None is unlimited.
    max_attempts: Option<i64>,
    backoff_seconds: Vec<i64>,
}

impl Policy {
    fn of(activity: &Activity) -> Self {
        let policy = activity
            .retry_policy
            .as_ref()
            .or_else(|| activity.retry.as_ref()?.retry_policy.as_ref());
        let key = |key: &str| policy.and_then(|policy| policy.get(key));
        Self {
            max_attempts: match key("max_attempts") {
                Some(Value::Null) => None,
                Some(Value::Number(max)) => Some(max.as_i64().unwrap_or(i64::MAX).max(1)),
                // The policy does not say: a retry was allowed up to what its event names, and
                // without any word on it there is one try.
                _ => match &activity.retry {
                    Some(retry) => retry.max_attempts.map(|max| max.max(1)),
                    None => Some(1),
                },
            },
            backoff_seconds: match key("backoff_seconds") {
                Some(Value::Array(list)) => list.iter().filter_map(seconds).collect(),
                _ => Vec::new(),
            },
        }
    }

    /// The n-th entry follows the n-th try, the last one every further try.
    fn backoff_after(&self, attempt: i64) -> i64 {
        let at = usize::try_from(attempt.saturating_sub(1)).unwrap_or(0);
        self.backoff_seconds
            .get(at)
            .or(self.backoff_seconds.last())
            .copied()
            .unwrap_or(0)
    }
}

/// A number or a numeric string, from zero up; anything else is skipped.
fn seconds(entry: &Value) -> Option<i64> {
    match entry {
        Value::Number(number) => number.as_i64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
    .map(|seconds| seconds.max(0))
}

/// How long the policy makes the next try wait after this one.
pub fn backoff_after(activity: &Activity, attempt: i64) -> i64 {
    Policy::of(activity).backoff_after(attempt)
}

fn waits_for_retry(activity: &Activity) -> bool {
    activity.status == ActivityStatus::Pending && activity.retry.is_some()
}

fn ahead(run: RunEnd, now: DateTime<Utc>, activity: &Activity, policy: &Policy) -> Vec<TryAhead> {
    let made = activity.attempt_count;
    let not_to_be = |cut| {
        vec![TryAhead {
            attempt: made.saturating_add(1),
            at: None,
            backoff_seconds: policy.backoff_after(made),
            reason_cut: Some(cut),
        }]
    };
    match activity.status {
        ActivityStatus::Pending | ActivityStatus::Running if run.closed => {
            not_to_be(Cut::RunClosed)
        }
        ActivityStatus::Pending | ActivityStatus::Running => upcoming(run, now, activity, policy),
        ActivityStatus::Failed => not_to_be(why_failed(activity, policy)),
        ActivityStatus::Completed | ActivityStatus::Cancelled | ActivityStatus::Other(_) => {
            Vec::new()
        }
    }
}

fn why_failed(activity: &Activity, policy: &Policy) -> Cut {
    let ended = activity.ended.as_ref();
    match (
        ended.is_some_and(|ended| ended.non_retryable),
        ended.and_then(|ended| ended.timeout_kind.as_deref()),
    ) {
        (true, _) => Cut::NonRetryable,
        (false, Some("schedule_to_close")) => Cut::ScheduleToClose,
        _ if policy
            .max_attempts
            .is_some_and(|max| activity.attempt_count >= max) =>
        {
            Cut::MaxAttempts
        }
        _ => Cut::Untold,
    }
}

fn upcoming(
    run: RunEnd,
    now: DateTime<Utc>,
    activity: &Activity,
    policy: &Policy,
) -> Vec<TryAhead> {
    let mut next = first_ahead(now, activity, policy);
    let mut list = Vec::new();
    loop {
        next.reason_cut = if policy.max_attempts.is_some_and(|max| next.attempt > max) {
            next.at = None;
            Some(Cut::MaxAttempts)
        } else {
            next.at
                .and_then(|at| deadline_before(run, activity, at.max(now)))
        };
        let following = TryAhead {
            attempt: next.attempt.saturating_add(1),
            backoff_seconds: policy.backoff_after(next.attempt),
            at: next
                .at
                .and_then(|at| after(at.max(now), policy.backoff_after(next.attempt))),
            reason_cut: None,
        };
        let cut = next.reason_cut.is_some();
        list.push(next);
        if cut || list.len() >= LISTED {
            return list;
        }
        next = following;
    }
}

/// The next try to start: the scheduled one, the very first, or the one after the running one.
fn first_ahead(now: DateTime<Utc>, activity: &Activity, policy: &Policy) -> TryAhead {
    let made = activity.attempt_count;
    let (made, backoff_seconds, at) = match (&activity.status, &activity.retry) {
        (ActivityStatus::Pending, Some(retry)) => {
            let made = retry.retry_after_attempt.unwrap_or(made);
            (
                made,
                retry
                    .retry_backoff_seconds
                    .unwrap_or_else(|| policy.backoff_after(made)),
                retry.retry_available_at,
            )
        }
        (ActivityStatus::Pending, None) if made == 0 => (0, 0, activity.created_at),
        // Given back without a retry event: when it may start is not told.
        (ActivityStatus::Pending, None) => (made, policy.backoff_after(made), None),
        _ => {
            let backoff = policy.backoff_after(made);
            (made, backoff, after(now, backoff))
        }
    };
    TryAhead {
        attempt: made.saturating_add(1),
        at,
        backoff_seconds,
        reason_cut: None,
    }
}

/// The deadline that ends everything before a try at this time.
fn deadline_before(run: RunEnd, activity: &Activity, at: DateTime<Utc>) -> Option<Cut> {
    [
        (activity.deadlines.schedule_to_close, Cut::ScheduleToClose),
        (run.run_deadline_at, Cut::RunDeadline),
        (run.execution_deadline_at, Cut::ExecutionDeadline),
    ]
    .into_iter()
    .filter_map(|(deadline, cut)| Some((deadline?, cut)))
    .filter(|(deadline, _)| at >= *deadline)
    .min_by_key(|(deadline, _)| *deadline)
    .map(|(_, cut)| cut)
}

fn after(at: DateTime<Utc>, seconds: i64) -> Option<DateTime<Utc>> {
    at.checked_add_signed(TimeDelta::try_seconds(seconds)?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::durable::projection::activities::{Deadlines, Ended};

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_800_000_000 + seconds, 0).expect("a valid time")
    }

    /// Three tries, five seconds and then thirty apart.
    fn activity(status: &str, attempt_count: i64) -> Activity<'static> {
        Activity {
            status: status.into(),
            attempt_count,
            retry_policy: Some(json!({"max_attempts": 3, "backoff_seconds": [5, 30]}).into()),
            created_at: Some(at(-60)),
            ..Activity::example()
        }
    }

    fn retrying(after: i64, available: i64, backoff: i64) -> Activity<'static> {
        Activity {
            retry: Some(Scheduled {
                retry_after_attempt: Some(after),
                retry_available_at: Some(at(available)),
                retry_backoff_seconds: Some(backoff),
                ..Scheduled::default()
            }),
            ..activity("pending", after)
        }
    }

    /// Attempt, seconds from now, cut.
    fn listed(run: RunEnd, activity: &Activity) -> Vec<(i64, Option<i64>, Option<Cut>)> {
        ahead(run, at(0), activity, &Policy::of(activity))
            .into_iter()
            .map(|next| {
                let seconds = next.at.map(|at| at.timestamp() - 1_800_000_000);
                (next.attempt, seconds, next.reason_cut)
            })
            .collect()
    }

    #[test]
    fn the_tries_ahead_follow_the_state() {
        let end = |attempt| (attempt, None, Some(Cut::MaxAttempts));
        for (name, activity, want) in [
            (
                "never tried",
                activity("pending", 0),
                vec![
                    (1, Some(-60), None),
                    (2, Some(5), None),
                    (3, Some(35), None),
                    end(4),
                ],
            ),
            (
                "running its first try",
                activity("running", 1),
                vec![(2, Some(5), None), (3, Some(35), None), end(4)],
            ),
            (
                "waiting for its second",
                retrying(1, 4, 5),
                vec![(2, Some(4), None), (3, Some(34), None), end(4)],
            ),
            (
                "waiting for its second, long due",
                retrying(1, -9, 5),
                vec![(2, Some(-9), None), (3, Some(30), None), end(4)],
            ),
            ("running its last", activity("running", 3), vec![end(4)]),
            ("failed its last", activity("failed", 3), vec![end(4)]),
            ("completed", activity("completed", 2), vec![]),
            ("cancelled", activity("cancelled", 1), vec![]),
            ("ended by its row alone", activity("unsupported", 1), vec![]),
        ] {
            assert_eq!(listed(RunEnd::default(), &activity), want, "{name}");
        }
    }

    #[test]
    fn what_ends_the_tries_is_named() {
        let deadline = |seconds| Deadlines {
            schedule_to_close: Some(at(seconds)),
            ..Deadlines::default()
        };
        let failed = |non_retryable, kind: Option<&str>| Activity {
            ended: Some(Ended {
                non_retryable,
                timeout_kind: kind.map(str::to_owned),
            }),
            ..activity("failed", 1)
        };
        let run = |run_deadline: Option<i64>, execution_deadline: Option<i64>| RunEnd {
            run_deadline_at: run_deadline.map(at),
            execution_deadline_at: execution_deadline.map(at),
            closed: false,
        };
        let closed = RunEnd {
            closed: true,
            ..RunEnd::default()
        };
        for (name, run, activity, want) in [
            (
                "schedule-to-close before the third try",
                run(None, None),
                Activity {
                    deadlines: deadline(20),
                    ..retrying(1, 4, 5)
                },
                (3, Some(Cut::ScheduleToClose)),
            ),
            (
                "schedule-to-close passed while a due try waits",
                run(None, None),
                Activity {
                    deadlines: deadline(-1),
                    ..retrying(1, -9, 5)
                },
                (2, Some(Cut::ScheduleToClose)),
            ),
            (
                "run deadline first",
                run(Some(10), Some(20)),
                retrying(1, 4, 5),
                (3, Some(Cut::RunDeadline)),
            ),
            (
                "execution deadline first",
                run(Some(20), Some(10)),
                retrying(1, 4, 5),
                (3, Some(Cut::ExecutionDeadline)),
            ),
            (
                "run closed",
                closed,
                activity("running", 1),
                (2, Some(Cut::RunClosed)),
            ),
            (
                "not to be retried",
                run(None, None),
                failed(true, None),
                (2, Some(Cut::NonRetryable)),
            ),
            (
                "timed out as a whole",
                run(None, None),
                failed(false, Some("schedule_to_close")),
                (2, Some(Cut::ScheduleToClose)),
            ),
            (
                "failed early, no event says why",
                run(None, None),
                activity("failed", 1),
                (2, Some(Cut::Untold)),
            ),
        ] {
            let last = listed(run, &activity).pop();
            assert_eq!(
                last.map(|(attempt, _, cut)| (attempt, cut)),
                Some(want),
                "{name}"
            );
        }
    }

    #[test]
    fn the_policy_is_read_as_the_engine_reads_it() {
        let retried = |max| Scheduled {
            max_attempts: max,
            ..Scheduled::default()
        };
        for (policy, retry, max, backoffs) in [
            (
                json!({"max_attempts": 4, "backoff_seconds": [1, "2", -5, "x", 9]}),
                None,
                Some(4),
                [1, 2, 0, 9, 9],
            ),
            (json!({"max_attempts": 0}), None, Some(1), [0; 5]),
            (
                json!({"max_attempts": null, "backoff_seconds": []}),
                None,
                None,
                [0; 5],
            ),
            (json!({"backoff_seconds": [7]}), None, Some(1), [7; 5]),
            (json!({}), Some(retried(Some(6))), Some(6), [0; 5]),
            (json!([]), Some(retried(None)), None, [0; 5]),
        ] {
            let activity = Activity {
                retry_policy: Some(policy.clone().into()),
                retry,
                ..activity("running", 1)
            };
            let read = Policy::of(&activity);
            assert_eq!(read.max_attempts, max, "{policy}");
            let got: Vec<i64> = (1..=5).map(|n| read.backoff_after(n)).collect();
            assert_eq!(got, backoffs, "{policy}");
        }
    }

    #[test]
    fn without_an_end_the_list_still_ends() {
        let activity = Activity {
            retry_policy: Some(json!({"max_attempts": null, "backoff_seconds": [i64::MAX]}).into()),
            ..activity("running", i64::MAX - 1)
        };
        let list = ahead(RunEnd::default(), at(0), &activity, &Policy::of(&activity));
        assert_eq!(list.len(), LISTED);
        assert!(list.iter().all(|next| next.reason_cut.is_none()));
    }
}
