//! `/runs`: every run of every status, newest first.

mod form;
mod request;

use askama::Template;
use axum::{
    extract::State,
    http::StatusCode,
    response::{Html, IntoResponse as _, Redirect, Response},
};
use chrono::{DateTime, TimeDelta, Utc};

pub use self::request::{DEFAULT_SIZE, ListRequest};
use self::{
    form::{Group, groups},
    request::SIZES,
};
use crate::{
    db::Snapshot,
    durable::{
        projection::list_row::{list_row, unprojected_row},
        store::runs::{
            self, CHECKED, Cursor, Direction, Filter, FilterError, PageRequest, RunPage,
            counts::{BucketCounts, Capped},
            extras,
        },
    },
    run::list::ListRow,
    web::{
        error::AppError,
        filters,
        format::{self, Moment},
        layout::{Layout, Nav},
        state::App,
    },
};

#[derive(Template)]
#[template(path = "pages/runs.html")]
struct RunsView {
    layout: Layout,
    /// "10,000+ match · counts 3 s old"
    summary: String,
    buckets: Vec<Chip>,
    terms: Vec<TermChip>,
    groups: Vec<Group>,
    form_open: bool,
    errors: Vec<FilterError>,
    rows: Vec<RowView>,
    unprojected: Vec<RowView>,
    checked: String,
    empty: Option<Empty>,
    sizes: Vec<Chip>,
    order: Chip,
    newest_first: bool,
    previous: Option<String>,
    next: Option<String>,
    note: String,
    /// Set when looking further may find more.
    look_on: Option<String>,
}

struct Chip {
    href: String,
    label: &'static str,
    count: Option<String>,
    on: bool,
}

struct TermChip {
    href: String,
    label: String,
    value: String,
}

struct RowView {
    row: ListRow,
    href: String,
    started: Option<Moment>,
    until: Option<Moment>,
}

struct Empty {
    title: String,
    hint: String,
    /// Filters that hide rows: taking one away shows some.
    ways: Vec<TermChip>,
}

pub async fn show(
    State(app): State<App>,
    layout: Layout,
    list: ListRequest,
) -> Result<Response, AppError> {
    let layout = layout.title("Runs").at(Nav::Runs);
    if list.untidy {
        return Ok(Redirect::to(&layout.href(&format!("/runs{}", list.query()))).into_response());
    }
    let db = app.db()?;
    let counts = app
        .counts
        .buckets(db, app.clock)
        .await
        .map_err(|error| AppError::from(&error))?;
    let now = layout.now;

    if !list.errors.is_empty() {
        let view = RunsView::new(layout, &list, &counts, Answer::refused());
        return Ok((StatusCode::UNPROCESSABLE_ENTITY, Html(view.render()?)).into_response());
    }

    let total = app
        .counts
        .total(db, app.clock, list.query(), &list.page.filter);
    let total = total.await.map_err(|error| AppError::from(&error))?;
    let mut snapshot = db.snapshot().await?;
    let page = runs::page(&mut snapshot, &list.page).await?;
    let failures = extras::failures(&mut snapshot, &page.rows).await?;
    let retrying = extras::retrying(&mut snapshot, &page.rows).await?;
    let ways = if page.rows.is_empty() && page.next.is_none() {
        hiding(&mut snapshot, &list.page).await?
    } else {
        Vec::new()
    };
    snapshot.end().await;

    let rows = page.rows.iter().map(|summary| {
        let failures = failures.get(&summary.id).map_or(&[][..], Vec::as_slice);
        list_row(summary, failures, retrying.get(&summary.id), now)
    });
    let first_page = list.page.filter.is_empty() && list.page.cursor.is_none();
    let answer = Answer {
        rows: rows.collect(),
        unprojected: if first_page {
            counts
                .unprojected
                .iter()
                .map(|run| unprojected_row(run, now))
                .collect()
        } else {
            Vec::new()
        },
        summary: summary(total.rows, total.counted_at.min(counts.counted_at), now),
        page: Some(page),
        ways,
    };
    Ok(Html(RunsView::new(layout, &list, &counts, answer).render()?).into_response())
}

