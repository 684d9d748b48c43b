//! The tries of an activity: what history says of each, and whether its worker may go on.
//!
//! Attempt rows only fill what no event told. No event tells of a lease that ran out, so a try
//! that lost its lease still reads `running` here; its `stop_reason` tells the truth.

use std::{borrow::Cow, collections::HashMap};

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::{
    context::{millis, ts},
    keyed::Keyed,
    progress::Progress,
};
use crate::durable::stored::{
    ActivityStatus, AttemptRow, AttemptStatus, EventType, ExecutionRow, HistoryEvent,
    payloads::activity::ActivityEvent,
};

/// One try, with the engine's JSON keys.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Attempt {
    pub id: String,
    pub attempt_number: Option<i64>,
    pub status: Option<AttemptStatus>,
    pub task_id: Option<String>,
    pub lease_owner: Option<String>,
    #[serde(serialize_with = "ts")]
    pub lease_expires_at: Option<DateTime<Utc>>,
    #[serde(serialize_with = "ts")]
    pub started_at: Option<DateTime<Utc>>,
    #[serde(serialize_with = "ts")]
    pub last_heartbeat_at: Option<DateTime<Utc>>,
    pub last_heartbeat_progress: Option<Progress>,
    #[serde(serialize_with = "ts")]
    pub closed_at: Option<DateTime<Utc>>,
    /// Its worker may still heartbeat and complete.
    pub can_continue: bool,
    pub cancel_requested: bool,
    pub stop_reason: Option<StopReason>,
    /// Until when its worker held it, as far as that was told; also of a try that ended.
    #[serde(skip)]
    pub leased_until: Option<DateTime<Utc>>,
}

/// Why a worker that still runs a try should stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    AttemptCancelled,
    ActivityCancelled,
    AttemptExpired,
    AttemptClosed,
    ActivityClosed,
    /// The activity went on with another try.
    StaleAttempt,
}

/// What is known of one try before it is judged.
#[derive(Clone, Debug, Default)]
struct State<'a> {
    id: Cow<'a, str>,
    number: Option<i64>,
    status: Option<AttemptStatus>,
    task_id: Option<Cow<'a, str>>,
    lease_owner: Option<Cow<'a, str>>,
    leased_until: Option<DateTime<Utc>>,
    /// An event ended the try: no row may bring its lease back.
    lease_ended: bool,
    started_at: Option<DateTime<Utc>>,
    last_heartbeat_at: Option<DateTime<Utc>>,
    progress: Option<Progress>,
    closed_at: Option<DateTime<Utc>>,
}

impl<'a> State<'a> {
    fn unheard_of(id: Cow<'a, str>) -> Self {
        Self {
            id,
            ..Self::default()
        }
    }
}

/// The tries of all activities of a run, collected event by event.
#[derive(Debug, Default)]
pub(super) struct Collected<'a>(HashMap<Cow<'a, str>, Keyed<'a, State<'a>>>);

impl<'a> Collected<'a> {
    /// With room for so many activities.
    pub fn with_capacity(activities: usize) -> Self {
        Self(HashMap::with_capacity(activities))
    }

