//! Which rows are shown, and where each bar stands.

use chrono::{DateTime, Utc};

use super::{
    Bar, Fold, Kind, Label, Line, Mark, Phase, Row, Share, Side, Span, Tick, Timeline, Unit,
    density,
    rows::{choose, key},
    scale::Scale,
};
use crate::run::{fact::Fact, window::Asked};

/// Most ticks of the axis.
const TICKS: usize = 7;
/// Narrowest bar that can still be seen.
const THIN: f64 = 0.35;
/// How wide a try ahead is drawn: nobody knows how long it will take.
const AHEAD: f64 = 2.4;
/// How far apart two of them stand at least.
const APART: f64 = 0.4;

/// What the text of a fact takes, about.
const FACT: usize = 32;

/// What is drawn, and when.
#[derive(Debug)]
pub struct Story {
    pub run: Unit,
    /// In the order they began.
    pub units: Vec<Unit>,
    pub marks: Vec<Mark>,
    pub now: DateTime<Utc>,
}

/// The part of time that is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    pub from: Option<DateTime<Utc>>,
    pub to: Option<DateTime<Utc>>,
}

impl Story {
    /// About what it takes in memory.
    pub fn bytes(&self) -> usize {
        let of_span = |span: &Span| size_of::<Span>() + span.says.len();
        let of_unit = |unit: &Unit| {
            let texts = unit.id.len() + unit.name.len() + unit.family.len() + unit.status.len();
            let facts = unit.facts.len() * (size_of::<Fact>() + FACT);
            size_of::<Unit>() + texts + facts + unit.spans.iter().map(of_span).sum::<usize>()
        };
        self.units.iter().map(of_unit).sum()
    }
}

/// What of a page's address is about the timeline alone.
pub const ASKED: [&str; 5] = ["unit", "group", "units", "from", "to"];

