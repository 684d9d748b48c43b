//! `/bundles` and `/bundles/{bundle}`: an exported history, opened without a database.

use std::{pin::pin, sync::Arc, time::Duration};

use askama::Template;
use axum::{
    body::Bytes,
    extract::{
        FromRequest as _, Multipart, Path, RawQuery, Request, State, multipart::MultipartError,
    },
    http::{StatusCode, header},
    response::{Html, IntoResponse as _, Redirect, Response},
};
use futures_util::{Stream, StreamExt as _, TryStreamExt as _};

use super::run::{self, history as events, payload as payloads};
use crate::{
    durable::export::verify::{Finding, Report, Seal, Severity},
    run::{
        tag::{Mark, Tone},
        window::Asked,
    },
    web::{
        bundles::{EXPIRES, Kept, UPLOAD, read_bytes},
        error::AppError,
        filters,
        format::Moment,
        layout::{Layout, Nav, segment},
        state::App,
    },
};

#[derive(Template)]
#[template(path = "pages/bundles.html")]
struct BundlesView {
    layout: Layout,
    /// Bytes of a file.
    most: u64,
    /// How long one is kept.
    minutes: u64,
    /// What was wrong with the file that was just sent.
    refused: Option<Banner>,
}

impl BundlesView {
    fn new(layout: Layout, refused: Option<Banner>) -> Self {
        Self {
            layout: layout.title("Bundles").at(Nav::Bundles),
            most: UPLOAD as u64,
            minutes: EXPIRES.as_secs() / 60,
            refused,
        }
    }
}

/// What stands above a run that was read from a bundle.
#[derive(Clone, Debug)]
pub struct Banner {
    /// Its name among the bundles that are kept.
    pub name: String,
    pub seal: Seal,
    pub exported: Option<Moment>,
    pub redacted_by: Option<String>,
    pub findings: Vec<Finding>,
}

impl Banner {
    fn of(report: &Report) -> Self {
        let findings = report.decisive_first().into_iter();
        let findings = findings
            .filter(|finding| finding.severity > Severity::Info)
            .cloned()
            .collect();
        Self {
            name: String::new(),
            seal: report.seal(),
            exported: None,
            redacted_by: None,
            findings,
        }
    }

    pub fn title(&self) -> &'static str {
        match self.seal {
            Seal::Signed => "Sealed and intact",
            Seal::Unsigned => "Unsigned",
            Seal::UnknownKey => "Unknown key",
            Seal::Altered => "Altered",
            Seal::NotABundle => "Not a bundle",
        }
    }

    pub fn words(&self) -> &'static str {
        match self.seal {
            Seal::Signed => "Its checksum and its signature fit: this is what was exported.",
            Seal::Unsigned => {
                "Its checksum fits, but nobody signed it: whoever changed it could have sealed it again."
            }
            Seal::UnknownKey => {
                "Its checksum fits. It is signed with a key that is not at hand, so the signature was not checked."
            }
            Seal::Altered => "It is not what was sealed. Do not rely on what it shows.",
            Seal::NotABundle => "This file cannot be read as an exported history.",
        }
    }

    pub fn tone(&self) -> Tone {
        match self.seal {
            Seal::Signed => Tone::Ok,
            Seal::Unsigned | Seal::UnknownKey => Tone::Wait,
            Seal::Altered | Seal::NotABundle => Tone::Fail,
        }
    }

    pub fn mark(&self) -> Mark {
        match self.seal {
            Seal::Signed => Mark::Lock,
            Seal::Unsigned | Seal::UnknownKey => Mark::Question,
            Seal::Altered | Seal::NotABundle => Mark::Cross,
        }
    }
}

pub async fn choose(layout: Layout) -> Result<Html<String>, AppError> {
    Ok(Html(BundlesView::new(layout, None).render()?))
}

/// Takes a file from a form, or as the body itself.
pub async fn open(
    State(app): State<App>,
    layout: Layout,
    request: Request,
) -> Result<Response, AppError> {
    // Before the body is read, so that not every file that is sent is in memory; not the turn to
    // be looked at, which a slow sender would keep from others.
    let arriving = app.bundles.arriving.acquire().await;
    let file = sent_file(&app, request).await?;
    let _turn = app.bundles.reading.acquire().await;
    drop(arriving);
    if file.is_empty() {
        return Err(AppError::invalid("file", "Choose a file."));
    }
    let read = read_bytes(file, app.export.key.clone())
        .await
        .map_err(|error| AppError::internal("reading the bundle", error))?;
    match read {
        Ok(kept) => {
            let name = app.bundles.keep(kept).await;
            let name =
                name.map_err(|error| AppError::internal("naming the bundle", error.to_string()))?;
            Ok(Redirect::to(&href(&layout, &name)).into_response())
        }
        Err(report) => {
            let view = BundlesView::new(layout, Some(Banner::of(&report)));
            Ok((StatusCode::UNPROCESSABLE_ENTITY, Html(view.render()?)).into_response())
        }
    }
}

/// The first file of the form; none is empty. A body that is no form is the file itself.
async fn sent_file(app: &App, request: Request) -> Result<Vec<u8>, AppError> {
    let kind = request.headers().get(header::CONTENT_TYPE);
    let is_form = kind
        .and_then(|kind| kind.to_str().ok())
        .and_then(|kind| kind.get(..MULTIPART.len()))
        .is_some_and(|kind| kind.eq_ignore_ascii_case(MULTIPART));
    let refused =
        |refused: MultipartError| AppError::from_refusal(refused.status(), refused.body_text());
    if !is_form {
        let body = request.into_body().into_data_stream();
        // Whatever breaks off is too long, or no longer there to read an answer.
        return arrived(body.map_err(|_| AppError::TooLarge)).await;
    }
    let form = Multipart::from_request(request, app).await;
    let mut form =
        form.map_err(|error| AppError::from_refusal(error.status(), error.body_text()))?;
    match form.next_field().await.map_err(refused)? {
        Some(field) => arrived(field.map_err(refused)).await,
        None => Ok(Vec::new()),
    }
}

