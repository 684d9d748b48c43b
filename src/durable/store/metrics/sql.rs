//! Statements written as text with named moments.
//!
//! `:now`, `:minute`, `:hour` … are bound as the engine binds them: cut to the whole second.
//! `:now_us` and `:minute_us` keep their fraction. `:and_ns_*` narrows to the namespace asked
//! for, in the ways the engine does; the remaining words are what the databases spell
//! differently.

use chrono::{DateTime, TimeDelta, Utc};

use super::lenient::{Lenient, Unread};
use crate::{
    db::{DbError, Dialect, Row, Snapshot, Statement, Val},
    durable::engine_config::EngineConfig,
};

/// What every count depends on.
#[derive(Clone, Debug)]
pub struct Scope<'a> {
    pub now: DateTime<Utc>,
    pub namespace: Option<&'a str>,
    /// Seconds after which a ready task counts as not picked up.
    redispatch_after: i64,
    /// Seconds after which a registered worker counts as gone, and no longer polls its queue.
    registration_stale_after: i64,
    poller_stale_after: i64,
    /// What could not be read so far.
    pub unread: Unread,
}

impl<'a> Scope<'a> {
    pub fn new(now: DateTime<Utc>, config: &EngineConfig, namespace: Option<&'a str>) -> Self {
        Self {
            now,
            namespace: namespace
                .map(str::trim)
                .filter(|namespace| !namespace.is_empty()),
            redispatch_after: config.int("task_repair.redispatch_after_seconds"),
            registration_stale_after: config.registration_stale_after(),
            poller_stale_after: config.poller_stale_after(),
            unread: Unread::default(),
        }
    }

    /// Of one moment alone, for conditions a list asks too.
    pub(super) fn at(now: DateTime<Utc>, redispatch_after: i64) -> Self {
        Self {
            now,
            namespace: None,
            redispatch_after,
            registration_stale_after: 0,
            poller_stale_after: 0,
            unread: Unread::default(),
        }
    }

    fn ago(&self, seconds: i64) -> DateTime<Utc> {
        TimeDelta::try_seconds(seconds)
            .and_then(|delta| self.now.checked_sub_signed(delta))
            .unwrap_or(DateTime::UNIX_EPOCH)
    }
}

/// The statement a template stands for.
pub(super) fn statement(
    snapshot: &Snapshot,
    scope: &Scope<'_>,
    template: &'static str,
) -> Statement {
    statement_with(snapshot, scope, template, &[])
}

/// The same, with values of its own beside the moments.
pub(super) fn statement_with(
    snapshot: &Snapshot,
    scope: &Scope<'_>,
    template: &'static str,
    values: &[(&str, Val)],
) -> Statement {
    let mut q = snapshot.statement();
    push_with(&mut q, scope, template, values);
    q
}

/// Pushes what a template stands for.
pub(super) fn push(q: &mut Statement, scope: &Scope<'_>, template: &'static str) {
    push_with(q, scope, template, &[]);
}

fn push_with(q: &mut Statement, scope: &Scope<'_>, template: &'static str, values: &[(&str, Val)]) {
    let mut rest = template;
    while let Some(at) = rest.find(':') {
        q.push(&rest[..at]);
        let word = &rest[at + 1..];
        let end = word
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(word.len());
        let name = &word[..end];
        match values.iter().find(|(known, _)| *known == name) {
            Some((_, value)) => {
                q.bind(value.clone());
            }
            None => insert(q, scope, name),
        }
        rest = &word[end..];
    }
    q.push(rest);
}

