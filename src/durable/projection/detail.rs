//! The engine's run detail, key for key, put together from the concepts.

use serde_json::{Map, Value, json};

use super::{budget, context::Context, failures, timeline};

/// The whole document. `limit` keeps the last entries of the timeline.
pub fn detail(cx: Context<'_>, limit: Option<usize>) -> Value {
    let mut out = Map::new();
    out.insert("id".into(), json!(cx.snapshot.run.id));

    let failures = failures::failures(cx);
    let summary = cx.snapshot.summary.as_ref();
    let count = summary.map_or_else(|| json!(failures.len()), |s| json!(s.exception_count));
    out.insert("exception_count".into(), count.clone());
    out.insert("exceptions_count".into(), count);
    let exceptions = failures::exceptions(cx, &failures);
    out.insert("exceptions".into(), json!(exceptions));
    if let Value::Object(budget) = json!(budget::budget(cx)) {
        out.extend(budget);
    }
    let entries = timeline::timeline(cx, &failures, limit);
    out.insert("timeline".into(), json!(entries));
    let total = cx.snapshot.events.len();
    out.insert("timeline_total_count".into(), json!(total));

    Value::Object(out)
}
