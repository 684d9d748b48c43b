//! The children a run called, one per workflow sequence, as its own history tells of them.
//!
//! Waits, lineage and liveness all look at a child through [`Child`]. What the child's own row
//! says counts only where this run's history says nothing.

use std::{cmp::Reverse, collections::BTreeMap};

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::{
    authority,
    context::{Context, millis},
    current_run,
    parallel::{self, GroupStep, ParallelGroup},
    related::Related,
};
use crate::durable::{
    store::snapshot::RelatedRun,
    stored::{
        EventType, HistoryEvent, LinkRow, LivenessState, RunStatus,
        payloads::{
            lineage::{ChildEvent, StepTaken},
            parallel::Grouped as _,
        },
    },
};

/// The link type of a child call, in `workflow_links` and in lineage.
pub const CHILD_LINK: &str = "child_workflow";

/// An event of this run about a child, with its payload read.
#[derive(Clone, Debug)]
pub struct Recorded<'a> {
    pub event: &'a HistoryEvent,
    pub payload: ChildEvent,
}

/// One child call.
#[derive(Clone, Debug)]
pub struct Child<'a> {
    pub sequence: i64,
    /// The first `ChildWorkflowScheduled`.
    pub scheduled: Option<Recorded<'a>>,
    /// The last `ChildRunStarted`: a retried or continued child starts again.
    pub started: Option<Recorded<'a>>,
    /// The first event that says how the child ended.
    pub resolution: Option<Recorded<'a>>,
    /// The link to the newest run of the child.
    pub link: Option<&'a LinkRow>,
    /// The child's run as far as it is known here.
    pub run: Option<&'a RelatedRun>,
    pub child_call_id: Option<String>,
    pub child_workflow_instance_id: Option<String>,
    pub child_workflow_run_id: Option<String>,
    /// Its type, or its class where no type is known.
    pub label: String,
    /// `open`, `resolved`, `cancelled`, `unsupported`.
    pub status: &'static str,
    pub source_status: Option<String>,
    pub history_authority: &'static str,
    pub history_unsupported_reason: Option<&'static str>,
    pub opened_at: Option<DateTime<Utc>>,
    pub resolved_at: Option<DateTime<Utc>>,
    pub group: ParallelGroup,
}

impl Child<'_> {
    pub fn is_open(&self) -> bool {
        self.status == "open"
    }

    /// What its stored summary says that keeps an open child from going on by itself.
    pub fn stuck(&self) -> Option<&LivenessState> {
        let stored = self.run?.summary_liveness.as_ref()?;
        (self.is_open() && stored.needs_somebody()).then_some(stored)
    }

    /// Whether this run's own history knows the child at all.
    pub fn is_typed(&self) -> bool {
        self.history_authority == authority::TYPED
    }

    /// Whether the workflow took a step after the child's outcome was recorded: only having seen
    /// the outcome could it. The engine does not ask, and takes the outcome for lost.
    pub fn has_been_taken_up(&self, cx: Context<'_>) -> bool {
        let Some(resolution) = &self.resolution else {
            return false;
        };
        cx.snapshot
            .events
            .iter()
            .filter(|event| event.sequence > resolution.event.sequence)
            .filter(|event| {
                matches!(
                    event.event_type,
                    EventType::ActivityScheduled
                        | EventType::TimerScheduled
                        | EventType::ChildWorkflowScheduled
                        | EventType::SignalWaitOpened
                        | EventType::ConditionWaitOpened
                        | EventType::SideEffectRecorded
                        | EventType::VersionMarkerRecorded
                )
            })
            .any(|event| {
                let step: StepTaken = event.as_payload();
                step.sequence.get() > Some(self.sequence)
            })
    }
}

/// Every child the run's events or links know, by sequence.
pub fn children<'a>(cx: Context<'a>, related: &Related<'a>) -> Vec<Child<'a>> {
    let mut known: BTreeMap<i64, Known<'a>> = BTreeMap::new();
    for event in &cx.snapshot.events {
        let Some(moment) = Moment::of(&event.event_type) else {
            continue;
        };
        let payload: ChildEvent = event.as_payload();
        let Some(sequence) = payload.sequence.strict() else {
            continue;
        };
        known
            .entry(sequence)
            .or_default()
            .record(moment, Recorded { event, payload });
    }
    for link in &cx.snapshot.links {
        if link.parent_workflow_run_id == cx.snapshot.run.id
            && link.link_type == CHILD_LINK
            && let Some(sequence) = link.sequence
        {
            known.entry(sequence).or_default().links.push(link);
        }
    }
    known
        .into_iter()
        .map(|(sequence, known)| known.into_child(sequence, related))
        .collect()
}

/// What an event tells of a child.
#[derive(Clone, Copy)]
enum Moment {
    Scheduled,
    Started,
    Resolution,
}

