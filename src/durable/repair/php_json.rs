//! JSON text as the engine's PHP writes it: compact, `/` and everything beyond ASCII escaped, an
//! empty map as `[]`.

use std::fmt::Write as _;

use serde_json::Value;

pub fn text(value: &Value) -> String {
    let mut out = String::new();
    write(value, &mut out);
    out
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => {
            let _ = write!(out, "{value}");
        }
        Value::String(text) => string(text, out),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write(item, out);
            }
            out.push(']');
        }
        Value::Object(map) if map.is_empty() => out.push_str("[]"),
        Value::Object(map) => {
            out.push('{');
            for (i, (key, item)) in map.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                string(key, out);
                out.push(':');
                write(item, out);
            }
            out.push('}');
        }
    }
}

fn string(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '/' => out.push_str("\\/"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            ' '..='\u{7f}' => out.push(c),
            c => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn text_is_what_php_would_write() {
        for (value, want) in [
            (
                json!({"a": 1, "b": [true, null, 1.5]}),
                r#"{"a":1,"b":[true,null,1.5]}"#,
            ),
            (json!({}), "[]"),
            (json!({"a": {}}), r#"{"a":[]}"#),
            (json!("a/b"), r#""a\/b""#),
            (json!("é€😀"), r#""\u00e9\u20ac\ud83d\ude00""#),
            (json!("\"\\\n\u{1}"), r#""\"\\\n\u0001""#),
        ] {
            assert_eq!(text(&value), want);
        }
    }
}
