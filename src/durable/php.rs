//! How PHP and Laravel take a text for a value: the engine's configuration and some of its orders
//! come out as they do there.

use std::cmp::Ordering;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;

/// `base64_decode` in its strict form: white space is skipped, padding may be missing but not
/// wrong, and what is left of the last character is not looked at.
pub fn base64(text: &str) -> Option<Vec<u8>> {
    if let Ok(bytes) = STANDARD.decode(text) {
        return Some(bytes);
    }
    let (mut out, mut held, mut digits, mut padding) = (Vec::new(), 0_u32, 0_usize, 0_usize);
    for byte in text.bytes() {
        let digit = match byte {
            b'=' => {
                padding += 1;
                continue;
            }
            b'\t' | b'\n' | b'\r' | b' ' => continue,
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        if padding > 0 {
            return None;
        }
        held = (held << 6 | u32::from(digit)) & 0xffff;
        digits += 1;
        // Six bits come with each, eight make a byte.
        let over = digits * 6 % 8;
        if over < 6 {
            out.push((held >> over & 0xff) as u8);
        }
    }
    let padded = padding == 0 || padding <= 2 && (digits + padding).is_multiple_of(4);
    (digits % 4 != 1 && padded).then_some(out)
}

/// What an array holds, be it a list or a map: PHP has one type for both.
pub fn items(value: &Value) -> Option<Vec<&Value>> {
    match value {
        Value::Array(list) => Some(list.iter().collect()),
        Value::Object(map) => Some(map.values().collect()),
        _ => None,
    }
}

/// What Laravel's `env()` makes of a variable's text.
pub fn env(text: &str) -> Value {
    match text.to_ascii_lowercase().as_str() {
        "true" | "(true)" => true.into(),
        "false" | "(false)" => false.into(),
        "empty" | "(empty)" => "".into(),
        "null" | "(null)" => Value::Null,
        _ => {
            let inside = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
            inside('"').or_else(|| inside('\'')).unwrap_or(text).into()
        }
    }
}

/// Whether a key of a map reads as an integer, which makes it a position of a list.
pub fn is_position(key: &str) -> bool {
    key.parse::<i64>().is_ok_and(|int| int.to_string() == key)
}

/// `(int)`: a text counts as far as it is a number.
pub fn int(value: &Value) -> i64 {
    match value {
        Value::Bool(on) => i64::from(*on),
        Value::Number(n) => n.as_i64().or_else(|| n.as_f64().map(cut)).unwrap_or(0),
        Value::String(text) => numeric_part(text).map_or(0, whole),
        Value::Array(list) => i64::from(!list.is_empty()),
        Value::Object(map) => i64::from(!map.is_empty()),
        Value::Null => 0,
    }
}

/// The whole number, where `is_numeric` says that there is one.
pub fn number(value: &Value) -> Option<i64> {
    match value {
        Value::Number(_) => Some(int(value)),
        Value::String(text) => {
            let part = numeric_part(text)?;
            (part.len() == text.trim().len()).then(|| whole(part))
        }
        _ => None,
    }
}

/// `(bool)`: only nothing at all and `"0"` are false.
pub fn truth(value: &Value) -> bool {
    match value {
        Value::Bool(on) => *on,
        Value::Number(n) => n.as_f64() != Some(0.0),
        Value::String(text) => !matches!(text.as_str(), "" | "0"),
        Value::Array(list) => !list.is_empty(),
        Value::Object(map) => !map.is_empty(),
        Value::Null => false,
    }
}

/// `<=>` of two texts: as numbers where both are. No order a sort may rely on:
/// "10" < "1a" < "9" < "10".
pub fn order(a: &str, b: &str) -> Ordering {
    let number = |text: &str| -> Option<f64> {
        let part = numeric_part(text)?;
        (part.len() == text.trim().len()).then(|| part.parse().ok())?
    };
    match (number(a), number(b)) {
        (Some(a), Some(b)) => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
        _ => a.cmp(b),
    }
}

/// The number a text begins with, after spaces.
fn numeric_part(text: &str) -> Option<&str> {
    let text = text.trim_start();
    let digits = |from: usize| {
        let rest = text[from..].bytes();
        from + rest.take_while(u8::is_ascii_digit).count()
    };
    let at = |from: usize| text.as_bytes().get(from).copied();
    let start = usize::from(matches!(at(0), Some(b'+' | b'-')));
    let mut end = digits(start);
    let mut found = end > start;
    if at(end) == Some(b'.') {
        let fraction = digits(end + 1);
        if found || fraction > end + 1 {
            found = true;
            end = fraction;
        }
    }
    if found && matches!(at(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(at(end + 1), Some(b'+' | b'-')));
        let power = digits(end + 1 + sign);
        if power > end + 1 + sign {
            end = power;
        }
    }
    found.then(|| &text[..end])
}

fn whole(number: &str) -> i64 {
    let exact = number.parse::<i64>();
    exact.unwrap_or_else(|_| number.parse().map_or(0, cut))
}

#[expect(clippy::cast_possible_truncation, reason = "a fraction is cut off")]
fn cut(number: f64) -> i64 {
    number as i64
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::durable::export::seal::hex;

    #[test]
    fn laravel_knows_some_words_and_takes_quotes_off() {
        for (text, want) in [
            ("true", json!(true)),
            ("(FALSE)", json!(false)),
            ("empty", json!("")),
            ("(null)", json!(null)),
            ("'7'", json!("7")),
            ("\"a b\"", json!("a b")),
            ("off", json!("off")),
            ("'", json!("'")),
        ] {
            assert_eq!(env(text), want, "{text}");
        }
    }

    #[test]
    fn a_cast_takes_what_a_text_begins_with() {
        for (value, cast, numeric) in [
            (json!("7"), 7, Some(7)),
            (json!(" -7 "), -7, Some(-7)),
            (json!("2k"), 2, None),
            (json!("many"), 0, None),
            (json!("1.9"), 1, Some(1)),
            (json!("1e3"), 1_000, Some(1_000)),
            (json!("1e"), 1, None),
            (json!(".5"), 0, Some(0)),
            (json!("."), 0, None),
            (json!(""), 0, None),
            (json!("99999999999999999999"), i64::MAX, Some(i64::MAX)),
            (json!(2.7), 2, Some(2)),
            (json!(true), 1, None),
            (json!(null), 0, None),
            (json!([0]), 1, None),
        ] {
            assert_eq!((int(&value), number(&value)), (cast, numeric), "{value}");
        }
    }

    #[test]
    fn nearly_every_text_is_true() {
        for value in [
            json!("off"),
            json!("false"),
            json!(" "),
            json!(2),
            json!([1]),
        ] {
            assert!(truth(&value), "{value}");
        }
        for value in [
            json!(""),
            json!("0"),
            json!(0),
            json!(null),
            json!([]),
            json!(false),
        ] {
            assert!(!truth(&value), "{value}");
        }
    }

    #[test]
    fn two_numbers_are_compared_as_numbers() {
        assert_eq!(order("9", "10"), Ordering::Less);
        assert_eq!(order("9.0", "9"), Ordering::Equal);
        assert_eq!(order("10", "9a"), Ordering::Less);
        assert_eq!(order("", "-1"), Ordering::Less);
        assert_eq!(order("inf", "nan"), Ordering::Less);
    }

    #[test]
    fn base64_is_taken_as_php_takes_it() {
        // What PHP 8 says of each.
        for (text, want) in [
            ("", Some("")),
            ("wwE=", Some("c301")),
            ("wwE", Some("c301")),
            ("garbage", Some("81aadb6a07")),
            ("12", Some("d7")),
            ("1234", Some("d76df8")),
            (" w w\tE\r\n= ", Some("c301")),
            ("wwF=", Some("c301")),
            ("1", None),
            ("12345", None),
            ("wwE==", None),
            ("wwEi=", None),
            ("====", None),
            ("ww=E", None),
            ("ww-E", None),
            ("ww\u{b}E", None),
            ("{}", None),
        ] {
            let got = base64(text).map(|bytes| hex(&bytes));
            assert_eq!(got.as_deref(), want, "{text:?}");
        }
    }
}
