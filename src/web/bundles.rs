//! Bundles that somebody opened, kept in memory for a while and nowhere else: bounded in number
//! of bytes, and found only by whoever knows their address.

use std::{
    io::{Cursor, Read, Seek},
    sync::Arc,
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use moka::{future::Cache, policy::EvictionPolicy};
use tokio::sync::Semaphore;

use crate::durable::{
    export::{
        SigningKey,
        verify::{Report, Seal, verify},
    },
    store::bundle::{self, Opened},
};

/// The longest file a browser may send.
pub const UPLOAD: usize = 64 * 1024 * 1024;
/// How many bytes are kept together, the longest unused going first.
const KEPT: u64 = 256 * 1024 * 1024;
/// What a value of a row takes, whatever it holds.
const CELL: u64 = 32;
/// How long a bundle is kept.
pub const EXPIRES: Duration = Duration::from_hours(1);
/// How many files are read at the same time.
const AT_ONCE: usize = 2;
/// How many are being sent, or wait to be read.
const ARRIVING: usize = 8;

/// A bundle as it is shown, and what the check found.
#[derive(Debug)]
pub struct Kept {
    pub opened: Opened,
    pub report: Report,
    bytes: u64,
}

#[derive(Clone, Debug)]
pub struct Bundles {
    kept: Cache<String, Arc<Kept>>,
    pub reading: Arc<Semaphore>,
    pub arriving: Arc<Semaphore>,
}

impl Default for Bundles {
    fn default() -> Self {
        Self {
            kept: Cache::builder()
                // A short file is not free either.
                .weigher(|_, kept: &Arc<Kept>| {
                    let rows = kept.opened.cells.saturating_mul(CELL);
                    let weight = kept.bytes.saturating_add(rows).max(16 * 1024);
                    u32::try_from(weight).unwrap_or(u32::MAX)
                })
                .max_capacity(KEPT)
                .eviction_policy(EvictionPolicy::lru())
                .time_to_live(EXPIRES)
                .build(),
            reading: Arc::new(Semaphore::new(AT_ONCE)),
            arriving: Arc::new(Semaphore::new(ARRIVING)),
        }
    }
}

impl Bundles {
    /// For a process that lives as long as its reader wants: nothing expires.
    pub fn of_one_reader() -> Self {
        Self {
            kept: Cache::builder().max_capacity(16).build(),
            ..Self::default()
        }
    }

    /// Keeps a bundle and tells its address.
    pub async fn keep(&self, kept: Kept) -> Result<String, getrandom::Error> {
        let mut secret = [0; 24];
        getrandom::fill(&mut secret)?;
        let name = URL_SAFE_NO_PAD.encode(secret);
        self.kept.insert(name.clone(), Arc::new(kept)).await;
        Ok(name)
    }

    pub async fn get(&self, name: &str) -> Option<Arc<Kept>> {
        self.kept.get(name).await
    }
}

/// Checks a file and reads it; what is no bundle is told as the check tells it.
pub fn read(
    mut file: impl Read + Seek,
    bytes: u64,
    key: Option<&SigningKey>,
) -> Result<Kept, Box<Report>> {
    let mut report = verify(&mut file, key, &mut |_| ());
    if report.seal() == Seal::NotABundle {
        return Err(Box::new(report));
    }
    match bundle::open(file) {
        Ok(opened) => Ok(Kept {
            opened,
            report,
            bytes,
        }),
        Err(error) => {
            report.unreadable(error.to_string(), None);
            report.settle();
            Err(Box::new(report))
        }
    }
}

/// The same for bytes at hand, away from the threads that answer requests.
pub async fn read_bytes(
    body: impl AsRef<[u8]> + Send + 'static,
    key: Option<SigningKey>,
) -> Result<Result<Kept, Box<Report>>, tokio::task::JoinError> {
    tokio::task::spawn_blocking(move || {
        let text = body.as_ref();
        read(Cursor::new(text), text.len() as u64, key.as_ref())
    })
    .await
}
