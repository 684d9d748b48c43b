//! `/runs`: every run of every status, newest first.

mod form;
mod request;

use askama::Template;
use axum::{
    Extension,
    extract::{RawQuery, State},
    http::StatusCode,
    response::{Html, IntoResponse as _, Redirect, Response},
};
use chrono::{DateTime, TimeDelta, Utc};

pub use self::request::{DEFAULT_SIZE, ListRequest};
use self::{
    form::{Group, groups},
    request::{OTHERS, SIZES},
};
use crate::{
    db::Snapshot,
    durable::{
        projection::{
            list_row::{list_row, unprojected_row},
            notices,
        },
        store::runs::{
            self, CHECKED, Cursor, Direction, Filter, FilterError, PageRequest, RunPage, Way,
            counts::{BucketCounts, Capped},
            extras,
        },
        stored::ListedRun,
    },
    run::{list::ListRow, notice::Notice},
    web::{
        error::AppError,
        filters,
        format::{self, Moment},
        frame::RequestId,
        layout::{Layout, Nav},
        state::App,
    },
};

#[derive(Template)]
#[template(path = "pages/runs.html")]
struct RunsView {
    layout: Layout,
    /// "10,000+ match"
    total: String,
    buckets: Vec<Chip>,
    /// "counted 3 s ago"
    counted: String,
    terms: Vec<TermChip>,
    groups: Vec<Group>,
    /// What the address asks for and the form has no field for: it must not lose it.
    carried: Vec<(String, String)>,
    errors: Vec<FilterError>,
    /// For whoever asks about the errors.
    request_id: String,
    /// The list without what was not understood.
    without_errors: String,
    rows: Vec<RowView>,
    unprojected: Vec<RowView>,
    checked: String,
    notices: Vec<Notice>,
    empty: Option<Empty>,
    sizes: Vec<Chip>,
    order: Chip,
    newest_first: bool,
    /// What the screen reader says when the list was replaced: "50 runs".
    said: String,
    pager: Option<Pager>,
    bulk: Option<Bulk>,
}

/// Where several runs are chosen to be repaired together.
struct Bulk {
    /// This list's filter, in the address's spelling.
    filter: String,
    /// Whether there is one: without it, all would be every run there is.
    filtered: bool,
    token: String,
}

struct Pager {
    previous: Option<String>,
    previous_label: &'static str,
    next: Option<String>,
    next_label: &'static str,
    note: String,
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
    until: Option<(&'static str, Moment)>,
}

struct Empty {
    title: String,
    hint: String,
    /// Filters that hide rows: taking one away shows some.
    ways: Vec<TermChip>,
    /// Set when there is more to look at.
    look_on: Option<String>,
}

pub async fn show(
    State(app): State<App>,
    Extension(request_id): Extension<RequestId>,
    layout: Layout,
    mut list: ListRequest,
) -> Result<Response, AppError> {
    if list.number.is_some_and(|number| number > 1) {
        list.errors.push(FilterError {
            param: "page".to_owned(),
            message: "pages have no numbers here; go on with the links below the list".to_owned(),
        });
    }
    let layout = layout.title("Runs").at(Nav::Runs);
    list.pin();
    if list.untidy && list.errors.is_empty() {
        return Ok(Redirect::to(&layout.href(&format!("/runs{}", list.tidy()))).into_response());
    }
    let db = app.db()?;
    let counts = app
        .counts
        .buckets(db, app.clock)
        .await
        .map_err(|error| AppError::from(&error))?;
    let now = layout.now;

    if !list.errors.is_empty() {
        let answer = Answer::refused(counts.counted_at);
        let mut view = RunsView::new(&app, layout, &list, &counts, answer);
        request_id.as_str().clone_into(&mut view.request_id);
        return Ok((StatusCode::UNPROCESSABLE_ENTITY, Html(view.render()?)).into_response());
    }

    let total = app
        .counts
        .total(db, app.clock, list.counted_as(), &list.page.filter);
    let total = total.await.map_err(|error| AppError::from(&error))?;
    let mut snapshot = db.snapshot().await?;
    let mut page = runs::page::<ListedRun>(&mut snapshot, &list.page).await?;
    let counted_none = total.rows.is_some_and(|total| total.n == 0 && !total.more);
    if counted_none && page.rows.is_empty() {
        // There is nothing to be found further on.
        page.next = None;
        page.looked = None;
    }
    let mut beside = extras::beside(&mut snapshot, &page.rows, &mut page.notices).await?;
    let ways = if page.rows.is_empty() && page.next.is_none() {
        hiding(&mut snapshot, &list.page).await?
    } else {
        Vec::new()
    };
    snapshot.end().await;
    app.reader.rows(&mut page.rows);
    app.reader
        .failures(beside.values_mut().flat_map(|beside| &mut beside.failures));

    let rows = page.rows.iter().map(|summary| {
        let beside = beside.remove(&summary.id).unwrap_or_default();
        list_row(summary, &beside.failures, beside.retrying.as_ref(), now)
    });
    let first_page = list.page.filter.is_empty() && list.page.cursor.is_none();
    if first_page {
        page.notices.extend(&counts.notices);
    }
    app.reader.notices(&mut page.notices);
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
        total: total.rows,
        counted_at: total.counted_at.min(counts.counted_at),
        notices: notices::shown(&page.notices),
        page: Some(page),
        ways,
    };
    let view = RunsView::new(&app, layout, &list, &counts, answer);
    Ok(Html(view.render()?).into_response())
}

