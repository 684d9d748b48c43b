//! How much of its history budget a run has used, and whether the engine would have it continue
//! as new.

use std::collections::HashSet;

use serde::Serialize;

use super::context::Context;
use crate::durable::{
    engine_config::EngineConfig,
    stored::{
        HistoryEvent,
        loose::{self, Any, Text, shape},
    },
};

/// The budget with the engine's keys.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HistoryBudget {
    pub history_event_count: i64,
    pub history_size_bytes: i64,
    pub history_fan_out: i64,
    /// Where continue-as-new is recommended; 0 is never.
    pub history_event_threshold: i64,
    pub history_size_bytes_threshold: i64,
    pub history_fan_out_threshold: i64,
    /// Where the engine begins to warn; 0 is never.
    pub history_event_warning_threshold: i64,
    pub history_size_bytes_warning_threshold: i64,
    pub history_fan_out_warning_threshold: i64,
    pub history_budget_pressure: Pressure,
    /// The dimensions that brought the pressure about.
    pub history_budget_pressure_dimensions: Vec<Dimension>,
    pub continue_as_new_recommended: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Pressure {
    Ok,
    Approaching,
    ContinueAsNewRecommended,
}

impl Pressure {
    /// As the summary stores it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Approaching => "approaching",
            Self::ContinueAsNewRecommended => "continue_as_new_recommended",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Dimension {
    EventCount,
    SizeBytes,
    FanOut,
}

/// The stored counters where there is a summary, else what the history adds up to. The pressure
/// is always judged anew: thresholds may have changed since.
pub fn budget(cx: Context<'_>) -> HistoryBudget {
    let counters = match &cx.snapshot.summary {
        Some(summary) => [
            summary.history_event_count,
            summary.history_size_bytes,
            summary.history_fan_out,
        ],
        None => counted(&cx.snapshot.events, cx.snapshot.events.stored_size()),
    };
    judged(counters.map(|count| count.max(0)), cx.config)
}

/// What the history has come to: the stored counters while they are of as many events as there
/// are, which spares weighing a long one, else what it adds up to.
pub fn current(cx: Context<'_>) -> HistoryBudget {
    let stored = budget(cx);
    let events = &cx.snapshot.events;
    let counts_all = usize::try_from(stored.history_event_count) == Ok(events.len());
    // An event weighs something.
    if counts_all && (stored.history_size_bytes > 0 || events.is_empty()) {
        return stored;
    }
    judged(counted(events, events.stored_size()), cx.config)
}

/// What a history adds up to, whatever a summary says.
pub fn of_history(events: &[HistoryEvent], config: &EngineConfig) -> HistoryBudget {
    judged(counted(events, None), config)
}

const DIMENSIONS: [(Dimension, &str, &str); 3] = [
    (
        Dimension::EventCount,
        "history_budget.continue_as_new_event_threshold",
        "history_budget.event_warning_threshold",
    ),
    (
        Dimension::SizeBytes,
        "history_budget.continue_as_new_size_bytes_threshold",
        "history_budget.size_bytes_warning_threshold",
    ),
    (
        Dimension::FanOut,
        "history_budget.continue_as_new_fan_out_threshold",
        "history_budget.fan_out_warning_threshold",
    ),
];

/// Where continue-as-new is recommended and where the warning begins, for events, bytes and
/// fan-out; 0 is never.
pub fn thresholds(config: &EngineConfig) -> ([i64; 3], [i64; 3]) {
    let hard = DIMENSIONS.map(|(_, path, _)| config.int(path));
    let mut warning = DIMENSIONS.map(|(_, _, path)| config.int(path));
    // A warning above the hard mark could never come first; without a hard mark there is none.
    for (warning, hard) in warning.iter_mut().zip(hard) {
        *warning = (*warning).min(hard);
    }
    (hard, warning)
}

fn judged(counters: [i64; 3], config: &EngineConfig) -> HistoryBudget {
    let (hard, warning) = thresholds(config);
    let over = |marks: [i64; 3]| -> Vec<Dimension> {
        DIMENSIONS
            .iter()
            .zip(counters.iter().zip(marks))
            .filter(|(_, (count, mark))| *mark > 0 && **count >= *mark)
            .map(|((dimension, _, _), _)| *dimension)
            .collect()
    };
    let (over_hard, over_warning) = (over(hard), over(warning));
    let (pressure, dimensions) = match (over_hard.is_empty(), over_warning.is_empty()) {
        (false, _) => (Pressure::ContinueAsNewRecommended, over_hard),
        (true, false) => (Pressure::Approaching, over_warning),
        (true, true) => (Pressure::Ok, Vec::new()),
    };
    HistoryBudget {
        history_event_count: counters[0],
        history_size_bytes: counters[1],
        history_fan_out: counters[2],
        history_event_threshold: hard[0],
        history_size_bytes_threshold: hard[1],
        history_fan_out_threshold: hard[2],
        history_event_warning_threshold: warning[0],
        history_size_bytes_warning_threshold: warning[1],
        history_fan_out_warning_threshold: warning[2],
        history_budget_pressure: pressure,
        history_budget_pressure_dimensions: dimensions,
        continue_as_new_recommended: pressure == Pressure::ContinueAsNewRecommended,
    }
}

/// How long a history is as the engine weighs it.
pub fn size(events: &[HistoryEvent]) -> usize {
    let of = |event: &HistoryEvent| {
        event.event_type.as_str().len() + compact_len(event.payload.as_deref())
    };
    events.iter().map(of).sum()
}

fn counted(events: &[HistoryEvent], known: Option<usize>) -> [i64; 3] {
    let size = known.unwrap_or_else(|| size(events));
    [
        i64::try_from(events.len()).unwrap_or(i64::MAX),
        i64::try_from(size).unwrap_or(i64::MAX),
        fan_out(events),
    ]
}

shape! {
    #[derive(Debug)]
    struct Group {
        parallel_group_id: Text,
        parallel_group_size: Any,
    }
}

/// The widest group of steps started together; each group counts by its first readable size.
fn fan_out(events: &[HistoryEvent]) -> i64 {
    let mut seen = HashSet::new();
    let mut widest = 0;
    for event in events {
        let payload = event.payload.as_deref();
        if !payload.is_some_and(|text| text.contains("parallel_group_id")) {
            continue;
        }
        let group: Group = loose::read(payload);
        let size = group.parallel_group_size.as_ref().and_then(|size| {
            let quoted = size.as_str().and_then(|text| text.trim().parse().ok());
            #[expect(
                clippy::cast_possible_truncation,
                reason = "as the engine's own integer cast"
            )]
            size.as_i64()
                .or_else(|| size.as_f64().or(quoted).map(|size| size as i64))
        });
        if let (Some(id), Some(size)) = (group.parallel_group_id.0, size)
            && seen.insert(id)
        {
            widest = widest.max(size);
        }
    }
    widest
}

