//! Which index of the engine serves a list, and what is left to check row by row.
//!
//! Every path walks one index of `workflow_run_summaries` in order. Terms the index does not
//! serve are checked inside a window of bounded size; the page says how far it looked. What the
//! overview counts, and nothing else, is looked for in a wider one.

use chrono::{DateTime, Utc};

use super::{
    condition,
    filter::{Filter, Kind, Term, Test},
    page::{ATTENTION_WINDOW, WINDOW},
};
use crate::{
    db::{Dialect, Statement, is_whole_second},
    durable::stored::{RunStatus, StatusBucket},
};

/// The index walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// Primary key.
    RunId,
    /// `(workflow_instance_id)`.
    Instance,
    /// `(business_key)`.
    BusinessKey,
    /// `(namespace, workflow_type, sort_timestamp, id)`.
    NamespaceType,
    /// `(namespace, status_bucket, sort_timestamp, id)`.
    NamespaceBucket,
    /// `(namespace, sort_timestamp, id)`.
    Namespace,
    /// `(status_bucket, started_at)`.
    Bucket,
    /// `(sort_timestamp, id)`.
    Time,
}

impl Path {
    /// The time column the path is ordered by. `started_at` and `sort_timestamp` are the same
    /// moment for every run that has started.
    pub fn key(self) -> &'static str {
        match self {
            Self::Bucket => "started_at",
            _ => "sort_timestamp",
        }
    }

    /// Which of a run's two times that is.
    pub fn key_of<T>(self, started_at: T, sort_timestamp: T) -> T {
        match self {
            Self::Bucket => started_at,
            _ => sort_timestamp,
        }
    }

    /// A lookup of few rows rather than an ordered walk.
    pub fn is_lookup(self) -> bool {
        matches!(self, Self::RunId | Self::Instance | Self::BusinessKey)
    }

    /// The fields the index serves by equality, in index order.
    fn serves(self) -> &'static [&'static str] {
        match self {
            Self::RunId => &["run_id"],
            Self::Instance => &["instance_id"],
            Self::BusinessKey => &["business_key"],
            Self::NamespaceType => &["namespace", "workflow_type"],
            Self::NamespaceBucket => &["namespace", "status_bucket"],
            Self::Namespace => &["namespace"],
            Self::Bucket => &["status_bucket"],
            Self::Time => &[],
        }
    }

    /// The equality columns, for an `order by` that matches the index from its first column:
    /// PostgreSQL needs it to see that `namespace is null` leaves the rest in order.
    pub fn order_prefix(self) -> &'static [&'static str] {
        match self {
            Self::NamespaceType => &["namespace", "workflow_type"],
            Self::NamespaceBucket => &["namespace", "status_bucket"],
            Self::Namespace => &["namespace"],
            Self::Bucket => &["status_bucket"],
            Self::RunId | Self::Instance | Self::BusinessKey | Self::Time => &[],
        }
    }
}

/// Which of the texts a moment may have is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    First,
    Last,
}

/// How one filter is answered.
#[derive(Clone, Debug)]
pub struct Access<'f> {
    pub path: Path,
    /// Served by the index.
    served: Vec<&'f Term>,
    /// The bucket the index is entered with, given or implied by another term.
    pub bucket: Option<StatusBucket>,
    /// The time range, served by the index's time column.
    range: Vec<&'f Term>,
    /// Checked row by row inside the window.
    pub residual: Vec<&'f Term>,
}

impl<'f> Access<'f> {
    pub fn choose(filter: &'f Filter) -> Self {
        let bucket = implied_bucket(filter);
        let has = |name| filter.get(name).is_some();
        let path = if has("run_id") {
            Path::RunId
        } else if has("instance_id") {
            Path::Instance
        } else if has("business_key") {
            Path::BusinessKey
        } else {
            Self::ordered_path(filter, bucket.is_some())
        };
        Self::on(filter, path, bucket)
    }

    /// For a key that too many runs share: the same filter as an ordered, windowed walk.
    pub fn choose_ordered(filter: &'f Filter) -> Self {
        let bucket = implied_bucket(filter);
        Self::on(filter, Self::ordered_path(filter, bucket.is_some()), bucket)
    }

    fn ordered_path(filter: &Filter, bucket: bool) -> Path {
        let has = |name| filter.get(name).is_some();
        match (has("namespace"), has("workflow_type"), bucket) {
            (true, true, _) => Path::NamespaceType,
            (true, false, true) => Path::NamespaceBucket,
            (true, false, false) => Path::Namespace,
            (false, _, true) => Path::Bucket,
            (false, _, false) => Path::Time,
        }
    }

