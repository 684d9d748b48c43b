//! Steps that were started together.

use serde::Serialize;
use serde_json::Value;

/// The innermost group of a step, and the path to it, outermost first.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ParallelGroup {
    pub parallel_group_kind: Option<String>,
    pub parallel_group_id: Option<String>,
    pub parallel_group_base_sequence: Option<i64>,
    pub parallel_group_size: Option<i64>,
    pub parallel_group_index: Option<i64>,
    pub parallel_group_path: Vec<Value>,
}
