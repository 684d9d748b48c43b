//! One term as SQL on a summary row. Where a rule of the projection decides, SQL only narrows
//! and [`keeps`] asks the rule.

use chrono::{DateTime, TimeDelta};

use super::filter::{Attention, CountedAt, Kind, ProblemTest, Term, Test, is_storable};
use crate::{
    db::{Dialect, Statement},
    durable::{
        projection::{
            headline::Headline,
            repair_gate::{self, RepairState},
            task_problem,
        },
        stored::{FailureRow, RunStatus, Standing},
    },
};

/// Whether the rules of the projection keep this row: the same functions that draw its badges.
pub fn keeps(terms: &[&Term], standing: Standing<'_>) -> bool {
    terms.iter().all(|term| match &term.test {
        Test::Problem(ProblemTest::Is(problem)) => task_problem::badge(standing) == Some(*problem),
        Test::Flag(true) if term.field.kind == Kind::NeedsRepair => {
            repair_gate::of_summary(standing).is_ok()
        }
        Test::Text(word) if term.field.kind == Kind::RepairState => {
            RepairState::of(standing).word() == word
        }
        _ => true,
    })
}

/// The same for what its failure badge says.
pub fn keeps_failure(terms: &[&Term], status: &RunStatus, failures: &[FailureRow]) -> bool {
    let headline = Headline::of(status, failures);
    terms
        .iter()
        .all(|term| match (term.field.kind, &term.test) {
            (Kind::FailureCategory, Test::Category(category)) => {
                headline.is_some_and(|headline| headline.category() == category.as_ref())
            }
            (Kind::NonRetryable, Test::Flag(on)) => {
                headline.is_some_and(Headline::is_non_retryable) == *on
            }
            _ => true,
        })
}

/// Whether SQL alone cannot decide one of these terms.
pub fn needs_rules(terms: &[&Term]) -> bool {
    needs_failures(terms)
        || terms.iter().any(|term| {
            matches!(term.field.kind, Kind::NeedsRepair | Kind::RepairState)
                || matches!(term.test, Test::Problem(ProblemTest::Is(_)))
        })
}

/// Whether the failures of a row decide one of these terms.
pub fn needs_failures(terms: &[&Term]) -> bool {
    terms
        .iter()
        .any(|term| matches!(term.field.kind, Kind::FailureCategory | Kind::NonRetryable))
}

