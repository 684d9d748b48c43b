//! What health stands on before any number: that the tables and columns it is counted in are
//! there. An absent one counts as empty everywhere, and of nothing nothing is ever wrong.

use serde_json::{Value, json};

use super::health::{Category, Check, Status};
use crate::durable::store::schema::SchemaReport;

/// Without any of these the engine itself says that its tables are not there.
pub const REQUIRED: [&str; 18] = [
    "workflow_instances",
    "workflow_runs",
    "workflow_history_events",
    "workflow_tasks",
    "workflow_commands",
    "workflow_links",
    "activity_executions",
    "activity_attempts",
    "workflow_run_timers",
    "workflow_failures",
    "workflow_run_summaries",
    "workflow_run_waits",
    "workflow_run_timeline_entries",
    "workflow_run_timer_entries",
    "workflow_run_lineage_entries",
    "workflow_signal_records",
    "workflow_updates",
    "workflow_child_projection_repairs",
];

/// Checks that would find nothing wrong without a column, and which.
const RESTS_ON: [(&str, &str, &[&str]); 6] = [
    (
        "task_transport",
        "workflow_tasks",
        &[
            "status",
            "available_at",
            "created_at",
            "lease_expires_at",
            "last_dispatch_attempt_at",
            "last_dispatch_error",
            "last_dispatched_at",
            "last_claim_failed_at",
            "last_claim_error",
        ],
    ),
    (
        "activity_path",
        "activity_executions",
        &[
            "status",
            "schedule_deadline_at",
            "close_deadline_at",
            "schedule_to_close_deadline_at",
            "heartbeat_deadline_at",
        ],
    ),
    (
        "routing_health",
        "workflow_run_summaries",
        &["liveness_state"],
    ),
    (
        "routing_health",
        "workflow_tasks",
        &[
            "status",
            "available_at",
            "created_at",
            "last_dispatched_at",
            "last_claim_failed_at",
            "last_claim_error",
        ],
    ),
    (
        "durable_resume_paths",
        "workflow_run_summaries",
        &["liveness_state"],
    ),
    (
        "scheduler_role",
        "workflow_schedules",
        &["status", "next_fire_at"],
    ),
];

/// What of that a database lacks; nothing by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lacks {
    prefix: String,
    required: Vec<&'static str>,
    schedules: bool,
    /// A check, and what it cannot be answered without.
    open: Vec<(&'static str, String)>,
}

impl Lacks {
    pub fn of(report: &SchemaReport) -> Self {
        let required = REQUIRED.into_iter();
        Self {
            prefix: report.prefix.clone(),
            required: required.filter(|table| !report.has_table(table)).collect(),
            schedules: !report.has_table("workflow_schedules"),
            open: RESTS_ON
                .into_iter()
                .flat_map(|(check, table, columns)| {
                    let what = missing(report, table, columns).into_iter();
                    what.map(move |what| (check, what))
                })
                .collect(),
        }
    }

    /// Tables without which no number is told.
    pub fn required(&self) -> &[&'static str] {
        &self.required
    }

    /// Whether nobody can know which schedules are late.
    pub fn schedules(&self) -> bool {
        self.schedules
    }

    /// Whether nothing wrong being found proves nothing.
    pub fn leaves_open(&self, check: &str) -> bool {
        self.open.iter().any(|(open, _)| *open == check)
    }

    /// The checks that cannot be answered, and what they lack, each once.
    pub fn open(&self) -> (Vec<&'static str>, Vec<&str>) {
        let mut checks: Vec<_> = self.open.iter().map(|(check, _)| *check).collect();
        checks.dedup();
        let mut what: Vec<_> = self.open.iter().map(|(_, what)| what.as_str()).collect();
        what.sort_unstable();
        what.dedup();
        (checks, what)
    }

