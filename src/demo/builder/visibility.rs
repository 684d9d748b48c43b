//! What workflow code notes about itself: memo, search attributes, side effects, versions.

use serde_json::{Value as Json, json};

use super::model::{Attribute, Memo};
use super::{RunBuilder, blob, object};

impl RunBuilder {
    pub fn upsert_memo(&mut self, entries: &[(&str, Json)]) -> &mut Self {
        let task = self.work();
        let sequence = self.next_step();
        for (key, value) in entries {
            self.memos.retain(|memo| memo.key != *key);
            self.memos.push(Memo {
                key: (*key).to_owned(),
                value: value.clone(),
                sequence,
            });
        }
        let payload = json!({
            "sequence": sequence,
            "entries": object(entries.iter().map(|(k, v)| ((*k).to_owned(), v.clone()))),
            "merged": object(self.memos.iter().map(|m| (m.key.clone(), m.value.clone()))),
        });
        self.event("MemoUpserted", payload, Some(&task), None);
        self
    }

    pub fn upsert_attributes(&mut self, entries: &[(&str, &'static str, Json)]) -> &mut Self {
        let task = self.work();
        let sequence = self.next_step();
        for (key, kind, value) in entries {
            self.attributes.retain(|attribute| attribute.key != *key);
            self.attributes.push(Attribute {
                key: (*key).to_owned(),
                kind,
                value: value.clone(),
                sequence,
            });
        }
        let payload = json!({
            "sequence": sequence,
            "attributes": object(entries.iter().map(|(k, _, v)| ((*k).to_owned(), v.clone()))),
            "merged": object(self.attributes.iter().map(|a| (a.key.clone(), a.value.clone()))),
        });
        self.event("SearchAttributesUpserted", payload, Some(&task), None);
        self
    }

    pub fn side_effect(&mut self, result: &Json) -> &mut Self {
        let task = self.work();
        let sequence = self.next_step();
        let payload = json!({"sequence": sequence, "result": blob(result)});
        self.event("SideEffectRecorded", payload, Some(&task), None);
        self
    }

    pub fn version(&mut self, change: &str, version: u32) -> &mut Self {
        let task = self.work();
        let sequence = self.next_step();
        let payload = json!({
            "sequence": sequence,
            "change_id": change,
            "version": version,
            "min_supported": 1,
            "max_supported": version,
        });
        self.event("VersionMarkerRecorded", payload, Some(&task), None);
        self
    }
}
