//! What a page of rows needs besides the summary: one statement per question, for all rows.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::{
    db::{DbError, Json, Row, Snapshot, Statement, Val},
    durable::stored::{
        Cells, FailureRow, ListedRun, Notices, Problem, RetryingActivity, RunSummary, WaitKind,
    },
};

/// Most failure or activity rows one page reads: a run may have thousands of either.
const MOST: u32 = 2_000;

const ATTRIBUTES: &str = "workflow_search_attributes";
const MEMOS: &str = "workflow_memos";
const FAILURES: &str = "workflow_failures";
const EXECUTIONS: &str = "activity_executions";

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
    notices: &mut Notices,
) -> Result<HashMap<String, Beside>, DbError> {
    let waits = |row: &ListedRun| row.wait_kind.as_ref() == Some(&WaitKind::Activity);
    let failed = rows.iter().filter(|row| row.exception_count > 0);
    let waiting = rows.iter().filter(|row| waits(row));
    let mut q = snapshot.statement();
    q.push(
        "select workflow_run_id, source_kind, failure_category, non_retryable, exception_class, message, \
         null as activity_type, null as attempt_count, null as retry_policy, id \
         from {workflow_failures} where workflow_run_id in ",
    )
    .bind_list(failed.map(|row| row.id.as_str()))
    .push(
        " and handled = false union all \
         select workflow_run_id, null, null, null, null, null, activity_type, attempt_count, retry_policy, id \
         from {activity_executions} where workflow_run_id in ",
    )
    .bind_list(waiting.map(|row| row.id.as_str()))
    // Pending after an attempt is a backoff; running in a later attempt is a retry.
    .push(" and ((status = 'pending' and attempt_count > 0) or (status = 'running' and attempt_count > 1)) limit ")
    .bind(MOST);
    let mut found: HashMap<String, Beside> = HashMap::new();
    let mut rows = snapshot.fetch(q).await?;
    // Ids are in time order.
    rows.sort_by(|a, b| a.peek("id").cmp(&b.peek("id")));
    for mut row in rows {
        let is_failure = row.peek("source_kind").is_some();
        let table = if is_failure { FAILURES } else { EXECUTIONS };
        let mut cells = Cells::of(table, &mut row, notices);
        let beside = found.entry(cells.text("workflow_run_id")?).or_default();
        if is_failure {
            beside.failures.push(failure(&mut cells)?);
        } else if beside.retrying.is_none() {
            beside.retrying = Some(RetryingActivity {
                activity_type: cells.opt_text("activity_type")?.unwrap_or_default(),
                attempt_count: cells.opt_int("attempt_count")?.unwrap_or(0),
                max_attempts: match cells.opt_json("retry_policy")? {
                    Some(Json::Value(policy)) => policy.get("max_attempts").and_then(Value::as_i64),
                    _ => None,
                },
            });
        }
    }
    Ok(found)
}

fn failure(cells: &mut Cells<'_>) -> Result<FailureRow, DbError> {
    Ok(FailureRow {
        source_kind: cells.text("source_kind")?,
        category: cells.opt_word("failure_category")?,
        non_retryable: cells.flag("non_retryable")?,
        exception_class: cells.opt_text("exception_class")?.unwrap_or_default(),
        message: cells.opt_text("message")?.unwrap_or_default(),
    })
}

/// The unhandled failures of candidates for a filter, by run, oldest first. Served by
/// `(workflow_run_id)`.
pub(super) async fn failures(
    snapshot: &mut Snapshot,
    runs: impl Iterator<Item = &str>,
) -> Result<HashMap<String, Vec<FailureRow>>, DbError> {
    /// A window's candidates have a handful of failures each; this is for some that have thousands.
    const MOST: u32 = 50_000;
    let mut q = snapshot.statement();
    q.push(
        "select workflow_run_id, source_kind, failure_category, non_retryable, exception_class, message, id \
         from {workflow_failures} where workflow_run_id in ",
    )
    .bind_list(runs)
    .push(" and handled = false limit ")
    .bind(MOST);
    let mut rows = snapshot.fetch(q).await?;
    rows.sort_by(|a, b| a.peek("id").cmp(&b.peek("id")));
    let mut found: HashMap<String, Vec<FailureRow>> = HashMap::new();
    // A notice comes with the row when it is shown.
    let mut unheard = Notices::default();
    for mut row in rows {
        let mut cells = Cells::of(FAILURES, &mut row, &mut unheard);
        let run = cells.text("workflow_run_id")?;
        found.entry(run).or_default().push(failure(&mut cells)?);
    }
    Ok(found)
}

/// The typed search attributes of each run, keys sorted. Served by `(workflow_run_id, key)`.
pub async fn search_attributes(
    snapshot: &mut Snapshot,
    rows: &[RunSummary],
    notices: &mut Notices,
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
        let mut cells = Cells::of(ATTRIBUTES, &mut row, notices);
        let run = cells.text("workflow_run_id")?;
        let key = cells.text("key")?;
        let value = attribute(&mut cells)?;
        found.entry(run).or_default().insert(key, value);
    }
    for attributes in found.values_mut() {
        attributes.sort_keys();
    }
    Ok(found)
}

/// The value of one search attribute row, by its type.
fn attribute(cells: &mut Cells<'_>) -> Result<Value, DbError> {
    let kind = cells.text("type")?;
    Ok(match kind.as_str() {
        "keyword" => cells.opt_text("value_keyword")?.into(),
        "keyword_list" => match cells.opt_json("value_keyword_list")? {
            Some(Json::Value(list)) => list,
            Some(Json::Malformed(text)) => text.into(),
            None => Value::Array(Vec::new()),
        },
        "int" => cells.opt_int("value_int")?.into(),
        "float" => cells.opt_float("value_float")?.into(),
        "bool" => cells.opt_bool("value_bool")?.into(),
        "datetime" => cells
            .opt_time("value_datetime")?
            .map(|at| at.to_rfc3339_opts(chrono::SecondsFormat::Micros, true))
            .into(),
        "string" => cells.opt_text("value_string")?.into(),
        // What a newer engine adds.
        _ => {
            cells.note("type", Problem::UnknownWord, Val::from(&kind).shown());
            cells.opt_text("value_string")?.into()
        }
    })
}

/// Memo and search attribute rows of one run, in one statement.
pub(in crate::durable::store) fn push_free_form(q: &mut Statement, run_id: &str) {
    q.push(
        "select \"key\", 'attribute' as what, type, value_string, value_keyword, value_keyword_list, value_int, \
         value_float, value_bool, value_datetime, null as value from {workflow_search_attributes} where workflow_run_id = ",
    )
    .bind(run_id)
    .push(
        " union all select \"key\", 'memo', null, null, null, null, null, null, null, null, value \
         from {workflow_memos} where workflow_run_id = ",
    )
    .bind(run_id);
}

/// What an application said of its run, by key.
type FreeForm = Map<String, Value>;

/// Memo and search attributes, keys sorted.
pub(in crate::durable::store) fn free_form(
    rows: Vec<Row>,
    notices: &mut Notices,
) -> Result<(FreeForm, FreeForm), DbError> {
    let (mut memo, mut attributes) = (Map::new(), Map::new());
    for mut row in rows {
        let is_attribute = row.peek("what") == Some("attribute");
        let table = if is_attribute { ATTRIBUTES } else { MEMOS };
        let mut cells = Cells::of(table, &mut row, notices);
        let key = cells.text("key")?;
        if is_attribute {
            attributes.insert(key, attribute(&mut cells)?);
        } else {
            let value = match cells.any_json("value")? {
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
