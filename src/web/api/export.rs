//! `GET …/history-export`: one run's history as a sealed bundle, written as it is read.

use std::{io, sync::Arc, time::Duration};

use axum::{
    body::{Body, Bytes},
    extract::{Path, State},
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use futures_util::{StreamExt as _, stream};
use sha2::{Digest as _, Sha256};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    time::{sleep, timeout},
};

use super::runs::not_found;
use crate::{
    db::{Db, Snapshot},
    durable::{
        export::{
            seal::hex,
            stream::{ExportError, Options, write},
        },
        store::{head, state},
    },
    web::{
        error::AppError,
        state::{App, VERSION},
    },
};

/// How many pieces wait for a slow reader before the reading waits too.
const AHEAD: usize = 4;
/// How long the first piece may take before the headers leave without it. Until then a failure is
/// an answer like any other.
const FIRST: Duration = Duration::from_secs(5);
/// How many connections of the pool are never used for exports, so that pages have some.
const KEPT_FREE: u32 = 2;

/// Who may export now. An export keeps its connection for as long as its reader takes.
#[derive(Clone, Debug)]
pub struct Turns {
    free: Arc<Semaphore>,
    /// How long one waits for a turn before being sent away.
    pub wait: Duration,
    /// How long a reader may take nothing before the export is given up.
    pub stall: Duration,
}

impl Default for Turns {
    fn default() -> Self {
        Self {
            free: Arc::new(Semaphore::new(0)),
            wait: Duration::from_secs(20),
            stall: Duration::from_secs(30),
        }
    }
}

impl Turns {
    /// As many as the pool of the database can spare.
    pub(in crate::web) fn open(&self, db: &Db) {
        let most = db.pool_use().most.saturating_sub(KEPT_FREE).max(1);
        self.free
            .add_permits(usize::try_from(most).unwrap_or(usize::MAX));
    }

    async fn next(&self) -> Result<OwnedSemaphorePermit, AppError> {
        let turn = timeout(self.wait, Arc::clone(&self.free).acquire_owned()).await;
        turn.ok()
            .and_then(Result::ok)
            .ok_or_else(|| AppError::Unavailable {
                what: "A free connection for another export".to_owned(),
                how: "Several exports are being read; try again shortly.".to_owned(),
                source: None,
            })
    }

    /// Ends when nothing was taken from the channel for too long.
    async fn stalled(&self, sink: &mpsc::Sender<Vec<u8>>) {
        while let Ok(Ok(room)) = timeout(self.stall, sink.reserve()).await {
            drop(room);
            sleep(self.stall / 4).await;
        }
    }
}

/// A connection for an export, and the right to hold it.
struct Reading {
    snapshot: Snapshot,
    turn: OwnedSemaphorePermit,
}

/// What was asked for, by the address.
enum Wanted {
    CurrentOf(String),
    Selected {
        instance: String,
        run: String,
    },
    /// A run id or, failing that, an instance id.
    Any(String),
}

impl Wanted {
    async fn run(self, snapshot: &mut Snapshot) -> Result<String, AppError> {
        match self {
            Self::CurrentOf(instance) => head::current_run_id(snapshot, &instance)
                .await?
                .ok_or_else(|| not_found(&format!("A run of instance {instance}"))),
            Self::Selected { instance, run } => {
                if head::belongs(snapshot, &instance, &run).await? {
                    Ok(run)
                } else {
                    Err(not_found(&format!("Run {run} of instance {instance}")))
                }
            }
            Self::Any(id) if head::exists(snapshot, &id).await? => Ok(id),
            Self::Any(id) => head::current_run_id(snapshot, &id)
                .await?
                .ok_or_else(|| not_found(&format!("A run or instance {id}"))),
        }
    }
}