    /// The only check there is without a required table.
    pub fn engine_source(&self) -> Option<Check> {
        (!self.required.is_empty()).then(|| Check {
            name: "engine_source",
            status: Status::Error,
            category: Category::Correctness,
            message: self.message().into(),
            data: json!({ "missing_tables": self.required }),
        })
    }

    pub fn message(&self) -> String {
        if self.required.is_empty() {
            return "Plimsoll reads the v2 tables.".to_owned();
        }
        format!(
            "The database lacks {}. Let the engine's migrations finish, then restart Plimsoll.",
            self.required.join(", ")
        )
    }

    /// Every required table, as the engine lists them.
    pub fn required_tables(&self) -> Vec<Value> {
        let tables = REQUIRED.into_iter();
        tables
            .map(|table| {
                json!({
                    "table": format!("{}{table}", self.prefix),
                    "available": !self.required.contains(&table),
                })
            })
            .collect()
    }

    /// Those that are not there.
    pub fn issues(&self) -> Vec<Value> {
        let tables = self.required.iter();
        tables
            .map(|table| {
                let table = format!("{}{table}", self.prefix);
                json!({ "table": table, "reason": "missing_table" })
            })
            .collect()
    }
}

/// The table where it is missing whole, else its columns that are.
fn missing(report: &SchemaReport, table: &'static str, columns: &[&'static str]) -> Vec<String> {
    if !report.has_table(table) {
        return vec![table.to_owned()];
    }
    let columns = columns.iter();
    columns
        .filter(|column| !report.has_column(table, column))
        .map(|column| format!("{table}.{column}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::durable::store::schema::{Verdict, tables};

    fn report(tables: &[&'static str], columns: &[(&'static str, &'static str)]) -> SchemaReport {
        SchemaReport {
            verdict: Verdict::Older,
            prefix: "app_".to_owned(),
            missing_tables: tables.to_vec(),
            missing_columns: columns.to_vec(),
            extra_columns: Vec::new(),
            other_prefixes: Vec::new(),
            first_version: false,
        }
    }

    #[test]
    fn every_table_and_column_named_here_is_one_of_the_engines() {
        let has = |name: &str| tables().iter().find(|table| table.name == name);
        assert!(REQUIRED.iter().all(|table| has(table).is_some()));
        for (check, table, columns) in RESTS_ON {
            let table = has(table).unwrap();
            for column in columns {
                assert!(table.column(column).is_some(), "{check}: {column}");
            }
        }
    }

    #[test]
    fn what_is_missing_leaves_open_what_rests_on_it() {
        for (tables, columns, required, open) in [
            (&[][..], &[][..], 0, &[][..]),
            (&["workflow_messages"], &[], 0, &[]),
            (
                &["workflow_tasks"],
                &[],
                1,
                &["task_transport", "routing_health"],
            ),
            (&["workflow_schedules"], &[], 0, &["scheduler_role"]),
            (
                &[],
                &[("workflow_run_summaries", "visibility_labels")],
                0,
                &[],
            ),
            (
                &[],
                &[("workflow_tasks", "lease_expires_at")],
                0,
                &["task_transport"],
            ),
        ] {
            let lacks = Lacks::of(&report(tables, columns));
            assert_eq!(lacks.required().len(), required, "{tables:?}");
            assert_eq!(lacks.open().0, open, "{tables:?} {columns:?}");
            assert_eq!(lacks.engine_source().is_some(), required > 0);
        }
    }

    #[test]
    fn a_missing_table_is_named_as_it_would_be_called() {
        let lacks = Lacks::of(&report(&["workflow_updates"], &[]));
        assert_eq!(
            lacks.message(),
            "The database lacks workflow_updates. Let the engine's migrations finish, then restart \
             Plimsoll."
        );
        let told = json!({ "table": "app_workflow_updates", "reason": "missing_table" });
        assert_eq!(lacks.issues(), [told]);
        let available = |table: &&Value| table["available"] == true;
        assert_eq!(lacks.required_tables().iter().filter(available).count(), 17);
    }
}