    pub fn record(&mut self, event: &'a HistoryEvent, payload: &ActivityEvent<'a>) {
        let Some(status) = status_of(&event.event_type) else {
            return;
        };
        let activity = payload.activity.as_deref();
        let attempt = payload.activity_attempt.as_deref();
        let task = payload.task.as_deref();
        let activity_id = payload.activity_execution_id.0.clone();
        let Some(activity_id) = activity_id
            .or_else(|| activity?.id.0.clone())
            .or_else(|| attempt?.activity_execution_id.0.clone())
        else {
            return;
        };
        let Some(id) = attempt
            .and_then(|attempt| attempt.id.0.clone())
            .or_else(|| payload.activity_attempt_id.0.clone())
            .or_else(|| activity?.attempt_id.0.clone())
        else {
            return;
        };
        let tries = self.0.entry(activity_id).or_default();
        let state = tries.entry(id, State::unheard_of);
        let ends = status != AttemptStatus::Running;
        let starts = event.event_type == EventType::ActivityStarted;
        state.status = Some(status);
        later(
            &mut state.task_id,
            attempt
                .and_then(|attempt| attempt.task_id.0.clone())
                .or_else(|| event.workflow_task_id.as_deref().map(Cow::Borrowed))
                .or_else(|| task?.id.0.clone()),
        );
        later(
            &mut state.number,
            attempt
                .and_then(|attempt| attempt.attempt_number.get())
                .or(payload.attempt_number.get())
                .or(payload.retry_after_attempt.get())
                .or_else(|| activity?.attempt_count.get())
                .or_else(|| task?.attempt_count.get()),
        );
        later(
            &mut state.lease_owner,
            attempt
                .and_then(|attempt| attempt.lease_owner.0.clone())
                .or_else(|| task?.lease_owner.0.clone()),
        );
        later(
            &mut state.started_at,
            attempt
                .and_then(|attempt| *attempt.started_at)
                .or_else(|| *activity?.started_at)
                .or_else(|| event.time().filter(|_| starts)),
        );
        later(
            &mut state.last_heartbeat_at,
            payload
                .heartbeat_at
                .or_else(|| *attempt?.last_heartbeat_at)
                .or_else(|| *activity?.last_heartbeat_at),
        );
        later(
            &mut state.progress,
            Progress::of(payload.progress.as_ref())
                .or_else(|| Progress::of(attempt?.last_heartbeat_progress.as_ref())),
        );
        later(
            &mut state.closed_at,
            attempt
                .and_then(|attempt| *attempt.closed_at)
                .or_else(|| *activity?.closed_at)
                .or_else(|| event.time().filter(|_| ends)),
        );
        let until = payload
            .lease_expires_at
            .or_else(|| *attempt?.lease_expires_at)
            .or_else(|| *task?.lease_expires_at);
        if ends || until.is_some() {
            state.lease_ended = ends;
        }
        later(&mut state.leased_until, until);
    }

    /// A row fills what its try's events left untold; a try without events is the row's.
    pub fn fill(&mut self, row: &'a AttemptRow) {
        let activity_id = Cow::Borrowed(row.activity_execution_id.as_str());
        let tries = self.0.entry(activity_id).or_default();
        let state = tries.entry(Cow::Borrowed(&row.id), |id| State {
            status: Some(row.status.clone()),
            ..State::unheard_of(id)
        });
        let missing = |slot: &mut Option<DateTime<Utc>>, value| *slot = slot.or(value);
        state.number = state.number.or(Some(row.attempt_number));
        state.task_id = state
            .task_id
            .take()
            .or_else(|| row.workflow_task_id.as_deref().map(Cow::Borrowed));
        state.lease_owner = state
            .lease_owner
            .take()
            .or_else(|| row.lease_owner.as_deref().map(Cow::Borrowed));
        missing(&mut state.started_at, row.started_at);
        missing(&mut state.last_heartbeat_at, row.last_heartbeat_at);
        missing(&mut state.closed_at, row.closed_at);
        missing(&mut state.leased_until, row.lease_expires_at);
    }

    /// The tries of one activity in order, the one it names as current among them.
    pub fn take(
        &mut self,
        activity_id: &str,
        current: &Current<'_>,
        row: Option<&ExecutionRow>,
    ) -> Vec<Attempt> {
        let tries = self.0.remove(activity_id).unwrap_or_default();
        let untold = current
            .id
            .filter(|id| current.number > 0 && !tries.contains(id));
        let mut attempts: Vec<Attempt> = tries
            .into_values()
            .map(|state| present(state, row))
            .collect();
        attempts.extend(untold.map(|id| synthetic(id, current, row)));
        attempts.sort_by(|a, b| order(a).cmp(&order(b)));
        attempts
    }
}

/// What an activity says of the try it is at.
pub(super) struct Current<'a> {
    pub id: Option<&'a str>,
    /// The same as far as history names it.
    pub own_id: Option<&'a str>,
    pub number: i64,
    pub status: Option<&'a ActivityStatus>,
    pub started_at: Option<DateTime<Utc>>,
    pub last_heartbeat_at: Option<DateTime<Utc>>,
    pub progress: Option<&'a Progress>,
    pub closed_at: Option<DateTime<Utc>>,
}

