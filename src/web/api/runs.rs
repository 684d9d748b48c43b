//! `GET /api/instances/{instance}[/runs/{run}]` and `/api/flows/{id}`: one run, as Waterline's
//! scripts read it, with what is recomputed now beside it.

use axum::{
    Json,
    extract::{Path, Query, State},
    response::{IntoResponse as _, Response},
};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize, Serializer};

use crate::{
    db::Snapshot,
    durable::{
        projection::{
            Context, Projected,
            detail::{Detail, detail},
            drift::{self, Drift},
            liveness::Standing,
            notices::notices,
            retries::{self, RetryState},
            undecoded::{Undecoded, undecoded},
        },
        repair::{Mode, Verdict, explain},
        store::{head, snapshot::TimelineCache},
        stored::Notice,
    },
    run::diagnosis::Diagnosis,
    web::{error::AppError, state::App},
};

/// How many timeline entries an answer holds.
const DEFAULT_LIMIT: usize = 200;
const LIMITS: std::ops::RangeInclusive<usize> = 50..=1_000;

#[derive(Debug, Deserialize)]
pub struct Asked {
    history_limit: Option<String>,
}

impl Asked {
    /// `None` is the whole history.
    fn limit(&self) -> Result<Option<usize>, AppError> {
        match self.history_limit.as_deref() {
            None => Ok(Some(DEFAULT_LIMIT)),
            Some("all") => Ok(None),
            Some(text) => match text.parse::<usize>() {
                Ok(limit) if LIMITS.contains(&limit) => Ok(Some(limit)),
                _ => Err(AppError::invalid(
                    "history_limit",
                    format!(
                        "choose between {} and {}, or all",
                        LIMITS.start(),
                        LIMITS.end()
                    ),
                )),
            },
        }
    }
}

pub async fn current(
    State(app): State<App>,
    Path(instance): Path<String>,
    Query(asked): Query<Asked>,
) -> Result<Response, AppError> {
    let limit = asked.limit()?;
    let mut snapshot = app.db()?.snapshot().await?;
    let run = head::current_run_id(&mut snapshot, &instance).await?;
    let run = run.ok_or_else(|| not_found(&format!("A run of instance {instance}")))?;
    answer(&app, snapshot, &run, limit).await
}

pub async fn selected(
    State(app): State<App>,
    Path((instance, run)): Path<(String, String)>,
    Query(asked): Query<Asked>,
) -> Result<Response, AppError> {
    let limit = asked.limit()?;
    let mut snapshot = app.db()?.snapshot().await?;
    if !head::belongs(&mut snapshot, &instance, &run).await? {
        return Err(not_found(&format!("Run {run} of instance {instance}")));
    }
    answer(&app, snapshot, &run, limit).await
}

/// A run id or, failing that, an instance id.
pub async fn by_any_id(app: App, id: &str, asked: Asked) -> Result<Response, AppError> {
    let limit = asked.limit()?;
    let mut snapshot = app.db()?.snapshot().await?;
    let run = if head::exists(&mut snapshot, id).await? {
        Some(id.to_owned())
    } else {
        head::current_run_id(&mut snapshot, id).await?
    };
    let run = run.ok_or_else(|| not_found(&format!("A run or instance {id}")))?;
    answer(&app, snapshot, &run, limit).await
}

async fn answer(
    app: &App,
    mut snapshot: Snapshot,
    run_id: &str,
    limit: Option<usize>,
) -> Result<Response, AppError> {
    let cache = if limit.is_some() {
        TimelineCache::Presence
    } else {
        TimelineCache::Whole
    };
    let run = app.reader.run(&mut snapshot, run_id, cache).await?;
    snapshot.end().await;
    let run = run.ok_or_else(|| not_found(&format!("Run {run_id}")))?;
    let projected = Projected::of(Context {
        snapshot: &run,
        now: app.clock.now(),
        config: &app.engine,
    });
    Ok(Json(Answer::of(&projected, limit, app.repair_mode())).into_response())
}

/// The engine's detail and ours beside it.
#[derive(Debug, Serialize)]
pub struct Answer<'a> {
    #[serde(flatten)]
    detail: Detail<'a>,
    plimsoll: Ours<'a>,
}

impl<'a> Answer<'a> {
    /// `limit` keeps the last entries of the timeline.
    /// The mode is that of the repairs this copy would do.
    pub fn of(projected: &'a Projected<'_>, limit: Option<usize>, mode: Mode) -> Self {
        Self {
            detail: detail(projected, limit),
            plimsoll: Ours::of(projected, mode),
        }
    }
}

/// What the engine's detail does not have: the truth of now, and where the stored one differs.
#[derive(Debug, Serialize)]
struct Ours<'a> {
    recomputed_at: DateTime<Utc>,
    recomputed: &'a Standing,
    diagnosis: Diagnosis,
    /// Whether a repair would be done now, as the page asks.
    repair: Verdict,
    drift: Vec<Drift>,
    retries: Retries<'a>,
    notices: Vec<Notice>,
    notices_left_out: usize,
    /// What the engine's `arguments`, `output` and `result` leave out.
    undecoded: Vec<Undecoded>,
    /// The policy that hides values here.
    redacted_by: Option<&'a str>,
}

impl<'a> Ours<'a> {
    fn of(projected: &'a Projected<'_>, mode: Mode) -> Self {
        let explained = explain(projected, mode);
        let notices = notices(projected);
        Self {
            notices_left_out: notices.left_out(),
            undecoded: undecoded(projected),
            notices: notices.list().to_vec(),
            recomputed_at: projected.cx.now,
            recomputed: &projected.standing,
            repair: explained.verdict(),
            diagnosis: explained.diagnosis,
            drift: drift::drift(projected),
            retries: Retries(projected),
            redacted_by: projected.cx.snapshot.hidden_by.as_deref(),
        }
    }
}

/// The tries of each activity, those ahead too; made while they are written.
#[derive(Debug)]
struct Retries<'a>(&'a Projected<'a>);

#[derive(Debug, Serialize)]
struct Retry<'a> {
    activity_execution_id: &'a str,
    retry: RetryState,
}

impl Serialize for Retries<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let of = |activity| retries::retry_state(self.0.cx, activity);
        let all = self.0.activities.iter();
        serializer.collect_seq(all.filter_map(|activity| {
            Some(Retry {
                activity_execution_id: &activity.id,
                retry: of(activity)?,
            })
        }))
    }
}

pub(super) fn not_found(what: &str) -> AppError {
    AppError::NotFound {
        what: what.to_owned(),
        how: "Check the id, or find the run from the list. The engine's retention may have pruned it.".to_owned(),
    }
}