/// An address as people type it.
pub async fn without_slash(layout: Layout, RawQuery(query): RawQuery) -> Redirect {
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    Redirect::permanent(&layout.href(&format!("/runs{query}")))
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
        if !runs::page::<ListedRun>(snapshot, &without)
            .await?
            .rows
            .is_empty()
        {
            hiding.push(left_out);
        }
    }
    Ok(hiding)
}

/// What the database had to say.
struct Answer {
    rows: Vec<ListRow>,
    unprojected: Vec<ListRow>,
    /// None when nobody can say without looking at every run.
    total: Option<Capped>,
    counted_at: DateTime<Utc>,
    page: Option<RunPage<ListedRun>>,
    notices: Vec<Notice>,
    ways: Vec<usize>,
}

impl Answer {
    fn refused(counted_at: DateTime<Utc>) -> Self {
        Self {
            rows: Vec::new(),
            unprojected: Vec::new(),
            total: None,
            counted_at,
            page: None,
            notices: Vec::new(),
            ways: Vec::new(),
        }
    }
}

impl RunsView {
    /// Whether the form has a field for what was not understood.
    fn are_filters(&self) -> bool {
        let is_filter = |error: &FilterError| !OTHERS.contains(&error.param.as_str());
        self.errors.iter().any(is_filter)
    }

    fn not_understood(&self) -> &'static str {
        match (self.are_filters(), self.errors.len()) {
            (true, 1) => "This filter was not understood",
            (true, _) => "These filters were not understood",
            (false, 1) => "This part of the address was not understood",
            (false, _) => "These parts of the address were not understood",
        }
    }

    fn new(
        app: &App,
        layout: Layout,
        list: &ListRequest,
        counts: &BucketCounts,
        answer: Answer,
    ) -> Self {
        let href = |query: String| layout.href(&format!("/runs{query}"));
        let filter = &list.page.filter;
        let view = |row: ListRow| RowView {
            href: layout.run_href(&row.instance_id, &row.run_id),
            started: row.started.map(|at| layout.moment(at)),
            until: row.until.map(|(name, at)| (name, layout.moment(at))),
            row,
        };
        let page = answer.page.as_ref();
        let term_chip = |at: usize| {
            let term = &filter.terms[at];
            TermChip {
                href: href(list.changed(&[(&term.param(), None)])),
                label: term.key.as_ref().map_or_else(
                    || term.field.label.to_owned(),
                    |key| format!("{} {key}", term.field.label),
                ),
                value: term.moment().map_or_else(
                    || term.value.clone(),
                    |at| format::absolute(at, layout.zone),
                ),
            }
        };
        let newest_first = list.page.direction == Direction::NewestFirst;
        let pager = page.map(|page| pager(list, page, &answer.rows, &layout));
        let empty = page.filter(|_| answer.rows.is_empty()).map(|page| {
            let ways = answer.ways.iter().map(|at| term_chip(*at)).collect();
            let look_on = pager.as_ref().and_then(|pager| pager.next.clone());
            empty(list, page, ways, look_on)
        });
        Self {
            total: page.map_or_else(String::new, |page| total(list, page, answer.total)),
            counted: counted(answer.counted_at, layout.now),
            buckets: buckets(list, counts, &href),
            terms: (0..filter.terms.len())
                .filter(|at| !is_bucket_chip(filter.terms[*at].field.name))
                .map(term_chip)
                .collect(),
            groups: groups(list, layout.zone_name()),
            carried: form::carried(list),
            request_id: String::new(),
            without_errors: href(list.query()),
            errors: list.errors.clone(),
            empty,
            checked: format::number(i64::from(CHECKED)),
            notices: answer.notices,
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
            said: runs_said(answer.rows.len()),
            pager: pager.filter(|pager| {
                !answer.rows.is_empty() || pager.previous.is_some() || pager.next.is_some()
            }),
            bulk: bulk(app, list, &answer.rows),
            rows: answer.rows.into_iter().map(view).collect(),
            unprojected: answer.unprojected.into_iter().map(view).collect(),
            layout,
        }
    }
}

/// Offered where some run of the page can be repaired.
fn bulk(app: &App, list: &ListRequest, rows: &[ListRow]) -> Option<Bulk> {
    rows.iter().any(|row| row.repairable).then(|| {
        let filter = list.query();
        Bulk {
            filtered: !list.page.filter.is_empty(),
            token: app.forms.token(&freeze_seal(&filter)),
            filter,
        }
    })
}

/// What the token of the form that chooses runs stands for.
pub fn freeze_seal(filter: &str) -> String {
    format!("freeze {filter}")
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
    format::capped(count.n, count.more)
}

