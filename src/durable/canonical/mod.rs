//! `json-recursive-ksort-v1`: the one text of a document that its seal is computed over.
//!
//! PHP defines it: maps and lists are the same thing, an empty one is a list, keys are sorted by
//! their bytes, and a float keeps its fraction. The same text comes out of a value and out of
//! any JSON text of that value, and neither is held as a tree on the way.

mod parts;
mod text;
mod value;

use std::cell::RefCell;

pub use self::{
    parts::{items, members},
    text::{NotJson, write_json, write_shallow},
    value::write,
};

/// One member of a map: where its key and its value stand in the output.
#[derive(Clone, Copy)]
struct Member {
    key: usize,
    key_end: usize,
    /// The key needs no escapes: it may stay between its quotes as it was written.
    plain: bool,
    value: usize,
    end: usize,
}

/// A key stands twice in a map.
struct Twice;

/// A map as it is written. While its keys come in their order it stands there as it shall be;
/// otherwise its members are moved when all of them are there.
struct Map {
    start: usize,
    members: Vec<Member>,
    in_order: bool,
}

impl Map {
    fn open(out: &mut Vec<u8>, room: usize) -> Self {
        let start = out.len();
        out.push(b'{');
        Self {
            start,
            members: Vec::with_capacity(room),
            in_order: true,
        }
    }

    /// What stands between a member and the next.
    fn next(&self, out: &mut Vec<u8>) {
        if !self.members.is_empty() {
            out.push(b',');
        }
    }

    /// Writes a key, not escaped. Its value comes next.
    fn key(&mut self, out: &mut Vec<u8>, key: &[u8], plain: bool) {
        self.next(out);
        out.push(b'"');
        out.extend_from_slice(key);
        out.push(b'"');
        self.named(out, key.len(), plain);
    }

    /// The key that was just written between quotes, and whether it needs no escapes.
    fn named(&mut self, out: &mut Vec<u8>, length: usize, plain: bool) {
        let key_end = out.len() - 1;
        let member = Member {
            key: key_end - length,
            key_end,
            plain,
            value: key_end + 2,
            end: key_end + 2,
        };
        out.push(b':');
        let behind = match self.members.last() {
            Some(last) => key(out, last) < key(out, &member),
            // It may be a list.
            None => key(out, &member) != b"0",
        };
        self.in_order = self.in_order && plain && behind;
        self.members.push(member);
    }

    /// The value of the last key is written.
    fn valued(&mut self, out: &[u8]) {
        if let Some(last) = self.members.last_mut() {
            last.end = out.len();
        }
    }

    fn close(mut self, out: &mut Vec<u8>) -> Result<(), Twice> {
        if self.in_order && !self.members.is_empty() {
            out.push(b'}');
            return Ok(());
        }
        arrange(out, self.start, &mut self.members)
    }
}

/// Puts the members of a map, written from `start` on, into their order and between brackets.
fn arrange(out: &mut Vec<u8>, start: usize, members: &mut [Member]) -> Result<(), Twice> {
    let raw = out.len();
    let mut list = counts_up(out, members);
    if !list {
        put_in_order(out, members);
        // Readers disagree on which of the two counts: no seal can stand for that.
        if members
            .windows(2)
            .any(|two| key(out, &two[0]) == key(out, &two[1]))
        {
            return Err(Twice);
        }
        list = counts_up(out, members);
    }
    out.push(if list { b'[' } else { b'{' });
    for (n, member) in members.iter().enumerate() {
        if n > 0 {
            out.push(b',');
        }
        match (list, member.plain) {
            (true, _) => out.extend_from_within(member.value..member.end),
            // Key and value, with all that stands around them.
            (false, true) => out.extend_from_within(member.key - 1..member.end),
            (false, false) => {
                let text = String::from_utf8_lossy(key(out, member)).into_owned();
                write_text(out, &text);
                out.push(b':');
                out.extend_from_within(member.value..member.end);
            }
        }
    }
    out.push(if list { b']' } else { b'}' });
    out.copy_within(raw.., start);
    out.truncate(start + out.len() - raw);
    Ok(())
}

