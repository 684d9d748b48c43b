//! `/instances/{instance}` and `/instances/{instance}/runs/{run}`: one run, from its projection.

pub mod history;
pub mod payload;

use askama::Template;
use axum::{
    extract::{Path, RawQuery, State},
    response::Html,
};

use crate::{
    durable::{
        page,
        projection::{Context, Projected},
        store::{
            head::{belongs, current_run_id},
            snapshot::{RunSnapshot, TimelineCache},
        },
    },
    run::{
        page::Page,
        tag::{Mark, Tone},
        window::{Asked, Window},
    },
    web::{
        error::AppError,
        filters,
        format::number,
        layout::{Layout, Nav},
        state::App,
    },
};

#[derive(Template)]
#[template(path = "pages/run.html")]
struct RunView {
    layout: Layout,
    page: Page,
    /// The sections that hold something, in the order of the page.
    parts: Vec<Part>,
    /// Names of the sections that hold nothing.
    empty: Vec<&'static str>,
    /// Address of the page without a query.
    here: String,
    asked: Asked,
    /// The history, where it is short enough to stand in the page.
    events: history::Events,
}

/// One section of the page: folded when it is long, and left out until it is opened.
struct Part {
    id: &'static str,
    title: &'static str,
    window: Window,
    count: String,
    /// Where the section is shown, opened.
    href: String,
    previous: Option<String>,
    next: Option<String>,
    /// Which rows of how many; none when all are shown.
    note: Option<String>,
}

impl Part {
    fn new(
        here: &str,
        asked: &Asked,
        (id, title, window): (&'static str, &'static str, Window),
    ) -> Self {
        let at = |from: Option<usize>| {
            from.map(|from| {
                let query = asked.changed(&[(id, Some(&from.to_string())), ("at", None)]);
                format!("{here}{query}#{id}")
            })
        };
        let said = |n: usize| number(i64::try_from(n).unwrap_or(i64::MAX));
        Self {
            id,
            title,
            count: said(window.total),
            href: format!("{here}{}#{id}", asked.changed(&[(id, Some("0"))])),
            previous: at(window.previous()),
            next: at(window.next()),
            note: (window.loaded && window.len < window.total).then(|| {
                format!(
                    "{} to {} of {}",
                    said(window.from + 1),
                    said(window.from + window.len),
                    said(window.total)
                )
            }),
            window,
        }
    }
}

pub async fn current(
    State(app): State<App>,
    layout: Layout,
    Path(instance): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Html<String>, AppError> {
    show(&app, layout, &instance, None, query).await
}

pub async fn selected(
    State(app): State<App>,
    layout: Layout,
    Path((instance, run)): Path<(String, String)>,
    RawQuery(query): RawQuery,
) -> Result<Html<String>, AppError> {
    show(&app, layout, &instance, Some(&run), query).await
}

async fn show(
    app: &App,
    layout: Layout,
    instance: &str,
    run: Option<&str>,
    query: Option<String>,
) -> Result<Html<String>, AppError> {
    let asked = Asked::parse(query.as_deref().unwrap_or_default());
    let rows = load(app, instance, run).await?;
    let projected = Projected::of(Context {
        snapshot: &rows,
        now: layout.now,
        config: &app.engine,
    });
    let page = page::page(&projected, &asked);
    let view = RunView::new(layout, page, asked);
    Ok(Html(view.render()?))
}

/// Everything about one run; without a run id the instance's current one.
async fn load(app: &App, instance: &str, run: Option<&str>) -> Result<RunSnapshot, AppError> {
    let mut snapshot = app.db()?.snapshot().await?;
    let run_id = match run {
        Some(run) => belongs(&mut snapshot, instance, run)
            .await?
            .then(|| run.to_owned()),
        None => current_run_id(&mut snapshot, instance).await?,
    };
    let rows = match &run_id {
        Some(run_id) => RunSnapshot::load(&mut snapshot, run_id, TimelineCache::Presence).await?,
        None => None,
    };
    snapshot.end().await;
    rows.ok_or_else(|| missing(instance, run))
}

fn missing(instance: &str, run: Option<&str>) -> AppError {
    AppError::NotFound {
        what: match run {
            Some(run) => format!("Run {run} of instance {instance}"),
            None => format!("A run of instance {instance}"),
        },
        how: "Check both ids, or find the run from the list. The engine's retention may have pruned it.".to_owned(),
    }
}

impl RunView {
    fn new(layout: Layout, page: Page, asked: Asked) -> Self {
        let here = layout.run_href(&page.head.instance_id, &page.head.run_id);
        let (parts, empty): (Vec<_>, Vec<_>) = [
            ("activities", "Activities", page.activities.window),
            ("exceptions", "Exceptions", page.exceptions.window),
            ("tasks", "Tasks", page.tasks.window),
            ("waits", "Waits", page.waits.window),
            ("signals", "Signals", page.signals.window),
            ("updates", "Updates", page.updates.window),
            ("commands", "Commands", page.commands.window),
            ("children", "Parents and children", page.children.window),
            ("data", "Memo, attributes and payloads", page.data.window),
            ("history", "History", page.history.window),
        ]
        .into_iter()
        .partition(|(.., window)| window.total > 0);
        Self {
            layout: layout.title(page.head.type_name.clone()).at(Nav::Runs),
            parts: parts
                .into_iter()
                .map(|part| Part::new(&here, &asked, part))
                .map(|part| match part.id {
                    // A long history is read a window at a time.
                    "history" => Part {
                        href: format!("{here}/history"),
                        ..part
                    },
                    _ => part,
                })
                .collect(),
            empty: empty.into_iter().map(|(_, title, _)| title).collect(),
            events: history::Events::part(&here, page.history.clone()),
            here,
            page,
            asked,
        }
    }

    /// The tone of the bar beside the diagnosis: that of the status, unless something is wrong.
    fn tone(&self) -> Tone {
        if self.page.head.repair.called_for {
            Tone::Attn
        } else {
            self.page.head.status.tone
        }
    }
}
