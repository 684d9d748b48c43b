//! What may be seen of runs: their rows as stored, or what a policy leaves of them.
//!
//! Pages and their JSON read runs through here and nowhere else. What is hidden is hidden in the
//! rows, before anything is made of them. Repairs read for themselves: they must know what they
//! write.

use super::{
    history::{self, EventFilter, EventWindow, Place},
    lot::Events,
    past::{History, HistoryCache},
    run_rows::{Extent, RunRows},
    snapshot::{RunSnapshot, TimelineCache},
};
use crate::{
    db::{DbError, Snapshot},
    durable::{
        export::{Policy, redaction::Kind},
        projection::budget,
        stored::{Cell, FailureRow, HistoryEvent, Notice, Notices, Problem, Stored},
    },
};

/// Reads runs for those who may see as much as its policy leaves.
#[derive(Clone, Debug, Default)]
pub struct Reader {
    policy: Option<Policy>,
    /// Histories that were read already, hidden as they are shown.
    past: HistoryCache,
}

impl Reader {
    /// Under a policy that is not for pages too, everything is seen.
    pub fn under(policy: Option<&Policy>) -> Self {
        Self {
            policy: policy.filter(|policy| policy.pages).cloned(),
            past: HistoryCache::default(),
        }
    }

    /// The name of the policy in force.
    pub fn policy(&self) -> Option<&str> {
        self.policy.as_ref().map(|policy| policy.name.as_str())
    }

    /// One run; none when there is no such run.
    pub async fn run(
        &self,
        snapshot: &mut Snapshot,
        run_id: &str,
        timeline: TimelineCache,
    ) -> Result<Option<RunSnapshot>, DbError> {
        let past = Some(&self.past);
        let fetched = RunRows::fetch(snapshot, run_id, timeline, Extent::Whole, past).await?;
        let Some((rows, version)) = fetched else {
            return Ok(None);
        };
        let is_known = matches!(rows.events, Events::Known(_));
        let mut run = RunSnapshot::of(rows, timeline)?;
        if let Some(policy) = &self.policy {
            hide(policy, &mut run, is_known);
        }
        self.past.keep(version, run.events.clone()).await;
        Ok(Some(run))
    }

    /// A window of a run's events.
    pub async fn window(
        &self,
        snapshot: &mut Snapshot,
        run_id: &str,
        filter: &EventFilter,
        place: Place,
        size: usize,
    ) -> Result<EventWindow, DbError> {
        let policy = self.policy.as_ref();
        history::window(snapshot, run_id, filter, place, size, policy).await
    }

    /// One event by its sequence, whole.
    pub async fn event(
        &self,
        snapshot: &mut Snapshot,
        run_id: &str,
        sequence: i64,
    ) -> Result<Option<HistoryEvent>, DbError> {
        let event = history::event(snapshot, run_id, sequence).await?;
        Ok(event.map(|event| match &self.policy {
            Some(policy) => policy.shown_event(event),
            None => event,
        }))
    }

    /// Rows that were read for a list.
    pub fn rows<T: Stored>(&self, rows: &mut [T]) {
        if let Some(policy) = &self.policy {
            policy.hide_rows(rows);
        }
    }

    pub fn failures<'f>(&self, failures: impl IntoIterator<Item = &'f mut FailureRow>) {
        if let Some(policy) = &self.policy {
            failures
                .into_iter()
                .for_each(|failure| policy.hide_failure(failure));
        }
    }

    pub fn notices(&self, notices: &mut Notices) {
        if let Some(policy) = &self.policy {
            policy.hide_notices(notices);
        }
    }

    /// A value that is about to be written; `kind` is of its row.
    pub fn cell(&self, table: &str, column: &str, kind: &Kind<'_>, cell: &mut Cell) {
        if let Some(policy) = &self.policy {
            policy.hide_cell(table, column, kind, cell);
        }
    }
}

