//! `/compare?a=…&b=…`: two runs, or a run and a bundle, side by side.

use askama::Template;
use axum::{
    extract::{RawQuery, State},
    response::{Html, IntoResponse as _, Redirect, Response},
};
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;

use super::bundles;
use crate::{
    durable::{
        page::{self, steps::steps},
        projection::{Context, Projected},
        store::{
            head::last_completed,
            snapshot::{RunSnapshot, TimelineCache},
        },
    },
    run::{
        comparison::{Comparison, Difference, Pair, Step, compare},
        head::Head,
        window::Asked,
    },
    web::{
        error::AppError,
        filters,
        format::number,
        layout::{Layout, Nav},
        state::App,
    },
};

/// How a bundle that is kept is named beside the ids of runs.
const BUNDLE: &str = "bundle:";
/// Steps on one page.
const WINDOW: usize = 200;
/// Most characters of a value that are shown.
const SHOWN: usize = 200;

#[derive(Template)]
#[template(path = "pages/compare.html")]
struct CompareView {
    layout: Layout,
    a: String,
    b: String,
    /// None until both are chosen.
    both: Option<Both>,
    /// Why there is nothing to see yet.
    why: &'static str,
}

struct Both {
    left: Side,
    right: Side,
    comparison: Comparison,
    asked: Asked,
    from: usize,
    all: bool,
}

/// One of the two.
struct Side {
    head: Head,
    href: String,
    is_bundle: bool,
    steps: Vec<Step>,
}

pub async fn show(
    State(app): State<App>,
    layout: Layout,
    RawQuery(query): RawQuery,
) -> Result<Response, AppError> {
    let asked = Asked::parse(query.as_deref().unwrap_or_default());
    let given = |name| {
        asked
            .get(name)
            .map(str::trim)
            .unwrap_or_default()
            .to_owned()
    };
    let (a, b) = (given("a"), given("b"));
    if !a.is_empty() && b.is_empty() && asked.get("b").is_none() {
        // Nobody named a partner: the last run of its type that ended well.
        if let Some(partner) = partner(&app, &a).await? {
            let query = asked.changed(&[("b", Some(&partner))]);
            return Ok(Redirect::to(&format!("{}{query}", layout.href("/compare"))).into_response());
        }
    }
    let both = if a.is_empty() || b.is_empty() {
        None
    } else {
        let mut left = side(&app, &layout, &a).await?;
        let mut right = side(&app, &layout, &b).await?;
        let comparison = compare(
            std::mem::take(&mut left.steps),
            std::mem::take(&mut right.steps),
        );
        Some(Both {
            from: asked
                .get("from")
                .and_then(|from| from.parse().ok())
                .unwrap_or(0),
            all: asked.get("all").is_some(),
            left,
            right,
            comparison,
            asked,
        })
    };
    let why = match (a.is_empty(), b.is_empty(), a.starts_with(BUNDLE)) {
        (false, true, false) => {
            "No other run of this type has completed, so there is none to compare it with by itself. Name one."
        }
        (false, true, true) => "Name the run to compare this bundle with.",
        _ => "Name two runs, or a run and an opened bundle: their steps are laid side by side.",
    };
    let view = CompareView {
        why,
        layout: layout.title("Compare").at(Nav::Runs),
        a,
        b,
        both,
    };
    Ok(Html(view.render()?).into_response())
}

async fn partner(app: &App, run: &str) -> Result<Option<String>, AppError> {
    if run.starts_with(BUNDLE) || app.db.is_none() {
        return Ok(None);
    }
    let mut snapshot = app.db()?.snapshot().await?;
    let found = last_completed(&mut snapshot, run).await;
    snapshot.end().await;
    Ok(found?)
}

async fn side(app: &App, layout: &Layout, name: &str) -> Result<Side, AppError> {
    if let Some(bundle) = name.strip_prefix(BUNDLE) {
        let kept = bundles::kept(app, bundle).await?;
        let now = kept.opened.exported_at.unwrap_or(layout.now);
        let href = bundles::href(layout, bundle);
        return Ok(Side::new(app, &kept.opened.run, now, href, true));
    }
    let mut snapshot = app.db()?.snapshot().await?;
    let timeline = TimelineCache::Presence;
    let rows = app.reader.run(&mut snapshot, name, timeline).await;
    snapshot.end().await;
    let rows = rows?.ok_or_else(|| AppError::NotFound {
        what: format!("Run {name}"),
        how: "Write the whole id of a run, as its page shows it.".to_owned(),
    })?;
    let href = layout.run_href(&rows.run.workflow_instance_id, &rows.run.id);
    Ok(Side::new(app, &rows, layout.now, href, false))
}

impl Side {
    fn new(
        app: &App,
        rows: &RunSnapshot,
        now: DateTime<Utc>,
        href: String,
        is_bundle: bool,
    ) -> Self {
        let projected = Projected::of(Context {
            snapshot: rows,
            now,
            config: &app.engine,
        });
        let (head, _) = page::card(&projected, app.repair_mode());
        Self {
            head,
            href,
            is_bundle,
            steps: steps(&projected),
        }
    }
}

impl Both {
    /// The pairs on this page: those that differ, or all of them.
    fn shown(&self) -> Vec<&Pair> {
        let pairs: Box<dyn Iterator<Item = &Pair>> = if self.all {
            Box::new(self.comparison.pairs.iter())
        } else {
            Box::new(self.comparison.differing())
        };
        pairs.skip(self.from).take(WINDOW).collect()
    }

    fn total(&self) -> usize {
        if self.all {
            self.comparison.pairs.len()
        } else {
            self.comparison.differing().count()
        }
    }

    /// What was found, in one sentence.
    fn summary(&self) -> String {
        let count = self.comparison.differing().count();
        let steps = number(i64::try_from(self.comparison.pairs.len()).unwrap_or(i64::MAX));
        match count {
            0 => format!("No difference in {steps} steps."),
            1 => format!("1 of {steps} steps differs."),
            count => format!(
                "{} of {steps} steps differ.",
                number(i64::try_from(count).unwrap_or(i64::MAX))
            ),
        }
    }

    fn turned(&self) -> String {
        let all = (!self.all).then_some("1");
        self.asked.changed(&[("all", all), ("from", None)])
    }

    fn previous(&self) -> Option<String> {
        let from = self.from.checked_sub(1)?.saturating_sub(WINDOW - 1);
        Some(self.asked.changed(&[("from", Some(&from.to_string()))]))
    }

    fn next(&self) -> Option<String> {
        let from = self.from.saturating_add(WINDOW);
        (from < self.total()).then(|| self.asked.changed(&[("from", Some(&from.to_string()))]))
    }

    fn swapped(&self) -> String {
        let given = |name| self.asked.get(name);
        self.asked
            .changed(&[("a", given("b")), ("b", given("a")), ("from", None)])
    }
}

/// `+3 s` or `−3 s`; nothing where both took as long.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "as a template gives it")]
fn longer(pair: &&Pair) -> Option<String> {
    let delta = pair.longer().filter(|delta| !delta.is_zero())?;
    let sign = if delta < TimeDelta::zero() {
        '−'
    } else {
        '+'
    };
    Some(format!(
        "{sign}{}",
        crate::web::format::duration(delta.abs())
    ))
}

/// A value in one line.
#[expect(clippy::ref_option, reason = "as a template gives it")]
fn shown(value: &Option<Value>) -> String {
    let Some(value) = value else {
        return "nothing".to_owned();
    };
    let text = value.to_string();
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}
