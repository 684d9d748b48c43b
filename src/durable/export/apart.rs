//! Folds in a thread of its own, while the rows of the next batch are read.
//!
//! A batch goes back to where it was made before it is dropped: memory that one thread gives
//! back for another stays out of use for long.

use std::{io, sync::mpsc as std_mpsc};

use tokio::{sync::mpsc, task::JoinHandle};

use super::{
    folder::{Batch, Folded, Folder},
    stream::ExportError,
};

/// How many batches wait for the thread.
const AHEAD: usize = 1;

pub(super) struct Apart {
    batches: mpsc::Sender<Batch>,
    taken: std_mpsc::Receiver<(Batch, bool)>,
    folded: JoinHandle<io::Result<Folded>>,
    /// Whether the stored timeline is still worth reading.
    pub timeline_same: bool,
}

impl Apart {
    pub fn start(mut folder: Folder) -> Self {
        let (batches, mut coming) = mpsc::channel::<Batch>(AHEAD);
        let (back, taken) = std_mpsc::channel();
        let timeline_same = folder.folded.timeline_same;
        // It ends with the export: when that is dropped, no more batches come.
        let folded = tokio::task::spawn_blocking(move || {
            while let Some(mut batch) = coming.blocking_recv() {
                folder.take(&mut batch)?;
                let _ = back.send((batch, folder.folded.timeline_same));
            }
            Ok(folder.folded)
        });
        Self {
            batches,
            taken,
            folded,
            timeline_same,
        }
    }

    pub async fn take(&mut self, batch: Batch) -> Result<(), ExportError> {
        if self.batches.send(batch).await.is_err() {
            let ended = (&mut self.folded).await.map_err(io::Error::other)?;
            let why = ended.err();
            return Err(why
                .unwrap_or_else(|| io::ErrorKind::BrokenPipe.into())
                .into());
        }
        while let Ok((batch, timeline_same)) = self.taken.try_recv() {
            drop(batch);
            self.timeline_same = timeline_same;
        }
        Ok(())
    }

    pub async fn finish(self) -> Result<Folded, ExportError> {
        let Self {
            batches,
            taken,
            folded,
            ..
        } = self;
        drop(batches);
        let folded = folded.await.map_err(io::Error::other)??;
        while taken.try_recv().is_ok() {}
        Ok(folded)
    }
}