/// Pushes one condition on the row `w`.
pub fn push(q: &mut Statement, term: &Term) {
    match (term.field.kind, &term.test) {
        (Kind::Exact(column), Test::Null) => {
            q.push(column).push(" is null");
        }
        (
            Kind::Exact(column) | Kind::Choice(column, _) | Kind::Word(column, _),
            Test::Text(text),
        ) => {
            q.push(column).push(" = ").bind(text);
        }
        (Kind::Flag(column), Test::Flag(on)) => {
            q.push(column)
                .push(if *on { " = true" } else { " = false" });
        }
        (Kind::Presence(column), Test::Flag(set)) => {
            q.push(column)
                .push(if *set { " is not null" } else { " is null" });
        }
        // `like` would take another case for the same on SQLite and in MySQL's collations.
        (Kind::Prefix(column), Test::Text(text)) => {
            let dialect = q.dialect();
            q.push(dialect.pick("", "", "cast("))
                .push("substr(")
                .push(column)
                .push(dialect.pick(", 1, length(", ", 1, length(", ", 1, char_length("))
                .bind(text)
                .push(dialect.pick(")) = ", ")) = ", ")) as binary) = "))
                .bind(text);
        }
        (Kind::Contains(column), Test::Text(text)) => {
            q.push(column)
                .push(" like ")
                .bind(format!("%{}%", literally(text)))
                .push(" escape '!'");
        }
        (Kind::IsTerminal, Test::Flag(on)) => {
            q.push(if *on { "status in " } else { "status not in " })
                .bind_list(RunStatus::TERMINAL);
        }
        // Both only narrow; `headline` decides.
        (Kind::FailureCategory, Test::Category(category)) => {
            push_failed(q);
            // The plus keeps SQLite from entering by the category: without statistics it takes
            // that index for the better one, and reads all of a category for every run.
            q.push(q.dialect().pick(
                "+f.failure_category",
                "f.failure_category",
                "f.failure_category",
            ));
            match category {
                Some(category) => q.push(" = ").bind(category.as_str()),
                None => q.push(" is null"),
            };
            q.push(")");
        }
        (Kind::NonRetryable, Test::Flag(true)) => {
            push_failed(q);
            q.push("f.non_retryable = true)");
        }
        (Kind::TaskProblem, Test::Problem(test)) => {
            q.push(if *test == ProblemTest::Absent {
                "task_problem = false"
            } else {
                "task_problem = true"
            });
        }
        // `headline` and `repair_gate` decide.
        (Kind::NonRetryable, Test::Flag(false)) | (Kind::RepairState, _) => {
            q.push("1 = 1");
        }
        (Kind::Attention, Test::Attention(attention, counted)) => {
            push_attention(q, *attention, *counted);
        }
        // Only narrows; `repair_gate` decides.
        (Kind::NeedsRepair, _) => {
            q.push("liveness_state in ('repair_needed', 'workflow_replay_blocked')");
        }
        (Kind::Label, Test::Text(text)) => {
            push_label(q, term.key.as_deref().unwrap_or_default(), text);
        }
        (Kind::SearchAttribute, Test::Text(text)) => {
            push_search_attribute(q, term.key.as_deref().unwrap_or_default(), text);
        }
        // A lookup by key is not ordered by time, so its range is checked here too.
        (Kind::Within | Kind::From, Test::At(at)) => {
            q.push("sort_timestamp >= ").bind_utc_first(*at);
        }
        (Kind::To, Test::At(at)) => {
            q.push("sort_timestamp < ").bind_utc_first(*at);
        }
        (kind, test) => unreachable!("{kind:?} does not parse to {test:?}"),
    }
}

/// A run that ended with an unhandled failure, of which more follows.
fn push_failed(q: &mut Statement) {
    q.push("exception_count > 0 and status in ")
        .bind_list(RunStatus::TERMINAL)
        .push(" and exists (select 1 from {workflow_failures} f where f.workflow_run_id = w.id and f.handled = false and ");
}

/// The columns the overview's counts ask about.
pub const ATTENTION_COLUMNS: &str = "id, status, status_bucket, liveness_state, wait_started_at, \
    started_at, updated_at, closed_at, exception_count";

/// The conditions of the overview's counts, moments cut to the second as there.
fn push_attention(q: &mut Statement, attention: Attention, counted: CountedAt) {
    let now = counted.now;
    let hour = now - TimeDelta::hours(1);
    q.push("status_bucket = ")
        .bind(attention.bucket().as_str())
        .push(" and ");
    match attention {
        Attention::RepairNeeded => q.push("liveness_state = 'repair_needed'"),
        Attention::ClaimFailed => q.push(
            "liveness_state in ('workflow_task_claim_failed', 'activity_task_claim_failed', \
             'timer_task_claim_failed')",
        ),
        Attention::CompatibilityBlocked => q.push(
            "liveness_state in ('workflow_task_waiting_for_compatible_worker', \
             'activity_task_waiting_for_compatible_worker', 'timer_task_waiting_for_compatible_worker')",
        ),
        Attention::LongRunning => q
            .push("wait_started_at is null and started_at < ")
            .bind_second(hour),
        Attention::RetryStorm => q
            .push("exception_count >= 10 and updated_at >= ")
            .bind_second(hour),
        Attention::FailedPastHour => q
            .push("status = 'failed' and closed_at >= ")
            .bind_second(hour),
        Attention::LongWaits => q
            .push("wait_started_at < ")
            .bind_second(now - TimeDelta::minutes(30)),
        Attention::Work(work) => {
            work.push(q, now, counted.redispatch_after);
            q
        }
    };
}

