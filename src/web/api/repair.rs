//! `POST /api/instances/{instance}[/runs/{run}]/repair` and `/api/flows/{id}/repair`: answered as
//! the engine answers a command, 200 when it was done and 409 with the reason when it was not.

use axum::{
    Json,
    body::Bytes,
    extract::{self as http, FromRequest, Path, State},
    http::{HeaderMap, Method, StatusCode},
    response::{IntoResponse as _, Response},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tracing::Instrument as _;

use super::runs::not_found;
use crate::{
    db::Snapshot,
    durable::{
        projection::context::stamp,
        repair::{
            self, ApplyError, Caller, Goal, HttpRequest, Judged, Mode, Refusal, RepairPlan,
            Request, Scope, request::SOURCE,
        },
        store::head,
        stored::RepairBlockedReason,
    },
    web::{
        error::AppError,
        frame::RequestId,
        origin,
        state::{App, Repairs},
    },
};

/// One wish for a repair, from someone who may have it.
#[derive(Debug)]
pub struct Wish {
    asked: Asked,
    caller: Caller,
    repairs: Repairs,
}

/// What a caller may say with a repair; nothing of it is required.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Asked {
    reason: Option<String>,
    /// Of the plan that was previewed: only that one is carried out.
    digest: Option<String>,
}

/// Longest reason that is recorded, in characters.
pub const REASON: usize = 1_000;
/// Longest part of a caller's header that is recorded.
const CORRELATION_ID: usize = 128;

impl FromRequest<App> for Wish {
    type Rejection = AppError;

    /// Before anything is looked up: who may not write learns nothing of what there is.
    async fn from_request(request: http::Request, app: &App) -> Result<Self, AppError> {
        origin::require_json(request.headers())?;
        let repairs = app.repairs()?.clone();
        let caller = caller(
            request.method(),
            request.uri().path(),
            request.headers(),
            request.extensions().get(),
        );
        let body = Bytes::from_request(request, app).await;
        let body =
            body.map_err(|refused| AppError::from_refusal(refused.status(), refused.body_text()))?;
        Ok(Self {
            asked: Asked::read(&body)?,
            caller,
            repairs,
        })
    }
}

/// Who asks, as far as the request says.
pub fn caller(method: &Method, path: &str, headers: &HeaderMap, id: Option<&RequestId>) -> Caller {
    let correlation = headers.get("x-correlation-id");
    Caller {
        // Known when there is access control.
        principal: None,
        request: Some(HttpRequest {
            method: method.to_string(),
            path: path.to_owned(),
            request_id: id.map(|id| id.as_str().to_owned()),
            correlation_id: correlation
                .and_then(|value| value.to_str().ok())
                .map(|text| text.chars().take(CORRELATION_ID).collect()),
        }),
    }
}

impl Asked {
    fn read(body: &[u8]) -> Result<Self, AppError> {
        if body.iter().all(u8::is_ascii_whitespace) {
            return Ok(Self::default());
        }
        let mut asked: Self = serde_json::from_slice(body).map_err(|error| {
            let message = format!("The body is not what a repair takes: {error}.");
            AppError::BadRequest { message }
        })?;
        asked.reason = asked
            .reason
            .map(|reason| reason.trim().to_owned())
            .filter(|reason| !reason.is_empty());
        match &asked.reason {
            Some(reason) if reason.chars().count() > REASON => Err(AppError::invalid(
                "reason",
                format!("at most {REASON} characters"),
            )),
            _ => Ok(asked),
        }
    }
}

pub async fn current(
    State(app): State<App>,
    Path(instance): Path<String>,
    wish: Wish,
) -> Result<Response, AppError> {
    let snapshot = app.db()?.snapshot().await?;
    of_instance(&app, snapshot, &instance, "An instance", wish).await
}

