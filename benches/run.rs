//! What one run costs, from its rows in SQLite to the answer, and that the cost grows with the
//! run's history and no faster.
//!
//! Each size is first looked at once in a process of its own, for CPU time and memory; divan
//! then measures the steps by themselves.
//!
//!     cargo bench --bench run

use std::{
    fs,
    path::PathBuf,
    process::Command,
    time::{Duration, Instant},
};

use chrono::{DateTime, Utc};
use plimsoll::durable::repair::Mode;
use plimsoll::{
    cli::seed::{self, ProjectionsArg, SeedArgs, ShapeArg},
    db::{Db, Settings},
    durable::{
        engine_config::EngineConfig,
        projection::{Context, Projected},
        store::snapshot::{RunSnapshot, TimelineCache},
    },
    web::api::runs::Answer,
};

/// As the binary has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const EVENTS: [u32; 4] = [15, 2_000, 10_000, 50_000];
const PAYLOAD: usize = 1_800;
const CLOCK: &str = "2026-11-15T12:00:00Z";

/// As many timeline entries as an answer has when nobody asks for more.
const LIMIT: Option<usize> = Some(200);

/// The argument that makes this binary look at one run and say what that cost.
const ONCE: &str = "--look-once";

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|argument| argument == ONCE) {
        return look_once(arguments[at + 1].parse().expect("a number of events"));
    }
    for events in EVENTS {
        fill(events);
    }
    println!(
        "{:>7} {:>10} {:>10} {:>10} {:>10} {:>10} {:>7} | {:>10} {:>10} {:>10}",
        "events",
        "payloads",
        "first CPU",
        "wall",
        "CPU again",
        "memory",
        "ratio",
        "as JSON",
        "CPU",
        "memory"
    );
    for events in EVENTS {
        let me = std::env::current_exe().expect("this binary");
        let child = Command::new(me)
            .args([ONCE, &events.to_string()])
            .status()
            .expect("it runs again");
        assert!(child.success());
    }
    divan::main();
}

/// One view in a fresh process: nothing is warm but the file and one small run.
fn look_once(events: u32) {
    let bench = Bench::open(events);
    let small = Bench::open(EVENTS[0]);
    drop(json(&Answer::of(
        &small.project(&small.read()),
        LIMIT,
        Mode::Direct,
    )));
    reset_peak();
    let (memory, cpu, wall) = (status("VmRSS:"), cpu_time(), Instant::now());
    let run = bench.read();
    let projected = bench.project(&run);
    let answer = Answer::of(&projected, LIMIT, Mode::Direct);
    let (viewed, wall, peak) = (cpu_time(), wall.elapsed(), status("VmHWM:"));
    let json = json(&answer);
    let (written, json_peak) = (cpu_time(), status("VmHWM:"));
    let again = looked_at_again(&bench);
    let payloads: usize = run
        .events
        .iter()
        .filter_map(|event| event.payload.as_deref())
        .map(str::len)
        .sum();
    #[expect(clippy::cast_precision_loss, reason = "figures for people")]
    let mb = |bytes: usize| bytes as f64 / 1e6;
    let taken = |peak: usize| mb(peak.saturating_sub(memory));
    println!(
        "{events:>7} {:>7.2} MB {:>7.1} ms {:>7.1} ms {:>7.1} ms {:>7.2} MB {:>6.2}x | {:>7.2} MB {:>7.1} ms {:>7.2} MB",
        mb(payloads),
        millis(viewed.saturating_sub(cpu)),
        millis(wall),
        millis(again),
        taken(peak),
        taken(peak) / mb(payloads),
        mb(json.len()),
        millis(written.saturating_sub(viewed)),
        taken(json_peak),
    );
}

/// The same view in a process that has had long runs before, as a server has: the least of five.
fn looked_at_again(bench: &Bench) -> Duration {
    let looks = (0..5).map(|_| {
        let begun = cpu_time();
        let run = bench.read();
        let projected = bench.project(&run);
        drop(Answer::of(&projected, LIMIT, Mode::Direct));
        cpu_time().saturating_sub(begun)
    });
    looks.min().unwrap_or_default()
}

