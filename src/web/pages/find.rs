//! `/find?q=`: from any id or business key to its run.

use askama::Template;
use axum::{
    extract::{Query, State},
    http::StatusCode,
    response::{Html, IntoResponse as _, Redirect, Response},
};
use serde::Deserialize;

use crate::{
    durable::store::find::{self, Found},
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
    let found = if q.is_empty() || q.len() > 191 || q.contains('\0') {
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
    let status = if found.is_empty() {
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
        layout: layout.title("Find"),
    };
    Ok((status, Html(view.render()?)).into_response())
}
