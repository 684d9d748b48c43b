//! `json-recursive-ksort-v1`: the one text of a document that its seal is computed over.
//!
//! PHP defines it: maps and lists are the same thing, an empty one is a list, keys are sorted by
//! their bytes, and a float keeps its fraction. The same text comes out of a value and out of
//! any JSON text of that value.

use serde_json::{Map, Number, Value};

/// How deep a document may nest: what PHP's own reader takes.
const DEPTH: usize = 512;

/// Why a text has no canonical form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason} at byte {at}")]
pub struct NotJson {
    pub at: usize,
    pub reason: &'static str,
}

/// Appends the canonical text of a value.
pub fn write(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Number(number) => write_number(out, number),
        Value::String(text) => write_text(out, text),
        Value::Array(items) => {
            out.push(b'[');
            for (n, item) in items.iter().enumerate() {
                if n > 0 {
                    out.push(b',');
                }
                write(out, item);
            }
            out.push(b']');
        }
        Value::Object(map) => write_map(out, map),
    }
}

fn write_map(out: &mut Vec<u8>, map: &Map<String, Value>) {
    let mut members: Vec<(&String, &Value)> = map.iter().collect();
    let mut list = counts_up(members.iter().map(|(key, _)| key.as_bytes()));
    if !list {
        members.sort_unstable_by_key(|(key, _)| key.as_bytes());
        list = counts_up(members.iter().map(|(key, _)| key.as_bytes()));
    }
    out.push(if list { b'[' } else { b'{' });
    for (n, (key, value)) in members.into_iter().enumerate() {
        if n > 0 {
            out.push(b',');
        }
        if !list {
            write_text(out, key);
            out.push(b':');
        }
        write(out, value);
    }
    out.push(if list { b']' } else { b'}' });
}

