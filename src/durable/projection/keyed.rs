//! Things collected by id from events that come in any number and order.

use std::collections::HashMap;

/// A list whose things are found by id, in the order they were first met.
#[derive(Debug)]
pub(super) struct Keyed<T> {
    things: Vec<T>,
    by_id: HashMap<String, usize>,
}

impl<T> Default for Keyed<T> {
    fn default() -> Self {
        Self {
            things: Vec::new(),
            by_id: HashMap::new(),
        }
    }
}

impl<T> Keyed<T> {
    /// With room for as many as there will likely be.
    pub fn with_capacity(things: usize) -> Self {
        Self {
            things: Vec::with_capacity(things),
            by_id: HashMap::with_capacity(things),
        }
    }

    pub fn contains(&self, id: &str) -> bool {
        self.by_id.contains_key(id)
    }

    /// The thing of this id, made first if it is met for the first time.
    pub fn entry(&mut self, id: &str, make: impl FnOnce(String) -> T) -> &mut T {
        let at = self.by_id.get(id).copied().unwrap_or_else(|| {
            self.by_id.insert(id.to_owned(), self.things.len());
            self.things.push(make(id.to_owned()));
            self.things.len() - 1
        });
        &mut self.things[at]
    }

    pub fn into_values(self) -> Vec<T> {
        self.things
    }
}