/// What a payload that cannot be read weighs: PHP reads it as an empty list, `[]`.
const EMPTY: usize = 2;

/// How long a payload is as the engine weighs it: compact JSON, slashes and non-ASCII unescaped.
/// Measured on the stored text, which each database formats and escapes its own way.
fn compact_len(text: Option<&str>) -> usize {
    let Some(text) = text else {
        return EMPTY;
    };
    if text.trim() == "null" || !loose::is_json(text) {
        return EMPTY;
    }
    let mut bytes = text.bytes();
    let mut len = 0;
    let mut inside = false;
    while let Some(byte) = bytes.next() {
        match (inside, byte) {
            (false, b' ' | b'\n' | b'\r' | b'\t') => {}
            (_, b'"') => {
                inside = !inside;
                len += 1;
            }
            (true, b'\\') => match bytes.next() {
                Some(b'/') => len += 1,
                Some(b'u') => {
                    let hex: u32 = (&mut bytes).take(4).fold(0, |sum, digit| {
                        sum * 16 + char::from(digit).to_digit(16).unwrap_or(0)
                    });
                    len += unescaped_len(hex);
                }
                _ => len += 2,
            },
            (true, 0xE2) => {
                // U+2028 and U+2029 stay escaped: E2 80 A8 and E2 80 A9.
                let (second, third) = (bytes.next(), bytes.next());
                len += match (second, third) {
                    (Some(0x80), Some(0xA8 | 0xA9)) => 6,
                    _ => 3,
                };
            }
            _ => len += 1,
        }
    }
    len
}

