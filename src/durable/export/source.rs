//! A JSON document that may be longer than memory: where its parts stand, and their canonical
//! text, a piece at a time.

use std::io::{self, BufRead as _, BufReader, Read, Seek, SeekFrom};

use crate::durable::canonical::{self, NotJson};

/// A part up to this size is read as a whole.
const WHOLE: u64 = 256 * 1024;
/// No part that is taken as a text is longer.
const LONGEST: u64 = 64 * 1024 * 1024;
/// No key of a map that is longer than [`WHOLE`] is longer, and no number.
const KEY: u64 = 64 * 1024;
/// What is held of such maps at a time, those around it included: their keys and where their
/// members stand.
const HELD: usize = 16 * 1024 * 1024;
/// How deep parts longer than [`WHOLE`] may nest; each is looked over once for every level.
const DEPTH: usize = 160;

/// From, up to but without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub from: u64,
    pub to: u64,
}

impl Span {
    fn len(self) -> u64 {
        self.to - self.from
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("{reason} at byte {at}")]
    Json { at: u64, reason: &'static str },
}

#[derive(Debug)]
pub struct Source<R> {
    reader: BufReader<R>,
    at: u64,
    /// Of the maps whose members are being looked at.
    held: usize,
}

impl<R: Read + Seek> Source<R> {
    pub fn new(mut reader: R) -> io::Result<Self> {
        reader.seek(SeekFrom::Start(0))?;
        Ok(Self {
            reader: BufReader::with_capacity(128 * 1024, reader),
            at: 0,
            held: 0,
        })
    }

    fn wrong<T>(&self, reason: &'static str) -> Result<T, ReadError> {
        Err(ReadError::Json {
            at: self.at,
            reason,
        })
    }

    fn go(&mut self, to: u64) -> Result<(), ReadError> {
        let by = i64::try_from(to).unwrap_or(i64::MAX) - i64::try_from(self.at).unwrap_or(0);
        self.reader.seek_relative(by)?;
        self.at = to;
        Ok(())
    }

    fn peek(&mut self) -> Result<Option<u8>, ReadError> {
        Ok(self.reader.fill_buf()?.first().copied())
    }

    fn step(&mut self) {
        self.reader.consume(1);
        self.at += 1;
    }

    fn space(&mut self) -> Result<Option<u8>, ReadError> {
        loop {
            match self.peek()? {
                Some(b' ' | b'\t' | b'\n' | b'\r') => self.step(),
                other => return Ok(other),
            }
        }
    }

    /// Where the document stands; there is nothing else in the file.
    pub fn document(&mut self) -> Result<Span, ReadError> {
        self.go(0)?;
        let span = self.value()?;
        match self.space()? {
            None => Ok(span),
            Some(_) => self.wrong("text after the document"),
        }
    }

    /// Walks over one value. Whether it is well formed shows when it is read.
    fn value(&mut self) -> Result<Span, ReadError> {
        let Some(first) = self.space()? else {
            return self.wrong("the text ends too early");
        };
        let from = self.at;
        match first {
            b'{' | b'[' => self.container()?,
            b'"' => self.string()?,
            _ => loop {
                match self.peek()? {
                    None | Some(b',' | b']' | b'}' | b':' | b' ' | b'\t' | b'\n' | b'\r') => break,
                    Some(_) if self.at - from > KEY => {
                        return self.wrong("a number of more than 64 KB");
                    }
                    Some(_) => self.step(),
                }
            },
        }
        if self.at == from {
            return self.wrong("a value is missing");
        }
        Ok(Span { from, to: self.at })
    }