const MULTIPART: &str = "multipart/form-data";

/// How long nothing may come of a file that is being sent.
const STALLED: Duration = Duration::from_secs(30);

async fn arrived(parts: impl Stream<Item = Result<Bytes, AppError>>) -> Result<Vec<u8>, AppError> {
    let mut parts = pin!(parts);
    let mut file = Vec::new();
    loop {
        let part = tokio::time::timeout(STALLED, parts.next()).await;
        let part = part.map_err(|_| AppError::BadRequest {
            message: format!(
                "The file did not arrive whole: nothing came for {} s.",
                STALLED.as_secs()
            ),
        })?;
        let Some(part) = part else { return Ok(file) };
        file.extend_from_slice(&part?);
        if file.len() > UPLOAD {
            return Err(AppError::TooLarge);
        }
    }
}

pub fn href(layout: &Layout, name: &str) -> String {
    layout.href(&format!("/bundles/{}", segment(name)))
}

pub async fn show(
    State(app): State<App>,
    layout: Layout,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, AppError> {
    let kept = kept(&app, &name).await?;
    let opened = &kept.opened;
    let banner = Banner {
        name: name.clone(),
        exported: opened.exported_at.map(|at| layout.moment(at)),
        redacted_by: opened.redacted_by.clone(),
        ..Banner::of(&kept.report)
    };
    let here = href(&layout, &name);
    let asked = Asked::parse(query.as_deref().unwrap_or_default());
    run::of_bundle(
        &app,
        as_exported(layout, &kept),
        &opened.run,
        banner,
        here,
        asked,
    )
}

pub async fn history(
    State(app): State<App>,
    layout: Layout,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, AppError> {
    let kept = kept(&app, &name).await?;
    let run = &kept.opened.run;
    let here = href(&layout, &name);
    let asked = Asked::parse(query.as_deref().unwrap_or_default());
    let instance = run.run.workflow_instance_id.clone();
    let layout = as_exported(layout, &kept).at(Nav::Bundles);
    events::answer(
        events::Source::Held(&run.events),
        layout,
        here,
        instance,
        asked,
    )
    .await
}

pub async fn payload(
    State(app): State<App>,
    layout: Layout,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, AppError> {
    let kept = kept(&app, &name).await?;
    let run = &kept.opened.run;
    let here = href(&layout, &name);
    let asked = Asked::parse(query.as_deref().unwrap_or_default());
    let layout = as_exported(layout, &kept).at(Nav::Bundles);
    let found = payloads::held(run, layout.now, &app, &asked)?;
    let instance = run.run.workflow_instance_id.clone();
    payloads::answer(found, layout, &here, instance, &asked)
}

/// A bundle is shown as of its own moment: what was due then is not overdue since.
fn as_exported(mut layout: Layout, kept: &Kept) -> Layout {
    layout.now = kept.opened.exported_at.unwrap_or(layout.now);
    layout
}

pub async fn kept(app: &App, name: &str) -> Result<Arc<Kept>, AppError> {
    app.bundles
        .get(name)
        .await
        .ok_or_else(|| AppError::NotFound {
            what: "This bundle".to_owned(),
            how: "Opened files are kept in memory for a while only. Open the file again."
                .to_owned(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::state::Settings;

    fn form(content: &[u8]) -> Vec<u8> {
        let head =
            b"--xyz\r\nContent-Disposition: form-data; name=\"file\"; filename=\"b.json\"\r\n\
                     Content-Type: application/json\r\n\r\n";
        [&head[..], content, b"\r\n--xyz--\r\n"].concat()
    }

    async fn sent(kind: &str, body: &[u8]) -> Option<Vec<u8>> {
        let request = Request::post("/bundles")
            .header(header::CONTENT_TYPE, kind)
            .body(body.to_vec().into())
            .unwrap();
        sent_file(&App::new(Settings::default()), request)
            .await
            .ok()
            .filter(|file| !file.is_empty())
    }

    #[tokio::test]
    async fn a_form_gives_its_file_byte_for_byte() {
        for kind in [
            "multipart/form-data; boundary=xyz",
            "Multipart/Form-Data; boundary=\"xyz\"; charset=utf-8",
        ] {
            for content in [&b"{}"[..], b"\r\n\r\n{\"a\":\"--xyz\"}\r\n", b"\x00\xff"] {
                let file = sent(kind, &form(content)).await;
                assert_eq!(file.as_deref(), Some(content), "{kind}");
            }
        }
    }

    #[tokio::test]
    async fn what_is_no_whole_form_has_no_file() {
        let kind = "multipart/form-data; boundary=xyz";
        let whole = form(b"{}");
        // Whatever follows the boundary behind the file is no part of it.
        for cut in 0..whole.len() - "--\r\n".len() {
            assert_eq!(sent(kind, &whole[..cut]).await, None, "{cut}");
        }
        assert_eq!(sent(kind, &form(b"")).await, None);
        assert_eq!(sent(kind, b"--xyz--\r\n").await, None);
        assert_eq!(sent("multipart/form-data", &whole).await, None);
        assert_eq!(sent("application/json", b"").await, None);
    }

    #[tokio::test]
    async fn a_body_that_is_no_form_is_the_file() {
        let file = sent("application/json", b"{}").await;
        assert_eq!(file.as_deref(), Some(&b"{}"[..]));
    }
}
