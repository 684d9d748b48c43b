//! Who takes tasks.

/// A worker as its lease names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Worker {
    Named(String),
    /// One of those that listen to a queue: they have no names, and the lease holds this instead.
    OfQueue(String),
}
