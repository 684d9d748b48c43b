//! How many statements the current request has issued, so that "constant cost" is something a
//! test can read and not a belief.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

tokio::task_local! {
    static STATEMENTS: Arc<AtomicU32>;
}

/// Notes one statement; outside a counted request it does nothing.
pub fn bump() {
    let _ = STATEMENTS.try_with(|count| count.fetch_add(1, Ordering::Relaxed));
}

/// Runs `work` and says how many statements it issued.
pub async fn counted<T>(work: impl Future<Output = T>) -> (T, u32) {
    let count = Arc::new(AtomicU32::new(0));
    let out = STATEMENTS.scope(Arc::clone(&count), work).await;
    (out, count.load(Ordering::Relaxed))
}
