//! The week's runs and those that are still open, of `workflow_run_summaries`: no index knows when
//! a run closed or what state it is in.
//!
//! The database does not group them, it lists them: sorting or hashing them by type, status and
//! hour costs it several times what the pass over the table does.

use std::collections::{BTreeMap, HashMap};

use super::counted;
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
}

#[derive(Debug, Default, PartialEq)]
pub(super) struct Week {
    pub hours: Vec<HourGroup>,
    pub closed: Vec<ClosedGroup>,
    /// The ten busiest.
    pub types: Vec<TypeGroup>,
    pub rare: Rare,
    /// Those of them that are open: what a list of them looks at.
    pub open: Rare,
}

/// The runs listed. Those that closed are the many, and the engine calls the state of all of them
/// `closed`.
macro_rules! matters {
    () => {
        ":plain(closed_at) >= :week or :plain(created_at) >= :week or liveness_state <> 'closed'"
    };
}

/// One run as [`Entry`] takes it apart.
macro_rules! entry {
    () => {
        ":join(case when :plain(created_at) >= :week then '1' else '0' end \
         :glue case when :plain(closed_at) >= :hour then '3' when :plain(closed_at) >= :day then '2' \
           when :plain(closed_at) >= :week then '1' else '0' end \
         :glue coalesce(:closed_hour, '') \
         :glue '\u{1f}' :glue coalesce(duration_ms:as_text, '') \
         :glue '\u{1f}' :glue status \
         :glue '\u{1f}' :glue status_bucket \
         :glue case when liveness_state <> 'closed' then :join('\u{1f}' :glue liveness_state :glue '\u{1f}' \
           :glue coalesce(case when liveness_state = 'repair_needed' then coalesce(updated_at, started_at) \
             else coalesce(wait_started_at, next_task_at) end:as_text, '')) else '\u{1f}\u{1f}' end \
         :glue '\u{1f}' :glue workflow_type)"
    };
}
pub(super) use {entry, matters};

/// What is asked of one run.
#[derive(Clone, Copy, Debug)]
struct Entry<'e> {
    /// Within the week.
    created: bool,
    /// Within the hour: 3, the day: 2, the week: 1.
    closed: u8,
    hour: &'e str,
    duration_ms: Option<i64>,
    status: &'e str,
    status_bucket: &'e str,
    /// Nothing where it is closed.
    liveness_state: &'e str,
    /// Since when it needs repair, or waits; nothing where that is not known.
    since: &'e str,
    workflow_type: &'e str,
}

impl<'e> Entry<'e> {
    fn of(entry: &'e str) -> Option<Self> {
        let mut fields = entry.splitn(7, '\u{1f}');
        let (when, hour) = fields.next()?.split_at_checked(2)?;
        let [created, closed] = when.as_bytes() else {
            return None;
        };
        Some(Self {
            created: *created == b'1',
            closed: closed.wrapping_sub(b'0'),
            hour,
            duration_ms: fields.next()?.parse().ok(),
            status: fields.next()?,
            status_bucket: fields.next()?,
            liveness_state: fields.next()?,
            since: fields.next()?,
            workflow_type: fields.next()?,
        })
    }
}

impl Week {
    pub(super) async fn of(snapshot: &Snapshot, lists: Vec<String>) -> Self {
        let dialect = snapshot.dialect();
        // A busy week has hundreds of thousands of runs: too long for a thread others wait for.
        let sums = tokio::task::spawn_blocking(move || Sums::of(&lists, dialect));
        let sums = sums
            .await
            .unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
        sums.week(|text| snapshot.stored_time(text).map(Stamp))
    }
}

/// The entries added up by what each number asks for. Times are as they are stored, where the
/// earlier text is the earlier time.
#[derive(Debug, Default)]
struct Sums {
    /// By hour and bucket.
    hours: BTreeMap<(String, String), i64>,
    closed: Vec<ClosedGroup>,
    types: Vec<TypeGroup>,
    rare: Troubled,
    open: Troubled,
}

#[derive(Debug, Default)]
struct Troubled {
    counts: Rare,
    oldest_repair_needed: Option<String>,
    oldest_blocked: Option<String>,
}

