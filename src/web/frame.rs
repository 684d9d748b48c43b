//! What surrounds every request: an id, a log line, the security headers, a time limit, the
//! count of statements, and a face for whatever went wrong. One middleware instead of a stack
//! of layers: a probe passes through it on every beat.

use std::any::Any;
use std::borrow::Cow;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{DefaultBodyLimit, MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use tower_http::compression::CompressionLayer;
use tracing::Instrument as _;

use crate::db;
use crate::web::error::{AppError, Face};
use crate::web::layout::{self, Choices, Layout};
use crate::web::origin::refuse_strangers;
use crate::web::state::App;

/// Forms are small; a route that takes more (a bundle) raises this with its own layer.
pub const BODY_LIMIT: usize = 256 * 1024;

/// For a bundle to arrive in. One that stops arriving is given up before.
const UPLOAD_TIME: Duration = Duration::from_mins(15);

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const STATEMENTS: HeaderName = HeaderName::from_static("x-statements");

/// Nothing is allowed but what we serve ourselves; no inline code or style anywhere.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; style-src 'self'; \
    script-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; \
    form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

const HEADERS: [(HeaderName, HeaderValue); 6] = [
    (
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(CONTENT_SECURITY_POLICY),
    ),
    (
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    ),
    (
        header::REFERRER_POLICY,
        HeaderValue::from_static("same-origin"),
    ),
    (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (
        HeaderName::from_static("permissions-policy"),
        HeaderValue::from_static(
            "camera=(), geolocation=(), microphone=(), payment=(), usb=(), clipboard-write=(self)",
        ),
    ),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        HeaderValue::from_static("same-origin"),
    ),
];

/// The id of the request, in the log, the response and every error.
#[derive(Clone, Debug)]
pub struct RequestId(HeaderValue);

impl RequestId {
    /// The caller's id if it is one we can put into a log line, otherwise a new one.
    fn of(headers: &HeaderMap) -> Self {
        let sane = |value: &&HeaderValue| {
            let bytes = value.as_bytes();
            (1..=128).contains(&bytes.len())
                && bytes
                    .iter()
                    .all(|b| b.is_ascii_alphanumeric() || b"-_.:".contains(b))
        };
        let incoming = headers.get(REQUEST_ID).filter(sane).cloned();
        Self(incoming.unwrap_or_else(|| {
            let mut text = [0; ulid::ULID_LEN];
            let text = ulid::Ulid::generate().array_to_str(&mut text);
            HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static("unknown"))
        }))
    }

    pub fn as_str(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }
}

/// Puts the frame around a router.
pub fn framed(router: Router<App>, app: App) -> Router {
    router
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .layer(from_fn_with_state(app.clone(), frame))
        .layer(CompressionLayer::new().gzip(true))
        .with_state(app)
}

async fn frame(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let started = Instant::now();
    let id = RequestId::of(request.headers());
    let asked = Asked::new(&app, &request);
    let path = logged(&app, request.uri().path());
    let span = if asked.quiet {
        tracing::debug_span!("request", request_id = id.as_str(), method = %request.method(), path = &*path)
    } else {
        tracing::info_span!("request", request_id = id.as_str(), method = %request.method(), path = &*path)
    };
    let route = request.extensions().get::<MatchedPath>().cloned();
    request.extensions_mut().insert(id.clone());

    let reads = request.method().is_safe();
    // A probe or a scraper may know us by any name, and what it gets is no secret of a run.
    let allowed = if asked.quiet {
        Ok(())
    } else {
        refuse_strangers(&app.hosts, request.method(), request.headers())
    };
    let handled = AssertUnwindSafe(async {
        match allowed {
            Ok(()) => next.run(request).await,
            Err(refused) => refused.into_response(),
        }
    });
    let limit = if asked.uploads {
        UPLOAD_TIME
    } else {
        app.request_timeout
    };
    let limited = tokio::time::timeout(limit, handled.catch_unwind());
    let (outcome, statements) = db::counted(limited).instrument(span.clone()).await;
    let response = match outcome {
        Ok(Ok(response)) => response,
        Ok(Err(panic)) => {
            AppError::internal("a handler panicked", panic_text(panic.as_ref())).into_response()
        }
        Err(_) if reads => AppError::Timeout.into_response(),
        Err(_) => AppError::WriteTimeout.into_response(),
    };
    let mut response = with_face(response, &app, asked.face, &asked, &id, &span).await;

    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, value);
    }
    headers.insert(REQUEST_ID, id.0);
    headers.insert(STATEMENTS, HeaderValue::from(statements));
    // What a page shows is true now and perhaps secret: neither browser nor proxy keeps it.
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));

    let status = response.status().as_u16();
    let took = started.elapsed();
    let ms = took.as_secs_f64() * 1_000.0;
    let route = route.as_ref().map(MatchedPath::as_str);
    app.telemetry.answered(route, status, took);
    span.in_scope(|| {
        if asked.quiet {
            tracing::debug!(status, ms, statements, "answered");
        } else {
            tracing::info!(status, ms, statements, "answered");
        }
    });
    response
}

