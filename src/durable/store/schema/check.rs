//! The start-up look at the catalog: is this the engine's database, and which engine's?

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use super::{Table, tables};
use crate::db::{Db, DbError};

/// Without these there is no run to show.
const CORE: [&str; 3] = [
    "workflow_instances",
    "workflow_runs",
    "workflow_history_events",
];

/// Tables of the engine's first version, which shares none with the second.
const V1: [&str; 3] = ["workflows", "workflow_logs", "workflow_exceptions"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Everything we know is here, and nothing we do not.
    Current,
    /// Something is missing: an older engine.
    Older,
    /// Something is here that we do not know: a newer engine.
    Newer,
    /// Both: a branch or a half-finished upgrade.
    Different,
    /// Nothing to show. The only verdict that stops the start.
    NotAnEngineDatabase,
}

/// What the database has, held against what this release knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaReport {
    pub verdict: Verdict,
    /// The prefix that was asked for.
    pub prefix: String,
    pub missing_tables: Vec<&'static str>,
    /// Table and column, for tables that are there.
    pub missing_columns: Vec<(&'static str, &'static str)>,
    pub extra_columns: Vec<(&'static str, String)>,
    /// Prefixes under which the engine's tables are here, other than the one asked for.
    pub other_prefixes: Vec<String>,
    /// Tables of the engine's first version are here.
    pub first_version: bool,
}

impl SchemaReport {
    pub fn is_fatal(&self) -> bool {
        self.verdict == Verdict::NotAnEngineDatabase
    }

    pub fn has_table(&self, table: &str) -> bool {
        !self.missing_tables.contains(&table)
    }

    pub fn has_column(&self, table: &str, column: &str) -> bool {
        self.has_table(table) && !self.missing_columns.contains(&(table, column))
    }

    /// One sentence or two per finding, for the operator; empty when all is as it should be.
    pub fn sentences(&self) -> Vec<String> {
        if self.is_fatal() {
            return vec![self.why_not_an_engine()];
        }
        let mut out = Vec::new();
        if !self.missing_tables.is_empty() {
            out.push(format!(
                "The database lacks {}: an older engine wrote it; what they would hold is shown \
                 as empty.",
                self.missing_tables.join(", ")
            ));
        }
        for (table, columns) in by_table(self.missing_columns.iter().copied()) {
            out.push(format!(
                "{table} lacks {}: an older engine wrote this database; what depends on it is \
                 left out.",
                columns.join(", ")
            ));
        }
        let extra = self.extra_columns.iter().map(|(t, c)| (*t, c.as_str()));
        for (table, columns) in by_table(extra) {
            out.push(format!(
                "{table} has {}, unknown to this release: a newer engine wrote this database; \
                 what they say is not shown.",
                columns.join(", ")
            ));
        }
        out
    }

    fn why_not_an_engine(&self) -> String {
        let what = if self.missing_tables.len() == tables().len() {
            "none of its tables are here."
        } else {
            return format!(
                "This is not a whole Durable Workflow v2 database: it lacks {}. Let the engine's \
                 migrations finish, or check --database-url and --table-prefix.",
                CORE.into_iter()
                    .filter(|table| !self.has_table(table))
                    .collect::<Vec<_>>()
                    .join(", ")
            );
        };
        let advice = if let Some(prefix) = self.other_prefixes.first() {
            format!(
                "They are here with the prefix {prefix:?}, though: set --table-prefix {prefix:?}."
            )
        } else if self.first_version {
            "It holds tables of the engine's first version, which this dashboard does not read."
                .to_owned()
        } else if self.prefix.is_empty() {
            "Check the database name in --database-url, and --table-prefix if the application \
             uses one."
                .to_owned()
        } else {
            "Check the database name in --database-url and the prefix in --table-prefix.".to_owned()
        };
        format!("This is not a Durable Workflow v2 database: {what} {advice}")
    }
}

impl fmt::Display for SchemaReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.verdict {
            Verdict::Current => f.write_str("The database has the tables this release knows."),
            _ => f.write_str(&self.sentences().join("\n")),
        }
    }
}

fn by_table<'a>(
    pairs: impl Iterator<Item = (&'static str, &'a str)>,
) -> BTreeMap<&'static str, Vec<&'a str>> {
    let mut out: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (table, column) in pairs {
        out.entry(table).or_default().push(column);
    }
    out
}

