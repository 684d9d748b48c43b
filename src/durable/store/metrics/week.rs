//! The week's runs, the few in a rare state, and those that hold a record: one pass over
//! `workflow_run_summaries`, because no index knows when a run closed or what state it is in.

use std::collections::{BTreeMap, HashMap};

use super::{
    counted,
    sql::{self, Scope},
};
use crate::{
    db::{DbError, Dialect, Snapshot},
    durable::stored::Stamp,
};

/// Types shown, the busiest of the week first.
const TYPES: usize = 10;

counted! {
    /// Runs that closed in one hour of the last week, by bucket.
    HourGroup {
        hour: time,
        status_bucket: text,
        runs: int,
    }

    /// Runs that closed within the week, by how.
    ClosedGroup {
        status: text,
        status_bucket: text,
        past_hour: int,
        past_day: int,
        past_week: int,
    }

    /// One workflow type over the last week.
    TypeGroup {
        workflow_type: text,
        total_runs: int,
        completed: int,
        failed: int,
        cancelled: int,
        terminated: int,
        median_duration_ms: opt_int,
    }

    /// Runs in a state few are in.
    Rare {
        repair_needed: int,
        oldest_repair_needed_at: time,
        claim_failed: int,
        compatibility_blocked: int,
        oldest_compatibility_blocked_started_at: time,
        compatibility_blocked_without_time: int,
    }

    /// Runs of one type that stand alike, and what is asked of them.
    Group {
        workflow_type: text,
        created: int,
        hours: text,
        durations: text,
        longest: text,
        most_exceptions: text,
    }
}

#[derive(Debug, Default)]
pub(super) struct Week {
    pub hours: Vec<HourGroup>,
    pub closed: Vec<ClosedGroup>,
    /// The ten busiest.
    pub types: Vec<TypeGroup>,
    pub rare: Rare,
    /// Those of them that are open: what a list of them looks at.
    pub open: Rare,
    /// Ids of the runs that took longest and that have most exceptions.
    pub longest: Option<String>,
    pub most_exceptions: Option<String>,
}

macro_rules! blocked {
    () => {
        "liveness_state in ('workflow_task_waiting_for_compatible_worker', \
          'activity_task_waiting_for_compatible_worker', 'timer_task_waiting_for_compatible_worker')"
    };
}

/// Grouped by few keys, hours and durations as lists: sorting by the hour as well would cost more
/// than all the rest. Runs that closed are the many, and the engine calls the state of all of
/// them `closed`.
const WEEK: &str = concat!(
    "select workflow_type, status, status_bucket, \
     count(case when created_at >= :week then 1 end) as created, \
     count(case when closed_at >= :week then 1 end) as past_week, \
     count(case when closed_at >= :day then 1 end) as past_day, \
     count(case when closed_at >= :hour then 1 end) as past_hour, \
     :list(case when closed_at >= :week then :closed_hour end:list_end as hours, \
     :list(case when created_at >= :week and status = 'completed' then duration_ms:as_text end:list_end as durations, \
     count(case when liveness_state = 'repair_needed' then 1 end) as repair_needed, \
     min(case when liveness_state = 'repair_needed' then coalesce(updated_at, started_at) end) as oldest_repair_needed_at, \
     count(case when liveness_state in ('workflow_task_claim_failed', 'activity_task_claim_failed', 'timer_task_claim_failed') then 1 end) as claim_failed, \
     count(case when ",
    blocked!(),
    " then 1 end) as compatibility_blocked, \
     min(case when ",
    blocked!(),
    " then coalesce(wait_started_at, next_task_at) end) as oldest_compatibility_blocked_started_at, \
     count(case when ",
    blocked!(),
    " and coalesce(wait_started_at, next_task_at) is null then 1 end) as compatibility_blocked_without_time, \
     max(case when duration_ms = :longest then :record end) as longest, \
     max(case when exception_count = :most then :record end) as most_exceptions \
     from {workflow_run_summaries} \
     where (closed_at >= :week or created_at >= :week or liveness_state <> 'closed' \
       or duration_ms = :longest or exception_count = :most):and_ns \
     group by workflow_type, status, status_bucket",
);

