//! `/bundles` and `/bundles/{bundle}`: an exported history, opened without a database.

use std::sync::Arc;

use askama::Template;
use axum::{
    body::{Body, Bytes, to_bytes},
    extract::{Path, RawQuery, State},
    http::{HeaderMap, StatusCode, header},
    response::{Html, IntoResponse as _, Redirect, Response},
};

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
    headers: HeaderMap,
    body: Body,
) -> Result<Response, AppError> {
    // Before the body is read, so that not every file that is sent is in memory; not the turn to
    // be looked at, which a slow sender would keep from others.
    let arriving = app.bundles.arriving.acquire().await;
    let body = to_bytes(body, UPLOAD)
        .await
        .map_err(|_| AppError::TooLarge)?;
    let _turn = app.bundles.reading.acquire().await;
    drop(arriving);
    let kind = headers.get(header::CONTENT_TYPE);
    let file = sent_file(kind.and_then(|kind| kind.to_str().ok()), body)
        .ok_or_else(|| AppError::invalid("file", "Choose a file."))?;
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

/// The one file of the form: between the first empty line and the last boundary. A body that is
/// no form is the file itself.
fn sent_file(kind: Option<&str>, body: Bytes) -> Option<Bytes> {
    const HEAD: usize = 8 * 1024;
    let Some(form) = kind.and_then(|kind| kind.strip_prefix("multipart/form-data")) else {
        return (!body.is_empty()).then_some(body);
    };
    let boundary = form.split("boundary=").nth(1)?;
    let boundary = boundary.split(';').next()?.trim().trim_matches('"');
    let start = body
        .get(..body.len().min(HEAD))?
        .windows(4)
        .position(|four| four == b"\r\n\r\n")?
        + 4;
    let rest = body.get(start..)?;
    let rest = rest.strip_suffix(b"\r\n").unwrap_or(rest);
    let rest = rest
        .strip_suffix(b"--")?
        .strip_suffix(boundary.as_bytes())?;
    let rest = rest.strip_suffix(b"\r\n--")?;
    (!rest.is_empty()).then(|| body.slice(start..start + rest.len()))
}

pub fn href(layout: &Layout, name: &str) -> String {
    layout.href(&format!("/bundles/{}", segment(name)))
}

pub async fn show(
    State(app): State<App>,
    layout: Layout,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Html<String>, AppError> {
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

    fn form(content: &[u8]) -> Bytes {
        let head =
            b"--xyz\r\nContent-Disposition: form-data; name=\"file\"; filename=\"b.json\"\r\n\
                     Content-Type: application/json\r\n\r\n";
        [head.as_slice(), content, b"\r\n--xyz--\r\n"]
            .concat()
            .into()
    }

    #[test]
    fn a_form_gives_its_file_byte_for_byte() {
        let kind = Some("multipart/form-data; boundary=xyz");
        for content in [&b"{}"[..], b"\r\n\r\n{\"a\":\"--xyz\"}\r\n", b"\x00\xff"] {
            assert_eq!(sent_file(kind, form(content)).as_deref(), Some(content));
        }
        let quoted = Some("multipart/form-data; boundary=\"xyz\"; charset=utf-8");
        assert_eq!(sent_file(quoted, form(b"{}")).as_deref(), Some(&b"{}"[..]));
    }

    #[test]
    fn what_is_no_whole_form_has_no_file() {
        let kind = Some("multipart/form-data; boundary=xyz");
        let whole = form(b"{}");
        for cut in 0..whole.len() - 2 {
            assert_eq!(sent_file(kind, whole.slice(..cut)), None, "{cut}");
        }
        assert_eq!(sent_file(kind, form(b"")), None);
        assert_eq!(sent_file(Some("multipart/form-data"), form(b"{}")), None);
        assert_eq!(sent_file(None, Bytes::new()), None);
    }

    #[test]
    fn a_body_that_is_no_form_is_the_file() {
        let body = Bytes::from_static(b"{}");
        assert_eq!(
            sent_file(Some("application/json"), body.clone()),
            Some(body)
        );
    }
}
