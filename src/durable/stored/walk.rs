//! Walks over a JSON text where it stands: every value is looked at once, and only what somebody
//! asks for is taken out.
//!
//! A long history is tens of thousands of payloads of some sixty short strings each. A general
//! reader spends three times as long on them, most of it on finding the ends of strings. What is
//! rare is left to that reader: characters escaped by number, values that nest deep.

#![expect(
    clippy::inline_always,
    reason = "a few instructions each, once or more for every string of a long history"
)]

use std::borrow::Cow;

use serde::de::IgnoredAny;

/// The text is no JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotJson;

/// As deep as we follow ourselves.
const DEPTH: usize = 64;

#[derive(Debug)]
pub struct Walk<'a> {
    text: &'a str,
    at: usize,
}

/// Takes the members of a map, one after the other: each must be taken or passed over.
pub trait Members<'a> {
    fn member(&mut self, key: &str, walk: &mut Walk<'a>) -> Result<(), NotJson>;
}

/// A value that comes next, as far as it needs no look inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Map,
    List,
    Text,
    Number,
    True,
    False,
    Null,
}

impl<'a> Walk<'a> {
    pub fn over(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Nothing stands behind what was read.
    pub fn end(mut self) -> Result<(), NotJson> {
        match self.byte() {
            None => Ok(()),
            Some(_) => Err(NotJson),
        }
    }

    /// The next byte that is no white space.
    #[inline(always)]
    fn byte(&mut self) -> Option<u8> {
        match self.text.as_bytes().get(self.at) {
            Some(byte) if *byte > b' ' => Some(*byte),
            _ => self.byte_behind_space(),
        }
    }

    #[cold]
    fn byte_behind_space(&mut self) -> Option<u8> {
        loop {
            match self.text.as_bytes().get(self.at) {
                Some(b' ' | b'\t' | b'\n' | b'\r') => self.at += 1,
                other => return other.copied(),
            }
        }
    }

    #[inline]
    pub fn peek(&mut self) -> Result<Next, NotJson> {
        Ok(match self.byte() {
            Some(b'"') => Next::Text,
            Some(b'{') => Next::Map,
            Some(b'[') => Next::List,
            Some(b'-' | b'0'..=b'9') => Next::Number,
            Some(b't') => Next::True,
            Some(b'f') => Next::False,
            Some(b'n') => Next::Null,
            _ => return Err(NotJson),
        })
    }

    /// Passes over the next value, and gives the text of it.
    pub fn pass(&mut self) -> Result<&'a str, NotJson> {
        self.byte();
        let from = self.at;
        self.pass_within(0)?;
        Ok(&self.text[from..self.at])
    }

    fn pass_within(&mut self, depth: usize) -> Result<(), NotJson> {
        match self.peek()? {
            Next::Text => self.pass_text().map(drop),
            Next::Number => self.pass_number(),
            Next::True => self.word("true"),
            Next::False => self.word("false"),
            Next::Null => self.word("null"),
            Next::Map | Next::List if depth == DEPTH => self.pass_deep(),
            Next::Map => {
                let mut more = self.opened(b'}');
                while more {
                    self.key()?;
                    self.pass_text()?;
                    self.colon()?;
                    self.pass_within(depth + 1)?;
                    more = self.goes_on(b'}')?;
                }
                Ok(())
            }
            Next::List => {
                let mut more = self.opened(b']');
                while more {
                    self.pass_within(depth + 1)?;
                    more = self.goes_on(b']')?;
                }
                Ok(())
            }
        }
    }

    #[cold]
    fn pass_deep(&mut self) -> Result<(), NotJson> {
        let rest = serde_json::Deserializer::from_str(&self.text[self.at..]);
        let mut values = rest.into_iter::<IgnoredAny>();
        values.next().ok_or(NotJson)?.map_err(|_| NotJson)?;
        self.at += values.byte_offset();
        Ok(())
    }

    /// Past an opening bracket: whether anything stands before the closing one.
    #[inline(always)]
    fn opened(&mut self, close: u8) -> bool {
        self.at += 1;
        let empty = self.byte() == Some(close);
        self.at += usize::from(empty);
        !empty
    }

    /// Behind a part: whether there is another before the closing bracket.
    #[inline(always)]
    fn goes_on(&mut self, close: u8) -> Result<bool, NotJson> {
        let byte = self.byte();
        self.at += 1;
        match byte {
            Some(b',') => Ok(true),
            Some(byte) if byte == close => Ok(false),
            _ => Err(NotJson),
        }
    }

