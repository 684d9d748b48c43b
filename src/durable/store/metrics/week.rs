//! The week's runs and those that are still open, of `workflow_run_summaries`: no index knows when
//! a run closed or what state it is in.
//!
//! The database does not group them, it lists them: sorting or hashing them by type, status and
//! hour costs it several times what the pass over the table does.

use std::collections::{BTreeMap, HashMap};

use chrono::DateTime;

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

/// One run as [`Entry`] takes it apart. Nearly all of them completed: their entries leave out the
/// words they share.
macro_rules! entry {
    (@closed $never:literal $week:literal $day:literal $hour:literal) => {
        concat!(
            "case when :plain(closed_at) >= :hour then '",
            $hour,
            "' when :plain(closed_at) >= :day then '",
            $day,
            "' when :plain(closed_at) >= :week then '",
            $week,
            "' else '",
            $never,
            "' end"
        )
    };
    () => {
        concat!(
            ":join(case when :plain(created_at) >= :week then ",
            entry!(@closed "10" "11" "12" "13"),
            " else ",
            entry!(@closed "00" "01" "02" "03"),
            " end \
             :glue coalesce(:closed_hour, '') \
             :glue '\u{1f}' :glue coalesce(duration_ms:as_text, '') \
             :glue case when :plainly_completed then '\u{1d}' \
               else :join('\u{1f}' :glue status \
                 :glue '\u{1f}' :glue status_bucket \
                 :glue case when liveness_state <> 'closed' then :join('\u{1f}' :glue liveness_state :glue '\u{1f}' \
                   :glue coalesce(case when liveness_state = 'repair_needed' then coalesce(updated_at, started_at) \
                     else coalesce(wait_started_at, next_task_at) end:as_text, '')) else '\u{1f}\u{1f}' end \
                 :glue '\u{1f}') end \
             :glue workflow_type)"
        )
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
        let (when, rest) = entry.split_once('\u{1f}')?;
        let (when, hour) = when.split_at_checked(2)?;
        let [created, closed] = when.as_bytes() else {
            return None;
        };
        let (duration, rest) = rest.split_at(rest.find(['\u{1d}', '\u{1f}'])?);
        let completed = Self {
            created: *created == b'1',
            closed: closed.wrapping_sub(b'0'),
            hour,
            duration_ms: duration.parse().ok(),
            status: "completed",
            status_bucket: "completed",
            liveness_state: "",
            since: "",
            workflow_type: &rest[1..],
        };
        if rest.starts_with('\u{1d}') {
            return Some(completed);
        }
        let mut fields = rest[1..].splitn(5, '\u{1f}');
        Some(Self {
            status: fields.next()?,
            status_bucket: fields.next()?,
            liveness_state: fields.next()?,
            since: fields.next()?,
            workflow_type: fields.next()?,
            ..completed
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
        let mut closed: HashMap<_, i64> = HashMap::new();
        let mut types: HashMap<&str, OfType> = HashMap::new();
        for entry in lists.iter().flat_map(|list| entries(list)) {
            let Some(entry) = Entry::of(entry) else {
                continue;
            };
            if entry.closed > 0 {
                let when = (entry.closed, entry.hour);
                let group = closed.entry((when, entry.status, entry.status_bucket));
                *group.or_default() += 1;
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
        let mut by_end: BTreeMap<_, ClosedGroup> = BTreeMap::new();
        for (((closed, hour), status, bucket), runs) in closed {
            let group = by_end.entry((status, bucket)).or_default();
            group.past_week += runs;
            group.past_day += if closed >= 2 { runs } else { 0 };
            group.past_hour += if closed >= 3 { runs } else { 0 };
            let key = (stored_hour(hour, dialect), bucket.to_owned());
            *sums.hours.entry(key).or_default() += runs;
        }
        for ((status, bucket), group) in by_end {
            sums.closed.push(ClosedGroup {
                status: Some(status.to_owned()),
                status_bucket: Some(bucket.to_owned()),
                ..group
            });
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

/// The hour as a stored time.
fn stored_hour(hour: &str, dialect: Dialect) -> String {
    match dialect {
        Dialect::Postgres => hour
            .parse::<i64>()
            .ok()
            .and_then(|since_1970| DateTime::from_timestamp(since_1970.checked_mul(3_600)?, 0))
            .map_or_else(String::new, |hour| hour.naive_utc().to_string()),
        Dialect::Sqlite | Dialect::MySql => format!("{hour}:00:00"),
    }
}

/// The entries of a list, found several times faster than by its characters.
fn entries(text: &str) -> impl Iterator<Item = &str> {
    let ends = memchr::memchr_iter(b'\x1e', text.as_bytes());
    let mut from = 0;
    ends.chain([text.len()]).map(move |until| {
        let part = &text[from..until];
        from = until + 1;
        part
    })
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
        week_of(dialect, &entries)
    }

    fn week_of(dialect: Dialect, entries: &[String]) -> Week {
        let at = |text: &str| {
            let text = format!("{}Z", text.replace(' ', "T"));
            text.parse().ok().map(Stamp)
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
    fn what_completed_is_listed_without_saying_so() {
        for name in ["orders", "orders\u{1f}x\u{1d}y", ""] {
            let short = format!("132026-11-15 11\u{1f}30\u{1d}{name}");
            let done = [
                "132026-11-15 11",
                "30",
                "completed",
                "completed",
                "",
                "",
                name,
            ];
            let week = week(Dialect::Sqlite, &[done]);
            assert_eq!(week_of(Dialect::Sqlite, &[short]), week);
            assert_eq!(week.types[0].workflow_type.as_deref(), Some(name));
            assert_eq!(week.types[0].median_duration_ms, Some(30));
            assert_eq!((week.closed[0].past_hour, week.hours[0].runs), (1, 1));
        }
    }

    #[test]
    fn a_run_that_closed_counts_in_its_hour_and_in_every_longer_time() {
        let closed = |when| [when, "1", "cancelled", "failed", "", "", "orders"];
        let week = week(
            Dialect::Sqlite,
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
    fn an_hour_is_the_same_in_every_spelling() {
        let closed = |when| [when, "1", "failed", "failed", "", "", "orders"];
        let written = week(Dialect::MySql, &[closed("132026-11-15 11")]);
        assert_eq!(week(Dialect::Postgres, &[closed("13498539")]), written);
        let never = week(Dialect::Postgres, &[closed("13Infinity")]);
        assert_eq!((never.hours[0].hour, never.hours[0].runs), (None, 1));
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
