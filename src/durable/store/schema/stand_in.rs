//! An older engine lacks tables and columns that we know. Such a table is read through a common
//! table expression of its own name that adds what is missing as null, so that no statement
//! needs to know which engine wrote the database.

use std::collections::BTreeMap;

use super::{POSTGRES, SchemaReport, tables};
use crate::db::Dialect;

/// The expressions for whatever `report` says is missing, by table, as `name as (select …)`.
pub fn stand_ins(report: &SchemaReport, dialect: Dialect) -> BTreeMap<&'static str, String> {
    let mut out = BTreeMap::new();
    for table in tables() {
        let whole = !report.has_table(table.name);
        let missing = table
            .columns
            .iter()
            .filter(|column| !report.has_column(table.name, column.name))
            .map(|column| null(dialect, table.name, column.name))
            .collect::<Vec<_>>()
            .join(", ");
        if missing.is_empty() {
            continue;
        }
        let name = format!("{}{}", report.prefix, table.name);
        let (how, schema) = match dialect {
            Dialect::Sqlite => ("as", "main."),
            // Referred to twice, it would be computed whole.
            Dialect::Postgres => ("as not materialized", ""),
            Dialect::MySql => ("as", ""),
        };
        let select = if whole {
            format!("select {missing} limit 0")
        } else {
            format!("select t.*, {missing} from {schema}{name} t")
        };
        out.insert(table.name, format!("{name} {how} ({select})"));
    }
    out
}

/// A null of the column's type, which PostgreSQL wants to know.
fn null(dialect: Dialect, table: &str, column: &str) -> String {
    let quote = dialect.pick("\"", "\"", "`");
    match dialect {
        Dialect::Postgres => {
            let declared = postgres_type(table, column);
            format!("cast(null as {declared}) as {quote}{column}{quote}")
        }
        Dialect::Sqlite | Dialect::MySql => format!("null as {quote}{column}{quote}"),
    }
}

/// The type our own script gives a column: one column per line.
fn postgres_type(table: &str, column: &str) -> &'static str {
    let opening = format!("create table if not exists {{{table}}} (");
    POSTGRES
        .into_iter()
        .find_map(|script| {
            script
                .lines()
                .skip_while(|line| *line != opening)
                .take_while(|line| *line != ");")
                .find_map(|line| {
                    let (name, declared) = line.trim().split_once(' ')?;
                    (name.trim_matches('"') == column).then_some(declared)
                })
        })
        .map_or("text", |declared| {
            let declared = declared.trim_end_matches(',');
            let end = [" not null", " default", " generated"]
                .iter()
                .filter_map(|word| declared.find(word))
                .min();
            match &declared[..end.unwrap_or(declared.len())] {
                // Counts by itself; no type to cast to.
                "bigserial" => "bigint",
                declared => declared,
            }
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_read_from_our_script() {
        for (column, declared) in [
            ("id", "varchar(26)"),
            ("visibility_labels", "json"),
            ("task_problem", "boolean"),
            ("sort_timestamp", "timestamp(6)"),
        ] {
            assert_eq!(postgres_type("workflow_run_summaries", column), declared);
        }
    }
}
