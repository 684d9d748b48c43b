//! Which run of an instance is the current one.
//!
//! The engine follows who continued whom and does not believe `current_run_id` of the instance.

use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
};

use serde::Serialize;

use super::{
    context::{Context, millis},
    related::Related,
};
use crate::durable::{
    store::snapshot::RelatedRun,
    stored::{ClosedReason, RunStatus, StatusBucket},
};

/// How the current run was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The last of a chain of runs, each started by the one before it.
    ContinueAsNewLineage,
    /// No run says it continues another: the highest run number.
    RunOrderFallback,
}

/// The current run of the instance; none when no run of it is known.
pub fn current_run<'a>(
    related: &Related<'a>,
    instance_id: &str,
) -> Option<(&'a RelatedRun, Source)> {
    let runs = related.of_instance(instance_id);
    if let Some(tail) = newest(&chain_tails(runs)) {
        return Some((tail, Source::ContinueAsNewLineage));
    }
    newest(runs).map(|run| (run, Source::RunOrderFallback))
}

/// The run itself, or where its instance went on when it ended by continuing as new.
pub fn follow<'a>(related: &Related<'a>, run: &'a RelatedRun) -> &'a RelatedRun {
    if run.run.closed_reason == Some(ClosedReason::Continued) {
        current_run(related, &run.run.workflow_instance_id).map_or(run, |(current, _)| current)
    } else {
        run
    }
}

/// Runs that continue another run of the instance and are continued by none.
fn chain_tails<'a>(runs: &[&'a RelatedRun]) -> Vec<&'a RelatedRun> {
    let ids: HashSet<&str> = runs.iter().map(|other| other.run.id.as_str()).collect();
    let successors: HashMap<&str, &'a RelatedRun> = runs
        .iter()
        .filter_map(|other| Some((other.continued_from_run_id.as_deref()?, *other)))
        .filter(|(from, _)| ids.contains(from))
        .collect();
    successors
        .values()
        .filter(|run| !successors.contains_key(run.run.id.as_str()))
        .copied()
        .collect()
}

/// Highest run number, then the latest start, then the latest row. The engine compares
/// milliseconds.
fn newest<'a>(runs: &[&'a RelatedRun]) -> Option<&'a RelatedRun> {
    runs.iter().copied().min_by_key(|other| {
        let run = &other.run;
        let created = run.created_at.map_or(0, millis);
        let started = run.started_at.map_or(created, millis);
        Reverse((run.run_number, started, created, run.id.as_str()))
    })
}

/// What the detail says about the current run beside the selected one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CurrentRun {
    /// As stored in the selected run's summary, else whether the two are the same.
    pub is_current_run: bool,
    pub current_run_id: Option<String>,
    pub current_run_source: Option<Source>,
    pub current_run_status: Option<RunStatus>,
    pub current_run_status_bucket: Option<StatusBucket>,
    pub current_run_closed_reason: Option<ClosedReason>,
}

pub fn of_selected(cx: Context<'_>, related: &Related<'_>) -> CurrentRun {
    let run = &cx.snapshot.run;
    // Without its instance no run is current, and the engine takes no command for one.
    let current =
        current_run(related, &run.workflow_instance_id).filter(|_| !cx.snapshot.instance.missing);
    let is_current = current.is_some_and(|(current, _)| current.run.id == run.id);
    CurrentRun {
        is_current_run: cx
            .snapshot
            .summary
            .as_ref()
            .map_or(is_current, |summary| summary.is_current_run),
        current_run_id: current.map(|(current, _)| current.run.id.clone()),
        current_run_source: current.map(|(_, source)| source),
        current_run_status: current.map(|(current, _)| current.run.status.clone()),
        current_run_status_bucket: current.and_then(|(current, _)| current.status_bucket.clone()),
        current_run_closed_reason: current.and_then(|(current, _)| {
            current
                .closed_reason
                .clone()
                .or_else(|| current.run.closed_reason.clone())
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::durable::projection::related::tests::run;
    use crate::durable::{
        projection::{example::told, navigation::navigation},
        store::snapshot::{InstanceFacts, RunSnapshot},
    };

    #[test]
    fn without_its_instance_no_run_is_current() {
        let runs = [run("a", "one", 1, None)];
        for (missing, current) in [(false, Some("a")), (true, None)] {
            let snapshot = RunSnapshot {
                run: runs[0].run.clone(),
                related: runs.to_vec(),
                instance: InstanceFacts {
                    missing,
                    ..InstanceFacts::default()
                },
                ..RunSnapshot::default()
            };
            told(&snapshot, |cx| {
                let related = Related::of(&snapshot);
                let found = of_selected(cx, &related);
                assert_eq!(found.current_run_id.as_deref(), current);
                assert_eq!(found.is_current_run, !missing);
                assert_eq!(navigation(cx, &related).is_empty(), missing);
            });
        }
    }

    #[test]
    fn the_end_of_a_chain_is_current_even_beside_a_stray_newer_run() {
        // id, run number, continues → who is current, and how that is known
        use Source::{ContinueAsNewLineage, RunOrderFallback};
        type Rows = &'static [(&'static str, i64, Option<&'static str>)];
        type Found = Option<(&'static str, Source)>;
        let table: [(Rows, Found); 6] = [
            (&[], None),
            (&[("a", 1, None)], Some(("a", RunOrderFallback))),
            (
                &[("a", 1, None), ("b", 2, None)],
                Some(("b", RunOrderFallback)),
            ),
            (
                &[("a", 1, None), ("b", 2, Some("a")), ("c", 3, Some("b"))],
                Some(("c", ContinueAsNewLineage)),
            ),
            (
                &[("a", 1, None), ("b", 2, Some("a")), ("stray", 9, None)],
                Some(("b", ContinueAsNewLineage)),
            ),
            (
                &[("a", 1, Some("gone")), ("b", 2, Some("b"))],
                Some(("b", RunOrderFallback)),
            ),
        ];
        for (rows, expected) in table {
            let runs: Vec<RelatedRun> = rows
                .iter()
                .map(|(id, number, from)| run(id, "one", *number, *from))
                .collect();
            let found = current_run(&Related::over(&runs), "one");
            let found = found.map(|(run, source)| (run.run.id.as_str(), source));
            assert_eq!(found, expected, "{rows:?}");
        }
    }

    #[test]
    fn only_a_run_that_continued_is_followed() {
        let mut first = run("a", "one", 1, None);
        let second = run("b", "one", 2, Some("a"));
        let runs = [first.clone(), second.clone()];
        assert_eq!(follow(&Related::over(&runs), &runs[0]).run.id, "a");
        first.run.closed_reason = Some(ClosedReason::Continued);
        let runs = [first, second];
        assert_eq!(follow(&Related::over(&runs), &runs[0]).run.id, "b");
    }
}
