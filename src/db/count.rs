//! What one request sends to the database. A page's cost must not grow with the tables: the
//! count in a response header, and the statements themselves, let a test hold it to that.

use std::future::Future;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::Statement;

#[derive(Default)]
struct Sent {
    count: AtomicU32,
    statements: Option<Mutex<Vec<Statement>>>,
}

tokio::task_local! {
    static SENT: Arc<Sent>;
}

/// Statements of this process, whoever sent them.
static TOTAL: AtomicU64 = AtomicU64::new(0);

pub fn statements_total() -> u64 {
    TOTAL.load(Ordering::Relaxed)
}

/// Counts one statement. Outside [`counted`] (a command, a background pass) it does nothing.
pub fn bump() {
    let _ = SENT.try_with(|sent| sent.count.fetch_add(1, Ordering::Relaxed));
}

/// Counts this statement, and keeps it where someone asked to see it.
pub(super) fn sent(statement: &Statement) {
    TOTAL.fetch_add(1, Ordering::Relaxed);
    let _ = SENT.try_with(|sent| {
        sent.count.fetch_add(1, Ordering::Relaxed);
        if let Some(kept) = &sent.statements {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.push(statement.clone());
        }
    });
}

/// Runs a future and says how many statements it sent from its own task.
pub async fn counted<F: Future>(future: F) -> (F::Output, u32) {
    let sent = Arc::new(Sent::default());
    let output = SENT.scope(Arc::clone(&sent), future).await;
    (output, sent.count.load(Ordering::Relaxed))
}

/// Runs a future and gives the statements it sent from its own task, for a test to `explain`.
pub async fn recorded<F: Future>(future: F) -> (F::Output, Vec<Statement>) {
    let sent = Arc::new(Sent {
        statements: Some(Mutex::default()),
        ..Sent::default()
    });
    let output = SENT.scope(Arc::clone(&sent), future).await;
    let kept = sent.statements.as_ref().map(|kept| {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *kept)
    });
    (output, kept.unwrap_or_default())
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