/// Hides in every row of a run; in its events too, unless that was done when they were read.
fn hide(policy: &Policy, run: &mut RunSnapshot, is_known: bool) {
    if !is_known {
        run.events = hidden(policy, &run.events);
    }
    policy.hide_rows(std::slice::from_mut(&mut run.run));
    policy.hide_rows(run.summary.as_mut_slice());
    policy.hide_rows(&mut run.tasks);
    policy.hide_rows(&mut run.executions);
    policy.hide_rows(&mut run.attempts);
    policy.hide_rows(&mut run.timers);
    policy.hide_rows(&mut run.commands);
    policy.hide_rows(&mut run.signals);
    policy.hide_rows(&mut run.updates);
    policy.hide_rows(&mut run.failures);
    policy.hide_rows(&mut run.links);
    policy.hide_rows(&mut run.messages);
    policy.hide_rows(&mut run.heartbeats);
    for other in &mut run.related {
        policy.hide_rows(std::slice::from_mut(&mut other.run));
    }
    // The engine's own projections are only ever compared with ours: `sources` knows what of them
    // may be hidden in ours.
    policy.hide_notices(&mut run.notices);
    run.hidden_by = Some(policy.name.clone());
}

fn hidden(policy: &Policy, history: &History) -> History {
    let mut notices = history.notices().clone();
    policy.hide_notices(&mut notices);
    let hide = |event: &HistoryEvent| {
        if !event.payload_is_json() && policy.touches_event(event.event_type.as_str()) {
            // Once hidden it no longer shows.
            notices.note(Notice {
                table: HistoryEvent::TABLE,
                id: event.id.clone(),
                column: "payload",
                problem: Problem::NotJson,
                raw: None,
            });
        }
        policy.told_event(event.clone())
    };
    let events = history.iter().map(hide).collect();
    History::hidden(events, notices, budget::size(history))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::durable::{
        export::redaction::{held_columns, held_tables},
        stored::{
            CommandRow, EventType, ExecutionRow, FailureRecord, MessageRow, RunRow, RunSummary,
            SignalRow, TaskRow, UpdateRow,
        },
    };

    const SECRET: &str = "S-secret";

    /// A row with the secret in every column that a slot names.
    fn full<T: Stored + Default>() -> T {
        let mut row = T::default();
        for name in held_columns(T::TABLE) {
            if let Some(column) = row.column(name) {
                column.set(json!(SECRET));
            }
        }
        row
    }

    /// A new slot, or a table that a slot is newly held by, must be hidden here too.
    #[test]
    fn every_row_of_a_run_is_hidden() {
        let policy: Policy = toml::from_str("policy = 'p'\nrules = [{category = '*'}]").unwrap();
        let event = HistoryEvent {
            event_type: EventType::WorkflowStarted,
            payload: Some(json!({"arguments": SECRET, "free": SECRET}).to_string()),
            ..HistoryEvent::default()
        };
        let broken = HistoryEvent {
            payload: Some(format!("{{\"cut {SECRET}")),
            ..event.clone()
        };
        let mut notices = Notices::default();
        for table in held_tables() {
            for column in held_columns(table) {
                notices.note(Notice {
                    table,
                    id: String::new(),
                    column,
                    problem: Problem::NotText,
                    raw: Some(SECRET.into()),
                });
            }
        }
        let mut run = RunSnapshot {
            run: full::<RunRow>(),
            summary: Some(full::<RunSummary>()),
            tasks: vec![full::<TaskRow>()],
            executions: vec![full::<ExecutionRow>()],
            commands: vec![full::<CommandRow>()],
            signals: vec![full::<SignalRow>()],
            updates: vec![full::<UpdateRow>()],
            failures: vec![full::<FailureRecord>()],
            messages: vec![full::<MessageRow>()],
            events: History::new(vec![event, broken], notices.clone()),
            notices,
            ..RunSnapshot::default()
        };
        let filled = [
            RunRow::TABLE,
            RunSummary::TABLE,
            TaskRow::TABLE,
            ExecutionRow::TABLE,
            CommandRow::TABLE,
            SignalRow::TABLE,
            UpdateRow::TABLE,
            FailureRecord::TABLE,
            MessageRow::TABLE,
            HistoryEvent::TABLE,
        ];
        for table in held_tables() {
            assert!(filled.contains(&table), "{table} is not looked at");
        }
        let size = budget::size(&run.events);
        assert!(format!("{run:?}").matches(SECRET).count() > 40);

        hide(&policy, &mut run, false);
        let dump = format!("{run:?}");
        assert!(!dump.contains(SECRET), "{dump}");
        assert_eq!(run.events.stored_size(), Some(size));
        assert_eq!(run.hidden_by.as_deref(), Some("p"));
        let noted = run.events.notices().list();
        assert!(
            noted
                .iter()
                .any(|notice| notice.problem == Problem::NotJson && notice.raw.is_none())
        );
    }
}
