//! The engine's run detail, key for key, put together from the concepts. Long lists are borrowed
//! and written as they stand: a tree of a long run's document would outweigh its history.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{
    actions,
    activities::Activity,
    budget,
    commands::Command,
    contract, failures, fleet, identity,
    intakes::{self, LinkedIntake},
    lineage, list_item,
    logs::{ChartData, Logs},
    navigation::{self, NavigationRun},
    projected::Projected,
    signals::Signal,
    sources, task_problem,
    tasks::Task,
    timeline,
    timers::Timer,
    updates::Update,
    waits::{Wait, open_wait::open_wait},
};
use crate::durable::stored::Summary as _;

/// The whole document.
#[derive(Debug, Serialize)]
pub struct Detail<'a> {
    /// Who the run is, how it stands, what may be done about it.
    #[serde(flatten)]
    head: Map<String, Value>,
    run_navigation: Vec<NavigationRun>,
    activities: &'a [Activity<'a>],
    linked_intakes: Vec<LinkedIntake>,
    commands: &'a [Command],
    signals: &'a [Signal],
    updates: &'a [Update],
    waits_projection_source: &'static str,
    waits: &'a [Wait],
    tasks: &'a [Task],
    timeline_projection_source: &'static str,
    timeline: Vec<timeline::Entry<'a>>,
    timeline_total_count: usize,
    timers_projection_source: &'static str,
    timers_projection_rebuild_reasons: Vec<&'static str>,
    timers: &'a [Timer],
    logs: Logs<'a>,
    #[serde(rename = "chartData")]
    chart_data: ChartData<'a>,
    exceptions: Vec<failures::Exception<'a>>,
    lineage_projection_source: &'static str,
    parents: Vec<lineage::Relative>,
    #[serde(rename = "continuedWorkflows")]
    continued_workflows: Vec<lineage::Relative>,
    #[serde(flatten)]
    scopes: Scopes,
}

/// Each list is of the selected run, whichever run of the instance is current.
#[expect(clippy::struct_field_names, reason = "the engine's names")]
#[derive(Debug, Serialize)]
struct Scopes {
    activities_scope: &'static str,
    linked_intakes_scope: &'static str,
    commands_scope: &'static str,
    signals_scope: &'static str,
    updates_scope: &'static str,
    waits_scope: &'static str,
    tasks_scope: &'static str,
    timeline_scope: &'static str,
    lineage_scope: &'static str,
}

impl Scopes {
    const SELECTED: Self = {
        let run = "selected_run";
        Self {
            activities_scope: run,
            linked_intakes_scope: run,
            commands_scope: run,
            signals_scope: run,
            updates_scope: run,
            waits_scope: run,
            tasks_scope: run,
            timeline_scope: run,
            lineage_scope: run,
        }
    };
}

/// The document. `limit` keeps the last entries of the timeline.
pub fn detail<'a>(projected: &'a Projected<'_>, limit: Option<usize>) -> Detail<'a> {
    let cx = projected.cx;
    let snapshot = cx.snapshot;
    let timeline = timeline::timeline(cx, &projected.failures, limit);
    let (timers_projection_source, timers_projection_rebuild_reasons) =
        sources::timers(snapshot, &projected.timers);
    let lineage = lineage::lineage(cx, &projected.related, &projected.children);
    let (lineage, lineage_projection_source) = sources::handed_out(snapshot, lineage);
    Detail {
        head: head(projected),
        run_navigation: navigation::navigation(cx, &projected.related),
        activities: &projected.activities,
        linked_intakes: intakes::linked_intakes(&projected.commands),
        commands: &projected.commands,
        signals: &projected.signals,
        updates: &projected.updates,
        waits_projection_source: sources::waits(snapshot, &projected.waits),
        waits: &projected.waits,
        tasks: &projected.tasks,
        timeline_projection_source: sources::timeline(snapshot, &timeline, limit),
        timeline,
        timeline_total_count: snapshot.events.len(),
        timers_projection_source,
        timers_projection_rebuild_reasons,
        timers: &projected.timers,
        logs: Logs(&projected.activities),
        chart_data: ChartData(cx, &projected.activities),
        exceptions: failures::exceptions(&projected.activities, &projected.failures),
        lineage_projection_source,
        parents: lineage.parents,
        continued_workflows: lineage.continued,
        scopes: Scopes::SELECTED,
    }
}

/// A later part's word counts where two have the same key.
fn head(projected: &Projected<'_>) -> Map<String, Value> {
    let cx = projected.cx;
    let mut out = Map::new();
    put(&mut out, &identity::identity(cx));
    put(&mut out, &projected.current_run);
    put(&mut out, &fleet::compatibility(cx));
    put(&mut out, &contract::contract(cx));
    put(&mut out, &identity::standing(cx, projected.failures.len()));
    put(&mut out, &open_wait(cx, &projected.waits));
    let badge = cx
        .snapshot
        .summary
        .as_ref()
        .and_then(|summary| task_problem::badge(summary.standing()));
    out.insert(
        "task_problem_badge".into(),
        json!(badge.map(list_item::task_problem_badge)),
    );
    put(&mut out, &budget::budget(cx));
    put(&mut out, &actions::actions(projected));
    out
}

/// All keys of one part.
fn put(out: &mut Map<String, Value>, part: &impl Serialize) {
    if let Ok(Value::Object(keys)) = serde_json::to_value(part) {
        out.extend(keys);
    }
}
