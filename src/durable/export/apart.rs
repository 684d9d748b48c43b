//! Works on batches in a thread of its own, while the rows of the next are read.
//!
//! A batch goes back to where it was made before it is dropped: memory that one thread gives
//! back for another stays out of use for long.

use std::{
    io,
    sync::{Arc, mpsc as std_mpsc},
};

use tokio::{sync::mpsc, task::JoinHandle};

use super::{folder::Batch, stream::ExportError};

/// How many batches wait for a thread.
const AHEAD: usize = 1;

pub(super) struct Apart<W> {
    batches: mpsc::Sender<Arc<Batch>>,
    taken: std_mpsc::Receiver<Arc<Batch>>,
    worker: JoinHandle<io::Result<W>>,
}

impl<W: Send + 'static> Apart<W> {
    pub fn start(mut worker: W, take: fn(&mut W, &Batch) -> io::Result<()>) -> Self {
        let (batches, mut coming) = mpsc::channel::<Arc<Batch>>(AHEAD);
        let (back, taken) = std_mpsc::channel();
        // It ends with the export: when that is dropped, no more batches come.
        let worker = tokio::task::spawn_blocking(move || {
            while let Some(batch) = coming.blocking_recv() {
                take(&mut worker, &batch)?;
                let _ = back.send(batch);
            }
            Ok(worker)
        });
        Self {
            batches,
            taken,
            worker,
        }
    }

    pub async fn take(&mut self, batch: Arc<Batch>) -> Result<(), ExportError> {
        if self.batches.send(batch).await.is_err() {
            let ended = (&mut self.worker).await.map_err(io::Error::other)?;
            let why = ended.err();
            return Err(why
                .unwrap_or_else(|| io::ErrorKind::BrokenPipe.into())
                .into());
        }
        while self.taken.try_recv().is_ok() {}
        Ok(())
    }

    pub async fn finish(self) -> Result<W, ExportError> {
        let Self {
            batches,
            taken,
            worker,
        } = self;
        drop(batches);
        let worker = worker.await.map_err(io::Error::other)??;
        while taken.try_recv().is_ok() {}
        Ok(worker)
    }
}
