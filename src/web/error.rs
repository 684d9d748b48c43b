//! Every way a request can fail, and the one place that says what the caller reads about it.
//!
//! A handler returns an [`AppError`]; it travels as a marker in the response to the frame, which
//! knows who asked and gives it a face: a page for a browser, a toast for a fragment request,
//! JSON for a script. What went wrong inside goes to the log, never to the caller.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;

use askama::Template;
use axum::Json;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use serde_json::json;

use crate::db::DbError;
use crate::web::filters;
use crate::web::layout::Layout;

type Source = Box<dyn Error + Send + Sync>;

#[derive(Debug, thiserror::Error)]
pub enum AppError {
    #[error("{what} not found")]
    NotFound { what: String, how: String },
    #[error("{message}")]
    BadRequest { message: String },
    /// Understood, but with wrong values: each is named by its field.
    #[error("{message}")]
    Unprocessable {
        message: String,
        errors: Vec<(String, String)>,
    },
    #[error("{message}")]
    Forbidden { message: String, how: String },
    #[error("method not allowed")]
    MethodNotAllowed,
    #[error("request body too large")]
    TooLarge,
    /// Something Plimsoll needs does not answer, usually the database.
    #[error("{what} is unavailable")]
    Unavailable {
        what: String,
        how: String,
        source: Option<Source>,
    },
    /// The database's account lacks a right.
    #[error("the database refused")]
    Refused(Arc<DbError>),
    #[error("the request took too long")]
    Timeout,
    /// The same of one that writes, and may go on doing so.
    #[error("the request took too long")]
    WriteTimeout,
    #[error("{doing} failed")]
    Internal { doing: String, source: Source },
}

/// Which form of an error the caller can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Face {
    Page,
    Toast,
    Json,
}

/// What the caller reads, whatever the face.
struct Words {
    status: StatusCode,
    /// The stable word scripts compare.
    code: &'static str,
    title: &'static str,
    message: String,
    how: String,
}

/// A database that is busy or gone may answer later; anything else is a fault to look into.
impl From<DbError> for AppError {
    fn from(error: DbError) -> Self {
        Self::from(&Arc::new(error))
    }
}

/// The same, from a result several requests share.
impl From<&Arc<DbError>> for AppError {
    fn from(error: &Arc<DbError>) -> Self {
        match &**error {
            DbError::Timeout { .. } => Self::Timeout,
            unavailable if unavailable.is_unavailable() => Self::Unavailable {
                what: "The database".to_owned(),
                how: "Try again shortly; if it stays, check that the database is running."
                    .to_owned(),
                source: Some(Box::new(Arc::clone(error))),
            },
            DbError::Denied(_) => Self::Refused(Arc::clone(error)),
            _ => Self::internal("asking the database", Arc::clone(error)),
        }
    }
}

impl AppError {
    /// No route has this address.
    pub fn no_such_page() -> Self {
        Self::NotFound {
            what: "This page".to_owned(),
            how: "Check the address, or start again from the list of runs.".to_owned(),
        }
    }

    /// An error the caller can do nothing about: `map_err(|e| AppError::internal("reading the run", e))`.
    pub fn internal(doing: impl Into<String>, source: impl Into<Source>) -> Self {
        Self::Internal {
            doing: doing.into(),
            source: source.into(),
        }
    }

    /// One wrong value.
    pub fn invalid(field: impl Into<String>, message: impl Into<String>) -> Self {
        let message = message.into();
        Self::Unprocessable {
            errors: vec![(field.into(), message.clone())],
            message,
        }
    }

    /// The error behind a response that was refused before any handler of ours saw it
    /// (a wrong method, a body too large, a query that does not parse).
    pub(super) fn from_refusal(status: StatusCode, text: String) -> Self {
        match status {
            StatusCode::NOT_FOUND => Self::no_such_page(),
            StatusCode::METHOD_NOT_ALLOWED => Self::MethodNotAllowed,
            StatusCode::PAYLOAD_TOO_LARGE => Self::TooLarge,
            StatusCode::UNPROCESSABLE_ENTITY => Self::Unprocessable {
                message: text,
                errors: Vec::new(),
            },
            status if status.is_client_error() => Self::BadRequest {
                message: if text.is_empty() {
                    "The request could not be understood.".to_owned()
                } else {
                    text
                },
            },
            status => Self::internal("answering", format!("status {status}: {text}")),
        }
    }