    fn container(&mut self) -> Result<(), ReadError> {
        let mut depth = 0_u64;
        loop {
            let buffer = self.reader.fill_buf()?;
            if buffer.is_empty() {
                return self.wrong("the text ends too early");
            }
            let plain = buffer
                .iter()
                .position(|b| matches!(b, b'{' | b'[' | b'}' | b']' | b'"'));
            let Some(plain) = plain else {
                let all = buffer.len();
                self.reader.consume(all);
                self.at += all as u64;
                continue;
            };
            let found = buffer[plain];
            self.reader.consume(plain);
            self.at += plain as u64;
            match found {
                b'"' => self.string()?,
                b'{' | b'[' => {
                    depth += 1;
                    self.step();
                }
                _ => {
                    depth -= 1;
                    self.step();
                    if depth == 0 {
                        return Ok(());
                    }
                }
            }
        }
    }

    fn string(&mut self) -> Result<(), ReadError> {
        self.step();
        loop {
            let buffer = self.reader.fill_buf()?;
            if buffer.is_empty() {
                return self.wrong("a string does not end");
            }
            let Some(plain) = buffer.iter().position(|b| matches!(b, b'"' | b'\\')) else {
                let all = buffer.len();
                self.reader.consume(all);
                self.at += all as u64;
                continue;
            };
            let quote = buffer[plain] == b'"';
            self.reader.consume(plain + 1);
            self.at += plain as u64 + 1;
            if quote {
                return Ok(());
            }
            if self.peek()?.is_none() {
                return self.wrong("a string does not end");
            }
            self.step();
        }
    }

    pub fn text(&mut self, span: Span) -> Result<Vec<u8>, ReadError> {
        if span.len() > LONGEST {
            self.at = span.from;
            return self.wrong("a single value of more than 64 MB");
        }
        self.go(span.from)?;
        let mut text = vec![0; usize::try_from(span.len()).unwrap_or(0)];
        self.reader.read_exact(&mut text)?;
        self.at = span.to;
        Ok(text)
    }

    pub fn first(&mut self, span: Span) -> Result<Option<u8>, ReadError> {
        self.go(span.from)?;
        self.peek()
    }

    /// The members of a map, in the order they stand there.
    pub fn members(&mut self, span: Span) -> Result<Vec<(String, Span)>, ReadError> {
        self.go(span.from + 1)?;
        let mut members = Vec::new();
        let mut held = self.held;
        if self.space()? == Some(b'}') {
            return Ok(members);
        }
        loop {
            if self.space()? != Some(b'"') {
                return self.wrong("a key is missing");
            }
            let key = self.value()?;
            if key.len() > KEY {
                self.at = key.from;
                return self.wrong("a key of more than 64 KB");
            }
            let text = self.text(key)?;
            let name: String = serde_json::from_slice(&text).or_else(|_| {
                self.at = key.from;
                self.wrong("a key is no string")
            })?;
            if self.space()? != Some(b':') {
                return self.wrong("a key goes on with a colon");
            }
            self.step();
            let value = self.value()?;
            held += cost(&name);
            members.push((name, value));
            if held > HELD {
                return self.wrong("a map of too many members, or of too long keys");
            }
            match self.space()? {
                Some(b',') => self.step(),
                Some(b'}') if self.at + 1 == span.to => return Ok(members),
                _ => return self.wrong("a map goes on with a comma or ends"),
            }
        }
    }

    /// The items of a list, several at a time, as the text between its brackets.
    pub fn items(
        &mut self,
        span: Span,
        mut with: impl FnMut(&mut Self, Items) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        self.go(span.from + 1)?;
        if self.space()? == Some(b']') {
            return Ok(());
        }
        let mut held: Option<Span> = None;
        loop {
            let item = self.value()?;
            let end = self.space()?;
            let after = self.at;
            held = match held {
                _ if item.len() > WHOLE => {
                    if let Some(held) = held {
                        let text = self.text(held)?;
                        with(self, Items::Several(held.from, text))?;
                    }
                    with(self, Items::Long(item))?;
                    None
                }
                Some(held) => Some(Span {
                    from: held.from,
                    to: item.to,
                }),
                None => Some(item),
            };
            if let Some(several) = held.filter(|held| held.len() > WHOLE || end == Some(b']')) {
                let text = self.text(several)?;
                with(self, Items::Several(several.from, text))?;
                held = None;
            }
            self.go(after)?;
            // What was at hand may be gone: a byte is stepped over only once it is seen again.
            match self.peek()? {
                Some(b',') => self.step(),
                Some(b']') if self.at + 1 == span.to => return Ok(()),
                _ => return self.wrong("a list goes on with a comma or ends"),
            }
        }
    }

