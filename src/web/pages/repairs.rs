//! `/repairs` and `/repairs/{batch}`: several runs repaired together. The set is frozen when it is
//! chosen from the list, previewed by kind, begun with a reason, and told run by run.

use askama::Template;
use axum::{
    Extension,
    extract::{Form, Path, RawForm, State},
    http::{HeaderMap, HeaderName, Method, StatusCode, Uri},
    response::{Html, IntoResponse as _, Redirect, Response},
};
use serde::Deserialize;

use super::{
    run::repair::reason_problem,
    runs::{ListRequest, freeze_seal},
};
use crate::{
    durable::{
        repair::{
            Mode,
            batch::{Batch, MOST, Member, NotStarted, Outcome, Preview, RunName, Stage},
        },
        store::{head, runs},
        stored::ListedRun,
    },
    run::tag::{Mark, Tag, Tone},
    web::{
        api::repair::{REASON, caller},
        batches::{self, EXPIRES, KEPT, Kept},
        error::AppError,
        filters,
        format::{self, Moment},
        frame::RequestId,
        layout::{Layout, Nav, segment},
        state::App,
    },
};

#[derive(Template)]
#[template(path = "pages/repairs.html")]
struct RepairsView {
    layout: Layout,
    rows: Vec<KeptRow>,
    kept: usize,
    minutes: u64,
}

struct KeptRow {
    href: String,
    state: Tag,
    count: String,
    chosen: String,
    reason: Option<String>,
    made: Moment,
}

#[derive(Template)]
#[template(path = "pages/batch.html")]
struct BatchView {
    layout: Layout,
    body: Body,
}

/// What is replaced while the set is being worked on.
#[derive(Template)]
#[template(path = "pages/batch_part.html")]
struct BatchPart {
    layout: Layout,
    body: Body,
}

struct Body {
    here: String,
    count: String,
    chosen: String,
    made: Moment,
    note: Option<String>,
    reason: Option<String>,
    stage: Stage,
    nudge: bool,
    /// How many of how many.
    over: usize,
    of: usize,
    /// "12 repaired, 1 skipped"
    said: String,
    all_done: bool,
    kinds: Vec<Group>,
    left_out: Vec<Group>,
    members: Vec<Line>,
    digest: String,
    start_token: String,
    stop_token: String,
    asked: Asked,
    problems: Vec<String>,
    reason_limit: usize,
}

/// Runs with the same kind of repair, or left out for the same reason.
struct Group {
    code: String,
    will_not: Vec<String>,
    lines: Vec<Line>,
}

struct Line {
    href: String,
    instance_id: String,
    workflow_type: String,
    kind: Option<&'static str>,
    words: Vec<String>,
    state: Tag,
    command_id: Option<String>,
}

/// What the form that begins it sends.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Asked {
    reason: String,
    /// How many runs, said once more.
    count: String,
    digest: String,
    token: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Stop {
    token: String,
}

pub async fn list(State(app): State<App>, layout: Layout) -> Result<Html<String>, AppError> {
    let layout = layout.title("Bulk repairs").at(Nav::Runs);
    let rows = app.batches.all().into_iter().map(|kept| {
        let (batch, reason) = kept.now();
        KeptRow {
            href: href(&layout, &kept.id),
            state: state(&batch),
            count: runs_said(batch.members().len()),
            chosen: kept.chosen.clone(),
            reason,
            made: layout.moment(kept.made),
        }
    });
    let view = RepairsView {
        rows: rows.collect(),
        kept: KEPT,
        minutes: EXPIRES.as_secs() / 60,
        layout,
    };
    Ok(Html(view.render()?))
}

