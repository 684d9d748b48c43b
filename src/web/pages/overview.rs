//! `/`: how the fleet stands, what needs a look, and what happened over the week.

mod attention;
mod backlog;
mod chart;
mod limits;
mod tiles;
mod types;
mod workers;

use std::time::Duration;

use askama::Template;
use axum::{
    extract::State,
    response::{Html, IntoResponse as _, Response},
};
use chrono::TimeDelta;

use self::{
    attention::{Item, attention},
    backlog::{Line, Oldest, backlog, oldest},
    chart::{Bar, Chart, bars},
    limits::{LimitView, limits},
    tiles::{Tile, tiles},
    types::{TypeView, types},
    workers::{WorkerView, workers, workers_line},
};
use crate::{
    durable::{
        collect::Gathered,
        metrics::health::{Check, Health, Status, not_counted},
        store::{metrics::sweep, runs::categories},
        stored::Stamp,
    },
    run::tag::{Mark, Tag, Tone},
    web::{
        collector::{Collector, Latest, Standing},
        error::AppError,
        filters,
        format::{self, Moment, number},
        layout::{Layout, Nav},
        state::App,
    },
};

#[derive(Template)]
#[template(path = "pages/overview.html")]
struct OverviewView {
    layout: Layout,
    body: Body,
}

/// What is replaced while the page lives.
#[derive(Template)]
#[template(path = "pages/overview_part.html")]
struct OverviewPart {
    body: Body,
}

struct Body {
    status: Tag,
    /// In its place once nobody answers.
    lost: Tag,
    /// "2 of 12 checks need a look"
    checks_line: String,
    namespace: Option<String>,
    /// When the numbers were gathered, and how many milliseconds ago.
    measured: Moment,
    age_ms: i64,
    failing: Option<FailingView>,
    /// Which of the engine's tables are not there, and what to do.
    lacking: Option<String>,
    /// Which values could not be read.
    unread: Option<String>,
    /// What to say where nothing needs attention.
    quiet: (&'static str, &'static str),
    tiles: Vec<Tile>,
    attention: Vec<Item>,
    checks: Vec<CheckView>,
    chart: Chart,
    failures: Vec<Bar>,
    backlog: Vec<Line>,
    oldest: Vec<Oldest>,
    types: Vec<TypeView>,
    workers: Vec<WorkerView>,
    workers_line: String,
    limits: Vec<LimitView>,
    coverage: String,
}

/// Why the numbers do not go on.
struct FailingView {
    what: &'static str,
    more: String,
    since: Moment,
}

struct CheckView {
    tag: Tag,
    name: String,
    message: String,
}

pub async fn show(State(app): State<App>, layout: Layout) -> Result<Response, AppError> {
    let layout = layout.title("Overview").at(Nav::Overview);
    let collector = app.collector()?;
    let (latest, standing) = collector.latest(false).await?;
    let body = body(&layout, &latest, &standing, collector);
    let html = if layout.partial {
        OverviewPart { body }.render()
    } else {
        OverviewView { layout, body }.render()
    };
    let html = html.map_err(|error| AppError::internal("drawing the overview", error))?;
    Ok(Html(html).into_response())
}

fn body(layout: &Layout, latest: &Latest, standing: &Standing, collector: &Collector) -> Body {
    let (gathered, health) = (&*latest.gathered, &latest.health);
    let namespace = gathered.counted.namespace.clone();
    Body {
        status: status_tag(health.status),
        lost: Tag::new("not known", Tone::Attn, Mark::Question),
        checks_line: checks_line(health),
        measured: layout.moment(latest.at),
        age_ms: crate::web::api::metrics::age_ms(layout.now, latest.at),
        failing: standing.failing.as_ref().map(|failing| {
            let (what, more) = failing.words();
            FailingView {
                what,
                more,
                since: layout.moment(failing.since),
            }
        }),
        lacking: collector
            .lacks()
            .engine_source()
            .map(|check| check.message.into_owned()),
        unread: not_counted(&gathered.counted.unread),
        quiet: quiet(health.status),
        tiles: tiles(layout, gathered),
        attention: attention(layout, gathered, health),
        checks: health.checks.iter().map(check_view).collect(),
        chart: Chart::of(&gathered.dashboard.fleet_trends_series, layout.zone),
        failures: bars(gathered.counted.failures.iter().map(|group| {
            let category = group.failure_category.as_deref();
            let tag = Tag::failure_category(category);
            let category = category.unwrap_or("unclassified");
            // Of a word this version does not know there is no list.
            let href = categories()
                .contains(&category)
                .then(|| runs_href(layout, gathered, &[("failure_category", category), WEEK]));
            (tag.label.into_owned(), group.failures, href)
        })),
        backlog: backlog(layout, gathered),
        oldest: oldest(layout, gathered),
        types: types(layout, gathered),
        workers: workers(layout, gathered),
        workers_line: workers_line(gathered),
        limits: limits(layout, gathered),
        coverage: coverage(layout, gathered, collector.pace(latest)),
        namespace,
    }
}

