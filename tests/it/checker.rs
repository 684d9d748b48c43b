//! A checker of sealed bundles written from the contract alone: it shares no code with ours.

use std::fmt::Write as _;

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// Whether checksum and signature fit the document.
pub fn check(text: &[u8], secret: Option<&str>) -> Result<(), String> {
    let mut document: Value = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    let integrity = document
        .as_object_mut()
        .ok_or("not an object")?
        .shift_remove("integrity")
        .ok_or("no integrity")?;
    let canonical = canonical(&document);
    let checksum = hex(&Sha256::digest(canonical.as_bytes()));
    if integrity["checksum"] != checksum.as_str() {
        return Err(format!(
            "checksum {} is not {checksum}",
            integrity["checksum"]
        ));
    }
    let Some(secret) = secret else {
        return if integrity["signature"].is_null() {
            Ok(())
        } else {
            Err("signed without a key".into())
        };
    };
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("any length will do");
    mac.update(canonical.as_bytes());
    let signature = hex(&mac.finalize().into_bytes());
    if integrity["signature"] == signature.as_str() {
        Ok(())
    } else {
        Err("the signature does not fit".into())
    }
}

/// The checksum of a document that is not sealed yet.
pub fn checksum(text: &[u8]) -> String {
    let document: Value = serde_json::from_slice(text).expect("JSON");
    hex(&Sha256::digest(canonical(&document).as_bytes()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

fn canonical(value: &Value) -> String {
    match value {
        Value::Null | Value::Bool(_) => value.to_string(),
        Value::Number(number) => match number.as_i64() {
            Some(n) => n.to_string(),
            None => float(number.as_f64().expect("a float")),
        },
        Value::String(text) => string(text),
        Value::Array(items) => list(items.iter()),
        Value::Object(map) => {
            let mut members: Vec<(&String, &Value)> = map.iter().collect();
            if !is_list(&members) {
                members.sort_by(|a, b| a.0.as_bytes().cmp(b.0.as_bytes()));
            }
            if is_list(&members) {
                return list(members.iter().map(|(_, value)| *value));
            }
            let members: Vec<String> = members
                .iter()
                .map(|(key, value)| format!("{}:{}", string(key), canonical(value)))
                .collect();
            format!("{{{}}}", members.join(","))
        }
    }
}

fn is_list(members: &[(&String, &Value)]) -> bool {
    members
        .iter()
        .enumerate()
        .all(|(n, (key, _))| **key == n.to_string())
}

fn list<'v>(items: impl Iterator<Item = &'v Value>) -> String {
    let items: Vec<String> = items.map(canonical).collect();
    format!("[{}]", items.join(","))
}

/// By Rust's own rendering, which is shortest too: moved into PHP's forms.
fn float(n: f64) -> String {
    let size = n.abs();
    if size == 0.0 || (1e-4..1e17).contains(&size) {
        return format!("{n:?}").replace("e16", "").pipe(|text| {
            if text.contains('.') && !text.contains('e') {
                text
            } else {
                format!("{n:.1}")
            }
        });
    }
    let text = format!("{n:e}");
    let (mantissa, exponent) = text.split_once('e').expect("an exponent");
    let mantissa = if mantissa.contains('.') {
        mantissa.to_owned()
    } else {
        format!("{mantissa}.0")
    };
    let sign = if exponent.starts_with('-') { "" } else { "+" };
    format!("{mantissa}e{sign}{exponent}")
}

trait Pipe: Sized {
    fn pipe<T>(self, f: impl FnOnce(Self) -> T) -> T {
        f(self)
    }
}

impl Pipe for String {}

fn string(text: &str) -> String {
    let mut out = String::from('"');
    for unit in text.encode_utf16() {
        match unit {
            0x22 => out.push_str("\\\""),
            0x5c => out.push_str("\\\\"),
            0x08 => out.push_str("\\b"),
            0x0c => out.push_str("\\f"),
            0x0a => out.push_str("\\n"),
            0x0d => out.push_str("\\r"),
            0x09 => out.push_str("\\t"),
            0x20..=0x7f => out.push(char::from(u8::try_from(unit).expect("ASCII"))),
            _ => {
                let _ = write!(out, "\\u{unit:04x}");
            }
        }
    }
    out.push('"');
    out
}

#[test]
fn the_checker_knows_the_worked_example() {
    let document = r#"{"schema":"durable-workflow.v2.history-export","schema_version":1,"exported_at":"2026-01-02T03:10:00.000000Z","workflow":{"run_id":"01m7grze78t486ept2qktc7qre","business_key":null,"visibility_labels":[],"queue":"emails/high"},"history_events":[{"sequence":1,"type":"StartAccepted","payload":{"z":1,"a":{"ratio":2.0,"note":"café 🚀","empty":{},"list":[3,1,2]}}}],"redaction":{"paths":[],"policy":null,"applied":false},"B":true,"_x":0.00001,"integrity":{"checksum":"c853f6d616a89a521650d55d2360d3bd817880c977d3c139811ff3753f826fef","signature":"b5b85760404a3ecca24a0f8d3345750c4b3a33968427feb8be23ae95585b59a6"}}"#;
    assert_eq!(check(document.as_bytes(), Some("test-key")), Ok(()));
    assert!(check(document.as_bytes(), Some("other")).is_err());
    assert!(check(document.replace("2.0", "2").as_bytes(), Some("test-key")).is_err());
    for (n, want) in [
        (1e16, "10000000000000000.0"),
        (1e17, "1.0e+17"),
        (1e-5, "1.0e-5"),
        (0.5, "0.5"),
        (-0.0, "-0.0"),
        (1e15, "1000000000000000.0"),
    ] {
        assert_eq!(float(n), want);
    }
}
