//! The timeline of a bundle, told a stretch of events at a time.

use std::collections::HashSet;

use serde::Deserialize;
use serde_json::json;

use super::{
    hide,
    history::Told,
    stream::{Export, ExportError},
    timeline_entry::timeline_entry,
};
use crate::durable::{
    canonical,
    projection::{failures::Failure, sources, timeline},
    store::{export as store, past::History, snapshot::RunSnapshot},
    stored::{ExecutionRow, HistoryEvent, TaskRow, TimelineEntry, TimerRow, loose::Text},
};

/// The rows an event names.
#[expect(clippy::struct_field_names, reason = "the engine's names")]
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Named {
    workflow_command_id: Text,
    activity_execution_id: Text,
    timer_id: Text,
}

impl Export<'_> {
    /// The stored timeline between two sequences, while it may be up to date.
    pub async fn stored_timeline(
        &mut self,
        told: &Told,
        (from, to): (i64, i64),
    ) -> Result<Vec<TimelineEntry>, ExportError> {
        if !told.timeline_same {
            return Ok(Vec::new());
        }
        let run_id = &self.head.run.id;
        Ok(store::timeline_between(&mut self.reading, run_id, from, to).await?)
    }

    /// Keeps a stretch of the timeline for its section, compares it with the stored one, and notes
    /// what is redacted of it.
    pub async fn tell(
        &mut self,
        told: &mut Told,
        events: &History,
        span: (i64, i64),
        failures: &[Failure],
    ) -> Result<(), ExportError> {
        let rows = self.rows_named(events).await?;
        let stored = self.stored_timeline(told, span).await?;
        told.timeline_same &= stored.len() == events.len();
        let mut stored = stored.iter();
        let mut text = Vec::new();
        for entry in timeline::timeline(self.cx(&rows), failures, None) {
            text.clear();
            canonical::write(&mut text, &timeline_entry(&entry));
            let is_stored = |stored| sources::same_timeline_entry(stored, &text);
            told.timeline_same = told.timeline_same && stored.next().is_some_and(is_stored);
            if self.options.policy.is_none() {
                told.timeline
                    .push_with((), |out| out.extend_from_slice(&text))?;
                continue;
            }
            let n = told.timeline.len();
            let mut entry = json!(entry);
            let hidden = self.redact_entry(&mut entry, n);
            told.hidden_timeline
                .extend(hidden.into_iter().map(|hidden| (hide::at(n), hidden)));
            told.timeline.push((), &entry)?;
        }
        Ok(())
    }

    /// A stretch of events with the rows they name.
    async fn rows_named(&mut self, events: &History) -> Result<RunSnapshot, ExportError> {
        let named: Vec<Named> = events.iter().map(HistoryEvent::as_payload).collect();
        let commands: HashSet<&str> = events
            .iter()
            .filter_map(|event| event.workflow_command_id.as_deref())
            .chain(
                named
                    .iter()
                    .filter_map(|of| of.workflow_command_id.as_deref()),
            )
            .collect();
        let tasks = events
            .iter()
            .filter_map(|event| event.workflow_task_id.as_deref());
        let tasks = store::rows_of::<TaskRow>(&mut self.reading, "id", tasks).await?;
        let executions = named
            .iter()
            .filter_map(|of| of.activity_execution_id.as_deref());
        let executions =
            store::rows_of::<ExecutionRow>(&mut self.reading, "id", executions).await?;
        let timers = named.iter().filter_map(|of| of.timer_id.as_deref());
        let timers = store::rows_of::<TimerRow>(&mut self.reading, "id", timers).await?;
        let run_id = &self.head.run.id;
        let of_run = |id: &String| id == run_id;
        Ok(RunSnapshot {
            events: events.clone(),
            tasks: tasks
                .into_iter()
                .filter(|row| of_run(&row.workflow_run_id))
                .collect(),
            executions: executions
                .into_iter()
                .filter(|row| of_run(&row.workflow_run_id))
                .collect(),
            timers: timers
                .into_iter()
                .filter(|row| of_run(&row.workflow_run_id))
                .collect(),
            commands: self
                .head
                .commands
                .iter()
                .filter(|row| commands.contains(row.id.as_str()))
                .cloned()
                .collect(),
            ..self.blank.clone()
        })
    }
}
