//! What this process itself does, for Prometheus: how long requests take, by route.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use crate::web::api::exposition::{Exposition, Kind};

/// Upper bounds of the histogram, in seconds.
const BOUNDS: [f64; 9] = [0.001, 0.005, 0.01, 0.025, 0.1, 0.25, 1.0, 2.5, 10.0];

#[derive(Debug, Default)]
pub struct Telemetry {
    /// By route and first digit of the status; both are few.
    requests: Mutex<BTreeMap<(String, u16), Histogram>>,
}

#[derive(Clone, Debug, Default)]
struct Histogram {
    buckets: [u64; BOUNDS.len()],
    count: u64,
    sum: f64,
}

impl Telemetry {
    /// One answered request. A request that met no route has none.
    pub fn answered(&self, route: Option<&str>, status: u16, took: Duration) {
        let seconds = took.as_secs_f64();
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (route.unwrap_or("none").to_owned(), status / 100);
        let histogram = requests.entry(key).or_default();
        histogram.count += 1;
        histogram.sum += seconds;
        for (bucket, bound) in histogram.buckets.iter_mut().zip(BOUNDS) {
            *bucket += u64::from(seconds <= bound);
        }
    }

    pub fn write(&self, out: &mut Exposition) {
        let requests = self
            .requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        out.family(
            "plimsoll_http_request_duration_seconds",
            Kind::Histogram,
            "Time to answer a request, by route.",
        );
        for ((route, class), histogram) in &requests {
            let status = format!("{class}xx");
            let labels = [("route", route.as_str()), ("status", status.as_str())];
            for (count, bound) in histogram.buckets.iter().zip(BOUNDS) {
                let bound = bound.to_string();
                let labels = [labels[0], labels[1], ("le", &bound)];
                out.part("_bucket", &labels, *count);
            }
            out.part(
                "_bucket",
                &[labels[0], labels[1], ("le", "+Inf")],
                histogram.count,
            );
            out.part("_sum", &labels, histogram.sum);
            out.part("_count", &labels, histogram.count);
        }
    }
}
