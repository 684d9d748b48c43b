//! One term as SQL on a summary row. Where a rule of the projection decides, SQL only narrows
//! and [`keeps`] asks the rule.

use chrono::{DateTime, TimeDelta, Utc};

use super::filter::{Attention, Kind, ProblemTest, Term, Test};
use crate::{
    db::{Dialect, Statement},
    durable::{
        projection::{
            repair_gate::{self, RepairState},
            task_problem,
        },
        stored::{RunStatus, Standing},
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

/// Whether SQL alone cannot decide one of these terms.
pub fn needs_rules(terms: &[&Term]) -> bool {
    terms.iter().any(|term| {
        matches!(term.field.kind, Kind::NeedsRepair | Kind::RepairState)
            || matches!(term.test, Test::Problem(ProblemTest::Is(_)))
    })
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
        (Kind::Prefix(column), Test::Text(text)) => {
            q.push(column)
                .push(" like ")
                .bind(like("", text))
                .push(" escape '!'");
        }
        (Kind::Contains(column), Test::Text(text)) => {
            q.push(column)
                .push(" like ")
                .bind(like("%", text))
                .push(" escape '!'");
        }
        (Kind::IsTerminal, Test::Flag(on)) => {
            q.push(if *on { "status in " } else { "status not in " })
                .bind_list(RunStatus::TERMINAL);
        }
        (Kind::FailureCategory, Test::Category(category)) => {
            q.push("exception_count > 0 and exists (select 1 from {workflow_failures} f where f.workflow_run_id = w.id and f.failure_category");
            match category {
                Some(category) => q.push(" = ").bind(category.as_str()),
                None => q.push(" is null"),
            };
            q.push(")");
        }
        (Kind::NonRetryable, Test::Flag(on)) => {
            q.push(if *on { "exists" } else { "not exists" }).push(
                " (select 1 from {workflow_failures} f where f.workflow_run_id = w.id and f.non_retryable = true)",
            );
        }
        (Kind::TaskProblem, Test::Problem(test)) => {
            q.push(if *test == ProblemTest::Absent {
                "task_problem = false"
            } else {
                "task_problem = true"
            });
        }
        // `repair_gate` decides.
        (Kind::RepairState, _) => {
            q.push("1 = 1");
        }
        (Kind::Attention, Test::Attention(attention, now)) => push_attention(q, *attention, *now),
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
            q.push("sort_timestamp >= ").bind_utc(*at);
        }
        (Kind::To, Test::At(at)) => {
            q.push("sort_timestamp < ").bind_utc(*at);
        }
        (kind, test) => unreachable!("{kind:?} does not parse to {test:?}"),
    }
}

/// The conditions of the overview's counts, moments cut to the second as there.
fn push_attention(q: &mut Statement, attention: Attention, now: DateTime<Utc>) {
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
    };
}

/// A pattern for text that follows `before`, taken literally.
fn like(before: &str, text: &str) -> String {
    let mut pattern = before.to_owned();
    for c in text.chars() {
        if matches!(c, '!' | '%' | '_') {
            pattern.push('!');
        }
        pattern.push(c);
    }
    pattern.push('%');
    pattern
}

fn push_label(q: &mut Statement, key: &str, value: &str) {
    // The key's alphabet (letters, digits, `_ . : -`) needs no escaping inside a quoted path.
    match q.dialect() {
        Dialect::Postgres => {
            // An empty map is stored as a list, which has no keys.
            q.push("json_typeof(visibility_labels) = 'object' and visibility_labels ->> ")
                .bind(key)
                .push(" = ")
                .bind(value);
        }
        Dialect::Sqlite => {
            q.push("json_valid(visibility_labels) and json_extract(visibility_labels, ")
                .bind(format!("$.\"{key}\""))
                .push(") = ")
                .bind(value);
        }
        Dialect::MySql => {
            q.push("json_unquote(json_extract(visibility_labels, ")
                .bind(format!("$.\"{key}\""))
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
        Dialect::Postgres => q
            .push(" or a.value_keyword_list::jsonb @> to_jsonb(")
            .bind(value)
            .push("::text)"),
        Dialect::Sqlite => q
            .push(" or exists (select 1 from json_each(case when json_valid(a.value_keyword_list) then a.value_keyword_list end) where value = ")
            .bind(value)
            .push(")"),
        Dialect::MySql => q
            .push(" or json_contains(a.value_keyword_list, json_quote(")
            .bind(value)
            .push("))"),
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
    if let Ok(at) = chrono::DateTime::parse_from_rfc3339(value) {
        q.push(" or a.value_datetime = ").bind_time(at.to_utc());
    }
    q.push("))");
}

#[cfg(test)]
mod tests {
    use super::like;

    #[test]
    fn wildcards_in_the_text_are_taken_literally() {
        assert_eq!(like("%", "50%_a!"), "%50!%!_a!!%");
        assert_eq!(like("", "a_"), "a!_%");
    }
}
