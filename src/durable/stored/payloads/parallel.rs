//! The six keys that place a step in a parallel group. Many payloads carry them, each beside
//! its own keys: `#[serde(flatten)]` would buffer the whole payload to share them.

use serde_json::Value;

/// The keys as written, borrowed from whatever payload has them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GroupKeys<'p> {
    pub id: Option<&'p str>,
    pub kind: Option<&'p str>,
    pub base_sequence: Option<i64>,
    pub size: Option<i64>,
    pub index: Option<i64>,
    pub path: Option<&'p Value>,
}

impl<'p> GroupKeys<'p> {
    /// One entry of a path; what is no object has no keys.
    pub fn of_value(entry: &'p Value) -> Self {
        let int = |key: &str| entry.get(key).and_then(Value::as_i64);
        let text = |key: &str| entry.get(key).and_then(Value::as_str);
        Self {
            id: text("parallel_group_id"),
            kind: text("parallel_group_kind"),
            base_sequence: int("parallel_group_base_sequence"),
            size: int("parallel_group_size"),
            index: int("parallel_group_index"),
            path: entry.get("parallel_group_path"),
        }
    }
}

/// A payload with the six keys among its fields.
pub trait Grouped {
    fn group_keys(&self) -> GroupKeys<'_>;
}

/// Implements [`Grouped`] for shapes that have the six fields by their engine names.
macro_rules! grouped {
    ($($shape:ty),+ $(,)?) => {$(
        impl $crate::durable::stored::payloads::parallel::Grouped for $shape {
            fn group_keys(&self) -> $crate::durable::stored::payloads::parallel::GroupKeys<'_> {
                $crate::durable::stored::payloads::parallel::GroupKeys {
                    id: self.parallel_group_id.as_deref(),
                    kind: self.parallel_group_kind.as_deref(),
                    base_sequence: self.parallel_group_base_sequence.strict(),
                    size: self.parallel_group_size.strict(),
                    index: self.parallel_group_index.strict(),
                    path: self.parallel_group_path.as_ref(),
                }
            }
        }
    )+};
}
pub(crate) use grouped;