/// None for an event that belongs to no try.
fn status_of(event: &EventType) -> Option<AttemptStatus> {
    Some(match event {
        EventType::ActivityStarted | EventType::ActivityHeartbeatRecorded => AttemptStatus::Running,
        EventType::ActivityRetryScheduled | EventType::ActivityFailed => AttemptStatus::Failed,
        EventType::ActivityTimedOut => AttemptStatus::Expired,
        EventType::ActivityCompleted => AttemptStatus::Completed,
        EventType::ActivityCancelled => AttemptStatus::Cancelled,
        _ => return None,
    })
}

fn present(state: State<'_>, row: Option<&ExecutionRow>) -> Attempt {
    let can_continue = can_continue(&state, row);
    let row_status = row.map(|row| &row.status);
    let status = state.status.as_ref();
    Attempt {
        can_continue,
        cancel_requested: status == Some(&AttemptStatus::Cancelled)
            || row_status == Some(&ActivityStatus::Cancelled),
        stop_reason: stop_reason(status, row_status, can_continue),
        id: state.id.into_owned(),
        attempt_number: state.number,
        status: state.status,
        task_id: state.task_id.map(Cow::into_owned),
        lease_owner: state.lease_owner.map(Cow::into_owned),
        lease_expires_at: state.leased_until.filter(|_| !state.lease_ended),
        leased_until: state.leased_until,
        started_at: state.started_at,
        last_heartbeat_at: state.last_heartbeat_at,
        last_heartbeat_progress: state.progress,
        closed_at: state.closed_at,
    }
}

/// The row has the last word on which try is current; without a row the try speaks for itself.
fn can_continue(state: &State<'_>, row: Option<&ExecutionRow>) -> bool {
    let running = state.status == Some(AttemptStatus::Running);
    running
        && row.is_none_or(|row| {
            row.current_attempt_id.as_deref() == Some(&*state.id)
                && state.number == Some(row.attempt_count)
                && row.status == ActivityStatus::Running
        })
}

fn stop_reason(
    attempt: Option<&AttemptStatus>,
    row: Option<&ActivityStatus>,
    can_continue: bool,
) -> Option<StopReason> {
    match (attempt, row) {
        (Some(AttemptStatus::Cancelled), _) => Some(StopReason::AttemptCancelled),
        (_, Some(ActivityStatus::Cancelled)) => Some(StopReason::ActivityCancelled),
        (Some(AttemptStatus::Expired), _) => Some(StopReason::AttemptExpired),
        (Some(AttemptStatus::Completed | AttemptStatus::Failed), _) => {
            Some(StopReason::AttemptClosed)
        }
        (_, Some(ActivityStatus::Completed | ActivityStatus::Failed)) => {
            Some(StopReason::ActivityClosed)
        }
        _ if !can_continue => Some(StopReason::StaleAttempt),
        _ => None,
    }
}

/// The try an activity names although neither an event nor a row tells of it.
fn synthetic(id: &str, current: &Current<'_>, row: Option<&ExecutionRow>) -> Attempt {
    let row_status = row.map(|row| &row.status);
    let status = current.status.or(row_status);
    let running = current.status == Some(&ActivityStatus::Running);
    let can_continue = running
        && row.is_none_or(|row| {
            // A try that only the row names is nobody's word but the row's.
            row.current_attempt_id.as_deref() == current.own_id
                && row.status == ActivityStatus::Running
        });
    Attempt {
        id: id.to_owned(),
        attempt_number: Some(current.number),
        status: status.map(|status| AttemptStatus::from(status.as_str())),
        task_id: None,
        lease_owner: None,
        lease_expires_at: None,
        leased_until: None,
        started_at: current.started_at.or(row.and_then(|row| row.started_at)),
        last_heartbeat_at: current
            .last_heartbeat_at
            .or(row.and_then(|row| row.last_heartbeat_at)),
        last_heartbeat_progress: current.progress.cloned(),
        closed_at: current.closed_at.or(row.and_then(|row| row.closed_at)),
        can_continue,
        cancel_requested: current.status == Some(&ActivityStatus::Cancelled)
            || row_status == Some(&ActivityStatus::Cancelled),
        stop_reason: match (status, row_status) {
            (Some(ActivityStatus::Cancelled), _) | (_, Some(ActivityStatus::Cancelled)) => {
                Some(StopReason::ActivityCancelled)
            }
            (Some(ActivityStatus::Completed | ActivityStatus::Failed), _) => {
                Some(StopReason::AttemptClosed)
            }
            (Some(ActivityStatus::Pending), _) | (_, Some(ActivityStatus::Pending)) => None,
            _ if !can_continue => Some(StopReason::StaleAttempt),
            _ => None,
        },
    }
}

