//! Where the text leaves: it is sealed on its way out, while more of it is made.

use tokio::{sync::mpsc, task::JoinHandle};

use super::{
    seal::{Sealer, SigningKey},
    stream::{ExportError, Sink},
};
use crate::durable::canonical;

/// How many pieces wait to be sealed.
const AHEAD: usize = 2;

pub(super) struct Outlet {
    pieces: mpsc::Sender<Piece>,
    sent: JoinHandle<Result<Sent, ExportError>>,
}

enum Piece {
    Text(Vec<u8>),
    /// The last of the text, but for what closes the document.
    End(Vec<u8>),
}

/// What left.
pub(super) struct Sent {
    pub checksum: String,
    pub bytes: u64,
}

impl Outlet {
    pub fn open(key: Option<&SigningKey>, sink: Sink) -> Self {
        let (pieces, coming) = mpsc::channel(AHEAD);
        let key_id = key.and_then(|key| key.id.clone());
        let sent = tokio::spawn(seal(coming, Sealer::new(key), key_id, sink));
        Self { pieces, sent }
    }

    pub async fn send(&self, piece: Vec<u8>) -> Result<(), ExportError> {
        let sent = self.pieces.send(Piece::Text(piece)).await;
        sent.map_err(|_| ExportError::Gone)
    }

    pub async fn finish(self, rest: Vec<u8>) -> Result<Sent, ExportError> {
        let sent = self.pieces.send(Piece::End(rest)).await;
        sent.map_err(|_| ExportError::Gone)?;
        self.sent.await.map_err(|_| ExportError::Gone)?
    }
}

/// Hands on what comes. Only a text that came to its end gets a seal.
async fn seal(
    mut coming: mpsc::Receiver<Piece>,
    mut sealer: Sealer,
    key_id: Option<String>,
    sink: Sink,
) -> Result<Sent, ExportError> {
    let mut bytes = 0;
    while let Some(piece) = coming.recv().await {
        let text = match piece {
            Piece::Text(text) => {
                sealer.update(&text);
                bytes += text.len() as u64;
                sink.send(text).await.map_err(|_| ExportError::Gone)?;
                continue;
            }
            Piece::End(text) => text,
        };
        // The seal is over the document without its own member.
        sealer.update(&text);
        sealer.update(b"}");
        let sealed = sealer.finish();
        let mut end = text;
        end.extend_from_slice(b",\"integrity\":");
        canonical::write(&mut end, &sealed.integrity(key_id.as_deref()));
        end.extend_from_slice(b"}\n");
        bytes += end.len() as u64;
        sink.send(end).await.map_err(|_| ExportError::Gone)?;
        return Ok(Sent {
            checksum: sealed.checksum,
            bytes,
        });
    }
    Err(ExportError::Gone)
}