    fn on(filter: &'f Filter, path: Path, bucket: Option<StatusBucket>) -> Self {
        let by_bucket = path.serves().contains(&"status_bucket");
        let mut access = Self {
            path,
            served: Vec::new(),
            bucket: bucket.filter(|_| by_bucket),
            range: Vec::new(),
            residual: Vec::new(),
        };
        for term in &filter.terms {
            let by_index =
                term.field.name != "status_bucket" && path.serves().contains(&term.field.name);
            // `completed` is the one status that is a bucket by itself.
            let is_bucket = term.field.name == "status_bucket"
                || (term.field.name == "status" && term.value == RunStatus::Completed.as_str());
            if by_index {
                access.served.push(term);
            } else if is_bucket
                && access
                    .bucket
                    .as_ref()
                    .is_some_and(|bucket| bucket.as_str() == term.value)
            {
                // Entered with it.
            } else if matches!(term.field.kind, Kind::Within | Kind::From | Kind::To) {
                access.range.push(term);
            } else {
                access.residual.push(term);
            }
        }
        access
    }

    /// Whether rows without a time can match: a time range leaves them out.
    pub fn may_be_untimed(&self) -> bool {
        self.range.is_empty()
    }

    /// How many rows may be checked one by one; none where an index serves every term.
    pub fn window(&self) -> Option<u32> {
        match self.residual.as_slice() {
            [] => None,
            _ if self.is_attention() => Some(ATTENTION_WINDOW),
            _ => Some(WINDOW),
        }
    }

    /// Whether the rows are those the overview counts, with nothing else to check.
    pub fn is_attention(&self) -> bool {
        matches!(self.residual.as_slice(), [term] if term.field.kind == Kind::Attention)
    }

    /// Pushes the conditions the index serves, without the leading `where`. Always at least
    /// one, so that more can follow with `and`.
    pub fn push_served(&self, q: &mut Statement) {
        q.push("1 = 1");
        for term in &self.served {
            q.push(" and ");
            match (term.field.kind, &term.test) {
                (Kind::Exact(column), Test::Null) => q.push(column).push(" is null"),
                (Kind::Exact(column), Test::Text(text)) => q.push(column).push(" = ").bind(text),
                _ => unreachable!("an index serves exact terms only"),
            };
        }
        if let Some(bucket) = &self.bucket {
            q.push(" and status_bucket = ").bind(bucket.as_str());
        }
        self.push_range(q);
    }

    fn push_range(&self, q: &mut Statement) {
        for term in &self.range {
            let Test::At(at) = term.test else {
                unreachable!("a time term holds a time")
            };
            q.push(" and ").push(self.path.key());
            q.push(if term.field.kind == Kind::To {
                " < "
            } else {
                " >= "
            });
            self.bind_first(q, at);
        }
    }

    /// Pushes the terms checked row by row, each with its `and`, on the row `w`.
    pub fn push_residual(&self, q: &mut Statement) {
        for term in &self.residual {
            q.push(" and ");
            condition::push(q, term);
        }
    }

    /// Pushes where a row stands in the path's time column. On SQLite that is a text, of which a
    /// whole second has two: the one the row holds, or where the row is gone the first or the last.
    pub fn push_key_time(&self, q: &mut Statement, at: DateTime<Utc>, id: &str, edge: Edge) {
        if q.dialect() != Dialect::Sqlite || !is_whole_second(at) {
            self.bind_last(q, at);
            return;
        }
        let column = self.path.key();
        q.push("coalesce((select ").push(column);
        q.push(" from {workflow_run_summaries} where id = ")
            .bind(id);
        q.push(" and ").push(column).push(" >= ");
        self.bind_first(q, at);
        q.push(" and ").push(column).push(" <= ");
        self.bind_last(q, at);
        q.push("), ");
        match edge {
            Edge::First => self.bind_first(q, at),
            Edge::Last => self.bind_last(q, at),
        }
        q.push(")");
    }

    /// Binds a moment for the path's time column, in the zone that column is written in.
    fn bind_last(&self, q: &mut Statement, at: DateTime<Utc>) {
        if self.path == Path::Bucket {
            q.bind_time(at)
        } else {
            q.bind_utc(at)
        };
    }

    /// The same moment in the first of its texts.
    fn bind_first(&self, q: &mut Statement, at: DateTime<Utc>) {
        if self.path == Path::Bucket {
            q.bind_time_first(at)
        } else {
            q.bind_utc_first(at)
        };
    }
}

