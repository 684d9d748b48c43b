//! What a page of the run list costs, and that its cost does not grow with the tables.
//!
//! Serves a small and a large seeded database with the real binary, asks for the same pages of
//! both over loopback, and prints wall time, statements and the server's own CPU time, the last
//! as a multiple of `/livez` in the same run. Ratios are what to look at: machines differ.
//!
//!     cargo bench --bench list                      # SQLite, 1,000 and 1,000,000 runs
//!     PLIMSOLL_BENCH_RUNS=100000 cargo bench --bench list
//!     scripts/databases run -- cargo bench --bench list    # PostgreSQL and MySQL as well

mod common;

use std::time::Instant;

use common::{Client, Database, Server, databases, seed};

const SMALL: u64 = 1_000;

/// Requests per measured page, in turns: what else the machine does falls on all pages alike.
const TURNS: u32 = 15;
const PER_TURN: u32 = 100;

fn main() {
    let large: u64 = std::env::var("PLIMSOLL_BENCH_RUNS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(1_000_000);
    for database in databases(&[SMALL, large]) {
        println!("\n{}", database.name);
        let small = measure(&database, SMALL, &database.url(SMALL));
        let big = measure(&database, large, &database.url(large));
        println!("{:24} {:>12} {:>12} {:>8}", "page", SMALL, large, "ratio");
        for (one, other) in small.iter().zip(&big) {
            println!(
                "{:24} {:>9.2} ms {:>9.2} ms {:>7.2}×   statements {} and {}",
                one.name,
                one.wall * 1e3,
                other.wall * 1e3,
                other.wall / one.wall,
                one.statements,
                other.statements
            );
        }
        for (runs, pages) in [(SMALL, &small), (large, &big)] {
            let floor = pages[0].cpu;
            for page in &pages[1..] {
                println!(
                    "{:24} {runs:>9} runs: {:>6.0} µs of our CPU, {:>5.1}× /livez ({:.0} µs)",
                    page.name,
                    page.cpu * 1e6,
                    page.cpu / floor,
                    floor * 1e6
                );
            }
        }
    }
}

struct Page {
    name: &'static str,
    /// Median seconds.
    wall: f64,
    /// The server's CPU seconds per request.
    cpu: f64,
    statements: String,
}

fn measure(database: &Database, runs: u64, url: &str) -> Vec<Page> {
    seed(url, runs);
    let server = Server::start(url);
    let mut client = server.client();
    // As deep as nine tenths of the list, by the JSON twin's cursor: its last page, turned.
    let deep = deep(&mut client, runs);
    let pages = [
        ("/livez", "/livez".to_owned()),
        ("page 1", "/waterline/runs".to_owned()),
        // Full in the small database too, so that both pages are of the same length.
        (
            "filtered",
            "/waterline/runs?namespace=production&status_bucket=completed".to_owned(),
        ),
        ("deep", format!("/waterline/runs?cursor={deep}")),
    ];
    let mut measured = pages.map(|(name, path)| {
        for _ in 0..50 {
            client.get(&path);
        }
        (
            path,
            Vec::new(),
            Page {
                name,
                wall: 0.0,
                cpu: 0.0,
                statements: String::new(),
            },
        )
    });
    for _ in 0..TURNS {
        for (path, times, page) in &mut measured {
            let before = server.cpu();
            for _ in 0..PER_TURN {
                let started = Instant::now();
                let answer = client.get(path);
                times.push(started.elapsed().as_secs_f64());
                answer
                    .header("x-statements")
                    .clone_into(&mut page.statements);
            }
            page.cpu += server.cpu().saturating_sub(before).as_secs_f64();
        }
    }
    println!("  {} with {runs} runs measured", database.name);
    measured
        .map(|(_, mut times, page)| {
            times.sort_by(f64::total_cmp);
            Page {
                wall: times[times.len() / 2],
                cpu: page.cpu / f64::from(TURNS * PER_TURN),
                ..page
            }
        })
        .into()
}

/// A cursor nine tenths down the list: the row that far from the oldest, found from the end.
fn deep(client: &mut Client, runs: u64) -> String {
    let mut cursor = String::new();
    let skip = (runs / 10).min(9_000);
    let path = format!(
        "/waterline/api/flows/all?sort_direction=asc&per_page=200&page={}",
        (skip / 200).max(1)
    );
    let body: serde_json::Value = serde_json::from_str(&client.get(&path).body).expect("JSON");
    if let Some(last) = body["data"].as_array().and_then(|rows| rows.last()) {
        let (at, id) = last["sort_key"]
            .as_str()
            .and_then(|key| key.split_once('#'))
            .expect("a sort key");
        cursor = format!("next~{at}~{id}");
    }
    cursor
}
