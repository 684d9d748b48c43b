//! A plan in the making: the rows to write, and the run as it will be when they are written.

use super::By;
use crate::durable::{
    engine_config::EngineConfig,
    projection::Projected,
    repair::{
        change::{Guard, RowChange},
        request::NewIds,
    },
    store::{past::History, snapshot::RunSnapshot},
    stored::{
        AttemptRow, Cell, CommandRow, ExecutionRow, HistoryEvent, RunRow, TaskRow, TimerRow,
        UpdateRow,
    },
};

#[derive(Debug)]
pub(super) struct Draft<'a> {
    pub by: By,
    pub p: &'a Projected<'a>,
    pub ids: &'a NewIds,
    pub written: Written,
    pub changes: Vec<RowChange>,
}

/// Rows as they will stand, new ones and others.
#[derive(Debug, Default)]
pub(super) struct Written {
    pub run: Option<RunRow>,
    pub event: Option<HistoryEvent>,
    pub commands: Vec<CommandRow>,
    pub tasks: Vec<TaskRow>,
    pub executions: Vec<ExecutionRow>,
    pub attempts: Vec<AttemptRow>,
    pub timers: Vec<TimerRow>,
    pub updates: Vec<UpdateRow>,
}

impl Written {
    /// The run when they are written. Whoever only asks whether they would be spares the copy.
    pub fn onto(self, snapshot: &RunSnapshot) -> RunSnapshot {
        let mut after = snapshot.clone();
        after.run = self.run.unwrap_or(after.run);
        if let Some(event) = self.event {
            let mut events = snapshot.events.to_vec();
            events.push(event);
            after.events = History::new(events, snapshot.events.notices().clone());
        }
        put(&mut after.commands, self.commands, |row| &row.id);
        put(&mut after.tasks, self.tasks, |row| &row.id);
        put(&mut after.executions, self.executions, |row| &row.id);
        put(&mut after.attempts, self.attempts, |row| &row.id);
        put(&mut after.timers, self.timers, |row| &row.id);
        put(&mut after.updates, self.updates, |row| &row.id);
        after
    }
}

/// Each in the place of the row it was, or behind all of them.
fn put<T>(rows: &mut Vec<T>, written: Vec<T>, id: fn(&T) -> &String) {
    for new in written {
        match rows.iter_mut().find(|row| id(row) == id(&new)) {
            Some(row) => *row = new,
            None => rows.push(new),
        }
    }
}

impl<'a> Draft<'a> {
    pub fn new(p: &'a Projected<'a>, by: By, ids: &'a NewIds) -> Self {
        Self {
            by,
            p,
            ids,
            written: Written::default(),
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
