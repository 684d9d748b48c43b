//! What a workflow declared when it started.

use crate::durable::stored::loose::{Any, Noted, shape};

shape! {
    /// The nine contract keys of `WorkflowStarted`. Whether a key is there at all matters.
    #[derive(Clone, Debug)]
    pub struct DeclaredContract {
        pub declared_queries: Noted<Any>,
        pub declared_query_contracts: Noted<Any>,
        pub declared_signals: Noted<Any>,
        pub declared_signal_contracts: Noted<Any>,
        pub declared_updates: Noted<Any>,
        pub declared_update_contracts: Noted<Any>,
        pub declared_entry_method: Noted<Any>,
        pub declared_entry_mode: Noted<Any>,
        pub declared_entry_declaring_class: Noted<Any>,
    }
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
        .any(|key| key.present)
    }
}
