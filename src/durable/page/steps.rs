//! A run as the steps by which it is compared with another. Ids and moments are left out: they
//! differ between any two runs.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::data::run_payload;
use crate::{
    durable::{
        payload::{self, Payload, closure},
        projection::Projected,
        stored::{
            EventType,
            loose::{Any, Int, Text, shape},
        },
    },
    run::comparison::Step,
};

shape! {
    /// What a recorded side effect, marker or child says.
    #[derive(Debug)]
    struct Recorded {
        sequence: Int,
        payload_codec: Text,
        result: Any,
        output: Any,
        change_id: Text,
        version: Any,
    }
}

/// Every step, the run itself first.
pub fn steps(p: &Projected<'_>) -> Vec<Step> {
    let mut steps = as_told(p);
    let values = steps.iter_mut().flat_map(|step| &mut step.values);
    for value in values.filter_map(|(_, value)| value.as_mut()) {
        if payload::is_hidden(value)
            && let Some(note) = value.as_object_mut()
        {
            // Where it was hidden differs between a run and a bundle of it.
            note.remove("path");
        }
        if let Some(shown) = closure::told_apart(value) {
            *value = shown;
        }
    }
    steps
}

fn as_told(p: &Projected<'_>) -> Vec<Step> {
    let run = &p.cx.snapshot.run;
    let codec = run.payload_codec.as_deref();
    let mut steps = vec![Step {
        sequence: 0,
        kind: "run",
        name: run.workflow_type.clone(),
        status: run.status.as_str().to_owned(),
        attempts: None,
        duration: between(run.started_at.or(run.created_at), run.closed_at),
        values: ["arguments", "output"]
            .map(|part| (part, run_payload(p, part).and_then(Payload::preview)))
            .to_vec(),
    }];
    steps.extend(p.activities.iter().map(|activity| {
        Step {
            sequence: activity.sequence.unwrap_or(0),
            kind: "activity",
            name: activity
                .r#type
                .clone()
                .or_else(|| activity.class.clone())
                .unwrap_or_default(),
            status: activity.status.as_str().to_owned(),
            attempts: Some(activity.attempt_count),
            duration: between(activity.created_at, activity.closed_at),
            values: vec![
                ("arguments", activity.arguments.clone().preview()),
                ("result", activity.result.clone().preview()),
            ],
        }
    }));
    steps.extend(p.timers.iter().map(|timer| Step {
        sequence: timer.sequence.unwrap_or(0),
        kind: "timer",
        name: timer.timer_kind.clone().unwrap_or_default(),
        status: timer.status.as_str().to_owned(),
        attempts: None,
        duration: between(timer.created_at, timer.fired_at.or(timer.cancelled_at)),
        values: vec![("delay_seconds", timer.delay_seconds.map(Value::from))],
    }));
    steps.extend(p.conditions.iter().map(|wait| Step {
        sequence: wait.sequence.unwrap_or(0),
        kind: "condition",
        name: wait.condition_key.clone().unwrap_or_default(),
        status: wait.source_status.to_owned(),
        attempts: None,
        duration: between(wait.opened_at, wait.resolved_at),
        values: vec![("timeout_seconds", wait.timeout_seconds.map(Value::from))],
    }));
    steps.extend(p.signal_waits.iter().map(|wait| Step {
        sequence: wait.sequence.unwrap_or(0),
        kind: "signal wait",
        name: wait.signal_name.clone(),
        status: wait.source_status.to_owned(),
        attempts: None,
        duration: between(wait.opened_at, wait.resolved_at),
        values: vec![("timeout_seconds", wait.timeout_seconds.map(Value::from))],
    }));
    steps.extend(p.signals.iter().map(|signal| Step {
        sequence: signal.workflow_sequence.unwrap_or(0),
        kind: "signal",
        name: signal.name.clone().unwrap_or_default(),
        status: signal.status.as_str().to_owned(),
        attempts: None,
        duration: between(signal.received_at, signal.applied_at),
        values: vec![("arguments", signal.arguments.clone())],
    }));
    steps.extend(p.updates.iter().map(|update| Step {
        sequence: update.workflow_sequence.unwrap_or(0),
        kind: "update",
        name: update.name.clone().unwrap_or_default(),
        status: update.status.as_str().to_owned(),
        attempts: None,
        duration: between(update.accepted_at, update.closed_at),
        values: vec![
            ("arguments", update.arguments.clone()),
            ("result", update.result.clone()),
        ],
    }));
    steps.extend(p.children.iter().map(|child| {
        let told: Option<Recorded> = child
            .resolution
            .as_ref()
            .map(|recorded| recorded.event.as_payload());
        Step {
            sequence: child.sequence,
            kind: "child",
            name: child.label.clone(),
            status: child
                .source_status
                .clone()
                .unwrap_or_else(|| child.status.to_owned()),
            attempts: None,
            duration: between(child.opened_at, child.resolved_at),
            values: vec![(
                "output",
                told.and_then(|told| {
                    let value = told.output.as_ref().or(told.result.as_ref())?.clone();
                    decoded(told.payload_codec.0.as_deref().or(codec), &value)
                }),
            )],
        }
    }));
    let sequences: HashMap<&str, i64> = p
        .activities
        .iter()
        .filter_map(|activity| Some((&*activity.id, activity.sequence?)))
        .collect();
    steps.extend(p.failures.iter().map(|failure| {
        let source = failure.source_id.as_deref();
        let told = |text: &Option<String>| {
            let text = text.clone().filter(|text| !text.is_empty());
            text.map(Value::from)
        };
        Step {
            // A failure of the run itself stands beside it.
            sequence: source
                .and_then(|id| sequences.get(id).copied())
                .unwrap_or(0),
            kind: "failure",
            name: failure.source_kind.clone().unwrap_or_default(),
            status: failure
                .failure_category
                .as_ref()
                .map(|category| category.as_str().to_owned())
                .unwrap_or_default(),
            attempts: None,
            duration: None,
            values: vec![
                ("class", told(&failure.exception_class)),
                ("message", told(&failure.message)),
            ],
        }
    }));
    steps.extend(p.cx.snapshot.events.iter().filter_map(|event| {
        let kind = match event.event_type {
            EventType::SideEffectRecorded => "side effect",
            EventType::VersionMarkerRecorded => "version",
            _ => return None,
        };
        let told: Recorded = event.as_payload();
        Some(Step {
            sequence: told.sequence.get().unwrap_or(0),
            kind,
            name: told.change_id.0.clone().unwrap_or_default(),
            status: String::new(),
            attempts: None,
            duration: None,
            values: vec![
                (
                    "result",
                    told.result.as_ref().and_then(|value| {
                        decoded(told.payload_codec.0.as_deref().or(codec), value)
                    }),
                ),
                ("version", told.version.as_ref().cloned()),
            ],
        })
    }));
    steps
}

fn decoded(codec: Option<&str>, value: &Value) -> Option<Value> {
    payload::decode_value(codec, value).preview()
}

fn between(from: Option<DateTime<Utc>>, to: Option<DateTime<Utc>>) -> Option<chrono::TimeDelta> {
    from.zip(to).map(|(from, to)| to - from)
}
