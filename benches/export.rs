//! What an export of 50,000 events costs on each database: peak memory above what the process
//! held before, and time beside reading the same rows once; alone and ten at once. Then what
//! checking the file costs, and comparing a run of 10,000 events with itself.
//!
//!     scripts/databases run -- cargo bench --bench export

#[allow(dead_code, reason = "the other benches use the rest of it")]
mod common;

use std::{
    fs::{self, File},
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use futures_util::{StreamExt as _, future::join_all};
use plimsoll::{
    cli::seed::{self, ProjectionsArg, SeedArgs, ShapeArg},
    db::{Db, Settings},
    durable::{
        engine_config::EngineConfig,
        export::{stream, verify::verify},
        page::steps::steps,
        projection::{Context, Projected},
        store::snapshot::{RunSnapshot, TimelineCache},
        stored::{
            AttemptRow, CommandRow, ExecutionRow, HistoryEvent, SignalRow, TaskRow, TimelineEntry,
            TimerEntry, TimerRow, WaitEntry,
        },
    },
    run::comparison::compare,
};

/// As the binary has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const ONCE: &str = "--once";
const CLOCK: &str = "2026-11-15T12:00:00Z";
const EVENTS: u32 = 50_000;
const COMPARED: u32 = 10_000;
const AT_ONCE: usize = 10;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|argument| argument == ONCE) {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let (what, url) = (arguments[at + 1].as_str(), arguments[at + 2].as_str());
        return match what {
            "verify" => checked(Path::new(url)),
            "compare" => runtime.block_on(compared(url)),
            what => runtime.block_on(measured(what, url)),
        };
    }
    println!(
        "{:<24} {:>10} {:>12} {:>12}",
        "", "wall", "per export", "memory"
    );
    for database in common::databases(&[u64::from(EVENTS)]) {
        let url = database.url(u64::from(EVENTS));
        fill(&url, EVENTS);
        for what in ["read", "export", "ten"] {
            print!("{:<24} ", format!("{} {what}", database.name));
            std::io::stdout().flush().expect("a terminal");
            again(what, &url);
        }
    }
    print!("{:<24} ", "verify");
    std::io::stdout().flush().expect("a terminal");
    again("verify", &bundle().display().to_string());
    let small = format!("sqlite:{}/compared.sqlite", env!("CARGO_TARGET_TMPDIR"));
    fill(&small, COMPARED);
    print!("{:<24} ", "compare, 10,000 events");
    std::io::stdout().flush().expect("a terminal");
    again("compare", &small);
}

/// In a process of its own, so that nothing is left over.
fn again(what: &str, url: &str) {
    let me = std::env::current_exe().expect("this binary");
    let child = Command::new(me).args([ONCE, what, url]).status();
    assert!(child.expect("it runs again").success());
}

fn bundle() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("export.json")
}

/// A database with one long run, if it is not there yet.
fn fill(url: &str, events: u32) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let there = runtime.block_on(async {
        let db = Db::connect(&Settings::new(url)).await.ok()?;
        let mut q = db.statement();
        q.push("select id from {workflow_runs}");
        db.fetch(q).await.ok().filter(|rows| !rows.is_empty())
    });
    if there.is_some() {
        return;
    }
    let args = SeedArgs {
        database_url: url.to_owned(),
        table_prefix: String::new(),
        runs: 1,
        events_per_run: events,
        shape: ShapeArg::Long,
        payload_bytes: 1_800,
        seed: 42,
        create: true,
        clock: CLOCK.parse().ok(),
        projections: ProjectionsArg::All,
        yes: false,
    };
    runtime.block_on(seed::run(args)).expect("seeding");
}

async fn open(url: &str) -> (Db, String) {
    let mut settings = Settings::new(url);
    settings.pool_size = 12;
    settings.statement_timeout = Duration::from_mins(10);
    let db = Db::connect(&settings).await.expect("a database");
    let mut q = db.statement();
    q.push("select id from {workflow_runs}");
    let run = db.fetch(q).await.expect("a run")[0]
        .text("id")
        .expect("its id");
    (db, run)
}

