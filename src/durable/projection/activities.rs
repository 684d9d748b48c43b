//! The activities of a run: what typed history says of each, folded over its events. A row
//! speaks only for an activity history knows nothing of, and is marked as such.

use std::{borrow::Cow, collections::HashMap};

use chrono::{DateTime, Utc};
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::{
    attempts::{self, Attempt, Current, later},
    authority,
    context::{Context, millis, ts},
    keyed::Keyed,
    parallel::ParallelGroup,
    policies::{Policies, RetryPolicy},
    progress::Progress,
    retries::Scheduled,
};
use crate::{
    db::Json,
    durable::{
        arrange::arrange,
        payload::{self, Payload},
        stored::{
            ActivityStatus, EventType, ExecutionRow, HistoryEvent,
            loose::Verbatim,
            payloads::{
                activity::{ActivityEvent, ActivityPart},
                parallel::Grouped as _,
            },
        },
    },
};

/// The status of what only a row knows to have ended.
pub const UNSUPPORTED: &str = "unsupported";
/// `execution_mode` of an activity that runs inside its workflow's worker.
const LOCAL: &str = "local";

/// One activity, with the engine's JSON keys and a few facts beside them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Activity<'a> {
    pub id: String,
    pub idempotency_key: String,
    pub sequence: Option<i64>,
    pub r#type: Option<String>,
    pub class: Option<String>,
    pub execution_mode: Option<String>,
    pub local_activity: bool,
    pub history_authority: &'static str,
    pub diagnostic_only: bool,
    pub history_event_types: Vec<EventType>,
    pub history_unsupported_reason: Option<&'static str>,
    /// Only when there is no typed history.
    pub row_status: Option<ActivityStatus>,
    #[serde(flatten)]
    pub group: ParallelGroup,
    pub attempt_id: Option<String>,
    pub status: ActivityStatus,
    pub attempt_count: i64,
    /// One value for all activities that have the same.
    pub retry_policy: Option<RetryPolicy>,
    pub connection: Option<String>,
    pub queue: Option<String>,
    #[serde(serialize_with = "ts")]
    pub last_heartbeat_at: Option<DateTime<Utc>>,
    pub last_heartbeat_progress: Option<Progress>,
    #[serde(serialize_with = "ts")]
    pub created_at: Option<DateTime<Utc>>,
    #[serde(serialize_with = "ts")]
    pub started_at: Option<DateTime<Utc>>,
    #[serde(serialize_with = "ts")]
    pub closed_at: Option<DateTime<Utc>>,
    #[serde(serialize_with = "known_or_list")]
    pub arguments: Payload,
    #[serde(serialize_with = "known_or_null")]
    pub result: Payload,
    pub attempts: Vec<Attempt>,

    /// What an export carries beyond the detail.
    #[serde(skip)]
    pub stored: Stored<'a>,
    /// The latest retry the engine scheduled.
    #[serde(skip)]
    pub retry: Option<Scheduled>,
    /// How it ended, when it failed.
    #[serde(skip)]
    pub ended: Option<Ended>,
    /// As the row holds them; a restored row has none.
    #[serde(skip)]
    pub deadlines: Deadlines,
}

/// An activity's payloads as they are stored, still encoded, and its end as it was told.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stored<'a> {
    pub payload_codec: Option<String>,
    pub arguments: Encoded<'a>,
    pub result: Encoded<'a>,
    /// Also of an activity that has gone on since.
    pub closed_at: Option<DateTime<Utc>>,
}

/// What the event that failed an activity for good says of why.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ended {
    pub non_retryable: bool,
    pub timeout_kind: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Deadlines {
    /// By when the pending try must start.
    pub schedule: Option<DateTime<Utc>>,
    /// By when the running try must end.
    pub close: Option<DateTime<Utc>>,
    /// By when the activity must end, whatever the number of tries.
    pub schedule_to_close: Option<DateTime<Utc>>,
    pub heartbeat: Option<DateTime<Utc>>,
}

impl Activity<'_> {
    /// Pending or running: something is still to come of it.
    pub fn is_open(&self) -> bool {
        matches!(
            self.status,
            ActivityStatus::Pending | ActivityStatus::Running
        )
    }

    /// Its type, else its class.
    pub fn name(&self) -> Option<&str> {
        self.r#type.as_deref().or(self.class.as_deref())
    }

    /// Up to when something is known of it.
    pub fn last_seen_at(&self) -> Option<DateTime<Utc>> {
        self.closed_at
            .or(self.last_heartbeat_at)
            .or(self.started_at)
            .or(self.created_at)
    }
}

