//! What a pass over the fleet costs as the fleet grows, and what an answer from it costs.
//!
//! Serves seeded databases with the real binary, asks for fresh numbers over and over, and prints
//! wall time, statements, our CPU time (on SQLite the database's own is in it) and the database
//! server's; then the cost of an answer from the last pass as a multiple of `/livez`, and how many
//! passes one scraper and fifty of them cause.
//!
//!     cargo bench --bench metrics                      # SQLite: 1,000, 100,000, 1,000,000 runs
//!     PLIMSOLL_BENCH_RUNS=1000,100000 cargo bench --bench metrics
//!     scripts/databases run -- cargo bench --bench metrics    # PostgreSQL and MySQL as well

mod common;

use std::{
    thread,
    time::{Duration, Instant},
};

use common::{Server, database_cpu, databases, seed};

/// Passes per size; the first warms the caches and is not counted.
const PASSES: u32 = 5;
const ANSWERS: u32 = 2_000;
/// Scrapers at once, and how often each asks.
const SCRAPERS: u32 = 50;
const SCRAPES: u32 = 20;

fn main() {
    let sizes: Vec<u64> = std::env::var("PLIMSOLL_BENCH_RUNS")
        .unwrap_or_else(|_| "1000,100000,1000000".to_owned())
        .split(',')
        .filter_map(|n| n.trim().parse().ok())
        .collect();
    println!(
        "{:12} {:>10} {:>11} {:>10} {:>12} {:>12} {:>12} {:>8} {:>16}",
        "database",
        "runs",
        "statements",
        "wall",
        "our CPU",
        "server CPU",
        "an answer",
        "/livez",
        "passes of 1, 50"
    );
    for database in databases(&sizes) {
        for runs in &sizes {
            let url = database.url(*runs);
            seed(&url, *runs);
            let passes = (scraped(&url, 1), scraped(&url, SCRAPERS));
            let server = Server::start(&url);
            let mut client = server.client();
            let fresh = "/waterline/api/operator-metrics?fresh=1";
            client.get(fresh);
            let (ours, theirs, started) = (server.cpu(), database_cpu(&url), Instant::now());
            let mut statements = String::new();
            for _ in 0..PASSES {
                after(&client.get(fresh).body, "\"pass_statements\":").clone_into(&mut statements);
            }
            let wall = started.elapsed() / PASSES;
            let ours = server.cpu().saturating_sub(ours) / PASSES;
            let theirs = database_cpu(&url).saturating_sub(theirs) / PASSES;
            let mut answers = |path: &str| -> Duration {
                for _ in 0..50 {
                    client.get(path);
                }
                let before = server.cpu();
                for _ in 0..ANSWERS {
                    client.get(path);
                }
                server.cpu().saturating_sub(before) / ANSWERS
            };
            let livez = answers("/livez");
            let answer = answers("/waterline/api/operator-metrics");
            println!(
                "{:12} {runs:>10} {statements:>11} {:>7.0} ms {:>9.0} ms {:>9.0} ms {:>9} µs {:>7.1}× {:>12}, {}",
                database.name,
                wall.as_secs_f64() * 1e3,
                ours.as_secs_f64() * 1e3,
                theirs.as_secs_f64() * 1e3,
                answer.as_micros(),
                answer.as_secs_f64() / livez.as_secs_f64(),
                passes.0,
                passes.1,
            );
        }
    }
}

/// The digits after a key.
fn after<'t>(text: &'t str, key: &str) -> &'t str {
    let rest = text.split(key).nth(1).unwrap_or("?");
    rest.split(|c: char| !c.is_ascii_digit())
        .next()
        .unwrap_or("?")
}

/// The passes a server of its own has made once that many scrapers have all asked at once.
fn scraped(url: &str, scrapers: u32) -> String {
    let server = Server::start(url);
    thread::scope(|scope| {
        for _ in 0..scrapers {
            scope.spawn(|| {
                let mut client = server.client();
                for _ in 0..SCRAPES {
                    client.get("/waterline/api/operator-metrics");
                    client.get("/metrics");
                }
            });
        }
    });
    let last = server.client().get("/waterline/api/operator-metrics");
    after(&last.body, "\"passes\":").to_owned()
}