    /// Gives the canonical text of a part to `take`, a piece at a time.
    pub fn canonical(
        &mut self,
        span: Span,
        depth: usize,
        take: &mut dyn FnMut(&[u8]),
    ) -> Result<(), ReadError> {
        if depth > DEPTH {
            self.at = span.from;
            return self.wrong("nested too deep");
        }
        let first = self.first(span)?;
        match first {
            Some(b'[') if span.len() > WHOLE => {
                take(b"[");
                let mut comma = false;
                self.items(span, |source, items| {
                    if std::mem::replace(&mut comma, true) {
                        take(b",");
                    }
                    match items {
                        Items::Long(item) => source.canonical(item, depth + 1, take),
                        Items::Several(from, text) => {
                            let list = canonical_of(
                                from.saturating_sub(1),
                                &[b"[", text.as_slice(), b"]"].concat(),
                            )?;
                            take(&list[1..list.len() - 1]);
                            Ok(())
                        }
                    }
                })?;
                take(b"]");
                Ok(())
            }
            Some(b'{') if span.len() > WHOLE => {
                let members = self.members(span)?;
                self.canonical_map(members, depth, take)
            }
            Some(b'"') if span.len() > WHOLE => self.long_string(span, take),
            _ => {
                let text = self.text(span)?;
                take(&canonical_of(span.from, &text)?);
                Ok(())
            }
        }
    }

    /// A string that is not read as a whole.
    fn long_string(&mut self, span: Span, take: &mut dyn FnMut(&[u8])) -> Result<(), ReadError> {
        take(b"\"");
        let (mut from, end) = (span.from + 1, span.to - 1);
        while from < end {
            let to = end.min(from + WHOLE);
            let mut text = self.text(Span { from, to })?;
            if to < end {
                text.truncate(whole_characters(&text));
            }
            if text.is_empty() {
                return self.wrong("not a string");
            }
            let quoted = [b"\"", text.as_slice(), b"\""].concat();
            let piece = canonical_of(from.saturating_sub(1), &quoted)?;
            take(&piece[1..piece.len() - 1]);
            from += text.len() as u64;
        }
        take(b"\"");
        Ok(())
    }