/// Reads the catalog once and says what is missing.
pub async fn check(db: &Db) -> Result<SchemaReport, DbError> {
    let mut q = db.statement();
    q.push(db.dialect().pick(
        "select m.name as table_name, c.name as column_name \
         from sqlite_master m join pragma_table_info(m.name) c where m.type in ('table', 'view')",
        "select cast(table_name as text) as table_name, cast(column_name as text) as column_name \
         from information_schema.columns where table_schema = any (current_schemas(false))",
        "select table_name as table_name, column_name as column_name \
         from information_schema.columns where table_schema = database()",
    ));
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for mut row in db.fetch(q).await? {
        let table = row.text("table_name")?;
        let column = row.text("column_name")?;
        found.entry(table).or_default().insert(column);
    }
    Ok(compare(tables(), &found, db.prefix()))
}

fn compare(
    expected: &[Table],
    found: &BTreeMap<String, BTreeSet<String>>,
    prefix: &str,
) -> SchemaReport {
    let mut report = SchemaReport {
        verdict: Verdict::Current,
        prefix: prefix.to_owned(),
        missing_tables: Vec::new(),
        missing_columns: Vec::new(),
        extra_columns: Vec::new(),
        other_prefixes: Vec::new(),
        first_version: V1
            .iter()
            .all(|table| found.contains_key(&format!("{prefix}{table}"))),
    };
    for table in expected {
        let Some(columns) = found.get(&format!("{prefix}{}", table.name)) else {
            report.missing_tables.push(table.name);
            continue;
        };
        for column in &table.columns {
            if !columns.contains(column.name) {
                report.missing_columns.push((table.name, column.name));
            }
        }
        for column in columns {
            if table.column(column).is_none() {
                report.extra_columns.push((table.name, column.clone()));
            }
        }
    }
    report.other_prefixes = found
        .keys()
        .filter_map(|table| table.strip_suffix("workflow_history_events"))
        .filter(|other| *other != prefix && found.contains_key(&format!("{other}workflow_runs")))
        .map(str::to_owned)
        .collect();
    let lacks = !report.missing_tables.is_empty() || !report.missing_columns.is_empty();
    let is_missing = |table| report.missing_tables.contains(table);
    report.verdict = if CORE.iter().any(is_missing) {
        Verdict::NotAnEngineDatabase
    } else {
        match (lacks, !report.extra_columns.is_empty()) {
            (false, false) => Verdict::Current,
            (true, false) => Verdict::Older,
            (false, true) => Verdict::Newer,
            (true, true) => Verdict::Different,
        }
    };
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full(prefix: &str) -> BTreeMap<String, BTreeSet<String>> {
        let columns = |t: &Table| t.columns.iter().map(|c| c.name.to_owned()).collect();
        tables()
            .iter()
            .map(|t| (format!("{prefix}{}", t.name), columns(t)))
            .collect()
    }

    #[test]
    fn the_right_prefix_is_suggested() {
        let report = compare(tables(), &full("app_"), "");
        assert!(report.is_fatal());
        assert_eq!(
            report.to_string(),
            "This is not a Durable Workflow v2 database: none of its tables are here. They are \
             here with the prefix \"app_\", though: set --table-prefix \"app_\"."
        );
        assert_eq!(
            compare(tables(), &full("app_"), "app_").verdict,
            Verdict::Current
        );
    }

    #[test]
    fn an_older_and_a_newer_engine_are_told_apart() {
        let mut found = full("");
        let summaries = found.get_mut("workflow_run_summaries").unwrap();
        summaries.remove("history_budget_pressure");
        summaries.remove("history_fan_out");
        let report = compare(tables(), &found, "");
        assert_eq!(report.verdict, Verdict::Older);
        assert_eq!(
            report.to_string(),
            "workflow_run_summaries lacks history_fan_out, history_budget_pressure: an older \
             engine wrote this database; what depends on it is left out."
        );
        assert!(!report.has_column("workflow_run_summaries", "history_fan_out"));
        assert!(report.has_column("workflow_run_summaries", "id"));

        let mut found = full("");
        found
            .get_mut("workflow_tasks")
            .unwrap()
            .insert("shard".into());
        let report = compare(tables(), &found, "");
        assert_eq!(report.verdict, Verdict::Newer);
        assert!(!report.is_fatal());
    }

    #[test]
    fn the_first_version_is_named() {
        let found = V1
            .iter()
            .map(|t| ((*t).to_owned(), BTreeSet::from(["id".to_owned()])))
            .collect();
        let report = compare(tables(), &found, "");
        assert!(report.is_fatal() && report.first_version);
        assert!(report.to_string().contains("first version"));
    }
}
