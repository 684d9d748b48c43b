//! What went wrong in a run: each failure once, as its typed event tells it, or as its row does
//! where no event names it.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap, HashSet},
};

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::{
    activities::Activity,
    authority,
    context::{Context, millis, ts},
    exception::{self, ExceptionPayload, Resolution},
    trace,
};
use crate::durable::{
    engine_config::EngineConfig,
    stored::{
        EventType, FailureCategory, FailureRecord, HistoryEvent,
        payloads::failure::{FailureEvent, FailureName},
    },
};

/// One failure, with the keys of the engine's failure snapshot.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Failure {
    pub id: String,
    pub source_kind: Option<String>,
    pub source_id: Option<String>,
    pub propagation_kind: Option<String>,
    /// None is unclassified: an import may leave it open.
    pub failure_category: Option<FailureCategory>,
    pub non_retryable: bool,
    pub handled: bool,
    pub history_authority: &'static str,
    pub diagnostic_only: bool,
    pub exception_type: Option<String>,
    pub exception_class: Option<String>,
    #[serde(flatten)]
    pub resolution: Resolution,
    pub message: Option<String>,
    pub code: i64,
    pub file: Option<String>,
    pub line: Option<i64>,
    pub trace_preview: Option<String>,
    #[serde(serialize_with = "ts")]
    pub created_at: Option<DateTime<Utc>>,
    /// Where in the history; none when only a row knows of it.
    pub event_sequence: Option<i64>,
    pub exception_payload: ExceptionPayload,
    /// What only an event can say.
    #[serde(flatten)]
    pub by_event: Option<ByEvent>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ByEvent {
    /// Which timeout it was, or the reason an operator gave.
    pub reason: Option<String>,
    pub structural_limit_kind: Option<String>,
    pub structural_limit_value: Option<i64>,
    pub structural_limit_configured: Option<i64>,
}

impl Failure {
    pub fn reason(&self) -> Option<&str> {
        self.by_event.as_ref()?.reason.as_deref()
    }

    fn of_row(config: &EngineConfig, row: &FailureRecord) -> Self {
        Self {
            id: row.id.clone(),
            source_kind: Some(row.source_kind.clone()),
            source_id: Some(row.source_id.clone()),
            propagation_kind: Some(row.propagation_kind.clone()),
            failure_category: row.failure_category.clone(),
            non_retryable: row.non_retryable,
            handled: row.handled,
            history_authority: authority::FAILURE_ROW,
            diagnostic_only: true,
            exception_type: None,
            exception_class: Some(row.exception_class.clone()),
            resolution: exception::resolve(config, Some(&row.exception_class), None),
            message: Some(row.message.clone()),
            code: 0,
            file: Some(row.file.clone()),
            line: row.line,
            trace_preview: row.trace_preview.clone(),
            created_at: row.created_at,
            event_sequence: None,
            exception_payload: ExceptionPayload::of_row(row),
            by_event: None,
        }
    }

    /// The event's word counts; the row keeps what may change later (`handled`) and what came
    /// first (`created_at`, the preview).
    fn of_event(
        config: &EngineConfig,
        run_id: &str,
        event: &HistoryEvent,
        id: String,
        payload: FailureEvent,
        row: Option<&FailureRecord>,
    ) -> Self {
        let defaults = defaults(&event.event_type);
        let thrown = ExceptionPayload::of_event(&payload, row);
        let exception_type = thrown
            .exception_type
            .clone()
            .or_else(|| payload.exception_type.0.clone());
        Self {
            source_id: payload
                .source_id
                .0
                .clone()
                .or_else(|| row.map(|row| row.source_id.clone()))
                .or_else(|| source_id(run_id, event, &payload)),
            source_kind: payload
                .source_kind
                .0
                .or_else(|| row.map(|row| row.source_kind.clone()))
                .or_else(|| defaults.map(|of| of.source_kind.to_owned())),
            propagation_kind: row
                .map(|row| row.propagation_kind.clone())
                .or_else(|| defaults.map(|of| of.propagation_kind.to_owned())),
            failure_category: payload
                .failure_category
                .0
                .map(Into::into)
                .or_else(|| row.and_then(|row| row.failure_category.clone()))
                .or_else(|| defaults.map(|of| of.failure_category.into())),
            non_retryable: payload
                .non_retryable
                .unwrap_or_else(|| row.is_some_and(|row| row.non_retryable)),
            handled: row.is_some_and(|row| row.handled),
            history_authority: authority::TYPED,
            diagnostic_only: false,
            exception_class: thrown.class.clone(),
            resolution: exception::resolve(
                config,
                thrown.class.as_deref(),
                exception_type.as_deref(),
            ),
            exception_type,
            message: thrown.message.clone(),
            code: thrown.code,
            file: thrown.file.clone(),
            line: thrown.line,
            trace_preview: row
                .and_then(|row| row.trace_preview.clone())
                .or_else(|| Some(trace::preview(&thrown.trace))),
            created_at: row.and_then(|row| row.created_at).or_else(|| event.time()),
            event_sequence: Some(event.sequence),
            exception_payload: thrown,
            by_event: Some(ByEvent {
                reason: payload.timeout_kind.0.or(payload.reason.0),
                structural_limit_kind: payload.structural_limit_kind.0,
                structural_limit_value: payload.structural_limit_value.strict(),
                structural_limit_configured: payload.structural_limit_configured.strict(),
            }),
            id,
        }
    }
}