fn checks_line(health: &Health) -> String {
    let not_ok = |check: &&Check| check.status != Status::Ok;
    let looks = health.checks.iter().filter(not_ok).count();
    match (looks, health.checks.len()) {
        (0, all) => format!("all {all} checks are fine"),
        // Without the engine's tables there is no other.
        (1, 1) => "nothing else can be checked".to_owned(),
        (1, all) => format!("1 of {all} checks needs a look"),
        (n, all) => format!("{n} of {all} checks need a look"),
    }
}

/// Not every check that is not ok is about a run.
fn quiet(status: Status) -> (&'static str, &'static str) {
    match status {
        Status::Ok => (
            "Nothing needs a look",
            "Runs that are stuck, slow or failing are named here.",
        ),
        Status::Warning | Status::Error => (
            "No run needs a look",
            "What the checks found is named under Health.",
        ),
    }
}

fn status_tag(status: Status) -> Tag {
    match status {
        Status::Ok => Tag::new("ok", Tone::Ok, Mark::Tick),
        Status::Warning => Tag::new("warning", Tone::Attn, Mark::Exclamation),
        Status::Error => Tag::new("error", Tone::Fail, Mark::Cross),
    }
}

fn check_view(check: &Check) -> CheckView {
    CheckView {
        tag: status_tag(check.status),
        name: check.name.replace('_', " "),
        message: check.message.to_string(),
    }
}

/// As far back as the numbers by type and by category look.
const WEEK: (&str, &str) = ("started", "7d");

/// The list with these filters, within the namespace the numbers are of.
fn runs_href(layout: &Layout, gathered: &Gathered, filters: &[(&str, &str)]) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(filters);
    if let Some(namespace) = &gathered.counted.namespace {
        query.append_pair("namespace", namespace);
    }
    match query.finish() {
        query if query.is_empty() => layout.href("/runs"),
        query => layout.href(&format!("/runs?{query}")),
    }
}

fn age(gathered: &Gathered, at: Option<Stamp>) -> Option<String> {
    at.map(|at| format::duration(at.age(gathered.counted.now)))
}

fn oldest_note(gathered: &Gathered, at: Option<Stamp>) -> String {
    age(gathered, at).map_or_else(String::new, |age| format!("oldest {age}"))
}

/// How much of the fleet the checks of stored projections speak for, and how new that is.
fn coverage(layout: &Layout, gathered: &Gathered, pace: Duration) -> String {
    let (rows, histories) = (&gathered.rows, &gathered.histories);
    let read = number(histories.runs);
    if histories.complete && histories.passes == 1 {
        return format!("Stored projections compared for all {read} runs.");
    }
    let lap = gathered.lap_time(sweep::BOUNDS, pace).takes;
    let lap = format::duration(TimeDelta::from_std(lap).unwrap_or(TimeDelta::MAX));
    if histories.complete {
        let Moment { relative, .. } = layout.moment(histories.from.0);
        return format!(
            "Stored projections compared for all {read} runs, the first of them {relative}; a lap takes up to {lap}."
        );
    }
    format!(
        "Rows counted for {} and stored projections compared for {read} of {} runs so far; a lap takes up to {lap}.",
        number(rows.runs),
        number(gathered.counted.run_table.runs),
    )
}