async fn measured(what: &str, url: &str) {
    let (db, run) = open(url).await;
    if what == "export" {
        // Giving back the room of the file before it is no part of an export.
        let _ = fs::remove_file(bundle());
    }
    fs::write("/proc/self/clear_refs", "5").expect("Linux");
    let (memory, wall) = (status("VmRSS:"), Instant::now());
    let exports = match what {
        "read" => {
            read(&db, &run).await;
            1
        }
        "export" => {
            export(&db, &run, Some(&bundle())).await;
            1
        }
        _ => {
            join_all((0..AT_ONCE).map(|_| export(&db, &run, None))).await;
            AT_ONCE
        }
    };
    told(wall.elapsed(), exports, memory);
}

#[expect(clippy::cast_precision_loss, reason = "figures for people")]
fn told(wall: Duration, exports: usize, memory: usize) {
    let grown = status("VmHWM:").saturating_sub(memory);
    println!(
        "{:>8.2} s {:>10.2} s {:>9.1} MB",
        wall.as_secs_f64(),
        wall.as_secs_f64() / exports as f64,
        grown as f64 / 1e6 / exports as f64,
    );
}

/// Every row an export looks at, once, as fast as the driver gives them.
async fn read(db: &Db, run: &str) {
    let mut snapshot = db.snapshot().await.expect("a snapshot");
    for (table, columns) in [
        (HistoryEvent::TABLE, HistoryEvent::COLUMNS),
        (TaskRow::TABLE, TaskRow::COLUMNS),
        (ExecutionRow::TABLE, ExecutionRow::COLUMNS),
        (AttemptRow::TABLE, AttemptRow::COLUMNS),
        (TimerRow::TABLE, TimerRow::COLUMNS),
        (CommandRow::TABLE, CommandRow::COLUMNS),
        (SignalRow::TABLE, SignalRow::COLUMNS),
        (WaitEntry::TABLE, WaitEntry::COLUMNS),
        (TimerEntry::TABLE, TimerEntry::COLUMNS),
        (TimelineEntry::TABLE, TimelineEntry::COLUMNS),
    ] {
        let mut q = snapshot.statement();
        q.push("select ").push(columns).push(" from {").push(table);
        q.push("} where workflow_run_id = ").bind(run);
        let mut rows = snapshot.stream(q);
        while let Some(row) = rows.next().await {
            std::hint::black_box(row.expect("a row"));
        }
    }
    snapshot.end().await;
}

async fn export(db: &Db, run: &str, file: Option<&Path>) {
    let config = EngineConfig::defaults();
    let options = stream::Options {
        now: CLOCK.parse().expect("a moment"),
        config: &config,
        policy: None,
        key: None,
        batch: stream::Options::BATCH,
    };
    let mut snapshot = db.unhurried().await.expect("a snapshot");
    let (sink, mut pieces) = tokio::sync::mpsc::channel::<Vec<u8>>(4);
    let mut file = file.map(|path| File::create(path).expect("a file"));
    // As `plimsoll export` does it.
    let drain = tokio::task::spawn_blocking(move || {
        while let Some(piece) = pieces.blocking_recv() {
            if let Some(file) = &mut file {
                file.write_all(&piece).expect("room");
            }
        }
    });
    let done = stream::write(&mut snapshot, run, options, sink).await;
    done.expect("an export");
    drain.await.expect("the file");
    snapshot.end().await;
}

fn checked(path: &Path) {
    fs::write("/proc/self/clear_refs", "5").expect("Linux");
    let (memory, wall) = (status("VmRSS:"), Instant::now());
    let report = verify(File::open(path).expect("the export"), None, &mut |_| ());
    assert_eq!(report.summary.errors, 0);
    told(wall.elapsed(), 1, memory);
}

async fn compared(url: &str) {
    let (db, run) = open(url).await;
    let mut snapshot = db.snapshot().await.expect("a snapshot");
    let rows = RunSnapshot::load(&mut snapshot, &run, TimelineCache::Presence).await;
    let rows = rows.expect("rows").expect("a run");
    snapshot.end().await;
    let config = EngineConfig::defaults();
    fs::write("/proc/self/clear_refs", "5").expect("Linux");
    let (memory, wall) = (status("VmRSS:"), Instant::now());
    let side = || {
        steps(&Projected::of(Context {
            snapshot: &rows,
            now: CLOCK.parse().expect("a moment"),
            config: &config,
        }))
    };
    assert_eq!(compare(side(), side()).first(), None);
    told(wall.elapsed(), 1, memory);
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