/// Freezes the set that was chosen in the list.
pub async fn freeze(
    State(app): State<App>,
    layout: Layout,
    RawForm(form): RawForm,
) -> Result<Redirect, AppError> {
    let sent: Vec<(String, String)> = url::form_urlencoded::parse(&form).into_owned().collect();
    let one = |name: &str| {
        let found = sent.iter().find(|(param, _)| param == name);
        found.map_or("", |(_, value)| value.as_str())
    };
    // The token is of this filter: one that was lost or cut on the way is another.
    app.forms.check(&freeze_seal(one("filter")), one("token"))?;
    let (runs, chosen, note) = match one("what") {
        "matching" => matching(&app, &layout, one("filter")).await?,
        "selected" => {
            let ids = sent.iter().filter(|(param, _)| param == "run");
            selected(&app, ids.map(|(_, id)| id.clone()).collect()).await?
        }
        _ => return Err(AppError::invalid("what", "Choose runs, or all that match.")),
    };
    if runs.is_empty() {
        return Err(AppError::invalid("what", "No run is left to look at."));
    }
    let kept = batches::freeze(&app, runs, chosen, note)?;
    Ok(Redirect::to(&href(&layout, &kept.id)))
}

type Chosen = (Vec<RunName>, String, Option<String>);

async fn selected(app: &App, mut ids: Vec<String>) -> Result<Chosen, AppError> {
    ids.sort();
    ids.dedup();
    match ids.len() {
        0 => return Err(AppError::invalid("run", "Select at least one run.")),
        n if n > MOST as usize => {
            let message = format!("At most {MOST} runs at once; {n} are selected.");
            return Err(AppError::invalid("run", message));
        }
        _ => {}
    }
    let mut snapshot = app.db()?.snapshot().await?;
    let found = head::named_all(&mut snapshot, &ids).await?;
    snapshot.end().await;
    let gone = ids.len().saturating_sub(found.len());
    let note = (gone > 0).then(|| format!("{} of those selected no longer there.", are(gone)));
    let runs = found
        .into_iter()
        .map(|(run_id, instance_id, workflow_type)| RunName {
            run_id,
            instance_id,
            workflow_type,
        });
    Ok((runs.collect(), "Selected in the list".to_owned(), note))
}

async fn matching(app: &App, layout: &Layout, query: &str) -> Result<Chosen, AppError> {
    let mut list = ListRequest::parse(query.trim_start_matches('?'), layout.now, layout.zone);
    if !list.errors.is_empty() {
        let errors = list.errors.into_iter();
        return Err(AppError::Unprocessable {
            message: "This filter was not understood.".to_owned(),
            errors: errors.map(|error| (error.param, error.message)).collect(),
        });
    }
    if list.page.filter.is_empty() {
        return Err(AppError::invalid(
            "filter",
            "Without a filter, all would be every run there is. Filter the list first.",
        ));
    }
    list.page.cursor = None;
    list.page.size = MOST;
    let mut snapshot = app.db()?.snapshot().await?;
    let page = runs::page::<ListedRun>(&mut snapshot, &list.page).await?;
    snapshot.end().await;
    let note = match page.looked.as_ref().and_then(|looked| looked.rows) {
        Some(looked) => Some(format!(
            "No index serves this filter: only {} runs were looked at, so more may match.",
            format::number(i64::from(looked))
        )),
        None => page.next.is_some().then(|| {
            format!("More runs match than the {MOST} that fit into one set; the rest is not in it.")
        }),
    };
    let terms = list.page.filter.terms.iter();
    let chosen: Vec<String> = terms
        .map(|term| match &term.key {
            Some(key) => format!("{} {key}: {}", term.field.label, term.value),
            None => format!("{}: {}", term.field.label, term.value),
        })
        .collect();
    let runs = page.rows.into_iter().map(|row| RunName {
        run_id: row.id,
        instance_id: row.workflow_instance_id,
        workflow_type: row.workflow_type,
    });
    let chosen = format!("All that match {}", chosen.join(", "));
    Ok((runs.collect(), chosen, note))
}

