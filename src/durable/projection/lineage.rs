//! The runs a run comes from and the runs that come from it.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::{
    authority,
    children::{CHILD_LINK, Child, Recorded, ended_as},
    context::{Context, ts},
    related::Related,
};
use crate::durable::{
    store::snapshot::{RelatedRun, RunSnapshot},
    stored::{
        EventType, HistoryEvent, LinkRow, RunStatus,
        payloads::lineage::{ContinuedAsNew, Origin, ParentClose},
    },
};

const CONTINUE_LINK: &str = "continue_as_new";

/// One run related to the selected one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Relative {
    pub id: String,
    pub link_type: String,
    pub child_call_id: Option<String>,
    pub sequence: Option<i64>,
    pub is_primary_parent: bool,
    pub workflow_instance_id: String,
    pub workflow_run_id: String,
    #[serde(flatten)]
    pub side: Side,
    pub run_number: Option<i64>,
    pub workflow_type: Option<String>,
    pub class: Option<String>,
    pub status: Option<String>,
    pub status_bucket: Option<String>,
    pub closed_reason: Option<String>,
    #[serde(serialize_with = "ts")]
    pub created_at: Option<DateTime<Utc>>,
    pub history_authority: &'static str,
    /// Known from a link alone.
    pub diagnostic_only: bool,
    #[serde(flatten)]
    pub close: CloseOutcome,
}

/// The ids once more, under the names of the side the relative is on.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Side {
    Parent {
        parent_workflow_id: String,
        parent_workflow_run_id: String,
    },
    Child {
        child_workflow_id: String,
        child_workflow_run_id: String,
    },
}

/// What was to happen to a child when this run closed, and what did.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CloseOutcome {
    /// `abandon`, `request_cancel`, `terminate`.
    pub parent_close_policy: Option<String>,
    /// `applied` or `failed`; none while nothing was done.
    pub parent_close_policy_outcome: Option<&'static str>,
    pub parent_close_policy_reason: Option<String>,
    pub parent_close_policy_error: Option<String>,
}

/// Both directions, as the detail lists them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lineage {
    pub parents: Vec<Relative>,
    /// Children and the run that continues this one (`continuedWorkflows`).
    pub continued: Vec<Relative>,
}

