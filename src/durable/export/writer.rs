//! The bundle as text: canonical as it is written, sealed as it leaves.

use serde::Serialize;

use super::seal::{Sealer, SigningKey};
use crate::durable::canonical;

/// How much text leaves at once.
const PIECE: usize = 64 * 1024;

/// Members must come in the order of their keys; what is written is hashed when it leaves.
#[derive(Debug)]
pub struct Writer {
    out: Vec<u8>,
    sealer: Sealer,
    key_id: Option<String>,
    /// Whether the next member or item is the first of its map or list.
    first: bool,
}

impl Writer {
    pub fn new(key: Option<&SigningKey>) -> Self {
        Self {
            out: vec![b'{'],
            sealer: Sealer::new(key),
            key_id: key.and_then(|key| key.id.clone()),
            first: true,
        }
    }

    /// A member of the map that is open.
    pub fn member(&mut self, key: &'static str, value: &(impl Serialize + ?Sized)) {
        self.key(key);
        canonical::write(&mut self.out, value);
    }

    pub fn item(&mut self, value: &(impl Serialize + ?Sized)) {
        self.comma();
        canonical::write(&mut self.out, value);
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

    /// What was written since the last time, now part of the seal, once it is worth sending.
    pub fn piece(&mut self) -> Option<Vec<u8>> {
        if self.out.len() < PIECE {
            return None;
        }
        self.sealer.update(&self.out);
        let room = Vec::with_capacity(self.out.capacity());
        Some(std::mem::replace(&mut self.out, room))
    }

    /// The end of the text, with the seal over all the rest, and its checksum.
    pub fn finish(mut self) -> (Vec<u8>, String) {
        // The seal is over the document without its own member.
        self.sealer.update(&self.out);
        self.sealer.update(b"}");
        let sealed = self.sealer.finish();
        let mut end = self.out;
        end.extend_from_slice(b",\"integrity\":");
        canonical::write(&mut end, &sealed.integrity(self.key_id.as_deref()));
        end.extend_from_slice(b"}\n");
        (end, sealed.checksum)
    }
}
