//! Works in a thread of its own on what is read, while more is read.
//!
//! What was worked on goes back to where it was made before it is dropped: memory that one thread
//! gives back for another stays out of use for long.

use std::{io, sync::mpsc as std_mpsc};

use tokio::{sync::mpsc, task::JoinHandle};

use super::stream::ExportError;

/// How much waits for a thread.
const AHEAD: usize = 1;

pub(super) struct Apart<B, D> {
    batches: mpsc::Sender<B>,
    taken: std_mpsc::Receiver<B>,
    work: JoinHandle<io::Result<D>>,
}

/// What comes to a thread.
pub(super) struct Coming<B> {
    batches: mpsc::Receiver<B>,
    back: std_mpsc::Sender<B>,
}

impl<B> Coming<B> {
    pub fn each(mut self, mut take: impl FnMut(&mut B) -> io::Result<()>) -> io::Result<()> {
        while let Some(mut batch) = self.batches.blocking_recv() {
            take(&mut batch)?;
            let _ = self.back.send(batch);
        }
        Ok(())
    }
}

impl<B: Send + 'static, D: Send + 'static> Apart<B, D> {
    pub fn start(work: impl FnOnce(Coming<B>) -> io::Result<D> + Send + 'static) -> Self {
        let (batches, coming) = mpsc::channel(AHEAD);
        let (back, taken) = std_mpsc::channel();
        let coming = Coming {
            batches: coming,
            back,
        };
        Self {
            batches,
            taken,
            // It ends with the export: when that is dropped, no more batches come.
            work: tokio::task::spawn_blocking(move || work(coming)),
        }
    }

    /// Waits until what was taken last is worked on: to make the next before would only hold more
    /// in memory.
    pub async fn ready(&mut self) {
        // A thread that ended takes nothing any more, and says why when it is asked to.
        let _ = self.batches.reserve().await;
        while self.taken.try_recv().is_ok() {}
    }

    pub async fn take(&mut self, batch: B) -> Result<(), ExportError> {
        if self.batches.send(batch).await.is_err() {
            let ended = (&mut self.work).await.map_err(io::Error::other)?;
            let why = ended.err();
            return Err(why
                .unwrap_or_else(|| io::ErrorKind::BrokenPipe.into())
                .into());
        }
        Ok(())
    }

    pub async fn finish(self) -> Result<D, ExportError> {
        let Self {
            batches,
            taken,
            work,
        } = self;
        drop(batches);
        let done = work.await.map_err(io::Error::other)??;
        while taken.try_recv().is_ok() {}
        Ok(done)
    }
}
