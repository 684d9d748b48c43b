//! `/instances/{instance}` and `/instances/{instance}/runs/{run}`: one run, from its projection.

pub mod history;
pub mod payload;
pub mod repair;

use std::sync::Arc;

use askama::Template;
use axum::{
    extract::{Path, RawQuery, State},
    response::{Html, IntoResponse as _, Redirect, Response},
};

use chrono::{DateTime, TimeDelta, Utc};

use crate::{
    db::Snapshot,
    durable::{
        page,
        projection::{Context, Projected},
        store::{
            head::{belongs, current_run_id},
            history::WINDOW,
            runs::moment,
            snapshot::{RunSnapshot, TimelineCache},
            state::progress,
        },
    },
    run::{
        diagnosis::Diagnosis,
        head::Head,
        page::{Page, is_long},
        tag::{Mark, Tone},
        timeline::{Kind, Label, Phase, Row, Span, Tick, Unit, draw::Range, rows::key},
        window::{Asked, PAGE, Window},
    },
    web::{
        error::AppError,
        filters::{self, Shown},
        format::{self, number},
        kept::Kept,
        layout::{Layout, Nav, segment},
        pages::bundles::Banner,
        state::App,
    },
};

#[derive(Template)]
#[template(path = "pages/run.html")]
struct RunView {
    layout: Layout,
    page: Arc<Page>,
    /// The sections that hold something, in the order of the page.
    parts: Vec<Part>,
    /// Names of the sections that hold nothing.
    empty: Vec<&'static str>,
    /// Address of the page without a query.
    here: String,
    asked: Asked,
    /// The history, where it is short enough to stand in the page.
    events: history::Events,
    /// What the run was read from, where that is a bundle.
    bundle: Option<Banner>,
    /// What of the address leads nowhere.
    astray: Vec<String>,
}

/// One section of the page: folded when it is long, and left out until it is opened.
struct Part {
    id: &'static str,
    title: &'static str,
    window: Window,
    count: String,
    /// What opening it shows, such as `the first 50 of 555`.
    shows: String,
    /// Where the section is shown, opened.
    href: String,
    previous: Option<String>,
    next: Option<String>,
    /// Which rows of how many; none when all are shown.
    note: Option<String>,
}

impl Part {
    fn new(
        here: &str,
        asked: &Asked,
        (id, title, window): (&'static str, &'static str, Window),
    ) -> Self {
        let at = |from: Option<usize>| {
            from.map(|from| {
                let query = asked.changed(&[(id, Some(&from.to_string())), ("at", None)]);
                format!("{here}{query}#{id}")
            })
        };
        let said = |n: usize| number(i64::try_from(n).unwrap_or(i64::MAX));
        Self {
            id,
            title,
            count: said(window.total),
            shows: match id {
                "history" if window.total > WINDOW => {
                    format!("the latest {WINDOW} of {}", said(window.total))
                }
                _ if id != "history" && window.total > PAGE => {
                    format!("the first {PAGE} of {}", said(window.total))
                }
                _ => said(window.total),
            },
            href: format!("{here}{}#{id}", asked.changed(&[(id, Some("0"))])),
            previous: at(window.previous()),
            next: at(window.next()),
            note: (window.loaded && window.len < window.total).then(|| {
                format!(
                    "{} to {} of {}",
                    said(window.from + 1),
                    said(window.from + window.len),
                    said(window.total)
                )
            }),
            window,
        }
    }
}

