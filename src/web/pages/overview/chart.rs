//! Drawings of the overview, as numbers a template only writes down. Each has a table beside it
//! with the same figures.

use chrono::{DateTime, Datelike as _, Timelike as _};

use crate::{
    durable::metrics::dashboard::TrendsSeries,
    web::format::{absolute, number},
    zone::Zone,
};

/// Pixels: one hour is four wide, the tallest is a hundred high.
const HOUR: usize = 4;
const HEIGHT: i64 = 100;
const BASE: i64 = 110;

/// Closed runs per hour over the week.
pub struct Chart {
    pub width: usize,
    pub columns: Vec<Column>,
    pub days: Vec<(usize, String)>,
    /// The table: hours in which runs closed, the newest first.
    pub rows: Vec<Row>,
    pub completed: String,
    pub failed: String,
    /// The most runs that closed in one hour.
    pub most: String,
}

pub struct Column {
    pub x: usize,
    pub completed: (i64, i64),
    pub failed: (i64, i64),
}

pub struct Row {
    pub hour: String,
    pub completed: String,
    pub failed: String,
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
        let most = hours
            .iter()
            .map(|(_, completed, failed)| completed + failed)
            .max()
            .unwrap_or(0);
        // One run is visible however many the busiest hour had.
        let high = |runs: i64| match runs {
            0 => 0,
            runs => (runs * HEIGHT / most.max(1)).max(2),
        };
        let local = |at: i64| zone.local(DateTime::from_timestamp_millis(at).unwrap_or_default());
        Self {
            width: hours.len() * HOUR,
            columns: hours
                .iter()
                .enumerate()
                .filter(|(_, (_, completed, failed))| completed + failed > 0)
                .map(|(n, (_, completed, failed))| {
                    let (failed, completed) = (high(*failed), high(*completed));
                    Column {
                        x: n * HOUR,
                        failed: (BASE - failed, failed),
                        completed: (BASE - failed - completed, completed),
                    }
                })
                .collect(),
            days: hours
                .iter()
                .enumerate()
                .filter(|(n, (at, _, _))| {
                    local(*at).hour() == 0 && n * HOUR + 24 < hours.len() * HOUR
                })
                .map(|(n, (at, _, _))| (n * HOUR, local(*at).weekday().to_string()))
                .collect(),
            rows: hours
                .iter()
                .rev()
                .filter(|(_, completed, failed)| completed + failed > 0)
                .map(|(at, completed, failed)| Row {
                    hour: absolute(local(*at).to_utc(), zone),
                    completed: number(*completed),
                    failed: number(*failed),
                })
                .collect(),
            completed: number(series.completed.iter().sum()),
            failed: number(series.failed.iter().sum()),
            most: number(most),
        }
    }
}

/// One horizontal bar and its figure.
pub struct Bar {
    pub label: String,
    pub count: String,
    pub width: i64,
}

/// Bars as long as their share of the longest.
pub fn bars(groups: impl IntoIterator<Item = (String, i64)>) -> Vec<Bar> {
    let groups: Vec<(String, i64)> = groups.into_iter().collect();
    let most = groups.iter().map(|(_, count)| *count).max().unwrap_or(0);
    groups
        .into_iter()
        .map(|(label, count)| Bar {
            label,
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
        assert_eq!(chart.columns.len(), 1);
        assert_eq!(chart.columns[0].failed, (108, 2));
        assert_eq!(chart.rows.len(), 1);
        assert_eq!(chart.rows[0].completed, "5,000");
    }
}
