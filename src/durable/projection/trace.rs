//! Where an exception was thrown: its stack, outermost call last, as the engine stored it.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::durable::php;

/// One call of a stack.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Frame {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// `->` or `::`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<i64>,
    /// Whatever else was stored, as it was.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

impl Frame {
    fn read(value: &Value) -> Option<Self> {
        let mut rest = value.as_object()?.clone();
        let mut text = |key: &str| match rest.get(key).and_then(Value::as_str) {
            Some(text) if !text.is_empty() => {
                let text = text.to_owned();
                rest.remove(key);
                Some(text)
            }
            _ => None,
        };
        let (class, call, function, file) =
            (text("class"), text("type"), text("function"), text("file"));
        let line = rest.get("line").and_then(Value::as_i64);
        if line.is_some() {
            rest.remove("line");
        }
        Some(Self {
            class,
            call,
            function,
            file,
            line,
            rest,
        })
    }

    /// The application's own code, not a library's or PHP's.
    pub fn is_application(&self) -> bool {
        self.file
            .as_deref()
            .is_some_and(|file| !file.contains("/vendor/") && !file.contains("\\vendor\\"))
    }
}

/// The readable frames of a stored trace.
pub fn frames(trace: Option<&Value>) -> Vec<Frame> {
    trace
        .and_then(php::items)
        .into_iter()
        .flatten()
        .filter_map(Frame::read)
        .collect()
}

/// The application's frames before the others, each group in its own order.
pub fn application_first(frames: &[Frame]) -> Vec<&Frame> {
    let (mut own, others): (Vec<_>, Vec<_>) =
        frames.iter().partition(|frame| frame.is_application());
    own.extend(others);
    own
}

/// How many calls a preview shows.
const PREVIEW: usize = 5;

/// The first calls as text, one a line; empty without any.
pub fn preview(frames: &[Frame]) -> String {
    let line = |frame: &Frame| {
        format!(
            "{}{}{} @ {}:{}",
            frame.class.as_deref().unwrap_or_default(),
            frame.call.as_deref().unwrap_or_default(),
            frame.function.as_deref().unwrap_or("unknown"),
            frame.file.as_deref().unwrap_or("unknown"),
            frame.line.unwrap_or(0),
        )
    };
    frames
        .iter()
        .take(PREVIEW)
        .map(line)
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_frame_loses_nothing_and_says_what_it_can() {
        let stored = json!([
            {"class": "App\\Pay", "type": "->", "function": "charge", "file": "/app/vendor/x.php", "line": 7},
            {"function": "run", "file": "/app/src/y.php", "line": "8", "args": [1]},
            "garbage",
        ]);
        let frames = frames(Some(&stored));
        assert_eq!(frames.len(), 2);
        assert_eq!(json!(frames[1]), stored[1]);
        assert_eq!(
            preview(&frames),
            "App\\Pay->charge @ /app/vendor/x.php:7\nrun @ /app/src/y.php:0"
        );
        assert_eq!(
            application_first(&frames)[0].function.as_deref(),
            Some("run")
        );
    }

    #[test]
    fn no_frames_no_preview() {
        assert_eq!(preview(&frames(Some(&json!({"a": 1})))), "");
        // PHP keeps lists and maps in one type: a stack that lost its first frame is a map.
        let map = json!({"1": {"function": "run", "file": "/app/y.php", "line": 8}});
        assert_eq!(preview(&frames(Some(&map))), "run @ /app/y.php:8");
        assert_eq!(preview(&frames(None)), "");
    }
}
