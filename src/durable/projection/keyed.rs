//! Things collected by id from events that come in any number and order.

use std::{borrow::Cow, collections::HashMap};

/// So many are found by looking through them.
const FEW: usize = 8;

/// A list whose things are found by id, in the order they were first met.
#[derive(Debug)]
pub(super) struct Keyed<'a, T> {
    things: Vec<(Cow<'a, str>, T)>,
    /// Where each stands, of more than a few.
    places: HashMap<Cow<'a, str>, usize>,
}

impl<T> Default for Keyed<'_, T> {
    fn default() -> Self {
        Self {
            things: Vec::new(),
            places: HashMap::new(),
        }
    }
}

impl<'a, T> Keyed<'a, T> {
    /// With room for as many as there will likely be.
    pub fn with_capacity(things: usize) -> Self {
        Self {
            things: Vec::with_capacity(things),
            places: HashMap::with_capacity(things),
        }
    }

    pub fn contains(&self, id: &str) -> bool {
        self.place(id).is_some()
    }

    /// The thing of this id, made first if it is met for the first time.
    pub fn entry(&mut self, id: Cow<'a, str>, make: impl FnOnce(Cow<'a, str>) -> T) -> &mut T {
        let at = match self.place(&id) {
            Some(at) => at,
            None => self.push(id, make),
        };
        &mut self.things[at].1
    }

    fn place(&self, id: &str) -> Option<usize> {
        if self.things.len() > FEW {
            self.places.get(id).copied()
        } else {
            self.things.iter().position(|(known, _)| known == id)
        }
    }

    fn push(&mut self, id: Cow<'a, str>, make: impl FnOnce(Cow<'a, str>) -> T) -> usize {
        let at = self.things.len();
        if at == 0 {
            // Thousands of such lists hold a single thing.
            self.things.reserve_exact(1);
        }
        self.things.push((id.clone(), make(id)));
        let unplaced = match at {
            ..FEW => at + 1,
            FEW => 0,
            _ => at,
        };
        for (at, (id, _)) in self.things.iter().enumerate().skip(unplaced) {
            self.places.insert(id.clone(), at);
        }
        at
    }

    pub fn into_values(self) -> impl Iterator<Item = T> {
        self.things.into_iter().map(|(_, thing)| thing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_are_found_by_id_however_many_there_are() {
        let mut squares = Keyed::default();
        for _ in 0..2 {
            for n in 0..3 * FEW {
                let id = Cow::Owned(n.to_string());
                assert_eq!(*squares.entry(id, |_| n * n), n * n);
                assert!(squares.contains(&n.to_string()) && !squares.contains("none"));
            }
        }
        let all: Vec<usize> = squares.into_values().collect();
        assert_eq!(all, (0..3 * FEW).map(|n| n * n).collect::<Vec<_>>());
    }
}
