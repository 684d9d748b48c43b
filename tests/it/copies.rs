//! One situation many times over, each time another run.

use std::collections::HashMap;

use plimsoll::{db::Val, demo::Situation};
use ulid::Ulid;

/// The same rows under ids of their own.
pub fn copy(situation: &Situation, n: usize) -> Situation {
    let mut ids: HashMap<&str, String> = HashMap::new();
    for row in &situation.rows {
        for (column, value) in &row.cells {
            let Val::Text(id) = value else { continue };
            let is_id = *column == "id" || column.ends_with("_id");
            if !is_id || id.len() != ulid::ULID_LEN || ids.contains_key(id.as_str()) {
                continue;
            }
            // The engine writes some ids in upper case.
            let new = Ulid::generate().to_string();
            let is_upper = *id == id.to_uppercase();
            ids.insert(id, if is_upper { new } else { new.to_lowercase() });
        }
    }
    let instance_id = format!("{}-copy-{n}", situation.instance_id);
    ids.insert(&situation.instance_id, instance_id.clone());
    let mut rows = situation.rows.clone();
    for (_, value) in rows.iter_mut().flat_map(|row| &mut row.cells) {
        if let Val::Text(text) = value {
            for (id, new) in &ids {
                if text.contains(id) {
                    *text = text.replace(id, new);
                }
            }
        }
    }
    Situation {
        run_id: ids[situation.run_id.as_str()].clone(),
        instance_id,
        rows,
        ..*situation
    }
}
