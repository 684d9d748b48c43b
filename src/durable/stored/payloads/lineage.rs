//! What events say about the runs a run comes from and the runs it started.

use crate::durable::stored::loose::{Any, Int, Text, shape};

shape! {
    /// `WorkflowStarted`: where the run comes from.
    #[derive(Clone, Debug)]
    pub struct Origin {
        pub workflow_definition_fingerprint: Text,
        pub continued_from_run_id: Text,
        pub parent_workflow_instance_id: Text,
        pub parent_workflow_run_id: Text,
        pub parent_sequence: Int,
        pub workflow_link_id: Text,
        pub child_call_id: Text,
        pub sequence: Int,
    }
}

shape! {
    /// `WorkflowContinuedAsNew`: the run that goes on.
    #[derive(Clone, Debug)]
    pub struct ContinuedAsNew {
        pub sequence: Int,
        pub continued_to_run_id: Text,
        pub continued_to_run_number: Int,
        pub workflow_link_id: Text,
    }
}

shape! {
    /// `ChildWorkflowScheduled`, `ChildRunStarted` and the four events by which a child ends.
    #[derive(Clone, Debug)]
    pub struct ChildEvent {
        pub sequence: Int,
        pub child_call_id: Text,
        pub workflow_link_id: Text,
        pub child_workflow_instance_id: Text,
        pub child_workflow_run_id: Text,
        pub child_workflow_class: Text,
        pub child_workflow_type: Text,
        pub child_run_number: Int,
        pub child_status: Text,
        pub closed_reason: Text,
        pub parallel_group_id: Text,
        pub parallel_group_kind: Text,
        pub parallel_group_base_sequence: Int,
        pub parallel_group_size: Int,
        pub parallel_group_index: Int,
        pub parallel_group_path: Any,
    }
}

shape! {
    /// `ParentClosePolicyApplied` and `ParentClosePolicyFailed`.
    #[derive(Clone, Debug)]
    pub struct ParentClose {
        pub child_run_id: Text,
        pub policy: Text,
        pub reason: Text,
        pub error: Text,
    }
}

super::parallel::grouped!(ChildEvent);

shape! {
    /// Where in the workflow's code a step was taken.
    #[derive(Debug)]
    pub struct StepTaken {
        pub sequence: Int,
    }
}
