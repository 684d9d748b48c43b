//! `GET /api/flows/{bucket}`: the list as Waterline's scripts read it.

use axum::{
    Json,
    extract::{Path, Query, State},
    response::{IntoResponse as _, Response},
};
use serde_json::{Value, json};

use crate::{
    durable::{
        projection::list_item::{list_item, unprojected_item},
        store::runs::{self, Cursor, Filter, RunPage, Skipped, counts::CAP, extras},
        stored::{Notices, RunSummary},
    },
    web::{api, error::AppError, pages::runs::ListRequest, state::App},
};

/// Deepest row a page number may reach; beyond it a cursor is asked for.
const DEEPEST: u32 = 10_000;

/// The names of lists; any other word in their place is the id of a run or an instance.
const LISTS: [&str; 6] = [
    "all",
    "running",
    "completed",
    "failed",
    "cancelled",
    "terminated",
];

pub async fn list_or_run(
    State(app): State<App>,
    Path(bucket_or_id): Path<String>,
    asked: Query<api::runs::Asked>,
    list: ListRequest,
) -> Result<Response, AppError> {
    if LISTS.contains(&bucket_or_id.as_str()) {
        let list = self::list(app, bucket_or_id, list).await?;
        return Ok(list.into_response());
    }
    api::runs::by_any_id(app, &bucket_or_id, asked.0).await
}

async fn list(app: App, bucket: String, mut list: ListRequest) -> Result<Json<Value>, AppError> {
    let only = match bucket.as_str() {
        "all" => None,
        "running" => Some(("status_bucket", "running")),
        status => Some(("status", status)),
    };
    if !list.errors.is_empty() {
        return Err(AppError::Unprocessable {
            message: "Some parameters were not understood; no runs were read.".to_owned(),
            errors: list
                .errors
                .into_iter()
                .map(|error| (error.param, error.message))
                .collect(),
        });
    }
    let plain = list.page.filter.is_empty();
    let applied = applied(&list.page.filter);
    if let Some((name, value)) = only {
        require(&mut list.page.filter, name, value, &app)?;
    }

    let db = app.db()?;
    let counts = app
        .counts
        .buckets(db, app.clock)
        .await
        .map_err(|error| AppError::from(&error))?;
    let total = app
        .counts
        .total(db, app.clock, list.counted_as(), &list.page.filter)
        .await;
    let total = total.map_err(|error| AppError::from(&error))?;
    let mut snapshot = db.snapshot().await?;
    let skip = skipped(&list)?;
    let mut beyond = false;
    if skip > 0 {
        match runs::skip(&mut snapshot, &list.page.filter, list.page.direction, skip).await? {
            Skipped::To(cursor) => list.page.cursor = Some(cursor),
            Skipped::PastTheEnd => beyond = true,
            Skipped::PastTheWindow => {
                return Err(AppError::invalid(
                    "page",
                    "no index serves this filter, so its pages can be counted only as far as one \
                     window reaches; follow next_page_url, which has no such end",
                ));
            }
        }
    }
    let mut page = if beyond {
        RunPage {
            rows: Vec::new(),
            previous: None,
            next: None,
            looked: None,
            notices: Notices::default(),
        }
    } else {
        runs::page(&mut snapshot, &list.page).await?
    };
    let mut attributes =
        extras::search_attributes(&mut snapshot, &page.rows, &mut page.notices).await?;
    snapshot.end().await;

    let mut data: Vec<Value> = page
        .rows
        .iter()
        .map(|summary| list_item(summary, attributes.remove(&summary.id).unwrap_or_default()))
        .collect();
    if plain && skip == 0 && list.page.cursor.is_none() {
        let belongs = |item: &Value| only.is_none_or(|(name, value)| item[name] == value);
        let degraded = counts
            .unprojected
            .iter()
            .map(unprojected_item)
            .filter(belongs);
        data.splice(0..0, degraded);
        page.notices.extend(&counts.notices);
    }
    Ok(Json(document(
        &app,
        &bucket,
        &list,
        &page,
        &data,
        total.rows.map(|rows| (rows.n, rows.more)),
        skip,
        &applied,
    )))
}

/// Narrows the filter to the list's own bucket; a filter that says otherwise matches nothing.
fn require(filter: &mut Filter, name: &str, value: &str, app: &App) -> Result<(), AppError> {
    if let Some(given) = filter.value(name)
        && given != value
    {
        return Err(AppError::invalid(
            name,
            format!("this list holds only {name} {value}; ask /flows/all for {given}"),
        ));
    }
    if filter.get(name).is_none() {
        let (own, _) = Filter::parse([(name, value)], &[], app.clock.now(), app.zone);
        filter.terms.extend(own.terms);
    }
    Ok(())
}

/// How many rows `page` leaves out.
fn skipped(list: &ListRequest) -> Result<u32, AppError> {
    let Some(number) = list.number.filter(|number| *number > 1) else {
        return Ok(0);
    };
    if list.page.cursor.is_some() {
        return Err(AppError::invalid(
            "page",
            "give either page or cursor, not both",
        ));
    }
    let skip = (number - 1).saturating_mul(list.page.size);
    if skip > DEEPEST {
        return Err(AppError::invalid(
            "page",
            format!("pages reach {DEEPEST} rows deep; follow next_page_url, which has no such end"),
        ));
    }
    Ok(skip)
}

fn applied(filter: &Filter) -> Value {
    filter
        .terms
        .iter()
        .map(|term| (term.param(), Value::from(term.value.as_str())))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

#[expect(
    clippy::too_many_arguments,
    reason = "the parts of one document, each used once"
)]
fn document(
    app: &App,
    bucket: &str,
    list: &ListRequest,
    page: &RunPage<RunSummary>,
    data: &[Value],
    total: Option<(u32, bool)>,
    skip: u32,
    applied: &Value,
) -> Value {
    let path = app.base.path(&format!("/api/flows/{bucket}"));
    let url = |cursor: Option<&Cursor>| cursor.map(|cursor| format!("{path}{}", list.at(cursor)));
    let counted = list.page.cursor.is_none() || skip > 0;
    let number = counted.then(|| skip / list.page.size + 1);
    let rows = u32::try_from(data.len()).unwrap_or(u32::MAX);
    json!({
        "data": data,
        "current_page": number,
        "per_page": list.page.size,
        "from": (counted && rows > 0).then_some(skip + 1),
        "to": (counted && rows > 0).then_some(skip + rows),
        "total": total.map(|(n, _)| n),
        "total_is_capped": total.map(|(_, more)| more),
        "total_cap": CAP,
        "last_page": total.map(|(n, _)| n.div_ceil(list.page.size).max(1)),
        "path": path,
        "first_page_url": format!("{path}{}", list.query()),
        "next_page_url": url(page.next.as_ref()),
        "prev_page_url": url(page.previous.as_ref()),
        "next_cursor": page.next.as_ref().map(ToString::to_string),
        "prev_cursor": page.previous.as_ref().map(ToString::to_string),
        "visibility_filters": {
            "version": 6,
            "supported_versions": [6],
            "bucket": bucket,
            "applied": applied,
        },
        "plimsoll": { "notices": page.notices.list() },
        // Set when no index serves the filter: how far this answer looked.
        "looked": page.looked.as_ref().map(|looked| json!({
            "rows": looked.rows,
            "until": looked.until,
            "complete": looked.complete,
            "open_runs_only": looked.open_only,
        })),
    })
}