pub async fn current(
    State(app): State<App>,
    layout: Layout,
    Path(instance): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, AppError> {
    show(&app, layout, &instance, None, query).await
}

pub async fn selected(
    State(app): State<App>,
    layout: Layout,
    Path((instance, run)): Path<(String, String)>,
    RawQuery(query): RawQuery,
) -> Result<Response, AppError> {
    show(&app, layout, &instance, Some(&run), query).await
}

/// What a list shows of a run when it is pointed at.
#[derive(Template)]
#[template(path = "run/card.html")]
struct CardView {
    layout: Layout,
    head: Head,
    diagnosis: Diagnosis,
}

/// A part of the list, for scripts; whoever opens its address gets the run.
pub async fn card(
    State(app): State<App>,
    layout: Layout,
    Path((instance, run)): Path<(String, String)>,
) -> Result<Response, AppError> {
    if !layout.partial {
        return Ok(Redirect::to(&layout.run_href(&instance, &run)).into_response());
    }
    let rows = load(&app, &instance, Some(&run)).await?;
    let projected = Projected::of(Context {
        snapshot: &rows,
        now: layout.now,
        config: &app.engine,
    });
    let (head, diagnosis) = page::card(&projected, app.repair_mode());
    let view = CardView {
        layout,
        head,
        diagnosis,
    };
    Ok(Html(view.render()?).into_response())
}

async fn show(
    app: &App,
    mut layout: Layout,
    instance: &str,
    run: Option<&str>,
    query: Option<String>,
) -> Result<Response, AppError> {
    let asked = Asked::parse(query.as_deref().unwrap_or_default());
    let (range, astray) = match ranged(&asked, &layout) {
        Ranged::Here(range, astray) => (range, astray),
        Ranged::Elsewhere(query) => {
            let here = match run {
                Some(run) => layout.run_href(instance, run),
                None => layout.instance_href(instance),
            };
            return Ok(Redirect::to(&format!("{here}{query}")).into_response());
        }
    };
    let mut snapshot = app.db()?.snapshot().await?;
    let run_id = run_id(&mut snapshot, instance, run).await?;
    if let Some(kept) = app.kept.get(&run_id, layout.now).await
        && let Some(page) = kept.page(&asked, range)
        && progress(&mut snapshot, &run_id).await?.as_ref() == Some(&kept.progress)
    {
        snapshot.end().await;
        layout.now = kept.at;
        let view = RunView::new(layout, page, asked, astray);
        return Ok(Html(view.render()?).into_response());
    }
    let timeline = TimelineCache::Presence;
    let rows = app.reader.run(&mut snapshot, &run_id, timeline);
    let rows = rows.await?.ok_or_else(|| missing(instance, run))?;
    let projected = Projected::of(Context {
        snapshot: &rows,
        now: layout.now,
        config: &app.engine,
    });
    let story = page::story(&projected);
    let page = Arc::new(page::page(
        &projected,
        app.repair_mode(),
        &story,
        &asked,
        range,
    ));
    let at = layout.now;
    let html = RunView::new(layout, Arc::clone(&page), asked.clone(), astray).render()?;
    if is_long(page.history.window.total)
        && let Some(progress) = progress(&mut snapshot, &run_id).await?
    {
        let kept = Kept {
            progress,
            at,
            page,
            asked,
            range,
            story,
            sent: html.len(),
        };
        app.kept.keep(run_id, kept).await;
    }
    snapshot.end().await;
    Ok(Html(html).into_response())
}

/// The same page of a run that a bundle holds, as it stood when it was exported.
pub fn of_bundle(
    app: &App,
    layout: Layout,
    rows: &RunSnapshot,
    banner: Banner,
    here: String,
    asked: Asked,
) -> Result<Response, AppError> {
    let (range, astray) = match ranged(&asked, &layout) {
        Ranged::Here(range, astray) => (range, astray),
        Ranged::Elsewhere(query) => {
            return Ok(Redirect::to(&format!("{here}{query}")).into_response());
        }
    };
    let projected = Projected::of(Context {
        snapshot: rows,
        now: layout.now,
        config: &app.engine,
    });
    let page = Arc::new(page::page(
        &projected,
        app.repair_mode(),
        &page::story(&projected),
        &asked,
        range,
    ));
    let mut view = RunView::at(layout.at(Nav::Bundles), page, asked, here, astray);
    view.bundle = Some(banner);
    Ok(Html(view.render()?).into_response())
}

/// The part of time the address asks for.
enum Ranged {
    /// With what of it leads nowhere: then all is shown.
    Here(Range, Vec<String>),
    /// Written as a clock shows it, which is another time for a reader in another zone: the query
    /// that names the same moments to everybody.
    Elsewhere(String),
}

fn ranged(asked: &Asked, layout: &Layout) -> Ranged {
    let given = |name| asked.get(name).filter(|given| !given.is_empty());
    let mut astray = Vec::new();
    let mut edge = |name| {
        let at = moment(given(name)?, layout.zone);
        at.map_err(|why| astray.push(format!("All of the run is shown: {why}.")))
            .ok()
    };
    let (from, to) = (edge("from"), edge("to"));
    if from.zip(to).is_some_and(|(from, to)| from >= to) {
        astray.push("All of the run is shown: the range asked for ends before it begins.".into());
    }
    if !astray.is_empty() {
        return Ranged::Here(Range::default(), astray);
    }
    if ["from", "to"]
        .into_iter()
        .filter_map(given)
        .all(format::is_instant)
    {
        return Ranged::Here(Range { from, to }, astray);
    }
    let (from, to) = (from.map(format::instant), to.map(format::instant));
    Ranged::Elsewhere(asked.changed(&[("from", from.as_deref()), ("to", to.as_deref())]))
}

/// What the address names and the page does not have.
fn lost(asked: &Asked, page: &Page) -> Vec<String> {
    let timeline = &page.timeline;
    let beside = timeline
        .beside
        .then(|| "Nothing of this run lies in the range asked for: all of it is shown.".to_owned());
    let group = asked
        .get("group")
        .filter(|_| timeline.of_group.is_none())
        .map(|group| format!("The timeline has no units {group}: all of them are shown."));
    let unit = asked
        .get("unit")
        .filter(|_| timeline.rows.iter().all(|row| !row.selected))
        .map(|unit| format!("No unit {unit} is among those shown."));
    let row = asked
        .get("at")
        .filter(|at| !page.has(at) && !page.has_event(at))
        .map(|at| format!("Nothing on this page is called {at}."));
    [beside, group, unit, row].into_iter().flatten().collect()
}

/// Everything about one run; without a run id the instance's current one.
async fn load(app: &App, instance: &str, run: Option<&str>) -> Result<RunSnapshot, AppError> {
    let mut snapshot = app.db()?.snapshot().await?;
    let run_id = run_id(&mut snapshot, instance, run).await?;
    let timeline = TimelineCache::Presence;
    let rows = app.reader.run(&mut snapshot, &run_id, timeline).await?;
    snapshot.end().await;
    rows.ok_or_else(|| missing(instance, run))
}

/// The run that is meant.
async fn run_id(
    snapshot: &mut Snapshot,
    instance: &str,
    run: Option<&str>,
) -> Result<String, AppError> {
    let run_id = match run {
        Some(run) => belongs(snapshot, instance, run)
            .await?
            .then(|| run.to_owned()),
        None => current_run_id(snapshot, instance).await?,
    };
    run_id.ok_or_else(|| missing(instance, run))
}

fn missing(instance: &str, run: Option<&str>) -> AppError {
    AppError::NotFound {
        what: match run {
            Some(run) => format!("Run {run} of instance {instance}"),
            None => format!("A run of instance {instance}"),
        },
        how: "Check both ids, or find the run from the list. The engine's retention may have pruned it.".to_owned(),
    }
}

impl RunView {
    fn new(layout: Layout, page: Arc<Page>, asked: Asked, astray: Vec<String>) -> Self {
        let here = layout.run_href(&page.head.instance_id, &page.head.run_id);
        Self::at(layout.at(Nav::Runs), page, asked, here, astray)
    }

    fn at(
        layout: Layout,
        page: Arc<Page>,
        asked: Asked,
        here: String,
        mut astray: Vec<String>,
    ) -> Self {
        astray.extend(lost(&asked, &page));
        let (parts, empty): (Vec<_>, Vec<_>) = [
            ("activities", "Activities", page.activities.window),
            ("exceptions", "Exceptions", page.exceptions.window),
            ("tasks", "Tasks", page.tasks.window),
            ("waits", "Waits", page.waits.window),
            ("signals", "Signals", page.signals.window),
            ("updates", "Updates", page.updates.window),
            ("commands", "Commands", page.commands.window),
            ("children", "Parents and children", page.children.window),
            ("data", "Memo, attributes and payloads", page.data.window),
            ("history", "History", page.history.window),
        ]
        .into_iter()
        .partition(|(.., window)| window.total > 0);
        Self {
            layout: layout.title(page.head.type_name.clone()),
            parts: parts
                .into_iter()
                .map(|part| Part::new(&here, &asked, part))
                .map(|part| match part.id {
                    // A long history is read a window at a time.
                    "history" => Part {
                        href: format!("{here}/history"),
                        ..part
                    },
                    _ => part,
                })
                .collect(),
            empty: empty.into_iter().map(|(_, title, _)| title).collect(),
            events: history::Events::part(&here, page.history.clone()),
            here,
            page,
            asked,
            bundle: None,
            astray,
        }
    }

    fn export_href(&self) -> String {
        let below = self.layout.base.strip(&self.here).unwrap_or_default();
        self.layout.href(&format!("/api{below}/history-export"))
    }

    /// Whom with is found when it is asked for.
    fn compare_href(&self) -> String {
        let run = segment(&self.page.head.run_id);
        self.layout.href(&format!("/compare?a={run}"))
    }

    /// Where a row of the timeline leads: its details, or the units it stands for.
    fn row_href(&self, row: &Row) -> String {
        let query = match (row.group, row.selected) {
            (Some(_), _) => self.asked.changed(&[
                ("group", Some(&key(&row.unit))),
                ("units", None),
                ("unit", None),
            ]),
            (None, true) => self.asked.changed(&[("unit", None)]),
            (None, false) => self.asked.changed(&[("unit", Some(&row.unit.id))]),
        };
        format!("{}{query}#timeline", self.here)
    }

    /// What is said beside a unit's name. Those of one group have the same kind, and often the
    /// same name: when each began tells them apart.
    fn beside(&self, unit: &Unit) -> String {
        let grouped = self.page.timeline.of_group.is_some() && unit.kind != Kind::Run;
        let from = unit.from().filter(|_| grouped).map(|at| self.clock(&at));
        let kind = unit.kind_said().filter(|_| !grouped).map(str::to_owned);
        // What is not proven is said before what may be cut off.
        let mark = unit.mark.as_ref().map(|mark| mark.label.to_string());
        [mark, from, unit.note.clone(), kind]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// Whether a stretch ends with now, and with nothing else: it has not ended.
    fn goes_on(&self, unit: &Unit, span: &Span) -> bool {
        unit.is_open && span.to == self.layout.now && span.to > span.from
    }

    /// How long a stretch was, or is so far.
    fn lasted(&self, unit: &Unit, span: &Span) -> String {
        match span.length() {
            length if length <= TimeDelta::zero() => String::new(),
            length if self.goes_on(unit, span) => format!("{} so far", format::duration(length)),
            length => format::duration(length),
        }
    }

    /// A group as an operator calls it: `activity fetch-mail` for `activity:fetch-mail`.
    fn group_name(key: &str) -> String {
        match key.split_once(':') {
            Some((kind, family)) if kind == family => kind.to_owned(),
            _ => key.replacen(':', " ", 1),
        }
    }

    /// The page with its timeline changed.
    fn with(&self, changes: &[(&str, Option<&str>)]) -> String {
        format!("{}{}#timeline", self.here, self.asked.changed(changes))
    }

    fn whole(&self) -> String {
        self.with(&[("from", None), ("to", None)])
    }

    fn all_units(&self) -> String {
        self.with(&[("group", None), ("units", None)])
    }

    fn units_from(&self, from: impl Shown<i64>) -> String {
        self.with(&[("units", Some(&from.shown().to_string()))])
    }

    /// The timeline, nearer: what one unit takes up of it, and a little around.
    fn zoom_href(&self, row: &Row) -> Option<String> {
        let (from, to) = row.unit.begun()?;
        let around = ((to - from) / 10).max(TimeDelta::milliseconds(50));
        let timeline = &self.page.timeline;
        let (shown, nearer) = (timeline.to - timeline.from, to - from + around * 2);
        if nearer >= shown * 4 / 5 {
            return None;
        }
        Some(self.with(&[
            ("from", Some(&format::instant(from - around))),
            ("to", Some(&format::instant(to + around))),
        ]))
    }

    /// Where the page shows a row, whichever section it is in.
    fn anchor_href(&self, anchor: &str) -> String {
        if let Some(sequence) = anchor.strip_prefix("event-") {
            return format!("{}/history?at={sequence}#{anchor}", self.here);
        }
        let query = self.asked.changed(&[("at", Some(anchor))]);
        format!("{}{query}#{}", self.here, segment(anchor))
    }

    /// Whether the drawing goes beyond one day of the zone shown.
    fn has_days(&self) -> bool {
        let day = |at: DateTime<Utc>| self.layout.zone.local(at).date_naive();
        day(self.page.timeline.from) != day(self.page.timeline.to)
    }

    /// A moment of the drawing: the day where there are several, and parts of a second where they
    /// can be seen.
    fn clock(&self, at: &DateTime<Utc>) -> String {
        let form = match (self.has_days(), self.is_fine()) {
            (true, true) => "%m-%d %H:%M:%S%.3f",
            (true, false) => "%m-%d %H:%M:%S",
            (false, true) => "%H:%M:%S%.3f",
            (false, false) => "%H:%M:%S",
        };
        self.layout.zone.local(*at).format(form).to_string()
    }

    /// Whether parts of a second can be seen in the drawing.
    fn is_fine(&self) -> bool {
        let step = self.page.timeline.ticks.first().map(|tick| tick.step);
        step.is_some_and(|step| step < TimeDelta::seconds(1))
            || self.page.timeline.to - self.page.timeline.from < format::FINE
    }

    /// The clock at a tick, down to what ticks differ in; a fold may lead to another day.
    fn tick_clock(&self, tick: &Tick) -> String {
        let local = self.layout.zone.local(tick.at);
        let first = self.layout.zone.local(self.page.timeline.from);
        let day = local.date_naive() != first.date_naive();
        let form = match tick.step {
            step if step >= TimeDelta::minutes(1) && self.has_days() => "%m-%d %H:%M",
            step if step >= TimeDelta::minutes(1) => "%H:%M",
            // The labels are narrow: of a drawing this short the day stands above it.
            step if step < TimeDelta::seconds(1) || self.is_fine() => "%H:%M:%S%.3f",
            _ if day => "%m-%d %H:%M:%S",
            _ => "%H:%M:%S",
        };
        local.format(form).to_string()
    }

    /// What is drawn, as two fields for a time take it: to the millisecond where that says more,
    /// and rounded outwards, so that what is shown stays in it.
    fn fields(&self) -> (String, String) {
        let field = |at: DateTime<Utc>| {
            let local = self.layout.zone.local(at);
            let fraction = at.timestamp_subsec_millis();
            let form = match fraction {
                0 => "%Y-%m-%dT%H:%M:%S",
                _ => "%Y-%m-%dT%H:%M:%S%.3f",
            };
            local.format(form).to_string()
        };
        let timeline = &self.page.timeline;
        let almost = TimeDelta::nanoseconds(999_999);
        (field(timeline.from), field(timeline.to + almost))
    }

    /// From when to when the timeline is.
    fn extent(&self) -> String {
        let timeline = &self.page.timeline;
        format::span(timeline.from, timeline.to, self.layout.zone)
    }

    /// The tone of the bar beside the diagnosis: that of the status, unless an open run needs
    /// somebody.
    fn tone(&self) -> Tone {
        let head = &self.page.head;
        let stuck = head.repair.called_for || self.page.diagnosis.needs_somebody();
        if head.is_open && stuck {
            Tone::Attn
        } else {
            head.status.tone
        }
    }
}