/// All activities of the run, by sequence.
pub fn activities(cx: Context<'_>) -> Vec<Activity<'_>> {
    let snapshot = cx.snapshot;
    let rows: HashMap<&str, &ExecutionRow> = snapshot
        .executions
        .iter()
        .map(|row| (row.id.as_str(), row))
        .collect();
    let mut tries = attempts::Collected::with_capacity(rows.len());
    let mut states: Keyed<'_, State<'_>> = Keyed::with_capacity(rows.len());

    for event in &snapshot.events {
        let Some(implied) = implied_status(&event.event_type) else {
            continue;
        };
        let payload: ActivityEvent<'_> = event.as_payload();
        tries.record(event, &payload);
        if let Some(id) = activity_id(&payload) {
            states
                .entry(id, State::typed)
                .overlay(event, &implied, payload);
        }
    }
    for row in &snapshot.executions {
        states.entry(Cow::Borrowed(&row.id), |_| State::of_row(row));
    }
    for row in &snapshot.attempts {
        if rows.contains_key(row.activity_execution_id.as_str()) {
            tries.fill(row);
        }
    }

    let run_codec = snapshot.run.payload_codec.as_deref();
    let mut policies = Policies::default();
    let mut activities: Vec<Activity<'_>> = states
        .into_values()
        .map(|state| {
            let row = rows.get(&*state.id).copied();
            state.present(row, &mut tries, &mut policies, run_codec)
        })
        .collect();
    arrange(&mut activities, place, |activity| &activity.id);
    activities
}

/// The status an event stands for; none when it is no activity event.
fn implied_status(event: &EventType) -> Option<ActivityStatus> {
    Some(match event {
        EventType::ActivityScheduled | EventType::ActivityRetryScheduled => ActivityStatus::Pending,
        EventType::ActivityStarted | EventType::ActivityHeartbeatRecorded => {
            ActivityStatus::Running
        }
        EventType::ActivityCompleted => ActivityStatus::Completed,
        EventType::ActivityFailed | EventType::ActivityTimedOut => ActivityStatus::Failed,
        EventType::ActivityCancelled => ActivityStatus::Cancelled,
        _ => return None,
    })
}

fn activity_id<'a>(payload: &ActivityEvent<'a>) -> Option<Cow<'a, str>> {
    let of_part = payload.activity.as_ref();
    of_part
        .and_then(|activity| activity.id.0.clone())
        .or_else(|| payload.activity_execution_id.0.clone())
}

/// By sequence, then creation, then id; what is missing comes last.
pub fn order<'o>(activity: &'o Activity<'_>) -> (i64, i64, &'o str) {
    let (sequence, created) = place(activity);
    (sequence, created, &activity.id)
}

fn place(activity: &Activity<'_>) -> (i64, i64) {
    (
        activity.sequence.unwrap_or(i64::MAX),
        activity.created_at.map_or(i64::MAX, millis),
    )
}

/// What is known of one activity before it is shown.
#[derive(Debug, Default)]
struct State<'a> {
    id: Cow<'a, str>,
    idempotency_key: Option<Cow<'a, str>>,
    sequence: Option<i64>,
    r#type: Option<Cow<'a, str>>,
    class: Option<Cow<'a, str>>,
    execution_mode: Option<Cow<'a, str>>,
    local: bool,
    authority: &'static str,
    event_types: Vec<EventType>,
    unsupported_reason: Option<&'static str>,
    row_status: Option<ActivityStatus>,
    group: ParallelGroup,
    attempt_id: Option<Cow<'a, str>>,
    status: Option<ActivityStatus>,
    payload_codec: Option<Cow<'a, str>>,
    attempt_count: i64,
    retry_policy: Verbatim<'a>,
    connection: Option<Cow<'a, str>>,
    queue: Option<Cow<'a, str>>,
    last_heartbeat_at: Option<DateTime<Utc>>,
    progress: Option<Progress>,
    created_at: Option<DateTime<Utc>>,
    started_at: Option<DateTime<Utc>>,
    closed_at: Option<DateTime<Utc>>,
    arguments: Encoded<'a>,
    result: Encoded<'a>,
    retry: Option<Scheduled>,
    retry_scheduled_policy: Verbatim<'a>,
    ended: Option<Ended>,
}

