//! Events that end a step or a run badly, and the one that says a failure was caught.

use crate::durable::stored::loose::{Any, Flag, Int, Text, shape};

shape! {
    /// What a failure event says of its failure.
    #[derive(Clone, Debug)]
    pub struct FailureEvent {
        pub failure_id: Text,
        pub source_kind: Text,
        pub source_id: Text,
        pub activity_execution_id: Text,
        pub child_workflow_run_id: Text,
        pub update_id: Text,
        pub timeout_kind: Text,
        pub reason: Text,
        pub failure_category: Text,
        pub non_retryable: Flag,
        pub exception_type: Text,
        pub exception_class: Text,
        pub message: Text,
        pub code: Int,
        /// An object, or an encoded string in old data.
        pub exception: Any,
        pub structural_limit_kind: Text,
        pub structural_limit_value: Int,
        pub structural_limit_configured: Int,
    }
}

shape! {
    /// Which failure, and nothing else.
    #[derive(Clone, Debug)]
    pub struct FailureName {
        pub failure_id: Text,
    }
}
