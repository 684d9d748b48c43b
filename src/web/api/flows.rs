//! `GET /api/flows/{bucket}`: the list as Waterline's scripts read it.

use std::collections::HashMap;

use axum::{
    Json,
    extract::{Path, Query, State},
    response::{IntoResponse as _, Response},
};
use serde_json::{Value, json};

use crate::{
    durable::{
        projection::list_item::{list_item, unprojected_item},
        store::runs::{
            self, Cursor, Filter, RunPage, Skipped,
            counts::{CAP, Capped},
            extras,
            merged::{self, Listed},
        },
        stored::{RunRow, RunSummary},
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
    let applied = applied(&list.page.filter);
    if let Some((name, value)) = only {
        require(&mut list.page.filter, name, value, &app)?;
    }
    let plain = list.page.filter.terms.len() == usize::from(only.is_some());

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
    // Where only page and sort are given, runs without a summary stand among the others.
    let unprojected: Vec<&RunRow> = counts
        .unprojected
        .iter()
        .filter(|run| plain && only.is_none_or(|only| is_in(run, only)))
        .collect();
    let mut snapshot = db.snapshot().await?;
    let skip = skipped(&list)?;
    let mut beyond = false;
    if skip > 0 {
        let (filter, direction) = (&list.page.filter, list.page.direction);
        match merged::skip(&mut snapshot, filter, direction, skip, &unprojected).await? {
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
    let mut attributes = HashMap::new();
    let mut page = if beyond {
        RunPage::empty()
    } else {
        let mut page = runs::page::<RunSummary>(&mut snapshot, &list.page).await?;
        attributes =
            extras::search_attributes(&mut snapshot, &page.rows, &mut page.notices).await?;
        app.reader.rows(&mut page.rows);
        merged::merge(&list.page, page, &unprojected)
    };
    snapshot.end().await;

    let mut told = counts.notices.clone();
    told.retain(|notice| {
        let is_its_own =
            |row: &Listed<'_, _>| matches!(row, Listed::Unprojected(run) if run.id == notice.id);
        page.rows.iter().any(is_its_own)
    });
    page.notices.extend(&told);
    app.reader.notices(&mut page.notices);
    let data: Vec<Value> = page
        .rows
        .iter()
        .map(|row| match row {
            Listed::Projected(summary) => {
                list_item(summary, attributes.remove(&summary.id).unwrap_or_default())
            }
            Listed::Unprojected(run) => unprojected_item(run),
        })
        .collect();
    let more = u32::try_from(unprojected.len()).unwrap_or(0);
    Ok(Json(document(
        &app,
        &bucket,
        &list,
        &page,
        &data,
        total.rows.map(|rows| rows.and(more)),
        skip,
        &applied,
    )))
}

/// Whether a run without a summary belongs to the list's own bucket.
fn is_in(run: &RunRow, (name, value): (&str, &str)) -> bool {
    match name {
        "status_bucket" => run
            .status
            .bucket()
            .is_some_and(|bucket| bucket.as_str() == value),
        _ => run.status.as_str() == value,
    }
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
    page: &RunPage<Listed<'_, RunSummary>>,
    data: &[Value],
    total: Option<Capped>,
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
        "total": total.map(|total| total.n),
        "total_is_capped": total.map(|total| total.more),
        "total_cap": CAP,
        "last_page": total.map(|total| total.n.div_ceil(list.page.size).max(1)),
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
        "plimsoll": { "notices": page.notices.list(), "redacted_by": app.reader.policy() },
        // Set when no index serves the filter: how far this answer looked, and how many rows where
        // that ended it.
        "looked": page.looked.as_ref().map(|looked| json!({
            "rows": looked.rows,
            "until": looked.until,
            "complete": looked.complete,
            "open_runs_only": looked.open_only,
        })),
    })
}
