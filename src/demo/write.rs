//! Writes rows into any of the three databases: few statements, bounded binds, one transaction
//! per batch.

use std::collections::HashMap;

use super::rows::InsertRow;
use crate::{
    db::{Db, DbError, Dialect, Statement, Val},
    durable::store::schema::tables,
};

/// How many rows go into one transaction: large enough that commits do not count, small enough
/// that an interrupted load loses little and the log stays short.
const ROWS_PER_TRANSACTION: usize = 50_000;

/// Longer statements cost more to parse than they save in round trips.
const ROWS_PER_STATEMENT: usize = 256;

fn max_binds(dialect: Dialect) -> usize {
    match dialect {
        Dialect::Sqlite => 32_766,
        Dialect::Postgres | Dialect::MySql => 65_535,
    }
}

/// Inserts all rows and returns how many there were. `progress` hears the running total.
///
/// Rows of one table and one set of columns go together, tables that others refer to first.
pub async fn write(
    db: &Db,
    rows: Vec<InsertRow>,
    mut progress: impl FnMut(u64),
) -> Result<u64, DbError> {
    let mut total = 0;
    let mut rows = rows.into_iter();
    loop {
        let batch: Vec<InsertRow> = rows.by_ref().take(ROWS_PER_TRANSACTION).collect();
        if batch.is_empty() {
            return Ok(total);
        }
        let mut tx = db.write().await?;
        for group in grouped(batch) {
            for statement in group.statements(db) {
                total += tx.execute(statement).await?;
                progress(total);
            }
        }
        tx.commit().await?;
    }
}

/// Rows of one table that name the same columns in the same order.
struct Group {
    table: &'static str,
    columns: Vec<&'static str>,
    rows: Vec<Vec<Val>>,
}

fn grouped(batch: Vec<InsertRow>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut known: HashMap<(&'static str, Vec<&'static str>), usize> = HashMap::new();
    for row in batch {
        // A null is what an unnamed column gets anyway, and a statement without nulls has
        // settled types: it is prepared once and used again.
        let cells = row
            .cells
            .into_iter()
            .filter(|(_, value)| *value != Val::Null);
        let (columns, values): (Vec<_>, Vec<_>) = cells.unzip();
        let at = *known.entry((row.table, columns)).or_insert_with_key(|key| {
            groups.push(Group {
                table: row.table,
                columns: key.1.clone(),
                rows: Vec::new(),
            });
            groups.len() - 1
        });
        groups[at].rows.push(values);
    }
    // A row may refer to another anywhere in the batch: the tables referred to come first.
    let order = |table| tables().iter().position(|known| known.name == table);
    groups.sort_by_key(|group| order(group.table));
    groups
}

impl Group {
    fn statements(self, db: &Db) -> impl Iterator<Item = Statement> {
        let Self {
            table,
            columns,
            rows,
        } = self;
        let fitting = max_binds(db.dialect()) / columns.len().max(1);
        let most = fitting.clamp(1, ROWS_PER_STATEMENT);
        let mut rows = rows.into_iter();
        std::iter::from_fn(move || {
            // Powers of two: the same few statements again, whatever is left over.
            let size = 1 << most.min(rows.len()).checked_ilog2()?;
            let chunk: Vec<Vec<Val>> = rows.by_ref().take(size).collect();
            Some(insert(db, table, &columns, chunk))
        })
    }
}

fn insert(
    db: &Db,
    table: &'static str,
    columns: &[&'static str],
    rows: Vec<Vec<Val>>,
) -> Statement {
    let mut q = db.statement();
    q.push("insert into {").push(table).push("} (");
    for (i, column) in columns.iter().enumerate() {
        q.push(if i == 0 { "\"" } else { ", \"" })
            .push(column)
            .push("\"");
    }
    q.push(") values ");
    for (i, row) in rows.into_iter().enumerate() {
        if i > 0 {
            q.push(", ");
        }
        q.bind_list(row);
    }
    q
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(table: &'static str, cells: &[(&'static str, Val)]) -> InsertRow {
        InsertRow {
            table,
            cells: cells.to_vec(),
        }
    }

    #[test]
    fn rows_group_by_table_and_columns_with_the_tables_referred_to_first() {
        let groups = grouped(vec![
            row("workflow_memos", &[("id", 1.into())]),
            row("workflow_runs", &[("id", 1.into()), ("queue", Val::Null)]),
            row("workflow_runs", &[("id", 2.into())]),
            row("workflow_runs", &[("id", 3.into()), ("queue", "q".into())]),
        ]);
        let shape: Vec<_> = groups
            .iter()
            .map(|g| (g.table, g.columns.clone(), g.rows.len()))
            .collect();
        assert_eq!(
            shape,
            [
                ("workflow_runs", vec!["id"], 2),
                ("workflow_runs", vec!["id", "queue"], 1),
                ("workflow_memos", vec!["id"], 1),
            ]
        );
    }
}
