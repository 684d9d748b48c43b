//! The groups a step was started in.

use serde_json::{Value, json};

use crate::durable::{
    projection::parallel::ParallelGroup, stored::payloads::timeline::TimelineEvent,
};

/// The path if the event has a readable one, else its flat keys as a path of one.
pub(super) fn of(told: &TimelineEvent) -> ParallelGroup {
    let mut path: Vec<ParallelGroup> = told
        .parallel_group_path
        .as_ref()
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|step| {
            let text = |key: &str| step.get(key).and_then(Value::as_str).map(str::to_owned);
            let int = |key: &str| step.get(key).and_then(Value::as_i64);
            whole(ParallelGroup {
                parallel_group_kind: text("parallel_group_kind"),
                parallel_group_id: text("parallel_group_id"),
                parallel_group_base_sequence: int("parallel_group_base_sequence"),
                parallel_group_size: int("parallel_group_size"),
                parallel_group_index: int("parallel_group_index"),
                parallel_group_path: Vec::new(),
            })
        })
        .collect();
    if path.is_empty() {
        path.extend(whole(ParallelGroup {
            parallel_group_kind: told.parallel_group_kind.0.clone(),
            parallel_group_id: told.parallel_group_id.0.clone(),
            parallel_group_base_sequence: told.parallel_group_base_sequence.strict(),
            parallel_group_size: told.parallel_group_size.strict(),
            parallel_group_index: told.parallel_group_index.strict(),
            parallel_group_path: Vec::new(),
        }));
    }
    let steps = path.iter().map(step).collect();
    path.pop()
        .map_or_else(ParallelGroup::default, |innermost| ParallelGroup {
            parallel_group_path: steps,
            ..innermost
        })
}

/// A group counts only when every one of its keys is known; its id tells its kind.
fn whole(group: ParallelGroup) -> Option<ParallelGroup> {
    let by_id = |id: &str| match id.split_once(':')?.0 {
        "parallel-activities" => Some("activity"),
        "parallel-calls" => Some("mixed"),
        "parallel-timers" => Some("timer"),
        "parallel-children" => Some("child"),
        _ => None,
    };
    let kind = group
        .parallel_group_kind
        .or_else(|| by_id(group.parallel_group_id.as_deref()?).map(str::to_owned))?;
    group.parallel_group_id.as_ref()?;
    group.parallel_group_base_sequence?;
    group.parallel_group_index?;
    group.parallel_group_size.filter(|size| *size >= 1)?;
    Some(ParallelGroup {
        parallel_group_kind: Some(kind),
        ..group
    })
}

fn step(group: &ParallelGroup) -> Value {
    json!({
        "parallel_group_id": group.parallel_group_id,
        "parallel_group_kind": group.parallel_group_kind,
        "parallel_group_base_sequence": group.parallel_group_base_sequence,
        "parallel_group_size": group.parallel_group_size,
        "parallel_group_index": group.parallel_group_index,
    })
}