impl<'a> State<'a> {
    fn typed(id: Cow<'a, str>) -> Self {
        Self {
            id,
            authority: authority::TYPED,
            ..Self::default()
        }
    }

    fn of_row(row: &'a ExecutionRow) -> Self {
        let open = matches!(
            row.status,
            ActivityStatus::Pending | ActivityStatus::Running
        );
        let mode = row
            .activity_options
            .value()
            .and_then(|options| Some(options.get("execution_mode")?.as_str()?.to_owned()))
            .filter(|mode| !mode.is_empty());
        let column =
            |text: &'a Option<String>| text.as_deref().map_or(Encoded::None, Encoded::Column);
        Self {
            id: Cow::Borrowed(&row.id),
            sequence: Some(row.sequence),
            r#type: Some(Cow::Borrowed(&row.activity_type)),
            class: Some(Cow::Borrowed(&row.activity_class)),
            local: mode.as_deref() == Some(LOCAL),
            execution_mode: mode.map(Cow::Owned),
            authority: if open {
                authority::OPEN_FALLBACK
            } else {
                authority::UNSUPPORTED
            },
            unsupported_reason: (!open).then_some(authority::ACTIVITY_UNSUPPORTED),
            row_status: Some(row.status.clone()),
            group: ParallelGroup::of_row(json(row.parallel_group_path.as_ref())),
            attempt_id: filled(row.current_attempt_id.as_ref()),
            status: Some(row.status.clone()),
            payload_codec: filled(row.payload_codec.as_ref()),
            attempt_count: attempt_count(
                row.status == ActivityStatus::Pending && row.started_at.is_none(),
                Some(row.attempt_count),
            ),
            connection: row.connection.as_deref().map(Cow::Borrowed),
            queue: row.queue.as_deref().map(Cow::Borrowed),
            last_heartbeat_at: row.last_heartbeat_at,
            created_at: row.created_at,
            started_at: row.started_at,
            closed_at: row.closed_at.filter(|_| open),
            arguments: column(&row.arguments),
            result: if open {
                column(&row.result)
            } else {
                Encoded::None
            },
            ..Self::default()
        }
    }