/// What an event type alone says of its failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defaults {
    pub source_kind: &'static str,
    pub propagation_kind: &'static str,
    pub failure_category: &'static str,
}

/// The events that carry a failure; none for all others.
pub fn defaults(event_type: &EventType) -> Option<Defaults> {
    let (source_kind, propagation_kind, failure_category) = match event_type {
        EventType::ActivityFailed => ("activity_execution", "activity", "activity"),
        EventType::ActivityTimedOut => ("activity_execution", "timeout", "timeout"),
        EventType::ChildRunFailed => ("child_workflow_run", "child", "child_workflow"),
        EventType::ChildRunCancelled => ("child_workflow_run", "cancelled", "cancelled"),
        EventType::ChildRunTerminated => ("child_workflow_run", "terminated", "terminated"),
        EventType::WorkflowFailed => ("workflow_run", "terminal", "application"),
        EventType::WorkflowTimedOut => ("workflow_run", "timeout", "timeout"),
        EventType::WorkflowCancelled => ("workflow_run", "cancelled", "cancelled"),
        EventType::WorkflowTerminated => ("workflow_run", "terminated", "terminated"),
        EventType::UpdateCompleted => ("workflow_command", "update", "application"),
        _ => return None,
    };
    Some(Defaults {
        source_kind,
        propagation_kind,
        failure_category,
    })
}

fn source_id(run_id: &str, event: &HistoryEvent, payload: &FailureEvent) -> Option<String> {
    match event.event_type {
        EventType::ActivityFailed | EventType::ActivityTimedOut => {
            payload.activity_execution_id.0.clone()
        }
        EventType::ChildRunFailed
        | EventType::ChildRunCancelled
        | EventType::ChildRunTerminated => payload.child_workflow_run_id.0.clone(),
        EventType::UpdateCompleted => event
            .workflow_command_id
            .clone()
            .or_else(|| payload.update_id.0.clone()),
        _ => Some(run_id.to_owned()),
    }
}

/// Every failure of the run, in the order they happened; those only a row knows come last.
pub fn failures(cx: Context<'_>) -> Vec<Failure> {
    let snapshot = cx.snapshot;
    gathered(
        cx.config,
        &snapshot.run.id,
        &snapshot.failures,
        &snapshot.events,
    )
}

/// The failure that one event tells of, if it does, with what its row adds.
pub(crate) fn told(
    config: &EngineConfig,
    run_id: &str,
    event: &HistoryEvent,
    rows: &HashMap<&str, &FailureRecord>,
) -> Option<Failure> {
    defaults(&event.event_type)?;
    let mut payload: FailureEvent = event.as_payload();
    let id = payload.failure_id.0.take()?;
    let row = rows.get(id.as_str()).copied();
    Some(Failure::of_event(config, run_id, event, id, payload, row))
}

fn gathered(
    config: &EngineConfig,
    run_id: &str,
    records: &[FailureRecord],
    events: &[HistoryEvent],
) -> Vec<Failure> {
    let rows: HashMap<&str, &FailureRecord> =
        records.iter().map(|row| (row.id.as_str(), row)).collect();
    let mut found: BTreeMap<String, Failure> = BTreeMap::new();
    let mut handled: HashSet<String> = HashSet::new();
    for event in events {
        if event.event_type == EventType::FailureHandled {
            handled.extend(event.as_payload::<FailureName>().failure_id.0);
        } else if let Some(failure) = told(config, run_id, event, &rows) {
            // A later event of the same failure replaces an earlier one.
            found.insert(failure.id.clone(), failure);
        }
    }
    for row in records {
        found
            .entry(row.id.clone())
            .or_insert_with(|| Failure::of_row(config, row));
    }
    for id in handled {
        if let Some(failure) = found.get_mut(&id) {
            failure.handled = true;
        }
    }
    let mut failures: Vec<Failure> = found.into_values().collect();
    failures.sort_by(|a, b| order(a).cmp(&order(b)));
    failures
}

