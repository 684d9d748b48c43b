//! Entries of a bundle that must wait for their place, kept compressed.
//!
//! What is folded from history comes in the order of history and leaves in an order of its own.
//! Entries of one kind repeat the same keys, so that packed they are a tenth of their size.

use std::io::{Read as _, Write as _};

use flate2::{Compression, read::DeflateDecoder, write::DeflateEncoder};
use serde::Serialize;
use serde_json::Value;

use super::canonical;

/// How much text is packed together.
const BLOCK: usize = 64 * 1024;
/// How many unpacked blocks are kept at hand: entries leave nearly in the order they came.
const AT_HAND: usize = 8;

/// Entries under a key they are taken back by.
#[derive(Debug)]
pub struct Spool<K> {
    blocks: Vec<Vec<u8>>,
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
            blocks: Vec::new(),
            open: Vec::new(),
            places: Vec::new(),
            sorted: false,
            at_hand: Vec::new(),
        }
    }
}

impl<K: Ord> Spool<K> {
    pub fn push(&mut self, key: K, entry: &impl Serialize) {
        let from = self.open.len();
        canonical::write(&mut self.open, entry);
        let place = Place {
            block: at(self.blocks.len()),
            from: at(from),
            to: at(self.open.len()),
        };
        self.places.push((key, place));
        if self.open.len() >= BLOCK {
            self.pack();
        }
    }

    fn pack(&mut self) {
        let mut packed = DeflateEncoder::new(Vec::new(), Compression::fast());
        let _ = packed.write_all(&self.open);
        self.blocks.push(packed.finish().unwrap_or_default());
        self.open.clear();
    }

    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// The entry at a position of the order of keys.
    pub fn get(&mut self, n: usize) -> Option<Value> {
        serde_json::from_slice(self.text(n)?).ok()
    }

    /// The same as its canonical text.
    pub fn text(&mut self, n: usize) -> Option<&[u8]> {
        if !self.sorted {
            if !self.open.is_empty() {
                self.pack();
            }
            self.places.sort_by(|(a, _), (b, _)| a.cmp(b));
            self.sorted = true;
        }
        let (_, place) = self.places.get(n)?;
        let place = *place;
        let text = self.block(place.block)?;
        text.get(place.from as usize..place.to as usize)
    }

    fn block(&mut self, n: u32) -> Option<&[u8]> {
        let found = self.at_hand.iter().position(|(of, _)| *of == n);
        let at = if let Some(at) = found {
            at
        } else {
            let mut text = Vec::with_capacity(BLOCK * 2);
            DeflateDecoder::new(self.blocks.get(n as usize)?.as_slice())
                .read_to_end(&mut text)
                .ok()?;
            if self.at_hand.len() >= AT_HAND {
                self.at_hand.remove(0);
            }
            self.at_hand.push((n, text));
            self.at_hand.len() - 1
        };
        self.at_hand.get(at).map(|(_, text)| text.as_slice())
    }
}

/// Positions inside a block and numbers of blocks are small; one that is not finds nothing.
fn at(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn entries_come_back_in_the_order_of_their_keys() {
        let mut spool = Spool::default();
        let long = "x".repeat(1_000);
        for n in 0..1_000_i64 {
            spool.push(
                (n * 7919) % 1_000,
                &json!({"n": (n * 7919) % 1_000, "long": long}),
            );
        }
        let packed: usize = spool.blocks.iter().map(Vec::len).sum();
        assert!(packed < 100_000, "{packed}");
        for n in 0..1_000_usize {
            assert_eq!(spool.get(n).unwrap()["n"], n);
        }
        assert_eq!(spool.get(1_000), None);
    }
}