/// Entries of one kind come one after the other, with the same keys in the same order: the order
/// that was right for as many members the last time is tried first.
fn put_in_order(out: &[u8], members: &mut [Member]) {
    thread_local! {
        static LAST: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
    }
    let count = members.len();
    if count > usize::from(u8::MAX) {
        members.sort_unstable_by(|a, b| key(out, a).cmp(key(out, b)));
        return;
    }
    LAST.with_borrow_mut(|last| {
        if last.len() <= count {
            last.resize(count + 1, Vec::new());
        }
        let order = &mut last[count];
        let of = |at: &u8| key(out, &members[usize::from(*at)]);
        if order.is_empty() || !order.is_sorted_by(|a, b| of(a) < of(b)) {
            order.clear();
            order.extend((0..=u8::MAX).take(count));
            order.sort_unstable_by(|a, b| of(a).cmp(of(b)));
        }
        let sorted: Vec<Member> = order.iter().map(|at| members[usize::from(*at)]).collect();
        members.copy_from_slice(&sorted);
    });
}

#[inline]
fn key<'o>(out: &'o [u8], member: &Member) -> &'o [u8] {
    &out[member.key..member.key_end]
}

/// A byte that stands for itself in a string.
#[inline]
fn is_plain(byte: u8) -> bool {
    matches!(byte, 0x20..0x80) && byte != b'"' && byte != b'\\'
}

/// How many bytes stand for themselves before the first that does not. Payloads are long: eight
/// are looked at together.
#[inline]
fn plain_bytes(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::MAX / 255;
    const TOPS: u64 = ONES << 7;
    let (eights, _) = bytes.as_chunks::<8>();
    let plain = eights
        .iter()
        .take_while(|eight| {
            let eight = u64::from_ne_bytes(**eight);
            // The top bit of a byte is set where it is too small, or beyond ASCII; a borrow from
            // the byte before may set one too many, never one too few. With its second bit
            // turned, a quote stands right behind the control characters.
            let low = (eight ^ (ONES * 0x02)).wrapping_sub(ONES * 0x21);
            let escape = (eight ^ (ONES * u64::from(b'\\'))).wrapping_sub(ONES);
            (low | escape | eight) & TOPS == 0
        })
        .count()
        * 8;
    let rest = bytes[plain..].iter().take_while(|byte| is_plain(**byte));
    plain + rest.count()
}

/// Whether the keys are 0, 1, 2 and so on: to PHP that is a list, and so is no key at all.
fn counts_up(out: &[u8], members: &[Member]) -> bool {
    let mut text = [0; 20];
    members
        .iter()
        .enumerate()
        .all(|(n, member)| key(out, member) == decimal(&mut text, n))
}

fn decimal(text: &mut [u8; 20], mut n: usize) -> &[u8] {
    let mut at = text.len();
    loop {
        at -= 1;
        text[at] = b'0' + u8::try_from(n % 10).unwrap_or(0);
        n /= 10;
        if n == 0 {
            return &text[at..];
        }
    }
}

pub fn write_integer(out: &mut Vec<u8>, n: i64) {
    if n < 0 {
        out.push(b'-');
    }
    let n = usize::try_from(n.unsigned_abs()).unwrap_or(usize::MAX);
    out.extend_from_slice(decimal(&mut [0; 20], n));
}