pub async fn show(
    State(app): State<App>,
    layout: Layout,
    Path(id): Path<String>,
) -> Result<Response, AppError> {
    let kept = match kept(&app, &id) {
        // A part cannot say that the whole is gone.
        Err(_) if layout.partial => {
            return Ok([(HeaderName::from_static("hx-refresh"), "true")].into_response());
        }
        kept => kept?,
    };
    respond(
        StatusCode::OK,
        &app,
        layout,
        &kept,
        Asked::default(),
        vec![],
    )
}

pub async fn start(
    State(app): State<App>,
    layout: Layout,
    Path(id): Path<String>,
    (method, uri, headers): (Method, Uri, HeaderMap),
    Extension(request_id): Extension<RequestId>,
    Form(asked): Form<Asked>,
) -> Result<Response, AppError> {
    let repairs = app.repairs()?;
    let kept = kept(&app, &id)?;
    app.forms
        .check(&start_seal(&kept.id, &asked.digest), &asked.token)?;
    let (batch, _) = kept.now();
    let problems = problems(&batch, &asked);
    if batch.stage() == Stage::Offered && !problems.is_empty() {
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        return respond(status, &app, layout, &kept, asked, problems);
    }
    let caller = caller(&method, uri.path(), &headers, Some(&request_id));
    let reason = asked.reason.trim().to_owned();
    match batches::start(&app, repairs, &kept, &asked.digest, reason, caller) {
        // Pressed twice, it is begun once.
        Ok(()) | Err(NotStarted::Already) => {
            Ok(Redirect::to(&href(&layout, &kept.id)).into_response())
        }
        Err(NotStarted::NotAsShown) => {
            let problem = "This set is not the one that was shown.".to_owned();
            respond(
                StatusCode::CONFLICT,
                &app,
                layout,
                &kept,
                asked,
                vec![problem],
            )
        }
    }
}

pub async fn stop(
    State(app): State<App>,
    layout: Layout,
    Path(id): Path<String>,
    Form(stop): Form<Stop>,
) -> Result<Redirect, AppError> {
    let kept = kept(&app, &id)?;
    app.forms.check(&stop_seal(&kept.id), &stop.token)?;
    kept.stop();
    Ok(Redirect::to(&href(&layout, &kept.id)))
}

fn kept(app: &App, id: &str) -> Result<std::sync::Arc<Kept>, AppError> {
    app.batches.get(id).ok_or_else(|| AppError::NotFound {
        what: "This bulk repair".to_owned(),
        how: format!(
            "Only the copy of Plimsoll that froze it knows it, for {} minutes after it was frozen or ended, \
             and not over a restart; another copy behind the same address may have answered now. What it did stands in each run's commands; choose the runs again to go on.",
            EXPIRES.as_secs() / 60
        ),
    })
}

fn start_seal(id: &str, digest: &str) -> String {
    format!("start {id} {digest}")
}

fn stop_seal(id: &str) -> String {
    format!("stop {id}")
}

fn href(layout: &Layout, id: &str) -> String {
    layout.href(&format!("/repairs/{}", segment(id)))
}

fn problems(batch: &Batch, asked: &Asked) -> Vec<String> {
    let count = batch.planned().count();
    let mut problems: Vec<String> = reason_problem(&asked.reason).into_iter().collect();
    if asked.count.trim() != count.to_string() {
        problems.push(format!("Say how many runs are repaired: {count}."));
    }
    problems
}

fn respond(
    status: StatusCode,
    app: &App,
    layout: Layout,
    kept: &Kept,
    asked: Asked,
    problems: Vec<String>,
) -> Result<Response, AppError> {
    let layout = layout.title("Bulk repair").at(Nav::Runs);
    let body = body(app, &layout, kept, asked, problems);
    let html = if layout.partial {
        BatchPart { layout, body }.render()?
    } else {
        BatchView { layout, body }.render()?
    };
    Ok((status, Html(html)).into_response())
}