    /// Lays an event over what is known: its `activity` part before its own keys, and no event
    /// erases what an earlier one said.
    fn overlay(
        &mut self,
        event: &'a HistoryEvent,
        implied: &ActivityStatus,
        payload: ActivityEvent<'a>,
    ) {
        let event_type = &event.event_type;
        if !self.event_types.contains(event_type) {
            self.event_types.push(event_type.clone());
        }
        self.group.overlay(payload.group_keys());
        match event_type {
            EventType::ActivityRetryScheduled => {
                self.retry = Some(Scheduled::of(event, &payload));
                self.retry_scheduled_policy = payload.retry_policy;
            }
            EventType::ActivityFailed | EventType::ActivityTimedOut => {
                self.ended = Some(Ended {
                    non_retryable: payload.non_retryable.unwrap_or(false),
                    timeout_kind: payload.timeout_kind.owned(),
                });
            }
            _ => {}
        }
        let task_count = match event_type {
            EventType::ActivityScheduled => None,
            _ => payload
                .task
                .as_ref()
                .and_then(|task| task.attempt_count.strict()),
        };
        let at = |wanted: bool| event.recorded_at.filter(|_| wanted);
        let scheduled = *event_type == EventType::ActivityScheduled;
        let started = *event_type == EventType::ActivityStarted;
        let part = payload
            .activity
            .0
            .map_or_else(ActivityPart::default, |part| *part);
        self.group.overlay(part.group_keys());
        self.local =
            part.execution_mode.as_deref() == Some(LOCAL) || *part.local_activity == Some(true);

        let status = part
            .status
            .0
            .map_or_else(|| implied.clone(), |word| ActivityStatus::from(&*word));
        let started_at = part.started_at.or(at(started));
        self.attempt_count = attempt_count(
            scheduled || (status == ActivityStatus::Pending && started_at.is_none()),
            task_count.or(part.attempt_count.strict()),
        );
        self.status = Some(status);
        later(&mut self.started_at, started_at);
        later(&mut self.created_at, part.created_at.or(at(scheduled)));
        let closed = !matches!(implied, ActivityStatus::Pending | ActivityStatus::Running);
        later(&mut self.closed_at, part.closed_at.or(at(closed)));
        later(
            &mut self.idempotency_key,
            part.idempotency_key.0.or(payload.idempotency_key.0),
        );
        later(
            &mut self.sequence,
            part.sequence.strict().or(payload.sequence.strict()),
        );
        later(&mut self.r#type, part.r#type.0.or(payload.activity_type.0));
        later(&mut self.class, part.class.0.or(payload.activity_class.0));
        later(
            &mut self.execution_mode,
            part.execution_mode.0.or(payload.execution_mode.0),
        );
        later(&mut self.attempt_id, part.attempt_id.0);
        later(&mut self.payload_codec, part.payload_codec.0);
        later(
            &mut self.retry_policy.0,
            part.retry_policy
                .collection()
                .0
                .or(payload.retry_policy.collection().0),
        );
        later(&mut self.connection, part.connection.0);
        later(&mut self.queue, part.queue.0);
        later(&mut self.last_heartbeat_at, *part.last_heartbeat_at);
        later(
            &mut self.progress,
            Progress::of(part.last_heartbeat_progress.as_ref())
                .or_else(|| Progress::of(payload.progress.as_ref())),
        );
        self.arguments.overlay(part.arguments.payload(), event);
        self.result.overlay(payload.result.payload(), event);
        self.result.overlay(part.result.payload(), event);
    }

    fn present(
        self,
        row: Option<&ExecutionRow>,
        tries: &mut attempts::Collected<'_>,
        policies: &mut Policies,
        run_codec: Option<&str>,
    ) -> Activity<'a> {
        let attempts = tries.take(
            &self.id,
            &Current {
                id: self
                    .attempt_id
                    .as_deref()
                    .or_else(|| row?.current_attempt_id.as_deref())
                    .filter(|id| !id.is_empty()),
                own_id: self.attempt_id.as_deref(),
                number: self.attempt_count,
                status: self.status.as_ref(),
                started_at: self.started_at,
                last_heartbeat_at: self.last_heartbeat_at,
                progress: self.progress.as_ref(),
                closed_at: self.closed_at,
            },
            row,
        );
        let last = attempts.last();
        let status = match (self.unsupported_reason, self.status) {
            (Some(_), _) => ActivityStatus::from(UNSUPPORTED),
            (None, Some(status)) => status,
            (None, None) => ActivityStatus::Pending,
        };
        let closed = matches!(
            status,
            ActivityStatus::Completed | ActivityStatus::Failed | ActivityStatus::Cancelled
        );
        let codec = self
            .payload_codec
            .as_deref()
            .or_else(|| {
                row?.payload_codec
                    .as_deref()
                    .filter(|codec| !codec.is_empty())
            })
            .or(run_codec);
        Activity {
            idempotency_key: self
                .idempotency_key
                .unwrap_or_else(|| self.id.clone())
                .into_owned(),
            id: self.id.into_owned(),
            sequence: self.sequence,
            r#type: self.r#type.map(Cow::into_owned),
            class: self.class.map(Cow::into_owned),
            local_activity: self.local || self.execution_mode.as_deref() == Some(LOCAL),
            execution_mode: self.execution_mode.map(Cow::into_owned),
            history_authority: self.authority,
            diagnostic_only: self.authority != authority::TYPED,
            history_event_types: self.event_types,
            history_unsupported_reason: self.unsupported_reason,
            row_status: self.row_status,
            group: self.group,
            attempt_id: self
                .attempt_id
                .map(Cow::into_owned)
                .or_else(|| last.map(|last| last.id.clone())),
            attempt_count: self.attempt_count,
            retry_policy: policies
                .get(self.retry_policy)
                .or_else(|| policies.get(Verbatim::of(&row?.retry_policy))),
            connection: self.connection.map(Cow::into_owned),
            queue: self.queue.map(Cow::into_owned),
            last_heartbeat_at: self.last_heartbeat_at.or_else(|| last?.last_heartbeat_at),
            last_heartbeat_progress: self
                .progress
                .or_else(|| last?.last_heartbeat_progress.clone()),
            created_at: self.created_at,
            started_at: self.started_at.or_else(|| last?.started_at),
            closed_at: self
                .closed_at
                .or_else(|| last?.closed_at)
                .filter(|_| closed),
            arguments: self.arguments.decode(codec),
            result: self.result.decode(codec),
            stored: Stored {
                arguments: self.arguments,
                result: self.result,
                payload_codec: self.payload_codec.map(Cow::into_owned),
                closed_at: self.closed_at,
            },
            status,
            attempts,
            retry: self.retry.map(|retry| Scheduled {
                retry_policy: policies.get(self.retry_scheduled_policy),
                ..retry
            }),
            ended: self.ended,
            deadlines: row.map_or_else(Deadlines::default, |row| Deadlines {
                schedule: row.schedule_deadline_at,
                close: row.close_deadline_at,
                schedule_to_close: row.schedule_to_close_deadline_at,
                heartbeat: row.heartbeat_deadline_at,
            }),
        }
    }
}