pub fn draw(story: &Story, asked: &Asked, range: Range) -> Timeline {
    let Story {
        run,
        units,
        marks,
        now,
    } = story;
    let begin = run.from().unwrap_or(*now);
    let whole = extent(run, units, marks, begin);
    let beside =
        range.from.is_some_and(|from| from >= whole.1) || range.to.is_some_and(|to| to <= whole.0);
    let range = if beside { Range::default() } else { range };
    let from = range.from.unwrap_or(whole.0).clamp(whole.0, whole.1);
    let to = range.to.unwrap_or(whole.1).clamp(from, whole.1);
    let zoomed = (from, to) != whole;

    let selected = asked.get("unit").map(str::to_owned);
    let seen = |unit: &&Unit| {
        unit.from().is_some_and(|at| at <= to) && unit.to().is_some_and(|at| at >= from)
    };
    let units: Vec<&Unit> = units.iter().filter(|unit| !zoomed || seen(unit)).collect();
    // A group that is not there hides nothing.
    let known = |group: &&str| units.iter().any(|unit| key(unit) == **group);
    let of_group = asked.get("group").filter(known).map(str::to_owned);
    let chosen = choose(units, of_group.as_deref(), selected.as_deref(), asked);
    let nearer = of_group.as_ref().filter(|_| !zoomed);
    let nearer = nearer.and_then(|_| taken_up(&chosen.rows));
    let (from, to) = nearer.unwrap_or((from, to));

    let mut busy: Vec<(DateTime<Utc>, DateTime<Utc>)> = chosen
        .rows
        .iter()
        .flat_map(|(unit, _)| &unit.spans)
        .flat_map(|span| {
            if span.may_fold() {
                [(span.from, span.from), (span.to, span.to)]
            } else {
                [(span.from, span.to); 2]
            }
        })
        .chain(marks.iter().map(|mark| (mark.at, mark.at)))
        .collect();
    let ahead = |unit: &Unit| unit.spans.iter().filter(|span| span.is_try_ahead()).count();
    let most = chosen.rows.iter().map(|(unit, _)| ahead(unit)).max();
    let tail = (0..most.unwrap_or(0)).map(|_| AHEAD + APART).sum();
    let scale = Scale::new(from, to, tail, &mut busy);

    let groups = chosen.rows.iter().filter(|(_, group)| group.is_some());
    let columns = density::columns(groups.count());
    let mut rows = vec![(run.clone(), None)];
    rows.extend(chosen.rows);
    let middle = |(from, to): &(_, _)| f64::midpoint(scale.place(*from), scale.place(*to));
    let crossing: Vec<f64> = marks
        .iter()
        .map(|mark| scale.place(mark.at))
        .chain(scale.folds().iter().map(middle))
        .collect();
    let rows: Vec<Row> = rows
        .into_iter()
        .map(|(mut unit, group)| {
            let attempts = unit.attempts();
            let bars = match group {
                Some(_) => {
                    let bars = density::bars(&unit, &scale, columns);
                    unit.keep_ends();
                    bars
                }
                None => bars(&unit, &scale, &crossing, from, to),
            };
            Row {
                bars,
                selected: selected.as_deref() == Some(&unit.id),
                attempts,
                unit,
                group,
            }
        })
        .collect();
    let (lines, folds, levels) = labels(marks, &scale, *now, from, to);
    let mut kinds: Vec<Kind> = rows.iter().map(|row| row.unit.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let mut phases: Vec<Phase> = Vec::new();
    for bar in rows.iter().flat_map(|row| &row.bars) {
        if !phases.contains(&bar.span.phase) {
            phases.push(bar.span.phase);
        }
    }
    Timeline {
        ticks: ticks(&scale, begin),
        folds,
        lines,
        levels,
        rows,
        window: chosen.window,
        of_group,
        from,
        to,
        zoomed,
        beside,
        kinds,
        phases,
    }
}

/// From the first to the last moment anything is known of.
fn extent(
    run: &Unit,
    units: &[Unit],
    marks: &[Mark],
    begin: DateTime<Utc>,
) -> (DateTime<Utc>, DateTime<Utc>) {
    let spans = || {
        std::iter::once(run)
            .chain(units)
            .flat_map(|unit| &unit.spans)
    };
    let from = spans().map(|span| span.from).min().unwrap_or(begin);
    let to = spans()
        .map(|span| span.to)
        .chain(marks.iter().map(|mark| mark.at))
        .max()
        .unwrap_or(begin);
    (from, to.max(from))
}

/// The time a page of a group takes up: drawn as long as the run, its rows would be slivers.
fn taken_up(rows: &[(Unit, Option<usize>)]) -> Option<(DateTime<Utc>, DateTime<Utc>)> {
    let from = rows.iter().filter_map(|(unit, _)| unit.from()).min()?;
    let to = rows.iter().filter_map(|(unit, _)| unit.to()).max()?;
    (from < to).then_some((from, to))
}

/// `crossing` are the places of what runs down through all rows: lines, and the middles of folds.
fn bars(
    unit: &Unit,
    scale: &Scale,
    crossing: &[f64],
    from: DateTime<Utc>,
    to: DateTime<Utc>,
) -> Vec<Bar> {
    let mut bars = Vec::with_capacity(unit.spans.len());
    let mut ahead = 0.0_f64;
    for span in unit
        .spans
        .iter()
        .filter(|span| span.to >= from && span.from <= to)
    {
        let (mut x, end) = (scale.place(span.from), scale.place(span.to));
        let mut width = (end - x).max(THIN);
        match span.phase {
            _ if span.is_try_ahead() => {
                x = x.max(ahead);
                width = AHEAD;
                ahead = x + AHEAD + APART;
            }
            Phase::Moment | Phase::Due | Phase::Ahead => width = 0.0,
            _ => {}
        }
        let x = x.min(100.0 - width);
        let (left, right) = match span.phase {
            Phase::Ahead => (x, x + width),
            _ => scale.widest(span.from.max(from), span.to.min(to)),
        };
        let (mut label, mut tight) = label(span, right - left);
        let mut middle = f64::midpoint(left, right);
        // A pause that folds cut into pieces still tells how long it is.
        let over = span.phase == Phase::Backoff && label.is_none() && end - x >= BACKOFF;
        if over {
            (label, tight) = (Some(Label::Backoff), true);
            middle = f64::midpoint(x, end);
        }
        if label == Some(Label::Backoff) {
            let (left, right) = if over { (x, end) } else { (left, right) };
            match clear_of(crossing, left, right) {
                Some(free) => middle = free,
                // The fold has its length written already.
                None if over => label = None,
                None => {}
            }
        }
        bars.push(Bar {
            span: span.clone(),
            x: Share(x),
            width: Share(width),
            middle: Share(middle),
            height: height(unit.kind),
            label,
            tight,
            over,
        });
    }
    bars
}

/// Of a bar, in pixels: lower where nobody works in it, or where it is all rows together.
pub(super) fn height(kind: Kind) -> u8 {
    match kind {
        Kind::Run | Kind::Timer | Kind::Signal | Kind::Condition => 8,
        Kind::Activity | Kind::Update | Kind::Child => 14,
    }
}

/// How wide the words on a pause are at the most, as a share of a wide drawing.
const BACKOFF: f64 = 9.0;

/// Where words between two places stand: in the middle, or where a line would strike through them,
/// in the widest part without one; nowhere if they have no room there.
fn clear_of(crossing: &[f64], left: f64, right: f64) -> Option<f64> {
    let middle = f64::midpoint(left, right);
    let mut edges: Vec<f64> = crossing
        .iter()
        .copied()
        .filter(|place| (left..=right).contains(place))
        .collect();
    if edges
        .iter()
        .all(|place| (*place - middle).abs() >= BACKOFF / 2.0)
    {
        return Some(middle);
    }
    edges.extend([left, right]);
    edges.sort_by(f64::total_cmp);
    let part = edges
        .windows(2)
        .max_by(|a, b| (a[1] - a[0]).total_cmp(&(b[1] - b[0])))?;
    (part[1] - part[0] >= BACKOFF).then(|| f64::midpoint(part[0], part[1]))
}

/// What is written on a bar, and whether it has room on a wide drawing only.
fn label(span: &Span, width: f64) -> (Option<Label>, bool) {
    match (span.phase, span.attempt) {
        (Phase::Backoff, _) if width >= BACKOFF => (Some(Label::Backoff), width < 30.0),
        (Phase::Backoff, _) if width >= 5.0 => (Some(Label::Length), true),
        (Phase::Ahead, Some(attempt)) => (Some(Label::Attempt(attempt)), true),
        (Phase::Done | Phase::Failed | Phase::Lost | Phase::Cancelled | Phase::Open, Some(n))
            if width >= 1.6 =>
        {
            (Some(Label::Attempt(n)), width < 6.0)
        }
        _ => (None, false),
    }
}

/// How much of a wide drawing the label of a tick takes, and of a phone's.
const LABEL: f64 = 10.0;
const NARROW: f64 = 28.0;

/// Two stretches around a fold may come so close that their lines are one.
const SAME: f64 = 1.0;

/// Every line of the scale is drawn, or the time beside a missing one would look folded; of the
/// labels, those that have room.
fn ticks(scale: &Scale, origin: DateTime<Utc>) -> Vec<Tick> {
    let (moments, step) = scale.ticks(origin, TICKS);
    let mut ticks: Vec<Tick> = Vec::new();
    for at in moments.into_iter().filter(|at| !scale.is_folded(*at)) {
        let x = Share(scale.place(at));
        if ticks.last().is_some_and(|last| x.0 - last.x.0 < SAME) {
            continue;
        }
        ticks.push(Tick {
            x,
            at,
            elapsed: at - origin,
            step,
            major: ticks.len().is_multiple_of(3),
            wide: None,
            narrow: None,
        });
    }
    let (mut wide, mut narrow) = (0.0, 0.0);
    for tick in &mut ticks {
        tick.wide = beside(tick.x.0, LABEL, &mut wide);
        if tick.major {
            tick.narrow = beside(tick.x.0, NARROW, &mut narrow);
        }
    }
    ticks
}

/// On which side of its line a label stands: to the right, or to the left where the drawing ends;
/// on none where another stands already, up to `taken`.
fn beside(x: f64, width: f64, taken: &mut f64) -> Option<Side> {
    let (side, from) = if x + width <= 100.0 {
        (Side::Right, x)
    } else {
        (Side::Left, x - width)
    };
    (from >= *taken).then(|| {
        *taken = from + width;
        side
    })
}

/// The labels above the rows: each on the first line where it meets no other.
fn labels(
    marks: &[Mark],
    scale: &Scale,
    now: DateTime<Utc>,
    from: DateTime<Utc>,
    to: DateTime<Utc>,
) -> (Vec<Line>, Vec<Fold>, usize) {
    let mut taken: Vec<Vec<(f64, f64)>> = Vec::new();
    let mut level = |start: f64, end: f64| {
        let free = taken
            .iter()
            .position(|line| line.iter().all(|(a, b)| end <= *a || start >= *b));
        let at = free.unwrap_or(taken.len());
        if at == taken.len() {
            taken.push(Vec::new());
        }
        taken[at].push((start, end));
        at
    };
    let folds = scale
        .folds()
        .iter()
        .map(|(start, end)| {
            let (x, right) = (scale.place(*start), scale.place(*end));
            let middle = f64::midpoint(x, right);
            Fold {
                x: Share(x),
                width: Share(right - x),
                middle: Share(middle),
                length: *end - *start,
                ahead: *start >= now,
                level: level(middle - 6.0, middle + 6.0),
            }
        })
        .collect();
    let lines = marks
        .iter()
        .filter(|mark| from <= mark.at && mark.at <= to)
        .map(|mark| {
            let x = scale.place(mark.at);
            let leftward = x > 80.0;
            let level = if leftward {
                level(x - 17.0, x + 0.5)
            } else {
                level(x - 0.5, x + 17.0)
            };
            Line {
                mark: mark.clone(),
                x: Share(x),
                level,
                leftward,
            }
        })
        .collect();
    (lines, folds, taken.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_794_787_000 + seconds, 0).unwrap()
    }

    fn span(phase: Phase, from: i64, to: i64, attempt: Option<i64>) -> Span {
        Span {
            phase,
            from: at(from),
            to: at(to),
            attempt,
            says: String::new(),
            idle: false,
        }
    }

    fn unit(id: &str, name: &str, spans: Vec<Span>) -> Unit {
        Unit {
            id: id.to_owned(),
            kind: Kind::Activity,
            name: name.to_owned(),
            family: name.to_owned(),
            note: None,
            status: "completed".to_owned(),
            mark: None,
            is_open: false,
            failed: spans.iter().any(|span| span.phase == Phase::Failed),
            spans,
            facts: Vec::new(),
            row: None,
            leads_to: None,
        }
    }

    fn drawn(units: Vec<Unit>, query: &str) -> Timeline {
        drawn_in(units, query, Range::default())
    }

    fn drawn_in(units: Vec<Unit>, query: &str, range: Range) -> Timeline {
        let end = units.iter().filter_map(Unit::to).max().unwrap_or(at(0));
        let seconds = (end - at(0)).num_seconds();
        let mut run = unit("run", "order", vec![span(Phase::Done, 0, seconds, None)]);
        run.kind = Kind::Run;
        run.spans[0].idle = true;
        draw(
            &Story {
                run,
                units,
                marks: Vec::new(),
                now: end,
            },
            &Asked::parse(query),
            range,
        )
    }

    #[test]
    fn attempts_are_numbered_and_the_pause_between_them_has_its_length() {
        let timeline = drawn(
            vec![unit(
                "activity-a",
                "charge",
                vec![
                    span(Phase::Failed, 0, 10, Some(1)),
                    span(Phase::Backoff, 10, 40, None),
                    span(Phase::Done, 40, 50, Some(2)),
                ],
            )],
            "",
        );
        let labels: Vec<Label> = timeline.rows[1]
            .bars
            .iter()
            .filter_map(|bar| bar.label)
            .collect();
        assert_eq!(
            labels,
            [Label::Attempt(1), Label::Backoff, Label::Attempt(2)]
        );
        assert_eq!(timeline.rows[1].attempts, 2);
    }

    #[test]
    fn work_that_goes_on_is_never_called_idle() {
        let mut open = unit(
            "activity-a",
            "import",
            vec![span(Phase::Open, 1, 7_200, Some(1))],
        );
        open.is_open = true;
        assert_eq!(drawn(vec![open], "").folds, []);
    }

    #[test]
    fn a_pause_that_is_folded_still_has_its_length_written() {
        let timeline = drawn(
            vec![unit(
                "activity-a",
                "charge",
                vec![
                    span(Phase::Failed, 0, 10, Some(1)),
                    span(Phase::Backoff, 10, 3_600, None),
                    span(Phase::Done, 3_600, 3_610, Some(2)),
                ],
            )],
            "",
        );
        assert_eq!(timeline.folds.len(), 1);
        let pause = &timeline.rows[1].bars[1];
        assert_eq!((pause.label, pause.over), (Some(Label::Backoff), true));
    }

    #[test]
    fn no_line_strikes_through_the_length_of_a_pause() {
        for (what, crossing, expected) in [
            ("no line", &[][..], Some(30.0)),
            ("beside the words", &[22.0], Some(30.0)),
            ("outside the pause", &[50.0], Some(30.0)),
            ("through them, more room behind", &[29.0], Some(34.5)),
            ("through them, more room before", &[31.0], Some(25.5)),
            ("two lines", &[26.0, 29.0], Some(34.5)),
            ("no room on either side", &[25.0, 30.0, 35.0], None),
        ] {
            assert_eq!(clear_of(crossing, 20.0, 40.0), expected, "{what}");
        }
    }

    #[test]
    fn a_range_beside_the_run_shows_all_of_it() {
        let whole = |range| {
            let run = unit("run", "order", vec![span(Phase::Done, 0, 100, None)]);
            let story = Story {
                run,
                units: Vec::new(),
                marks: Vec::new(),
                now: at(100),
            };
            let timeline = draw(&story, &Asked::default(), range);
            (
                timeline.beside,
                timeline.zoomed,
                timeline.to - timeline.from,
            )
        };
        let range = |from, to| Range {
            from: Some(at(from)),
            to: Some(at(to)),
        };
        let seconds = chrono::TimeDelta::seconds;
        assert_eq!(whole(range(20, 40)), (false, true, seconds(20)));
        assert_eq!(whole(range(-50, 40)), (false, true, seconds(40)));
        assert_eq!(whole(range(500, 600)), (true, false, seconds(100)));
        assert_eq!(whole(range(-600, -500)), (true, false, seconds(100)));
    }

    #[test]
    fn tries_ahead_never_stand_on_each_other() {
        let timeline = drawn(
            vec![unit(
                "activity-a",
                "charge",
                (1..=4)
                    .map(|n| span(Phase::Ahead, 50, 50, Some(n)))
                    .collect(),
            )],
            "",
        );
        for pair in timeline.rows[1].bars.windows(2) {
            assert!(pair[0].x.0 + pair[0].width.0 <= pair[1].x.0);
        }
    }

    #[test]
    fn many_units_share_rows_and_a_group_can_be_opened() {
        let many: Vec<Unit> = (0..5_000)
            .map(|n| {
                let phase = if n == 4_321 {
                    Phase::Failed
                } else {
                    Phase::Done
                };
                let name = if n % 2 == 0 { "even" } else { "odd" };
                unit(
                    &format!("activity-{n}"),
                    name,
                    vec![span(phase, n, n + 1, Some(1))],
                )
            })
            .collect();
        let timeline = drawn(many.clone(), "");
        assert!(timeline.rows.len() < 70);
        assert!(
            timeline
                .rows
                .iter()
                .any(|row| row.unit.id == "activity-4321")
        );
        let counted: usize = timeline.rows.iter().filter_map(|row| row.group).sum();
        assert_eq!(counted, 4_999);
        let bars: usize = timeline.rows.iter().map(|row| row.bars.len()).sum();
        assert!(bars < 1_000, "{bars}");

        let group = drawn(many.clone(), "group=activity:odd&units=50");
        assert_eq!(group.rows.len(), 51);
        assert_eq!(group.window.total, 2_500);
        assert_eq!(group.rows[1].unit.id, "activity-101");

        // Its page is drawn as long as it took, and all of it can be told apart.
        assert_eq!((group.from, group.to), (at(101), at(200)));
        assert!(!group.zoomed);
        let (first, last) = (&group.rows[1].bars[0], &group.rows[50].bars[0]);
        assert!(first.x.0 < 5.0 && last.end().0 > 95.0);
        assert!(first.width.0 > THIN);

        let range = Range {
            from: Some(at(0)),
            to: Some(at(2_000)),
        };
        let asked_for = drawn_in(many, "group=activity:odd&units=50", range);
        assert_eq!((asked_for.from, asked_for.to), (at(0), at(2_000)));
    }

    #[test]
    fn many_names_cannot_make_many_rows() {
        let many: Vec<Unit> = (0..1_000)
            .map(|n| {
                unit(
                    &format!("activity-{n}"),
                    &format!("name {n}"),
                    vec![span(Phase::Done, n, n + 1, Some(1))],
                )
            })
            .collect();
        assert!(drawn(many, "").rows.len() <= crate::run::timeline::rows::GROUPS + 2);
    }

    #[test]
    fn every_line_of_the_axis_is_drawn_and_labels_stand_where_they_have_room() {
        type Sided = fn(&Tick) -> Option<Side>;
        for seconds in (1..400).map(|n| n * 7) {
            let scale = Scale::new(at(0), at(seconds), 0.0, &mut vec![(at(0), at(seconds))]);
            let ticks = ticks(&scale, at(0));
            let gaps = ticks.windows(2).map(|pair| pair[1].at - pair[0].at);
            assert!(
                gaps.into_iter().all(|gap| gap == ticks[0].step),
                "{seconds} s"
            );
            for (side, width) in [
                ((|tick| tick.wide) as Sided, LABEL),
                (|tick| tick.narrow, NARROW),
            ] {
                let stands: Vec<(f64, f64)> = ticks
                    .iter()
                    .filter_map(|tick| match side(tick)? {
                        Side::Right => Some((tick.x.0, tick.x.0 + width)),
                        Side::Left => Some((tick.x.0 - width, tick.x.0)),
                    })
                    .collect();
                assert!(!stands.is_empty(), "{seconds} s");
                assert!(
                    stands.iter().all(|(from, to)| *from >= 0.0 && *to <= 100.0),
                    "{seconds} s: {stands:?}"
                );
                assert!(
                    stands.windows(2).all(|pair| pair[0].1 <= pair[1].0),
                    "{seconds} s: {stands:?}"
                );
            }
        }
    }

    #[test]
    fn labels_above_the_rows_never_meet() {
        let marks: Vec<Mark> = (0..4)
            .map(|n| Mark {
                name: "run deadline",
                at: at(100 + n),
                is_now: false,
            })
            .collect();
        let scale = Scale::new(at(0), at(200), 0.0, &mut vec![(at(0), at(200))]);
        let (lines, _, levels) = labels(&marks, &scale, at(100), at(0), at(200));
        assert_eq!(levels, 4);
        let mut seen: Vec<usize> = lines.iter().map(|line| line.level).collect();
        seen.sort_unstable();
        assert_eq!(seen, [0, 1, 2, 3]);
    }
}
