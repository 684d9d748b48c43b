//! What events say about the runs a run comes from and the runs it started.

use serde::Deserialize;

use crate::durable::stored::loose::{Any, Int, Text};

/// `WorkflowStarted`: where the run comes from.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
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

/// `WorkflowContinuedAsNew`: the run that goes on.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ContinuedAsNew {
    pub sequence: Int,
    pub continued_to_run_id: Text,
    pub continued_to_run_number: Int,
    pub workflow_link_id: Text,
}

/// `ChildWorkflowScheduled`, `ChildRunStarted` and the four events by which a child ends.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
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

/// `ParentClosePolicyApplied` and `ParentClosePolicyFailed`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ParentClose {
    pub child_run_id: Text,
    pub policy: Text,
    pub reason: Text,
    pub error: Text,
}

super::parallel::grouped!(ChildEvent);

/// Where in the workflow's code a step was taken.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct StepTaken {
    pub sequence: Int,
}