/// What one `\uXXXX` becomes; a surrogate is half of a four-byte character.
fn unescaped_len(unit: u32) -> usize {
    match unit {
        0x22 | 0x5C | 0x08 | 0x09 | 0x0A | 0x0C | 0x0D | 0x80..=0x7FF | 0xD800..=0xDFFF => 2,
        0..=0x1F | 0x2028 | 0x2029 => 6,
        0x20..=0x7F => 1,
        _ => 3,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pressure_names_the_dimensions_over_the_highest_mark_reached() {
        use Dimension::{EventCount, FanOut, SizeBytes};
        use Pressure::{Approaching, ContinueAsNewRecommended, Ok};
        for (counters, pressure, dimensions) in [
            ([7_999, 4_194_303, 159], Ok, vec![]),
            ([8_000, 0, 0], Approaching, vec![EventCount]),
            (
                [8_000, 4_194_304, 160],
                Approaching,
                vec![EventCount, SizeBytes, FanOut],
            ),
            ([8_000, 0, 200], ContinueAsNewRecommended, vec![FanOut]),
            (
                [10_000, 5_242_880, 0],
                ContinueAsNewRecommended,
                vec![EventCount, SizeBytes],
            ),
        ] {
            let budget = judged(counters, &EngineConfig::defaults());
            assert_eq!(budget.history_budget_pressure, pressure, "{counters:?}");
            assert_eq!(
                budget.history_budget_pressure_dimensions, dimensions,
                "{counters:?}"
            );
            assert_eq!(
                budget.continue_as_new_recommended,
                pressure == ContinueAsNewRecommended
            );
        }
    }

    #[test]
    fn stored_counters_hold_while_they_are_of_all_events() {
        use crate::durable::{
            projection::example::{event, history, told},
            store::snapshot::RunSnapshot,
            stored::{EventType, RunSummary},
        };
        let weighed = i64::try_from("WorkflowStarted".len() + "{}".len()).unwrap();
        for (count, size, shown) in [
            (1, 400, 400),
            // Written before the events were, or by an engine that did not weigh them.
            (0, 0, weighed),
            (1, 0, weighed),
            (2, 900, weighed),
        ] {
            let snapshot = RunSnapshot {
                events: history(vec![event(1, EventType::WorkflowStarted, &json!({}))]),
                summary: Some(RunSummary {
                    history_event_count: count,
                    history_size_bytes: size,
                    ..RunSummary::default()
                }),
                ..RunSnapshot::default()
            };
            let size = told(&snapshot, |cx| current(cx).history_size_bytes);
            assert_eq!(size, shown, "{count} {size}");
        }
    }

    #[test]
    fn marks_are_clamped_and_zero_switches_off() {
        use Pressure::{Approaching, ContinueAsNewRecommended, Ok};
        for (hard, warning, count, pressure) in [
            (json!(0), json!(5), 99, Ok),
            (json!(-1), json!(5), 99, Ok),
            (json!(10), json!(50), 10, ContinueAsNewRecommended),
            (json!(10), json!(50), 9, Ok),
            (json!(10), json!(0), 9, Ok),
            (json!("10"), json!(" 5 "), 5, Approaching),
            (json!("many"), json!(null), 8_000, Approaching),
        ] {
            let config = EngineConfig::of(&json!({"history_budget": {
                "continue_as_new_event_threshold": hard, "event_warning_threshold": warning,
            }}));
            let budget = judged([count, 0, 0], &config);
            assert_eq!(
                budget.history_budget_pressure, pressure,
                "{hard} {warning} {count}"
            );
        }
    }

    #[test]
    fn a_payload_weighs_what_the_engine_would_write() {
        for (stored, compact) in [
            (
                r#"{"a": 1, "b": [true, null]}"#,
                r#"{"a":1,"b":[true,null]}"#,
            ),
            (r#"{"a":" x  y "}"#, r#"{"a":" x  y "}"#),
            (r#"{"a":"\/tmp\/x"}"#, r#"{"a":"/tmp/x"}"#),
            (r#"{"a":"\u00e9\u20ac\ud83d\ude00"}"#, "{\"a\":\"é€😀\"}"),
            (r#"{"a":"é"}"#, "{\"a\":\"é\"}"),
            ("{\"a\":\"\u{2028}€\"}", "{\"a\":\"\\u2028€\"}"),
            (r#"{"a":"\u2029\u0001\u000a"}"#, r#"{"a":"\u2029\u0001\n"}"#),
            (r#"{"a":"\"\\u0041"}"#, r#"{"a":"\"\\u0041"}"#),
            ("null", "[]"),
            (r#"{"a":"cut"#, "[]"),
            ("", "[]"),
        ] {
            assert_eq!(compact_len(Some(stored)), compact.len(), "{stored}");
        }
        assert_eq!(compact_len(None), 2);
    }
}
