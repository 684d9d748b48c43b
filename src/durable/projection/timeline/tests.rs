use serde_json::{Value, json};

use super::*;

fn event(event_type: &str, payload: &Value) -> HistoryEvent {
    HistoryEvent {
        id: "event".into(),
        sequence: 7,
        event_type: event_type.into(),
        payload: Some(payload.to_string()),
        workflow_task_id: None,
        workflow_command_id: None,
        recorded_at: Some(DateTime::UNIX_EPOCH),
        created_at: None,
        is_json: std::sync::OnceLock::new(),
    }
}

fn entry(event: &HistoryEvent) -> Entry<'_> {
    let rows = Rows {
        run_id: "run",
        ..Rows::default()
    };
    rows.entry(event)
}

#[test]
fn every_event_type_has_a_sentence_whatever_its_payload() {
    for event_type in EventType::KNOWN.iter().chain(&["SomethingNewer"]) {
        for payload in [
            json!({}),
            json!(null),
            json!([]),
            json!({"activity": 7, "command": []}),
        ] {
            let event = event(event_type, &payload);
            let entry = entry(&event);
            assert!(!entry.summary.is_empty(), "{event_type}");
            assert_eq!(entry.event_type.as_str(), *event_type);
            assert_eq!(entry.sequence, 7);
        }
    }
}

#[test]
fn an_unknown_event_is_the_runs_own_and_named() {
    let event = event("SomethingNewer", &json!({"sequence": 3}));
    let entry = entry(&event);
    assert_eq!(
        (entry.kind, entry.source_id.as_deref()),
        (Kind::Workflow, Some("run"))
    );
    assert!(entry.summary.starts_with("SomethingNewer"));
}

#[test]
fn sentences_carry_what_an_operator_looks_for() {
    for (event_type, payload, sentence) in [
        (
            "MemoUpserted",
            json!({"entries": {"owner": "ops", "note": null}, "merged": {"old": 1}}),
            "Memo updated: owner, note",
        ),
        (
            "SearchAttributesUpserted",
            json!({"attributes": [], "merged": []}),
            "Search attributes updated",
        ),
        (
            "ActivityRetryScheduled",
            json!({"activity_type": "charge", "retry_after_attempt": 1, "max_attempts": 3,
                "retry_backoff_seconds": 300, "message": "card declined"}),
            "Activity charge, attempt 2 of 3, after attempt 1 failed, waits 5 m: card declined",
        ),
        (
            "ActivityRetryScheduled",
            json!({"activity_class": "App\\Charge", "retry_after_attempt": 4,
                "timeout_kind": "start_to_close", "retry_backoff_seconds": 0}),
            "Activity Charge, attempt 5, after attempt 4 timed out (start to close), waits 0 s",
        ),
        (
            "ActivityFailed",
            json!({"activity_type": "charge", "attempt_number": 3, "message": "no such card",
                "failure_id": "f", "non_retryable": true}),
            "Activity charge failed, attempt 3: no such card (not retryable)",
        ),
        (
            "WorkflowFailed",
            json!({"message": "Structural limit exceeded", "structural_limit_kind": "payload_size",
                "structural_limit_value": 3_000_000, "structural_limit_configured": 2_097_152}),
            "Run failed: Structural limit exceeded; limit payload_size: 3000000 where 2097152 are allowed",
        ),
        (
            "WorkflowTimedOut",
            json!({"timeout_kind": "run_timeout"}),
            "Run timed out: its run deadline passed",
        ),
        (
            "TimerScheduled",
            json!({"timer_id": "t", "delay_seconds": 1, "timer_kind": "signal_timeout"}),
            "Signal timeout of 1 second scheduled",
        ),
        (
            "ConditionWaitOpened",
            json!({"condition_key": "paid", "timeout_seconds": 60}),
            "Waiting for condition paid, at most 60 seconds",
        ),
        (
            "UpdateCompleted",
            json!({"update_name": "approve", "failure_id": "f", "message": "too late"}),
            "Failed update approve: too late",
        ),
        (
            "ServiceCallStarted",
            json!({"endpoint_name": "billing", "operation_name": "charge"}),
            "Service call billing/charge started",
        ),
        (
            "RepairRequested",
            json!({"outcome": "repair_dispatched", "task_type": "timer", "task": {"id": "t"}}),
            "Repair dispatched a timer task",
        ),
    ] {
        assert_eq!(entry(&event(event_type, &payload)).summary, sentence);
    }
}

#[test]
fn a_key_without_a_value_still_makes_its_object() {
    let event = event(
        "ActivityCancelled",
        &json!({"cancelled_at": null, "outcome": null}),
    );
    let entry = entry(&event);
    assert!(entry.timer.is_some_and(|timer| timer.id.is_none()));
    assert!(entry.command.is_some_and(|command| command.id.is_none()));
    assert!(entry.child.is_none() && entry.failure.is_none());
}