/// The path as the log has it: whoever knows the address of a bundle may read it.
fn logged<'p>(app: &App, path: &'p str) -> Cow<'p, str> {
    let below = app.base.strip(path);
    match below.and_then(|below| below.strip_prefix("/bundles/")) {
        Some(rest) if !rest.is_empty() => {
            let part = rest.find('/').map_or("", |end| &rest[end..]);
            format!("{}/***{part}", &path[..path.len() - rest.len() - 1]).into()
        }
        _ => path.into(),
    }
}

/// What must be remembered of a request to answer it with an error.
struct Asked {
    face: Face,
    choices: Choices,
    back: String,
    /// Probes and assets would drown the log.
    quiet: bool,
    /// It takes as long as the sender's line does.
    uploads: bool,
}

impl Asked {
    fn new(app: &App, request: &Request) -> Self {
        let headers = request.headers();
        let path = request.uri().path();
        let below = app.base.strip(path);
        let accepts = |kind: &str| {
            headers
                .get_all(header::ACCEPT)
                .iter()
                .any(|value| value.to_str().is_ok_and(|value| value.contains(kind)))
        };
        let face = if below.is_some_and(|below| below.starts_with("/api/")) {
            Face::Json
        } else if layout::wants_part(headers) {
            Face::Toast
        } else if accepts("application/json") && !accepts("text/html") {
            Face::Json
        } else {
            Face::Page
        };
        let quiet = matches!(
            path,
            "/livez" | "/up" | "/readyz" | "/metrics" | "/favicon.ico"
        ) || below.is_some_and(|below| below.starts_with("/assets/"));
        Self {
            face,
            choices: if quiet {
                Choices::default()
            } else {
                Choices::of(headers)
            },
            back: if quiet {
                String::new()
            } else {
                layout::back(app, request.method(), request.uri())
            },
            quiet,
            uploads: request.method() == Method::POST && below == Some("/bundles"),
        }
    }
}

/// Gives an error its face; leaves every other response as it is.
async fn with_face(
    response: Response,
    app: &App,
    face: Face,
    asked: &Asked,
    id: &RequestId,
    span: &tracing::Span,
) -> Response {
    let (mut parts, body) = response.into_parts();
    let error = match parts.extensions.remove::<Arc<AppError>>() {
        Some(error) => error,
        None if is_refusal(parts.status, &parts.headers) => {
            let text = to_bytes(body, 4_096).await.unwrap_or_default();
            let text = String::from_utf8_lossy(&text).into_owned();
            Arc::new(AppError::from_refusal(parts.status, text))
        }
        None => return Response::from_parts(parts, body),
    };
    span.in_scope(|| error.log());
    let layout = Layout::new(app, asked.choices, asked.back.clone());
    let drawn = error.face(face, layout, id.as_str());
    // What was said beside the body (`Allow`) still holds.
    parts.headers.remove(header::CONTENT_LENGTH);
    let (drawn_parts, drawn_body) = drawn.into_parts();
    parts.status = drawn_parts.status;
    parts.headers.extend(drawn_parts.headers);
    Response::from_parts(parts, drawn_body)
}

/// The router and its extractors refuse with an empty or a plain-text body. A handler of ours
/// that answers in plain text on purpose is a probe, and those say 5xx.
fn is_refusal(status: StatusCode, headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE);
    status.is_client_error() && kind.is_none_or(|kind| kind.as_bytes().starts_with(b"text/plain"))
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without words".to_owned())
}

#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;
