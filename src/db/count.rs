//! How many statements one request sends. A page's cost must not grow with the tables, and the
//! count in a response header is what lets a test hold it to that.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

tokio::task_local! {
    static STATEMENTS: Arc<AtomicU32>;
}

/// Counts one statement. Outside [`counted`] (a command, a background pass) it does nothing.
pub fn bump() {
    let _ = STATEMENTS.try_with(|count| count.fetch_add(1, Ordering::Relaxed));
}

/// Runs a future and says how many statements it sent from its own task.
pub async fn counted<F: Future>(future: F) -> (F::Output, u32) {
    let count = Arc::new(AtomicU32::new(0));
    let output = STATEMENTS.scope(Arc::clone(&count), future).await;
    (output, count.load(Ordering::Relaxed))
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