/// The bucket every match must be in: given, or what the engine's own rules say of a status,
/// a wait, a liveness state and a run that needs repair.
fn implied_bucket(filter: &Filter) -> Option<StatusBucket> {
    if let Some(bucket) = filter.value("status_bucket") {
        return Some(bucket.into());
    }
    if let Some(status) = filter.value("status") {
        return RunStatus::from(status).bucket();
    }
    if let Some(Test::Attention(attention, _)) = filter.get("attention").map(|term| &term.test) {
        return Some(attention.bucket());
    }
    let open_only = filter.get("wait_kind").is_some()
        || filter.get("needs_repair").is_some()
        || filter
            .value("liveness_state")
            .is_some_and(|state| state != "closed");
    open_only.then_some(StatusBucket::Running)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(params: &[(&str, &str)]) -> Filter {
        let now = "2026-11-15T12:00:00Z".parse().unwrap();
        let (filter, errors) =
            Filter::parse(params.iter().copied(), &[], now, crate::zone::Zone::UTC);
        assert!(errors.is_empty(), "{errors:?}");
        filter
    }

    #[test]
    fn only_what_the_overview_counts_is_looked_for_further() {
        type Params = &'static [(&'static str, &'static str)];
        let cases: [(Params, Option<u32>); 7] = [
            (&[], None),
            (&[("status_bucket", "running")], None),
            (&[("queue", "q")], Some(WINDOW)),
            (&[("attention", "long_waits")], Some(ATTENTION_WINDOW)),
            (
                &[
                    ("attention", "long_waits"),
                    ("namespace", "a"),
                    ("started", "24h"),
                ],
                Some(ATTENTION_WINDOW),
            ),
            (&[("attention", "long_waits"), ("queue", "q")], Some(WINDOW)),
            (
                &[("attention", "long_waits"), ("needs_repair", "1")],
                Some(WINDOW),
            ),
        ];
        for (params, window) in cases {
            assert_eq!(
                Access::choose(&filter(params)).window(),
                window,
                "{params:?}"
            );
        }
    }

    #[test]
    fn each_filter_walks_the_index_that_serves_it() {
        use Path::{
            Bucket, BusinessKey, Instance, Namespace, NamespaceBucket, NamespaceType, RunId, Time,
        };
        type Case = (
            &'static [(&'static str, &'static str)],
            Path,
            &'static [&'static str],
        );
        let cases: &[Case] = &[
            (&[], Time, &[]),
            (&[("started", "24h")], Time, &[]),
            (&[("namespace", "a")], Namespace, &[]),
            (
                &[("namespace", "(none)"), ("from", "2026-11-01")],
                Namespace,
                &[],
            ),
            (
                &[("namespace", "a"), ("workflow_type", "t")],
                NamespaceType,
                &[],
            ),
            (&[("workflow_type", "t")], Time, &["workflow_type"]),
            (&[("status_bucket", "failed")], Bucket, &[]),
            (&[("status", "completed")], Bucket, &[]),
            (&[("status", "failed")], Bucket, &["status"]),
            (
                &[("status", "failed"), ("namespace", "a")],
                NamespaceBucket,
                &["status"],
            ),
            (&[("wait_kind", "signal")], Bucket, &["wait_kind"]),
            (&[("liveness_state", "closed")], Time, &["liveness_state"]),
            (
                &[("needs_repair", "1"), ("namespace", "a")],
                NamespaceBucket,
                &["needs_repair"],
            ),
            (
                &[
                    ("namespace", "a"),
                    ("workflow_type", "t"),
                    ("status_bucket", "failed"),
                ],
                NamespaceType,
                &["status_bucket"],
            ),
            (
                &[("instance_id", "i"), ("status", "failed")],
                Instance,
                &["status"],
            ),
            (
                &[("run_id", "r"), ("instance_id", "i")],
                RunId,
                &["instance_id"],
            ),
            (&[("business_key", "b")], BusinessKey, &[]),
            (
                &[("status_bucket", "running"), ("status", "failed")],
                Bucket,
                &["status"],
            ),
        ];
        for (params, path, residual) in cases {
            let filter = filter(params);
            let access = Access::choose(&filter);
            let left: Vec<_> = access.residual.iter().map(|term| term.field.name).collect();
            assert_eq!(
                (access.path, left.as_slice()),
                (*path, *residual),
                "{params:?}"
            );
        }
    }
}