impl Sums {
    fn of(lists: &[String], dialect: Dialect) -> Self {
        let mut sums = Self::default();
        let mut closed: HashMap<_, ClosedGroup> = HashMap::new();
        let mut hours: HashMap<_, i64> = HashMap::new();
        let mut types: HashMap<&str, OfType> = HashMap::new();
        let entries = lists.iter().flat_map(|list| list.split('\u{1e}'));
        for entry in entries.filter_map(Entry::of) {
            if entry.closed > 0 {
                let group = closed.entry((entry.status, entry.status_bucket));
                let group = group.or_default();
                group.past_week += 1;
                group.past_day += i64::from(entry.closed >= 2);
                group.past_hour += i64::from(entry.closed >= 3);
                *hours.entry((entry.hour, entry.status_bucket)).or_default() += 1;
            }
            if entry.created {
                types.entry(entry.workflow_type).or_default().add(&entry);
            }
            if !entry.liveness_state.is_empty() {
                sums.rare.add(&entry);
                if entry.status_bucket == "running" {
                    sums.open.add(&entry);
                }
            }
        }
        for ((status, bucket), group) in closed {
            sums.closed.push(ClosedGroup {
                status: Some(status.to_owned()),
                status_bucket: Some(bucket.to_owned()),
                ..group
            });
        }
        for ((hour, bucket), runs) in hours {
            let key = (format!("{hour}:00:00"), bucket.to_owned());
            sums.hours.insert(key, runs);
        }
        sums.types = busiest(types, dialect);
        sums
    }

    fn week(self, time: impl Fn(&str) -> Option<Stamp>) -> Week {
        let hours = self.hours.into_iter();
        Week {
            hours: hours
                .map(|((hour, bucket), runs)| HourGroup {
                    hour: time(&hour),
                    status_bucket: Some(bucket),
                    runs,
                })
                .collect(),
            closed: self.closed,
            types: self.types,
            rare: self.rare.rare(&time),
            open: self.open.rare(&time),
        }
    }
}

impl Troubled {
    fn add(&mut self, entry: &Entry<'_>) {
        match entry.liveness_state {
            "repair_needed" => {
                self.counts.repair_needed += 1;
                earliest(&mut self.oldest_repair_needed, entry.since);
            }
            "workflow_task_claim_failed"
            | "activity_task_claim_failed"
            | "timer_task_claim_failed" => self.counts.claim_failed += 1,
            "workflow_task_waiting_for_compatible_worker"
            | "activity_task_waiting_for_compatible_worker"
            | "timer_task_waiting_for_compatible_worker" => {
                self.counts.compatibility_blocked += 1;
                self.counts.compatibility_blocked_without_time += i64::from(entry.since.is_empty());
                earliest(&mut self.oldest_blocked, entry.since);
            }
            _ => {}
        }
    }

    fn rare(self, time: impl Fn(&str) -> Option<Stamp>) -> Rare {
        let at = |text: Option<String>| time(&text?);
        Rare {
            oldest_repair_needed_at: at(self.oldest_repair_needed),
            oldest_compatibility_blocked_started_at: at(self.oldest_blocked),
            ..self.counts
        }
    }
}

fn earliest(kept: &mut Option<String>, since: &str) {
    if !since.is_empty() && kept.as_deref().is_none_or(|kept| since < kept) {
        *kept = Some(since.to_owned());
    }
}

/// Runs of one type, made within the week, and how long those took that completed.
#[derive(Debug, Default)]
struct OfType {
    counts: TypeGroup,
    durations: Vec<i64>,
}

impl OfType {
    fn add(&mut self, entry: &Entry<'_>) {
        self.counts.total_runs += 1;
        match entry.status {
            "completed" => {
                self.counts.completed += 1;
                self.durations.extend(entry.duration_ms);
            }
            "failed" => self.counts.failed += 1,
            "cancelled" => self.counts.cancelled += 1,
            "terminated" => self.counts.terminated += 1,
            _ => {}
        }
    }

    fn merge(&mut self, other: Self) {
        self.counts.total_runs += other.counts.total_runs;
        self.counts.completed += other.counts.completed;
        self.counts.failed += other.counts.failed;
        self.counts.cancelled += other.counts.cancelled;
        self.counts.terminated += other.counts.terminated;
        self.durations.extend(other.durations);
    }
}