/// A task carries a count of one before its activity was ever tried.
fn attempt_count(untried: bool, count: Option<i64>) -> i64 {
    match count.unwrap_or(0) {
        ..=1 if untried => 0,
        count => count.max(1),
    }
}

/// A payload not decoded yet: of what many events repeat, only the last word is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Encoded<'a> {
    #[default]
    None,
    Column(&'a str),
    /// As an event wrote it, and the id of that event.
    Key(Verbatim<'a>, &'a str),
}

impl<'a> Encoded<'a> {
    fn overlay(&mut self, later: Verbatim<'a>, event: &'a HistoryEvent) {
        if later.0.is_some() {
            *self = Self::Key(later, &event.id);
        }
    }

    /// The event that wrote it; none when a row did.
    pub fn event_id(self) -> Option<&'a str> {
        match self {
            Self::Key(_, id) => Some(id),
            Self::None | Self::Column(_) => None,
        }
    }

    /// As it stands in the row or the event.
    pub fn stored(self) -> Option<Value> {
        match self {
            Self::None => None,
            Self::Column(text) => payload::stored(Some(text)),
            Self::Key(written, _) => written.value().map(payload::opened),
        }
    }

    fn decode(self, codec: Option<&str>) -> Payload {
        match self {
            Self::None => Payload::None,
            Self::Column(text) => payload::decode(codec, Some(text)),
            Self::Key(written, _) => written
                .value()
                .map_or(Payload::None, |value| payload::decode_value(codec, &value)),
        }
    }
}

fn filled(text: Option<&String>) -> Option<Cow<'_, str>> {
    text.filter(|text| !text.is_empty())
        .map(|text| Cow::Borrowed(text.as_str()))
}

fn json(stored: Option<&Json>) -> Option<&Value> {
    match stored {
        Some(Json::Value(value)) if !value.is_null() => Some(value),
        _ => None,
    }
}

/// Arguments that cannot be read count as none, in the engine's JSON.
fn known_or_list<S: Serializer>(payload: &Payload, serializer: S) -> Result<S::Ok, S::Error> {
    match payload {
        Payload::Value(value) | Payload::Reference(value) | Payload::Hidden(value) => {
            value.serialize(serializer)
        }
        Payload::None | Payload::Raw { .. } => serializer.collect_seq::<[(); 0]>([]),
    }
}

pub(super) fn known_or_null<S: Serializer>(
    payload: &Payload,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match payload {
        Payload::Value(value) | Payload::Reference(value) | Payload::Hidden(value) => {
            value.serialize(serializer)
        }
        Payload::None | Payload::Raw { .. } => serializer.serialize_none(),
    }
}

#[cfg(test)]
impl Activity<'_> {
    /// A pending activity with typed history and nothing else, for tests to vary.
    pub fn example() -> Self {
        State::typed("01m7gs4kt3qech2x6jz44g5hfp".into()).present(
            None,
            &mut attempts::Collected::default(),
            &mut Policies::default(),
            None,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_of_one_means_nothing_before_the_first_try() {
        for (untried, count, want) in [
            (true, None, 0),
            (true, Some(0), 0),
            (true, Some(1), 0),
            (true, Some(2), 2),
            (false, None, 1),
            (false, Some(0), 1),
            (false, Some(-3), 1),
            (false, Some(1), 1),
            (false, Some(4), 4),
        ] {
            assert_eq!(attempt_count(untried, count), want, "{untried} {count:?}");
        }
    }
}
