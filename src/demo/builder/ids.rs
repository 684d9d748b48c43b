//! Ids as the engine makes them, without chance: the time is the row's own, the rest is a digest
//! of who asks and how often. The same `now` gives the same catalogue.

use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};
use ulid::Ulid;

/// Makes the ids of one run.
#[derive(Clone, Debug)]
pub struct IdMint {
    seed: String,
    made: u32,
}

impl IdMint {
    pub fn new(seed: impl Into<String>) -> Self {
        Self {
            seed: seed.into(),
            made: 0,
        }
    }

    /// A row id: lower case, as the engine's model layer writes it.
    pub fn row(&mut self, at: DateTime<Utc>) -> String {
        self.next(at).to_string().to_ascii_lowercase()
    }

    /// An id made in engine code: upper case (attempts, child calls, signal and condition waits).
    pub fn code(&mut self, at: DateTime<Utc>) -> String {
        self.next(at).to_string()
    }

    fn next(&mut self, at: DateTime<Utc>) -> Ulid {
        self.made += 1;
        let digest = Sha256::digest(format!("{}#{}", self.seed, self.made));
        let random = digest[..10]
            .iter()
            .fold(0_u128, |acc, byte| (acc << 8) | u128::from(*byte));
        let millis = u64::try_from(at.timestamp_millis()).expect("the demo plays after 1970");
        Ulid::from_parts(millis, random)
    }
}

/// Lower-case SHA-256 hex, the id of every projection row.
pub fn digest(text: &str) -> String {
    use std::fmt::Write as _;
    Sha256::digest(text)
        .iter()
        .fold(String::with_capacity(64), |mut hex, byte| {
            write!(hex, "{byte:02x}").expect("writing to a string");
            hex
        })
}