/// The only row of a template's result; what nothing adds up to where the table is not there.
pub(super) async fn one<T: Default>(
    snapshot: &mut Snapshot,
    scope: &Scope<'_>,
    template: &'static str,
    read: impl Fn(&mut Lenient<'_>) -> Result<T, DbError>,
) -> Result<T, DbError> {
    let q = statement(snapshot, scope, template);
    match snapshot.fetch_one(q).await? {
        Some(mut row) => read(&mut Lenient::new(&mut row, template, &scope.unread)),
        None => Ok(T::default()),
    }
}

pub(super) async fn all<T>(
    snapshot: &mut Snapshot,
    scope: &Scope<'_>,
    template: &'static str,
    read: impl Fn(&mut Lenient<'_>) -> Result<T, DbError>,
) -> Result<Vec<T>, DbError> {
    let q = statement(snapshot, scope, template);
    rows(snapshot, scope, template, q, read).await
}

/// The rows of a statement that a template begins.
pub(super) async fn rows<T>(
    snapshot: &mut Snapshot,
    scope: &Scope<'_>,
    template: &'static str,
    q: Statement,
    read: impl Fn(&mut Lenient<'_>) -> Result<T, DbError>,
) -> Result<Vec<T>, DbError> {
    let read = |row: &mut Row| read(&mut Lenient::new(row, template, &scope.unread));
    snapshot.fetch_as(q, read).await
}

fn insert(q: &mut Statement, scope: &Scope<'_>, word: &str) {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 3_600;
    const DAY: i64 = 86_400;
    match word {
        "now" => q.bind_second(scope.now),
        "late" => q.bind_second(scope.ago(scope.redispatch_after)),
        "heard" => q.bind_second(scope.ago(scope.registration_stale_after)),
        "polled" => q.bind_time(scope.ago(scope.poller_stale_after)),
        "minute" => q.bind_second(scope.ago(MINUTE)),
        "minutes5" => q.bind_second(scope.ago(5 * MINUTE)),
        "minutes30" => q.bind_second(scope.ago(30 * MINUTE)),
        "hour" => q.bind_second(scope.ago(HOUR)),
        "hour_utc" => q.bind_utc_second(scope.ago(HOUR)),
        "day" => q.bind_second(scope.ago(DAY)),
        "week" => q.bind_second(scope.ago(7 * DAY)),
        "now_us" => q.bind_time(scope.now),
        "minute_us" => q.bind_time(scope.ago(MINUTE)),
        "namespace" => q.bind(scope.namespace),
        "and_ns" => match scope.namespace {
            Some(namespace) => q.push(" and namespace = ").bind(namespace),
            None => q,
        },
        "and_ns_r" => match scope.namespace {
            Some(namespace) => q.push(" and r.namespace = ").bind(namespace),
            None => q,
        },
        "and_ns_s" => match scope.namespace {
            Some(namespace) => q.push(" and s.namespace = ").bind(namespace),
            None => q,
        },
        // Without a namespace they are counted already.
        "runs_beside" => q.push(match scope.namespace {
            Some(_) => "(select count(*) from {workflow_runs})",
            None => "null",
        }),
        "and_ns_x" => match scope.namespace {
            Some(namespace) => q
                .push(
                    " and exists (select 1 from {workflow_runs} nr \
                     where nr.id = workflow_run_id and nr.namespace = ",
                )
                .bind(namespace)
                .push(")"),
            None => q,
        },
        // An attempt names a run of its own.
        "and_ns_a" => match scope.namespace {
            Some(namespace) => q
                .push(
                    " and exists (select 1 from {workflow_runs} ar \
                     where ar.id = a.workflow_run_id and ar.namespace = ",
                )
                .bind(namespace)
                .push(")"),
            None => q,
        },
        word => {
            let dialect = q.dialect();
            q.push(spelling(dialect, word))
        }
    };
}

/// Greatest for the run that is first by this number, `sort_timestamp`, `created_at` and `id`, all
/// descending: nulls come first in PostgreSQL's descending order and last in that of the others.
macro_rules! record {
    ($dialect:expr, $number:literal) => {
        $dialect.pick(
            concat!(
                "concat(substr('0000000000000000000' || ",
                $number,
                ", -19), '!', sort_timestamp, '!', created_at, '!', id)"
            ),
            concat!(
                "(lpad(",
                $number,
                "::text, 19, '0') || '!' || coalesce(sort_timestamp::text, '~') || '!' || \
                 coalesce(created_at::text, '~') || '!' || id) collate \"C\""
            ),
            concat!(
                "cast(concat(lpad(",
                $number,
                ", 19, '0'), '!', coalesce(sort_timestamp, ''), '!', coalesce(created_at, ''), '!', id) as binary)"
            ),
        )
    };
}

/// What the databases write differently.
fn spelling(dialect: Dialect, word: &str) -> &'static str {
    match word {
        "integer" => dialect.pick("integer", "bigint", "signed"),
        "same" => dialect.pick(" is ", " is not distinct from ", " <=> "),
        // Keeps SQLite from an index on a column that nearly all rows share, and from trying at
        // every row whether the text of a time is a number.
        "plain" => dialect.pick("+", "", ""),
        // `:list(…:list_end` is all values that are not null, one after the other: not on MySQL,
        // which would cut the text;
        "list" => dialect.pick("group_concat", "string_agg", ""),
        "list_end" => dialect.pick(", '\u{1e}')", ", '\u{1e}')", ""),
        // `:join(… :glue …)` one text of several.
        "join" => dialect.pick("concat", "", "concat"),
        "glue" => dialect.pick(",", "||", ","),
        "as_text" => dialect.pick("", "::text", ""),
        "longest_run" => record!(dialect, "duration_ms"),
        "troubled_run" => record!(dialect, "exception_count"),
        // PostgreSQL counts the hours since 1970: to write out a time takes it longer.
        "closed_hour" => dialect.pick(
            "substr(closed_at, 1, 13)",
            "floor(date_part('epoch', closed_at) / 3600)::text",
            "substr(closed_at, 1, 13)",
        ),
        // MySQL compares words by its collation: nothing is gained there.
        "plainly_completed" => {
            const WORDS: &str =
                "status = 'completed' and status_bucket = 'completed' and liveness_state = 'closed'";
            dialect.pick(WORDS, WORDS, "1 = 0")
        }
        "local" => dialect.pick(
            "(x.activity_options like '%local%' and case when json_valid(x.activity_options) \
              then json_extract(x.activity_options, '$.execution_mode') end = 'local')",
            "(x.activity_options ->> 'execution_mode' = 'local')",
            "(x.activity_options like '%local%' and case when json_valid(x.activity_options) \
              then json_unquote(json_extract(x.activity_options, '$.execution_mode')) end = 'local')",
        ),
        word => unreachable!("a template names {word}"),
    }
}
