//! How each payload of a bundle is encoded, so that it can be read without the engine.

use base64::Engine as _;
use serde::Serialize;
use serde_json::{Value, json};

use super::{entries::entry, head::AVRO, seal::hex};

/// The engine's one value schema, as it is fingerprinted.
pub const VALUE_SCHEMA: &str = r#"{"type":"record","name":"Value","namespace":"durable_workflow.protocol","fields":[{"name":"value","type":["null",{"type":"record","name":"BooleanValue","fields":[{"name":"boolean","type":"boolean"}]},{"type":"record","name":"LongValue","fields":[{"name":"long","type":"long"}]},{"type":"record","name":"DoubleValue","fields":[{"name":"double","type":"double"}]},{"type":"record","name":"BytesValue","fields":[{"name":"bytes","type":"bytes"}]},{"type":"record","name":"StringValue","fields":[{"name":"string","type":"string"}]},{"type":"record","name":"ArrayValue","fields":[{"name":"items","type":{"type":"array","items":"Value"}}]},{"type":"record","name":"MapValue","fields":[{"name":"entries","type":{"type":"map","values":"Value"}}]}]}]}"#;
pub const FINGERPRINT: &str = "e2a33dff55802237";
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
    prefix: Option<[u8; 2]>,
    fingerprint: Option<[u8; 8]>,
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

impl Entry {
    /// Of a payload that is there when it looks like one.
    pub fn new(path: Path, codec: Option<&str>, value: &Value, redacted: bool) -> Self {
        let available = match value {
            Value::String(text) => !text.is_empty(),
            Value::Object(map) => {
                map.get("blob")
                    .and_then(Value::as_str)
                    .is_some_and(|blob| !blob.is_empty())
                    || map.contains_key("external_storage")
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
            prefix: None,
            fingerprint: None,
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
        if let Some(storage) = value.get("external_storage") {
            self.external = true;
            self.codec = value
                .get("codec")
                .or_else(|| storage.get("codec"))
                .and_then(Value::as_str)
                .filter(|codec| *codec != AVRO)
                .map(Into::into);
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
        let Ok(bytes) = base64::engine::general_purpose::STANDARD.decode(text) else {
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
        self.prefix = bytes.first_chunk().copied();
        if self.prefix != Some([0xc3, 0x01]) {
            return Some("invalid_single_object_magic");
        }
        self.fingerprint = bytes.get(2..).and_then(|rest| rest.first_chunk().copied());
        match self.fingerprint {
            Some(own) if hex(&own) == FINGERPRINT => None,
            _ => Some("unsupported_payload_schema"),
        }
    }

    pub fn value(&self) -> impl Serialize {
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
        let known = self.prefix.is_some() && self.diagnostic.is_none();
        entry! {
            available: self.available,
            avro_framing: self.fingerprint.map(|_| "single_object"),
            avro_prefix_hex: self.prefix.map(|prefix| hex(&prefix)),
            codec: self.codec(),
            diagnostic: self.diagnostic,
            encoding: encoding,
            path: self.path.to_string(),
            redacted: self.redacted,
            writer_schema: known.then_some(VALUE_SCHEMA),
            writer_schema_fingerprint: self.fingerprint
                .map(|fingerprint| format!("crc64-avro:{}", hex(&fingerprint))),
        }
    }
}
