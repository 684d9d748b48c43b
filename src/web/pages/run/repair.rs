//! `…/runs/{run}/repair`: what a repair would write, row by row, and the form that asks for it.
//! What is shown is what is written: the form carries the digest of the plan.

use askama::Template;
use axum::{
    Extension,
    extract::{Form, Path, State},
    http::{HeaderMap, Method, StatusCode, Uri},
    response::{Html, IntoResponse as _, Response},
};
use chrono::{DateTime, Utc};
use serde::Deserialize;

use super::missing;
use crate::{
    durable::{
        export::redaction::Kind,
        projection::context::stamp,
        repair::{
            self, Action, ApplyError, Caller, CellChange, Goal, Mode, RepairPlan, Request,
            RowChange, Scope,
        },
        store::{head, reader::Reader},
        stored::Cell,
    },
    run::tag::Mark,
    web::{
        api::repair::{REASON, caller, carry_out, judged},
        error::AppError,
        filters,
        frame::RequestId,
        layout::{Layout, Nav},
        state::App,
    },
};

#[derive(Template)]
#[template(path = "pages/repair.html")]
struct RepairView {
    layout: Layout,
    run: Named,
    /// Address of the run's page.
    here: String,
    stage: Stage,
    asked: Asked,
    /// What must be put right before anything is written.
    problems: Vec<String>,
    /// The run is no longer as it was previewed, and nothing was written.
    changed: bool,
    reason_limit: usize,
}

/// The run, as its page names it.
struct Named {
    instance_id: String,
    run_id: String,
    workflow_type: String,
}

/// How far the repair is.
enum Stage {
    /// It could be done.
    Offered(Offer),
    Refused {
        code: String,
        words: String,
        /// Until when it would still be refused, where time alone changes that.
        not_before: Option<DateTime<Utc>>,
    },
    Done {
        offer: Offer,
        command_id: Option<String>,
    },
}

/// A plan as it is shown.
struct Offer {
    kind: &'static str,
    nudge: bool,
    will: Vec<String>,
    will_not: Vec<String>,
    needs: Vec<String>,
    rows: Vec<Written>,
    digest: String,
    token: String,
}

/// One row that is written.
struct Written {
    table: &'static str,
    id: String,
    is_new: bool,
    cells: Vec<WrittenCell>,
}

struct WrittenCell {
    column: &'static str,
    before: Option<String>,
    after: String,
}

/// What the form sends.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Asked {
    reason: String,
    /// The run, named once more.
    name: String,
    digest: String,
    token: String,
}

pub async fn show(
    State(app): State<App>,
    layout: Layout,
    Path((instance, run)): Path<(String, String)>,
) -> Result<Response, AppError> {
    let run = named(&app, instance, run).await?;
    let state = offered(&app, &layout, &run).await?;
    respond(StatusCode::OK, layout, run, state, Asked::default(), vec![])
}

pub async fn ask(
    State(app): State<App>,
    layout: Layout,
    Path((instance, run)): Path<(String, String)>,
    (method, uri, headers): (Method, Uri, HeaderMap),
    Extension(request_id): Extension<RequestId>,
    Form(asked): Form<Asked>,
) -> Result<Response, AppError> {
    let repairs = app.repairs()?;
    let run = named(&app, instance, run).await?;
    app.forms
        .check(&seal(&run.run_id, &asked.digest), &asked.token)?;
    let problems = problems(&run, &asked);
    if !problems.is_empty() {
        let state = offered(&app, &layout, &run).await?;
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        return respond(status, layout, run, state, asked, problems);
    }
    let caller = caller(&method, uri.path(), &headers, Some(&request_id));
    let request = request(repairs.mode, Some(asked.reason.trim().to_owned()), caller);
    match carry_out(
        &app,
        repairs,
        &run.run_id,
        request,
        Some(asked.digest.clone()),
    )
    .await?
    {
        Ok(plan) => {
            let state = Stage::Done {
                command_id: plan.command.as_ref().map(|command| command.id.clone()),
                offer: Offer::of(&app, &layout, &plan),
            };
            respond(StatusCode::OK, layout, run, state, asked, vec![])
        }
        Err(ApplyError::StateChanged | ApplyError::LostRaces | ApplyError::Refused(_)) => {
            let state = offered(&app, &layout, &run).await?;
            respond(StatusCode::CONFLICT, layout, run, state, asked, vec![])
        }
        Err(ApplyError::NoSuchRun(_)) => Err(missing(&run.instance_id, Some(&run.run_id))),
        Err(ApplyError::Db(error)) => Err(error.into()),
    }
}

