//! The runs around a run, found by id and by instance without looking at each.

use std::collections::HashMap;

use crate::durable::store::snapshot::{RelatedRun, RunSnapshot};

/// An index over `snapshot.related`, made once per projection.
#[derive(Debug)]
pub struct Related<'a> {
    by_id: HashMap<&'a str, &'a RelatedRun>,
    by_instance: HashMap<&'a str, Vec<&'a RelatedRun>>,
}

impl<'a> Related<'a> {
    pub fn of(snapshot: &'a RunSnapshot) -> Self {
        Self::over(&snapshot.related)
    }

    /// `runs` by instance and run number.
    pub fn over(runs: &'a [RelatedRun]) -> Self {
        let mut by_instance: HashMap<&str, Vec<&RelatedRun>> = HashMap::new();
        for other in runs {
            by_instance
                .entry(&other.run.workflow_instance_id)
                .or_default()
                .push(other);
        }
        Self {
            by_id: runs
                .iter()
                .map(|other| (other.run.id.as_str(), other))
                .collect(),
            by_instance,
        }
    }

    pub fn run(&self, id: &str) -> Option<&'a RelatedRun> {
        self.by_id.get(id).copied()
    }

    /// The runs of one instance, by run number.
    pub fn of_instance(&self, instance_id: &str) -> &[&'a RelatedRun] {
        self.by_instance.get(instance_id).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::durable::stored::{RunRow, RunStatus};

    /// A waiting run, for tests to vary.
    pub fn run(id: &str, instance: &str, number: i64, continued_from: Option<&str>) -> RelatedRun {
        RelatedRun {
            run: RunRow {
                id: id.into(),
                workflow_instance_id: instance.into(),
                run_number: number,
                workflow_class: "App\\OrderFulfil".into(),
                workflow_type: "order.fulfil".into(),
                namespace: None,
                business_key: None,
                visibility_labels: None,
                status: RunStatus::Waiting,
                closed_reason: None,
                compatibility: None,
                payload_codec: None,
                arguments: None,
                output: None,
                output_payload_codec: None,
                connection: None,
                queue: None,
                last_history_sequence: 2,
                last_command_sequence: 1,
                message_cursor_position: 0,
                run_timeout_seconds: None,
                execution_deadline_at: None,
                run_deadline_at: None,
                started_at: None,
                closed_at: None,
                archived_at: None,
                archive_command_id: None,
                archive_reason: None,
                last_progress_at: None,
                import_source: None,
                import_id: None,
                import_dedupe_key: None,
                import_contract_version: None,
                imported_at: None,
                sticky_worker_id: None,
                sticky_until: None,
                priority: None,
                fairness_key: None,
                fairness_weight: None,
                created_at: None,
                updated_at: None,
            },
            status_bucket: None,
            closed_reason: None,
            summary_started_at: None,
            summary_closed_at: None,
            summary_liveness: None,
            continued_from_run_id: continued_from.map(Into::into),
            terminal_event: None,
        }
    }
}
