//! How a row that stands for many units is drawn: the more of them at a time, the taller.

use super::{Bar, Phase, Share, Span, Unit, draw::height, scale::Scale};

/// Columns of all such rows together, and of one.
const COLUMNS: usize = 800;
const MOST: usize = 100;
/// How many heights are told apart.
const LEVELS: usize = 4;
/// How much of a column is filled: many short things are no long one.
const FILLED: f64 = 0.7;

/// Into how many columns a row is cut when so many rows are.
pub(super) fn columns(rows: usize) -> usize {
    (COLUMNS / rows.max(1)).min(MOST)
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Column {
    begun: usize,
    /// Being done at some time in it.
    active: usize,
    failed: bool,
}

pub(super) fn bars(unit: &Unit, scale: &Scale, columns: usize) -> Vec<Bar> {
    let cut = cut(unit, scale, columns);
    let most = cut.iter().map(|column| column.active).max().unwrap_or(0);
    let tries = if unit.attempts() > 0 {
        "tries"
    } else {
        "of them"
    };
    let drawn = cut
        .iter()
        .enumerate()
        .filter(|(_, column)| column.active > 0);
    drawn
        .map(|(at, column)| {
            let (x, end) = (scale.along(at, columns), scale.along(at + 1, columns));
            let level = (column.active * LEVELS).div_ceil(most);
            Bar {
                span: Span {
                    phase: if column.failed {
                        Phase::Failed
                    } else {
                        Phase::Done
                    },
                    from: scale.moment(x),
                    to: scale.moment(end),
                    attempt: None,
                    says: format!("{} {tries} begun", column.begun),
                    idle: false,
                },
                x: Share(x),
                width: Share((end - x) * FILLED),
                middle: Share(f64::midpoint(x, end)),
                height: share_of(height(unit.kind), level),
                label: None,
                tight: false,
                over: false,
            }
        })
        .collect()
}

fn cut(unit: &Unit, scale: &Scale, columns: usize) -> Vec<Column> {
    let mut cut = vec![Column::default(); columns];
    // How many more are active from a column on, so that a long span costs no more than a short.
    let mut change = vec![0_i64; columns + 1];
    let done = unit
        .spans
        .iter()
        .filter(|span| !span.phase.is_idle() && scale.shows(span.from, span.to));
    for span in done {
        let from = scale.column(span.from, columns);
        let to = scale.column(span.to, columns);
        cut[from].begun += usize::from(scale.shows(span.from, span.from));
        change[from] += 1;
        change[to + 1] -= 1;
        if span.phase == Phase::Failed {
            cut[to].failed = true;
        }
    }
    let mut active = 0;
    for (column, change) in cut.iter_mut().zip(change) {
        active += change;
        column.active = usize::try_from(active).unwrap_or(0);
    }
    cut
}

/// So many levels of a height, in pixels.
fn share_of(height: u8, level: usize) -> u8 {
    let part = usize::from(height) * (level + 1) / (LEVELS + 1);
    u8::try_from(part.max(2)).unwrap_or(height)
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, TimeDelta, Utc};

    use super::*;
    use crate::run::timeline::Kind;

    fn unit(spans: Vec<Span>) -> Unit {
        Unit {
            id: "group".into(),
            kind: Kind::Activity,
            name: "poll".into(),
            family: "poll".into(),
            note: None,
            status: String::new(),
            mark: None,
            is_open: false,
            failed: false,
            spans,
            facts: Vec::new(),
            row: None,
            leads_to: None,
        }
    }

    #[test]
    fn many_short_things_are_no_long_one_and_more_of_them_stand_taller() {
        let start = DateTime::<Utc>::from_timestamp(1_794_787_000, 0).unwrap();
        let at = |minutes: i64| start + TimeDelta::minutes(minutes);
        let one = |minutes: i64, phase| Span {
            phase,
            from: at(minutes),
            to: at(minutes) + TimeDelta::seconds(1),
            attempt: Some(1),
            says: String::new(),
            idle: false,
        };
        // One every ten minutes, a burst of nine at the start, one of them failed at the end.
        let spans: Vec<Span> = (0..60)
            .map(|n| one(n * 10, Phase::Done))
            .chain((0..8).map(|_| one(0, Phase::Done)))
            .chain([one(600, Phase::Failed), one(300, Phase::Queued)])
            .collect();
        let scale = Scale::new(at(0), at(601), 0.0, &mut vec![(at(0), at(601))]);
        let bars = bars(&unit(spans), &scale, 20);
        assert_eq!(bars.len(), 20);
        assert!(
            bars.windows(2).all(|pair| pair[0].end() < pair[1].x),
            "each stands for itself"
        );
        assert!(bars[0].height > bars[10].height);
        let begun: usize = bars
            .iter()
            .map(|bar| {
                bar.span
                    .says
                    .split(' ')
                    .next()
                    .unwrap()
                    .parse::<usize>()
                    .unwrap()
            })
            .sum();
        assert_eq!(begun, 69, "what waits is not begun");
        let failed: Vec<bool> = bars
            .iter()
            .map(|bar| bar.span.phase == Phase::Failed)
            .collect();
        assert_eq!(failed.iter().filter(|failed| **failed).count(), 1);
        assert!(failed[19]);
    }
}