/// Whether the keys are 0, 1, 2 and so on: to PHP that is a list, and so is no key at all.
fn counts_up<'k>(keys: impl Iterator<Item = &'k [u8]>) -> bool {
    let mut text = [0; 20];
    for (n, key) in keys.enumerate() {
        if key != decimal(&mut text, n) {
            return false;
        }
    }
    true
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

fn write_number(out: &mut Vec<u8>, number: &Number) {
    match (number.as_i64(), number.as_f64()) {
        (Some(n), _) => out.extend_from_slice(n.to_string().as_bytes()),
        (None, Some(n)) => write_float(out, n),
        (None, None) => out.extend_from_slice(b"null"),
    }
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
fn write_text(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let mut rest = text;
    loop {
        let bytes = rest.as_bytes();
        let plain = bytes
            .iter()
            .position(|b| *b < 0x20 || *b >= 0x80 || *b == b'"' || *b == b'\\')
            .unwrap_or(bytes.len());
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

/// Appends the canonical form of a JSON text, numbers as they are written there.
pub fn write_json(out: &mut Vec<u8>, text: &[u8]) -> Result<(), NotJson> {
    let start = out.len();
    let mut reader = Reader { text, at: 0, out };
    let done = reader.document();
    if done.is_err() {
        out.truncate(start);
    }
    done
}

struct Reader<'t> {
    text: &'t [u8],
    at: usize,
    out: &'t mut Vec<u8>,
}

/// One member of a map: its key, and where its value stands in the output.
struct Member {
    key: String,
    from: usize,
    to: usize,
}

impl Reader<'_> {
    fn wrong<T>(&self, reason: &'static str) -> Result<T, NotJson> {
        Err(NotJson {
            at: self.at,
            reason,
        })
    }

    fn document(&mut self) -> Result<(), NotJson> {
        self.value(0)?;
        self.space();
        if self.at < self.text.len() {
            return self.wrong("text after the document");
        }
        Ok(())
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn value(&mut self, depth: usize) -> Result<(), NotJson> {
        if depth >= DEPTH {
            return self.wrong("nested too deep");
        }
        self.space();
        match self.peek() {
            Some(b'{') => self.map(depth),
            Some(b'[') => self.list(depth),
            Some(b'"') => {
                let text = self.string()?;
                write_text(self.out, &text);
                Ok(())
            }
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word(b"true"),
            Some(b'f') => self.word(b"false"),
            Some(b'n') => self.word(b"null"),
            Some(_) => self.wrong("not a JSON value"),
            None => self.wrong("the text ends too early"),
        }
    }

    fn word(&mut self, word: &'static [u8]) -> Result<(), NotJson> {
        if self.text[self.at..].starts_with(word) {
            self.at += word.len();
            self.out.extend_from_slice(word);
            return Ok(());
        }
        self.wrong("not a JSON value")
    }

    fn list(&mut self, depth: usize) -> Result<(), NotJson> {
        self.at += 1;
        self.out.push(b'[');
        self.space();
        if self.peek() == Some(b']') {
            self.at += 1;
            self.out.push(b']');
            return Ok(());
        }
        loop {
            self.value(depth + 1)?;
            self.space();
            match self.peek() {
                Some(b',') => {
                    self.at += 1;
                    self.out.push(b',');
                }
                Some(b']') => {
                    self.at += 1;
                    self.out.push(b']');
                    return Ok(());
                }
                _ => return self.wrong("a list goes on with a comma or ends"),
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<(), NotJson> {
        self.at += 1;
        let start = self.out.len();
        let mut members: Vec<Member> = Vec::new();
        self.space();
        if self.peek() == Some(b'}') {
            self.at += 1;
        } else {
            loop {
                self.space();
                if self.peek() != Some(b'"') {
                    return self.wrong("a key is missing");
                }
                let key = self.string()?;
                self.space();
                if self.peek() != Some(b':') {
                    return self.wrong("a key goes on with a colon");
                }
                self.at += 1;
                let from = self.out.len() - start;
                self.value(depth + 1)?;
                members.push(Member {
                    key,
                    from,
                    to: self.out.len() - start,
                });
                self.space();
                match self.peek() {
                    Some(b',') => self.at += 1,
                    Some(b'}') => {
                        self.at += 1;
                        break;
                    }
                    _ => return self.wrong("a map goes on with a comma or ends"),
                }
            }
        }
        self.arrange(start, members)
    }

    /// Puts a map's values, written one after another from `start`, into their order.
    fn arrange(&mut self, start: usize, mut members: Vec<Member>) -> Result<(), NotJson> {
        let values = self.out.split_off(start);
        let keys = |members: &[Member]| counts_up(members.iter().map(|m| m.key.as_bytes()));
        let mut list = keys(&members);
        if !list {
            members.sort_by(|a, b| a.key.as_bytes().cmp(b.key.as_bytes()));
            // Readers disagree on which of the two counts: no seal can stand for that.
            if members.windows(2).any(|two| two[0].key == two[1].key) {
                return self.wrong("a key stands twice in a map");
            }
            list = keys(&members);
        }
        self.out.push(if list { b'[' } else { b'{' });
        for (n, member) in members.iter().enumerate() {
            if n > 0 {
                self.out.push(b',');
            }
            if !list {
                write_text(self.out, &member.key);
                self.out.push(b':');
            }
            self.out.extend_from_slice(&values[member.from..member.to]);
        }
        self.out.push(if list { b']' } else { b'}' });
        Ok(())
    }

    /// A string, its escapes resolved.
    fn string(&mut self) -> Result<String, NotJson> {
        self.at += 1;
        let mut bytes = Vec::new();
        loop {
            let rest = &self.text[self.at..];
            let plain = rest
                .iter()
                .position(|b| *b == b'"' || *b == b'\\' || *b < 0x20);
            let Some(plain) = plain else {
                return self.wrong("a string does not end");
            };
            bytes.extend_from_slice(&rest[..plain]);
            self.at += plain;
            match rest[plain] {
                b'"' => {
                    self.at += 1;
                    break;
                }
                b'\\' => self.escape(&mut bytes)?,
                _ => return self.wrong("a control character in a string"),
            }
        }
        String::from_utf8(bytes).or_else(|_| self.wrong("not UTF-8"))
    }

    fn escape(&mut self, bytes: &mut Vec<u8>) -> Result<(), NotJson> {
        let c = match self.text.get(self.at + 1) {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.at += 2;
                return self.code_point(bytes);
            }
            _ => return self.wrong("an unknown escape"),
        };
        self.at += 2;
        bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        Ok(())
    }

    fn code_point(&mut self, bytes: &mut Vec<u8>) -> Result<(), NotJson> {
        let first = self.unit()?;
        let c = if (0xd800..0xdc00).contains(&first) {
            if !self.text[self.at..].starts_with(b"\\u") {
                return self.wrong("half a surrogate pair");
            }
            self.at += 2;
            let second = self.unit()?;
            char::decode_utf16([first, second]).next()
        } else {
            char::decode_utf16([first]).next()
        };
        match c {
            Some(Ok(c)) => {
                bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                Ok(())
            }
            _ => self.wrong("half a surrogate pair"),
        }
    }

    fn unit(&mut self) -> Result<u16, NotJson> {
        let digits = self.text.get(self.at..self.at + 4);
        let unit = digits
            .filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u16::from_str_radix(digits, 16).ok());
        match unit {
            Some(unit) => {
                self.at += 4;
                Ok(unit)
            }
            None => self.wrong("an unknown escape"),
        }
    }

    fn number(&mut self) -> Result<(), NotJson> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits()?,
            _ => return self.wrong("not a number"),
        }
        let mut integer = true;
        if self.peek() == Some(b'.') {
            integer = false;
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            integer = false;
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        let text = std::str::from_utf8(&self.text[start..self.at]).unwrap_or("0");
        if integer && let Ok(n) = text.parse::<i64>() {
            self.out.extend_from_slice(n.to_string().as_bytes());
            return Ok(());
        }
        match text.parse::<f64>() {
            Ok(n) if n.is_finite() => {
                write_float(self.out, n);
                Ok(())
            }
            _ => self.wrong("a number beyond all floats"),
        }
    }

    fn digits(&mut self) -> Result<(), NotJson> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start {
            return self.wrong("a digit is missing");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
