//! What a page of rows needs besides the summary: one statement per question, for all rows.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::{
    db::{DbError, Json, Row, Snapshot},
    durable::stored::{FailureRow, ListedRun, RetryingActivity, RunSummary, WaitKind},
};

/// Most failure or activity rows one page reads: a run may have thousands of either.
const MOST: u32 = 2_000;

/// What a row of the list says besides its summary.
#[derive(Debug, Default)]
pub struct Beside {
    /// The unhandled failures, oldest first.
    pub failures: Vec<FailureRow>,
    /// The first activity in a retry, for a run that waits for one.
    pub retrying: Option<RetryingActivity>,
}

/// Failures and retries of all rows in one statement, sent for every page so that each costs
/// the same number. Both halves are served by `(workflow_run_id)`.
pub async fn beside(
    snapshot: &mut Snapshot,
    rows: &[ListedRun],
) -> Result<HashMap<String, Beside>, DbError> {
    let waits = |row: &ListedRun| row.wait_kind.as_ref() == Some(&WaitKind::Activity);
    let failed = rows.iter().filter(|row| row.exception_count > 0);
    let waiting = rows.iter().filter(|row| waits(row));
    let mut q = snapshot.statement();
    q.push(
        "select workflow_run_id, source_kind, failure_category, non_retryable, exception_class, message, \
         null as activity_type, null as attempt_count, null as retry_policy \
         from {workflow_failures} where workflow_run_id in ",
    )
    .bind_list(failed.map(|row| row.id.as_str()))
    .push(
        " and handled = false union all \
         select workflow_run_id, null, null, null, null, null, activity_type, attempt_count, retry_policy \
         from {activity_executions} where workflow_run_id in ",
    )
    .bind_list(waiting.map(|row| row.id.as_str()))
    // Pending after an attempt is a backoff; running in a later attempt is a retry.
    .push(" and ((status = 'pending' and attempt_count > 0) or (status = 'running' and attempt_count > 1)) limit ")
    .bind(MOST);
    let mut found: HashMap<String, Beside> = HashMap::new();
    for mut row in snapshot.fetch(q).await? {
        let beside = found.entry(row.text("workflow_run_id")?).or_default();
        if let Some(source_kind) = row.opt_text("source_kind")? {
            beside.failures.push(FailureRow {
                source_kind,
                category: row.opt_text("failure_category")?.map(Into::into),
                non_retryable: row.opt_bool("non_retryable")?.unwrap_or(false),
                exception_class: row.opt_text("exception_class")?.unwrap_or_default(),
                message: row.opt_text("message")?.unwrap_or_default(),
            });
        } else if beside.retrying.is_none() {
            beside.retrying = Some(RetryingActivity {
                activity_type: row.text("activity_type")?,
                attempt_count: row.int("attempt_count")?,
                max_attempts: match row.opt_json("retry_policy")? {
                    Some(Json::Value(policy)) => policy.get("max_attempts").and_then(Value::as_i64),
                    _ => None,
                },
            });
        }
    }
    Ok(found)
}

/// The typed search attributes of each run, keys sorted. Served by `(workflow_run_id, key)`.
pub async fn search_attributes(
    snapshot: &mut Snapshot,
    rows: &[RunSummary],
) -> Result<HashMap<String, Map<String, Value>>, DbError> {
    let mut found: HashMap<String, Map<String, Value>> = HashMap::new();
    if rows.is_empty() {
        return Ok(found);
    }
    let mut q = snapshot.statement();
    q.push(
        "select workflow_run_id, \"key\", type, value_string, value_keyword, value_keyword_list, value_int, \
         value_float, value_bool, value_datetime from {workflow_search_attributes} where workflow_run_id in ",
    )
    .bind_list(rows.iter().map(|row| row.id.as_str()))
    .push(" order by workflow_run_id, \"key\"");
    for mut row in snapshot.fetch(q).await? {
        let run = row.text("workflow_run_id")?;
        let key = row.text("key")?;
        let value = attribute(&mut row)?;
        found.entry(run).or_default().insert(key, value);
    }
    for attributes in found.values_mut() {
        attributes.sort_keys();
    }
    Ok(found)
}

/// The value of one search attribute row, by its type.
fn attribute(row: &mut Row) -> Result<Value, DbError> {
    Ok(match row.text("type")?.as_str() {
        "keyword" => row.opt_text("value_keyword")?.into(),
        "keyword_list" => match row.opt_json("value_keyword_list")? {
            Some(Json::Value(list)) => list,
            Some(Json::Malformed(text)) => text.into(),
            None => Value::Null,
        },
        "int" => row.opt_int("value_int")?.into(),
        "float" => row.opt_float("value_float")?.into(),
        "bool" => row.opt_bool("value_bool")?.into(),
        "datetime" => row
            .opt_time("value_datetime")?
            .map(|at| at.to_rfc3339_opts(chrono::SecondsFormat::Micros, true))
            .into(),
        // `string`, and whatever a newer engine adds.
        _ => row.opt_text("value_string")?.into(),
    })
}

/// Memo and search attributes of one run, keys sorted, in one statement.
pub async fn free_form(
    snapshot: &mut Snapshot,
    run_id: &str,
) -> Result<(Map<String, Value>, Map<String, Value>), DbError> {
    let mut q = snapshot.statement();
    q.push(
        "select 'attribute' as what, \"key\", type, value_string, value_keyword, value_keyword_list, value_int, \
         value_float, value_bool, value_datetime, null as value from {workflow_search_attributes} where workflow_run_id = ",
    )
    .bind(run_id)
    .push(
        " union all select 'memo', \"key\", null, null, null, null, null, null, null, null, value \
         from {workflow_memos} where workflow_run_id = ",
    )
    .bind(run_id);
    let (mut memo, mut attributes) = (Map::new(), Map::new());
    for mut row in snapshot.fetch(q).await? {
        let what = row.text("what")?;
        let key = row.text("key")?;
        if what == "attribute" {
            attributes.insert(key, attribute(&mut row)?);
        } else {
            let value = match row.opt_json("value")? {
                Some(Json::Value(value)) => value,
                Some(Json::Malformed(text)) => Value::String(text),
                None => Value::Null,
            };
            memo.insert(key, value);
        }
    }
    memo.sort_keys();
    attributes.sort_keys();
    Ok((memo, attributes))
}