pub async fn selected(
    State(app): State<App>,
    Path((instance, run)): Path<(String, String)>,
    wish: Wish,
) -> Result<Response, AppError> {
    let mut snapshot = app.db()?.snapshot().await?;
    if !head::belongs(&mut snapshot, &instance, &run).await? {
        return Err(not_found(&format!("Run {run} of instance {instance}")));
    }
    answer(&app, snapshot, &run, Scope::Run, wish).await
}

/// A run id or, failing that, an instance id.
pub async fn by_any_id(
    State(app): State<App>,
    Path(id): Path<String>,
    wish: Wish,
) -> Result<Response, AppError> {
    let mut snapshot = app.db()?.snapshot().await?;
    if head::exists(&mut snapshot, &id).await? {
        return answer(&app, snapshot, &id, Scope::Run, wish).await;
    }
    of_instance(&app, snapshot, &id, "A run or instance", wish).await
}

/// The instance's current run; without one there is nothing to repair yet.
async fn of_instance(
    app: &App,
    mut snapshot: Snapshot,
    instance_id: &str,
    asked_for: &str,
    wish: Wish,
) -> Result<Response, AppError> {
    if let Some(run) = head::current_run_id(&mut snapshot, instance_id).await? {
        return answer(app, snapshot, &run, Scope::Instance, wish).await;
    }
    let workflow_type = head::reserved(&mut snapshot, instance_id).await?;
    snapshot.end().await;
    let workflow_type =
        workflow_type.ok_or_else(|| not_found(&format!("{asked_for} {instance_id}")))?;
    let reply = Reply {
        workflow_id: instance_id,
        workflow_type: &workflow_type,
        target_scope: Scope::Instance.as_str(),
        ..Reply::default()
    };
    let message = "The instance is reserved and has not been started: it has no run yet.";
    let code = "instance_not_started";
    Ok(reply.refused("rejected_not_started", code, code, message.to_owned()))
}

async fn answer(
    app: &App,
    mut snapshot: Snapshot,
    run_id: &str,
    scope: Scope,
    wish: Wish,
) -> Result<Response, AppError> {
    let named = head::named(&mut snapshot, run_id).await?;
    let (instance_id, workflow_type) = named.ok_or_else(|| not_found(&format!("Run {run_id}")))?;
    let current = head::current_run_id(&mut snapshot, &instance_id).await?;
    snapshot.end().await;
    let Wish {
        asked,
        caller,
        repairs,
    } = wish;
    let request = Request {
        scope,
        mode: repairs.mode,
        reason: asked.reason,
        caller,
    };
    let reason = request.reason.clone();
    let done = carry_out(app, &repairs, run_id, request, asked.digest).await?;
    let reply = Reply {
        workflow_id: &instance_id,
        run_id: Some(run_id),
        requested_run_id: (scope == Scope::Run).then_some(run_id),
        resolved_run_id: current.as_deref(),
        workflow_type: &workflow_type,
        target_scope: scope.as_str(),
        ..Reply::default()
    };
    match done {
        Ok(plan) => Ok(Json(json!(reply.done(&plan, reason.as_deref()))).into_response()),
        Err(ApplyError::Refused(refusal)) => {
            let (outcome, rejection) = engine_words(&refusal);
            Ok(reply.refused(outcome, rejection, refusal.code(), refusal.told()))
        }
        Err(error @ (ApplyError::StateChanged | ApplyError::LostRaces)) => {
            let message = format!("Nothing was written: {error}.");
            let code = "state_changed";
            Ok(reply.refused(REFUSED, code, code, message))
        }
        Err(ApplyError::NoSuchRun(id)) => Err(not_found(&format!("Run {id}"))),
        Err(ApplyError::Db(error)) => Err(error.into()),
    }
}

/// The outcome of what the engine would have done and we do not.
const REFUSED: &str = "repair_refused";