/// The shortest digits that read back as the same float, with a fraction always.
fn write_float(out: &mut Vec<u8>, n: f64) {
    let text = format!("{n:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa),
    };
    let digits = mantissa.replace('.', "");
    out.extend_from_slice(sign.as_bytes());
    // Where the point stands relative to the first digit.
    let point = exponent + 1;
    let plain = match point {
        -3..=0 => {
            let zeros = "0".repeat(usize::try_from(-point).unwrap_or(0));
            format!("0.{zeros}{digits}")
        }
        1..=17 => {
            let point = usize::try_from(point).unwrap_or(1);
            if digits.len() <= point {
                format!("{digits}{}.0", "0".repeat(point - digits.len()))
            } else {
                format!("{}.{}", &digits[..point], &digits[point..])
            }
        }
        _ => {
            let rest = if digits.len() > 1 { &digits[1..] } else { "0" };
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{}.{rest}e{sign}{}", &digits[..1], exponent.abs())
        }
    };
    out.extend_from_slice(plain.as_bytes());
}

/// A quoted string, pure ASCII: what is beyond is escaped, a slash is not.
pub fn write_text(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let mut rest = text;
    loop {
        let bytes = rest.as_bytes();
        let plain = plain_bytes(bytes);
        out.extend_from_slice(&bytes[..plain]);
        rest = &rest[plain..];
        let Some(c) = rest.chars().next() else {
            break;
        };
        match c {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\u{8}' => out.extend_from_slice(b"\\b"),
            '\u{c}' => out.extend_from_slice(b"\\f"),
            '\n' => out.extend_from_slice(b"\\n"),
            '\r' => out.extend_from_slice(b"\\r"),
            '\t' => out.extend_from_slice(b"\\t"),
            c => {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    out.extend_from_slice(b"\\u");
                    for shift in [12, 8, 4, 0] {
                        let digit = usize::from(*unit >> shift & 0xf);
                        out.push(b"0123456789abcdef"[digit]);
                    }
                }
            }
        }
        rest = &rest[c.len_utf8()..];
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of_value(value: &Value) -> String {
        let mut out = Vec::new();
        write(&mut out, value);
        String::from_utf8(out).unwrap()
    }

    fn of_text(text: &str) -> Result<String, NotJson> {
        let mut out = Vec::new();
        write_json(&mut out, text.as_bytes())?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn numbers_are_printed_as_php_prints_them() {
        for (text, want) in [
            ("1.0", "1.0"),
            ("-0.0", "-0.0"),
            ("0.0", "0.0"),
            ("-0", "0"),
            ("1e15", "1000000000000000.0"),
            ("1e16", "10000000000000000.0"),
            ("1e17", "1.0e+17"),
            ("123456789012345678.0", "1.2345678901234568e+17"),
            ("9223372036854775807", "9223372036854775807"),
            ("9223372036854775808", "9.223372036854776e+18"),
            ("-9223372036854775809", "-9.223372036854776e+18"),
            ("0.0001", "0.0001"),
            ("0.00001", "1.0e-5"),
            ("1.23e-7", "1.23e-7"),
            ("5e-324", "5.0e-324"),
            ("1.7976931348623157e308", "1.7976931348623157e+308"),
            ("0.30000000000000004", "0.30000000000000004"),
            ("0.5", "0.5"),
            ("12345.678", "12345.678"),
            ("1e2", "100.0"),
        ] {
            assert_eq!(of_text(text).unwrap(), want, "{text}");
            if text != "-0" {
                let value: Value = serde_json::from_str(text).unwrap();
                assert_eq!(of_value(&value), want, "{text}");
            }
        }
    }

    #[test]
    fn maps_are_sorted_by_bytes_and_lists_are_what_counts_up() {
        for (text, want) in [
            ("{}", "[]"),
            ("[ ]", "[]"),
            (
                r#"{"a":1,"_":2,"B":3,"é":4}"#,
                r#"{"B":3,"_":2,"a":1,"\u00e9":4}"#,
            ),
            (r#"{"9":1,"10":2}"#, r#"{"10":2,"9":1}"#),
            (r#"{"1":"b","0":"a"}"#, r#"["a","b"]"#),
            (r#"{"01":1}"#, r#"{"01":1}"#),
            (r#"{"a":{"b":{},"a":[{}]}}"#, r#"{"a":{"a":[[]],"b":[]}}"#),
            (
                r#""/\u002f\u007f\u0000<é🚀\"\\\b""#,
                "\"//\u{7f}\\u0000<\\u00e9\\ud83d\\ude80\\\"\\\\\\b\"",
            ),
        ] {
            assert_eq!(of_text(text).unwrap(), want, "{text}");
            let value: Value = serde_json::from_str(text).unwrap();
            assert_eq!(of_value(&value), want, "{text}");
        }
        let eleven: Vec<String> = (0..11).map(|n| format!("\"{n}\":{n}")).collect();
        let eleven = format!("{{{}}}", eleven.join(","));
        assert_eq!(of_text(&eleven).unwrap(), "[0,1,2,3,4,5,6,7,8,9,10]");
        let twice = of_text(r#"{"a":1,"b":2,"a":3}"#).unwrap_err();
        assert_eq!(twice.reason, "a key stands twice in a map");
    }

    #[test]
    fn plain_bytes_end_before_the_first_that_is_not() {
        for other in (0..=u8::MAX).filter(|byte| !is_plain(*byte)) {
            for before in 0..20 {
                let mut text: Vec<u8> = (0x20..0x80).filter(|byte| is_plain(*byte)).collect();
                text.rotate_left(usize::from(other) % 90);
                text.insert(before, other);
                assert_eq!(plain_bytes(&text), before, "{other}");
            }
        }
        let plain: Vec<u8> = (0..=u8::MAX).filter(|byte| is_plain(*byte)).collect();
        for end in 0..plain.len() {
            assert_eq!(plain_bytes(&plain[..end]), end);
        }
    }

    #[test]
    fn what_is_no_json_is_told_with_its_place() {
        for text in [
            "",
            "{",
            "[1",
            "[1,]",
            "{\"a\"}",
            "{\"a\":}",
            "{a:1}",
            "01",
            "1.",
            "+1",
            "tru",
            "\"\\x\"",
            "\"\\ud800\"",
            "\"a\nb\"",
            "\"a",
            "1 2",
            "1e999",
            "nul",
            "-",
            "{\"a\":1,}",
        ] {
            assert!(of_text(text).is_err(), "{text}");
        }
        assert!(write_json(&mut Vec::new(), b"\"\xff\"").is_err());
        assert!(of_text(&"[".repeat(100_000)).is_err());
        assert_eq!(of_text("[1,x]").unwrap_err().at, 3);
    }

    #[test]
    fn the_worked_example_comes_out_byte_for_byte() {
        let document = r#"{"schema":"durable-workflow.v2.history-export","schema_version":1,"exported_at":"2026-01-02T03:10:00.000000Z","workflow":{"run_id":"01m7grze78t486ept2qktc7qre","business_key":null,"visibility_labels":[],"queue":"emails/high"},"history_events":[{"sequence":1,"type":"StartAccepted","payload":{"z":1,"a":{"ratio":2.0,"note":"café 🚀","empty":{},"list":[3,1,2]}}}],"redaction":{"paths":[],"policy":null,"applied":false},"B":true,"_x":0.00001}"#;
        let canonical = r#"{"B":true,"_x":1.0e-5,"exported_at":"2026-01-02T03:10:00.000000Z","history_events":[{"payload":{"a":{"empty":[],"list":[3,1,2],"note":"caf\u00e9 \ud83d\ude80","ratio":2.0},"z":1},"sequence":1,"type":"StartAccepted"}],"redaction":{"applied":false,"paths":[],"policy":null},"schema":"durable-workflow.v2.history-export","schema_version":1,"workflow":{"business_key":null,"queue":"emails/high","run_id":"01m7grze78t486ept2qktc7qre","visibility_labels":[]}}"#;
        assert_eq!(of_text(document).unwrap(), canonical);
        assert_eq!(
            of_value(&serde_json::from_str(document).unwrap()),
            canonical
        );
        assert_eq!(
            of_value(&json!({"a": u64::MAX})),
            r#"{"a":1.8446744073709552e+19}"#
        );
    }
}
