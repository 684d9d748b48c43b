//! From moments to places: linear where things happen, folded where nothing does.

use chrono::{DateTime, TimeDelta, Utc};

/// How wide folds are drawn, all together and each at most, and how many there may be.
const FOLDED: f64 = 24.0;
const WIDEST: f64 = 10.0;
const MOST: usize = 4;
/// A stretch is folded when it takes up more than this share of what is not folded yet, and while
/// what is done takes up less than the other.
const LONG: f64 = 0.2;
const READABLE: f64 = 0.2;
/// Shorter stretches are never folded, in seconds.
const SHORT: f64 = 10.0;
/// What is left unfolded is never less, in seconds: milliseconds between two events are nobody's
/// question.
const LEAST: f64 = 5.0;
/// The share of the drawing that work must come to take up, or folding shows nothing. Pauses
/// shorter than that are no pauses of it: a burst of many short things is work from its first to
/// its last.
const SEEN: f64 = 0.01;
/// How much of a stretch stays unfolded at its ends, so that what ends and begins there is seen:
/// more after what came before it, where a try ahead is drawn.
const AFTER: f64 = 0.06;
const BEFORE: f64 = 0.03;
/// Room left free at both ends.
const MARGIN: f64 = 2.4;

#[derive(Clone, Debug, PartialEq)]
pub struct Scale {
    from: DateTime<Utc>,
    to: DateTime<Utc>,
    /// Idle stretches, in time's order.
    folds: Vec<(DateTime<Utc>, DateTime<Utc>)>,
    /// How wide each of them is drawn.
    fold: f64,
    /// Places per second outside the folds.
    per_second: f64,
}

impl Scale {
    /// `busy` are the stretches in which something was done, moments among them; `tail` is room
    /// to leave after the end.
    pub fn new(
        from: DateTime<Utc>,
        to: DateTime<Utc>,
        tail: f64,
        busy: &mut Vec<(DateTime<Utc>, DateTime<Utc>)>,
    ) -> Self {
        // A stored time may lie at the end of the calendar.
        let least = from.checked_add_signed(TimeDelta::milliseconds(1));
        let to = to.max(least.unwrap_or(from));
        let folds = idle(from, to, busy);
        let folded: f64 = folds.iter().map(|(a, b)| seconds(*b - *a)).sum();
        let open = (seconds(to - from) - folded).max(f64::MIN_POSITIVE);
        let fold = (FOLDED / as_f64(folds.len())).min(WIDEST);
        let room = 100.0 - tail - 2.0 * MARGIN - fold * as_f64(folds.len());
        Self {
            from,
            to,
            folds,
            fold,
            per_second: room / open,
        }
    }

    /// Where a moment is, from 0 to 100.
    pub fn place(&self, at: DateTime<Utc>) -> f64 {
        let at = at.clamp(self.from, self.to);
        let mut place = MARGIN;
        let mut since = self.from;
        for (start, end) in &self.folds {
            if at <= *start {
                break;
            }
            place += seconds(*start - since) * self.per_second;
            if at < *end {
                return place + self.fold * seconds(at - *start) / seconds(*end - *start);
            }
            place += self.fold;
            since = *end;
        }
        place + seconds(at - since) * self.per_second
    }

    /// The moment at a place.
    pub fn moment(&self, place: f64) -> DateTime<Utc> {
        let mut left = (place - MARGIN).max(0.0);
        let mut since = self.from;
        for (start, end) in &self.folds {
            let before = seconds(*start - since) * self.per_second;
            if left <= before {
                break;
            }
            left -= before;
            if left < self.fold {
                let part = seconds(*end - *start) * left / self.fold;
                return *start + TimeDelta::milliseconds(to_ms(part));
            }
            left -= self.fold;
            since = *end;
        }
        let part = TimeDelta::milliseconds(to_ms(left / self.per_second));
        since
            .checked_add_signed(part)
            .unwrap_or(self.to)
            .min(self.to)
    }

    /// Where a column begins, of so many from the first moment to the last.
    pub fn along(&self, column: usize, columns: usize) -> f64 {
        let (from, to) = (self.place(self.from), self.place(self.to));
        from + (to - from) * as_f64(column) / as_f64(columns)
    }

