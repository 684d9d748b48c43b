//! Which tasks carry a command, a signal or an update, and which of them is at work now.

use std::collections::{HashMap, HashSet};

use serde::Serialize;

use super::{Context, commands::Command, signals::Signal, tasks::Task, updates::Update};
use crate::durable::stored::{HistoryEvent, payloads::command::Named};

/// The task keys of a command, a signal or an update.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TaskLink {
    pub current_task_id: Option<String>,
    pub current_task_status: Option<String>,
    pub task_transport_state: Option<String>,
    /// Tasks that exist or once did, first seen first.
    pub task_ids: Vec<String>,
    pub task_missing: bool,
}

/// A link while it is gathered.
#[derive(Clone, Debug, Default)]
struct Gathered {
    link: TaskLink,
    known: HashSet<String>,
}

impl Gathered {
    fn name(&mut self, task_id: &str) {
        if !self.known.contains(task_id) {
            self.known.insert(task_id.to_owned());
            self.link.task_ids.push(task_id.to_owned());
        }
    }

    fn add(&mut self, task: &Task) {
        if task.synthetic {
            self.link.task_missing = true;
            return;
        }
        self.name(&task.id);
        if task.is_open && self.link.current_task_id.is_none() {
            self.link.current_task_id = Some(task.id.clone());
            self.link.current_task_status = Some(task.status.clone());
            self.link.task_transport_state = Some(task.transport_state.clone());
        }
    }

    fn finish(mut self) -> TaskLink {
        if self.link.task_missing && self.link.task_transport_state.is_none() {
            self.link.task_transport_state = Some("missing".into());
        }
        self.link
    }
}

#[derive(Clone, Debug, Default)]
struct ByKind<T> {
    commands: HashMap<String, T>,
    signals: HashMap<String, T>,
    updates: HashMap<String, T>,
}

impl<T: Default> ByKind<T> {
    fn named(
        &mut self,
        command_id: Option<&str>,
        signal_id: Option<&str>,
        update_id: Option<&str>,
    ) -> impl Iterator<Item = &mut T> {
        [
            command_id.map(|id| self.commands.entry(id.to_owned()).or_default()),
            signal_id.map(|id| self.signals.entry(id.to_owned()).or_default()),
            update_id.map(|id| self.updates.entry(id.to_owned()).or_default()),
        ]
        .into_iter()
        .flatten()
    }
}

/// Links by the id of the command, signal or update.
#[derive(Clone, Debug, Default)]
pub struct TaskLinks(ByKind<TaskLink>);

impl TaskLinks {
    /// Tasks first, in the order of the finished list; then what history says of tasks by then
    /// gone.
    pub fn new(cx: Context<'_>, tasks: &[Task]) -> Self {
        Self::gather(tasks, &cx.snapshot.events)
    }

    fn gather(tasks: &[Task], events: &[HistoryEvent]) -> Self {
        let mut found = ByKind::<Gathered>::default();
        for task in tasks {
            for link in found.named(
                task.workflow_command_id.as_deref(),
                task.workflow_signal_id.as_deref(),
                task.workflow_update_id.as_deref(),
            ) {
                link.add(task);
            }
        }
        for event in events {
            let Some(task_id) = event.workflow_task_id.as_deref() else {
                continue;
            };
            let named = Named::of(event);
            for link in found.named(named.command_id(), named.signal_id(), named.update_id()) {
                link.name(task_id);
            }
        }
        let finish = |links: HashMap<String, Gathered>| {
            links
                .into_iter()
                .map(|(id, link)| (id, link.finish()))
                .collect()
        };
        Self(ByKind {
            commands: finish(found.commands),
            signals: finish(found.signals),
            updates: finish(found.updates),
        })
    }

    /// Writes the links into finished lists.
    pub fn fill(&self, commands: &mut [Command], signals: &mut [Signal], updates: &mut [Update]) {
        for command in commands {
            command.tasks = self.of_command(Some(&command.id));
        }
        for signal in signals {
            signal.tasks = self.of_signal(signal.id.as_deref(), signal.command_id.as_deref());
        }
        for update in updates {
            update.tasks = self.of_update(update.id.as_deref(), update.command_id.as_deref());
        }
    }

    pub fn of_command(&self, id: Option<&str>) -> TaskLink {
        id.and_then(|id| self.0.commands.get(id))
            .cloned()
            .unwrap_or_default()
    }

    /// By its own id, else by its command's.
    pub fn of_signal(&self, id: Option<&str>, command_id: Option<&str>) -> TaskLink {
        id.and_then(|id| self.0.signals.get(id))
            .cloned()
            .unwrap_or_else(|| self.of_command(command_id))
    }

    /// By its own id, else by its command's.
    pub fn of_update(&self, id: Option<&str>, command_id: Option<&str>) -> TaskLink {
        id.and_then(|id| self.0.updates.get(id))
            .cloned()
            .unwrap_or_else(|| self.of_command(command_id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(id: &str, status: &str) -> Task {
        Task {
            id: id.into(),
            synthetic: status == "missing",
            is_open: ["ready", "leased"].contains(&status),
            status: status.into(),
            transport_state: format!("{status}!"),
            workflow_command_id: Some("c".into()),
            workflow_signal_id: Some("s".into()),
            workflow_update_id: None,
            ..Task::default()
        }
    }

    fn event(task_id: &str) -> HistoryEvent {
        HistoryEvent {
            id: "e".into(),
            sequence: 1,
            event_type: "SignalApplied".into(),
            payload: Some(r#"{"signal_id":"s","command":{"id":"kept"}}"#.into()),
            workflow_task_id: Some(task_id.into()),
            workflow_command_id: Some("c".into()),
            recorded_at: None,
            created_at: None,
            is_json: std::sync::OnceLock::new(),
        }
    }

    #[test]
    fn the_first_open_task_is_current_and_a_gap_is_said() {
        for (what, tasks, current, state, ids, missing) in [
            ("nothing", vec![], None, None, vec!["old"], false),
            (
                "ended tasks only",
                vec![task("a", "completed")],
                None,
                None,
                vec!["a", "old"],
                false,
            ),
            (
                "two open",
                vec![task("a", "failed"), task("b", "leased"), task("c", "ready")],
                Some("b"),
                Some("leased!"),
                vec!["a", "b", "c", "old"],
                false,
            ),
            (
                "one should be there",
                vec![task("gap", "missing")],
                None,
                Some("missing"),
                vec!["old"],
                true,
            ),
            (
                "one should, another is",
                vec![task("gap", "missing"), task("a", "ready")],
                Some("a"),
                Some("ready!"),
                vec!["a", "old"],
                true,
            ),
        ] {
            let links = TaskLinks::gather(&tasks, &[event("old"), event("old")]);
            let link = links.of_signal(Some("s"), Some("c"));
            assert_eq!(link.current_task_id.as_deref(), current, "{what}");
            assert_eq!(link.task_transport_state.as_deref(), state, "{what}");
            assert_eq!(link.task_ids, ids, "{what}");
            assert_eq!(link.task_missing, missing, "{what}");
            assert_eq!(links.of_command(Some("c")), link, "{what}");
            assert_eq!(links.of_update(Some("u"), Some("c")), link, "{what}");
            for other in [None, Some("kept")] {
                assert_eq!(links.of_command(other), TaskLink::default(), "{what}");
            }
        }
    }
}