/// A pattern for this very text.
fn literally(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '!' | '%' | '_') {
            pattern.push('!');
        }
        pattern.push(c);
    }
    pattern
}

/// JSON may write characters that PostgreSQL's text cannot hold, NUL and half of a surrogate pair,
/// and one in the window would fail the page for everybody. What is well written is kept, of those
/// only their number: left to right, so that an escaped backslash starts nothing.
const UNHOLDABLE: &str = r"(\\[^u]|\\u[dD][89abAB]..\\u[dD][c-fC-F]..)|\\u(0000|[dD][89a-fA-F]..)";

/// A `json` column as PostgreSQL can take it apart.
fn push_holdable(q: &mut Statement, column: &'static str) {
    q.push("case when strpos(")
        .push(column)
        .push("::text, '\\u') > 0 then regexp_replace(")
        .push(column)
        .push("::text, ")
        .bind(UNHOLDABLE)
        .push(", '\\1\\2', 'g')::json else ")
        .push(column)
        .push(" end");
}

fn push_label(q: &mut Statement, key: &str, value: &str) {
    // The key's alphabet (letters, digits, `_ . : -`) needs no escaping inside a quoted path.
    let path = format!("$.\"{key}\"");
    match q.dialect() {
        Dialect::Postgres => {
            // An empty map is stored as a list, which has no keys.
            q.push("case when json_typeof(visibility_labels) = 'object' then (");
            push_holdable(q, "visibility_labels");
            q.push(") ->> ").bind(key).push(" end = ").bind(value);
        }
        Dialect::Sqlite => {
            q.push("case when json_valid(visibility_labels) then json_extract(visibility_labels, ")
                .bind(path)
                .push(") end = ")
                .bind(value);
        }
        Dialect::MySql => {
            q.push("json_unquote(json_extract(visibility_labels, ")
                .bind(path)
                .push(")) = ")
                .bind(value);
        }
    }
}

/// An attribute of any type whose value, written as text, is this one.
fn push_search_attribute(q: &mut Statement, key: &str, value: &str) {
    q.push("exists (select 1 from {workflow_search_attributes} a where a.workflow_run_id = w.id and a.\"key\" = ")
        .bind(key)
        .push(" and (a.value_keyword = ")
        .bind(value)
        .push(" or a.value_string = ")
        .bind(value);
    match q.dialect() {
        Dialect::Postgres => {
            q.push(" or exists (select 1 from json_array_elements_text(case when json_typeof(a.value_keyword_list) = 'array' then ");
            push_holdable(q, "a.value_keyword_list");
            q.push(" end) as one(word) where word = ")
                .bind(value)
                .push(")")
        }
        Dialect::Sqlite => q
            .push(" or exists (select 1 from json_each(case when json_valid(a.value_keyword_list) then a.value_keyword_list end) where value = ")
            .bind(value)
            .push(")"),
        Dialect::MySql => q
            // `json_contains` takes a character and its escape for two on MariaDB.
            .push(" or json_search(a.value_keyword_list, 'one', ")
            .bind(literally(value))
            .push(", '!') is not null"),
    };
    if let Ok(number) = value.parse::<i64>() {
        q.push(" or a.value_int = ").bind(number);
    }
    if let Ok(number) = value.parse::<f64>()
        && number.is_finite()
    {
        q.push(" or a.value_float = ").bind(number);
    }
    match value {
        "true" => q.push(" or a.value_bool = true"),
        "false" => q.push(" or a.value_bool = false"),
        _ => q,
    };
    if let Ok(at) = DateTime::parse_from_rfc3339(value).map(|at| at.to_utc())
        && is_storable(at)
    {
        q.push(" or a.value_datetime = ").bind_time(at);
    }
    q.push("))");
}

#[cfg(test)]
mod tests {
    use super::literally;

    #[test]
    fn wildcards_in_the_text_are_taken_literally() {
        assert_eq!(literally("50%_a!"), "50!%!_a!!");
    }
}