fn respond(
    status: StatusCode,
    layout: Layout,
    run: Named,
    stage: Stage,
    asked: Asked,
    problems: Vec<String>,
) -> Result<Response, AppError> {
    let view = RepairView {
        here: layout.run_href(&run.instance_id, &run.run_id),
        layout: layout.title("Repair").at(Nav::Runs),
        run,
        stage,
        asked,
        problems,
        changed: status == StatusCode::CONFLICT,
        reason_limit: REASON,
    };
    Ok((status, Html(view.render()?)).into_response())
}

async fn named(app: &App, instance: String, run: String) -> Result<Named, AppError> {
    let mut snapshot = app.db()?.snapshot().await?;
    let found = head::named(&mut snapshot, &run).await?;
    snapshot.end().await;
    match found {
        Some((instance_id, workflow_type)) if instance_id == instance => Ok(Named {
            instance_id,
            run_id: run,
            workflow_type,
        }),
        _ => Err(missing(&instance, Some(&run))),
    }
}

/// What could be done now. Reads only.
async fn offered(app: &App, layout: &Layout, run: &Named) -> Result<Stage, AppError> {
    let request = request(app.repair_mode(), None, Caller::default());
    let goal = Goal::Asked(&request);
    match repair::preview(app.db()?, judged(app), &run.run_id, goal).await {
        Ok(plan) => Ok(Stage::Offered(Offer::of(app, layout, &plan))),
        Err(ApplyError::Refused(refusal)) => Ok(Stage::Refused {
            code: refusal.code().to_owned(),
            words: refusal.words(),
            not_before: refusal.not_before(),
        }),
        Err(ApplyError::Db(error)) => Err(error.into()),
        Err(ApplyError::NoSuchRun(_) | ApplyError::StateChanged | ApplyError::LostRaces) => {
            Err(missing(&run.instance_id, Some(&run.run_id)))
        }
    }
}

fn request(mode: Mode, reason: Option<String>, caller: Caller) -> Request {
    Request {
        scope: Scope::Run,
        mode,
        reason,
        caller,
    }
}

/// What the form's token stands for.
fn seal(run_id: &str, digest: &str) -> String {
    format!("repair {run_id} {digest}")
}

fn problems(run: &Named, asked: &Asked) -> Vec<String> {
    let mut problems: Vec<String> = reason_problem(&asked.reason).into_iter().collect();
    let name = asked.name.trim();
    if name != run.instance_id.trim() && name != run.run_id {
        problems.push("Name the run: its instance id, or its run id.".to_owned());
    }
    problems
}

/// What is wrong with a reason.
pub fn reason_problem(reason: &str) -> Option<String> {
    match reason.trim().chars().count() {
        0 => Some("Say why: the reason is kept with the repair.".to_owned()),
        n if n > REASON => Some(format!("The reason has at most {REASON} characters.")),
        _ => None,
    }
}

impl Offer {
    fn of(app: &App, layout: &Layout, plan: &RepairPlan) -> Self {
        Self {
            kind: plan.kind.code(),
            nudge: plan.mode == Mode::Nudge,
            will: plan
                .words
                .will
                .iter()
                .map(|effect| effect.told(|at| layout.moment(at).absolute))
                .collect(),
            will_not: plan.words.will_not.clone(),
            needs: plan.words.needs.clone(),
            rows: plan
                .changes
                .iter()
                .map(|change| Written::of(&app.reader, change))
                .collect(),
            token: app.forms.token(&seal(&plan.run_id, &plan.digest)),
            digest: plan.digest.clone(),
        }
    }
}

impl Written {
    /// The plan itself stays as it is: only what is looked at is hidden.
    fn of(reader: &Reader, change: &RowChange) -> Self {
        let is_new = change.action == Action::Insert;
        // A new row's empty columns say nothing.
        let told = |cell: &&CellChange| !(is_new && cell.after == Cell::Null);
        let word = |column| match change.cell(column) {
            Some(Cell::Text(word)) => Some(word.as_str()),
            _ => None,
        };
        let kind = Kind {
            event_type: word("event_type"),
            command_type: word("command_type"),
            ..Kind::default()
        };
        let seen = |column, value: &Cell| {
            let mut value = value.clone();
            reader.cell(change.table, column, &kind, &mut value);
            shown(&value)
        };
        Self {
            table: change.table,
            id: change.id.clone(),
            is_new,
            cells: change
                .cells
                .iter()
                .filter(told)
                .map(|cell| WrittenCell {
                    column: cell.column,
                    before: cell.before.as_ref().map(|before| seen(cell.column, before)),
                    after: seen(cell.column, &cell.after),
                })
                .collect(),
        }
    }
}

fn shown(cell: &Cell) -> String {
    match cell {
        Cell::Null => "null".to_owned(),
        Cell::Bool(b) => b.to_string(),
        Cell::Int(n) => n.to_string(),
        Cell::Text(text) => text.clone(),
        Cell::Time(at) => stamp(*at),
        Cell::Json(value) => value.to_string(),
    }
}
