//! `/instances/{instance}` and `/instances/{instance}/runs/{run}`: one run.

use askama::Template;
use axum::{
    extract::{Path, State},
    response::Html,
};

use crate::{
    durable::{
        projection::list_row::{list_row, unprojected_row},
        store::{
            head::{RunHead, current_run_id, run_head},
            runs::extras,
        },
    },
    run::{list::ListRow, tag::Tag},
    web::{
        error::AppError,
        filters,
        format::Moment,
        layout::{Layout, Nav},
        state::App,
    },
};

#[derive(Template)]
#[template(path = "pages/run.html")]
struct RunView {
    layout: Layout,
    row: ListRow,
    head: RunHead,
    started: Option<Moment>,
    closed: Option<Moment>,
    /// Name and moment of each deadline.
    deadlines: Vec<(&'static str, Moment)>,
}

pub async fn current(
    State(app): State<App>,
    layout: Layout,
    Path(instance): Path<String>,
) -> Result<Html<String>, AppError> {
    show(&app, layout, &instance, None).await
}

pub async fn selected(
    State(app): State<App>,
    layout: Layout,
    Path((instance, run)): Path<(String, String)>,
) -> Result<Html<String>, AppError> {
    show(&app, layout, &instance, Some(&run)).await
}

async fn show(
    app: &App,
    layout: Layout,
    instance: &str,
    run: Option<&str>,
) -> Result<Html<String>, AppError> {
    let mut snapshot = app.db()?.snapshot().await?;
    let run_id = match run {
        Some(run) => Some(run.to_owned()),
        None => current_run_id(&mut snapshot, instance).await?,
    };
    let head = match &run_id {
        Some(run_id) => run_head(&mut snapshot, instance, run_id).await?,
        None => None,
    };
    let Some(head) = head else {
        return Err(AppError::NotFound {
            what: match run {
                Some(run) => format!("Run {run} of instance {instance}"),
                None => format!("A run of instance {instance}"),
            },
            how: "Check both ids, or find the run from the list. The engine's retention may have pruned it.".to_owned(),
        });
    };
    let row = match &head.summary {
        None => unprojected_row(&head.run, layout.now),
        Some(summary) => {
            let rows = std::slice::from_ref(summary);
            let mut beside = extras::beside(&mut snapshot, rows).await?;
            let beside = beside.remove(&summary.id).unwrap_or_default();
            list_row(
                summary,
                &beside.failures,
                beside.retrying.as_ref(),
                layout.now,
            )
        }
    };
    snapshot.end().await;
    let moment = |at| layout.moment(at);
    let view = RunView {
        started: head.run.started_at.map(moment),
        closed: head.run.closed_at.map(moment),
        deadlines: [
            ("Run deadline", head.run.run_deadline_at),
            ("Execution deadline", head.run.execution_deadline_at),
            ("Wait ends", row.until),
        ]
        .into_iter()
        .filter_map(|(name, at)| Some((name, moment(at?))))
        .collect(),
        layout: layout.title(head.run.workflow_type.clone()).at(Nav::Runs),
        row,
        head,
    };
    Ok(Html(view.render()?))
}

impl RunView {
    /// The run row disagrees with the summary about how it stands.
    fn stale(&self) -> Option<Tag> {
        let summary = self.head.summary.as_ref()?;
        (summary.status != self.head.run.status).then(Tag::stale)
    }
}
