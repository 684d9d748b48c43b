//! Memo, search attributes, messages and payloads of a run, as the page shows them, and how JSON
//! is written so that it can be read.

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::{fact::Fact, tag::Tag, window::Window};

/// Payloads up to here stand in the page; longer ones are fetched when opened.
pub const EAGER: usize = 16 * 1_024;
/// The same inside the row of a table, of which there may be many.
pub const EAGER_IN_ROW: usize = 1_024;
/// Deeper nesting is not indented any further.
const INDENTED: usize = 24;

#[derive(Clone, Debug, PartialEq)]
pub struct Data {
    /// Over all of it, one after the other.
    pub window: Window,
    pub payloads: Vec<Preview>,
    pub memo: Vec<Entry>,
    pub search_attributes: Vec<Entry>,
    pub messages: Vec<Message>,
}

/// A key and its value as JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub key: String,
    /// None when it is too long to stand in the page.
    pub value: Option<String>,
    pub of: PayloadRef,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    pub anchor: String,
    pub direction: String,
    pub stream: String,
    pub channel: String,
    pub sequence: i64,
    pub state: Tag,
    pub at: Option<DateTime<Utc>>,
    pub consumed: Option<DateTime<Utc>>,
    pub error: Option<String>,
    pub facts: Vec<Fact>,
}

/// A payload, as far as it stands in the page.
#[derive(Clone, Debug, PartialEq)]
pub struct Preview {
    pub name: &'static str,
    /// Undecodable, or kept elsewhere.
    pub mark: Option<Tag>,
    /// None when it is too long to stand in the page.
    pub text: Option<String>,
    /// There is something to keep as a file.
    pub offered: bool,
    /// What it belongs to, and which of its payloads it is.
    pub of: PayloadRef,
}

/// Names one payload of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PayloadRef {
    pub of: &'static str,
    pub id: String,
    pub part: &'static str,
}

impl PayloadRef {
    /// As the query of an address.
    pub fn query(&self) -> String {
        let query = url::form_urlencoded::Serializer::new(String::new())
            .append_pair("of", self.of)
            .append_pair("id", &self.id)
            .append_pair("part", self.part)
            .finish();
        format!("?{query}")
    }
}

/// A payload whole: its text, and how it is marked.
#[derive(Clone, Debug, PartialEq)]
pub struct Whole {
    pub mark: Option<Tag>,
    pub text: String,
    /// The text is JSON.
    pub json: bool,
    /// There is something to keep as a file.
    pub offered: bool,
}

/// JSON text with line breaks and indentation; every token stays exactly as it is.
///
/// ```
/// use plimsoll::run::data::indented;
///
/// assert_eq!(indented(r#"{"a":[1.0,"x, y"],"b":{}}"#), "{\n  \"a\": [\n    1.0,\n    \"x, y\"\n  ],\n  \"b\": {}\n}");
/// assert_eq!(indented("12345678901234567890"), "12345678901234567890");
/// ```
pub fn indented(json: &str) -> String {
    let mut out = String::with_capacity(json.len() + json.len() / 4);
    let mut depth = 0_usize;
    let mut chars = json.chars().peekable();
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        for _ in 0..depth.min(INDENTED) {
            out.push_str("  ");
        }
    };
    while let Some(c) = chars.next() {
        match c {
            '"' => {
                out.push(c);
                while let Some(c) = chars.next() {
                    out.push(c);
                    match c {
                        '\\' => out.extend(chars.next()),
                        '"' => break,
                        _ => {}
                    }
                }
            }
            '{' | '[' => {
                out.push(c);
                while chars.next_if(char::is_ascii_whitespace).is_some() {}
                if let Some(end) = chars.next_if(|next| matches!(next, '}' | ']')) {
                    out.push(end);
                } else {
                    depth += 1;
                    line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            c if c.is_ascii_whitespace() => {}
            c => out.push(c),
        }
    }
    out
}

/// A value as indented JSON, unless that is longer than `most` bytes: then it is not written.
pub fn written(value: &Value, most: usize) -> Option<String> {
    let mut bounded = Bounded {
        bytes: Vec::new(),
        most,
    };
    serde_json::to_writer(&mut bounded, value).ok()?;
    let text = indented(&String::from_utf8(bounded.bytes).ok()?);
    (text.len() <= most).then_some(text)
}

/// Refuses what is longer than it may be.
struct Bounded {
    bytes: Vec<u8>,
    most: usize,
}

impl std::io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.most {
            return Err(std::io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn indenting_changes_no_token() {
        for text in [
            r#"{"a":{"b":[1,2.50,-3e400,"q\"{,}:[]"],"c":[]},"d":null}"#,
            "[ ]",
            r#""just \\ text""#,
            r#"{"cut":["#,
            "}",
            "",
        ] {
            let squeezed = |text: &str| text.split_whitespace().collect::<String>();
            assert_eq!(squeezed(&indented(text)), squeezed(text), "{text}");
        }
    }

    #[test]
    fn a_deep_value_does_not_grow_with_its_depth() {
        let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
        assert!(indented(&deep).len() < 60_000);
    }

    #[test]
    fn a_long_value_is_not_written() {
        assert_eq!(
            written(&json!([1, 2]), 100).as_deref(),
            Some("[\n  1,\n  2\n]")
        );
        assert_eq!(written(&json!("x".repeat(200)), 100), None);
        // Short as it is stored, long as it is indented.
        assert_eq!(written(&json!(vec![1; 40]), 100), None);
    }
}
