//! A stored value that could not be taken as it stands, for the notice area of a page.

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Table and column: "workflow_runs.status".
    pub place: String,
    /// The row's id; empty where it is about more than one.
    pub row: String,
    /// What is wrong, after the name of the place.
    pub problem: String,
    /// The value as stored, shortened.
    pub raw: Option<String>,
}
