//! What a page of the run list costs, and that its cost does not grow with the tables.
//!
//! Serves a small and a large seeded database with the real binary, asks for the same pages of
//! both over loopback, and prints wall time, statements and the server's own CPU time, the last
//! as a multiple of `/livez` in the same run. Ratios are what to look at: machines differ.
//!
//!     cargo bench --bench list                      # SQLite, 1,000 and 1,000,000 runs
//!     PLIMSOLL_BENCH_RUNS=100000 cargo bench --bench list
//!     scripts/databases run -- cargo bench --bench list    # PostgreSQL and MySQL as well

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

const SMALL: u64 = 1_000;
const CLOCK: &str = "2026-11-15T12:00:00Z";
const BIN: &str = env!("CARGO_BIN_EXE_plimsoll");

/// Requests per measured page, in turns: what else the machine does falls on all pages alike.
const TURNS: u32 = 15;
const PER_TURN: u32 = 100;

fn main() {
    let large: u64 = std::env::var("PLIMSOLL_BENCH_RUNS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(1_000_000);
    for database in databases() {
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

struct Database {
    name: &'static str,
    /// A URL with `{}` where the database's own name or file goes.
    template: String,
}

impl Database {
    fn url(&self, runs: u64) -> String {
        self.template
            .replace("{}", &format!("plimsoll_bench_{runs}"))
    }
}

fn databases() -> Vec<Database> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let mut all = vec![Database {
        name: "SQLite",
        template: format!("sqlite:{}/{{}}.sqlite", folder.display()),
    }];
    for (name, variable) in [
        ("PostgreSQL", "PLIMSOLL_TEST_POSTGRES_URL"),
        ("MySQL", "PLIMSOLL_TEST_MYSQL_URL"),
    ] {
        if let Ok(url) = std::env::var(variable) {
            let server = url
                .rsplit_once('/')
                .map_or(url.as_str(), |(server, _)| server);
            all.push(Database {
                name,
                template: format!("{server}/{{}}"),
            });
            for runs in [
                SMALL,
                std::env::var("PLIMSOLL_BENCH_RUNS")
                    .ok()
                    .and_then(|n| n.parse().ok())
                    .unwrap_or(1_000_000),
            ] {
                create(&url, &format!("plimsoll_bench_{runs}"));
            }
        }
    }
    all
}

/// An empty database on a server; there already is fine.
fn create(admin: &str, name: &str) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let sql = sqlx::AssertSqlSafe(format!("create database {name}"));
        let _ = if admin.starts_with("postgres") {
            let mut connection = <sqlx::PgConnection as sqlx::Connection>::connect(admin)
                .await
                .expect("PostgreSQL");
            sqlx::raw_sql(sql).execute(&mut connection).await.map(drop)
        } else {
            let mut connection = <sqlx::MySqlConnection as sqlx::Connection>::connect(admin)
                .await
                .expect("MySQL");
            sqlx::raw_sql(sql).execute(&mut connection).await.map(drop)
        };
    });
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
    let deep = client.deep(runs);
    let pages = [
        ("/livez", "/livez".to_owned()),
        ("page 1", "/waterline/runs".to_owned()),
        (
            "filtered",
            "/waterline/runs?namespace=production&status_bucket=failed".to_owned(),
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

fn seed(url: &str, runs: u64) {
    let runs = runs.to_string();
    let done = Command::new(BIN)
        .args([
            "seed",
            "--create",
            "--database-url",
            url,
            "--projections",
            "summaries",
            "--runs",
            &runs,
            "--clock",
            CLOCK,
        ])
        .output()
        .expect("seed runs");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(
        done.status.success() || said.contains("already"),
        "seeding {url}: {said}"
    );
}

struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(url: &str) -> Self {
        let mut child = Command::new(BIN)
            .args([
                "serve",
                "--database-url",
                url,
                "--listen",
                "127.0.0.1:0",
                "--clock",
                CLOCK,
                "--log",
                "warn",
            ])
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("its output"))
            .read_line(&mut line)
            .expect("its address");
        let address = line
            .split("http://")
            .nth(1)
            .and_then(|rest| rest.split('/').next())
            .expect("an address");
        Self {
            address: address.to_owned(),
            child,
        }
    }

    fn client(&self) -> Client {
        let stream = TcpStream::connect(&self.address).expect("the server listens");
        stream.set_nodelay(true).expect("no delay");
        Client {
            stream,
            buffer: vec![0; 1 << 20],
        }
    }

    /// Time the server's threads spent on a processor so far.
    fn cpu(&self) -> Duration {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).expect("Linux");
        let nanos = tasks.filter_map(|task| {
            let stat = std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
            stat.split_whitespace().next()?.parse::<u64>().ok()
        });
        Duration::from_nanos(nanos.sum())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One connection, kept alive: what a proxy in front of us would hold.
struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
}

struct Answer {
    head: String,
    body: String,
}

impl Answer {
    fn header(&self, name: &str) -> &str {
        self.head
            .lines()
            .find_map(|line| {
                line.split_once(": ")
                    .filter(|(key, _)| key.eq_ignore_ascii_case(name))
            })
            .map_or("", |(_, value)| value)
    }
}

impl Client {
    fn get(&mut self, path: &str) -> Answer {
        write!(self.stream, "GET {path} HTTP/1.1\r\nHost: bench\r\n\r\n").expect("a request");
        let mut filled = 0;
        loop {
            filled += self
                .stream
                .read(&mut self.buffer[filled..])
                .expect("an answer");
            let text = &self.buffer[..filled];
            let Some(split) = text.windows(4).position(|four| four == b"\r\n\r\n") else {
                continue;
            };
            let head = String::from_utf8_lossy(&text[..split]).into_owned();
            let answer = Answer {
                head,
                body: String::new(),
            };
            let length: usize = answer.header("content-length").parse().expect("a length");
            if filled == self.buffer.len() {
                self.buffer.resize(filled * 2, 0);
            }
            if filled >= split + 4 + length {
                assert!(
                    answer.head.starts_with("HTTP/1.1 200"),
                    "{path}: {}",
                    answer.head
                );
                let body = String::from_utf8_lossy(&self.buffer[split + 4..split + 4 + length])
                    .into_owned();
                return Answer { body, ..answer };
            }
        }
    }

    /// A cursor nine tenths down the list: the row that far from the oldest, found from the end.
    fn deep(&mut self, runs: u64) -> String {
        let mut cursor = String::new();
        let skip = (runs / 10).min(9_000);
        let path = format!(
            "/waterline/api/flows/all?sort_direction=asc&per_page=200&page={}",
            (skip / 200).max(1)
        );
        let body: serde_json::Value = serde_json::from_str(&self.get(&path).body).expect("JSON");
        if let Some(last) = body["data"].as_array().and_then(|rows| rows.last()) {
            let (at, id) = last["sort_key"]
                .as_str()
                .and_then(|key| key.split_once('#'))
                .expect("a sort key");
            cursor = format!("next~{at}~{id}");
        }
        cursor
    }
}