    /// In which of so many columns a moment is.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of few columns"
    )]
    pub fn column(&self, at: DateTime<Utc>, columns: usize) -> usize {
        let (from, to) = (self.place(self.from), self.place(self.to));
        let share = (self.place(at) - from) / (to - from);
        ((share * as_f64(columns)) as usize).min(columns - 1)
    }

    /// Whether any of a stretch is drawn.
    pub fn shows(&self, from: DateTime<Utc>, to: DateTime<Utc>) -> bool {
        to >= self.from && from <= self.to
    }

    /// The widest part of a stretch that no fold covers: where it begins and ends.
    pub fn widest(&self, from: DateTime<Utc>, to: DateTime<Utc>) -> (f64, f64) {
        let mut pieces = vec![(from, to)];
        for (start, end) in &self.folds {
            pieces = pieces
                .into_iter()
                .flat_map(|(a, b)| {
                    if b <= *start || a >= *end {
                        vec![(a, b)]
                    } else {
                        vec![(a, (*start).max(a)), ((*end).min(b), b)]
                    }
                })
                .collect();
        }
        pieces
            .into_iter()
            .map(|(a, b)| (self.place(a), self.place(b)))
            .max_by(|(a, b), (c, d)| (b - a).total_cmp(&(d - c)))
            .unwrap_or_default()
    }

    pub fn folds(&self) -> &[(DateTime<Utc>, DateTime<Utc>)] {
        &self.folds
    }

    pub fn is_folded(&self, at: DateTime<Utc>) -> bool {
        self.folds.iter().any(|(a, b)| *a < at && at < *b)
    }

    /// Round moments, at most `most`, counted from `origin`, and how far they are apart.
    pub fn ticks(&self, origin: DateTime<Utc>, most: usize) -> (Vec<DateTime<Utc>>, TimeDelta) {
        let room = 100.0 / as_f64(most.max(1));
        let step = STEPS
            .iter()
            .map(|ms| TimeDelta::milliseconds(*ms))
            .find(|step| seconds(*step) * self.per_second >= room)
            .unwrap_or(TimeDelta::days(365));
        let mut ticks = Vec::new();
        // From the start of each stretch between folds, so that a long fold costs no steps.
        let starts = std::iter::once(self.from).chain(self.folds.iter().map(|(_, end)| *end));
        let ends = self
            .folds
            .iter()
            .map(|(start, _)| *start)
            .chain(std::iter::once(self.to));
        for (start, end) in starts.zip(ends) {
            let past = (start - origin).num_milliseconds();
            let step_ms = step.num_milliseconds().max(1);
            let first = past.div_euclid(step_ms) * step_ms
                + if past.rem_euclid(step_ms) == 0 {
                    0
                } else {
                    step_ms
                };
            let mut next = origin.checked_add_signed(TimeDelta::milliseconds(first));
            while let Some(at) = next
                && at <= end
                && ticks.len() <= 4 * most
            {
                ticks.push(at);
                next = at.checked_add_signed(step);
            }
        }
        (ticks, step)
    }
}

const STEPS: [i64; 31] = [
    1,
    2,
    5,
    10,
    20,
    50,
    100,
    200,
    500,
    1_000,
    2_000,
    5_000,
    10_000,
    15_000,
    30_000,
    60_000,
    120_000,
    300_000,
    600_000,
    900_000,
    1_800_000,
    3_600_000,
    7_200_000,
    10_800_000,
    21_600_000,
    43_200_000,
    86_400_000,
    172_800_000,
    604_800_000,
    2_592_000_000,
    7_776_000_000,
];

/// The stretches to fold: the longest in which nothing is done, until what is done can be read.
/// None where nothing is done at all, or too little to be read however much is folded.
fn idle(
    from: DateTime<Utc>,
    to: DateTime<Utc>,
    busy: &mut Vec<(DateTime<Utc>, DateTime<Utc>)>,
) -> Vec<(DateTime<Utc>, DateTime<Utc>)> {
    busy.push((from, from));
    busy.push((to, to));
    busy.retain(|(start, end)| *end >= from && *start <= to);
    busy.sort_unstable();
    let mut gaps = Vec::new();
    let mut until = from;
    for (start, end) in busy.iter() {
        if *start > until {
            gaps.push((until, (*start).min(to)));
        }
        until = until.max(*end);
    }
    let mut left = seconds(to - from);
    let idle: f64 = gaps.iter().map(|(start, end)| seconds(*end - *start)).sum();
    let done = left - idle;
    gaps.sort_by_key(|(start, end)| std::cmp::Reverse(*end - *start));
    let mut folds = Vec::new();
    for &(start, end) in gaps.iter().take(MOST) {
        let length = seconds(end - start);
        if length < SHORT || length < LONG * left || done >= READABLE * left {
            break;
        }
        folds.push((start, end));
        left -= length;
    }
    let seen = SEEN * left.max(LEAST);
    let unseen = gaps[folds.len()..]
        .iter()
        .map(|(start, end)| seconds(*end - *start))
        .filter(|length| *length <= seen);
    if done + unseen.sum::<f64>() < seen {
        return Vec::new();
    }
    let missing = (LEAST - left).max(0.0) / as_f64(folds.len());
    let left = left.max(LEAST);
    for (start, end) in &mut folds {
        let length = seconds(*end - *start);
        let edge = |share: f64| {
            let wanted = (left * share).min(length * 0.1);
            let given_back = missing * share / (AFTER + BEFORE);
            TimeDelta::milliseconds(to_ms(wanted.max(given_back).min(length * 0.3)))
        };
        *start += edge(AFTER);
        *end -= edge(BEFORE);
    }
    folds.sort_unstable();
    folds
}

fn seconds(length: TimeDelta) -> f64 {
    length.as_seconds_f64()
}

#[expect(clippy::cast_precision_loss, reason = "a handful")]
fn as_f64(n: usize) -> f64 {
    n as f64
}