fn json(answer: &Answer<'_>) -> Vec<u8> {
    serde_json::to_vec(answer).expect("JSON")
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// CPU time of all threads there are, to the nanosecond.
fn cpu_time() -> Duration {
    let threads = fs::read_dir("/proc/self/task").expect("Linux");
    let nanos = threads
        .filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("schedstat")).ok())
        .filter_map(|text| text.split(' ').next()?.parse::<u64>().ok())
        .sum();
    Duration::from_nanos(nanos)
}

fn reset_peak() {
    fs::write("/proc/self/clear_refs", "5").expect("Linux");
}

/// Bytes of a line of `/proc/self/status`.
fn status(line: &str) -> usize {
    let status = fs::read_to_string("/proc/self/status").expect("Linux");
    status
        .lines()
        .find_map(|found| found.strip_prefix(line)?.trim().strip_suffix(" kB"))
        .and_then(|kib| kib.parse::<usize>().ok())
        .expect("kilobytes")
        * 1_024
}

fn file(events: u32) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("run_{events}.sqlite"))
}

fn url(events: u32) -> String {
    format!("sqlite:{}", file(events).display())
}

fn clock() -> DateTime<Utc> {
    CLOCK.parse().expect("a time")
}

/// A database with one long run, if it is not there yet.
fn fill(events: u32) {
    if file(events).exists() {
        return;
    }
    let args = SeedArgs {
        database_url: url(events),
        table_prefix: String::new(),
        runs: 1,
        events_per_run: events,
        shape: ShapeArg::Long,
        payload_bytes: PAYLOAD,
        seed: 42,
        create: true,
        clock: Some(clock()),
        projections: ProjectionsArg::All,
        yes: false,
    };
    runtime().block_on(seed::run(args)).expect("seeding");
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
}

struct Bench {
    runtime: tokio::runtime::Runtime,
    db: Db,
    run: String,
    config: EngineConfig,
}

impl Bench {
    fn open(events: u32) -> Self {
        let runtime = runtime();
        let (db, run) = runtime.block_on(async {
            let db = Db::connect(&Settings::new(url(events)))
                .await
                .expect("a database");
            let mut q = db.statement();
            q.push("select id from {workflow_runs}");
            let run = db.fetch(q).await.expect("a run")[0]
                .text("id")
                .expect("its id");
            (db, run)
        });
        Self {
            runtime,
            db,
            run,
            config: EngineConfig::defaults(),
        }
    }

    fn read(&self) -> RunSnapshot {
        self.runtime.block_on(async {
            let mut snapshot = self.db.snapshot().await.expect("a snapshot");
            let run = RunSnapshot::load(&mut snapshot, &self.run, TimelineCache::Presence)
                .await
                .expect("rows")
                .expect("a run");
            snapshot.end().await;
            run
        })
    }

    fn project<'a>(&'a self, run: &'a RunSnapshot) -> Projected<'a> {
        Projected::of(Context {
            snapshot: run,
            now: clock(),
            config: &self.config,
        })
    }
}

#[divan::bench(args = EVENTS, sample_count = 10)]
fn read(bencher: divan::Bencher<'_, '_>, events: u32) {
    let bench = Bench::open(events);
    bencher.bench_local(|| bench.read());
}

#[divan::bench(args = EVENTS, sample_count = 10)]
fn project(bencher: divan::Bencher<'_, '_>, events: u32) {
    let bench = Bench::open(events);
    let run = bench.read();
    bencher.bench_local(|| drop(bench.project(&run)));
}

#[divan::bench(args = EVENTS, sample_count = 10)]
fn answer(bencher: divan::Bencher<'_, '_>, events: u32) {
    let bench = Bench::open(events);
    let run = bench.read();
    let projected = bench.project(&run);
    bencher.bench_local(|| drop(Answer::of(&projected, LIMIT, Mode::Direct)));
}

#[divan::bench(args = EVENTS, sample_count = 10)]
fn serialise(bencher: divan::Bencher<'_, '_>, events: u32) {
    let bench = Bench::open(events);
    let run = bench.read();
    let projected = bench.project(&run);
    let answer = Answer::of(&projected, LIMIT, Mode::Direct);
    bencher.bench_local(|| json(&answer));
}