    #[inline(always)]
    fn key(&mut self) -> Result<(), NotJson> {
        match self.byte() {
            Some(b'"') => Ok(()),
            _ => Err(NotJson),
        }
    }

    #[inline(always)]
    fn colon(&mut self) -> Result<(), NotJson> {
        if self.byte() != Some(b':') {
            return Err(NotJson);
        }
        self.at += 1;
        Ok(())
    }

    /// The members of the map that comes next.
    pub fn members(&mut self, to: &mut dyn Members<'a>) -> Result<(), NotJson> {
        let mut more = self.opened(b'}');
        while more {
            self.key()?;
            let key = self.text()?;
            self.colon()?;
            to.member(&key, self)?;
            more = self.goes_on(b'}')?;
        }
        Ok(())
    }

    /// The items of the list that comes next: each must be taken or passed over.
    pub fn items(
        &mut self,
        item: &mut dyn FnMut(&mut Self) -> Result<(), NotJson>,
    ) -> Result<(), NotJson> {
        let mut more = self.opened(b']');
        while more {
            item(self)?;
            more = self.goes_on(b']')?;
        }
        Ok(())
    }

    /// The string that comes next.
    #[inline]
    pub fn text(&mut self) -> Result<Cow<'a, str>, NotJson> {
        let from = self.at;
        if self.pass_text()? {
            return Ok(Cow::Borrowed(&self.text[from + 1..self.at - 1]));
        }
        unescaped(&self.text[from..self.at]).map(Cow::Owned)
    }

    /// Whether it holds no escapes.
    #[inline]
    fn pass_text(&mut self) -> Result<bool, NotJson> {
        let bytes = self.text.as_bytes();
        let at = ordinary(bytes, self.at + 1);
        match bytes.get(at) {
            Some(b'"') => {
                self.at = at + 1;
                Ok(true)
            }
            Some(b'\\') => self.pass_escapes(at).map(|()| false),
            _ => Err(NotJson),
        }
    }

    fn pass_escapes(&mut self, mut at: usize) -> Result<(), NotJson> {
        let bytes = self.text.as_bytes();
        while bytes.get(at) == Some(&b'\\') {
            let hex = |digits: &[u8]| digits.iter().all(u8::is_ascii_hexdigit);
            at += match bytes.get(at + 1) {
                Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => 2,
                Some(b'u') if bytes.get(at + 2..at + 6).is_some_and(hex) => 6,
                _ => return Err(NotJson),
            };
            at = ordinary(bytes, at);
        }
        if bytes.get(at) != Some(&b'"') {
            return Err(NotJson);
        }
        self.at = at + 1;
        Ok(())
    }

    fn word(&mut self, word: &str) -> Result<(), NotJson> {
        if !self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            return Err(NotJson);
        }
        self.at += word.len();
        Ok(())
    }

    fn pass_number(&mut self) -> Result<(), NotJson> {
        let bytes = self.text.as_bytes();
        let is = |at: usize, among: &[u8]| bytes.get(at).is_some_and(|b| among.contains(b));
        let digits = |from: usize| {
            let many = bytes[from..].iter().take_while(|b| b.is_ascii_digit());
            match many.count() {
                0 => Err(NotJson),
                many => Ok(from + many),
            }
        };
        let mut at = self.at + usize::from(is(self.at, b"-"));
        let whole = digits(at)?;
        if is(at, b"0") && whole > at + 1 {
            return Err(NotJson);
        }
        at = whole;
        if is(at, b".") {
            at = digits(at + 1)?;
        }
        if is(at, b"eE") {
            at += 1 + usize::from(is(at + 1, b"+-"));
            at = digits(at)?;
        }
        self.at = at;
        Ok(())
    }
}

/// What a string in quotes says; its escapes are known to be well formed. Names of PHP classes are
/// full of them.
fn unescaped(quoted: &str) -> Result<String, NotJson> {
    if quoted.contains("\\u") {
        return serde_json::from_str(quoted).map_err(|_| NotJson);
    }
    let mut text = String::with_capacity(quoted.len());
    let mut rest = &quoted[1..quoted.len() - 1];
    while let Some((plain, escape)) = rest.split_once('\\') {
        text.push_str(plain);
        let mut escape = escape.chars();
        text.push(match escape.next() {
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some(itself) => itself,
            None => return Err(NotJson),
        });
        rest = escape.as_str();
    }
    text.push_str(rest);
    Ok(text)
}

