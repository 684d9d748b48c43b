//! Entries of a bundle whose keys are known: written in their order as they stand, with no look
//! at any key. There are several for every event, and most of their members are null.

use std::borrow::Cow;

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::durable::{
    canonical,
    projection::{context::write_stamp, policies::RetryPolicy},
};

/// What writes itself as canonical text.
pub trait Written {
    fn write(&self, out: &mut Vec<u8>);

    /// The same behind the key of a member, or the member as it is with nothing in it.
    fn write_member(&self, out: &mut Vec<u8>, key: &'static str, _null: &'static str) {
        out.extend_from_slice(key.as_bytes());
        self.write(out);
    }
}

/// What is written by its [`Serialize`].
pub struct Other<'a, T>(pub &'a T);

/// What is canonical text already.
pub struct Canonical<'a>(pub &'a [u8]);

/// An entry of these keys, which must stand in the order of a bundle.
macro_rules! entry {
    ($first:literal: $value:expr, $($key:literal: $next:expr,)+) => {{
        const { $crate::durable::export::entry::in_order(&[$first, $($key),+]) };
        $crate::durable::export::entry::Entry(move |out: &mut Vec<u8>| {
            use $crate::durable::export::entry::Written as _;
            let (key, null) = (concat!("{\"", $first, "\":"), concat!("{\"", $first, "\":null"));
            $value.write_member(out, key, null);
            $(
                let (key, null) = (concat!(",\"", $key, "\":"), concat!(",\"", $key, "\":null"));
                $next.write_member(out, key, null);
            )+
            out.push(b'}');
        })
    }};
}
pub(super) use entry;

pub struct Entry<F>(pub F);

impl<F: Fn(&mut Vec<u8>)> Written for Entry<F> {
    fn write(&self, out: &mut Vec<u8>) {
        (self.0)(out);
    }
}

/// Asserts, while compiling, that keys stand in the order of their bytes.
pub const fn in_order(keys: &[&str]) {
    let mut n = 1;
    while n < keys.len() {
        assert!(before(keys[n - 1].as_bytes(), keys[n].as_bytes()));
        n += 1;
    }
}

const fn before(a: &[u8], b: &[u8]) -> bool {
    let mut at = 0;
    while at < a.len() && at < b.len() {
        if a[at] != b[at] {
            return a[at] < b[at];
        }
        at += 1;
    }
    a.len() < b.len()
}

impl<T: Serialize> Written for Other<'_, T> {
    fn write(&self, out: &mut Vec<u8>) {
        canonical::write(out, self.0);
    }
}

impl Written for Canonical<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.0);
    }
}

impl<T: Written + ?Sized> Written for &T {
    fn write(&self, out: &mut Vec<u8>) {
        (**self).write(out);
    }

    fn write_member(&self, out: &mut Vec<u8>, key: &'static str, null: &'static str) {
        (**self).write_member(out, key, null);
    }
}

impl<T: Written> Written for Option<T> {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Some(value) => value.write(out),
            None => out.extend_from_slice(b"null"),
        }
    }

    fn write_member(&self, out: &mut Vec<u8>, key: &'static str, null: &'static str) {
        match self {
            Some(value) => value.write_member(out, key, null),
            None => out.extend_from_slice(null.as_bytes()),
        }
    }
}

impl<T: Written> Written for [T] {
    fn write(&self, out: &mut Vec<u8>) {
        out.push(b'[');
        for (n, item) in self.iter().enumerate() {
            if n > 0 {
                out.push(b',');
            }
            item.write(out);
        }
        out.push(b']');
    }
}

impl<T: Written> Written for Vec<T> {
    fn write(&self, out: &mut Vec<u8>) {
        self.as_slice().write(out);
    }
}

impl Written for str {
    fn write(&self, out: &mut Vec<u8>) {
        canonical::write_text(out, self);
    }
}

impl Written for String {
    fn write(&self, out: &mut Vec<u8>) {
        self.as_str().write(out);
    }
}

impl Written for Cow<'_, str> {
    fn write(&self, out: &mut Vec<u8>) {
        self.as_ref().write(out);
    }
}

impl Written for RetryPolicy {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.canonical());
    }
}

impl Written for i64 {
    fn write(&self, out: &mut Vec<u8>) {
        canonical::write_integer(out, *self);
    }
}

impl Written for bool {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(if *self { b"true" } else { b"false" });
    }
}

/// As the engine writes a moment.
impl Written for DateTime<Utc> {
    fn write(&self, out: &mut Vec<u8>) {
        out.push(b'"');
        write_stamp(out, *self);
        out.push(b'"');
    }
}
