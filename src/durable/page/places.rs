//! What has a place of its own on the page: a link leads there, and nowhere else.

use std::{cell::OnceCell, collections::HashSet};

use crate::{
    durable::projection::Projected,
    run::fact::{RowRef, anchor},
};

/// Rows that other rows name, by what their anchors begin with; gathered when first asked for.
#[derive(Debug)]
pub struct Places<'p> {
    p: &'p Projected<'p>,
    activities: OnceCell<HashSet<&'p str>>,
    children: OnceCell<HashSet<&'p str>>,
    commands: OnceCell<HashSet<&'p str>>,
    failures: OnceCell<HashSet<&'p str>>,
    tasks: OnceCell<HashSet<&'p str>>,
}

impl<'p> Places<'p> {
    pub fn of(p: &'p Projected<'p>) -> Self {
        Self {
            p,
            activities: OnceCell::new(),
            children: OnceCell::new(),
            commands: OnceCell::new(),
            failures: OnceCell::new(),
            tasks: OnceCell::new(),
        }
    }

    pub fn activity(&self, id: &str, text: String) -> RowRef {
        let all = || self.p.activities.iter().map(|one| one.id.as_str());
        let is_there = self.activities.get_or_init(|| all().collect()).contains(id);
        row("activity", id, is_there, text)
    }

    pub fn command(&self, id: &str, text: String) -> RowRef {
        let all = || self.p.commands.iter().map(|one| one.id.as_str());
        let is_there = self.commands.get_or_init(|| all().collect()).contains(id);
        row("command", id, is_there, text)
    }

    pub fn failure(&self, id: &str, text: String) -> RowRef {
        let all = || self.p.failures.iter().map(|one| one.id.as_str());
        let is_there = self.failures.get_or_init(|| all().collect()).contains(id);
        row("failure", id, is_there, text)
    }

    pub fn task(&self, id: &str, text: String) -> RowRef {
        let all = || self.p.tasks.iter().map(|one| one.id.as_str());
        let is_there = self.tasks.get_or_init(|| all().collect()).contains(id);
        row("task", id, is_there, text)
    }

    /// A section that is there whatever the run holds.
    pub fn always(section: &'static str, text: String) -> RowRef {
        RowRef {
            anchor: Some(section.to_owned()),
            text,
        }
    }

    pub fn child(&self, run_id: &str, text: String) -> RowRef {
        let all = || self.p.children.iter();
        let ids = || all().filter_map(|one| one.child_workflow_run_id.as_deref());
        let known = self.children.get_or_init(|| ids().collect());
        row("child", run_id, known.contains(run_id), text)
    }

    pub fn children(&self, text: String) -> RowRef {
        section("children", !self.p.children.is_empty(), text)
    }

    pub fn history(&self, text: String) -> RowRef {
        section("history", !self.p.cx.snapshot.events.is_empty(), text)
    }

    pub fn signals(&self, text: String) -> RowRef {
        section("signals", !self.p.signals.is_empty(), text)
    }
}

fn row(kind: &str, id: &str, is_there: bool, text: String) -> RowRef {
    RowRef {
        anchor: is_there.then(|| anchor(kind, id)),
        text,
    }
}

fn section(id: &str, is_there: bool, text: String) -> RowRef {
    RowRef {
        anchor: is_there.then(|| id.to_owned()),
        text,
    }
}