#[expect(clippy::cast_possible_truncation, reason = "rounding is wanted")]
fn to_ms(seconds: f64) -> i64 {
    (seconds * 1_000.0) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_794_787_000 + seconds, 0).unwrap()
    }

    fn scale(busy: &[(i64, i64)], to: i64) -> Scale {
        let mut busy = busy.iter().map(|(a, b)| (at(*a), at(*b))).collect();
        Scale::new(at(0), at(to), 0.0, &mut busy)
    }

    #[test]
    fn a_long_stretch_of_nothing_is_folded() {
        let scale = scale(&[(0, 5), (6, 12)], 3_600);
        assert_eq!(scale.folds().len(), 1);
        let (start, end) = scale.folds()[0];
        assert!(start >= at(12) && start < at(14), "{start}");
        assert!(end <= at(3_600) && end > at(3_590), "{end}");
        // What happened takes up most of the drawing.
        assert!(scale.place(at(12)) > 80.0, "{}", scale.place(at(12)));
    }

    #[test]
    fn a_label_finds_the_part_no_fold_covers() {
        let scale = scale(&[(0, 5), (6, 12)], 3_600);
        let (a, b) = scale.widest(at(10), at(3_600));
        assert!(a < b && b < scale.place(at(1_800)), "{a} {b}");
    }

    #[test]
    fn work_is_not_folded_however_long_it_takes() {
        assert_eq!(scale(&[(0, 3_600)], 3_600).folds(), []);
    }

    #[test]
    fn folding_stops_when_the_rest_can_be_read() {
        // A pause as long as the work beside it stays.
        assert_eq!(scale(&[(0, 30), (60, 90)], 3_600).folds().len(), 1);
    }

    #[test]
    fn a_wait_without_work_beside_it_is_drawn_as_long_as_it_was() {
        assert_eq!(scale(&[(0, 0)], 86_400).folds(), []);
        assert_eq!(scale(&[(0, 0), (5, 5)], 86_400).folds(), []);
        // Work that no fold can make visible is no reason either.
        let days: Vec<(i64, i64)> = (0..40).map(|day| (day * 86_400, day * 86_400)).collect();
        let with_work: Vec<(i64, i64)> = days.into_iter().chain([(7, 8)]).collect();
        assert_eq!(scale(&with_work, 40 * 86_400).folds(), []);
    }

    #[test]
    fn a_burst_of_many_short_things_is_work() {
        // A thousand of 40 milliseconds each in 42 minutes, then 26 days of nothing.
        let start = |n: i32| at(0) + TimeDelta::milliseconds(2_520) * n;
        let mut busy: Vec<_> = (0..1_000)
            .map(|n| (start(n), start(n) + TimeDelta::milliseconds(40)))
            .collect();
        let scale = Scale::new(at(0), at(26 * 86_400), 0.0, &mut busy);
        assert_eq!(scale.folds().len(), 1);
        assert!(scale.place(at(2_520)) > 70.0, "{}", scale.place(at(2_520)));
    }

    #[test]
    fn some_seconds_always_stay_unfolded() {
        let work = [at(0), at(0) + TimeDelta::milliseconds(600)];
        let mut busy = vec![(work[0], work[1]), (at(3_600), at(3_600))];
        let scale = Scale::new(at(0), at(3_600), 0.0, &mut busy);
        assert_eq!(scale.folds().len(), 1);
        let folded: f64 = scale.folds().iter().map(|(a, b)| seconds(*b - *a)).sum();
        assert!(3_600.0 - folded >= LEAST - 0.01, "{folded}");
        let (_, step) = scale.ticks(at(0), 6);
        assert!(step >= TimeDelta::milliseconds(500), "{step}");
        assert!(scale.place(work[1]) - scale.place(work[0]) > 5.0);
    }

    #[test]
    fn places_grow_with_time_and_stay_inside() {
        let scale = scale(&[(0, 5), (400, 410), (4_000, 4_000)], 90_000);
        let mut last = 0.0;
        for second in (0..=90_000).step_by(7) {
            let place = scale.place(at(second));
            assert!(place >= last && place <= 100.0, "{second}: {place}");
            last = place;
        }
        assert!(scale.place(at(-5)) >= 0.0);
    }

    #[test]
    fn a_place_leads_back_to_its_moment() {
        let scale = scale(&[(0, 5), (400, 410), (4_000, 4_000)], 90_000);
        assert!(!scale.folds().is_empty());
        for second in (0..=90_000).step_by(997) {
            let back = scale.moment(scale.place(at(second)));
            assert!(
                (back - at(second)).abs() < TimeDelta::seconds(1),
                "{second}: {back}"
            );
        }
    }

    #[test]
    fn ticks_are_round_and_few() {
        let scale = scale(&[(0, 47)], 47);
        let (ticks, _) = scale.ticks(at(0), 6);
        let seconds: Vec<i64> = ticks
            .iter()
            .map(|tick| (*tick - at(0)).num_seconds())
            .collect();
        assert_eq!(seconds, [0, 10, 20, 30, 40]);
    }
}
