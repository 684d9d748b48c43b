//! A diagnosis on its way: the rows it rests on are gathered before it is said.

use chrono::{DateTime, Utc};

use super::deadlines::Deadline;
use crate::{
    durable::{
        projection::{
            activities::Activity, children::Child, commands::Command, failures::Failure,
            projected::Projected, signals::Signal, tasks::Task, updates::Update, waits::Wait,
        },
        stored::{EventType, HistoryEvent},
    },
    run::{
        diagnosis::{Actor, Citation, Diagnosis},
        fact::anchor,
    },
};

/// A diagnosis whose evidence is being gathered.
pub(super) struct Draft<'p> {
    p: &'p Projected<'p>,
    since: Option<DateTime<Utc>>,
    until: Option<DateTime<Utc>>,
    evidence: Vec<Citation>,
}

impl<'p> Draft<'p> {
    pub(super) fn new(p: &'p Projected<'_>) -> Self {
        let run = &p.cx.snapshot.run;
        Self {
            since: if run.status.is_terminal() {
                run.closed_at
            } else {
                p.standing.wait_started_at.or(run.last_progress_at)
            },
            until: p.standing.wait_deadline_at,
            evidence: Vec::new(),
            p,
        }
    }

    /// When what the sentence says began; where nobody knows, the wait's own beginning stays.
    pub(super) fn since(mut self, at: Option<DateTime<Utc>>) -> Self {
        self.since = at.or(self.since);
        self
    }

    pub(super) fn until(mut self, at: Option<DateTime<Utc>>) -> Self {
        self.until = at;
        self
    }

    pub(super) fn cite(mut self, citation: Citation) -> Self {
        if !self.evidence.contains(&citation) {
            self.evidence.push(citation);
        }
        self
    }

    pub(super) fn cite_run(self) -> Self {
        let run = &self.p.cx.snapshot.run;
        let shows = match &run.closed_reason {
            Some(reason) => format!("status {}, closed_reason {reason}", run.status),
            None => format!("status {}", run.status),
        };
        let id = run.id.clone();
        self.cite(Citation {
            table: "workflow_runs",
            id,
            shows,
            at: None,
            anchor: None,
        })
    }

    /// The last event of this type.
    pub(super) fn cite_event(self, event_type: &EventType) -> Self {
        let mut events = self.p.cx.snapshot.events.iter();
        let event = events.rfind(|event| event.event_type == *event_type);
        self.cite_history(event)
    }

    pub(super) fn cite_history(self, event: Option<&HistoryEvent>) -> Self {
        let Some(event) = event else { return self };
        self.cite(Citation {
            table: "workflow_history_events",
            id: event.id.clone(),
            shows: format!("event {} {}", event.sequence, event.event_type),
            at: None,
            anchor: Some(anchor("event", &event.sequence.to_string())),
        })
    }

    /// An event by its number, and its type where it can be read.
    fn event(&self, sequence: i64) -> String {
        let events = &self.p.cx.snapshot.events;
        match events.iter().find(|event| event.sequence == sequence) {
            Some(event) => format!("event {sequence} {}", event.event_type),
            None => format!("event {sequence}"),
        }
    }

    pub(super) fn cite_deadline(self, deadline: Option<Deadline>) -> Self {
        let Some(deadline) = deadline else {
            return self;
        };
        let citation = Citation {
            table: "workflow_runs",
            id: self.p.cx.snapshot.run.id.clone(),
            shows: deadline.which.column().to_owned(),
            at: Some(deadline.at),
            anchor: None,
        };
        self.cite(citation)
    }

    pub(super) fn cite_command(self, command: &Command) -> Self {
        let name = command.target_name.as_deref();
        let named = name.map_or_else(String::new, |name| format!(" {name}"));
        self.cite(Citation {
            table: "workflow_commands",
            id: command.id.clone(),
            shows: format!(
                "command {}{named}, {}",
                command.command_type, command.status
            ),
            at: None,
            anchor: Some(anchor("command", &command.id)),
        })
    }

    /// Its row, where it has one of its own, and the event that took it in.
    pub(super) fn cite_signal(self, signal: &Signal) -> Self {
        let draft = match &signal.id {
            Some(id) => self.cite(Citation {
                table: "workflow_signal_records",
                id: id.clone(),
                shows: format!(
                    "signal {} {}",
                    signal.name.as_deref().unwrap_or_default(),
                    signal.status
                ),
                at: None,
                anchor: Some(anchor("signal", id)),
            }),
            None => self,
        };
        draft.cite_taken_in(&EventType::SignalReceived, signal.command_id.as_deref())
    }

    pub(super) fn cite_update(self, update: &Update) -> Self {
        let draft = match &update.id {
            Some(id) => self.cite(Citation {
                table: "workflow_updates",
                id: id.clone(),
                shows: format!(
                    "update {} {}",
                    update.name.as_deref().unwrap_or_default(),
                    update.status
                ),
                at: None,
                anchor: Some(anchor("update", id)),
            }),
            None => self,
        };
        draft.cite_taken_in(&EventType::UpdateAccepted, update.command_id.as_deref())
    }

