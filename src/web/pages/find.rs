//! `/find?q=`: from any id or business key to its run.

use askama::Template;
use axum::{
    extract::{Query, State},
    http::StatusCode,
    response::{Html, IntoResponse as _, Redirect, Response},
};
use serde::Deserialize;

use crate::{
    durable::store::{
        find::{self, Found},
        runs::{LONGEST, is_too_long},
    },
    web::{
        error::AppError,
        filters,
        layout::{Layout, segment},
        state::App,
    },
};

#[derive(Debug, Deserialize)]
pub struct Asked {
    #[serde(default)]
    q: String,
}

#[derive(Template)]
#[template(path = "pages/find.html")]
struct FindView {
    layout: Layout,
    q: String,
    found: Vec<(String, Found)>,
    /// Set when it was not looked for.
    refused: Option<String>,
}

pub async fn show(
    State(app): State<App>,
    layout: Layout,
    Query(asked): Query<Asked>,
) -> Result<Response, AppError> {
    let q = asked.q.trim();
    // A run's page, or that of an instance's current run.
    let href = |found: &Found| match &found.run_id {
        Some(run_id) => layout.run_href(&found.instance_id, run_id),
        None => layout.href(&format!("/instances/{}", segment(&found.instance_id))),
    };
    let refused = if q.is_empty() {
        Some("Nothing was asked for.".to_owned())
    } else if is_too_long(q) {
        Some(format!(
            "This is too long: ids and business keys have at most {LONGEST} characters."
        ))
    } else if q.contains('\0') {
        Some("No id and no business key contains a NUL character.".to_owned())
    } else {
        None
    };
    let found = if refused.is_some() {
        Vec::new()
    } else {
        let mut snapshot = app.db()?.snapshot().await?;
        let mut found = find::by_id(&mut snapshot, q).await?;
        if found.is_empty() {
            found = find::by_business_key(&mut snapshot, q).await?;
        }
        snapshot.end().await;
        if found.len() > 1 && found.iter().all(|found| found.kind == "business key") {
            let query = url::form_urlencoded::Serializer::new(String::new())
                .append_pair("business_key", q)
                .finish();
            return Ok(Redirect::to(&layout.href(&format!("/runs?{query}"))).into_response());
        }
        found
    };
    // Exactly one run, however many rows lead to it.
    if let Some(first) = found.first()
        && found.iter().all(|other| href(other) == href(first))
    {
        return Ok(Redirect::to(&href(first)).into_response());
    }
    let status = if refused.is_some() && !q.is_empty() {
        StatusCode::UNPROCESSABLE_ENTITY
    } else if found.is_empty() {
        StatusCode::NOT_FOUND
    } else {
        StatusCode::OK
    };
    let found = found
        .into_iter()
        .map(|found| (href(&found), found))
        .collect();
    let view = FindView {
        q: q.to_owned(),
        found,
        refused,
        layout: layout.title("Find"),
    };
    Ok((status, Html(view.render()?)).into_response())
}