/// Given the longest duration and the highest number of exceptions of any run.
pub(super) async fn week(
    snapshot: &mut Snapshot,
    scope: &Scope<'_>,
    longest: Option<i64>,
    most: Option<i64>,
) -> Result<Week, DbError> {
    let values = [("longest", longest.into()), ("most", most.into())];
    let q = sql::statement_with(snapshot, scope, WEEK, &values);
    let groups = snapshot
        .fetch_as(q, |row| {
            Ok((Group::read(row)?, ClosedGroup::read(row)?, Rare::read(row)?))
        })
        .await?;
    let mut fold = Fold::new(snapshot.dialect());
    for (group, closed, rare) in groups {
        let hours = tally(group.hours.as_deref().unwrap_or_default());
        for (hour, runs) in hours {
            let hour = snapshot.stored_time(hour).map(Stamp);
            fold.add_hour(hour, closed.status_bucket.as_deref(), runs);
        }
        fold.rare.add(&rare);
        if closed.status_bucket.as_deref() == Some("running") {
            fold.open.add(&rare);
        }
        fold.add(group, closed);
    }
    Ok(fold.finish())
}

/// How often each entry stands in a list.
fn tally(list: &str) -> HashMap<&str, i64> {
    let mut tally = HashMap::new();
    for entry in list.split(',').filter(|entry| !entry.is_empty()) {
        *tally.entry(entry).or_default() += 1;
    }
    tally
}

/// Adds groups up by what each number asks for.
struct Fold {
    dialect: Dialect,
    hours: BTreeMap<(Option<Stamp>, Option<String>), i64>,
    closed: Vec<ClosedGroup>,
    types: BTreeMap<String, (TypeGroup, Vec<i64>)>,
    rare: Rare,
    open: Rare,
    longest: Option<String>,
    most_exceptions: Option<String>,
}

impl Fold {
    fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            hours: BTreeMap::new(),
            closed: Vec::new(),
            types: BTreeMap::new(),
            rare: Rare::default(),
            open: Rare::default(),
            longest: None,
            most_exceptions: None,
        }
    }

    fn add_hour(&mut self, hour: Option<Stamp>, bucket: Option<&str>, runs: i64) {
        let key = (hour, bucket.map(str::to_owned));
        *self.hours.entry(key).or_default() += runs;
    }

    fn add(&mut self, mut group: Group, closed: ClosedGroup) {
        // A greater key stands earlier in the engine's order.
        self.longest = self.longest.take().max(group.longest.take());
        self.most_exceptions = self
            .most_exceptions
            .take()
            .max(group.most_exceptions.take());
        if group.created > 0 {
            self.add_type(group, closed.status.as_deref());
        }
        if closed.past_week > 0 {
            self.closed.push(closed);
        }
    }

    fn add_type(&mut self, group: Group, status: Option<&str>) {
        let name = group.workflow_type.unwrap_or_default();
        // Two spellings are one type to a database that compares without case.
        let key = match self.dialect {
            Dialect::MySql => name.to_lowercase(),
            Dialect::Sqlite | Dialect::Postgres => name.clone(),
        };
        let (of_type, durations) = self.types.entry(key).or_default();
        of_type.workflow_type.get_or_insert(name);
        of_type.total_runs += group.created;
        match status {
            Some("completed") => of_type.completed += group.created,
            Some("failed") => of_type.failed += group.created,
            Some("cancelled") => of_type.cancelled += group.created,
            Some("terminated") => of_type.terminated += group.created,
            _ => {}
        }
        let listed = group.durations.unwrap_or_default();
        durations.extend(listed.split(',').filter_map(|ms| ms.parse::<i64>().ok()));
    }

    fn finish(self) -> Week {
        let mut types: Vec<TypeGroup> = self
            .types
            .into_values()
            .map(|(of_type, mut durations)| TypeGroup {
                median_duration_ms: upper_median(&mut durations),
                ..of_type
            })
            .collect();
        // Of the same size, in the same order on every database.
        types.sort_by(|a, b| {
            (b.total_runs, &b.workflow_type).cmp(&(a.total_runs, &a.workflow_type))
        });
        types.truncate(TYPES);
        let id = |record: Option<String>| Some(record?.splitn(3, '!').nth(2)?.to_owned());
        Week {
            hours: self
                .hours
                .into_iter()
                .map(|((hour, status_bucket), runs)| HourGroup {
                    hour,
                    status_bucket,
                    runs,
                })
                .collect(),
            closed: self.closed,
            types,
            rare: self.rare,
            open: self.open,
            longest: id(self.longest),
            most_exceptions: id(self.most_exceptions),
        }
    }
}

