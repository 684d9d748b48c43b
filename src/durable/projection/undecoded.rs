//! Payloads in no codec we know, or damaged. The engine's keys leave them out: here they stand,
//! as they are stored, beside them.

use serde::Serialize;

use super::{
    identity::{arguments, output, output_codec},
    projected::Projected,
};
use crate::durable::{
    payload::{self, Payload},
    stored::{CommandRow, ExecutionRow, HistoryEvent, RunRow, SignalRow, UpdateRow},
};

/// Most characters shown of a payload nobody could decode.
const MOST: usize = 10_000;
/// Most such payloads listed: a run of another codec has two for every activity.
const LISTED: usize = 100;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Undecoded {
    pub table: &'static str,
    /// Of the row it stands in.
    pub id: String,
    pub column: &'static str,
    pub codec: Option<String>,
    pub reason: String,
    /// As stored, up to a limit.
    pub text: String,
    pub cut: bool,
}

/// The first of them.
pub fn undecoded(p: &Projected<'_>) -> Vec<Undecoded> {
    each(p).take(LISTED).collect()
}

/// What the run was started with and what it returned, and the same of its activities, signals,
/// updates and commands, where it cannot be shown decoded. What of an activity an event wrote is
/// that event's.
pub fn each<'a>(p: &'a Projected<'_>) -> impl Iterator<Item = Undecoded> + 'a {
    let snapshot = p.cx.snapshot;
    let activities = p.activities.iter().flat_map(|activity| {
        let stored = &activity.stored;
        let codec = stored.payload_codec.as_deref();
        [
            ("arguments", &activity.arguments, stored.arguments),
            ("result", &activity.result, stored.result),
        ]
        .into_iter()
        .filter_map(move |(column, payload, from)| match from.event_id() {
            Some(event) => raw(HistoryEvent::TABLE, event, "payload", codec, payload),
            None => raw(ExecutionRow::TABLE, &activity.id, column, codec, payload),
        })
    });
    let signals = snapshot.signals.iter().map(|row| {
        let (codec, text) = (&row.payload_codec, &row.arguments);
        (SignalRow::TABLE, &row.id, "arguments", codec, text)
    });
    let updates = snapshot.updates.iter().flat_map(|row| {
        [("arguments", &row.arguments), ("result", &row.result)]
            .map(|(column, text)| (UpdateRow::TABLE, &row.id, column, &row.payload_codec, text))
    });
    let commands = snapshot.commands.iter().map(|row| {
        let (codec, text) = (&row.payload_codec, &row.payload);
        (CommandRow::TABLE, &row.id, "payload", codec, text)
    });
    let columns = signals.chain(updates).chain(commands);
    let columns = columns.filter_map(|(table, id, column, codec, text)| {
        let payload = payload::decode(codec.as_deref(), text.as_deref());
        raw(table, id, column, codec.as_deref(), &payload)
    });
    of_run(&snapshot.run)
        .into_iter()
        .chain(activities)
        .chain(columns)
}

fn of_run(run: &RunRow) -> Vec<Undecoded> {
    let codec = output_codec(run);
    [
        ("arguments", run.payload_codec.as_deref(), arguments(run)),
        ("output", codec.as_deref(), output(run)),
    ]
    .iter()
    .filter_map(|(column, codec, payload)| raw(RunRow::TABLE, &run.id, column, *codec, payload))
    .collect()
}

fn raw(
    table: &'static str,
    id: &str,
    column: &'static str,
    codec: Option<&str>,
    payload: &Payload,
) -> Option<Undecoded> {
    let Payload::Raw { reason, text } = payload else {
        return None;
    };
    let shown: String = text.chars().take(MOST).collect();
    Some(Undecoded {
        table,
        id: id.to_owned(),
        column,
        codec: codec.map(str::to_owned),
        reason: reason.clone(),
        cut: shown.len() < text.len(),
        text: shown,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::durable::{
        projection::example::{event, history, told},
        store::snapshot::RunSnapshot,
        stored::EventType,
    };

    #[test]
    fn what_nobody_can_decode_stands_beside() {
        let run = RunRow {
            id: "r".into(),
            payload_codec: Some("workflow-serializer".into()),
            arguments: Some("O:8:\"stdClass\":0:{}".into()),
            output_payload_codec: Some("avro".into()),
            output: Some("wwHioz3/VYAiNwQO".into()),
            ..RunRow::default()
        };
        let found = of_run(&run);
        assert_eq!(
            found,
            [Undecoded {
                table: "workflow_runs",
                id: "r".into(),
                column: "arguments",
                codec: Some("workflow-serializer".into()),
                reason: "unsupported codec workflow-serializer".into(),
                text: "O:8:\"stdClass\":0:{}".into(),
                cut: false,
            }]
        );
        let long = RunRow {
            output: Some("é".repeat(MOST + 1)),
            ..run
        };
        let found = of_run(&long);
        assert_eq!(
            (found[1].column, found[1].text.chars().count(), found[1].cut),
            ("output", MOST, true)
        );
    }

    #[test]
    fn an_activitys_payload_that_is_cut_short_is_not_passed_over() {
        let done = event(
            1,
            EventType::ActivityCompleted,
            &json!({
                "activity_execution_id": "a",
                "result": "wwHioz3/VYAiNw",
                "activity": {"arguments": "wwHioz3/VYAiNwQO", "payload_codec": "avro"},
            }),
        );
        let id = done.id.clone();
        let snapshot = RunSnapshot {
            events: history(vec![done]),
            ..RunSnapshot::default()
        };
        let found = told(&snapshot, |cx| undecoded(&Projected::of(cx)));
        let found: Vec<_> = found
            .iter()
            .map(|of| (of.table, of.id.as_str(), of.column, of.text.as_str()))
            .collect();
        assert_eq!(
            found,
            [(
                "workflow_history_events",
                id.as_str(),
                "payload",
                "wwHioz3/VYAiNw"
            )]
        );
    }
}
