//! Drawings of the overview, as numbers a template only writes down. Each has a table beside it
//! with the same figures.

use chrono::{DateTime, Datelike as _, Timelike as _};

use crate::{
    durable::metrics::dashboard::TrendsSeries,
    web::format::{absolute, number},
    zone::Zone,
};

/// Pixels: the tallest hour is 120 high. Across, the week takes the width there is, in percent.
const HEIGHT: i64 = 120;
const BASE: i64 = 130;

/// Hours a day must have left for its name to stand below them on the narrowest screen.
const NAMED: usize = 18;

/// Closed runs per hour over the week.
pub struct Chart {
    /// Room for the scale's numbers beside the plot, in pixels.
    pub gutter: usize,
    /// How wide the column of an hour is.
    pub column: String,
    /// Hours in which runs closed.
    pub hours: Vec<Hour>,
    pub days: Vec<(String, String)>,
    /// Lines across, each with the number it stands for.
    pub scale: Vec<(i64, String)>,
    pub completed: String,
    pub failed: String,
}

/// One column, and the row of the table that says the same.
pub struct Hour {
    pub x: String,
    pub done: Block,
    pub fail: Block,
    pub at: String,
    pub completed: String,
    pub failed: String,
}

/// A part of a column.
#[derive(Debug, PartialEq, Eq)]
pub struct Block {
    pub y: i64,
    pub height: i64,
}

impl Chart {
    pub fn of(series: &TrendsSeries, zone: Zone) -> Self {
        let hours: Vec<(i64, i64, i64)> = series
            .timestamps
            .iter()
            .zip(&series.completed)
            .zip(&series.failed)
            .map(|((at, completed), failed)| (*at, *completed, *failed))
            .collect();
        let closed = hours
            .iter()
            .map(|(_, completed, failed)| completed + failed);
        let most = closed.max().unwrap_or(0);
        // One run is visible however many the busiest hour had.
        let high = |runs: i64| match runs {
            0 => 0,
            runs => (runs * HEIGHT / most.max(1)).max(2),
        };
        let local = |at: i64| zone.local(DateTime::from_timestamp_millis(at).unwrap_or_default());
        let place = |n: usize| percent(n, hours.len());
        let scale: Vec<_> = scale(most)
            .map(|runs| (BASE - runs * HEIGHT / most, number(runs)))
            .collect();
        let longest = scale.iter().map(|(_, runs)| runs.len()).max();
        Self {
            gutter: longest.map_or(0, |longest| longest * 7 + 8),
            column: percent(3, hours.len() * 4),
            hours: hours
                .iter()
                .enumerate()
                .filter(|(_, (_, completed, failed))| completed + failed > 0)
                .map(|(n, (at, completed, failed))| {
                    let (fail, done) = (high(*failed), high(*completed));
                    Hour {
                        x: place(n),
                        fail: Block {
                            y: BASE - fail,
                            height: fail,
                        },
                        done: Block {
                            y: BASE - fail - done,
                            height: done,
                        },
                        at: absolute(local(*at).to_utc(), zone),
                        completed: number(*completed),
                        failed: number(*failed),
                    }
                })
                .collect(),
            days: hours
                .iter()
                .enumerate()
                .filter(|(n, (at, _, _))| local(*at).hour() == 0 && n + NAMED < hours.len())
                .map(|(n, (at, _, _))| (place(n), local(*at).weekday().to_string()))
                .collect(),
            scale,
            completed: number(series.completed.iter().sum()),
            failed: number(series.failed.iter().sum()),
        }
    }
}

/// So many of so many, in thousandths of a percent.
fn percent(n: usize, of: usize) -> String {
    let thousandths = n * 100_000 / of.max(1);
    format!("{}.{:03}%", thousandths / 1_000, thousandths % 1_000)
}

/// One to three round numbers up to the largest.
fn scale(most: i64) -> impl Iterator<Item = i64> {
    let steps = (0..=18).flat_map(|power| [1, 2, 5].map(|step| step * 10_i64.pow(power)));
    let step = steps.into_iter().find(|step| most / step <= 3);
    let step = step.unwrap_or(i64::MAX);
    (1..=3)
        .map(move |n: i64| n.saturating_mul(step))
        .take_while(move |runs| *runs <= most)
}

/// One horizontal bar and its figure.
pub struct Bar {
    pub label: String,
    pub count: String,
    /// The list behind it.
    pub href: Option<String>,
    pub width: i64,
}

/// Bars as long as their share of the longest.
pub fn bars(groups: impl IntoIterator<Item = (String, i64, Option<String>)>) -> Vec<Bar> {
    let groups: Vec<_> = groups.into_iter().collect();
    let most = groups.iter().map(|(_, count, _)| *count).max().unwrap_or(0);
    groups
        .into_iter()
        .map(|(label, count, href)| Bar {
            label,
            href,
            width: (count * 200 / most.max(1)).max(2),
            count: number(count),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_failure_among_thousands_is_still_drawn() {
        let series = TrendsSeries {
            timestamps: vec![1_794_700_800_000, 1_794_704_400_000],
            completed: vec![5_000, 0],
            failed: vec![1, 0],
        };
        let chart = Chart::of(&series, Zone::UTC);
        assert_eq!(chart.hours.len(), 1);
        let fail = Block {
            y: BASE - 2,
            height: 2,
        };
        assert_eq!(chart.hours[0].fail, fail);
        assert_eq!(chart.hours[0].completed, "5,000");
    }

    #[test]
    fn the_scale_has_one_to_three_round_numbers() {
        for (most, want) in [
            (0, &[][..]),
            (1, &[1]),
            (3, &[1, 2, 3]),
            (4, &[2, 4]),
            (12, &[5, 10]),
            (5_001, &[2_000, 4_000]),
            (9_999, &[5_000]),
        ] {
            assert_eq!(scale(most).collect::<Vec<_>>(), want, "{most}");
        }
        assert!((1..=3).contains(&scale(i64::MAX / 2).count()));
    }
}