    fn cite_taken_in(self, event_type: &EventType, command_id: Option<&str>) -> Self {
        let mut events = self.p.cx.snapshot.events.iter();
        let event = events.rfind(|event| {
            event.event_type == *event_type
                && command_id.is_some()
                && event.workflow_command_id.as_deref() == command_id
        });
        self.cite_history(event)
    }

    /// How far it is, and the retry the engine wrote down for it.
    pub(super) fn cite_activity(self, activity: &Activity) -> Self {
        let name = activity.name().unwrap_or("activity");
        let tried = match activity.attempt_count {
            0 => "not tried".to_owned(),
            1 => "tried once".to_owned(),
            times => format!("tried {times} times"),
        };
        let draft = self.cite(Citation {
            table: "activity_executions",
            id: activity.id.clone(),
            shows: format!("{name} {}, {tried}", activity.status),
            at: None,
            anchor: Some(anchor("activity", &activity.id)),
        });
        match &activity.retry {
            Some(retry) => {
                let citation = Citation {
                    table: "workflow_history_events",
                    id: retry.event_id.clone(),
                    shows: draft.event(retry.event_sequence),
                    at: None,
                    anchor: Some(anchor("event", &retry.event_sequence.to_string())),
                };
                draft.cite(citation)
            }
            None => draft,
        }
    }

    pub(super) fn cite_failure(self, failure: &Failure) -> Self {
        let category = failure
            .failure_category
            .as_ref()
            .map_or("unclassified", |category| category.as_str());
        let shows = match failure.event_sequence {
            Some(sequence) => format!("{}, category {category}", self.event(sequence)),
            None => format!("category {category}, known from its row alone"),
        };
        self.cite(Citation {
            table: "workflow_failures",
            id: failure.id.clone(),
            shows,
            at: None,
            anchor: Some(anchor("failure", &failure.id)),
        })
    }

    pub(super) fn cite_child(self, child: &Child<'_>) -> Self {
        let Some(run_id) = child.child_workflow_run_id.clone() else {
            return self;
        };
        let name = child.child_workflow_instance_id.as_deref();
        // While it is open its own row knows better than the events of its parent.
        let own = child.run.filter(|_| child.is_open());
        let status = own
            .map(|own| own.run.status.as_str())
            .or(child.source_status.as_deref())
            .unwrap_or(child.status);
        let shows = format!("child {} {status}", name.unwrap_or(&child.label));
        self.cite(Citation {
            table: "workflow_links",
            at: None,
            anchor: Some(anchor("child", &run_id)),
            id: run_id,
            shows,
        })
    }

    pub(super) fn cite_task(self, task: Option<&Task>) -> Self {
        match task {
            Some(task) => self.cite(Self::task_citation(task)),
            None => self,
        }
    }

    /// A task by how it stands, or by the row that is not there.
    pub(super) fn task_citation(task: &Task) -> Citation {
        let (id, shows) = if task.task_missing {
            (
                task.expected_task_id.as_ref(),
                format!("no row for this {} task", task.r#type),
            )
        } else {
            (
                None,
                format!("{} task, {}", task.r#type, task.transport_state),
            )
        };
        Citation {
            table: "workflow_tasks",
            id: id.unwrap_or(&task.id).clone(),
            shows,
            at: None,
            anchor: Some(Self::anchor(task)),
        }
    }

    /// Where the page shows a task.
    pub(super) fn anchor(task: &Task) -> String {
        anchor("task", &task.id)
    }

    /// A moment of an activity's row that has passed.
    pub(super) fn cite_overdue(self, activity: &Activity, column: &str, at: DateTime<Utc>) -> Self {
        self.cite(Citation {
            table: "activity_executions",
            id: activity.id.clone(),
            shows: column.to_owned(),
            at: Some(at),
            anchor: Some(anchor("activity", &activity.id)),
        })
    }

    pub(super) fn cite_wait(self, wait: &Wait) -> Self {
        let left = wait.is_open() && self.p.cx.snapshot.run.status.is_terminal();
        let status = if left { "left open" } else { wait.status };
        let shows = match wait.history_authority {
            Some(authority) => format!("{} wait, {status}, by {authority}", wait.kind),
            None => format!("{} wait, {status}", wait.kind),
        };
        self.cite(Citation {
            table: "workflow_run_waits",
            id: wait.id.clone(),
            shows,
            at: None,
            anchor: Some(anchor("wait", &wait.id)),
        })
    }

    pub(super) fn say(
        self,
        code: &'static str,
        sentence: impl Into<String>,
        next_step: &str,
        actor: Actor,
    ) -> Diagnosis {
        Diagnosis {
            code,
            sentence: capitalised(&sentence.into()),
            next_step: next_step.to_owned(),
            actor,
            since: self.since,
            // What was to end it and did not is no end.
            until: self.until.filter(|until| *until > self.p.cx.now),
            evidence: self.evidence,
            asks_repair: false,
        }
    }
}

/// A sentence may begin with the name of a kind.
pub(super) fn capitalised(sentence: &str) -> String {
    let mut chars = sentence.chars();
    chars.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(chars).collect()
    })
}
