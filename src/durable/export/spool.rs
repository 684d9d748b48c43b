//! Entries of a bundle that must wait for their place, in a file without a name.
//!
//! What is folded from history comes in the order of history and leaves in an order of its own.
//! Nothing but where each entry stands is held in memory. The file has no name: it is gone with
//! the export, however that ends.

use std::{
    cmp::Ordering,
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
};

use serde::{Serialize, de::DeserializeOwned};
use tempfile::SpooledTempFile;

use crate::durable::canonical;

/// How much is written, and read back, together.
const BLOCK: usize = 32 * 1024;
/// How many blocks are kept at hand: entries leave nearly in the order they came.
const AT_HAND: usize = 4;
/// As much as a short run has of one kind needs no file.
const IN_MEMORY: usize = 4 * BLOCK;

/// Entries under a key they are taken back by.
#[derive(Debug)]
pub struct Spool<K> {
    file: SpooledTempFile,
    /// Where each block of the file begins.
    blocks: Vec<u64>,
    end: u64,
    /// What comes next into the file.
    open: Vec<u8>,
    places: Vec<(K, Place)>,
    sorted: bool,
    at_hand: Vec<(u32, Vec<u8>)>,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    block: u32,
    from: u32,
    to: u32,
}

impl<K> Default for Spool<K> {
    fn default() -> Self {
        Self {
            file: SpooledTempFile::new(IN_MEMORY),
            blocks: Vec::new(),
            end: 0,
            open: Vec::new(),
            places: Vec::new(),
            sorted: false,
            at_hand: Vec::new(),
        }
    }
}

impl<K: Ord> Spool<K> {
    pub fn with_room(entries: usize) -> Self {
        Self {
            places: Vec::with_capacity(entries),
            ..Self::default()
        }
    }

    /// Keeps an entry as its canonical text.
    pub fn push(&mut self, key: K, entry: &impl Serialize) -> io::Result<()> {
        self.push_with(key, |out| canonical::write(out, entry))
    }

    /// Keeps what is appended.
    pub fn push_with(&mut self, key: K, append: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        let from = self.open.len();
        append(&mut self.open);
        let place = Place {
            block: at(self.blocks.len())?,
            from: at(from)?,
            to: at(self.open.len())?,
        };
        self.places.push((key, place));
        self.sorted = false;
        if self.open.len() >= BLOCK {
            self.store()?;
        }
        Ok(())
    }

    fn store(&mut self) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(self.end))?;
        self.file.write_all(&self.open)?;
        self.blocks.push(self.end);
        self.end += self.open.len() as u64;
        self.open.clear();
        Ok(())
    }

    pub fn len(&self) -> usize {
        self.places.len()
    }

    fn sort(&mut self) {
        if !self.sorted {
            self.places.sort_by(|(a, _), (b, _)| a.cmp(b));
            self.sorted = true;
        }
    }

    /// Every key, in order.
    pub fn keys(&mut self) -> impl Iterator<Item = &K> {
        self.sort();
        self.places.iter().map(|(key, _)| key)
    }

    pub fn key(&mut self, n: usize) -> Option<&K> {
        self.sort();
        self.places.get(n).map(|(key, _)| key)
    }

    /// Where in the order of keys the one stands that is neither before nor behind.
    pub fn find(&mut self, by: impl Fn(&K) -> Ordering) -> Option<usize> {
        self.sort();
        self.places.binary_search_by(|(key, _)| by(key)).ok()
    }

    /// The entry at a position of the order of keys.
    pub fn get<T: DeserializeOwned>(&mut self, n: usize) -> io::Result<Option<T>> {
        let text = self.text(n)?;
        Ok(text.and_then(|text| serde_json::from_slice(text).ok()))
    }

    /// The same as what was kept.
    pub fn text(&mut self, n: usize) -> io::Result<Option<&[u8]>> {
        self.sort();
        if !self.open.is_empty() {
            self.store()?;
        }
        let Some((_, place)) = self.places.get(n) else {
            return Ok(None);
        };
        let place = *place;
        let block = self.block(place.block)?;
        Ok(block.get(place.from as usize..place.to as usize))
    }

    fn block(&mut self, n: u32) -> io::Result<&[u8]> {
        let found = self.at_hand.iter().position(|(of, _)| *of == n);
        let at = match found {
            Some(at) => at,
            None => self.fetch(n)?,
        };
        Ok(&self.at_hand[at].1)
    }

    fn fetch(&mut self, n: u32) -> io::Result<usize> {
        let mut bounds = self.blocks[n as usize..].iter().copied().chain([self.end]);
        let (from, to) = (bounds.next().unwrap_or(0), bounds.next().unwrap_or(0));
        // The longest at hand gives its room to the next.
        let mut block = if self.at_hand.len() < AT_HAND {
            Vec::new()
        } else {
            self.at_hand.remove(0).1
        };
        block.resize(usize::try_from(to - from).unwrap_or(0), 0);
        self.file.seek(SeekFrom::Start(from))?;
        self.file.read_exact(&mut block)?;
        self.at_hand.push((n, block));
        Ok(self.at_hand.len() - 1)
    }
}

/// Positions inside a block and numbers of blocks are small.
fn at(n: usize) -> io::Result<u32> {
    u32::try_from(n).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn entries_come_back_in_the_order_of_their_keys() {
        let mut spool = Spool::default();
        let long = "x".repeat(1_000);
        for n in 0..1_000_i64 {
            let key = (n * 7919) % 1_000;
            spool.push(key, &json!({"n": key, "long": long})).unwrap();
        }
        assert!(spool.file.is_rolled());
        for n in 0..1_000_usize {
            let entry: Value = spool.get(n).unwrap().unwrap();
            assert_eq!(entry["n"], n);
        }
        assert_eq!(spool.get::<Value>(1_000).unwrap(), None);
    }

    #[test]
    fn what_is_added_after_a_look_is_found_too() {
        let mut spool = Spool::default();
        for n in 0..3 {
            spool.push((), &n).unwrap();
            let text = spool.text(n).unwrap().map(<[u8]>::to_vec);
            assert_eq!(text, Some(n.to_string().into_bytes()));
        }
        assert!(!spool.file.is_rolled());
    }
}