/// By event, those only a row knows last, then by creation, then by id.
pub fn order(failure: &Failure) -> (i64, i64, &str) {
    (
        failure.event_sequence.unwrap_or(i64::MAX),
        failure.created_at.map_or(0, millis),
        &failure.id,
    )
}

/// One of the run detail's `exceptions`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Exception<'f> {
    pub id: &'f str,
    /// The trace preview; the numeric code is in `exception`.
    pub code: Option<&'f str>,
    pub exception: Cow<'f, ExceptionPayload>,
    pub history_authority: &'static str,
    pub diagnostic_only: bool,
    pub failure_category: Option<&'f FailureCategory>,
    pub non_retryable: bool,
    pub exception_type: Option<&'f str>,
    pub exception_class: Option<&'f str>,
    #[serde(flatten)]
    pub resolution: &'f Resolution,
    /// The activity's class where an activity failed, else the exception's.
    pub class: Option<&'f str>,
    #[serde(serialize_with = "ts")]
    pub created_at: Option<DateTime<Utc>>,
}

/// The failures as the run detail lists them.
pub fn exceptions<'f>(
    activities: &'f [Activity<'_>],
    failures: &'f [Failure],
) -> Vec<Exception<'f>> {
    let classes: HashMap<&str, &str> = activities
        .iter()
        .filter_map(|activity| Some((activity.id.as_str(), activity.class.as_deref()?)))
        .collect();
    failures
        .iter()
        .map(|failure| Exception {
            id: &failure.id,
            code: failure.trace_preview.as_deref(),
            exception: named(failure),
            history_authority: failure.history_authority,
            diagnostic_only: failure.diagnostic_only,
            failure_category: failure.failure_category.as_ref(),
            non_retryable: failure.non_retryable,
            exception_type: failure.exception_type.as_deref(),
            exception_class: failure.exception_class.as_deref(),
            resolution: &failure.resolution,
            class: failure
                .source_id
                .as_deref()
                .and_then(|id| classes.get(id).copied())
                .or(failure.exception_class.as_deref()),
            created_at: failure.created_at,
        })
        .collect()
}