pub async fn current(
    State(app): State<App>,
    Path(instance): Path<String>,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, AppError> {
    answer(app, Wanted::CurrentOf(instance), &method, &headers).await
}

pub async fn selected(
    State(app): State<App>,
    Path((instance, run)): Path<(String, String)>,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, AppError> {
    let wanted = Wanted::Selected { instance, run };
    answer(app, wanted, &method, &headers).await
}

pub async fn by_any_id(
    State(app): State<App>,
    Path(id): Path<String>,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, AppError> {
    answer(app, Wanted::Any(id), &method, &headers).await
}

async fn tag(app: &App, snapshot: &mut Snapshot, run_id: &str) -> Result<String, AppError> {
    let state = state::state(snapshot, run_id).await?;
    let state = state.ok_or_else(|| not_found(&format!("Run {run_id}")))?;
    Ok(etag(app, &state))
}

async fn answer(
    app: App,
    wanted: Wanted,
    method: &Method,
    asked: &HeaderMap,
) -> Result<Response, AppError> {
    let db = app.db()?.clone();
    let mut snapshot = db.snapshot().await?;
    let run_id = wanted.run(&mut snapshot).await?;
    let etag = tag(&app, &mut snapshot, &run_id).await?;
    snapshot.end().await;
    let file = format!("workflow-history-{}.json", file_name(&run_id));
    let mut headers = HeaderMap::new();
    let text = |text: String| {
        HeaderValue::try_from(text).map_err(|error| AppError::internal("naming the file", error))
    };
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    headers.insert(
        header::CONTENT_DISPOSITION,
        text(format!("attachment; filename=\"{file}\""))?,
    );
    headers.insert(header::ETAG, text(etag.clone())?);
    let known = asked
        .get(header::IF_NONE_MATCH)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| value == "*" || value.split(',').any(|one| one.trim() == etag));
    if known {
        return Ok((StatusCode::NOT_MODIFIED, headers).into_response());
    }
    if method == Method::HEAD {
        // Of a length nobody knows before it is written.
        let nothing = Body::from_stream(stream::empty::<Result<Bytes, io::Error>>());
        return Ok((headers, nothing).into_response());
    }
    let turn = app.exports.next().await?;
    let mut snapshot = db.unhurried().await?;
    // The run may have gone on while its export waited.
    let etag = tag(&app, &mut snapshot, &run_id).await?;
    headers.insert(header::ETAG, text(etag)?);
    let body = streamed(app, Reading { snapshot, turn }, run_id).await?;
    Ok((headers, body).into_response())
}

/// The bundle as it is written. What fails before the first piece is an error like any other;
/// what fails later breaks the transfer off; whoever leaves, or stops reading, stops the export.
async fn streamed(app: App, reading: Reading, run_id: String) -> Result<Body, AppError> {
    let (sink, mut pieces) = mpsc::channel::<Vec<u8>>(AHEAD);
    let writer = tokio::spawn(async move {
        let Reading { mut snapshot, turn } = reading;
        let options = Options {
            now: app.clock.now(),
            config: &app.engine,
            policy: app.export.policy.as_ref(),
            key: app.export.key.as_ref(),
            batch: Options::BATCH,
        };
        let gone = sink.clone();
        let written = tokio::select! {
            written = write(&mut snapshot, &run_id, options, sink) => written,
            () = gone.closed() => Err(ExportError::Gone),
            () = app.exports.stalled(&gone) => Err(ExportError::Gone),
        };
        match &written {
            Ok(done) => {
                tracing::info!(run_id, bytes = done.bytes, events = done.events, "exported");
                let left_out = done.notices.list().len() + done.notices.left_out();
                if left_out > 0 {
                    tracing::warn!(
                        run_id,
                        left_out,
                        "an export could not take every stored value"
                    );
                }
            }
            Err(ExportError::Gone) => tracing::info!(run_id, "the reader of an export left"),
            Err(error) => tracing::error!(run_id, %error, "an export broke off"),
        }
        // The reader is told to expect no more only now, when the outcome is known.
        drop(gone);
        snapshot.end().await;
        drop(turn);
        written.map(drop)
    });
    let first = match timeout(FIRST, pieces.recv()).await {
        Ok(None) => {
            return Err(match writer.await {
                Ok(Err(ExportError::Db(error))) => error.into(),
                Ok(Err(error)) => AppError::internal("exporting the run", error),
                Ok(Ok(())) => AppError::internal("exporting the run", "nothing was written"),
                Err(error) => AppError::internal("exporting the run", error),
            });
        }
        Ok(first) => first,
        Err(_) => None,
    };
    let rest = stream::unfold((pieces, Some(writer)), async |(mut pieces, mut writer)| {
        if let Some(piece) = pieces.recv().await {
            return Some((Ok(Bytes::from(piece)), (pieces, writer)));
        }
        // All pieces are out: the end is only the end if the writer says so.
        match writer.take()?.await {
            Ok(Ok(())) => None,
            _ => Some((
                Err(io::Error::other("the export broke off")),
                (pieces, None),
            )),
        }
    });
    let first = first.map(|piece| Ok::<_, io::Error>(Bytes::from(piece)));
    Ok(Body::from_stream(stream::iter(first).chain(rest.fuse())))
}

/// The same rows under the same settings; weak, because each bundle says when it was made.
fn etag(app: &App, state: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(state);
    hash.update(VERSION);
    if let Some(policy) = &app.export.policy {
        hash.update(format!("{policy:?}"));
    }
    if let Some(key) = &app.export.key {
        hash.update(format!("{key:?} {}", key.fingerprint()));
    }
    format!("W/\"{}\"", &hex(&hash.finalize())[..32])
}

/// An id as a part of a file name.
fn file_name(id: &str) -> String {
    id.chars()
        .take(100)
        .map(|c| {
            if c.is_ascii_alphanumeric() || "-_.".contains(c) {
                c
            } else {
                '_'
            }
        })
        .collect()
}
