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

/// Where tools put what an application is built on.
const LIBRARIES: [&str; 7] = [
    "vendor",
    "node_modules",
    "site-packages",
    "dist-packages",
    "usr/lib",
    "usr/local/lib",
    "usr/share/php",
];

/// What the engine itself consists of and is built on, wherever it is installed.
const FRAMEWORK: [&str; 4] = ["Workflow\\", "Illuminate\\", "Laravel\\", "Symfony\\"];

/// Each frame, and whether it is the application's own code or called by it, not a library's or
/// PHP's. The first call threw, in the file `thrown_in`.
///
/// A frame's file is that of the caller, whose class is in the next frame: the called code stands
/// in the file of the frame before.
pub fn owned<'f>(
    frames: &'f [Frame],
    thrown_in: Option<&'f str>,
) -> impl Iterator<Item = (&'f Frame, bool)> {
    let callers = frames.iter().skip(1).map(Some).chain([None]);
    let files = frames.iter().map(|frame| frame.file.as_deref());
    let files = std::iter::once(thrown_in).chain(files);
    frames
        .iter()
        .zip(callers)
        .zip(files)
        .map(|((frame, caller), file)| (frame, is_own(frame, file) || is_called(frame, caller)))
}

/// Whether the called code is the application's: by its class, unless it stands in a library's
/// file. A class without a namespace is as likely PHP's.
fn is_own(frame: &Frame, file: Option<&str>) -> bool {
    let class = frame.class.as_deref();
    class.is_some_and(|class| class.contains('\\') && !is_framework(class))
        && !file.is_some_and(is_library)
}

/// Whether it was called by the application's code.
fn is_called(frame: &Frame, caller: Option<&Frame>) -> bool {
    let class = caller.and_then(|caller| caller.class.as_deref());
    frame.file.as_deref().is_some_and(|file| !is_library(file)) && !class.is_some_and(is_framework)
}

fn is_library(file: &str) -> bool {
    let file = file.replace('\\', "/");
    let inside = |folder: &str| {
        file.split_once(folder).is_some_and(|(before, after)| {
            (before.is_empty() || before.ends_with('/')) && after.starts_with('/')
        })
    };
    file.starts_with("phar://") || file.starts_with("node:") || LIBRARIES.into_iter().any(inside)
}

fn is_framework(class: &str) -> bool {
    let class = class.trim_start_matches('\\');
    FRAMEWORK.iter().any(|space| class.starts_with(space))
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
    }

    #[test]
    fn the_applications_calls_are_told_from_those_of_libraries() {
        let frame = |class: Option<&str>, file: Option<&str>| Frame {
            class: class.map(str::to_owned),
            file: file.map(str::to_owned),
            ..Frame::default()
        };
        let stack = [
            // Called in a file of the application, whatever was called.
            (
                Some("Illuminate\\Http\\Client"),
                Some("/app/app/Charge.php"),
                true,
            ),
            // Called by PHP itself: it has no file, its class tells.
            (Some("App\\Charge"), None, true),
            (Some("ReflectionMethod"), None, false),
            (Some("Illuminate\\Container"), None, false),
            (None, None, false),
            // The application's own, whoever called it.
            (
                Some("App\\Charge"),
                Some("/app/vendor/laravel/Container.php"),
                true,
            ),
            // A library's class stands in a library's file.
            (
                Some("GuzzleHttp\\Client"),
                Some("/app/vendor/guzzle/Pool.php"),
                false,
            ),
            // Installed elsewhere, called by the class in the next frame.
            (
                Some("Illuminate\\Pipeline"),
                Some("/srv/deps/Container.php"),
                false,
            ),
            (
                Some("Illuminate\\Container"),
                Some("/app/vendor/laravel/Worker.php"),
                false,
            ),
            (None, Some("C:\\app\\vendor\\bin\\run.php"), false),
            (None, Some("vendor/autoload.php"), false),
            (None, Some("/usr/lib/python3.12/asyncio/runners.py"), false),
            (None, Some("/srv/worker/node_modules/pg/index.js"), false),
            (None, Some("phar:///usr/bin/tool.phar/run.php"), false),
            // Only by its name like one.
            (None, Some("/app/my_vendor/vendors.php"), true),
            (None, Some("/app/artisan"), true),
        ];
        let frames: Vec<Frame> = stack.map(|(class, file, _)| frame(class, file)).into();
        for ((frame, own), (.., want)) in owned(&frames, None).zip(stack) {
            assert_eq!(own, want, "{frame:?}");
        }
    }

    #[test]
    fn the_call_that_threw_is_the_applications_unless_a_library_threw() {
        for (thrown_in, want) in [
            (Some("/srv/shop/app/Legacy/Warehouse.php"), true),
            (Some("/srv/shop/vendor/acme/Warehouse.php"), false),
            (None, true),
        ] {
            let frame = Frame {
                class: Some("App\\Activities\\ReserveStockActivity".into()),
                file: Some("/srv/shop/vendor/engine/Executor.php".into()),
                ..Frame::default()
            };
            let own = owned(std::slice::from_ref(&frame), thrown_in).map(|(_, own)| own);
            assert_eq!(own.collect::<Vec<_>>(), [want], "{thrown_in:?}");
        }
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
