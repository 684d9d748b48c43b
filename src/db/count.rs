//! What one request sends to the database. A page's cost must not grow with the tables: the
//! count in a response header, and the statements themselves, let a test hold it to that.

use std::future::Future;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::Statement;

tokio::task_local! {
    static SENT: Arc<AtomicU32>;
    /// Set by [`recorded`] alone: no request keeps what it sent.
    static KEPT: Arc<Mutex<Vec<Statement>>>;
}

/// Statements of this process, whoever sent them.
static TOTAL: AtomicU64 = AtomicU64::new(0);

pub fn statements_total() -> u64 {
    TOTAL.load(Ordering::Relaxed)
}

/// Counts one statement that is none, for tests of who counts.
#[cfg(test)]
pub fn bump() {
    count_one();
}

/// Outside [`counted`] (a command, a background pass) it does nothing.
fn count_one() {
    let _ = SENT.try_with(|sent| sent.fetch_add(1, Ordering::Relaxed));
}

/// Counts this statement, and keeps it where a test asked to see it.
pub(super) fn sent(statement: &Statement) {
    TOTAL.fetch_add(1, Ordering::Relaxed);
    count_one();
    let _ = KEPT.try_with(|kept| {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push(statement.clone());
    });
}

/// Runs a future and says how many statements it sent from its own task.
pub async fn counted<F: Future>(future: F) -> (F::Output, u32) {
    let sent = Arc::new(AtomicU32::default());
    let output = SENT.scope(Arc::clone(&sent), future).await;
    (output, sent.load(Ordering::Relaxed))
}

/// Runs a future and gives the statements it sent from its own task. For tests only, which
/// `explain` them; public because those that have a database stand outside this crate.
#[doc(hidden)]
pub async fn recorded<F: Future>(future: F) -> (F::Output, Vec<Statement>) {
    let kept = Arc::new(Mutex::default());
    let output = KEPT.scope(Arc::clone(&kept), future).await;
    let statements = std::mem::take(&mut *kept.lock().unwrap_or_else(PoisonError::into_inner));
    (output, statements)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn statements_are_counted_per_scope() {
        bump();
        let both = tokio::join!(
            counted(async {
                bump();
                tokio::task::yield_now().await;
                bump();
            }),
            counted(async { bump() }),
        );
        assert_eq!((both.0.1, both.1.1), (2, 1));
    }
}
