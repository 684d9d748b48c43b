//! Writes a plan's runs into a database, in batches.

use std::time::{Duration, Instant};

use thiserror::Error;
use tokio::sync::mpsc;

use super::{Generator, MARK, Plan};
use crate::{
    db::{Db, DbError},
    demo::{rows::InsertRow, write::write},
};

/// Rows gathered before they are written: a transaction's worth.
const BATCH: usize = 50_000;

#[derive(Debug, Error)]
pub enum SeedError {
    #[error(transparent)]
    Db(#[from] DbError),
    #[error("{0}")]
    Refused(String),
    /// The database is not one that runs could be written to.
    #[error("{0}")]
    Lacking(String),
}

#[derive(Clone, Copy, Debug)]
pub struct Loaded {
    pub runs: u64,
    pub rows: u64,
    pub took: Duration,
}

impl std::fmt::Display for Loaded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let seconds = self.took.as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
        let rate = self.rows as f64 / seconds.max(1e-3);
        let Self { runs, rows, .. } = self;
        write!(
            f,
            "{runs} runs, {rows} rows in {seconds:.1} s ({rate:.0} rows/s)"
        )
    }
}

/// Stops before made-up runs are mixed with real ones.
pub async fn refuse_foreign_runs(db: &Db) -> Result<(), SeedError> {
    let mut q = db.statement();
    q.push("select 1 as found from {workflow_runs} where fairness_key is null or fairness_key <> ")
        .bind(MARK)
        .push(" limit 1");
    if db.fetch(q).await?.is_empty() {
        return Ok(());
    }
    Err(SeedError::Refused(
        "This database has runs that `seed` did not write; made-up runs among them cannot be \
         taken out again. Use an empty database, or say --yes."
            .into(),
    ))
}

/// Stops before the very same runs are written a second time.
pub async fn refuse_repetition(db: &Db, plan: &Plan) -> Result<(), SeedError> {
    let first = Generator::new(plan.clone()).next().unwrap_or_default();
    let instance = first
        .iter()
        .find(|row| row.table == "workflow_instances")
        .and_then(|row| row.text("id"));
    let mut q = db.statement();
    q.push("select 1 as found from {workflow_instances} where id = ")
        .bind(instance.unwrap_or_default());
    if db.fetch(q).await?.is_empty() {
        return Ok(());
    }
    Err(SeedError::Refused(
        "These very runs are here already; use another --seed or --clock for more.".into(),
    ))
}

/// Writes everything; `progress` hears how many runs are written.
pub async fn load(db: &Db, plan: Plan, mut progress: impl FnMut(u64)) -> Result<Loaded, SeedError> {
    let began = Instant::now();
    // Made on another thread, one batch ahead of the database.
    let (ahead, mut batches) = mpsc::channel(1);
    tokio::task::spawn_blocking(move || make(plan, &ahead));
    let mut loaded = Loaded {
        runs: 0,
        rows: 0,
        took: Duration::ZERO,
    };
    while let Some((runs, batch)) = batches.recv().await {
        loaded.rows += write(db, batch, |_| ()).await?;
        loaded.runs = runs;
        progress(runs);
    }
    loaded.took = began.elapsed();
    Ok(loaded)
}

/// Sends batches until all runs are made, or nobody wants them any more.
fn make(plan: Plan, ahead: &mpsc::Sender<(u64, Vec<InsertRow>)>) {
    let mut generator = Generator::new(plan);
    loop {
        let mut batch = Vec::with_capacity(BATCH + 100);
        while batch.len() < BATCH {
            let Some(run) = generator.next() else { break };
            batch.extend(run);
        }
        if batch.is_empty() || ahead.blocking_send((generator.runs(), batch)).is_err() {
            return;
        }
    }
}
