//! What a workflow declared when it started.

use serde::Deserialize;

use crate::durable::stored::loose::{Any, present};

/// The nine contract keys of `WorkflowStarted`. Whether a key is there at all matters.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct DeclaredContract {
    #[serde(deserialize_with = "present")]
    pub declared_queries: Option<Any>,
    #[serde(deserialize_with = "present")]
    pub declared_query_contracts: Option<Any>,
    #[serde(deserialize_with = "present")]
    pub declared_signals: Option<Any>,
    #[serde(deserialize_with = "present")]
    pub declared_signal_contracts: Option<Any>,
    #[serde(deserialize_with = "present")]
    pub declared_updates: Option<Any>,
    #[serde(deserialize_with = "present")]
    pub declared_update_contracts: Option<Any>,
    #[serde(deserialize_with = "present")]
    pub declared_entry_method: Option<Any>,
    #[serde(deserialize_with = "present")]
    pub declared_entry_mode: Option<Any>,
    #[serde(deserialize_with = "present")]
    pub declared_entry_declaring_class: Option<Any>,
}

impl DeclaredContract {
    pub fn has_any_key(&self) -> bool {
        [
            &self.declared_queries,
            &self.declared_query_contracts,
            &self.declared_signals,
            &self.declared_signal_contracts,
            &self.declared_updates,
            &self.declared_update_contracts,
            &self.declared_entry_method,
            &self.declared_entry_mode,
            &self.declared_entry_declaring_class,
        ]
        .into_iter()
        .any(Option::is_some)
    }
}