/// Outcome and reason in the engine's words where it has them: it rejects two, and where the state
/// calls for no repair it accepts, and does nothing.
fn engine_words(refusal: &Refusal) -> (&'static str, &str) {
    match refusal {
        Refusal::Blocked(RepairBlockedReason::RunClosed) => {
            ("rejected_not_active", "run_not_active")
        }
        Refusal::Blocked(RepairBlockedReason::SelectedRunNotCurrent) => {
            ("rejected_not_current", refusal.code())
        }
        Refusal::Blocked(_) | Refusal::NotNeeded { .. } => ("repair_not_needed", refusal.code()),
        _ => (REFUSED, refusal.code()),
    }
}

/// By what runs are judged here.
pub fn judged(app: &App) -> Judged<'_> {
    Judged {
        clock: app.clock,
        config: &app.engine,
    }
}

/// Repairs in a task of its own. A caller who leaves must not stop a transaction half-way: nothing
/// would be written, but on MySQL its connection would be lost to the pool.
pub async fn carry_out(
    app: &App,
    repairs: &Repairs,
    run_id: &str,
    request: Request,
    previewed: Option<String>,
) -> Result<Result<RepairPlan, ApplyError>, AppError> {
    let (app, db, run_id) = (app.clone(), repairs.db.clone(), run_id.to_owned());
    let repair = async move {
        let goal = Goal::Asked(&request);
        let done = repair::repair(&db, judged(&app), &run_id, goal, previewed.as_deref()).await;
        // Here, because whoever asked may have left; and with the reason, of which a nudge leaves
        // no other record.
        if let Ok(plan) = &done {
            let (kind, reason) = (plan.kind.code(), request.reason.as_deref());
            tracing::info!(run_id, kind, mode = ?plan.mode, reason, "repaired");
        }
        done
    };
    tokio::spawn(repair.in_current_span())
        .await
        .map_err(|error| AppError::internal("a repair did not end", error))
}

/// The engine's keys, in its order; ours after them.
#[derive(Clone, Debug, Default, Serialize)]
struct Reply<'a> {
    outcome: &'a str,
    workflow_id: &'a str,
    run_id: Option<&'a str>,
    requested_run_id: Option<&'a str>,
    resolved_run_id: Option<&'a str>,
    command_id: Option<&'a str>,
    command_sequence: Option<i64>,
    target_scope: &'a str,
    workflow_type: &'a str,
    command_status: Option<&'a str>,
    command_source: Option<&'a str>,
    reason: Option<&'a str>,
    rejection_reason: Option<&'a str>,
    validation_errors: [(); 0],
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    plimsoll: Option<Value>,
}

impl<'a> Reply<'a> {
    /// 409; nothing is recorded, so there is no command to name.
    fn refused(
        self,
        outcome: &'a str,
        rejection_reason: &'a str,
        code: &str,
        message: String,
    ) -> Response {
        tracing::info!(
            workflow_id = self.workflow_id,
            run_id = self.run_id,
            code,
            "repair refused"
        );
        let reply = Self {
            outcome,
            command_status: Some("rejected"),
            rejection_reason: Some(rejection_reason),
            message: Some(message),
            plimsoll: Some(json!({"code": code})),
            ..self
        };
        (StatusCode::CONFLICT, Json(json!(reply))).into_response()
    }

    fn done(self, plan: &'a RepairPlan, reason: Option<&'a str>) -> Self {
        let command = plan.command.as_ref();
        Self {
            outcome: match plan.mode {
                Mode::Direct => "repair_dispatched",
                Mode::Nudge => "repair_nudged",
            },
            command_id: command.map(|command| command.id.as_str()),
            command_sequence: command.and_then(|command| command.command_sequence),
            command_status: command.map(|command| command.status.as_str()),
            command_source: command.map(|_| SOURCE),
            reason,
            plimsoll: Some(json!({
                "kind": plan.kind.code(),
                "digest": plan.digest,
                "task_id": plan.task_id,
                "task_type": plan.task_type,
                "did": plan.words.will.iter().map(|effect| effect.told(stamp)).collect::<Vec<_>>(),
                "did_not": plan.words.will_not,
                "needs": plan.words.needs,
            })),
            ..self
        }
    }
}