pub fn lineage(cx: Context<'_>, related: &Related<'_>, children: &[Child<'_>]) -> Lineage {
    Lineage {
        parents: parents(cx.snapshot, related),
        continued: continued(cx.snapshot, related, children),
    }
}

/// What the first `WorkflowStarted` says, with its time.
pub fn origin(snapshot: &RunSnapshot) -> (Origin, Option<DateTime<Utc>>) {
    snapshot
        .events
        .iter()
        .find(|event| event.event_type == EventType::WorkflowStarted)
        .map_or_else(Default::default, |event| (event.as_payload(), event.time()))
}

fn parents(snapshot: &RunSnapshot, related: &Related<'_>) -> Vec<Relative> {
    let run = &snapshot.run;
    let (origin, started) = origin(snapshot);
    let call_id = own_call_id(snapshot, &origin);
    let mut parents = Vec::new();
    if let Some(from) = &origin.continued_from_run_id.0 {
        let mut parent = Relative::parent(&run.workflow_instance_id, from, related.run(from));
        parent.id = origin
            .workflow_link_id
            .0
            .clone()
            .unwrap_or_else(|| format!("{CONTINUE_LINK}:{from}"));
        CONTINUE_LINK.clone_into(&mut parent.link_type);
        parent.sequence = origin.sequence.strict();
        parent.created_at = started;
        parents.push(parent);
    }
    if let Some(from) = &origin.parent_workflow_run_id.0 {
        let instance = origin.parent_workflow_instance_id.as_deref();
        let mut parent = Relative::parent(
            instance.unwrap_or(&run.workflow_instance_id),
            from,
            related.run(from),
        );
        parent.id = call_id
            .clone()
            .unwrap_or_else(|| format!("{CHILD_LINK}:{from}:{}", run.id));
        CHILD_LINK.clone_into(&mut parent.link_type);
        parent.child_call_id.clone_from(&call_id);
        parent.sequence = origin.parent_sequence.strict();
        parent.created_at = started;
        parents.push(parent);
    }
    for link in &snapshot.links {
        let covered = |parent: &Relative| {
            parent.link_type == link.link_type
                && parent.workflow_run_id == link.parent_workflow_run_id
        };
        if link.child_workflow_run_id != run.id || parents.iter().any(covered) {
            continue;
        }
        let call_id = call_id.clone().filter(|_| link.link_type == CHILD_LINK);
        let mut parent = Relative::parent(
            &link.parent_workflow_instance_id,
            &link.parent_workflow_run_id,
            related.run(&link.parent_workflow_run_id),
        );
        parent.by_link(link, call_id);
        parents.push(parent);
    }
    parents
}

/// The id of the call that started this run as a child.
///
/// Where its own first event does not say, the engine asks the parent's history, which names
/// the call after its link.
fn own_call_id(snapshot: &RunSnapshot, origin: &Origin) -> Option<String> {
    let by_start = || {
        let from_parent =
            origin.parent_workflow_run_id.is_some() && origin.continued_from_run_id.is_none();
        origin.workflow_link_id.0.clone().filter(|_| from_parent)
    };
    let by_link = || {
        let parent = origin.parent_workflow_run_id.as_deref()?;
        let sequence = origin.parent_sequence.strict()?;
        snapshot
            .links
            .iter()
            .find(|link| {
                link.link_type == CHILD_LINK
                    && link.parent_workflow_run_id == parent
                    && link.child_workflow_run_id == snapshot.run.id
                    && link.sequence == Some(sequence)
            })
            .map(|link| link.id.clone())
    };
    origin
        .child_call_id
        .0
        .clone()
        .or_else(by_start)
        .or_else(by_link)
}

fn continued(
    snapshot: &RunSnapshot,
    related: &Related<'_>,
    children: &[Child<'_>],
) -> Vec<Relative> {
    let run = &snapshot.run;
    let outcomes = close_events(&snapshot.events);
    let mut relatives: Vec<Relative> = Vec::new();
    let mut seen: HashSet<Identity> = HashSet::new();

    let continued = snapshot
        .events
        .iter()
        .find(|event| event.event_type == EventType::WorkflowContinuedAsNew);
    if let Some(event) = continued {
        let payload: ContinuedAsNew = event.as_payload();
        if let Some(to) = &payload.continued_to_run_id.0 {
            let mut next = Relative::child(&run.workflow_instance_id, to, related.run(to));
            next.id = payload
                .workflow_link_id
                .0
                .clone()
                .unwrap_or_else(|| format!("{CONTINUE_LINK}:{to}"));
            CONTINUE_LINK.clone_into(&mut next.link_type);
            next.sequence = payload.sequence.strict();
            next.workflow_type = Some(run.workflow_type.clone());
            next.class = Some(run.workflow_class.clone());
            next.run_number = payload.continued_to_run_number.strict().or(next.run_number);
            next.created_at = event.time();
            relatives.push(next);
            seen.insert(Identity::Run(CONTINUE_LINK.to_owned(), to.clone()));
        }
    }

    for child in children {
        let (Some(run_id), Some(instance_id)) = (
            &child.child_workflow_run_id,
            &child.child_workflow_instance_id,
        ) else {
            continue;
        };
        let call_id = child.child_call_id.clone();
        if !seen.insert(Identity::of_child(
            call_id,
            Some(child.sequence),
            instance_id,
        )) {
            continue;
        }
        let mut relative = called(child, instance_id, run_id, related);
        relative.close = close_outcome(outcomes.get(run_id), child.link);
        relatives.push(relative);
    }

    let calls: HashMap<i64, Option<&str>> = children
        .iter()
        .map(|child| (child.sequence, child.child_call_id.as_deref()))
        .collect();
    for link in &snapshot.links {
        if link.parent_workflow_run_id != run.id {
            continue;
        }
        let is_child = link.link_type == CHILD_LINK;
        let call_id = link
            .sequence
            .filter(|_| is_child)
            .and_then(|sequence| calls.get(&sequence).copied().flatten())
            .map(str::to_owned);
        let identity = if is_child {
            Identity::of_child(
                call_id.clone(),
                link.sequence,
                &link.child_workflow_instance_id,
            )
        } else {
            Identity::Run(link.link_type.clone(), link.child_workflow_run_id.clone())
        };
        if !seen.insert(identity) {
            continue;
        }
        let mut relative = Relative::child(
            &link.child_workflow_instance_id,
            &link.child_workflow_run_id,
            related.run(&link.child_workflow_run_id),
        );
        relative.by_link(link, call_id);
        if is_child {
            let told = outcomes.get(&link.child_workflow_run_id);
            relative.close = close_outcome(told, Some(link));
        }
        relatives.push(relative);
    }

    relatives.sort_by_key(|relative| {
        (
            relative.sequence.unwrap_or(i64::MAX),
            relative.run_number.unwrap_or(i64::MAX),
        )
    });
    relatives
}

/// By what two entries are known to be one and the same.
#[derive(PartialEq, Eq, Hash)]
enum Identity {
    Call(String),
    Step(i64, String),
    Instance(String),
    Run(String, String),
}

impl Identity {
    fn of_child(call_id: Option<String>, sequence: Option<i64>, instance_id: &str) -> Self {
        match (call_id, sequence) {
            (Some(id), _) => Self::Call(id),
            (None, Some(sequence)) => Self::Step(sequence, instance_id.to_owned()),
            (None, None) => Self::Instance(instance_id.to_owned()),
        }
    }
}

/// A child of a known sequence. Once history says how it ended, the child's own row says
/// nothing about its status any more.
fn called(child: &Child<'_>, instance_id: &str, run_id: &str, related: &Related<'_>) -> Relative {
    let row = child.run.or_else(|| related.run(run_id));
    let own = row.filter(|_| child.resolution.is_none());
    let mut relative = Relative::child(instance_id, run_id, own);
    let events: Vec<&Recorded<'_>> = [&child.resolution, &child.started, &child.scheduled]
        .into_iter()
        .flatten()
        .collect();
    let told = |key: fn(&Recorded<'_>) -> Option<String>| events.iter().find_map(|told| key(told));

    relative.id = child
        .child_call_id
        .clone()
        .unwrap_or_else(|| format!("{CHILD_LINK}:{}:{run_id}", child.sequence));
    CHILD_LINK.clone_into(&mut relative.link_type);
    relative.child_call_id.clone_from(&child.child_call_id);
    relative.sequence = Some(child.sequence);
    relative.is_primary_parent = child.link.is_none_or(|link| link.is_primary_parent);
    relative.workflow_type = told(|told| told.payload.child_workflow_type.0.clone())
        .or_else(|| child.run.map(|run| run.run.workflow_type.clone()))
        .or(relative.workflow_type);
    relative.class = told(|told| told.payload.child_workflow_class.0.clone())
        .or_else(|| child.run.map(|run| run.run.workflow_class.clone()))
        .or(relative.class);
    relative.run_number = events
        .iter()
        .find_map(|told| told.payload.child_run_number.strict())
        .or_else(|| child.run.map(|run| run.run.run_number))
        .or(relative.run_number);
    relative.status = status(child).or(relative.status);
    if let Some(bucket) = relative.status.as_deref().and_then(bucket) {
        relative.status_bucket = Some(bucket);
    }
    relative.closed_reason = closed_reason(child, relative.status.as_deref())
        .or_else(|| {
            let run = child.run?;
            run.run.closed_reason.as_ref().map(ToString::to_string)
        })
        .or(relative.closed_reason);
    relative.created_at = child.opened_at;
    if !events.is_empty() {
        return relative;
    }
    relative.history_authority = authority::OPEN_FALLBACK;
    relative.diagnostic_only = true;
    relative
}

/// The status history gives the child; its row's only where history is silent.
fn status(child: &Child<'_>) -> Option<String> {
    let told = |recorded: &Option<Recorded<'_>>| {
        let recorded = recorded.as_ref()?;
        recorded.payload.child_status.0.clone()
    };
    told(&child.resolution)
        .or_else(|| told(&child.started))
        .or_else(|| match &child.resolution {
            Some(end) => Some(ended_as(&end.event.event_type).as_str().to_owned()),
            None if child.is_typed() => Some(RunStatus::Waiting.as_str().to_owned()),
            None => child.run.map(|run| run.run.status.as_str().to_owned()),
        })
}

fn closed_reason(child: &Child<'_>, status: Option<&str>) -> Option<String> {
    let end = child.resolution.as_ref()?;
    let told = end.payload.closed_reason.0.clone();
    told.or_else(|| status.map(str::to_owned))
}

fn bucket(status: &str) -> Option<String> {
    RunStatus::from(status)
        .bucket()
        .map(|bucket| bucket.as_str().to_owned())
}

/// The last word on each child when this run closed, by the child's run id.
fn close_events(events: &[HistoryEvent]) -> HashMap<String, (&'static str, ParentClose)> {
    events
        .iter()
        .filter_map(|event| {
            let outcome = match event.event_type {
                EventType::ParentClosePolicyApplied => "applied",
                EventType::ParentClosePolicyFailed => "failed",
                _ => return None,
            };
            let payload: ParentClose = event.as_payload();
            Some((payload.child_run_id.0.clone()?, (outcome, payload)))
        })
        .collect()
}

fn close_outcome(
    told: Option<&(&'static str, ParentClose)>,
    link: Option<&LinkRow>,
) -> CloseOutcome {
    let by_link = link
        .map(|link| link.parent_close_policy.clone())
        .filter(|policy| !policy.is_empty());
    match told {
        None => CloseOutcome {
            parent_close_policy: by_link,
            ..CloseOutcome::default()
        },
        Some((outcome, payload)) => CloseOutcome {
            parent_close_policy: payload.policy.0.clone().or(by_link),
            parent_close_policy_outcome: Some(outcome),
            parent_close_policy_reason: payload.reason.0.clone(),
            parent_close_policy_error: payload.error.0.clone(),
        },
    }
}

impl Relative {
    fn parent(instance_id: &str, run_id: &str, row: Option<&RelatedRun>) -> Self {
        let side = Side::Parent {
            parent_workflow_id: instance_id.to_owned(),
            parent_workflow_run_id: run_id.to_owned(),
        };
        Self::new(instance_id, run_id, side, row)
    }

    fn child(instance_id: &str, run_id: &str, row: Option<&RelatedRun>) -> Self {
        let side = Side::Child {
            child_workflow_id: instance_id.to_owned(),
            child_workflow_run_id: run_id.to_owned(),
        };
        Self::new(instance_id, run_id, side, row)
    }

    /// What the other run's own row says; the caller adds what history knows better.
    fn new(instance_id: &str, run_id: &str, side: Side, row: Option<&RelatedRun>) -> Self {
        let status = row.map(|row| row.run.status.as_str().to_owned());
        Self {
            id: String::new(),
            link_type: String::new(),
            child_call_id: None,
            sequence: None,
            is_primary_parent: true,
            workflow_instance_id: instance_id.to_owned(),
            workflow_run_id: run_id.to_owned(),
            side,
            run_number: row.map(|row| row.run.run_number),
            workflow_type: row.map(|row| row.run.workflow_type.clone()),
            class: row.map(|row| row.run.workflow_class.clone()),
            status_bucket: row
                .and_then(|row| row.status_bucket.as_ref())
                .map(ToString::to_string)
                .or_else(|| status.as_deref().and_then(bucket)),
            status,
            closed_reason: row
                .and_then(|row| {
                    row.closed_reason
                        .as_ref()
                        .or(row.run.closed_reason.as_ref())
                })
                .map(ToString::to_string),
            created_at: None,
            history_authority: authority::TYPED,
            diagnostic_only: false,
            close: CloseOutcome::default(),
        }
    }

    /// Known from a link alone, which proves nothing.
    fn by_link(&mut self, link: &LinkRow, call_id: Option<String>) {
        self.id = call_id.clone().unwrap_or_else(|| link.id.clone());
        self.link_type.clone_from(&link.link_type);
        self.child_call_id = call_id;
        self.sequence = link.sequence;
        self.is_primary_parent = link.is_primary_parent;
        self.created_at = link.created_at;
        self.history_authority = authority::OPEN_FALLBACK;
        self.diagnostic_only = true;
    }
}
