//! The one table of URLs.

use axum::Router;
use axum::extract::State;
use axum::response::Redirect;
use axum::routing::{get, post};

use crate::web::error::AppError;
use crate::web::pages::{styleguide, theme};
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
        // Pages.
        .route(&at("/styleguide"), get(styleguide::show))
        .route(&at("/theme"), post(theme::choose))
        // What pages are made of.
        .route(&at("/assets/{*path}"), get(assets::show))
        // The way in.
        .route("/", get(start))
        .fallback(async || AppError::no_such_page());
    if !app.base.as_str().is_empty() {
        table = table.route(&at(""), get(start)).route(&at("/"), get(start));
    }
    table
}

async fn start(State(app): State<App>) -> Redirect {
    Redirect::to(&app.base.path("/runs"))
}

/// The process answers; nothing else is asked.
async fn alive() -> &'static str {
    "ok"
}
