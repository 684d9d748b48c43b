//! The seal of a bundle: a checksum of its canonical text and, with a key, a signature.

use std::fmt;

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

pub const CANONICALIZATION: &str = "json-recursive-ksort-v1";
pub const CHECKSUM: &str = "sha256";
pub const SIGNATURE: &str = "hmac-sha256";

/// The member of a bundle that holds its seal.
pub const MEMBER: &str = "integrity";

/// The members of a seal.
pub const MEMBERS: [&str; 6] = [
    "canonicalization",
    "checksum",
    "checksum_algorithm",
    "key_id",
    "signature",
    "signature_algorithm",
];

/// A key to sign with. Never printed.
#[derive(Clone)]
pub struct SigningKey {
    secret: Vec<u8>,
    pub id: Option<String>,
}

impl SigningKey {
    /// As the engine takes them: white space around key and id is not part of them. None when
    /// nothing else is there.
    pub fn new(secret: &str, id: Option<&str>) -> Option<Self> {
        let trimmed = secret.trim();
        (!trimmed.is_empty()).then(|| Self {
            secret: trimmed.as_bytes().to_vec(),
            id: id
                .map(str::trim)
                .filter(|id| !id.is_empty())
                .map(str::to_owned),
        })
    }
}

impl SigningKey {
    /// Another one for every key, from which the key cannot be found.
    pub fn fingerprint(&self) -> String {
        let mut sealer = Sealer::new(Some(self));
        sealer.update(b"fingerprint");
        sealer.finish().signature.unwrap_or_default()
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// Takes the canonical text piece by piece.
#[derive(Debug)]
pub struct Sealer {
    hash: Sha256,
    signature: Option<Hmac<Sha256>>,
}

/// What the text came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sealed {
    pub checksum: String,
    pub signature: Option<String>,
}

impl Sealer {
    pub fn new(key: Option<&SigningKey>) -> Self {
        Self {
            hash: Sha256::new(),
            signature: key.and_then(|key| Hmac::new_from_slice(&key.secret).ok()),
        }
    }

    pub fn update(&mut self, text: &[u8]) {
        self.hash.update(text);
        if let Some(signature) = &mut self.signature {
            signature.update(text);
        }
    }

    pub fn finish(self) -> Sealed {
        Sealed {
            checksum: hex(&self.hash.finalize()),
            signature: self
                .signature
                .map(|signature| hex(&signature.finalize().into_bytes())),
        }
    }
}

impl Sealed {
    /// The `integrity` member.
    pub fn integrity(&self, key_id: Option<&str>) -> Value {
        let signature = self.signature.as_deref();
        json!({
            "canonicalization": CANONICALIZATION,
            "checksum": self.checksum,
            "checksum_algorithm": CHECKSUM,
            "key_id": signature.and(key_id),
            "signature": signature,
            "signature_algorithm": signature.map(|_| SIGNATURE),
        })
    }
}

/// Lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 0xf])
        .map(|digit| char::from(b"0123456789abcdef"[usize::from(digit)]))
        .collect()
}

/// Equal in a time that does not tell how much of it is.
pub fn same(a: &str, b: &str) -> bool {
    a.as_bytes().ct_eq(b.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worked_example_is_sealed_as_the_engine_seals_it() {
        let canonical = r#"{"B":true,"_x":1.0e-5,"exported_at":"2026-01-02T03:10:00.000000Z","history_events":[{"payload":{"a":{"empty":[],"list":[3,1,2],"note":"caf\u00e9 \ud83d\ude80","ratio":2.0},"z":1},"sequence":1,"type":"StartAccepted"}],"redaction":{"applied":false,"paths":[],"policy":null},"schema":"durable-workflow.v2.history-export","schema_version":1,"workflow":{"business_key":null,"queue":"emails/high","run_id":"01m7grze78t486ept2qktc7qre","visibility_labels":[]}}"#;
        let key = SigningKey::new(" test-key\n", Some("k1"));
        let mut sealer = Sealer::new(key.as_ref());
        for piece in canonical.as_bytes().chunks(7) {
            sealer.update(piece);
        }
        assert_eq!(
            sealer.finish(),
            Sealed {
                checksum: "c853f6d616a89a521650d55d2360d3bd817880c977d3c139811ff3753f826fef".into(),
                signature: Some(
                    "b5b85760404a3ecca24a0f8d3345750c4b3a33968427feb8be23ae95585b59a6".into()
                ),
            }
        );
    }

    #[test]
    fn a_key_is_never_printed() {
        let key = SigningKey::new("hunter2", Some(" k1 ")).unwrap();
        assert_eq!(format!("{key:?}"), "SigningKey { id: Some(\"k1\"), .. }");
        assert!(SigningKey::new(" \n", None).is_none());
    }
}