fn busiest(found: HashMap<&str, OfType>, dialect: Dialect) -> Vec<TypeGroup> {
    let mut merged: BTreeMap<String, OfType> = BTreeMap::new();
    for (name, of_type) in BTreeMap::from_iter(found) {
        // Two spellings are one type to a database that compares without case.
        let key = match dialect {
            Dialect::MySql => name.to_lowercase(),
            Dialect::Sqlite | Dialect::Postgres => name.to_owned(),
        };
        let kept = merged.entry(key).or_default();
        kept.counts
            .workflow_type
            .get_or_insert_with(|| name.to_owned());
        kept.merge(of_type);
    }
    let mut types: Vec<TypeGroup> = merged
        .into_values()
        .map(|mut of_type| TypeGroup {
            median_duration_ms: upper_median(&mut of_type.durations),
            ..of_type.counts
        })
        .collect();
    // Of the same size, in the same order on every database.
    types.sort_by(|a, b| (b.total_runs, &b.workflow_type).cmp(&(a.total_runs, &a.workflow_type)));
    types.truncate(TYPES);
    types
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

    /// Created and closed, duration, status and bucket, state and since, type.
    fn week(dialect: Dialect, entries: &[[&str; 7]]) -> Week {
        let entries: Vec<String> = entries.iter().map(|entry| entry.join("\u{1f}")).collect();
        let at = |text: &str| {
            Some(Stamp(
                format!("{}Z", text.replace(' ', "T")).parse().unwrap(),
            ))
        };
        Sums::of(&[entries.join("\u{1e}")], dialect).week(at)
    }

    fn made<'t>(workflow_type: &'t str, status: &'t str, duration: &'t str) -> [&'t str; 7] {
        ["10", duration, status, status, "", "", workflow_type]
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
    fn nothing_listed_is_nothing() {
        assert_eq!(
            Sums::of(&[], Dialect::Sqlite).week(|_| None),
            Week::default()
        );
        assert_eq!(
            Sums::of(&[String::new()], Dialect::Sqlite).week(|_| None),
            Week::default()
        );
    }

    #[test]
    fn runs_of_one_type_are_one_type() {
        let runs = [
            made("orders", "completed", "30"),
            made("orders", "completed", "10"),
            made("orders", "completed", "20"),
            made("orders", "failed", "5"),
            made("Orders\u{1f}x", "completed", "1"),
        ];
        let sqlite = week(Dialect::Sqlite, &runs);
        assert_eq!(sqlite.types.len(), 2);
        let orders = &sqlite.types[0];
        assert_eq!(
            (orders.total_runs, orders.completed, orders.failed),
            (4, 3, 1)
        );
        assert_eq!(orders.median_duration_ms, Some(20));
        assert_eq!(
            sqlite.types[1].workflow_type.as_deref(),
            Some("Orders\u{1f}x")
        );
        let spelled = [made("orders", "failed", ""), made("Orders", "failed", "")];
        assert_eq!(week(Dialect::MySql, &spelled).types.len(), 1);
    }

    #[test]
    fn a_run_that_closed_counts_in_its_hour_and_in_every_longer_time() {
        let closed = |when| [when, "1", "cancelled", "failed", "", "", "orders"];
        let week = week(
            Dialect::Postgres,
            &[
                closed("032026-11-15 11"),
                closed("022026-11-15 11"),
                closed("012026-11-09 00"),
                closed("002026-11-01 00"),
            ],
        );
        let counts = &week.closed[..];
        assert_eq!(counts.len(), 1);
        assert_eq!(
            (counts[0].past_hour, counts[0].past_day, counts[0].past_week),
            (1, 2, 3)
        );
        let hours: Vec<_> = week
            .hours
            .iter()
            .map(|group| (group.hour.unwrap().to_string(), group.runs))
            .collect();
        assert_eq!(hours.len(), 2);
        assert_eq!((hours[0].1, hours[1].1), (1, 2));
        assert!(week.types.is_empty());
    }

    #[test]
    fn trouble_counts_wherever_it_is_and_once_more_where_the_run_is_open() {
        let blocked = "timer_task_waiting_for_compatible_worker";
        let run = |bucket, state, since| ["00", "", "running", bucket, state, since, "orders"];
        let week = week(
            Dialect::MySql,
            &[
                run("running", "repair_needed", "2026-11-15 11:00:00.5"),
                run("failed", "repair_needed", "2026-11-15 11:00:00"),
                run("running", blocked, ""),
                run("running", "activity_task_claim_failed", ""),
                run("running", "waiting_for_signal", ""),
            ],
        );
        assert_eq!((week.rare.repair_needed, week.open.repair_needed), (2, 1));
        let oldest = week.rare.oldest_repair_needed_at;
        assert!(oldest < week.open.oldest_repair_needed_at);
        assert_eq!(week.open.claim_failed, 1);
        assert_eq!(week.open.compatibility_blocked, 1);
        assert_eq!(week.open.compatibility_blocked_without_time, 1);
        assert_eq!(week.open.oldest_compatibility_blocked_started_at, None);
    }
}
