//! What happened when, as rows of bars.

#[derive(Clone, Debug, PartialEq)]
pub struct Timeline {}
