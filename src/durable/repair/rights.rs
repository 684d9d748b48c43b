//! Whether the account that repairs may write what a repair writes: asked at the start, where it
//! can still be put right, and not at the first repair.

use crate::db::{Db, DbError, Dialect};

/// Each table, and two statements that write no row of it.
macro_rules! written {
    ($($table:literal),+ $(,)?) => {
        [$((
            $table,
            [
                concat!("insert into {", $table, "} select * from {", $table, "} where 1 = 0"),
                concat!("update {", $table, "} set id = id where 1 = 0"),
            ],
        )),+]
    };
}

const WRITTEN: [(&str, [&str; 2]); 9] = written![
    "workflow_tasks",
    "workflow_runs",
    "workflow_run_summaries",
    "workflow_commands",
    "workflow_history_events",
    "workflow_updates",
    "workflow_run_timers",
    "activity_executions",
    "activity_attempts",
];

/// The tables that the account may not insert into or update. A file has no accounts.
pub async fn lacking(db: &Db) -> Result<Vec<&'static str>, DbError> {
    let mut lacking = Vec::new();
    if db.dialect() == Dialect::Sqlite {
        return Ok(lacking);
    }
    for (table, statements) in WRITTEN {
        for statement in statements {
            // One that was refused ends its transaction.
            let mut tx = db.write().await?;
            let mut q = tx.statement();
            q.push(statement);
            match tx.execute(q).await {
                Ok(_) => {}
                Err(DbError::Denied(_)) => {
                    lacking.push(table);
                    break;
                }
                Err(error) => return Err(error),
            }
        }
    }
    Ok(lacking)
}