/// What was thrown, under the durable name of the failure where it has none of its own.
fn named(failure: &Failure) -> Cow<'_, ExceptionPayload> {
    let thrown = &failure.exception_payload;
    if thrown.exception_type.is_some() || failure.exception_type.is_none() {
        return Cow::Borrowed(thrown);
    }
    Cow::Owned(ExceptionPayload {
        exception_type: failure.exception_type.clone(),
        ..thrown.clone()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn event(sequence: i64, event_type: EventType, payload: &Value) -> HistoryEvent {
        HistoryEvent {
            id: format!("event-{sequence}"),
            sequence,
            event_type,
            payload: Some(payload.to_string()),
            workflow_task_id: None,
            workflow_command_id: Some("command".into()),
            recorded_at: Some(DateTime::UNIX_EPOCH),
            created_at: None,
            is_json: std::sync::OnceLock::new(),
        }
    }

    fn row(id: &str, message: &str) -> FailureRecord {
        FailureRecord {
            id: id.into(),
            workflow_run_id: "run".into(),
            source_kind: "workflow_run".into(),
            source_id: "run".into(),
            propagation_kind: "terminal".into(),
            failure_category: None,
            non_retryable: false,
            handled: false,
            exception_class: "RuntimeException".into(),
            message: message.into(),
            file: "/app/a.php".into(),
            line: Some(7),
            trace_preview: None,
            created_at: Some(DateTime::UNIX_EPOCH),
        }
    }

    fn told(rows: &[FailureRecord], events: &[HistoryEvent]) -> Vec<Failure> {
        gathered(&EngineConfig::defaults(), "run", rows, events)
    }

    #[test]
    fn what_was_thrown_without_a_durable_name_has_that_of_its_failure() {
        for (thrown, want) in [
            (json!({"class": "E"}), json!("orders.declined")),
            (json!({"class": "E", "type": "own"}), json!("own")),
        ] {
            let payload = json!({"failure_id": "f", "exception_type": "orders.declined", "exception": thrown});
            let failures = told(&[], &[event(1, EventType::ActivityFailed, &payload)]);
            let exceptions = json!(exceptions(&[], &failures));
            assert_eq!(exceptions[0]["exception"]["type"], want);
            let own = json!(failures[0].exception_payload);
            assert_eq!(own["type"], thrown["type"]);
        }
    }

    #[test]
    fn what_an_event_leaves_unsaid_its_type_says() {
        for (event_type, source_kind, source_id, propagation, category) in [
            (
                EventType::ActivityFailed,
                "activity_execution",
                "a",
                "activity",
                "activity",
            ),
            (
                EventType::ActivityTimedOut,
                "activity_execution",
                "a",
                "timeout",
                "timeout",
            ),
            (
                EventType::ChildRunFailed,
                "child_workflow_run",
                "c",
                "child",
                "child_workflow",
            ),
            (
                EventType::ChildRunCancelled,
                "child_workflow_run",
                "c",
                "cancelled",
                "cancelled",
            ),
            (
                EventType::ChildRunTerminated,
                "child_workflow_run",
                "c",
                "terminated",
                "terminated",
            ),
            (
                EventType::WorkflowFailed,
                "workflow_run",
                "run",
                "terminal",
                "application",
            ),
            (
                EventType::WorkflowTimedOut,
                "workflow_run",
                "run",
                "timeout",
                "timeout",
            ),
            (
                EventType::WorkflowCancelled,
                "workflow_run",
                "run",
                "cancelled",
                "cancelled",
            ),
            (
                EventType::WorkflowTerminated,
                "workflow_run",
                "run",
                "terminated",
                "terminated",
            ),
            (
                EventType::UpdateCompleted,
                "workflow_command",
                "command",
                "update",
                "application",
            ),
        ] {
            let payload = json!({
                "failure_id": "f", "activity_execution_id": "a", "child_workflow_run_id": "c",
            });
            let failures = told(&[], &[event(1, event_type.clone(), &payload)]);
            let [failure] = failures.as_slice() else {
                panic!("{event_type}: {failures:?}");
            };
            assert_eq!(
                failure.source_kind.as_deref(),
                Some(source_kind),
                "{event_type}"
            );
            assert_eq!(
                failure.source_id.as_deref(),
                Some(source_id),
                "{event_type}"
            );
            assert_eq!(
                failure.propagation_kind.as_deref(),
                Some(propagation),
                "{event_type}"
            );
            let stored = failure
                .failure_category
                .as_ref()
                .map(FailureCategory::as_str);
            assert_eq!(stored, Some(category), "{event_type}");
            assert_eq!(failure.trace_preview.as_deref(), Some(""), "{event_type}");
        }
    }

    #[test]
    fn history_outranks_an_altered_row_but_only_the_row_knows_when_and_whether_handled() {
        let payload = json!({"failure_id": "f", "message": "told", "exception": {
            "class": "DomainException", "message": "thrown", "code": 422,
            "previous": {"class": "PDOException", "message": "gone away"},
        }});
        let mut altered = row("f", "altered");
        altered.handled = true;
        let failures = told(
            &[altered, row("only-a-row", "lost")],
            &[event(9, EventType::ActivityFailed, &payload)],
        );
        let ids: Vec<&str> = failures.iter().map(|failure| failure.id.as_str()).collect();
        assert_eq!(ids, ["f", "only-a-row"]);
        let failure = &failures[0];
        assert_eq!(failure.message.as_deref(), Some("thrown"));
        assert_eq!(failure.code, 422);
        assert_eq!(failure.file.as_deref(), Some("/app/a.php"));
        assert!(failure.handled && !failure.diagnostic_only);
        assert_eq!(
            failure.exception_payload.causes[0].message.as_deref(),
            Some("gone away")
        );
        assert!(failures[1].diagnostic_only);
        assert_eq!(json!(failures[1]).get("reason"), None);
        assert_eq!(json!(failures[0]).get("reason"), Some(&Value::Null));
    }

    #[test]
    fn a_later_event_replaces_an_earlier_one_and_a_caught_failure_is_handled() {
        let of = |message: &str| json!({"failure_id": "f", "message": message});
        let failures = told(
            &[],
            &[
                event(3, EventType::ActivityFailed, &of("first")),
                event(4, EventType::WorkflowFailed, &of("again")),
                event(5, EventType::FailureHandled, &of("")),
                event(6, EventType::ActivityRetryScheduled, &of("not a failure")),
            ],
        );
        assert_eq!(failures.len(), 1);
        assert_eq!(failures[0].event_sequence, Some(4));
        assert!(failures[0].handled);
    }

    #[test]
    fn garbage_is_no_failure() {
        for payload in [json!(null), json!([]), json!({"failure_id": 7}), json!("x")] {
            let event = event(1, EventType::WorkflowFailed, &payload);
            assert_eq!(told(&[], &[event]), [], "{payload}");
        }
        let odd = json!({"failure_id": "f", "exception": {"trace": {"a": 1}, "code": "23000", "properties": 7}});
        let failures = told(&[], &[event(1, EventType::WorkflowFailed, &odd)]);
        assert_eq!(failures[0].code, 0);
    }
}