/// By number, then start, then id; what is missing comes last.
fn order(attempt: &Attempt) -> (i64, i64, &str) {
    (
        attempt.attempt_number.unwrap_or(i64::MAX),
        attempt.started_at.map_or(i64::MAX, millis),
        &attempt.id,
    )
}

/// What a later event says replaces; what it leaves out stays.
pub(super) fn later<T>(slot: &mut Option<T>, value: Option<T>) {
    if value.is_some() {
        *slot = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_reason_to_stop_wins() {
        use StopReason as R;
        for (attempt, row, can_continue, want) in [
            (
                "cancelled",
                Some("cancelled"),
                false,
                Some(R::AttemptCancelled),
            ),
            (
                "running",
                Some("cancelled"),
                false,
                Some(R::ActivityCancelled),
            ),
            ("expired", Some("failed"), false, Some(R::AttemptExpired)),
            ("failed", Some("pending"), false, Some(R::AttemptClosed)),
            ("completed", None, false, Some(R::AttemptClosed)),
            ("running", Some("completed"), false, Some(R::ActivityClosed)),
            ("running", Some("failed"), false, Some(R::ActivityClosed)),
            ("running", Some("running"), false, Some(R::StaleAttempt)),
            ("hibernating", None, false, Some(R::StaleAttempt)),
            ("running", Some("running"), true, None),
            ("running", None, true, None),
        ] {
            let got = stop_reason(
                Some(&AttemptStatus::from(attempt)),
                row.map(ActivityStatus::from).as_ref(),
                can_continue,
            );
            assert_eq!(got, want, "{attempt} {row:?} {can_continue}");
        }
    }

    #[test]
    fn an_unheard_of_current_try_is_shown_by_what_the_activity_says() {
        let row = || ExecutionRow {
            current_attempt_id: Some("t".into()),
            status: ActivityStatus::Running,
            ..ExecutionRow::default()
        };
        for (what, status, number, own_id, row, want) in [
            ("running", "running", 2, Some("t"), None, Some((true, None))),
            (
                "done",
                "completed",
                2,
                Some("t"),
                None,
                Some((false, Some(StopReason::AttemptClosed))),
            ),
            (
                "cancelled",
                "cancelled",
                2,
                Some("t"),
                None,
                Some((false, Some(StopReason::ActivityCancelled))),
            ),
            (
                "not begun",
                "pending",
                2,
                Some("t"),
                None,
                Some((false, None)),
            ),
            ("never tried", "running", 0, Some("t"), None, None),
            (
                "named by history and row",
                "running",
                2,
                Some("t"),
                Some(row()),
                Some((true, None)),
            ),
            (
                "named by the row alone",
                "running",
                2,
                None,
                Some(row()),
                Some((false, Some(StopReason::StaleAttempt))),
            ),
        ] {
            let status = ActivityStatus::from(status);
            let current = Current {
                id: Some("t"),
                own_id,
                number,
                status: Some(&status),
                started_at: None,
                last_heartbeat_at: None,
                progress: None,
                closed_at: None,
            };
            let attempts = Collected::default().take("a", &current, row.as_ref());
            let got = attempts
                .first()
                .map(|attempt| (attempt.can_continue, attempt.stop_reason));
            assert_eq!(got, want, "{what}");
        }
    }
}