    pub fn status(&self) -> StatusCode {
        match self {
            Self::NotFound { .. } => StatusCode::NOT_FOUND,
            Self::BadRequest { .. } => StatusCode::BAD_REQUEST,
            Self::Unprocessable { .. } => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Forbidden { .. } => StatusCode::FORBIDDEN,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Unavailable { .. } | Self::Timeout | Self::WriteTimeout => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            Self::Refused(_) | Self::Internal { .. } => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    fn words(&self) -> Words {
        let (code, title, message, how) = match self {
            Self::NotFound { what, how } => {
                ("not_found", "Not found", format!("{what} was not found."), how.clone())
            }
            Self::BadRequest { message } => (
                "bad_request",
                "Request not understood",
                message.clone(),
                "Check the address or the form and try again.".to_owned(),
            ),
            Self::Unprocessable { message, .. } => (
                "unprocessable",
                "Some values are not valid",
                message.clone(),
                "Correct the values and try again.".to_owned(),
            ),
            Self::Forbidden { message, how } => {
                ("forbidden", "Not allowed", message.clone(), how.clone())
            }
            Self::MethodNotAllowed => (
                "method_not_allowed",
                "Method not allowed",
                "This address does not answer that kind of request.".to_owned(),
                "Open it from a link or form of Plimsoll.".to_owned(),
            ),
            Self::TooLarge => (
                "payload_too_large",
                "Too large",
                "What was sent is larger than Plimsoll accepts here.".to_owned(),
                "Send less at once.".to_owned(),
            ),
            Self::Unavailable { what, how, .. } => (
                "plimsoll_error",
                "Unavailable",
                format!("{what} does not answer right now."),
                how.clone(),
            ),
            Self::Refused(_) => (
                "plimsoll_error",
                "The database refused",
                "The database account Plimsoll uses lacks a right. Nothing was changed.".to_owned(),
                "Give it the rights that the README names; the log says which table it is about.".to_owned(),
            ),
            Self::Timeout => (
                "plimsoll_error",
                "Took too long",
                "The answer took too long, so the request was given up.".to_owned(),
                "Try again; a narrower filter or a shorter time range is faster.".to_owned(),
            ),
            Self::WriteTimeout => (
                "plimsoll_error",
                "Took too long",
                "This took too long, so it was not waited for. It may still be done.".to_owned(),
                "Check the run before you try again.".to_owned(),
            ),
            Self::Internal { .. } => (
                "plimsoll_error",
                "Something went wrong inside Plimsoll",
                "The request could not be answered.".to_owned(),
                "Try again; after a repair, check the run first. If it stays, give the request id below to whoever runs this server: the log has the details under it.".to_owned(),
            ),
        };
        Words {
            status: self.status(),
            code,
            title,
            message,
            how,
        }
    }

    /// Writes to the log what the caller is not told.
    pub(super) fn log(&self) {
        match self {
            Self::Internal { source, .. } => {
                tracing::error!(error = %self, cause = %chain(source.as_ref()), "request failed");
            }
            Self::Unavailable { source, .. } => {
                let cause = source.as_deref().map(|source| chain(source));
                tracing::warn!(error = %self, cause, "request failed");
            }
            Self::Refused(source) => {
                tracing::error!(error = %self, cause = %source, "request failed");
            }
            Self::Timeout | Self::WriteTimeout => tracing::warn!(error = %self, "request failed"),
            _ => {}
        }
    }

    /// The response in the form the caller can read.
    pub(super) fn face(&self, face: Face, layout: Layout, request_id: &str) -> Response {
        let words = self.words();
        let mut response = match face {
            Face::Json => Json(self.json(&words, request_id)).into_response(),
            Face::Toast => {
                let mut response = html(&Toast {
                    words: &words,
                    request_id,
                });
                let headers = response.headers_mut();
                headers.insert(RETARGET, HeaderValue::from_static("#toasts"));
                headers.insert(RESWAP, HeaderValue::from_static("innerHTML"));
                // Whatever the link wanted to pick out or put into the address bar is not here.
                headers.insert(RESELECT, HeaderValue::from_static(".toast"));
                headers.insert(PUSH_URL, HeaderValue::from_static("false"));
                response
            }
            Face::Page => html(&Page {
                layout: layout.title(words.title),
                errors: self.errors(),
                words: &words,
                request_id,
            }),
        };
        *response.status_mut() = words.status;
        if words.status == StatusCode::SERVICE_UNAVAILABLE {
            let headers = response.headers_mut();
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
        }
        response
    }

    fn errors(&self) -> &[(String, String)] {
        match self {
            Self::Unprocessable { errors, .. } => errors,
            _ => &[],
        }
    }

    fn json(&self, words: &Words, request_id: &str) -> serde_json::Value {
        if let Self::Unprocessable { message, errors } = self {
            let mut by_field = BTreeMap::<_, Vec<_>>::new();
            for (field, message) in errors {
                by_field.entry(field).or_default().push(message);
            }
            return json!({
                "message": message,
                "errors": by_field,
                "error": words.code,
                "request_id": request_id,
            });
        }
        json!({ "message": words.message, "error": words.code, "request_id": request_id })
    }
}

const RETARGET: HeaderName = HeaderName::from_static("hx-retarget");
const RESWAP: HeaderName = HeaderName::from_static("hx-reswap");
const RESELECT: HeaderName = HeaderName::from_static("hx-reselect");
const PUSH_URL: HeaderName = HeaderName::from_static("hx-push-url");

/// An error with everything that caused it, in one line.
fn chain(error: &(dyn Error + 'static)) -> String {
    std::iter::successors(Some(error), |error: &&(dyn Error + 'static)| {
        (*error).source()
    })
    .map(ToString::to_string)
    .collect::<Vec<_>>()
    .join(": ")
}

#[derive(Template)]
#[template(path = "error.html")]
struct Page<'a> {
    layout: Layout,
    words: &'a Words,
    errors: &'a [(String, String)],
    request_id: &'a str,
}

#[derive(Template)]
#[template(path = "toast.html")]
struct Toast<'a> {
    words: &'a Words,
    request_id: &'a str,
}

/// An error page that cannot be drawn must not become another error.
fn html(view: &impl Template) -> Response {
    let text = view
        .render()
        .unwrap_or_else(|_| "Something went wrong inside Plimsoll.".to_owned());
    Html(text).into_response()
}

impl From<askama::Error> for AppError {
    fn from(error: askama::Error) -> Self {
        Self::internal("drawing the page", error)
    }
}

impl IntoResponse for AppError {
    fn into_response(self) -> Response {
        let mut response = self.status().into_response();
        response.extensions_mut().insert(Arc::new(self));
        response
    }
}
