//! The bundle as text: canonical as it is written.

use serde::Serialize;

use super::entry::Written;
use crate::durable::canonical;

/// How much text leaves at once.
const PIECE: usize = 64 * 1024;
/// Room for the entry that fills a piece.
const ROOM: usize = PIECE + 16 * 1024;

/// Members must come in the order of their keys.
#[derive(Debug)]
pub struct Writer {
    out: Vec<u8>,
    /// Whether the next member or item is the first of its map or list.
    first: bool,
}

impl Default for Writer {
    fn default() -> Self {
        Self {
            out: vec![b'{'],
            first: true,
        }
    }
}

impl Writer {
    /// A member of the map that is open.
    pub fn member(&mut self, key: &'static str, value: &(impl Serialize + ?Sized)) {
        self.key(key);
        canonical::write(&mut self.out, value);
    }

    pub fn item(&mut self, value: &(impl Serialize + ?Sized)) {
        self.comma();
        canonical::write(&mut self.out, value);
    }

    pub fn entry(&mut self, entry: &impl Written) {
        self.comma();
        entry.write(&mut self.out);
    }

    /// An item whose canonical text is known.
    pub fn text(&mut self, canonical: &[u8]) {
        self.comma();
        self.out.extend_from_slice(canonical);
    }

    /// A member that is JSON already. False, and nothing is written, when it is not, or so deep
    /// that readers give up.
    pub fn json(&mut self, key: &'static str, text: &str) -> bool {
        let (start, first) = (self.out.len(), self.first);
        self.key(key);
        let done = canonical::write_shallow(&mut self.out, text.as_bytes()).is_ok();
        if !done {
            self.out.truncate(start);
            self.first = first;
        }
        done
    }

    pub fn open_item(&mut self) {
        self.comma();
        self.open(b'{');
    }

    pub fn open_list(&mut self, key: &'static str) {
        self.key(key);
        self.open(b'[');
    }

    pub fn close_list(&mut self) {
        self.close(b']');
    }

    pub fn open_map(&mut self, key: &'static str) {
        self.key(key);
        self.open(b'{');
    }

    pub fn close_map(&mut self) {
        self.close(b'}');
    }

    fn key(&mut self, key: &'static str) {
        self.comma();
        self.out.push(b'"');
        self.out.extend_from_slice(key.as_bytes());
        self.out.extend_from_slice(b"\":");
    }

    fn comma(&mut self) {
        if !std::mem::take(&mut self.first) {
            self.out.push(b',');
        }
    }

    fn open(&mut self, with: u8) {
        self.out.push(with);
        self.first = true;
    }

    fn close(&mut self, with: u8) {
        self.out.push(with);
        self.first = false;
    }

    /// What was written since the last time, once it is worth sending.
    pub fn piece(&mut self) -> Option<Vec<u8>> {
        if self.out.len() < PIECE {
            return None;
        }
        let room = Vec::with_capacity(ROOM);
        Some(std::mem::replace(&mut self.out, room))
    }

    /// The rest of the text, but for the bracket that closes it.
    pub fn finish(self) -> Vec<u8> {
        self.out
    }
}
