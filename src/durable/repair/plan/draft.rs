//! A plan in the making: the rows to write, and the run as it will be when they are written.

use super::By;
use crate::durable::{
    engine_config::EngineConfig,
    projection::Projected,
    repair::{
        change::{Guard, RowChange},
        request::NewIds,
    },
    store::snapshot::RunSnapshot,
    stored::{Cell, TaskRow},
};

#[derive(Debug)]
pub(super) struct Draft<'a> {
    pub by: By,
    pub p: &'a Projected<'a>,
    pub ids: &'a NewIds,
    pub after: RunSnapshot,
    pub changes: Vec<RowChange>,
}

impl<'a> Draft<'a> {
    pub fn new(p: &'a Projected<'a>, by: By, ids: &'a NewIds) -> Self {
        Self {
            by,
            p,
            ids,
            after: p.cx.snapshot.clone(),
            changes: Vec::new(),
        }
    }

    pub fn insert(&mut self, table: &'static str, id: &str, cells: Vec<(&'static str, Cell)>) {
        self.changes.push(RowChange::insert(table, id, cells));
    }

    pub fn update(
        &mut self,
        table: &'static str,
        id: &str,
        before: Vec<(&'static str, Cell)>,
        after: Vec<(&'static str, Cell)>,
        guards: Vec<Guard>,
    ) {
        self.changes
            .extend(RowChange::update(table, id, before, after, guards));
    }

    /// The task as workers may take it. Where they poll, that is all it takes, and is when it was
    /// offered. Where they listen to a queue, only the engine publishes it: an error it met doing
    /// so stands until it succeeds.
    pub fn offered(&self, task: &TaskRow) -> TaskRow {
        let now = Some(self.p.cx.now);
        let mut offered = TaskRow {
            repair_available_at: None,
            updated_at: now,
            ..task.clone()
        };
        let polled = is_polled(self.p.cx.config);
        // The engine's patience counts from here. An operator asks once, and would otherwise find
        // the run in need of the same repair at once; a pass that came again and again before
        // that patience ends would keep the engine from ever publishing the task.
        if polled || self.by == By::Operator {
            offered.last_dispatch_attempt_at = now;
            offered.last_dispatched_at = now;
        }
        if polled {
            offered.last_dispatch_error = None;
        }
        offered
    }
}

/// Whether workers fetch their tasks themselves.
pub(in crate::durable::repair) fn is_polled(config: &EngineConfig) -> bool {
    config.text("task_dispatch_mode") == Some("poll")
}
