//! A plan in the making: the rows to write, and the run as it will be when they are written.

use crate::durable::{
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
    pub p: &'a Projected<'a>,
    pub ids: &'a NewIds,
    pub after: RunSnapshot,
    pub changes: Vec<RowChange>,
}

impl<'a> Draft<'a> {
    pub fn new(p: &'a Projected<'a>, ids: &'a NewIds) -> Self {
        Self {
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

    /// The task as workers may take it. Where they poll, that is all it takes; where they listen
    /// to a queue, the engine's pass publishes it when its patience, which counts from now, ends.
    pub fn offered(&self, task: &TaskRow) -> TaskRow {
        TaskRow {
            last_dispatch_attempt_at: Some(self.p.cx.now),
            last_dispatched_at: Some(self.p.cx.now),
            last_dispatch_error: None,
            repair_available_at: None,
            updated_at: Some(self.p.cx.now),
            ..task.clone()
        }
    }
}
