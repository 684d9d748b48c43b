//! How each payload of a bundle is encoded, so that it can be read without the engine.

use std::{io::Write as _, sync::LazyLock};

use serde_json::{Value, json};

use super::{
    entry::{Canonical, Written, entry},
    head::AVRO,
    seal::hex,
};
use crate::durable::php;

/// The engine's one value schema, as it is fingerprinted.
pub const VALUE_SCHEMA: &str = r#"{"type":"record","name":"Value","namespace":"durable_workflow.protocol","fields":[{"name":"value","type":["null",{"type":"record","name":"BooleanValue","fields":[{"name":"boolean","type":"boolean"}]},{"type":"record","name":"LongValue","fields":[{"name":"long","type":"long"}]},{"type":"record","name":"DoubleValue","fields":[{"name":"double","type":"double"}]},{"type":"record","name":"BytesValue","fields":[{"name":"bytes","type":"bytes"}]},{"type":"record","name":"StringValue","fields":[{"name":"string","type":"string"}]},{"type":"record","name":"ArrayValue","fields":[{"name":"items","type":{"type":"array","items":"Value"}}]},{"type":"record","name":"MapValue","fields":[{"name":"entries","type":{"type":"map","values":"Value"}}]}]}]}"#;
pub const FINGERPRINT: &str = "e2a33dff55802237";
/// The schema as it stands in a bundle, where nearly every payload repeats it.
static WRITTEN_SCHEMA: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut out = Vec::new();
    VALUE_SCHEMA.write(&mut out);
    out
});
const ENCODING: &str = "base64-avro-single-object";

/// `codec_schemas` of a bundle in which something is encoded as Avro.
pub fn avro_schemas() -> Value {
    json!({AVRO: {
        "encoding": ENCODING,
        "framing": "single_object",
        "magic_hex": "c301",
        "current_fingerprint": FINGERPRINT,
        "writer_schemas": {FINGERPRINT: {
            "schema": VALUE_SCHEMA,
            "fingerprint": format!("crc64-avro:{FINGERPRINT}"),
        }},
    }})
}

/// One payload of the bundle, as much of it as its manifest entry says. Small: there are as many
/// as there are payloads.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub path: Path,
    codec: Option<Box<str>>,
    available: bool,
    redacted: bool,
    external: bool,
    /// The first bytes of what is encoded as Avro, as far as there are so many.
    first: [u8; 10],
    firsts: u8,
    diagnostic: Option<&'static str>,
}

/// Where the payload stands: a list, a position and the way from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    Fixed(&'static str),
    At(&'static str, usize, &'static str),
}

impl std::fmt::Display for Path {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Fixed(path) => f.write_str(path),
            Self::At(list, n, rest) => write!(f, "{list}.{n}.{rest}"),
        }
    }
}

impl Written for Path {
    fn write(&self, out: &mut Vec<u8>) {
        // No part of a path needs an escape.
        let _ = write!(out, "\"{self}\"");
    }
}

impl Entry {
    /// Of a payload that is there when it looks like one.
    pub fn new(path: Path, codec: Option<&str>, value: &Value, redacted: bool) -> Self {
        let available = match value {
            Value::String(text) => !text.is_empty(),
            Value::Object(map) => {
                map.get("blob")
                    .and_then(Value::as_str)
                    .is_some_and(|blob| !blob.is_empty())
                    || is_kept_elsewhere(value)
            }
            _ => false,
        };
        Self::known(path, codec, value, redacted, available)
    }

    /// Of a payload of which it is known whether it is there.
    pub fn known(
        path: Path,
        codec: Option<&str>,
        value: &Value,
        redacted: bool,
        available: bool,
    ) -> Self {
        let mut entry = Self {
            path,
            codec: codec
                .filter(|codec| !codec.is_empty() && *codec != AVRO)
                .map(Into::into),
            available,
            redacted,
            external: false,
            first: [0; 10],
            firsts: 0,
            diagnostic: None,
        };
        entry.diagnostic = entry.inspect(value);
        entry
    }

    fn codec(&self) -> &str {
        self.codec.as_deref().unwrap_or(AVRO)
    }

