//! The one table of URLs.

use axum::Router;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};

use crate::web::api::{self, flows};
use crate::web::error::AppError;
use crate::web::pages::{bundles, choose, compare, find, overview, repairs, run, runs, styleguide};
use crate::web::state::App;
use crate::web::{assets, frame};

pub fn router(app: App) -> Router {
    frame::framed(table(&app), app)
}

pub(super) fn table(app: &App) -> Router<App> {
    let at = |below: &str| app.base.path(below);
    let mut table = Router::new()
        // At the root whatever the base path is: probes and what browsers ask for unasked.
        .route("/favicon.ico", get(assets::favicon))
        .route("/livez", get(alive))
        .route("/up", get(alive))
        .route("/readyz", get(ready))
        .route("/metrics", get(api::prometheus::show))
        // Pages.
        .route(&at("/"), get(overview::show))
        .route(&at("/runs"), get(runs::show))
        .route(&at("/runs/"), get(runs::without_slash))
        .route(&at("/find"), get(find::show))
        .route(&at("/instances/{instance}"), get(run::current))
        .route(&at("/instances/{instance}/runs/{run}"), get(run::selected))
        .route(
            &at("/instances/{instance}/runs/{run}/history"),
            get(run::history::show),
        )
        .route(
            &at("/instances/{instance}/runs/{run}/payload"),
            get(run::payload::show),
        )
        .route(
            &at("/instances/{instance}/runs/{run}/repair"),
            get(run::repair::show).post(run::repair::ask),
        )
        .route(&at("/instances/{instance}/runs/{run}/card"), get(run::card))
        .route(&at("/repairs"), get(repairs::list).post(repairs::freeze))
        .route(&at("/repairs/{batch}"), get(repairs::show))
        .route(&at("/repairs/{batch}/start"), post(repairs::start))
        .route(&at("/repairs/{batch}/stop"), post(repairs::stop))
        .route(
            &at("/bundles"),
            get(bundles::choose)
                .post(bundles::open)
                .layer(DefaultBodyLimit::disable()),
        )
        .route(&at("/bundles/{bundle}"), get(bundles::show))
        .route(&at("/bundles/{bundle}/history"), get(bundles::history))
        .route(&at("/bundles/{bundle}/payload"), get(bundles::payload))
        .route(&at("/compare"), get(compare::show))
        .route(&at("/styleguide"), get(styleguide::show))
        .route(&at("/theme"), post(choose::theme))
        .route(&at("/zone"), post(choose::zone))
        // JSON, at the paths Waterline's scripts already use.
        .route(&at("/api/flows/{id}"), get(flows::list_or_run))
        .route(&at("/api/instances/{instance}"), get(api::runs::current))
        .route(
            &at("/api/operator-metrics"),
            get(api::metrics::operator_metrics),
        )
        .route(&at("/api/stats"), get(api::metrics::stats))
        .route(&at("/api/v2/health"), get(api::metrics::v2_health))
        .route(
            &at("/api/instances/{instance}/runs/{run}"),
            get(api::runs::selected),
        )
        .route(
            &at("/api/flows/{id}/history-export"),
            get(api::export::by_any_id),
        )
        .route(
            &at("/api/instances/{instance}/history-export"),
            get(api::export::current),
        )
        .route(
            &at("/api/instances/{instance}/runs/{run}/history-export"),
            get(api::export::selected),
        )
        .route(&at("/api/flows/{id}/repair"), post(api::repair::by_any_id))
        .route(
            &at("/api/instances/{instance}/repair"),
            post(api::repair::current),
        )
        .route(
            &at("/api/instances/{instance}/runs/{run}/repair"),
            post(api::repair::selected),
        )
        // What pages are made of.
        .route(&at("/assets/{*path}"), get(assets::show))
        .fallback(async || AppError::no_such_page());
    if !app.base.as_str().is_empty() {
        // The ways in.
        table = table.route("/", get(start)).route(&at(""), get(start));
    }
    table
}

async fn start(State(app): State<App>) -> Redirect {
    Redirect::to(&app.base.path("/"))
}

/// The process answers; nothing else is asked.
async fn alive() -> &'static str {
    "ok"
}

/// The database answers too, from a table: SQLite would count to one without looking at its file.
async fn ready(State(app): State<App>) -> Response {
    let Some(db) = &app.db else {
        return "ok".into_response();
    };
    let mut q = db.statement();
    q.push("select 1 as one from {workflow_runs} limit 1");
    match db.probe(q).await {
        Ok(()) => "ok".into_response(),
        // Whatever is wrong with it, nothing can be shown meanwhile. A probe reads no page.
        Err(error) => {
            tracing::warn!(%error, "not ready");
            (
                StatusCode::SERVICE_UNAVAILABLE,
                [(header::RETRY_AFTER, "5")],
                "database unavailable\n",
            )
                .into_response()
        }
    }
}