/// How many runs the whole list has, as far as it is known.
fn total(list: &ListRequest, page: &RunPage<ListedRun>, counted: Option<Capped>) -> String {
    let whole = page.previous.is_none() && page.next.is_none();
    let total = counted.or_else(|| {
        let n = u32::try_from(page.rows.len()).ok().filter(|_| whole)?;
        Some(Capped { n, more: false })
    });
    match (total, list.page.filter.is_empty()) {
        (None, _) => "total not counted".to_owned(),
        (Some(Capped { n: 0, .. }), true) => "none yet".to_owned(),
        (Some(Capped { n: 0, .. }), false) => "none match".to_owned(),
        (Some(Capped { n: 1, .. }), true) => "1 run".to_owned(),
        (Some(Capped { n: 1, .. }), false) => "1 matches".to_owned(),
        (Some(total), true) => format!("{} runs", capped(total)),
        (Some(total), false) => format!("{} match", capped(total)),
    }
}

fn counted(at: DateTime<Utc>, now: DateTime<Utc>) -> String {
    match (now - at).max(TimeDelta::zero()).num_seconds() {
        0 => "counted just now".to_owned(),
        seconds => format!("counted {seconds} s ago"),
    }
}

fn runs_said(rows: usize) -> String {
    match rows {
        0 => "No runs".to_owned(),
        1 => "1 run".to_owned(),
        rows => format!("{rows} runs"),
    }
}

fn pager(
    list: &ListRequest,
    page: &RunPage<ListedRun>,
    rows: &[ListRow],
    layout: &Layout,
) -> Pager {
    let place = |cursor: &Cursor| layout.href(&format!("/runs{}", list.at(cursor)));
    let newest_first = list.page.direction == Direction::NewestFirst;
    let backwards = list
        .page
        .cursor
        .as_ref()
        .is_some_and(|cursor| cursor.way == Way::Previous);
    // The window ended before the page was full: what follows was not looked at yet.
    let cut = page
        .looked
        .as_ref()
        .is_some_and(|looked| looked.rows.is_some());
    let older = |way: Way| newest_first == (way == Way::Next);
    Pager {
        previous: page.previous.as_ref().map(place),
        previous_label: if older(Way::Previous) {
            "← Older"
        } else {
            "← Newer"
        },
        next: page.next.as_ref().map(place),
        next_label: match (older(Way::Next), cut && !backwards) {
            (true, true) => "Look further back →",
            (true, false) => "Older →",
            (false, true) => "Look further on →",
            (false, false) => "Newer →",
        },
        note: note(rows, page, newest_first != backwards, layout),
    }
}

/// How far the page reaches, and how far it looked for it.
fn note(rows: &[ListRow], page: &RunPage<ListedRun>, back: bool, layout: &Layout) -> String {
    let mut note = runs_said(rows.len());
    if let (Some(first), Some(last)) = (
        rows.first().and_then(|row| row.started),
        rows.last().and_then(|row| row.started),
    ) {
        note = format!("{note}, {}", format::span(first, last, layout.zone));
    }
    let Some(looked) = &page.looked else {
        return note;
    };
    let among = if looked.open_only {
        "open runs"
    } else {
        "runs"
    };
    match (looked.rows, looked.until) {
        _ if looked.complete => format!("{note}. Looked at all {among} there are from here."),
        (Some(rows), Some(until)) => format!(
            "{note}. No index serves this filter: looked at {} {among}, {} to {}.",
            format::number(i64::from(rows)),
            if back { "back" } else { "on" },
            format::absolute(until, layout.zone)
        ),
        (Some(rows), None) => format!(
            "{note}. No index serves this filter: looked at {} {among} without a time.",
            format::number(i64::from(rows))
        ),
        // Full before the window ended: there is nothing in between that was not looked at.
        (None, _) => note,
    }
}

fn empty(
    list: &ListRequest,
    page: &RunPage<ListedRun>,
    ways: Vec<TermChip>,
    look_on: Option<String>,
) -> Empty {
    let filters = list.page.filter.terms.len();
    let (title, hint) = if page.next.is_some() {
        (
            "No match among the runs looked at so far.",
            "Look further, or narrow the time range.",
        )
    } else if filters == 0 && list.page.cursor.is_none() {
        (
            "No runs yet.",
            "The engine has not written any run to this database.",
        )
    } else if filters == 0 {
        (
            "No more runs this way.",
            "Go back to the beginning of the list.",
        )
    } else if ways.is_empty() && filters == 1 {
        (
            "No run matches this filter.",
            "Without it there are no runs either.",
        )
    } else if ways.is_empty() {
        (
            "No run matches these filters.",
            "No single filter hides them: take several away.",
        )
    } else if filters == 1 {
        (
            "No run matches this filter.",
            "Take it away to see the runs it hides:",
        )
    } else if ways.len() == 1 {
        (
            "No run matches all of these filters.",
            "Take this one away to see the runs it hides:",
        )
    } else {
        (
            "No run matches all of these filters.",
            "Each of these hides runs; take one away to see them:",
        )
    };
    Empty {
        title: title.to_owned(),
        hint: hint.to_owned(),
        ways,
        look_on,
    }
}