impl Rare {
    fn add(&mut self, other: &Self) {
        self.repair_needed += other.repair_needed;
        Stamp::earliest(
            &mut self.oldest_repair_needed_at,
            other.oldest_repair_needed_at,
        );
        self.claim_failed += other.claim_failed;
        self.compatibility_blocked += other.compatibility_blocked;
        Stamp::earliest(
            &mut self.oldest_compatibility_blocked_started_at,
            other.oldest_compatibility_blocked_started_at,
        );
        self.compatibility_blocked_without_time += other.compatibility_blocked_without_time;
    }
}

/// Of an even number the later of the two in the middle, as the engine takes it.
fn upper_median(values: &mut [i64]) -> Option<i64> {
    if values.is_empty() {
        return None;
    }
    let middle = values.len() / 2;
    Some(*values.select_nth_unstable(middle).1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(
        workflow_type: &str,
        status: &str,
        runs: i64,
        durations: &str,
    ) -> (Group, ClosedGroup) {
        let group = Group {
            workflow_type: Some(workflow_type.to_owned()),
            created: runs,
            durations: Some(durations.to_owned()),
            ..Group::default()
        };
        let closed = ClosedGroup {
            status: Some(status.to_owned()),
            past_week: runs,
            ..ClosedGroup::default()
        };
        (group, closed)
    }

    fn folded(dialect: Dialect, groups: impl IntoIterator<Item = (Group, ClosedGroup)>) -> Week {
        let mut fold = Fold::new(dialect);
        for (group, closed) in groups {
            fold.add(group, closed);
        }
        fold.finish()
    }

    #[test]
    fn the_median_is_the_upper_one() {
        for (values, want) in [
            (vec![], None),
            (vec![7], Some(7)),
            (vec![9, 1], Some(9)),
            (vec![5, 1, 9], Some(5)),
            (vec![4, 3, 2, 1], Some(3)),
        ] {
            assert_eq!(upper_median(&mut values.clone()), want, "{values:?}");
        }
    }

    #[test]
    fn a_list_is_counted_by_entry() {
        assert_eq!(tally(""), HashMap::new());
        assert_eq!(tally("a,b,a"), HashMap::from([("a", 2), ("b", 1)]));
    }

    #[test]
    fn groups_of_one_type_are_one_type() {
        let week = folded(
            Dialect::Postgres,
            [
                group("orders", "completed", 2, "30,10"),
                group("orders", "completed", 1, "20"),
                group("orders", "failed", 4, ""),
                group("Orders", "completed", 1, "1"),
            ],
        );
        assert_eq!(week.types.len(), 2);
        let orders = &week.types[0];
        assert_eq!(
            (orders.total_runs, orders.completed, orders.failed),
            (7, 3, 4)
        );
        assert_eq!(orders.median_duration_ms, Some(20));
        let week = folded(
            Dialect::MySql,
            [
                group("orders", "failed", 4, ""),
                group("Orders", "failed", 1, ""),
            ],
        );
        assert_eq!(week.types.len(), 1);
    }

    #[test]
    fn the_record_is_the_greatest_key() {
        let holder = |record: &str| {
            let group = Group {
                longest: Some(record.to_owned()),
                ..Group::default()
            };
            (group, ClosedGroup::default())
        };
        let week = folded(
            Dialect::Sqlite,
            [
                holder("2026-11-15 12:00:00!2026!a"),
                holder("2026-11-15 12:00:00.5!2026!b!c"),
                Default::default(),
            ],
        );
        assert_eq!(week.longest.as_deref(), Some("b!c"));
    }
}