    fn inspect(&mut self, value: &Value) -> Option<&'static str> {
        if self.redacted {
            return Some("payload_redacted");
        }
        if !self.available {
            return Some("payload_unavailable");
        }
        if is_kept_elsewhere(value) {
            self.external = true;
            let own = value.get("codec").and_then(Value::as_str);
            if let Some(own) = own.filter(|codec| !codec.is_empty()) {
                self.codec = (own != AVRO).then(|| own.into());
            }
            return Some("external_storage_reference");
        }
        let text = value
            .as_str()
            .or_else(|| value.get("blob").and_then(Value::as_str))
            .filter(|text| !text.is_empty());
        let Some(text) = text else {
            return Some("payload_missing");
        };
        if self.codec() != AVRO {
            return None;
        }
        self.inspect_avro(text)
    }

    fn inspect_avro(&mut self, text: &str) -> Option<&'static str> {
        let Some(bytes) = php::base64(text) else {
            let json = text
                .bytes()
                .next()
                .is_some_and(|first| b"{[\"-tfn0123456789".contains(&first));
            return Some(if json {
                "json_bytes_labeled_avro"
            } else {
                "invalid_base64"
            });
        };
        if bytes.is_empty() {
            return Some("empty_payload");
        }
        for (to, from) in self.first.iter_mut().zip(&bytes) {
            *to = *from;
            self.firsts += 1;
        }
        match self.fingerprint() {
            None => Some("invalid_single_object_magic"),
            Some(own) if hex(own) == FINGERPRINT => None,
            Some(_) => Some("unsupported_payload_schema"),
        }
    }

    fn first(&self) -> &[u8] {
        &self.first[..usize::from(self.firsts)]
    }

    /// Of the schema it was written with: what follows the magic number, cut short or not.
    fn fingerprint(&self) -> Option<&[u8]> {
        self.first().strip_prefix(&[0xc3, 0x01])
    }

    pub fn written(&self) -> impl Written {
        let encoding = if self.external {
            "external-storage-reference"
        } else {
            match self.codec() {
                AVRO => ENCODING,
                "workflow-serializer-y" | "Workflow\\Serializers\\Y" => "php-serialized-escaped",
                "workflow-serializer-base64" | "Workflow\\Serializers\\Base64" => {
                    "php-serialized-base64"
                }
                _ => "opaque-string",
            }
        };
        let prefix = self.first().get(..2).unwrap_or(self.first());
        let known = self.firsts > 0 && self.diagnostic.is_none();
        entry! {
            "available": self.available,
            "avro_framing": self.fingerprint().map(|_| "single_object"),
            "avro_prefix_hex": (!prefix.is_empty()).then(|| hex(prefix)),
            "codec": self.codec(),
            "diagnostic": self.diagnostic,
            "encoding": encoding,
            "path": self.path,
            "redacted": self.redacted,
            "writer_schema": known.then_some(Canonical(&WRITTEN_SCHEMA)),
            "writer_schema_fingerprint": self.fingerprint()
                .map(|fingerprint| format!("crc64-avro:{}", hex(fingerprint))),
        }
    }
}

fn is_kept_elsewhere(value: &Value) -> bool {
    value
        .get("external_storage")
        .is_some_and(|storage| storage.is_object() || storage.is_array())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(codec: Option<&str>, value: &Value) -> Value {
        let entry = Entry::new(Path::Fixed("here"), codec, value, false);
        let mut text = Vec::new();
        entry.written().write(&mut text);
        serde_json::from_slice(&text).unwrap()
    }

    #[test]
    fn what_is_no_payload_is_told_as_the_engine_tells_it() {
        let whole = "wwHioz3/VYAiNwQO";
        let fingerprint = "crc64-avro:e2a33dff55802237";
        for (text, diagnostic, prefix, framing, schema) in [
            (whole, None, Some("c301"), true, Some(fingerprint)),
            (
                "garbage",
                Some("invalid_single_object_magic"),
                Some("81aa"),
                false,
                None,
            ),
            (
                "12",
                Some("invalid_single_object_magic"),
                Some("d7"),
                false,
                None,
            ),
            ("{}", Some("json_bytes_labeled_avro"), None, false, None),
            ("--", Some("json_bytes_labeled_avro"), None, false, None),
            ("Oops!", Some("invalid_base64"), None, false, None),
            ("  ", Some("empty_payload"), None, false, None),
            (
                "wwE",
                Some("unsupported_payload_schema"),
                Some("c301"),
                true,
                Some("crc64-avro:"),
            ),
            (
                "wwHioz",
                Some("unsupported_payload_schema"),
                Some("c301"),
                true,
                Some("crc64-avro:e2a3"),
            ),
        ] {
            let told = told(None, &json!(text));
            assert_eq!(told["diagnostic"], json!(diagnostic), "{text}");
            assert_eq!(told["avro_prefix_hex"], json!(prefix), "{text}");
            assert_eq!(
                told["avro_framing"],
                json!(framing.then_some("single_object")),
                "{text}"
            );
            assert_eq!(told["writer_schema_fingerprint"], json!(schema), "{text}");
            assert_eq!(
                told["writer_schema"].is_string(),
                diagnostic.is_none(),
                "{text}"
            );
        }
    }

    #[test]
    fn a_reference_without_a_codec_has_the_rows() {
        for (value, want) in [
            (json!({"external_storage": {"codec": "other"}}), "own"),
            (json!({"external_storage": {}, "codec": "other"}), "other"),
            (json!({"external_storage": {}, "codec": "avro"}), "avro"),
        ] {
            let told = told(Some("own"), &value);
            assert_eq!(told["codec"], want, "{value}");
            assert_eq!(told["diagnostic"], "external_storage_reference");
        }
    }
}