/// Where the first byte stands, from `at` on, that ends a string, begins an escape or may not be
/// in one. Eight are looked at together.
#[inline(always)]
fn ordinary(bytes: &[u8], mut at: usize) -> usize {
    const ONES: u64 = u64::MAX / 255;
    const TOPS: u64 = ONES << 7;
    while let Some(eight) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        let eight = u64::from_le_bytes(*eight);
        // The top bit of a byte is set where it is too small. A borrow may set one too many
        // behind the first, never before it. With its second bit turned, a quote stands right
        // behind the control characters.
        let low = (eight ^ (ONES * 0x02)).wrapping_sub(ONES * 0x21);
        let escape = (eight ^ (ONES * u64::from(b'\\'))).wrapping_sub(ONES);
        let found = (low | escape) & !eight & TOPS;
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    let odd = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
    let rest = bytes.get(at..).unwrap_or_default();
    rest.iter()
        .position(odd)
        .map_or(bytes.len(), |odd| at + odd)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn passes(text: &str) -> bool {
        let mut walk = Walk::over(text);
        walk.pass().is_ok() && walk.end().is_ok()
    }

    #[test]
    fn what_is_json_is_the_same_as_for_every_other_reader() {
        let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        for text in [
            "",
            " ",
            "null",
            " null ",
            "nul",
            "nullx",
            "true",
            "false",
            "truefalse",
            "0",
            "-0",
            "00",
            "01",
            "-",
            "-1",
            "1.",
            "1.5",
            ".5",
            "1e5",
            "1e",
            "1e+",
            "1E-7",
            "1.5e300",
            "1 2",
            "\"\"",
            "\"",
            "\"a",
            "\"a\"b",
            r#""\"""#,
            r#""\x""#,
            r#""\u00e9""#,
            r#""\u00g9""#,
            r#""\u12"#,
            r#""\\""#,
            r#""\\\""#,
            "\"\n\"",
            "\"\u{1f}\"",
            "\"\u{7f}é🚀\"",
            "[]",
            "[ ]",
            "[1]",
            "[1,]",
            "[,1]",
            "[1 2]",
            "[1",
            "]",
            "{}",
            "{ }",
            r#"{"a":1}"#,
            r#"{"a":1,}"#,
            r#"{"a"}"#,
            r#"{"a":}"#,
            "{a:1}",
            r#"{"a":1 "b":2}"#,
            r#"{"a":1"#,
            r#" { "a" : [ 1 , { "b" : null } ] } "#,
            "{}{}",
            "[]]",
            "\u{feff}{}",
            &deep(63),
            &deep(64),
            &deep(65),
            &deep(66),
            &deep(100),
            &format!("{}]", deep(70)),
            &"[".repeat(200),
        ] {
            let expected = serde_json::from_str::<IgnoredAny>(text).is_ok();
            assert_eq!(passes(text), expected, "{text}");
        }
    }

    #[test]
    fn a_string_ends_where_it_ends_wherever_it_stands() {
        for before in 0..20 {
            for inside in 0..40 {
                for (odd, plain) in [
                    ("", true),
                    (r"\n", false),
                    (r#"\"\\\/\b\f\n\r\té"#, false),
                    (r"\\u0041", false),
                    (r"\u0041", false),
                    ("é", true),
                ] {
                    let text = format!("{}{}", "x".repeat(inside), odd);
                    let json = format!("{}\"{text}\",\"next\"", " ".repeat(before));
                    let mut walk = Walk::over(&json);
                    walk.byte();
                    let read = walk.text().unwrap();
                    let expected: String = serde_json::from_str(&format!("\"{text}\"")).unwrap();
                    assert_eq!(read, expected);
                    assert_eq!(matches!(read, Cow::Borrowed(_)), plain);
                    assert_eq!(walk.byte(), Some(b','));
                }
            }
        }
    }

    proptest! {
        #[test]
        fn cut_or_altered_text_is_judged_as_by_every_other_reader(
            text in r#"[\[\]{}:,"\\a-c0-2.eE+\- \n\u{1}é]{0,24}"#,
        ) {
            prop_assert_eq!(passes(&text), serde_json::from_str::<IgnoredAny>(&text).is_ok());
        }

        #[test]
        fn a_value_is_passed_whole(value in json(), rest in r"[,\]} ]?") {
            let text = value.to_string();
            let all = format!("{text}{rest}");
            let mut walk = Walk::over(&all);
            prop_assert_eq!(walk.pass(), Ok(text.as_str()));
        }
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::vec((any::<String>(), inner), 0..5)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }
}