/// Which single filters hide rows: without one of them there is something to see.
async fn hiding(snapshot: &mut Snapshot, asked: &PageRequest) -> Result<Vec<usize>, AppError> {
    const MOST: usize = 6;
    let terms = &asked.filter.terms;
    let mut hiding = Vec::new();
    for left_out in 0..terms.len().min(MOST) {
        let mut terms = terms.clone();
        terms.remove(left_out);
        let without = PageRequest {
            filter: Filter { terms },
            cursor: None,
            size: 1,
            ..asked.clone()
        };
        if !runs::page(snapshot, &without).await?.rows.is_empty() {
            hiding.push(left_out);
        }
    }
    Ok(hiding)
}

/// What the database had to say.
struct Answer {
    rows: Vec<ListRow>,
    unprojected: Vec<ListRow>,
    summary: String,
    page: Option<RunPage>,
    ways: Vec<usize>,
}

impl Answer {
    fn refused() -> Self {
        Self {
            rows: Vec::new(),
            unprojected: Vec::new(),
            summary: String::new(),
            page: None,
            ways: Vec::new(),
        }
    }
}

impl RunsView {
    fn new(layout: Layout, list: &ListRequest, counts: &BucketCounts, answer: Answer) -> Self {
        let href = |query: String| layout.href(&format!("/runs{query}"));
        let filter = &list.page.filter;
        let view = |row: ListRow| RowView {
            href: layout.href(&format!(
                "/instances/{}/runs/{}",
                segment(&row.instance_id),
                segment(&row.run_id)
            )),
            started: row.started.map(|at| layout.moment(at)),
            until: row.until.map(|at| layout.moment(at)),
            row,
        };
        let page = answer.page.as_ref();
        let place = |cursor: Option<&Cursor>| cursor.map(|cursor| href(list.at(cursor)));
        let term_chip = |at: usize| {
            let term = &filter.terms[at];
            TermChip {
                href: href(list.changed(&[(&term.param(), None)])),
                label: term.key.as_ref().map_or_else(
                    || term.field.label.to_owned(),
                    |key| format!("{} {key}", term.field.label),
                ),
                value: term.value.clone(),
            }
        };
        let newest_first = list.page.direction == Direction::NewestFirst;
        Self {
            summary: answer.summary,
            buckets: buckets(list, counts, &href),
            terms: (0..filter.terms.len())
                .filter(|at| !is_bucket_chip(filter.terms[*at].field.name))
                .map(term_chip)
                .collect(),
            groups: groups(filter, layout.zone_name()),
            form_open: !list.errors.is_empty(),
            errors: list.errors.clone(),
            empty: (answer.rows.is_empty() && list.errors.is_empty()).then(|| {
                empty(
                    list,
                    page,
                    answer.ways.iter().map(|at| term_chip(*at)).collect(),
                )
            }),
            checked: format::number(i64::from(CHECKED)),
            sizes: SIZES
                .map(|size| Chip {
                    href: href(list.changed(&[("per_page", Some(&size.to_string()))])),
                    label: match size {
                        25 => "25",
                        50 => "50",
                        _ => "100",
                    },
                    count: None,
                    on: size == list.page.size,
                })
                .into(),
            order: Chip {
                href: href(list.changed(&[("sort_direction", newest_first.then_some("asc"))])),
                label: if newest_first {
                    "Oldest first"
                } else {
                    "Newest first"
                },
                count: None,
                on: false,
            },
            newest_first,
            previous: place(page.and_then(|page| page.previous.as_ref())),
            next: place(page.and_then(|page| page.next.as_ref())),
            note: note(&answer.rows, page, &layout),
            look_on: page
                .filter(|page| page.looked.as_ref().is_some_and(|looked| !looked.complete))
                .filter(|page| page.rows.len() < list.page.size as usize)
                .and_then(|page| place(page.next.as_ref())),
            rows: answer.rows.into_iter().map(view).collect(),
            unprojected: answer.unprojected.into_iter().map(view).collect(),
            layout,
        }
    }
}