impl Moment {
    fn of(event_type: &EventType) -> Option<Self> {
        match event_type {
            EventType::ChildWorkflowScheduled => Some(Self::Scheduled),
            EventType::ChildRunStarted => Some(Self::Started),
            EventType::ChildRunCompleted
            | EventType::ChildRunFailed
            | EventType::ChildRunCancelled
            | EventType::ChildRunTerminated => Some(Self::Resolution),
            _ => None,
        }
    }
}

/// What was gathered of one sequence.
#[derive(Default)]
struct Known<'a> {
    scheduled: Option<Recorded<'a>>,
    started: Option<Recorded<'a>>,
    resolution: Option<Recorded<'a>>,
    links: Vec<&'a LinkRow>,
    path: Option<Vec<GroupStep>>,
}

impl<'a> Known<'a> {
    fn record(&mut self, moment: Moment, recorded: Recorded<'a>) {
        if self.path.is_none() {
            self.path = group_path(&recorded.payload);
        }
        match moment {
            Moment::Scheduled if self.scheduled.is_none() => self.scheduled = Some(recorded),
            Moment::Started => self.started = Some(recorded),
            Moment::Resolution if self.resolution.is_none() => self.resolution = Some(recorded),
            Moment::Scheduled | Moment::Resolution => {}
        }
    }

    fn into_child(self, sequence: i64, related: &Related<'a>) -> Child<'a> {
        let link = newest_link(&self.links, related);
        // What the last event says goes first.
        let events = [&self.resolution, &self.started, &self.scheduled];
        let told = |key: fn(&ChildEvent) -> Option<&String>| {
            events
                .iter()
                .filter_map(|recorded| recorded.as_ref())
                .find_map(|recorded| key(&recorded.payload))
                .cloned()
        };
        let run_id = told(|event| event.child_workflow_run_id.as_ref())
            .or_else(|| link.map(|link| link.child_workflow_run_id.clone()));
        let instance_id = told(|event| event.child_workflow_instance_id.as_ref())
            .or_else(|| link.map(|link| link.child_workflow_instance_id.clone()));
        let named = run_id.as_deref().and_then(|id| related.run(id));
        let run = if named.is_some() && (self.started.is_some() || self.resolution.is_some()) {
            named
        } else {
            named
                .or_else(|| {
                    let instance = instance_id.as_deref()?;
                    current_run::current_run(related, instance).map(|(run, _)| run)
                })
                .map(|run| current_run::follow(related, run))
        };
        let standing = standing(
            self.resolution
                .as_ref()
                .map(|recorded| resolved_status(recorded)),
            self.scheduled.is_some() || self.started.is_some(),
            run.map(own_status).as_ref(),
            run.map(|run| &run.run.status),
        );
        let time = |recorded: &Option<Recorded<'_>>| {
            recorded.as_ref().and_then(|recorded| recorded.event.time())
        };
        Child {
            sequence,
            link,
            child_call_id: told(|event| event.child_call_id.as_ref())
                .or_else(|| {
                    [&self.scheduled, &self.started]
                        .into_iter()
                        .filter_map(|recorded| recorded.as_ref())
                        .find_map(|recorded| recorded.payload.workflow_link_id.0.clone())
                })
                .or_else(|| link.map(|link| link.id.clone())),
            child_workflow_instance_id: run
                .map(|run| run.run.workflow_instance_id.clone())
                .or(instance_id),
            child_workflow_run_id: run.map(|run| run.run.id.clone()).or(run_id),
            label: told(|event| event.child_workflow_type.as_ref())
                .or_else(|| run.map(|run| run.run.workflow_type.clone()))
                .or_else(|| told(|event| event.child_workflow_class.as_ref()))
                .unwrap_or_else(|| "child workflow".into()),
            status: standing.status,
            source_status: standing.source_status,
            history_authority: standing.history_authority,
            history_unsupported_reason: (standing.history_authority == authority::UNSUPPORTED)
                .then_some(authority::CHILD_UNSUPPORTED),
            opened_at: time(&self.scheduled)
                .or_else(|| time(&self.started))
                .or_else(|| link.and_then(|link| link.created_at)),
            resolved_at: time(&self.resolution).or_else(|| {
                run.filter(|_| standing.history_authority != authority::TYPED)
                    .and_then(|run| run.run.closed_at)
            }),
            group: ParallelGroup::of_path(self.path.unwrap_or_default()),
            run,
            scheduled: self.scheduled,
            started: self.started,
            resolution: self.resolution,
        }
    }
}

/// The link to the child's newest run; of equals the newest link.
fn newest_link<'a>(links: &[&'a LinkRow], related: &Related<'_>) -> Option<&'a LinkRow> {
    links.iter().copied().min_by_key(|link| {
        let number = related
            .run(&link.child_workflow_run_id)
            .map_or(0, |run| run.run.run_number);
        let created = link.created_at.map_or(0, millis);
        Reverse((number, created, link.id.as_str()))
    })
}

