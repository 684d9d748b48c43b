//! `GET …/history-export`: one run's history as a sealed bundle, written as it is read.

use std::io;

use axum::{
    body::{Body, Bytes},
    extract::{Path, State},
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use futures_util::{StreamExt as _, stream};
use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc;

use super::runs::not_found;
use crate::{
    db::Snapshot,
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

pub async fn current(
    State(app): State<App>,
    Path(instance): Path<String>,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, AppError> {
    let mut snapshot = app.db()?.snapshot().await?;
    let run = head::current_run_id(&mut snapshot, &instance).await?;
    let run = run.ok_or_else(|| not_found(&format!("A run of instance {instance}")))?;
    answer(app, snapshot, run, &method, &headers).await
}

pub async fn selected(
    State(app): State<App>,
    Path((instance, run)): Path<(String, String)>,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, AppError> {
    let mut snapshot = app.db()?.snapshot().await?;
    if !head::belongs(&mut snapshot, &instance, &run).await? {
        return Err(not_found(&format!("Run {run} of instance {instance}")));
    }
    answer(app, snapshot, run, &method, &headers).await
}

/// A run id or, failing that, an instance id.
pub async fn by_any_id(
    State(app): State<App>,
    Path(id): Path<String>,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, AppError> {
    let mut snapshot = app.db()?.snapshot().await?;
    let run = if head::exists(&mut snapshot, &id).await? {
        Some(id.clone())
    } else {
        head::current_run_id(&mut snapshot, &id).await?
    };
    let run = run.ok_or_else(|| not_found(&format!("A run or instance {id}")))?;
    answer(app, snapshot, run, &method, &headers).await
}

async fn answer(
    app: App,
    mut snapshot: Snapshot,
    run_id: String,
    method: &Method,
    asked: &HeaderMap,
) -> Result<Response, AppError> {
    let state = state::state(&mut snapshot, &run_id).await?;
    let state = state.ok_or_else(|| not_found(&format!("Run {run_id}")))?;
    let etag = etag(&app, &state);
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
        snapshot.end().await;
        return Ok((StatusCode::NOT_MODIFIED, headers).into_response());
    }
    if method == Method::HEAD {
        snapshot.end().await;
        return Ok((headers, Body::empty()).into_response());
    }
    let body = streamed(app, snapshot, run_id).await?;
    Ok((headers, body).into_response())
}

/// The bundle as it is written. What fails before the first piece is an error like any other;
/// what fails later breaks the transfer off; whoever leaves stops the reading.
async fn streamed(app: App, mut snapshot: Snapshot, run_id: String) -> Result<Body, AppError> {
    let (sink, mut pieces) = mpsc::channel::<Vec<u8>>(AHEAD);
    let writer = tokio::spawn(async move {
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
        written.map(drop)
    });
    let Some(first) = pieces.recv().await else {
        return Err(match writer.await {
            Ok(Err(ExportError::Db(error))) => error.into(),
            Ok(Err(error)) => AppError::internal("exporting the run", error),
            Ok(Ok(())) => AppError::internal("exporting the run", "nothing was written"),
            Err(error) => AppError::internal("exporting the run", error),
        });
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
    let first = stream::once(async { Ok::<_, io::Error>(Bytes::from(first)) });
    Ok(Body::from_stream(first.chain(rest.fuse())))
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
        hash.update(format!("{key:?}"));
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