fn body(app: &App, layout: &Layout, kept: &Kept, asked: Asked, problems: Vec<String>) -> Body {
    let (batch, reason) = kept.now();
    let (over, of) = batch.progress();
    let done = batch
        .planned()
        .filter(|member| matches!(member.outcome, Outcome::Done { .. }))
        .count();
    let nudge = app
        .repairs
        .as_ref()
        .is_some_and(|repairs| repairs.mode == Mode::Nudge);
    let done_so = if nudge { "nudged" } else { "repaired" };
    let line = |member: &Member| line(layout, member);
    let digest = batch.digest().unwrap_or_default();
    Body {
        here: href(layout, &kept.id),
        count: runs_said(batch.members().len()),
        chosen: kept.chosen.clone(),
        made: layout.moment(kept.made),
        note: kept.note.clone(),
        reason,
        stage: batch.stage(),
        nudge,
        over,
        of,
        said: match over - done {
            0 => format!("{done} {done_so}"),
            skipped => format!("{done} {done_so}, {skipped} skipped"),
        },
        all_done: done == of,
        kinds: batch
            .by_kind()
            .into_iter()
            .map(|(kind, members)| Group {
                code: kind.code().to_owned(),
                will_not: match &members[0].preview {
                    Preview::Repair { words, .. } => words.will_not.clone(),
                    _ => Vec::new(),
                },
                lines: members.into_iter().map(line).collect(),
            })
            .collect(),
        left_out: batch
            .left_out()
            .into_iter()
            .map(|(code, members)| Group {
                code: code.to_owned(),
                will_not: Vec::new(),
                lines: members
                    .into_iter()
                    .map(|(member, _)| line(member))
                    .collect(),
            })
            .collect(),
        members: batch.planned().map(line).collect(),
        start_token: app.forms.token(&start_seal(&kept.id, &digest)),
        stop_token: app.forms.token(&stop_seal(&kept.id)),
        digest,
        asked,
        problems,
        reason_limit: REASON,
    }
}

fn line(layout: &Layout, member: &Member) -> Line {
    let (kind, mut words) = match &member.preview {
        Preview::Repair { kind, words, .. } => {
            let will = words.will.iter();
            let will = will.map(|effect| effect.told(|at| layout.moment(at).absolute));
            (Some(kind.code()), will.chain(words.needs.clone()).collect())
        }
        Preview::LeftOut(why) => (None, vec![why.words.clone()]),
        Preview::Unseen => (None, Vec::new()),
    };
    let mut command_id = None;
    let state = match &member.outcome {
        Outcome::Waiting => Tag::new("waiting", Tone::Wait, Mark::Ring),
        Outcome::UnderWay => Tag::new("under way", Tone::Run, Mark::Pulse),
        Outcome::Done { command_id: id } => {
            command_id.clone_from(id);
            Tag::new("done", Tone::Ok, Mark::Tick)
        }
        Outcome::Skipped(why) => {
            words = vec![why.words.clone()];
            Tag::new(why.code.clone(), Tone::Attn, Mark::Exclamation)
        }
    };
    Line {
        href: layout.run_href(&member.run.instance_id, &member.run.run_id),
        instance_id: member.run.instance_id.clone(),
        workflow_type: member.run.workflow_type.clone(),
        kind,
        words,
        state,
        command_id,
    }
}

fn state(batch: &Batch) -> Tag {
    let (over, of) = batch.progress();
    match batch.stage() {
        Stage::Looking => Tag::new("looking", Tone::Run, Mark::Pulse),
        Stage::Offered => Tag::new("not begun", Tone::Wait, Mark::Ring),
        Stage::Running => Tag::new(format!("{over} of {of}"), Tone::Run, Mark::Pulse),
        Stage::Ended => Tag::new("ended", Tone::Ok, Mark::Tick),
    }
}

fn runs_said(n: usize) -> String {
    match n {
        1 => "1 run".to_owned(),
        n => format!("{n} runs"),
    }
}

fn are(n: usize) -> String {
    match n {
        1 => "1 is".to_owned(),
        n => format!("{n} are"),
    }
}
