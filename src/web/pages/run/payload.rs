//! `/instances/{instance}/runs/{run}/payload`: one payload whole, to look at or to keep.

use askama::Template;
use axum::{
    extract::{Path, RawQuery, State},
    http::{HeaderValue, header},
    response::{Html, IntoResponse as _, Response},
};

use chrono::{DateTime, Utc};

use super::{load, missing};
use crate::{
    durable::{
        page::payloads,
        projection::{Context, Projected},
        store::{
            head::{belongs, payload_codec},
            snapshot::RunSnapshot,
        },
    },
    run::{data::Whole, window::Asked},
    web::{
        error::AppError,
        filters,
        layout::{Layout, Nav},
        state::App,
    },
};

/// What a page shows of a payload at most; all of it can be downloaded.
const SHOWN: usize = 256 * 1_024;

#[derive(Template)]
#[template(path = "pages/payload.html")]
struct PayloadPage<'p> {
    layout: Layout,
    instance_id: String,
    here: String,
    title: String,
    parts: &'p [Part],
}

/// What a page already there takes in.
#[derive(Template)]
#[template(path = "run/payload_parts.html")]
struct PayloadPart<'p> {
    parts: &'p [Part],
    /// Inside a table, below the row that asked.
    in_row: bool,
    title: String,
}

#[derive(Debug)]
pub struct Part {
    pub name: String,
    pub whole: Whole,
    pub download: String,
    /// How many bytes of it there are.
    pub bytes: u64,
    /// The text was longer than a page shows.
    pub cut: bool,
}

pub async fn show(
    State(app): State<App>,
    layout: Layout,
    Path((instance, run)): Path<(String, String)>,
    RawQuery(query): RawQuery,
) -> Result<Response, AppError> {
    let asked = Asked::parse(&query.unwrap_or_default());
    let found = if asked.get("of") == Some("event") {
        event(&app, &instance, &run, sequence(&asked)?).await?
    } else {
        let rows = load(&app, &instance, Some(&run)).await?;
        of_run(&rows, layout.now, &app, &asked)
    };
    let here = layout.run_href(&instance, &run);
    answer(found, layout.at(Nav::Runs), &here, instance, &asked)
}

/// The payload a bundle holds.
pub fn held(
    rows: &RunSnapshot,
    now: DateTime<Utc>,
    app: &App,
    asked: &Asked,
) -> Result<Found, AppError> {
    if asked.get("of") != Some("event") {
        return Ok(of_run(rows, now, app, asked));
    }
    let sequence = sequence(asked)?;
    let event = rows.events.iter().find(|event| event.sequence == sequence);
    let codec = rows.run.payload_codec.as_deref();
    Ok(event.map_or_else(Vec::new, |event| payloads::of_event(event, codec)))
}

/// The parts of a payload by name.
pub type Found = Vec<(String, Whole)>;

fn of_run(rows: &RunSnapshot, now: DateTime<Utc>, app: &App, asked: &Asked) -> Found {
    let get = |name| asked.get(name).unwrap_or_default();
    let projected = Projected::of(Context {
        snapshot: rows,
        now,
        config: &app.engine,
    });
    payloads::find(&projected, get("of"), get("id"), get("part"))
        .map(|whole| (get("part").to_owned(), whole))
        .into_iter()
        .collect()
}

fn sequence(asked: &Asked) -> Result<i64, AppError> {
    let id = asked.get("id").unwrap_or_default();
    id.parse()
        .map_err(|_| AppError::invalid("id", format!("{id} is not the number of an event.")))
}

/// The payload on its page, in the page that asked, or as a file.
pub fn answer(
    found: Found,
    layout: Layout,
    here: &str,
    instance: String,
    asked: &Asked,
) -> Result<Response, AppError> {
    let get = |name| asked.get(name).unwrap_or_default();
    let (of, id, part) = (get("of"), get("id"), get("part"));
    if found.is_empty() {
        return Err(AppError::NotFound {
            what: "This payload".to_owned(),
            how: "Go back to the run: it may have changed since.".to_owned(),
        });
    }
    if let Some(name) = asked.get("download") {
        let file = match id {
            "" => format!("{of}-{name}"),
            id => format!("{of}-{id}-{name}"),
        };
        let wanted = found.into_iter().find(|(part, _)| part == name);
        return wanted
            .map(|(_, whole)| download(&file, whole))
            .ok_or_else(|| AppError::NotFound {
                what: "This part of the payload".to_owned(),
                how: "Open the payload to see which parts it has.".to_owned(),
            });
    }
    let parts: Vec<Part> = found
        .into_iter()
        .map(|(name, whole)| {
            let query = asked.changed(&[("download", Some(&name)), ("in", None)]);
            Part::new(name, whole, format!("{here}/payload{query}"))
        })
        .collect();
    let title = match (of, id) {
        ("event", id) => format!("Payload of event {id}"),
        (of, "") => format!("{part} of the {of}"),
        (of, id) => format!("{part} of {} {id}", of.replace('_', " ")),
    };
    let body = if layout.partial {
        PayloadPart {
            parts: &parts,
            in_row: asked.get("in") == Some("row"),
            title,
        }
        .render()?
    } else {
        PayloadPage {
            layout: layout.title(title.clone()),
            instance_id: instance,
            here: here.to_owned(),
            title,
            parts: &parts,
        }
        .render()?
    };
    Ok(Html(body).into_response())
}

/// One event's payload costs one lookup, however long the history.
async fn event(app: &App, instance: &str, run: &str, sequence: i64) -> Result<Found, AppError> {
    let mut snapshot = app.db()?.snapshot().await?;
    if !belongs(&mut snapshot, instance, run).await? {
        return Err(missing(instance, Some(run)));
    }
    let event = app.reader.event(&mut snapshot, run, sequence).await?;
    let codec = payload_codec(&mut snapshot, run).await?;
    snapshot.end().await;
    Ok(event.map_or_else(Vec::new, |event| {
        payloads::of_event(&event, codec.as_deref())
    }))
}

impl Part {
    fn new(name: String, mut whole: Whole, download: String) -> Self {
        let bytes = whole.text.len();
        let cut = bytes > SHOWN;
        if cut {
            let end = (0..=SHOWN)
                .rev()
                .find(|at| whole.text.is_char_boundary(*at));
            whole.text.truncate(end.unwrap_or(0));
        }
        Self {
            name,
            whole,
            download,
            bytes: u64::try_from(bytes).unwrap_or(u64::MAX),
            cut,
        }
    }
}

fn download(name: &str, whole: Whole) -> Response {
    let plain: String = name
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '-' || c == '_' {
                c
            } else {
                '-'
            }
        })
        .take(120)
        .collect();
    let (kind, ending) = if whole.json {
        ("application/json", "json")
    } else {
        ("text/plain; charset=utf-8", "txt")
    };
    let disposition = format!("attachment; filename=\"{plain}.{ending}\"");
    let disposition = HeaderValue::from_str(&disposition)
        .unwrap_or_else(|_| HeaderValue::from_static("attachment"));
    (
        [
            (header::CONTENT_TYPE, HeaderValue::from_static(kind)),
            (header::CONTENT_DISPOSITION, disposition),
        ],
        whole.text,
    )
        .into_response()
}