/// How the event that ended the child says it ended.
pub fn resolved_status(resolution: &Recorded<'_>) -> RunStatus {
    let told = resolution.payload.child_status.as_deref();
    match told.map(RunStatus::from) {
        Some(status) if !matches!(status, RunStatus::Other(_)) => status,
        _ => ended_as(&resolution.event.event_type),
    }
}

/// The status an event type stands for by itself.
pub fn ended_as(event_type: &EventType) -> RunStatus {
    match event_type {
        EventType::ChildRunCompleted => RunStatus::Completed,
        EventType::ChildRunCancelled => RunStatus::Cancelled,
        EventType::ChildRunTerminated => RunStatus::Terminated,
        _ => RunStatus::Failed,
    }
}

/// How the child itself says it stands: its last event outranks its row.
fn own_status(run: &RelatedRun) -> RunStatus {
    match run.terminal_event {
        Some(EventType::WorkflowCompleted) => RunStatus::Completed,
        Some(EventType::WorkflowFailed) => RunStatus::Failed,
        Some(EventType::WorkflowCancelled) => RunStatus::Cancelled,
        Some(EventType::WorkflowTerminated) => RunStatus::Terminated,
        _ => run.run.status.clone(),
    }
}

struct Standing {
    status: &'static str,
    source_status: Option<String>,
    history_authority: &'static str,
}

/// How the call stands: what this run's history says, and only without any the child itself.
fn standing(
    resolution: Option<RunStatus>,
    called: bool,
    own: Option<&RunStatus>,
    row: Option<&RunStatus>,
) -> Standing {
    let word = |status: &RunStatus| status.as_str().to_owned();
    let row_word = row.map(word);
    let (status, source_status, history_authority) = match (resolution, called) {
        // History says it was stopped.
        (Some(end @ (RunStatus::Cancelled | RunStatus::Terminated)), _) => {
            ("cancelled", Some(word(&end)), authority::TYPED)
        }
        // History says it ended.
        (Some(end), _) => ("resolved", Some(word(&end)), authority::TYPED),
        // History only called it: open, whatever the child's row says by now.
        (None, true) => ("open", Some("waiting".to_owned()), authority::TYPED),
        // Only a link knows it, and it has ended.
        (None, false) if own.is_some_and(RunStatus::is_terminal) => {
            ("unsupported", row_word, authority::UNSUPPORTED)
        }
        // Only a link knows it, and it runs.
        (None, false)
            if matches!(
                row,
                Some(RunStatus::Pending | RunStatus::Running | RunStatus::Waiting)
            ) =>
        {
            ("open", row_word, authority::OPEN_FALLBACK)
        }
        // Only a link knows it, and its run is gone.
        (None, false) => ("resolved", row_word, authority::OPEN_FALLBACK),
    };
    Standing {
        status,
        source_status,
        history_authority,
    }
}

/// The groups an event names, outermost first; none when it names none.
fn group_path(payload: &ChildEvent) -> Option<Vec<GroupStep>> {
    let keys = payload.group_keys();
    let names_any = keys.path.is_some_and(Value::is_array) || keys.id.is_some();
    names_any.then(|| parallel::path_of(keys))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_stands_as_history_says_and_only_without_history_as_the_child_says() {
        use RunStatus::{Cancelled, Completed, Failed, Terminated, Waiting};
        // resolution, called, the child's own word, its row → status, source, authority
        let table = [
            (
                Some(Completed),
                true,
                Some(Waiting),
                "resolved",
                Some("completed"),
                authority::TYPED,
            ),
            (
                Some(Failed),
                false,
                None,
                "resolved",
                Some("failed"),
                authority::TYPED,
            ),
            (
                Some(Cancelled),
                true,
                None,
                "cancelled",
                Some("cancelled"),
                authority::TYPED,
            ),
            (
                Some(Terminated),
                true,
                None,
                "cancelled",
                Some("terminated"),
                authority::TYPED,
            ),
            (
                None,
                true,
                Some(Completed),
                "open",
                Some("waiting"),
                authority::TYPED,
            ),
            (
                None,
                false,
                Some(Completed),
                "unsupported",
                Some("completed"),
                authority::UNSUPPORTED,
            ),
            (
                None,
                false,
                Some(Waiting),
                "open",
                Some("waiting"),
                authority::OPEN_FALLBACK,
            ),
            (
                None,
                false,
                None,
                "resolved",
                None,
                authority::OPEN_FALLBACK,
            ),
        ];
        for (resolution, called, row, status, source, authority) in table {
            let case = format!("{resolution:?} {called} {row:?}");
            let standing = standing(resolution, called, row.as_ref(), row.as_ref());
            assert_eq!(standing.status, status, "{case}");
            assert_eq!(standing.source_status.as_deref(), source, "{case}");
            assert_eq!(standing.history_authority, authority, "{case}");
        }
    }
}