/// Ids are stored text: in a path they must not become more than one segment.
pub fn segment(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes())
        .collect::<String>()
        .replace('+', "%20")
}

fn is_bucket_chip(name: &str) -> bool {
    matches!(name, "status_bucket" | "needs_repair")
}

fn buckets(
    list: &ListRequest,
    counts: &BucketCounts,
    href: &impl Fn(String) -> String,
) -> Vec<Chip> {
    let filter = &list.page.filter;
    let bucket = filter.value("status_bucket");
    let repair = filter.get("needs_repair").is_some();
    let chip =
        |label, count: Option<Capped>, bucket: Option<&str>, repair: Option<&str>, on| Chip {
            href: href(list.changed(&[
                ("status_bucket", bucket),
                ("needs_repair", repair),
                ("status", None),
            ])),
            label,
            count: count.map(capped),
            on,
        };
    vec![
        chip("All", None, None, None, bucket.is_none() && !repair),
        chip(
            "Running",
            Some(counts.running),
            Some("running"),
            None,
            bucket == Some("running"),
        ),
        chip(
            "Completed",
            Some(counts.completed),
            Some("completed"),
            None,
            bucket == Some("completed"),
        ),
        chip(
            "Failed",
            Some(counts.failed),
            Some("failed"),
            None,
            bucket == Some("failed"),
        ),
        chip(
            "Needs repair",
            Some(counts.needs_repair),
            None,
            Some("1"),
            repair,
        ),
    ]
}

fn capped(count: Capped) -> String {
    let n = format::number(i64::from(count.n));
    if count.more { n + "+" } else { n }
}

fn summary(total: Option<Capped>, counted_at: DateTime<Utc>, now: DateTime<Utc>) -> String {
    let age = match (now - counted_at).max(TimeDelta::zero()).num_seconds() {
        0 => "counted now".to_owned(),
        seconds => format!("counted {seconds} s ago"),
    };
    match total {
        Some(total) => format!("{} match · {age}", capped(total)),
        None => age,
    }
}

/// How far the page reaches, and how far it looked for it.
fn note(rows: &[ListRow], page: Option<&RunPage>, layout: &Layout) -> String {
    let at = |at: DateTime<Utc>| format::absolute(at, layout.zone);
    let mut note = match (
        rows.first().and_then(|row| row.started),
        rows.last().and_then(|row| row.started),
    ) {
        (Some(first), Some(last)) => format!("{} rows, {} to {}", rows.len(), at(first), at(last)),
        _ => format!("{} rows", rows.len()),
    };
    if let Some(looked) = page.and_then(|page| page.looked.as_ref()) {
        let among = if looked.open_only {
            "open runs"
        } else {
            "runs"
        };
        let window = format::number(i64::from(looked.rows));
        note = match looked.until {
            _ if looked.complete => {
                format!("{note}. Looked at all {among} there are from here")
            }
            Some(until) => format!(
                "{note}. No index serves this filter: looked at {window} {among}, as far as {}",
                at(until)
            ),
            None => format!(
                "{note}. No index serves this filter: looked at {window} {among} without a time"
            ),
        };
    }
    note
}

fn empty(list: &ListRequest, page: Option<&RunPage>, ways: Vec<TermChip>) -> Empty {
    let goes_on = page.is_some_and(|page| page.next.is_some());
    let (title, hint) = if goes_on {
        (
            "No match among the runs looked at so far.",
            "Look further back, or narrow the time range.",
        )
    } else if list.page.filter.is_empty() && list.page.cursor.is_none() {
        (
            "No runs yet.",
            "The engine has not written any run to this database.",
        )
    } else if list.page.filter.is_empty() {
        (
            "No more runs this way.",
            "Go back to the beginning of the list.",
        )
    } else if ways.is_empty() {
        (
            "No run matches these filters.",
            "No single filter hides them: take several away.",
        )
    } else {
        (
            "No run matches these filters.",
            "Each of these hides runs; take one away to see them:",
        )
    };
    Empty {
        title: title.to_owned(),
        hint: hint.to_owned(),
        ways,
    }
}