    /// A map of members that stand somewhere in the text.
    pub fn canonical_map(
        &mut self,
        mut members: Vec<(String, Span)>,
        depth: usize,
        take: &mut dyn FnMut(&[u8]),
    ) -> Result<(), ReadError> {
        let held: usize = members.iter().map(|(name, _)| cost(name)).sum();
        self.held += held;
        let mut list = counts_up(&members);
        if !list {
            members.sort_by(|a, b| a.0.as_bytes().cmp(b.0.as_bytes()));
            if let Some(two) = members.windows(2).find(|two| two[0].0 == two[1].0) {
                self.at = two[1].1.from;
                return self.wrong("a key stands twice in a map");
            }
            list = counts_up(&members);
        }
        take(if list { b"[" } else { b"{" });
        for (n, (key, value)) in members.into_iter().enumerate() {
            if n > 0 {
                take(b",");
            }
            if !list {
                let mut name = Vec::new();
                canonical::write(&mut name, &key);
                name.push(b':');
                take(&name);
            }
            self.canonical(value, depth + 1, take)?;
        }
        self.held -= held;
        take(if list { b"]" } else { b"}" });
        Ok(())
    }
}

/// What a member takes of memory.
fn cost(name: &str) -> usize {
    name.len() + size_of::<(String, Span)>()
}

/// How much of the inside of a string ends with a whole character or escape.
fn whole_characters(text: &[u8]) -> usize {
    let mut at = 0;
    while let Some(first) = text.get(at) {
        let rest = &text[at..];
        let long = match first {
            b'\\' if rest.get(1) != Some(&b'u') => 2,
            // The first half of a pair goes with the second.
            b'\\'
                if matches!(
                    rest.get(2..4),
                    Some([b'd' | b'D', b'8' | b'9' | b'a'..=b'b' | b'A'..=b'B'])
                ) =>
            {
                12
            }
            b'\\' => 6,
            0xc0..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0.. => 4,
            _ => 1,
        };
        if long > rest.len() {
            break;
        }
        at += long;
    }
    at
}

pub fn find(members: &[(String, Span)], name: &str) -> Option<Span> {
    members
        .iter()
        .rev()
        .find(|(key, _)| key == name)
        .map(|(_, span)| *span)
}

/// Items of a list: one too long to be read as a whole, or the text of several.
#[derive(Debug)]
pub enum Items {
    Long(Span),
    Several(u64, Vec<u8>),
}

fn counts_up(members: &[(String, Span)]) -> bool {
    members
        .iter()
        .enumerate()
        .all(|(n, (key, _))| *key == n.to_string())
}

fn canonical_of(from: u64, text: &[u8]) -> Result<Vec<u8>, ReadError> {
    let mut out = Vec::with_capacity(text.len());
    canonical::write_json(&mut out, text).map_err(|NotJson { at, reason }| ReadError::Json {
        at: from + at as u64,
        reason,
    })?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn of_file(text: &str) -> Result<Vec<u8>, ReadError> {
        let mut source = Source::new(Cursor::new(text))?;
        let document = source.document()?;
        let mut out = Vec::new();
        source.canonical(document, 0, &mut |piece| out.extend_from_slice(piece))?;
        Ok(out)
    }

    #[test]
    fn a_string_read_in_pieces_is_the_same_string() {
        // Of odd lengths, so that every kind of character meets the end of a piece.
        for unit in [
            "a",
            "é",
            "€",
            "🚀",
            "\\n",
            "\\u00e9",
            "\\ud83d\\ude80",
            "\\\"x",
            "\\\\",
        ] {
            for before in 0..13 {
                let many = usize::try_from(WHOLE).unwrap() * 2 / unit.len();
                let text = format!("\"{}{}\"", "x".repeat(before), unit.repeat(many));
                let mut whole = Vec::new();
                canonical::write_json(&mut whole, text.as_bytes()).unwrap();
                assert!(of_file(&text).unwrap() == whole, "{unit} after {before}");
            }
        }
        let cut = format!("[\"{}\\\"]", "x".repeat(600_000));
        assert!(of_file(&cut).is_err());
        let odd = format!("\"{}\\ud83d{}\"", "x".repeat(600_000), "y".repeat(20));
        assert!(of_file(&odd).is_err());
    }

    #[test]
    fn what_would_fill_the_memory_is_refused() {
        let key = "k".repeat(70_000);
        let keys = |count: usize, long: usize| {
            let members: Vec<String> = (0..count)
                .map(|n| format!("\"{n}{}\":1", "k".repeat(long)))
                .collect();
            format!("{{{}}}", members.join(","))
        };
        for (text, says) in [
            (format!("{{\"{key}\":{}}}", "1".repeat(300_000)), "64 KB"),
            (keys(300, 60_000), "too many members"),
            (keys(400_000, 1), "too many members"),
            ("1".repeat(300_000), "a number of more"),
        ] {
            let error = of_file(&text).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
        // Maps within maps count together.
        let mut nested = keys(40_000, 50);
        for _ in 0..8 {
            nested = format!(
                "{},\"z\":{nested}}}",
                keys(40_000, 50).trim_end_matches('}')
            );
        }
        assert!(of_file(&nested).is_err());
    }
}
