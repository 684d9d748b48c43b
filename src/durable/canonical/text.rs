//! The canonical text of a JSON text, numbers as they are written there.

use super::{Map, Twice, plain_bytes, write_float, write_integer, write_text};

/// How deep a document may nest: what PHP's own reader takes.
const DEPTH: usize = 512;
/// How deep a part may nest that others must be able to read inside a document.
const SHALLOW: usize = 64;

/// Why a text has no canonical form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason} at byte {at}")]
pub struct NotJson {
    pub at: usize,
    pub reason: &'static str,
}

/// Appends the canonical form of a JSON text.
pub fn write_json(out: &mut Vec<u8>, text: &[u8]) -> Result<(), NotJson> {
    write_within(out, text, DEPTH)
}

/// The same if it does not nest deep.
pub fn write_shallow(out: &mut Vec<u8>, text: &[u8]) -> Result<(), NotJson> {
    write_within(out, text, SHALLOW)
}

fn write_within(out: &mut Vec<u8>, text: &[u8], limit: usize) -> Result<(), NotJson> {
    let start = out.len();
    let mut reader = Reader {
        text,
        at: 0,
        out,
        limit,
    };
    let done = reader.document();
    if done.is_err() {
        out.truncate(start);
    }
    done
}

struct Reader<'t, 'o> {
    text: &'t [u8],
    at: usize,
    out: &'o mut Vec<u8>,
    limit: usize,
}

impl<'t> Reader<'t, '_> {
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
        if depth >= self.limit {
            return self.wrong("nested too deep");
        }
        self.space();
        match self.peek() {
            Some(b'{') => self.map(depth),
            Some(b'[') => self.list(depth),
            Some(b'"') => self.text(),
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
        let mut map = Map::open(self.out, 16);
        self.space();
        if self.peek() == Some(b'}') {
            self.at += 1;
        } else {
            loop {
                self.space();
                if self.peek() != Some(b'"') {
                    return self.wrong("a key is missing");
                }
                if let Some(key) = self.plain() {
                    map.key(self.out, key, true);
                } else {
                    let key = self.string()?;
                    map.key(self.out, key.as_bytes(), false);
                }
                self.space();
                if self.peek() != Some(b':') {
                    return self.wrong("a key goes on with a colon");
                }
                self.at += 1;
                self.value(depth + 1)?;
                map.valued(self.out);
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
        match map.close(self.out) {
            Ok(()) => Ok(()),
            Err(Twice) => self.wrong("a key stands twice in a map"),
        }
    }

    fn text(&mut self) -> Result<(), NotJson> {
        if let Some(plain) = self.plain() {
            self.out.push(b'"');
            self.out.extend_from_slice(plain);
            self.out.push(b'"');
        } else {
            let text = self.string()?;
            write_text(self.out, &text);
        }
        Ok(())
    }

    /// A string in which nothing needs another form, as most are.
    fn plain(&mut self) -> Option<&'t [u8]> {
        let rest = &self.text[self.at + 1..];
        let end = plain_bytes(rest);
        (rest.get(end) == Some(&b'"')).then(|| {
            self.at += end + 2;
            &rest[..end]
        })
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
            write_integer(self.out, n);
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
